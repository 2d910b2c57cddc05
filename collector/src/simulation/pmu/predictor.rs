//! Branch prediction: by history (McFarling's gshare), of targets likewise, and a stack of return addresses.

use addresses::Avma;
use lookahead::BranchKind;

use crate::simulation::pmu::model::{DIRECTIONS, HISTORY, RETURNS, TARGETS};

#[derive(Debug)]
pub(super) struct Predictor {
    /// Two bits each: taken, from 2 on.
    directions: Vec<u8>,
    targets: Vec<u64>,
    returns: [u64; RETURNS],
    top: usize,
    /// The last conditional branches, newest in bit 0, taken or not.
    history: u64,
}

impl Default for Predictor {
    fn default() -> Self {
        Self {
            directions: vec![1; 1 << DIRECTIONS],
            targets: vec![0; 1 << TARGETS],
            returns: [0; RETURNS],
            top: 0,
            history: 0,
        }
    }
}

impl Predictor {
    /// Whether the branch at `ip` goes elsewhere than predicted. `behind` is the address behind it, `taken` where it goes if it is taken.
    pub(super) fn mispredicts(&mut self, kind: BranchKind, ip: Avma, behind: Avma, taken: Option<Avma>) -> bool {
        match kind {
            BranchKind::Conditional => self.direction(ip, taken.is_some()),
            BranchKind::IndirectJump => self.target(ip, taken),
            BranchKind::IndirectCall => {
                self.call(behind);
                self.target(ip, taken)
            }
            BranchKind::Call => {
                self.call(behind);
                false
            }
            BranchKind::Return => {
                self.top = (self.top + RETURNS - 1) % RETURNS;
                taken.is_some_and(|to| to.0 != self.returns[self.top])
            }
            BranchKind::Jump | BranchKind::SystemCall => false,
        }
    }

    fn direction(&mut self, ip: Avma, taken: bool) -> bool {
        let index = (ip.0 ^ self.history) as usize & ((1 << DIRECTIONS) - 1);
        let counter = &mut self.directions[index];
        let predicted = *counter >= 2;
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = (self.history << 1 | u64::from(taken)) & ((1 << HISTORY) - 1);
        predicted != taken
    }

    fn target(&mut self, ip: Avma, taken: Option<Avma>) -> bool {
        let index = (ip.0 ^ self.history) as usize & ((1 << TARGETS) - 1);
        let to = taken.map_or(0, |to| to.0);
        std::mem::replace(&mut self.targets[index], to) != to
    }

    fn call(&mut self, behind: Avma) {
        self.returns[self.top] = behind.0;
        self.top = (self.top + 1) % RETURNS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_returns_are_learnt() {
        let mut predictor = Predictor::default();
        let mut wrong = 0;
        for turn in 0..1000 {
            let taken = (turn % 5 != 4).then_some(Avma(0x1000));
            let missed = predictor.mispredicts(BranchKind::Conditional, Avma(0x1040), Avma(0x1042), taken);
            wrong += u32::from(missed && turn >= 500);
            predictor.mispredicts(BranchKind::Call, Avma(0x2000), Avma(0x2005), Some(Avma(0x3000)));
            assert!(!predictor.mispredicts(BranchKind::Return, Avma(0x3004), Avma(0x3005), Some(Avma(0x2005))));
        }
        assert_eq!(wrong, 0);
        assert!(predictor.mispredicts(BranchKind::Return, Avma(0x3004), Avma(0x3005), Some(Avma(0x9999))));
        let jump = |predictor: &mut Predictor, to| {
            predictor.mispredicts(BranchKind::IndirectJump, Avma(0x50), Avma(0x52), Some(Avma(to)))
        };
        assert!(jump(&mut predictor, 7) && !jump(&mut predictor, 7) && jump(&mut predictor, 8));
    }
}
