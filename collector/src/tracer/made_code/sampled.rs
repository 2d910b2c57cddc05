//! Pages of code that is in no file, in which samples fell: which are to be read, and how many.
//!
//! ```text
//! records of mappings -> memory without a file, by process --+
//! samples: instruction pointers, call chains, branches ------+-> pages -> read, as many as the budget allows
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use addresses::Avma;
use lookahead::PAGE;

use crate::errno::Errno;
use crate::sys::process::is_running;
use crate::sys::{copy_memory, is_32_bit_process};

const PAGE_BYTES: u64 = PAGE as u64;
/// So often a page may be read, over all processes, ns: some milliseconds of work in a second,
const PAGE_TIME: u64 = 500_000;
/// which is so many pages, and as many at a time.
const PAGES_PER_SECOND: u64 = 1_000_000_000 / PAGE_TIME;
/// Pages in which samples may have fallen since they were last read.
const MOST_WANTED: usize = 1 << 16;
/// Ranges of memory without a file, over all processes.
const MOST_RANGES: usize = 1 << 16;
/// Where there are so many, processes that have ended are looked for after this time at the earliest: each of them costs a read.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// So many bytes of one value are no code: memory that nothing was put into, or what is between functions. Code that is put there later is
/// new, and takes the place of nothing.
const FILL: usize = 32;
/// But these are: instructions of one byte.
const NOP: u8 = 0x90;

/// Where processes have executable memory without a file, and where samples fell in it.
#[derive(Debug, Default)]
pub(crate) struct SampledCode {
    processes: HashMap<u32, Process>,
    /// Ranges of all processes.
    ranges: usize,
    /// When processes that have ended were last looked for.
    looked: Option<Instant>,
    /// Processes that have ended, and when, ns: in this round, and in the one before. Samples of other rings come after the record of the end.
    ended: Vec<(u32, u64)>,
    ended_before: Vec<(u32, u64)>,
    /// Process and page, and when the first sample fell in it since it was last read. Its memory is used again.
    wanted: HashMap<(u32, Avma), u64>,
    /// What can be read now, in pages, and when that was reckoned, ns.
    budget: u64,
    reckoned: Option<u64>,
    /// Whether there is memory in this round that was not there before.
    has_grown: bool,
    pub(crate) counts: SampledCounts,
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// Disjoint, by address.
    made: Vec<Range<u64>>,
    /// When it got the last of them, ns.
    time: u64,
    /// Whether its code can be read; `None` if nobody has tried.
    access: Option<Access>,
    /// Whether the counts of this file have it as one that cannot be read.
    is_counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Open,
    /// The kernel does not let it be read.
    Refused,
    /// Its code is of 32 bits, which is not decoded where no file says so.
    Of32Bit,
}

/// Pages that were not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampledCounts {
    /// Times that a page in which samples fell had to be left out: more were hit than are read in a second.
    pub(crate) left_out: u64,
    /// Pages in which samples fell that were gone when they were to be read, for the process had ended as a rule.
    pub(crate) gone: u64,
    /// Processes whose memory may not be read.
    pub(crate) refused: u64,
    /// Processes of 32 bits.
    pub(crate) of_32_bit: u64,
    /// Ranges of memory that were too many to be kept.
    pub(crate) unplaced: u64,
}

/// A page in which a sample fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SampledPage {
    /// Whether it was known: those that were not are read first.
    pub(crate) is_known: bool,
    /// When, ns: the first sample since it was last read.
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) at: Avma,
}

impl SampledCode {
    /// A process has mapped executable memory at `time`, or made it executable. Records of one process come from several rings, and so not in
    /// order of time.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, range: Range<Avma>, is_of_file: bool) {
        let range = range.start.0..range.end.0;
        if range.is_empty() || is_of_file && !self.processes.contains_key(&pid) {
            return;
        }
        // Or it was made executable again.
        let is_new = !is_of_file && !self.processes.get(&pid).is_some_and(|process| process.has(&range));
        if is_new && !self.has_room(1) {
            self.counts.unplaced += 1;
            return;
        }
        let process = self.processes.entry(pid).or_default();
        let before = process.made.len();
        if is_of_file {
            process.put_file(&range);
        } else {
            process.time = process.time.max(time);
        }
        if is_new {
            process.put_made(range);
            self.has_grown = true;
        }
        self.ranges = self.ranges + process.made.len() - before;
        if process.made.is_empty() {
            self.processes.remove(&pid);
        }
    }

    /// A process is new since `time`: it has what its parent has.
    pub(crate) fn forked(&mut self, pid: u32, parent: u32, time: u64) {
        self.forget(pid, time);
        let Some(count) = self.processes.get(&parent).map(|process| process.made.len()) else { return };
        let has_room = self.has_room(count);
        let Some(made) = self.processes.get(&parent).filter(|_| has_room).map(|process| process.made.clone()) else {
            self.counts.unplaced += count as u64;
            return;
        };
        let process = self.processes.entry(pid).or_default();
        let before = process.made.len();
        if before == 0 {
            process.made = made;
        } else {
            made.into_iter().for_each(|range| process.put_made(range));
        }
        process.time = process.time.max(time);
        self.ranges = self.ranges + process.made.len() - before;
        self.has_grown = true;
    }

    /// A process has another program since `time`, or has ended then. Memory that it got later is of what it is now.
    pub(crate) fn forget(&mut self, pid: u32, time: u64) {
        match self.processes.get_mut(&pid) {
            Some(process) if process.time > time => process.access = None,
            _ => self.ranges -= self.processes.remove(&pid).map_or(0, |process| process.made.len()),
        }
    }

    /// The first thread of a process has ended at `time`.
    pub(crate) fn ended(&mut self, pid: u32, time: u64) {
        if self.processes.contains_key(&pid) {
            self.ended.push((pid, time));
        }
    }

    /// All rings were read. Returns whether processes have memory for code that they did not have at the end of the round before.
    pub(crate) fn end_round(&mut self) -> bool {
        let ended = std::mem::take(&mut self.ended);
        for (pid, time) in std::mem::replace(&mut self.ended_before, ended) {
            // Other threads may go on.
            if !is_running(pid) {
                self.forget(pid, time);
            }
        }
        std::mem::take(&mut self.has_grown)
    }

    /// Whether so many more ranges find room, if need be without processes whose end was not told.
    fn has_room(&mut self, count: usize) -> bool {
        let may_look = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN);
        if self.ranges + count > MOST_RANGES && may_look {
            self.processes.retain(|pid, _| is_running(*pid));
            self.ranges = self.processes.values().map(|process| process.made.len()).sum();
            self.looked = Some(Instant::now());
        }
        self.ranges + count <= MOST_RANGES
    }

    /// Whether nothing is known to be in the way of reading a process' code.
    pub(crate) fn may_be_read(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_none_or(Process::may_be_read)
    }

    /// Words of a sample of a process at `time`, of which some may be addresses of code. One that only looks so costs the copy of a page.
    pub(crate) fn see(&mut self, pid: u32, time: u64, words: impl Iterator<Item = u64>) {
        let Self { processes, wanted, counts, .. } = self;
        let Some(process) = processes.get_mut(&pid) else { return };
        let (Some(first), Some(last)) = (process.made.first(), process.made.last()) else { return };
        let (all, mut newest) = (first.start..last.end, None);
        for word in words.filter(|word| all.contains(word)) {
            let page = Avma(word - word % PAGE_BYTES);
            // Words of a sample are near each other.
            if newest == Some(page) || !holds(&process.made, word) {
                continue;
            }
            if !process.may_be_read() {
                process.count(counts);
                return;
            }
            newest = Some(page);
            if wanted.len() < MOST_WANTED || wanted.contains_key(&(pid, page)) {
                let first = wanted.entry((pid, page)).or_insert(time);
                *first = time.min(*first);
            } else {
                counts.left_out += 1;
            }
        }
    }

    /// No page is to be read.
    pub(crate) fn want_nothing(&mut self) {
        self.wanted.clear();
    }

    /// Another file begins, which has its own counts.
    pub(crate) fn count_anew(&mut self) {
        self.counts = SampledCounts::default();
        self.processes.values_mut().for_each(|process| process.is_counted = false);
    }

    /// The pages that are to be read at `now`, ns: those that are not known first, and as many as there is a budget for.
    pub(crate) fn take(&mut self, now: u64, is_known: impl Fn(u32, Avma) -> bool, pages: &mut Vec<SampledPage>) {
        let passed = now.saturating_sub(self.reckoned.unwrap_or(0));
        self.reckoned = Some(now - passed % PAGE_TIME);
        self.budget = self.budget.saturating_add(passed / PAGE_TIME).min(PAGES_PER_SECOND);
        let page = |((pid, at), time)| SampledPage { is_known: is_known(pid, at), time, pid, at };
        pages.extend(self.wanted.drain().map(page));
        pages.sort_unstable();
        let left_out = pages.len().saturating_sub(self.budget as usize);
        pages.truncate(self.budget as usize);
        self.counts.left_out += left_out as u64;
    }

    /// Reads a page of a process, if it is code without a file; whether it could be read.
    pub(crate) fn read(&mut self, pid: u32, at: Avma, page: &mut [u8; PAGE]) -> bool {
        let Some(process) = self.processes.get_mut(&pid).filter(|process| holds(&process.made, at.0)) else {
            return false;
        };
        if process.access.is_none() && is_32_bit_process(pid) {
            process.access = Some(Access::Of32Bit);
        }
        if !process.may_be_read() {
            process.count(&mut self.counts);
            return false;
        }
        self.budget = self.budget.saturating_sub(1);
        match copy_memory(pid as i32, at, page) {
            Ok(PAGE) => {
                process.access = Some(Access::Open);
                true
            }
            Err(errno) if errno.is_permission() => {
                process.access = Some(Access::Refused);
                process.count(&mut self.counts);
                false
            }
            Err(Errno::ESRCH) => {
                self.forget(pid, u64::MAX);
                false
            }
            _ => false,
        }
    }

    /// Whether no sample fell in such code.
    pub(crate) fn is_idle(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether something is left of the budget.
    pub(crate) fn may_read(&self) -> bool {
        self.budget > 0
    }
}

impl SampledCounts {
    /// What was left out, in sentences.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = String> {
        let Self { left_out, gone, refused, of_32_bit, unplaced } = *self;
        let said = [
            (left_out, format!(
                "pages of code without a file in which samples fell were not read, for there were more than {PAGES_PER_SECOND} in a second (counted at \
                 each look): where they are new, they are unread"
            )),
            (gone, "pages of code without a file in which samples fell were gone when they were to be read, with their process as a rule: they are \
                    unread".to_owned()),
            (refused, "processes have code without a file that only bursts bring, for their memory may not be read: that takes the right to trace \
                       them (ptrace)".to_owned()),
            (of_32_bit, "processes have code without a file that is of 32 bits: it is unread".to_owned()),
            (unplaced, "mappings without a file were too many to be kept: code in them is unread where no burst executed it".to_owned()),
        ];
        said.into_iter().filter(|(count, _)| *count > 0).map(|(count, sentence)| format!("{count} {sentence}"))
    }
}

impl Process {
    fn may_be_read(&self) -> bool {
        !matches!(self.access, Some(Access::Refused | Access::Of32Bit))
    }

    /// Samples fell in it, and it cannot be read: it is counted once in a file.
    fn count(&mut self, counts: &mut SampledCounts) {
        if !std::mem::replace(&mut self.is_counted, true) {
            let of_32_bit = self.access == Some(Access::Of32Bit);
            *(if of_32_bit { &mut counts.of_32_bit } else { &mut counts.refused }) += 1;
        }
    }

    /// Whether all of it is known.
    fn has(&self, range: &Range<u64>) -> bool {
        let after = self.made.partition_point(|made| made.start <= range.start);
        after.checked_sub(1).is_some_and(|before| range.end <= self.made[before].end)
    }

    /// Memory without a file: one with what it touches.
    fn put_made(&mut self, mut range: Range<u64>) {
        let first = self.made.partition_point(|other| other.end < range.start);
        let after = self.made.partition_point(|other| other.start <= range.end);
        if let Some(touched) = self.made.get(first..after).filter(|touched| !touched.is_empty()) {
            range.start = range.start.min(touched[0].start);
            range.end = range.end.max(touched[touched.len() - 1].end);
        }
        self.made.splice(first..after, [range]);
    }

    /// A file takes the place of what was there.
    fn put_file(&mut self, range: &Range<u64>) {
        let first = self.made.partition_point(|other| other.end <= range.start);
        let after = self.made.partition_point(|other| other.start < range.end);
        let Some(covered) = self.made.get(first..after).filter(|covered| !covered.is_empty()) else { return };
        let rest = [covered[0].start..range.start, range.end..covered[covered.len() - 1].end];
        self.made.splice(first..after, rest.into_iter().filter(|rest| !rest.is_empty()));
    }
}

fn holds(ranges: &[Range<u64>], at: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= at);
    after.checked_sub(1).is_some_and(|before| at < ranges[before].end)
}

/// The parts of a page at `at` that may be code.
pub(crate) fn parts_with_code(at: Avma, page: &[u8; PAGE]) -> impl Iterator<Item = (Avma, &[u8])> {
    let is_fill = |run: &[u8]| run.len() >= FILL && run[0] != NOP;
    let mut rest = &page[..];
    std::iter::from_fn(move || {
        // Fill first, and then what is up to the next one.
        let mut length = 0;
        for run in rest.chunk_by(|one, next| one == next) {
            if is_fill(run) {
                if length > 0 {
                    break;
                }
                rest = &rest[run.len()..];
            } else {
                length += run.len();
            }
        }
        let (part, after) = rest.split_at(length);
        let place = Avma(at.0 + (PAGE - rest.len()) as u64);
        rest = after;
        (!part.is_empty()).then_some((place, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x7f00_0000_0000;

    fn mapped(code: &mut SampledCode, pages: Range<u64>, is_of_file: bool) {
        code.mapped(7, 1, Avma(AT + pages.start * PAGE_BYTES)..Avma(AT + pages.end * PAGE_BYTES), is_of_file);
    }

    fn mapped_own(code: &mut SampledCode, pid: u32, page: u64) {
        code.mapped(pid, 1, Avma(AT + page * PAGE_BYTES)..Avma(AT + (page + 1) * PAGE_BYTES), false);
    }

    /// The pages of process `pid` that these addresses make wanted.
    fn wanted(code: &mut SampledCode, pid: u32, addresses: &[u64]) -> Vec<u64> {
        let now = code.reckoned.unwrap_or(0) + 1_000_000_000;
        code.see(pid, 5, addresses.iter().copied());
        let mut pages = Vec::new();
        code.take(now, |_, _| false, &mut pages);
        pages.iter().map(|page| (page.at.0 - AT) / PAGE_BYTES).collect()
    }

    #[test]
    fn only_memory_without_a_file_is_wanted() {
        let mut code = SampledCode::default();
        mapped(&mut code, 0..2, true);
        assert!(code.processes.is_empty(), "processes without such memory are not kept");
        mapped(&mut code, 0..4, false);
        mapped(&mut code, 6..8, false);
        let each: Vec<u64> = (0..10).map(|page| AT + page * PAGE_BYTES + 9).collect();
        assert_eq!(wanted(&mut code, 7, &each), [0, 1, 2, 3, 6, 7]);
        assert_eq!(wanted(&mut code, 7, &[AT + 1, AT + 5, u64::MAX, 0]), [0], "once");
        mapped(&mut code, 2..7, true);
        assert_eq!(wanted(&mut code, 7, &each), [0, 1, 7]);
        mapped(&mut code, 0..10, false);
        mapped(&mut code, 1..2, false);
        assert_eq!((wanted(&mut code, 7, &each).len(), code.ranges), (10, 1));
        code.forked(8, 7, 1);
        mapped(&mut code, 4..5, true);
        assert_eq!((wanted(&mut code, 7, &each).len(), wanted(&mut code, 8, &each).len(), code.ranges), (9, 10, 3));
        code.forget(7, 1);
        assert_eq!((wanted(&mut code, 7, &each), code.ranges), (vec![], 1));
    }

    #[test]
    fn no_more_is_read_than_there_is_a_budget_for_and_what_is_new_comes_first() {
        let mut code = SampledCode::default();
        let most = PAGES_PER_SECOND;
        mapped(&mut code, 0..2 * most, false);
        let mut pages = Vec::new();
        for page in 0..most + 10 {
            code.see(7, page, [AT + page * PAGE_BYTES].into_iter());
        }
        let is_known = |_, at: Avma| at.0 < AT + 20 * PAGE_BYTES;
        code.take(9_000_000_000, is_known, &mut pages);
        assert_eq!((pages.len() as u64, code.counts.left_out), (most, 10));
        assert!(!pages[0].is_known && pages[0].at.0 == AT + 20 * PAGE_BYTES);
        let mut page = [0; PAGE];
        pages.iter().for_each(|sampled| assert!(!code.read(u32::MAX, sampled.at, &mut page)));
        assert_eq!(code.budget, most, "what is of no process costs nothing");
        code.budget = 0;
        code.see(7, 0, [AT, AT + PAGE_BYTES].into_iter());
        pages.clear();
        code.take(9_000_000_000 + PAGE_TIME, is_known, &mut pages);
        assert_eq!((pages.len(), code.counts.left_out), (1, 11), "a page for its time");
    }

    #[test]
    fn what_a_process_got_later_is_no_memory_of_before() {
        let mut code = SampledCode::default();
        let at = |page: u64| Avma(AT + page * PAGE_BYTES)..Avma(AT + (page + 1) * PAGE_BYTES);
        code.mapped(7, 1, at(0), false);
        // A child that executes a program: the records of one ring, and after them those of the other.
        code.mapped(8, 30, at(5), false);
        code.forget(8, 20);
        code.forked(8, 7, 10);
        assert_eq!(wanted(&mut code, 8, &[AT + 5 * PAGE_BYTES]), [5], "it is newer than both");
        code.forget(8, 30);
        assert!(wanted(&mut code, 8, &[AT + 5 * PAGE_BYTES]).is_empty());
        // What it has of its parent is as old as itself.
        code.forked(9, 7, 10);
        code.forget(9, 5);
        assert_eq!(wanted(&mut code, 9, &[AT]), [0]);
        code.forget(9, 11);
        assert_eq!((wanted(&mut code, 9, &[AT]), code.ranges), (vec![], 1));
        // What was there before is executable again, and no file keeps it.
        code.mapped(7, 40, at(0), false);
        code.mapped(7, 60, at(1), true);
        code.forget(7, 39);
        assert_eq!(wanted(&mut code, 7, &[AT]), [0]);
        code.forget(7, 50);
        assert!(code.processes.is_empty() && code.ranges == 0);
    }

    #[test]
    fn a_process_that_has_ended_is_forgotten_when_its_samples_have_come() {
        let mut code = SampledCode::default();
        // There are no such numbers; this process goes on.
        let (gone, again, own) = (0x3fff_fff0, 0x3fff_fff1, std::process::id());
        for pid in [gone, again, own] {
            code.mapped(pid, 1, Avma(AT)..Avma(AT + PAGE_BYTES), false);
            code.ended(pid, 10);
        }
        code.ended(5, 10);
        code.end_round();
        assert_eq!((wanted(&mut code, gone, &[AT]), code.ended_before.len()), (vec![0], 3));
        code.forked(again, own, 20);
        code.end_round();
        assert!(!code.processes.contains_key(&gone), "this ring was read, too");
        assert!(code.processes.contains_key(&own), "it has other threads");
        assert!(code.processes.contains_key(&again), "it is another process");
        code.end_round();
        assert_eq!((code.processes.len(), code.ranges), (2, 2));
    }

    #[test]
    fn where_there_are_too_many_ranges_those_who_have_ended_are_looked_for_seldom() {
        let (gone, own) = (0x3fff_fff0, std::process::id());
        let fill = |code: &mut SampledCode| {
            for page in 0..MOST_RANGES as u64 {
                let at = AT + 2 * page * PAGE_BYTES;
                code.mapped(gone, 1, Avma(at)..Avma(at + PAGE_BYTES), false);
            }
        };
        let mut code = SampledCode::default();
        fill(&mut code);
        assert_eq!((code.ranges, code.counts.unplaced), (MOST_RANGES, 0));
        mapped_own(&mut code, own, 0);
        assert_eq!((code.ranges, code.counts.unplaced), (1, 0));
        fill(&mut code);
        mapped_own(&mut code, own, 2);
        assert_eq!((code.ranges, code.counts.unplaced), (MOST_RANGES, 2), "it was just looked");
        code.forked(own, gone, 5);
        assert_eq!((code.ranges, code.counts.unplaced), (MOST_RANGES - 1, 1 + MOST_RANGES as u64), "all, or nothing");
        code.looked = None;
        mapped_own(&mut code, own, 2);
        mapped_own(&mut code, own, 4);
        assert_eq!((code.ranges, code.processes.len()), (2, 1), "there was room for one");
    }

    /// Those who cannot be read are said in each file in which samples fall in their code.
    #[test]
    fn processes_that_cannot_be_read_are_counted_in_each_file() {
        let mut code = SampledCode::default();
        mapped(&mut code, 0..2, false);
        code.forked(8, 7, 1);
        for (pid, access) in [(7, Access::Refused), (8, Access::Of32Bit)] {
            code.processes.get_mut(&pid).unwrap().access = Some(access);
        }
        for _ in 0..2 {
            assert!(wanted(&mut code, 7, &[0, u64::MAX]).is_empty());
            assert_eq!(code.counts, SampledCounts::default(), "no sample fell in its code");
            for _ in 0..2 {
                assert_eq!((wanted(&mut code, 7, &[AT]), wanted(&mut code, 8, &[AT])), (vec![], vec![]));
                assert!(!code.read(7, Avma(AT), &mut [0; PAGE]));
            }
            assert_eq!(code.counts, SampledCounts { refused: 1, of_32_bit: 1, ..SampledCounts::default() });
            code.count_anew();
        }
    }

    #[test]
    fn fill_is_no_code() {
        let mut page = [0; PAGE];
        let parts = |page: &[u8; PAGE]| -> Vec<(u64, usize)> {
            parts_with_code(Avma(AT), page).map(|(at, part)| (at.0 - AT, part.len())).collect()
        };
        assert_eq!(parts(&page), []);
        page[..3].copy_from_slice(&[0x31, 0xc0, 0xc3]);
        page[40..42].copy_from_slice(&[0xc3, 0]);
        page[FILL + 41..FILL + 141].fill(NOP);
        page[PAGE - 1] = 0xc3;
        assert_eq!(parts(&page), [(0, 3), (40, 1), (41 + FILL as u64, 100), (PAGE as u64 - 1, 1)]);
        page.fill(NOP);
        assert_eq!(parts(&page), [(0, PAGE)]);
    }

    /// The memory of this process is there for anybody to read who may.
    #[test]
    fn pages_are_read_as_they_are() {
        let pid = std::process::id();
        let own = vec![7_u8; 3 * PAGE];
        let at = (own.as_ptr() as u64).next_multiple_of(PAGE_BYTES);
        let mut code = SampledCode { budget: 3, ..SampledCode::default() };
        code.mapped(pid, 1, Avma(at)..Avma(at + PAGE_BYTES), false);
        let mut page = [0; PAGE];
        assert!(code.read(pid, Avma(at), &mut page) && page == [7; PAGE]);
        assert!(!code.read(pid, Avma(at + PAGE_BYTES), &mut page), "nobody mapped that");
        code.mapped(pid, 1, Avma(0)..Avma(PAGE_BYTES), false);
        assert!(!code.read(pid, Avma(0), &mut page) && code.may_be_read(pid));
        assert_eq!((code.budget, code.counts), (1, SampledCounts::default()));
    }
}
