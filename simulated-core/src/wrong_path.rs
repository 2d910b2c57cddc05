//! What a core does before it knows that it is on the wrong path.
//!
//! After a mispredicted branch, other instructions come until it is executed. After a short `if`, and in loops, most of them
//! follow on the right path as well, and have asked for their lines of data when they come once more. Which ones these are is not known: all that
//! follow on the right path are taken for such.

use crate::core::Core;
use crate::operation::Operation;
use crate::predictor::Outcome;
use crate::ready::Ready;
use crate::wait::Wait;

/// The instructions after the last mispredicted branch, as far as they come before it is executed.
#[derive(Default)]
pub(crate) struct WrongPath {
    /// When the next one comes.
    now: f64,
    /// When the branch is executed.
    until: f64,
    ready: Ready,
}

impl WrongPath {
    /// After a branch that comes `now` and is executed at `until`.
    pub fn begin(&mut self, now: f64, until: f64, ready: &Ready) {
        (self.now, self.until) = (now, until);
        self.ready.clone_from(ready);
    }

    /// The next instruction, which takes a `place` of what comes in a cycle; when its load has its data, if it asks for it here.
    pub fn execute(
        &mut self,
        core: &Core,
        operation: &Operation,
        outcome: Outcome,
        wait: Option<Wait>,
        place: f64,
    ) -> Option<f64> {
        self.now += place;
        if self.now >= self.until {
            return None;
        }
        let mut start = self.ready.latest(operation.sources, self.now);
        let asks = operation.load.map(|_| self.ready.latest(operation.address, self.now));
        let there = asks.map(|asks| asks + core.load + wait.map_or(0.0, |wait| wait.latency));
        start = start.max(there.unwrap_or(start));
        self.ready.write(operation.results, start + operation.latency);
        if outcome == Outcome::Taken {
            self.now += core.taken;
        }
        there.filter(|_| asks.is_some_and(|asks| asks < self.until))
    }
}
