//! Processes whose threads have no clocks: those of the CPUs say whose turn it is.

use crate::errno::Errno;
use crate::tracer::agent::cpu_clocks::Turn;
use crate::tracer::agent::engine::{AgentEngine, Running};
use crate::tracer::agent::sideband::Happening;
use crate::tracer::agent::tree::{State, Tree};
use crate::tracer::settings::ByCpu;

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
        // They can be started, as they could be opened.
        let _: Result<(), Errno> = clocks.start(mean as u64, || governor.jitter());
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
        // One that could not be stopped yet has its burst still to come.
        if self.tree.get(thread).is_some() || self.is_off(process) {
            return;
        }
        if self.tree.state(process).is_none() {
            if self.settings.by_cpu == Some(ByCpu::Family) || process == std::process::id() as i32 {
                return;
            }
            self.tree.set_state(process, State::Without);
        }
        // Its clock was started when bursts were to come sooner than they may now.
        let mean = self.budget.period().max(period as f64);
        if self.seed.f64() >= period as f64 / mean {
            return;
        }
        self.open_clock(process, thread, mean, mean as u64, 0);
        self.overflowed(thread);
    }

    /// Whether something that happened makes a difference. Where all that the clocks see is recorded, a process is known from its first turn on.
    pub(super) fn is_of_known(&self, happening: &Happening) -> bool {
        let is_birth = matches!(happening, Happening::Begin { .. });
        self.tree.state(happening.of_process()).is_some() && (self.settings.by_cpu == Some(ByCpu::Family) || !is_birth)
    }

    /// A thread has had its burst, or cannot have it.
    pub(super) fn had_turn(&mut self, thread: i32) {
        self.stop_watching(thread);
    }
}

/// Knows these processes. None of their threads is to have a clock, which is what is left of them.
pub(super) fn follow(running: &Running, tree: &mut Tree) -> Running {
    running.processes().iter().for_each(|&process| tree.set_state(process, State::Without));
    Running::Processes(Vec::new())
}
