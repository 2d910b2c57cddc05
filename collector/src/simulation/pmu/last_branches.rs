//! The stack of last branches.

use perfdata::{Avma, Branch};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The last `depth` taken branches.
#[derive(Debug)]
pub(super) struct LastBranches {
    entries: Vec<Branch>,
    /// Where the next goes, which is where the oldest is.
    next: usize,
    /// Branches since one that holds the stack.
    since_holding: usize,
    rule: HoldingRule,
}

/// Which branches hold the stack.
#[derive(Clone, Copy, Debug)]
struct HoldingRule {
    share: f64,
    seed: u64,
}

impl LastBranches {
    pub(super) fn new(depth: usize, share: f64, seed: u64) -> Self {
        Self {
            entries: vec![Branch::default(); depth.max(1)],
            next: 0,
            since_holding: usize::MAX,
            rule: HoldingRule { share, seed },
        }
    }

    #[inline]
    pub(super) fn push(&mut self, branch: Branch) {
        self.since_holding = match holds_the_stack(branch.from, self.rule.share, self.rule.seed) {
            true => 0,
            false => self.since_holding.saturating_add(1),
        };
        self.entries[self.next] = branch;
        self.next = (self.next + 1) % self.entries.len();
    }

    pub(super) fn clear(&mut self) {
        self.entries.fill(Branch::default());
        self.since_holding = usize::MAX;
    }

    /// How many more branches must be taken until the youngest branch that holds the stack is its oldest entry; `None` if there is none in
    /// the stack.
    pub(super) fn until_oldest(&self) -> Option<usize> {
        (self.entries.len() - 1).checked_sub(self.since_holding)
    }

    /// Newest first. Entries that were never written are left out.
    pub(super) fn newest_first(&self) -> Vec<Branch> {
        let (newer, older) = self.entries.split_at(self.next);
        let all = newer.iter().rev().chain(older.iter().rev());
        all.filter(|branch| branch.from != Avma(0)).copied().collect()
    }
}

/// Whether the branch at `from` is one that tends to be found in the oldest entry of stacks: a share of all, chosen by `seed`.
///
/// The cause of the bias that HBBP (III.C) found is not known. The model: a stack that holds such a branch when it is about to stand
/// still, does so, half of the time, only when that branch is the oldest. Stacks stay true to what ran; what is wrong is which of them
/// are seen. As in tables of predictors, the low 12 bits of the address decide, so that it is the same wherever a module is mapped.
pub fn holds_the_stack(from: Avma, share: f64, seed: u64) -> bool {
    if share <= 0.0 {
        return false;
    }
    ((mixed(seed ^ (from.0 & 0xfff) << 40) >> 11) as f64) < share * (1_u64 << 53) as f64
}

/// A number that depends on all bits of another: the first that Steele's SplitMix64 makes of it.
pub(super) fn mixed(number: u64) -> u64 {
    SplitMix64::seed_from_u64(number).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(from: u64) -> Branch {
        Branch { from: Avma(from), ..Branch::default() }
    }

    /// Recordings of a seed are the same forever.
    #[test]
    fn numbers_are_mixed_as_ever() {
        assert_eq!([0, 1, u64::MAX].map(mixed), [0xe220_a839_7b1d_cdaf, 0x910a_2dec_8902_5cc1, 0xe4d9_7177_1b65_2c20]);
    }

    #[test]
    fn the_last_are_kept() {
        let mut stack = LastBranches::new(3, 0.0, 1);
        let addresses = |stack: &LastBranches| -> Vec<u64> { stack.newest_first().iter().map(|b| b.from.0).collect() };
        stack.push(branch(1));
        assert_eq!(addresses(&stack), [1]);
        (2..=5).for_each(|from| stack.push(branch(from)));
        assert_eq!(addresses(&stack), [5, 4, 3]);
        assert_eq!(stack.until_oldest(), None);
    }

    #[test]
    fn a_share_of_the_branches_holds_the_stack_wherever_they_are_mapped() {
        let holding = |share: f64, base: u64| -> Vec<u64> {
            (0..4096).filter(|&at| holds_the_stack(Avma(base + at), share, 7)).collect()
        };
        assert_eq!((holding(0.0, 0).len(), holding(1.0, 0).len()), (0, 4096));
        let some = holding(0.1, 0x40_0000);
        assert!((300..520).contains(&some.len()), "{}", some.len());
        assert_eq!(some, holding(0.1, 0x7f00_1234_5000));
        assert_ne!(some, (0..4096).filter(|&at| holds_the_stack(Avma(at), 0.1, 8)).collect::<Vec<_>>());
    }

    #[test]
    fn a_holding_branch_is_the_oldest_after_as_many_branches_as_there_is_room() {
        let mut stack = LastBranches::new(4, 0.5, 3);
        let holds = |from: &u64| holds_the_stack(Avma(*from), 0.5, 3);
        let (one, others): (u64, Vec<u64>) =
            ((1..).find(holds).unwrap(), (1..).filter(|from| !holds(from)).take(4).collect());
        stack.push(branch(one));
        for (pushed, &other) in others.iter().enumerate() {
            assert_eq!(stack.until_oldest(), Some(3 - pushed));
            if pushed == 3 {
                assert_eq!(stack.newest_first().last().unwrap().from, Avma(one));
            }
            stack.push(branch(other));
        }
        assert_eq!(stack.until_oldest(), None);
    }
}
