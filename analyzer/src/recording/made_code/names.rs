//! Names of code that is in no file, over time.
//!
//! ```text
//! name   since              names in force
//! f      10       0..20     f from the beginning on: no other name was there
//! g      30      10..20     g from 30 on; f is gone with all that it named
//! h      30      40..50     h from the beginning on
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use rpds::RedBlackTreeMapSync;

/// Bytes of a function with a name.
const LONGEST_FUNCTION: u64 = 16 << 20;

/// A name that records give to code.
#[derive(Clone, Debug)]
pub(super) struct Name {
    /// From when on.
    pub since: u64,
    pub start: u64,
    pub size: u64,
    pub name: Vec<u8>,
}

impl Name {
    /// Where its code is; `None` if that is absurd.
    fn range(&self) -> Option<Range<u64>> {
        let is_possible = (1..=LONGEST_FUNCTION).contains(&self.size);
        Some(self.start..self.start.checked_add(self.size).filter(|_| is_possible)?)
    }
}

/// From a time on code has a name.
#[derive(Clone, Debug)]
pub(super) struct Naming<'a> {
    pub since: u64,
    pub range: Range<u64>,
    pub name: &'a [u8],
}

/// Who is named when, by time. The first name of an address is that of all time before.
pub(super) fn namings(names: &[Name]) -> Vec<Naming<'_>> {
    let naming = |of: &'_ Name| Some((of.since, of.range()?));
    let mut namings: Vec<Naming<'_>> = names
        .iter()
        .filter_map(|of| naming(of).map(|(since, range)| Naming { since, range, name: &of.name }))
        .collect();
    namings.sort_by_key(|naming| naming.since);
    // Disjoint ranges that had a name.
    let mut named: BTreeMap<u64, u64> = BTreeMap::new();
    for naming in &mut namings {
        let Range { mut start, mut end } = naming.range;
        let mut is_first = true;
        while let Some((&other, &other_end)) = named.range(..end).next_back().filter(|(_, other)| **other > start) {
            is_first = false;
            named.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        named.insert(start, end);
        if is_first {
            naming.since = 0;
        }
    }
    namings.sort_by_key(|naming| naming.since);
    namings
}

/// The names that hold at a time, disjoint, by address, with their ends. Clones share what they have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct NamesInForce<'a> {
    names: RedBlackTreeMapSync<u64, (u64, &'a [u8])>,
}

impl<'a> NamesInForce<'a> {
    /// Where code has other names, or none any more, if this one holds.
    pub fn replaced_by(&self, naming: &Naming<'_>) -> Vec<Range<u64>> {
        let Naming { range, name, .. } = naming;
        let overlapped = self.names.range(..range.end).rev().take_while(|(_, (end, _))| *end > range.start);
        let replaced = overlapped.filter(|(start, (end, other))| {
            let is_all_there = range.start <= **start && *end <= range.end;
            other != name || !is_all_there
        });
        replaced.map(|(start, (end, _))| *start..*end).collect()
    }

    /// From now on this name holds, and none that it overlaps.
    pub fn put(&mut self, naming: &Naming<'a>) {
        let range = &naming.range;
        while let Some(overlapped) = self
            .names
            .range(..range.end)
            .next_back()
            .filter(|(_, (end, _))| *end > range.start)
            .map(|(start, _)| *start)
        {
            self.names.remove_mut(&overlapped);
        }
        self.names.insert_mut(range.start, (range.end, naming.name));
    }

    /// The function that holds an address: its first address, its end, its name.
    pub fn at(&self, at: u64) -> Option<(u64, u64, &'a [u8])> {
        let (start, (end, name)) = self.names.range(..=at).next_back()?;
        (*end > at).then_some((*start, *end, name))
    }

    /// Where the first function begins from an address on.
    pub fn next_start(&self, at: u64) -> Option<u64> {
        self.names.range(at..).next().map(|(start, _)| *start)
    }

    /// All names, by address, with their ends.
    pub fn by_address(&self) -> BTreeMap<u64, (u64, &'a [u8])> {
        self.names.iter().map(|(start, of)| (*start, *of)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(since: u64, start: u64, size: u64, name: &str) -> Name {
        Name { since, start, size, name: name.into() }
    }

    /// Since when, where from, and who.
    fn by_time(names: &[Name]) -> Vec<(u64, u64, String)> {
        let of =
            |naming: Naming<'_>| (naming.since, naming.range.start, String::from_utf8_lossy(naming.name).into_owned());
        namings(names).into_iter().map(of).collect()
    }

    #[test]
    fn the_first_name_of_an_address_is_that_of_all_time_before() {
        let names = [name(40, 0, 10, "h"), name(30, 10, 10, "g"), name(10, 0, 20, "f"), name(30, 40, 10, "i")];
        let expected = [(0, 0, "f".into()), (0, 40, "i".into()), (30, 10, "g".into()), (40, 0, "h".into())];
        assert_eq!(by_time(&names), expected);
        let absurd = [name(1, 5, 0, "nothing"), name(1, u64::MAX, 2, "wraps"), name(1, 5, u64::MAX / 2, "everything")];
        assert_eq!(by_time(&absurd), []);
    }

    #[test]
    fn a_name_is_replaced_with_all_that_it_named() {
        let mut names = NamesInForce::default();
        let naming = |range: Range<u64>, name: &'static str| Naming { since: 0, range, name: name.as_bytes() };
        let replaced = |names: &NamesInForce<'_>, range, name| {
            let replaced = names.replaced_by(&naming(range, name)).into_iter();
            replaced.map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        names.put(&naming(0..20, "f"));
        names.put(&naming(20..30, "g"));
        assert_eq!(replaced(&names, 10..20, "h"), [(0, 20)]);
        assert_eq!(replaced(&names, 0..20, "f"), [], "the same");
        assert_eq!(replaced(&names, 20..40, "g"), [], "it has grown");
        assert_eq!(replaced(&names, 20..25, "g"), [(20, 30)], "it has shrunk");
        names.put(&naming(10..25, "h"));
        assert_eq!(names.by_address().into_iter().collect::<Vec<_>>(), [(10, (25, &b"h"[..]))]);
        assert_eq!((names.at(9), names.at(24), names.next_start(11)), (None, Some((10, 25, &b"h"[..])), None));
    }

    #[test]
    fn many_names_of_one_address_are_not_slow() {
        let names: Vec<Name> = (0..200_000).map(|at| name(at % 977, at % 4096 * 16, at % 65_536, "name")).collect();
        let mut in_force = NamesInForce::default();
        namings(&names).iter().for_each(|naming| in_force.put(naming));
        assert!(!in_force.by_address().is_empty());
    }
}
