//! Recognises a loop that changes nothing.

use crate::machine::Machine;

/// Compares the state at every taken branch with one kept from an earlier branch; the kept one is renewed at branch 8, 16, 32, ... so
/// that a loop of any length is found after at most twice the branches it took to enter it, or three of its rounds.
pub(crate) struct SpinDetector {
    target: u64,
    registers: [u64; 32],
    rflags: u64,
    branches: u64,
    renew_at: u64,
}

impl Default for SpinDetector {
    fn default() -> Self {
        Self { target: u64::MAX, registers: [0; 32], rflags: 0, branches: 0, renew_at: 8 }
    }
}

impl SpinDetector {
    /// Whether the machine is in exactly the state it was in at an earlier branch to `target`, with no write that changed
    /// anything in between.
    #[inline(always)]
    pub(crate) fn repeats(&mut self, target: u64, m: &mut Machine<'_>) -> bool {
        self.branches += 1;
        if target == self.target && !m.changed && m.context.registers == self.registers && m.rflags() == self.rflags {
            return true;
        }
        if self.branches == self.renew_at {
            self.renew(target, m);
        }
        false
    }

    #[cold]
    fn renew(&mut self, target: u64, m: &mut Machine<'_>) {
        self.target = target;
        self.registers = m.context.registers;
        self.rflags = m.rflags();
        self.renew_at *= 2;
        m.changed = false;
    }
}
