//! What the records say of branches beyond where they went.

use std::collections::BTreeMap;

use perfdata::{Branch, BranchKind};

/// What the branch records say; nothing of it is weighted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchFacts {
    /// Branches of all stacks that were executed.
    pub branches: u64,
    /// Those marked as mispredicted.
    pub mispredicted: u64,
    /// Those marked as predicted. Of the others the record does not say it.
    pub predicted: u64,
    /// Those in a transaction.
    pub in_transaction: u64,
    /// Those that are aborts of transactions.
    pub aborts: u64,
    /// Those with cycles.
    pub timed: u64,
    /// By kind (`PERF_BR_*`), those that have one.
    pub kinds: BTreeMap<u8, u64>,
    /// Those that were not speculated, on the right path (`PERF_BR_NON_SPEC_CORRECT_PATH`).
    pub not_speculated: u64,
    /// Those that were speculated rightly (`PERF_BR_SPEC_CORRECT_PATH`).
    pub speculated: u64,
}

const NON_SPEC_CORRECT_PATH: u8 = 2;
const SPEC_CORRECT_PATH: u8 = 3;

impl BranchFacts {
    /// Counts a branch. `is_timed`: its stack has cycles.
    pub fn add(&mut self, branch: &Branch, is_timed: bool) {
        let flags = branch.flags;
        self.branches += 1;
        self.mispredicted += u64::from(flags.mispredicted());
        self.predicted += u64::from(flags.predicted());
        self.in_transaction += u64::from(flags.in_tx());
        self.aborts += u64::from(flags.abort());
        self.timed += u64::from(is_timed);
        self.not_speculated += u64::from(flags.spec() == NON_SPEC_CORRECT_PATH);
        self.speculated += u64::from(flags.spec() == SPEC_CORRECT_PATH);
        if flags.kind() != BranchKind::UNKNOWN {
            *self.kinds.entry(flags.kind().0).or_default() += 1;
        }
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.branches += other.branches;
        self.mispredicted += other.mispredicted;
        self.predicted += other.predicted;
        self.in_transaction += other.in_transaction;
        self.aborts += other.aborts;
        self.timed += other.timed;
        self.not_speculated += other.not_speculated;
        self.speculated += other.speculated;
        other.kinds.iter().for_each(|(kind, number)| *self.kinds.entry(*kind).or_default() += number);
    }
}
