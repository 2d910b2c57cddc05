//! Where a thread will be, and in which state.

use crate::Branch;
use crate::machine::Machine;
use crate::op::Op;
use crate::registers::Registers;
use crate::sink::Sink;

/// A point of a path: behind a taken branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// Instructions executed until there, the branch included.
    pub instructions: u32,
    /// The general registers and the branch's target, as [`state()`] tells them apart.
    pub state: u32,
}

/// A number for the general registers and the address of the next instruction: different ones have different numbers but for one
/// pair in 2^32.
pub fn state(registers: &Registers) -> u32 {
    fold(registers.rip, &registers.general)
}

/// Odd numbers that have nothing to do with each other.
const FACTORS: [u64; 17] = {
    let mut factors = [0x9e37_79b9_7f4a_7c15; 17];
    let mut index = 1;
    while index < factors.len() {
        let before: u64 = factors[index - 1];
        factors[index] = (before.wrapping_mul(0xd129_0d3a_8c5f_2a1d) ^ 0x2545_f491_4f6c_dd1c) | 1;
        index += 1;
    }
    factors
};

/// A sum of products: they do not wait for each other.
#[inline(always)]
fn fold(next: u64, general: &[u64]) -> u32 {
    let product = |number: u64, factor: u64| (number ^ number >> 29).wrapping_mul(factor);
    let products = general.iter().zip(&FACTORS[1..]).map(|(register, factor)| product(*register, *factor));
    let sum = products.fold(product(next, FACTORS[0]), u64::wrapping_add);
    ((sum ^ sum >> 31).wrapping_mul(FACTORS[0]) >> 32) as u32
}

/// Keeps taken branches and milestones.
pub(crate) struct Course<'t> {
    pub(crate) branches: &'t mut Vec<Branch>,
    pub(crate) milestones: &'t mut Vec<Milestone>,
    /// Instructions before the first.
    pub(crate) before: u64,
}

impl Sink for Course<'_> {
    #[inline(always)]
    fn before(&mut self, _: &Machine<'_>, _: &Op) {}

    #[inline(always)]
    fn executed(&mut self, _: &Op) {}

    #[inline(always)]
    fn taken(&mut self, m: &Machine<'_>, branch: Branch, instructions: u64) {
        let instructions = u32::try_from(self.before + instructions).unwrap_or(u32::MAX);
        self.milestones.push(Milestone { instructions, state: fold(branch.to.0, m.general()) });
        self.branches.push(branch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_counts() {
        let mut seen = std::collections::BTreeSet::from([state(&Registers::default())]);
        for register in 0..16 {
            for value in [1, 2, 1 << 31, 1 << 63] {
                let mut registers = Registers::default();
                registers.general[register] = value;
                assert!(seen.insert(state(&registers)), "register {register} = {value}");
            }
        }
        assert!(seen.insert(state(&Registers { rip: 1, ..Registers::default() })));
        // Two values that change places.
        let mut registers = Registers::default();
        (registers.general[0], registers.general[1]) = (5, 9);
        let one = state(&registers);
        registers.general.swap(0, 1);
        assert_ne!(one, state(&registers));
    }
}
