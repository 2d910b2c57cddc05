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
    /// A register that was another one when all were last compared.
    witness: usize,
}

impl Default for SpinDetector {
    fn default() -> Self {
        Self { target: u64::MAX, registers: [0; 32], rflags: 0, branches: 0, renew_at: 8, witness: 0 }
    }
}

impl SpinDetector {
    /// Whether the machine is in exactly the state it was in at an earlier branch to `target`, with no write that changed
    /// anything in between.
    #[inline(always)]
    pub(crate) fn repeats(&mut self, target: u64, m: &mut Machine<'_>) -> bool {
        self.branches += 1;
        if target == self.target && !m.changed {
            match m.context.registers.iter().zip(&self.registers).position(|(now, then)| now != then) {
                Some(register) => self.witness = register,
                None if m.rflags() == self.rflags => return true,
                None => {}
            }
        }
        if self.branches == self.renew_at {
            self.renew(target, m);
        }
        false
    }

    /// Compiled blocks have looked at so many branches by themselves.
    pub(crate) fn passed(&mut self, branches: u64) {
        self.branches += branches;
    }

    /// Branches until the state is kept anew.
    pub(crate) fn until(&self) -> u64 {
        self.renew_at - self.branches
    }

    /// Where a branch has to lead, and which register has to have which value, so that it may be the state kept.
    pub(crate) fn suspect(&self) -> (u64, usize, u64) {
        (self.target, self.witness, self.registers[self.witness])
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
