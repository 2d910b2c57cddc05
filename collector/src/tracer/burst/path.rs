//! The path of a thread while it is followed.

use lookahead::{Registers, StopReason};

use crate::tracer::burst::prediction::Prediction;
use crate::tracer::burst::working_set::WorkingSet;
use crate::tracer::burst::{Burst, BurstEvent, ThreadId};
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;

/// What the bursts of a thread are made of, one after the other.
#[derive(Default)]
pub(crate) struct Path {
    pub(crate) burst: Burst,
    /// What its breakpoint is for.
    pub(crate) goal: Option<Goal>,
    pub(crate) working_set: WorkingSet,
    /// What the interpreter found, where both tracers are compared.
    pub(crate) prediction: Option<Box<Prediction>>,
}

impl Path {
    /// The burst is over, for this reason: makes samples of it. Returns whether it is worth one.
    pub(crate) fn write(
        &mut self,
        why: &str,
        thread: ThreadId,
        event: &BurstEvent,
        shared: &Shared,
        statistics: &mut TracerStatistics,
    ) -> bool {
        self.goal = None;
        if let Some(prediction) = self.prediction.take() {
            prediction.compare_branches(&self.burst.branches, &mut statistics.predictions);
        }
        TracerStatistics::count(&mut statistics.ends, why);
        let burst = &mut self.burst;
        burst.ends_at_call = why == StopReason::SystemCall.name();
        if burst.instructions == 0 {
            return false;
        }
        statistics.instructions += burst.instructions;
        statistics.taken_branches += burst.branches.len() as u64;
        statistics.static_branches += burst.static_branches();
        let mut unwritable = 0;
        let mut when = 0;
        let written = shared.push(|time, records| {
            when = time;
            unwritable = burst.write(event, thread, time, records);
        });
        if written {
            shared.made_code().add(thread.pid as u32, when, std::mem::take(&mut burst.code));
        }
        statistics.unwritable_samples += unwritable;
        *(if written { &mut statistics.bursts } else { &mut statistics.lost_bursts }) += 1;
        true
    }
}

/// What a breakpoint is for.
pub(crate) enum Goal {
    /// To look ahead from there; registers are known but for those a system call returns values in.
    AfterSystemCall(Registers),
    /// To look ahead from there; registers that the instruction does not write are known, bit n for register n.
    AfterInstruction { before: Registers, kept: u16 },
    /// To evaluate a branch, with the stack pointer there if it is known.
    Branch { instructions: u64, stack: Option<u64> },
}
