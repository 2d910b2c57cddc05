//! Where a process has code of files, as far as its mappings were read.

use std::ops::Range;

use addresses::Avma;

use crate::sys::process::{Mapping, mappings};

/// How long mappings are believed, ns,
const BELIEVED: u64 = 2_000_000_000;
/// and where an address is in none of them.
const BELIEVED_IF_NEW: u64 = 50_000_000;

/// The executable mappings of a process.
#[derive(Debug, Default)]
pub(crate) struct ProcessCode {
    /// When they were read, ns.
    read: Option<u64>,
    /// Those of files: disjoint, by address.
    files: Vec<Range<Avma>>,
    /// The others.
    made: Vec<Range<Avma>>,
}

impl ProcessCode {
    /// Whether the mappings were read at all.
    pub(crate) fn is_known(&self) -> bool {
        !self.files.is_empty() || !self.made.is_empty()
    }

    /// Where code of files is.
    pub(crate) fn of_files(&self) -> &[Range<Avma>] {
        &self.files
    }

    /// Whether there is code of a file.
    pub(crate) fn is_of_file(&self, at: Avma) -> bool {
        holds(&self.files, at)
    }

    /// Whether mappings are to be read: it is long ago, or one of these addresses is in none of them.
    pub(crate) fn is_outdated(&self, mut addresses: impl Iterator<Item = Avma>, now: u64) -> bool {
        let Some(read) = self.read else { return true };
        let age = now.saturating_sub(read);
        age >= BELIEVED
            || age >= BELIEVED_IF_NEW && addresses.any(|at| !holds(&self.files, at) && !holds(&self.made, at))
    }

    /// Reads them. Returns whether there are others than before; of a process that has ended what is known stays.
    pub(crate) fn read(&mut self, pid: u32, now: u64) -> bool {
        self.read = Some(now);
        self.learn(&mappings(pid))
    }

    fn learn(&mut self, mappings: &[Mapping]) -> bool {
        let code = || mappings.iter().filter(|map| map.prot & 4 != 0);
        if code().next().is_none() {
            return false;
        }
        let ranges = |of_file: bool| {
            let maps = code().filter(|map| map.has_code_elsewhere() == of_file);
            maps.map(|map| Avma(map.start)..Avma(map.end)).collect::<Vec<_>>()
        };
        let files = ranges(true);
        self.made = ranges(false);
        let is_new = files != self.files;
        self.files = files;
        is_new
    }
}

fn holds(ranges: &[Range<Avma>], at: Avma) -> bool {
    let after = ranges.partition_point(|range| range.start <= at);
    after.checked_sub(1).is_some_and(|before| at < ranges[before].end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, prot: u32, inode: u64, path: &str) -> Mapping {
        let path = path.as_bytes().to_vec();
        Mapping { start, end: start + 0x1000, prot, shared: false, offset: 0, device: (0, 0), inode, path }
    }

    #[test]
    fn code_of_files_is_told_from_other_code() {
        let mut code = ProcessCode::default();
        assert!(code.is_outdated(std::iter::empty(), 0) && !code.is_known());
        let maps = [
            map(0x1000, 5, 7, "/usr/bin/node"),
            map(0x2000, 5, 0, "//anon"),
            map(0x3000, 3, 0, "[heap]"),
            map(0x4000, 7, 9, "/memfd:doublemapper (deleted)"),
            map(0x5000, 5, 0, "[vdso]"),
        ];
        assert!(code.learn(&maps) && code.is_known());
        assert!(!code.learn(&maps) && !code.learn(&[]), "the same, or none any more");
        let of_file = |at| code.is_of_file(Avma(at));
        assert_eq!([0x1000, 0x2000, 0x4000, 0x5000].map(of_file), [true, false, false, true]);
    }

    #[test]
    fn mappings_are_read_again_when_there_is_a_reason() {
        let mut code = ProcessCode { read: Some(0), ..ProcessCode::default() };
        code.learn(&[map(0x1000, 5, 7, "/usr/bin/node"), map(0x2000, 5, 0, "//anon")]);
        let outdated = |at, now| code.is_outdated([Avma(at)].into_iter(), now);
        assert!(!outdated(0x1000, BELIEVED_IF_NEW) && !outdated(0x2000, BELIEVED - 1));
        assert!(outdated(0x3000, BELIEVED_IF_NEW) && !outdated(0x3000, BELIEVED_IF_NEW - 1));
        assert!(outdated(0x1000, BELIEVED));
    }
}
