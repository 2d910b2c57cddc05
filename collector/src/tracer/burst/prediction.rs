//! Predictions, and what came of them.

use lookahead::{Branch, Registers};

use crate::tracer::statistics::Predictions;

/// What the interpreter found, to be compared with what the breakpoints find.
pub(crate) struct Prediction {
    pub(crate) branches: Vec<Branch>,
    pub(crate) registers: Registers,
    /// It went as far as the breakpoints were to go.
    pub(crate) complete: bool,
}

impl Prediction {
    /// Both tracers have come to the same branch: the registers must be the same.
    pub(crate) fn compare_registers(&self, registers: &Registers, predictions: &mut Predictions) {
        if self.complete {
            predictions.checked += 1;
            predictions.diverged += u64::from(!same_state(&self.registers, registers));
        }
    }

    /// Both tracers have come to an end: as far as both went, the branches must be the same.
    pub(crate) fn compare_branches(&self, found: &[Branch], predictions: &mut Predictions) {
        let common = found.len().min(self.branches.len());
        if common > 0 {
            predictions.checked += 1;
            predictions.diverged += u64::from(found[..common] != self.branches[..common]);
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
