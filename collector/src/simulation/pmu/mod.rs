//! A simulated PMU: from every executed instruction to the samples that a PMU with branch records could have made of them.
//!
//! It serves to run the whole path of hardware recordings where there is no such hardware, against counts that are known. It measures
//! nothing: what it knows of time is a model, and every recording and report made with it says so. The model has what makes samples of
//! hardware wrong (HBBP, section III), each from a cause of its own, with constants that were chosen for what CPUs are like and not for
//! what comes out (all in `model`):
//!
//! ```text
//! Executed (ip, operand, taken) -> class of the instruction         code
//!                                  latency, misprediction           cache, predictor
//!                                  time of its retirement           pipeline
//!                                  counters, overflow, capture      counters: skid, shadowing
//!                                  last branches                    last_branches: bias of entry[0]
//! ```
//!
//! Nothing here speaks to a kernel: the trace comes from [`tracer::simulation`](crate::tracer), or from a test.

mod cache;
mod code;
mod counters;
mod last_branches;
mod model;
mod pipeline;
mod predictor;

use lookahead::{BranchKind, Executed};
use perfdata::{Avma, Branch};

use crate::simulation::pmu::cache::Caches;
pub(crate) use crate::simulation::pmu::code::{CodeBytes, CodeTable};
use crate::simulation::pmu::counters::Counters;
pub use crate::simulation::pmu::last_branches::holds_the_stack;
use crate::simulation::pmu::pipeline::Pipeline;
use crate::simulation::pmu::predictor::Predictor;
use crate::simulation::settings::PmuSettings;

/// The two events of the simulated PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampledEvents {
    pub(crate) instructions: Sampling,
    pub(crate) taken_branches: Sampling,
}

/// When and how one event samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// Counts from one overflow to the next.
    pub(crate) period: u64,
    pub(crate) capture: Capture,
}

/// How the sample of an overflow is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// By an interrupt (`precise_ip` 0), which comes some time after the overflow, wherever the program is then.
    Interrupt,
    /// By the core itself (PEBS): some cycles after the overflow it is armed, and the next event of that kind makes the sample.
    Precise,
    /// In the same way, but the core is told ahead and is armed in the cycle of the overflow (PDIR).
    Distributed,
}

/// Which of the two events sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampledBy {
    Instructions,
    TakenBranches,
}

/// A sample of the simulated PMU, with its branch stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PmuSample {
    pub(crate) event: SampledBy,
    pub(crate) ip: Avma,
    /// The branch stack, newest branch first.
    pub(crate) branches: Vec<Branch>,
}

/// The counters of one thread. A new thread begins with whole periods, as events that are inherited do.
#[derive(Debug)]
pub(crate) struct ThreadPmu(Counters);

impl ThreadPmu {
    pub(crate) fn new(settings: PmuSettings, events: SampledEvents) -> Self {
        Self(Counters::new(settings, events))
    }

    /// Instructions and taken branches counted.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.0.instructions(), self.0.taken_branches())
    }

    /// The thread has another program now: no branch of the old one is in its stack.
    pub(crate) fn exec(&mut self) {
        self.0.forget_branches();
    }

    /// Overflows that came while a sample of the same event was due: they made none.
    pub(crate) fn merged(&self) -> u64 {
        self.0.merged()
    }
}

/// The core: what all threads share. They run on it one after the other.
#[derive(Debug, Default)]
pub(crate) struct Core {
    caches: Caches,
    predictor: Predictor,
    pipeline: Pipeline,
}

impl Core {
    /// The thread has executed `trace`. Appends its samples.
    pub(crate) fn retire(
        &mut self,
        thread: &mut ThreadPmu,
        code: &mut CodeTable,
        bytes: &mut dyn CodeBytes,
        trace: &[Executed],
        samples: &mut Vec<PmuSample>,
    ) {
        for executed in trace {
            let class = code.executed(executed.ip, bytes);
            thread.0.before(executed.ip, samples);
            let mut latency = class.latency;
            if class.reads {
                latency += self.caches.access(executed.operand);
            } else if class.writes {
                // The store buffer hides how long it takes.
                self.caches.access(executed.operand);
            }
            let mispredicted = class.branch.is_some_and(|kind| {
                let behind = Avma(executed.ip.0 + u64::from(class.length));
                self.predictor.mispredicts(kind, executed.ip, behind, executed.taken.map(|(_, to)| to))
            });
            let now = self.pipeline.retire(latency, class.divides, mispredicted);
            let taken = executed.taken.map(|(kind, to)| (executed.ip, to, kind, mispredicted));
            thread.0.retired(now, taken, samples);
        }
    }
}

/// A branch that a thread took, as far as it can be told from where it was before and behind an instruction.
pub(crate) fn stepped(code: &mut CodeTable, bytes: &mut dyn CodeBytes, ip: Avma, next: Avma) -> Executed {
    let class = code.class(ip, bytes);
    let fell_through = next.0 == ip.0 + u64::from(class.length);
    let taken = class.branch.filter(|&kind| kind != BranchKind::Conditional || !fell_through);
    Executed { ip, operand: Avma(0), taken: taken.map(|kind| (kind, next)) }
}

#[cfg(test)]
mod tests;
