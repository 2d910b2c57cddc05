//! Branch records: what the hardware (or a tracer in its place) noted of each taken branch.

use std::fmt;

use crate::Avma;
use crate::words::{U64s, Word};

/// One taken branch: a `struct perf_branch_entry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Branch {
    /// Address of the branch instruction.
    pub from: Avma,
    /// Address it went to.
    pub to: Avma,
    /// What else is known of it.
    pub flags: BranchFlags,
}

/// Bytes of one branch in a recording (`struct perf_branch_entry`).
pub(crate) const ENTRY_SIZE: usize = 24;
const ENTRY_WORDS: usize = ENTRY_SIZE / size_of::<Word>();

impl Branch {
    /// Decodes one `struct perf_branch_entry`.
    #[inline]
    pub fn from_bytes(entry: &[u8; 24]) -> Self {
        let (words, _) = entry.as_chunks();
        words.first_chunk().map(Self::from_words).unwrap_or_default()
    }

    #[inline]
    fn from_words([from, to, flags]: &[Word; ENTRY_WORDS]) -> Self {
        Self {
            from: Avma(u64::from_le_bytes(*from)),
            to: Avma(u64::from_le_bytes(*to)),
            flags: BranchFlags(u64::from_le_bytes(*flags)),
        }
    }

    /// Encodes it as `struct perf_branch_entry`.
    #[inline]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut entry = [0; ENTRY_SIZE];
        entry[..8].copy_from_slice(&self.from.0.to_le_bytes());
        entry[8..16].copy_from_slice(&self.to.0.to_le_bytes());
        entry[16..].copy_from_slice(&self.flags.0.to_le_bytes());
        entry
    }
}

/// The third word of a branch entry.
///
/// ```text
/// bit 0 mispred, 1 predicted, 2 in_tx, 3 abort, 4-19 cycles, 20-23 type, 24-25 spec, 26-29 new_type, 30-32 priv
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BranchFlags(pub u64);

impl BranchFlags {
    /// The target was mispredicted.
    pub const MISPREDICTED: Self = Self(1);
    /// The target was predicted. Neither bit is set where the hardware does not say.
    pub const PREDICTED: Self = Self(1 << 1);

    /// Whether the hardware says it was mispredicted.
    #[inline]
    pub const fn mispredicted(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the hardware says it was predicted.
    #[inline]
    pub const fn predicted(self) -> bool {
        self.0 & (1 << 1) != 0
    }

    /// Whether it was in a transaction.
    #[inline]
    pub const fn in_tx(self) -> bool {
        self.0 & (1 << 2) != 0
    }

    /// Whether it was a transaction abort.
    #[inline]
    pub const fn abort(self) -> bool {
        self.0 & (1 << 3) != 0
    }

    /// Core cycles since the branch before it; 0 when not recorded.
    #[inline]
    pub const fn cycles(self) -> u16 {
        (self.0 >> 4) as u16
    }

    /// What kind of branch, where recorded.
    #[inline]
    pub const fn kind(self) -> BranchKind {
        BranchKind(((self.0 >> 20) & 0xf) as u8)
    }

    /// Speculation outcome (`PERF_BR_SPEC_*`): 0 not known, 1 wrong path, 2 correct path not speculated, 3 correct path.
    #[inline]
    pub const fn spec(self) -> u8 {
        ((self.0 >> 24) & 0x3) as u8
    }

    /// Further kind (`PERF_BR_NEW_*`), when [`Self::kind`] is [`BranchKind::EXTEND_ABI`].
    #[inline]
    pub const fn new_type(self) -> u8 {
        ((self.0 >> 26) & 0xf) as u8
    }

    /// Privilege level of the source (`PERF_BR_PRIV_*`): 0 not known, 1 user, 2 kernel, 3 hypervisor.
    #[inline]
    pub const fn privilege(self) -> u8 {
        ((self.0 >> 30) & 0x7) as u8
    }

    /// The same flags with this cycle count.
    pub const fn with_cycles(self, cycles: u16) -> Self {
        Self(self.0 & !(0xffff << 4) | (cycles as u64) << 4)
    }

    /// The same flags with this kind.
    pub const fn with_kind(self, kind: BranchKind) -> Self {
        Self(self.0 & !(0xf << 20) | ((kind.0 & 0xf) as u64) << 20)
    }
}

impl fmt::Debug for BranchFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BranchFlags({:#x})", self.0)
    }
}

/// The kind of a branch (`PERF_BR_*`, 4 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchKind(pub u8);

impl BranchKind {
    /// Not known, or not asked for ([`BranchSampleType::TYPE_SAVE`](crate::BranchSampleType::TYPE_SAVE)).
    pub const UNKNOWN: Self = Self(0);
    /// Conditional.
    pub const COND: Self = Self(1);
    /// Unconditional.
    pub const UNCOND: Self = Self(2);
    /// Indirect.
    pub const IND: Self = Self(3);
    /// Call.
    pub const CALL: Self = Self(4);
    /// Indirect call.
    pub const IND_CALL: Self = Self(5);
    /// Return.
    pub const RET: Self = Self(6);
    /// System call.
    pub const SYSCALL: Self = Self(7);
    /// Return from a system call.
    pub const SYSRET: Self = Self(8);
    /// Conditional call.
    pub const COND_CALL: Self = Self(9);
    /// Conditional return.
    pub const COND_RET: Self = Self(10);
    /// Return from an exception.
    pub const ERET: Self = Self(11);
    /// Interrupt.
    pub const IRQ: Self = Self(12);
    /// System error.
    pub const SERROR: Self = Self(13);
    /// Not in a transaction.
    pub const NO_TX: Self = Self(14);
    /// The kind is in [`BranchFlags::new_type`].
    pub const EXTEND_ABI: Self = Self(15);
}

impl fmt::Display for BranchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 16] = [
            "UNKNOWN",
            "COND",
            "UNCOND",
            "IND",
            "CALL",
            "IND_CALL",
            "RET",
            "SYSCALL",
            "SYSRET",
            "COND_CALL",
            "COND_RET",
            "ERET",
            "IRQ",
            "SERROR",
            "NO_TX",
            "EXTEND_ABI",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A sample's branch records, newest first: a view into the record's bytes.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct BranchStack<'a> {
    /// Hardware index of the newest entry, where recorded; -1 (all ones) where the hardware does not say.
    pub hw_index: Option<u64>,
    entries: &'a [[Word; ENTRY_WORDS]],
    counters: Option<U64s<'a>>,
}

impl<'a> BranchStack<'a> {
    /// A stack over encoded entries, newest first. Bytes after the last whole entry are ignored.
    #[inline]
    pub fn new(hw_index: Option<u64>, entries: &'a [u8]) -> Self {
        Self { hw_index, entries: entries.as_chunks().0.as_chunks().0, counters: None }
    }

    #[inline]
    pub(crate) fn from_words(hw_index: Option<u64>, entries: &'a [Word], counters: Option<&'a [Word]>) -> Self {
        Self { hw_index, entries: entries.as_chunks().0, counters: counters.map(U64s) }
    }

    /// How many branches it has: up to 32 from most hardware, any number from a tracer.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The branch at `index`; 0 is the newest.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Branch> {
        self.entries.get(index).map(Branch::from_words)
    }

    /// All branches, newest first.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Branch> + DoubleEndedIterator + Clone + use<'a> {
        self.entries.iter().map(Branch::from_words)
    }

    /// The word of event counts of the branch at `index`, where recorded (`PERF_SAMPLE_BRANCH_COUNTERS`).
    #[inline]
    pub fn counters(&self, index: usize) -> Option<u64> {
        self.counters?.get(index)
    }

    /// The entries as recorded, 24 bytes each.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.entries.as_flattened().as_flattened()
    }
}

impl fmt::Debug for BranchStack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BranchStack")
            .field("hw_index", &self.hw_index)
            .field("branches", &self.iter().collect::<Vec<_>>())
            .field("counters", &self.counters)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_at_the_bits_of_the_kernel_header() {
        let flags = BranchFlags(0b1010 | 0xbeef << 4 | 6 << 20 | 2 << 24 | 9 << 26 | 5 << 30);
        assert!(!flags.mispredicted() && flags.predicted() && !flags.in_tx() && flags.abort());
        assert_eq!(flags.cycles(), 0xbeef);
        assert_eq!(flags.kind(), BranchKind::RET);
        assert_eq!((flags.spec(), flags.new_type(), flags.privilege()), (2, 9, 5));
        assert_eq!(flags.with_cycles(7).cycles(), 7);
        assert_eq!(flags.with_cycles(7).with_cycles(0xbeef), flags);
        assert_eq!(flags.with_kind(BranchKind::CALL).kind(), BranchKind::CALL);
        assert_eq!(flags.with_kind(BranchKind::CALL).with_kind(BranchKind::RET), flags);
    }

    #[test]
    fn entries_round_trip() {
        let branch = Branch { from: Avma(0x1122_3344), to: Avma(u64::MAX), flags: BranchFlags(3) };
        let bytes = [branch.to_bytes(), Branch::default().to_bytes()].concat();
        let stack = BranchStack::new(None, &bytes);
        assert_eq!(stack.len(), 2);
        assert_eq!(stack.get(0), Some(branch));
        assert_eq!(stack.iter().next_back(), Some(Branch::default()));
        assert_eq!(stack.get(2), None);
    }
}
