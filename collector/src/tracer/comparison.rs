//! Predictions, and what came of them.

use addresses::Avma;
use lookahead::{Branch, Registers, StopReason};

use crate::tracer::engine::Engine;
use crate::tracer::thread::Thread;

/// What the interpreter found, to be compared with what the breakpoints find.
pub(crate) struct Prediction {
    branches: Vec<Branch>,
    registers: Registers,
    /// It went as far as the breakpoints were to go.
    complete: bool,
}

impl Engine {
    /// Looks ahead without writing anything down, to be compared with what the breakpoints find.
    pub(crate) fn predict(&mut self, thread: &mut Thread, mut registers: Registers) {
        let depth = self.breakpoint_depth();
        let size = self.settings.size;
        self.settings.size.depth = Some(depth);
        let (not_taken, start) = (self.statistics.not_taken, Avma(registers.rip));
        let stop = self.interpret(thread, &mut registers);
        self.statistics.not_taken = not_taken;
        self.settings.size = size;
        let branches = std::mem::take(&mut thread.burst.branches);
        thread.burst.begin(start, thread.period);
        thread.prediction = Some(Box::new(Prediction { branches, registers, complete: stop == StopReason::Branches }));
    }

    /// Both tracers have come to the same branch: the registers must be the same.
    pub(crate) fn compare_registers(&mut self, thread: &Thread, registers: &Registers) {
        if let Some(prediction) = thread.prediction.as_ref().filter(|prediction| prediction.complete) {
            self.statistics.predictions.checked += 1;
            self.statistics.predictions.diverged += u64::from(!same_state(&prediction.registers, registers));
        }
    }

    /// Both tracers have come to an end: as far as both went, the branches must be the same.
    pub(crate) fn compare_branches(&mut self, thread: &mut Thread) {
        let Some(prediction) = thread.prediction.take() else { return };
        let found = &thread.burst.branches;
        let common = found.len().min(prediction.branches.len());
        if common > 0 {
            self.statistics.predictions.checked += 1;
            self.statistics.predictions.diverged += u64::from(found[..common] != prediction.branches[..common]);
        }
    }
}

/// Whether it is on the same frame.
pub(crate) fn same_stack(before: &Registers, after: &Registers) -> bool {
    before.general[4] == after.general[4]
}

/// Whether a system call left everything as it was that it leaves.
pub(crate) fn same_path(before: &Registers, after: &Registers) -> bool {
    // rax, rcx, r11.
    same_registers(before, after, !(1 | 1 << 1 | 1 << 11))
}

/// Whether these general registers are the same, bit n for register n.
pub(crate) fn same_registers(before: &Registers, after: &Registers, which: u16) -> bool {
    (0..16).all(|register| which & 1 << register == 0 || before.general[register] == after.general[register])
}

/// Whether two states are the same but for flags that are the kernel's.
fn same_state(predicted: &Registers, real: &Registers) -> bool {
    // RF, which a breakpoint leaves behind, and TF.
    const KERNEL_FLAGS: u64 = 1 << 16 | 1 << 8;
    predicted.general == real.general
        && predicted.rip == real.rip
        && (predicted.rflags ^ real.rflags) & !KERNEL_FLAGS == 0
        && predicted.vector.zmm == real.vector.zmm
}
