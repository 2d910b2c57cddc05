//! Pages of code that is in no file, in which samples fell: which are to be read, and how many.
//!
//! ```text
//! records of mappings -> memory without a file, by process --+
//! samples: instruction pointers, call chains, branches ------+-> pages -> read, as many as the budget allows
//! ```

use std::collections::HashMap;
use std::ops::Range;

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
    /// Process and page, and when the first sample fell in it since it was last read. Its memory is used again.
    wanted: HashMap<(u32, Avma), u64>,
    /// What can be read now, in pages, and when that was reckoned, ns.
    budget: u64,
    reckoned: Option<u64>,
    /// Whether there is memory since this was last asked that was not there before.
    has_grown: bool,
    pub(crate) counts: SampledCounts,
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// Disjoint, by address.
    made: Vec<Range<u64>>,
    /// Whether its code can be read; `None` if nobody has tried.
    access: Option<Access>,
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
    /// A process has mapped executable memory, or made it executable.
    pub(crate) fn mapped(&mut self, pid: u32, range: Range<Avma>, is_of_file: bool) {
        let range = range.start.0..range.end.0;
        if range.is_empty() || is_of_file && !self.processes.contains_key(&pid) {
            return;
        }
        if self.ranges >= MOST_RANGES {
            self.forget_ended();
        }
        let process = self.processes.entry(pid).or_default();
        let before = process.made.len();
        // Or it was made executable again.
        let is_new = !is_of_file && !process.has(&range);
        if is_of_file {
            process.put_file(&range);
        } else if is_new && self.ranges < MOST_RANGES {
            process.put_made(range);
            self.has_grown = true;
        } else if is_new {
            self.counts.unplaced += 1;
        }
        self.ranges = self.ranges + process.made.len() - before;
        if process.made.is_empty() {
            self.processes.remove(&pid);
        }
    }

    /// A process is new: it has what its parent has.
    pub(crate) fn forked(&mut self, pid: u32, parent: u32) {
        self.forget(pid);
        if let Some(process) = self.processes.get(&parent) {
            let made = process.made.clone();
            made.into_iter().for_each(|range| self.mapped(pid, Avma(range.start)..Avma(range.end), false));
        }
    }

    /// A process has another program, or has ended.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.ranges -= self.processes.remove(&pid).map_or(0, |process| process.made.len());
    }

    /// Processes whose end was not told.
    fn forget_ended(&mut self) {
        self.processes.retain(|pid, _| is_running(*pid));
        self.ranges = self.processes.values().map(|process| process.made.len()).sum();
    }

    /// Whether a process has code without a file.
    pub(crate) fn has_code(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid) && self.may_be_read(pid)
    }

    /// Whether nothing is known to be in the way of reading it.
    pub(crate) fn may_be_read(&self, pid: u32) -> bool {
        let access = self.processes.get(&pid).and_then(|process| process.access);
        !matches!(access, Some(Access::Refused | Access::Of32Bit))
    }

    /// Words of a sample of a process at `time`, of which some may be addresses of code. One that only looks so costs the copy of a page.
    pub(crate) fn see(&mut self, pid: u32, time: u64, words: impl Iterator<Item = u64>) {
        let Self { processes, wanted, counts, .. } = self;
        let Some(process) = processes.get(&pid) else { return };
        let (Some(first), Some(last)) = (process.made.first(), process.made.last()) else { return };
        let (all, mut newest) = (first.start..last.end, None);
        for word in words.filter(|word| all.contains(word)) {
            let page = Avma(word - word % PAGE_BYTES);
            // Words of a sample are near each other.
            if newest == Some(page) || !holds(&process.made, word) {
                continue;
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
            self.counts.of_32_bit += 1;
        }
        if matches!(process.access, Some(Access::Refused | Access::Of32Bit)) {
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
                self.counts.refused += 1;
                false
            }
            Err(Errno::ESRCH) => {
                self.forget(pid);
                false
            }
            _ => false,
        }
    }

    /// Whether processes have memory for code that they did not have when this was last asked.
    pub(crate) fn take_has_grown(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
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
        code.mapped(7, Avma(AT + pages.start * PAGE_BYTES)..Avma(AT + pages.end * PAGE_BYTES), is_of_file);
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
        assert!(!code.has_code(7), "processes without such memory are not kept");
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
        code.forked(8, 7);
        mapped(&mut code, 4..5, true);
        assert_eq!((wanted(&mut code, 7, &each).len(), wanted(&mut code, 8, &each).len(), code.ranges), (9, 10, 3));
        code.forget(7);
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
        code.mapped(pid, Avma(at)..Avma(at + PAGE_BYTES), false);
        let mut page = [0; PAGE];
        assert!(code.read(pid, Avma(at), &mut page) && page == [7; PAGE]);
        assert!(!code.read(pid, Avma(at + PAGE_BYTES), &mut page), "nobody mapped that");
        code.mapped(pid, Avma(0)..Avma(PAGE_BYTES), false);
        assert!(!code.read(pid, Avma(0), &mut page) && code.has_code(pid));
        assert_eq!((code.budget, code.counts), (1, SampledCounts::default()));
    }
}
