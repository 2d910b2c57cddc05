//! Processes whose threads have no clocks: those of the CPUs say whose turn it is.

use std::time::Duration;

use crate::sys::process::{exists, serves_others, thread_name, threads};
use crate::tracer::TRACER_THREAD;
use crate::tracer::agent::cpu_clocks::Turn;
use crate::tracer::agent::engine::{AgentEngine, Running};
use crate::tracer::agent::sideband::Happening;
use crate::tracer::agent::tree::{State, Tree};
use crate::tracer::kernel::Kernel;
use crate::tracer::settings::ByCpu;

/// A burst stands for so many periods at most that brought none.
const MOST_OWED: u64 = 10;
/// How often it is looked whether processes are there still: the record of an end can be lost.
const SWEEP: Duration = Duration::from_secs(60);

impl AgentEngine {
    /// Whether clocks of CPUs start the bursts.
    pub(super) fn is_by_cpu(&self) -> bool {
        self.cpu_clocks.is_some()
    }

    /// The clocks of CPUs run from now on.
    pub(super) fn start_cpu_clocks(&mut self) {
        let Some(clocks) = &mut self.cpu_clocks else { return };
        let mean = self.budget.period();
        let governor = &mut self.budget.governor;
        clocks.start(mean as u64, || governor.jitter());
    }

    /// Gives those a burst whose turn it is.
    pub(super) fn take_turns(&mut self) {
        let Some(clocks) = &mut self.cpu_clocks else { return };
        let mean = self.budget.period();
        let governor = &mut self.budget.governor;
        let turns = clocks.turns(mean as u64, || governor.jitter());
        turns.into_iter().for_each(|turn| self.take_turn(turn));
    }

    fn take_turn(&mut self, Turn { process, thread, period }: Turn) {
        if self.is_off(process) {
            return;
        }
        let is_family = self.settings.by_cpu == Some(ByCpu::Family);
        if is_family && self.tree.state(process).is_none() {
            // It may just have been born.
            self.see_happenings();
        }
        if self.tree.state(process).is_none() {
            if is_family {
                return;
            }
            let is_left_alone = process == std::process::id() as i32 || must_not_wait(process as u32);
            self.tree.set_state(process, if is_left_alone { State::Barred } else { State::Without });
        }
        if self.tree.is_left_out(process) {
            return;
        }
        self.turns_lately += 1;
        // One that could not be stopped yet has its burst still to come. The one after that stands for this, too.
        if self.tree.get(thread).is_some() {
            return self.owes(thread, period);
        }
        // Its clock was started when bursts were to come sooner than they may now.
        let mean = self.budget.period().max(period as f64);
        if self.seed.f64() >= period as f64 / mean {
            return;
        }
        let mean = mean + self.owed.remove(&thread).unwrap_or(0) as f64;
        self.open_clock(process, thread, mean, None, 0);
        if self.tree.get(thread).is_none() {
            return self.owes(thread, mean as u64);
        }
        self.overflowed(thread);
    }

    /// A turn of a thread brought no burst.
    fn owes(&mut self, thread: i32, period: u64) {
        let most = MOST_OWED.saturating_mul(self.budget.period() as u64);
        let owed = self.owed.entry(thread).or_default();
        *owed = owed.saturating_add(period).min(most);
    }

    /// The turn of a thread is over without a burst: its next one stands for this, too.
    pub(super) fn gives_up_turn(&mut self, thread: i32) {
        let period = self
            .tree
            .get(thread)
            .and_then(|watched| self.collecting.held().clocks.get(&watched.clock.number()).map(|(_, period)| *period));
        self.stop_watching(thread);
        self.owes(thread, period.unwrap_or(0));
    }

    /// Chooses other periods for clocks whose are too long by now, and forgets who has no use for what is known.
    pub(super) fn look_after_turns(&mut self) {
        let Some(clocks) = &mut self.cpu_clocks else { return };
        let mean = self.budget.period();
        let governor = &mut self.budget.governor;
        clocks.shorten(mean as u64, || governor.jitter());
        governor.threads = std::mem::take(&mut self.turns_lately).clamp(1, self.cpus);
        self.close_clocks_of_sleepers();
        let now = self.kernel.now();
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep();
        }
    }

    /// Who has not computed since the last look may not do so for long, and its clock would cost at each switch.
    fn close_clocks_of_sleepers(&mut self) {
        let open: Vec<(i32, i32)> =
            self.tree.threads_mut().map(|(thread, watched)| (watched.process, thread)).collect();
        let before = std::mem::take(&mut self.open_before);
        for (process, thread) in open {
            if self.stops.is_under_way(process) || !before.contains(&thread) {
                self.open_before.insert(thread);
            } else {
                self.gives_up_turn(thread);
            }
        }
    }

    /// Forgets those whose end nobody told.
    fn sweep(&mut self) {
        for process in self.tree.processes().into_iter().filter(|process| !exists(*process as u32)) {
            self.tree.threads_of(process).into_iter().for_each(|thread| self.stop_watching(thread));
            self.ended(process, process);
        }
        self.turned.retain(|thread| exists(*thread as u32));
        self.owed.retain(|thread, _| exists(*thread as u32));
    }

    /// Whether something that happened makes a difference. Where all that the clocks see is recorded, a process is known from its first turn on.
    pub(super) fn is_of_known(&self, happening: &Happening) -> bool {
        let is_birth = matches!(happening, Happening::Begin { .. });
        self.tree.state(happening.of_process()).is_some() && (self.settings.by_cpu == Some(ByCpu::Family) || !is_birth)
    }
}

/// Whether a process must not be stopped, for the tracer may wait for it: another recorder, which may stop this one; one that serves files or
/// memory of others.
fn must_not_wait(process: u32) -> bool {
    let is_tracer = |tid| thread_name(process, tid).is_some_and(|name| name == TRACER_THREAD.as_bytes());
    threads(process).into_iter().any(is_tracer) || serves_others(process)
}

/// Knows these processes. None of their threads is to have a clock, which is what is left of them.
pub(super) fn follow(running: &Running, tree: &mut Tree) -> Running {
    running.processes().iter().for_each(|&process| tree.set_state(process, State::Without));
    Running::Processes(Vec::new())
}
