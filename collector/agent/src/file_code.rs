//! Where processes have code of files, as the recorder tells their agents: of what is elsewhere they hand over the bytes.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use addresses::Avma;

/// Processes that are told. Of others all code is handed over.
const PROCESSES: usize = 64;
/// Ranges of a process. What is in others is handed over.
const RANGES: usize = 128;

/// The code of files of some processes.
#[repr(C)]
pub(crate) struct FileCode {
    /// Whose the entries are; 0: nobody's.
    processes: [AtomicU32; PROCESSES],
    next: AtomicU32,
    entries: [Entry; PROCESSES],
}

/// The code of files of a process: disjoint, by address.
#[repr(C)]
struct Entry {
    count: AtomicU32,
    ranges: [[AtomicU64; 2]; RANGES],
}

/// What an agent knows of its own process.
#[derive(Clone, Copy)]
pub(crate) struct OwnFileCode<'a>(&'a [[AtomicU64; 2]]);

impl FileCode {
    /// What is known of a process.
    pub(crate) fn of(&self, process: u32) -> OwnFileCode<'_> {
        let place = self.processes.iter().position(|of| of.load(Acquire) == process);
        let entry = place.and_then(|place| self.entries.get(place));
        OwnFileCode(entry.and_then(|entry| entry.ranges.get(..entry.count.load(Acquire) as usize)).unwrap_or_default())
    }

    /// A process has code of files there: the ranges are disjoint, by address.
    pub(crate) fn set(&self, process: u32, ranges: &[Range<Avma>]) {
        let known = self.processes.iter().position(|of| of.load(Relaxed) == process);
        let place = known.unwrap_or_else(|| self.next.fetch_add(1, Relaxed) as usize % PROCESSES);
        let (of, entry) = (&self.processes[place], &self.entries[place]);
        // Meanwhile it has none: agents hand over more than they need to.
        entry.count.store(0, Release);
        of.store(process, Release);
        let mut count = 0;
        for (words, range) in entry.ranges.iter().zip(ranges) {
            words[0].store(range.start.0, Relaxed);
            words[1].store(range.end.0, Relaxed);
            count += 1;
        }
        entry.count.store(count, Release);
    }
}

impl OwnFileCode<'_> {
    /// Whether the code at an address is of a file.
    pub(crate) fn has(self, address: Avma) -> bool {
        let after = self.0.partition_point(|range| range[0].load(Relaxed) <= address.0);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|range| address.0 < range[1].load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Box<FileCode> {
        let entry = || Entry { count: AtomicU32::new(0), ranges: [const { [const { AtomicU64::new(0) }; 2] }; RANGES] };
        let processes = [const { AtomicU32::new(0) }; PROCESSES];
        Box::new(FileCode { processes, next: AtomicU32::new(0), entries: std::array::from_fn(|_| entry()) })
    }

    #[test]
    fn a_process_has_what_it_was_told_last() {
        let table = empty();
        assert!(!table.of(7).has(Avma(0x1000)), "nothing is known");
        table.set(7, &[Avma(0x1000)..Avma(0x2000), Avma(0x3000)..Avma(0x4000)]);
        let of_files = |address| table.of(7).has(Avma(address));
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x3000, 0x4000].map(of_files),
            [false, true, true, false, true, false]
        );
        table.set(7, &[Avma(0x5000)..Avma(0x6000)]);
        assert!(table.of(7).has(Avma(0x5000)) && !table.of(7).has(Avma(0x1000)));
        assert!(!table.of(8).has(Avma(0x5000)));
    }

    #[test]
    fn there_is_no_end_of_processes_and_ranges() {
        let table = empty();
        let many: Vec<_> = (0..1000).map(|at| Avma(at * 16)..Avma(at * 16 + 8)).collect();
        (1..200).for_each(|process| table.set(process, &many));
        assert!(table.of(199).has(Avma(0x10)) && !table.of(199).has(Avma(999 * 16)));
        assert!(!table.of(1).has(Avma(0x10)), "its entry is another's by now");
    }
}
