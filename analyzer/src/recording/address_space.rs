//! What is mapped where in one process (or in the kernel).

use std::ops::Range;

use crate::address::Avma;
use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};

/// Index of a module in the recording's [`ModuleTable`](crate::recording::ModuleTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModuleId(pub u32);

/// Where the kernel's half of an address space begins.
pub(crate) const KERNEL_HALF: u64 = 1 << 63;
/// Where the kernel's modules begin on x86-64, and what else is made while it runs, wherever its image is: that ends before.
pub(crate) const KERNEL_MODULES: u64 = 0xffff_ffff_c000_0000;

/// A part of a module mapped into an address space: `[start, start + len)` shows the file from offset `pgoff` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address that is mapped.
    pub start: Avma,
    /// Length in bytes, at least 1; the end does not wrap around.
    pub len: u64,
    /// Offset of `start` in the module's file.
    pub pgoff: u64,
    /// The module that is mapped there.
    pub module: ModuleId,
    /// It is memory without a file, of which the recording may have the code.
    is_anonymous: bool,
}

impl Mapping {
    /// `None` for an empty mapping; one that would wrap around the address space is cut at its end.
    pub fn new(start: Avma, len: u64, pgoff: u64, module: ModuleId) -> Option<Self> {
        let len = len.min(u64::MAX - start.0);
        (len > 0).then_some(Mapping { start, len, pgoff, module, is_anonymous: false })
    }

    /// The same without a file.
    pub fn anonymous(self) -> Self {
        Mapping { is_anonymous: true, ..self }
    }

    fn end(&self) -> u64 {
        self.start.0 + self.len
    }

    /// Whether it is the mapping of this address, whatever code the recording has: it is of a file, and holds it.
    pub(crate) fn is_of_file_at(&self, avma: Avma) -> bool {
        !self.is_anonymous && (self.start.0..self.end()).contains(&avma.0)
    }

    /// Offset in the module's file that is mapped at `avma` (which must lie in the mapping).
    pub fn file_offset(&self, avma: Avma) -> u64 {
        self.pgoff.wrapping_add(avma.0 - self.start.0)
    }

    /// Whether every address both have in common shows the same byte of the same module.
    fn agrees_with(&self, other: &Mapping) -> bool {
        self.module == other.module && self.start.0.wrapping_sub(self.pgoff) == other.start.0.wrapping_sub(other.pgoff)
    }
}

/// The mappings of an address space at one time: disjoint, by start address. Clones share what they have in common, so that a
/// `fork` costs nothing.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    mappings: Mappings,
    /// Code that the recording has of memory without a file.
    made_code: Mappings,
    /// Where it had some that is not known any more, by start address, and the end: disjoint.
    unknown: RedBlackTreeMapSync<u64, u64>,
}

/// Disjoint mappings, by start address.
#[derive(Clone, Debug, Default)]
struct Mappings {
    mappings: RedBlackTreeMapSync<u64, Mapping>,
}

impl AddressSpace {
    /// The mapping that holds `avma`: of memory without a file the code that the recording has of it, if it does.
    pub fn find(&self, avma: Avma) -> Option<&Mapping> {
        let mapped = self.mappings.find(avma);
        match mapped {
            Some(mapping) if !mapping.is_anonymous => mapped,
            _ => self.made_code.find(avma).or(mapped),
        }
    }

    /// The same, whatever code the recording has of memory without a file.
    pub fn find_unread(&self, avma: Avma) -> Option<&Mapping> {
        self.mappings.find(avma)
    }

    /// Whether the recording has code of memory without a file around a byte from `first` to `last` of which it is not known any more.
    pub fn any_unknown(&self, first: Avma, last: Avma) -> bool {
        !self.unknown.is_empty() && self.unknown.range(..=last.0).next_back().is_some_and(|(_, end)| first.0 < *end)
    }

    /// Maps `new`, which replaces what it overlaps. Returns whether some address changed its meaning.
    pub fn map(&mut self, new: Mapping) -> bool {
        let hides_code = !new.is_anonymous && self.made_code.any_between(new.start.0, new.end());
        self.mappings.map(new) || hides_code
    }

    /// From now on the recording has this code of memory without a file, or none any more. Returns whether it had other code there.
    pub fn set_made_code(&mut self, range: &Range<Avma>, code: Option<Mapping>) -> bool {
        let Range { start, end } = range;
        match code {
            Some(code) => {
                let was_unknown = self.set_known(code.start.0, code.end());
                self.made_code.map(code) || was_unknown
            }
            None if start < end => {
                self.set_known(start.0, end.0);
                self.unknown.insert_mut(start.0, end.0);
                !self.made_code.cut(start.0, end.0).is_empty()
            }
            None => false,
        }
    }

    /// Nothing in this range, which is not empty, is unknown from now on. Returns whether something was.
    fn set_known(&mut self, start: u64, end: u64) -> bool {
        let before = self.unknown.range(..start).next_back().filter(|(_, to)| start < **to);
        let first = before.map_or(start, |(from, _)| *from);
        let overlapped: Vec<(u64, u64)> = self.unknown.range(first..end).map(|(from, to)| (*from, *to)).collect();
        for (from, to) in &overlapped {
            self.unknown.remove_mut(from);
            if *from < start {
                self.unknown.insert_mut(*from, start);
            }
            if end < *to {
                self.unknown.insert_mut(end, *to);
            }
        }
        !overlapped.is_empty()
    }

    /// Where the highest mapping of a user's begins, the loader or the vDSO. Only processes whose addresses were not laid out at random, or
    /// that were forked, have it in common; those of one program have their data at the same addresses, too.
    pub fn top(&self) -> Option<Avma> {
        self.mappings.mappings.range(..KERNEL_HALF).next_back().map(|(start, _)| Avma(*start))
    }

    /// All mappings by start address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.mappings.values()
    }
}

impl Mappings {
    fn find(&self, avma: Avma) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=avma.0).next_back()?;
        (avma.0 < mapping.end()).then_some(mapping)
    }

    fn any_between(&self, start: u64, end: u64) -> bool {
        self.find(Avma(start)).is_some() || self.mappings.range(start..end).next().is_some()
    }

    /// Maps `new`, which replaces what it overlaps. Returns whether some address changed its meaning.
    fn map(&mut self, new: Mapping) -> bool {
        let changed = self.cut(new.start.0, new.end()).iter().any(|old| !old.agrees_with(&new));
        self.insert(new);
        changed
    }

    /// Unmaps a range. Returns the mappings that it overlapped, as they were.
    fn cut(&mut self, start: u64, end: u64) -> Vec<Mapping> {
        let first = self.find(Avma(start)).map_or(start, |mapping| mapping.start.0);
        let overlapped: Vec<Mapping> = self.mappings.range(first..end).map(|(_, mapping)| *mapping).collect();
        for old in &overlapped {
            self.mappings.remove_mut(&old.start.0);
            if old.start.0 < start {
                self.insert(Mapping { len: start - old.start.0, ..*old });
            }
            if old.end() > end {
                let cut = end - old.start.0;
                self.insert(Mapping {
                    start: Avma(end),
                    len: old.len - cut,
                    pgoff: old.pgoff.wrapping_add(cut),
                    ..*old
                });
            }
        }
        overlapped
    }

    fn insert(&mut self, mapping: Mapping) {
        self.mappings.insert_mut(mapping.start.0, mapping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, len: u64, pgoff: u64, module: u32) -> Mapping {
        Mapping::new(Avma(start), len, pgoff, ModuleId(module)).unwrap()
    }

    fn shown(space: &AddressSpace) -> Vec<(u64, u64, u64, u32)> {
        space.iter().map(|m| (m.start.0, m.len, m.pgoff, m.module.0)).collect()
    }

    #[test]
    fn a_mapping_over_the_middle_splits_the_old_one() {
        let mut space = AddressSpace::default();
        assert!(!space.map(mapping(0x1000, 0x3000, 0, 0)));
        assert!(space.map(mapping(0x2000, 0x1000, 0x500, 1)));
        assert_eq!(shown(&space), [(0x1000, 0x1000, 0, 0), (0x2000, 0x1000, 0x500, 1), (0x3000, 0x1000, 0x2000, 0)]);
        assert_eq!(space.find(Avma(0x1fff)).unwrap().module, ModuleId(0));
        assert_eq!(space.find(Avma(0x3010)).unwrap().file_offset(Avma(0x3010)), 0x2010);
        assert_eq!(space.find(Avma(0x4000)), None);
        assert_eq!(space.find(Avma(0xfff)), None);
    }

    #[test]
    fn mapping_the_same_bytes_again_changes_nothing() {
        let mut space = AddressSpace::default();
        space.map(mapping(0x1000, 0x3000, 0, 0));
        assert!(!space.map(mapping(0x2000, 0x1000, 0x1000, 0)));
        assert!(space.map(mapping(0x2000, 0x1000, 0, 0)), "another offset of the same file");
    }

    #[test]
    fn a_mapping_that_covers_several_replaces_them() {
        let mut space = AddressSpace::default();
        space.map(mapping(0x1000, 0x1000, 0, 0));
        space.map(mapping(0x3000, 0x1000, 0, 1));
        assert!(space.map(mapping(0x800, 0x8000, 0, 2)));
        assert_eq!(shown(&space), [(0x800, 0x8000, 0, 2)]);
    }

    #[test]
    fn what_is_known_of_code_may_have_holes() {
        let mut space = AddressSpace::default();
        let anonymous = mapping(0x1000, 0x3000, 0x1000, 0).anonymous();
        space.map(anonymous);
        let code = mapping(0x1000, 0x1000, 0, 1).anonymous();
        let range = |start, end| Avma(start)..Avma(end);
        assert!(!space.set_made_code(&range(0x1000, 0x2000), Some(code)));
        assert!(space.set_made_code(&range(0x1100, 0x1200), None), "it had code there");
        assert!(space.set_made_code(&range(0x1180, 0x1280), None), "a part of it had");
        assert!(!space.set_made_code(&range(0x1180, 0x1280), None), "it has none");
        assert!(!space.set_made_code(&range(0x1300, 0x1300), None), "nothing");
        let module = |at| space.find(Avma(at)).unwrap().module.0;
        assert_eq!([0x10ff, 0x1100, 0x127f, 0x1280, 0x1fff, 0x2000].map(module), [1, 0, 0, 1, 1, 0]);
        assert_eq!(space.find(Avma(0x1280)).unwrap().file_offset(Avma(0x1280)), 0x280);
        assert_eq!(space.find_unread(Avma(0x1280)), Some(&anonymous));
        let unknown = |first, last| space.any_unknown(Avma(first), Avma(last));
        assert!(unknown(0x1000, 0x1100) && unknown(0x1000, 0x1fff) && unknown(0x127f, 0x127f));
        assert!(!unknown(0x1000, 0x10ff) && !unknown(0x1280, u64::MAX));
        // The middle is known again, and then all of it.
        let again = |start, len| mapping(start, len, start - 0x1000, 1).anonymous();
        assert!(space.set_made_code(&range(0x1140, 0x1150), Some(again(0x1140, 0x10))));
        let unknown = |space: &AddressSpace, at| space.any_unknown(Avma(at), Avma(at));
        let holes = [0x10ff, 0x1100, 0x113f, 0x1140, 0x114f, 0x1150, 0x127f, 0x1280].map(|at| unknown(&space, at));
        assert_eq!(holes, [false, true, true, false, false, true, true, false]);
        assert!(space.set_made_code(&range(0x1000, 0x2000), Some(code)));
        assert!(!space.any_unknown(Avma(0), Avma(u64::MAX)));
        assert!(!space.set_made_code(&range(0x1000, 0x2000), Some(code)), "it is the same");
    }

    #[test]
    fn a_mapping_never_wraps_around() {
        assert_eq!(Mapping::new(Avma(u64::MAX), 0x1000, 0, ModuleId(0)), None);
        assert_eq!(Mapping::new(Avma(u64::MAX - 1), 0x1000, 0, ModuleId(0)).unwrap().len, 1);
        assert_eq!(Mapping::new(Avma(5), 0, 0, ModuleId(0)), None);
    }
}
