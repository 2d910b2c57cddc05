//! Code that is in no file: what bursts executed of it, and the pages in which samples fell, go into the recording, once, and again where
//! they have changed.
//!
//! ```text
//! agent: blocks that a burst executed -> slot --+
//! visit: blocks of anonymous memory ------------+-> pending, by time -> known already? -> records of the recording
//! samples: pages of anonymous memory, read after that --------------------^
//! /tmp/perf-PID.map, jit-PID.dump: along the way, and at the end --> names -> of what is known --> records at the end
//! ```

mod file_code;
mod known;
mod names;
mod sampled;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use addresses::Avma;
use formats::made_code as format;
use formats::metadata::{MadeCodeMetadata, RECORD_TYPE};
use lookahead::{ExecutedCode, PAGE};

use crate::sys::Mounts;
use crate::sys::process::is_running;
use crate::tracer::made_code::file_code::ProcessCode;
use crate::tracer::made_code::known::{KnownCode, in_chunks};
use crate::tracer::made_code::names::{MOST_NAMES, Names, NamesRoom};
use crate::tracer::made_code::sampled::{SampledCode, SampledCounts, SampledPage, parts_with_code};

/// Bytes of code that a file of a recording has at most,
const MOST: u64 = 64 << 20;
/// of which a piece takes so many besides its own: its place takes room, too, in the file and in memory.
const PIECE: u64 = 64;
/// Bytes that wait to be written.
const MOST_PENDING: usize = 16 << 20;

/// The code of a recording that is in no file.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    processes: HashMap<u32, ProcessCode>,
    known: HashMap<u32, KnownCode>,
    times: HashMap<u32, Times>,
    pub(crate) sampled: SampledCode,
    /// Memory for the pages of a round.
    pages: Vec<SampledPage>,
    /// Whether there was new memory for code, or pages brought something new, when they were last read.
    is_new: bool,
    names: HashMap<u32, Names>,
    names_room: NamesRoom,
    mounts: Mounts,
    pending: Vec<Pending>,
    pending_bytes: usize,
    room: Room,
    counts: Counts,
}

/// The room for code in this file.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    used: u64,
    /// Whether a piece found none: no page is read any more.
    is_full: bool,
}

/// When code of a process was seen, ns.
#[derive(Clone, Copy, Debug)]
struct Times {
    first: u64,
    last: u64,
    /// Last with other bytes than before; 0 if never.
    changed: u64,
}

/// What a burst executed.
#[derive(Debug)]
struct Pending {
    time: u64,
    pid: u32,
    code: ExecutedCode,
}

/// What was written, and what was not.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    pieces: u64,
    bytes: u64,
    /// Pieces for which there was no room.
    left_out: u64,
    /// Pieces of processes that had ended before anybody knew what they had mapped.
    unplaced: u64,
    names: u64,
}

impl MadeCode {
    /// A burst of an agent executed this code, some of which may be of files, at `time`; `left_out` pieces found no room in its slot. `publish` tells
    /// agents of the process where it has code of files.
    pub(crate) fn add_of_agent(
        &mut self,
        (pid, time): (u32, u64),
        code: &ExecutedCode,
        left_out: u64,
        now: u64,
        mut publish: impl FnMut(u32, &[Range<Avma>]),
    ) {
        let process = self.processes.entry(pid).or_default();
        if process.is_outdated(code.pieces().map(|(at, _)| at), now) && process.read(pid, now) {
            // Until then its slots are filled by code of files.
            publish(pid, process.of_files());
        } else {
            self.counts.left_out += left_out;
        }
        if !process.is_known() {
            self.counts.unplaced += code.pieces().count() as u64;
            return;
        }
        let mut made = ExecutedCode::default();
        for (at, bytes) in code.pieces().filter(|(at, _)| !process.is_of_file(*at)) {
            made.push(at, bytes);
        }
        self.add(pid, time, made);
    }

    /// A burst executed this code, which is in no file, at `time`.
    pub(crate) fn add(&mut self, pid: u32, time: u64, code: ExecutedCode) {
        if code.is_empty() {
            return;
        }
        if self.pending_bytes + code.size() > MOST_PENDING {
            self.counts.left_out += code.pieces().count() as u64;
            return;
        }
        self.pending_bytes += code.size();
        self.pending.push(Pending { time, pid, code });
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// A process has another program: nothing of what it had is there any more.
    pub(crate) fn begins_anew(&mut self, pid: u32) {
        self.processes.remove(&pid);
        self.known.remove(&pid);
        self.times.remove(&pid);
        self.forget_names(pid);
    }

    fn forget_names(&mut self, pid: u32) {
        if let Some(names) = self.names.remove(&pid) {
            names.forget(&mut self.names_room);
        }
    }

    /// A record says that a process has had another program since `time`, or is another process. A tracer may have known that before.
    pub(crate) fn began_anew_at(&mut self, pid: u32, time: u64) {
        if self.times.get(&pid).is_some_and(|times| times.first < time) {
            self.begins_anew(pid);
        }
    }

    /// Whether there was new memory for code, or pages brought something new, when they were last read: more is to be read soon.
    pub(crate) fn is_being_made(&self) -> bool {
        self.is_new
    }

    /// Appends records of what is new since the last time, and reads the names that there are at `now`. All bursts and samples of before are known
    /// by then.
    pub(crate) fn write(&mut self, records: &mut Vec<u8>, now: u64) {
        let mut pids = BTreeSet::new();
        self.write_executed(&mut pids, records);
        self.write_sampled(now, &mut pids, records);
        pids.into_iter().for_each(|pid| self.read_names(pid, now, false));
    }

    fn write_executed(&mut self, pids: &mut BTreeSet<u32>, records: &mut Vec<u8>) {
        self.pending_bytes = 0;
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|of| of.time);
        for Pending { time, pid, code } in pending {
            pids.insert(pid);
            let known = self.known.entry(pid).or_default();
            let mut pieces = Vec::new();
            let has_changed = has_changed(&code);
            let mut differs = has_changed;
            for (at, bytes) in code.pieces() {
                // A burst that comes late, for its thread was in a system call: what is known now may not have been there then.
                let is_late = known.is_newer(time, at, bytes);
                if !has_changed && !is_late && known.has(at, bytes) {
                    continue;
                }
                if !self.room.take(bytes) {
                    self.counts.left_out += 1;
                    continue;
                }
                let contradicts = known.contradicts(at, bytes);
                differs |= contradicts;
                if !(is_late && contradicts) {
                    known.put_at(time, at, bytes);
                }
                self.counts.pieces += 1;
                self.counts.bytes += bytes.len() as u64;
                pieces.push((at.0, bytes));
            }
            extend(&mut self.times, pid, time, differs);
            append(&format::MadeCode::Executed { time, pid, pieces }, records);
        }
    }

    /// Reads the pages in which samples fell, and writes what is new in them; then also those beside, for functions begin and end there. What
    /// bursts executed is certain: where a page says otherwise, it has changed since the last of them. Of processes that had bursts (`pids`) the
    /// next ones say when that was.
    fn write_sampled(&mut self, now: u64, pids: &mut BTreeSet<u32>, records: &mut Vec<u8>) {
        self.is_new = self.sampled.end_round() && !self.room.is_full;
        if self.room.is_full {
            self.sampled.want_nothing();
        }
        if self.sampled.is_idle() {
            return;
        }
        let mut pages = std::mem::take(&mut self.pages);
        let known = |pid, at: Avma| self.known.get(&pid).is_some_and(|known| known.touches(&(at..beside(at, 1))));
        self.sampled.take(now, known, &mut pages);
        let mut page = [0; PAGE];
        let has_bursts = pids.clone();
        for SampledPage { is_known, time, pid, at } in pages.drain(..) {
            if self.room.is_full {
                break;
            }
            match self.write_page((pid, time), at, has_bursts.contains(&pid), &mut page, records) {
                Some(0) => {}
                Some(_) => {
                    pids.insert(pid);
                    for at in [beside(at, -1), beside(at, 1)] {
                        if self.sampled.may_read() && !self.room.is_full {
                            self.write_page((pid, time), at, has_bursts.contains(&pid), &mut page, records);
                        }
                    }
                }
                None if !is_known && self.sampled.may_be_read(pid) => self.sampled.counts.gone += 1,
                None => {}
            }
        }
        self.pages = pages;
    }

    /// Reads a page, and writes what is new in it, or if it `has_bursts` what was not known. Returns how many pieces that were; `None` if it cannot
    /// be read.
    fn write_page(
        &mut self,
        (pid, time): (u32, u64),
        at: Avma,
        has_bursts: bool,
        page: &mut [u8; PAGE],
        records: &mut Vec<u8>,
    ) -> Option<usize> {
        if !self.sampled.read(pid, at, page) {
            return None;
        }
        let known = self.known.entry(pid).or_default();
        let (mut pieces, mut has_changed) = (Vec::new(), false);
        for (at, bytes) in parts_with_code(at, page).flat_map(|(at, part)| in_chunks(at, part)) {
            let differs = known.contradicts(at, bytes);
            if known.has(at, bytes) || differs && has_bursts {
                continue;
            }
            if !self.room.take(bytes) {
                self.counts.left_out += 1;
                continue;
            }
            has_changed |= differs;
            self.counts.pieces += 1;
            self.counts.bytes += bytes.len() as u64;
            pieces.push((at.0, bytes));
        }
        let count = pieces.len();
        if count > 0 {
            // The bytes are those after the last change, whenever the sample was.
            let times = self.times.get(&pid);
            let after = times.map_or(0, |times| if has_changed { times.last.saturating_add(1) } else { times.changed });
            let time = time.max(after);
            pieces.iter().for_each(|(at, bytes)| known.put_at(time, Avma(*at), bytes));
            extend(&mut self.times, pid, time, has_changed);
            append(&format::MadeCode::Executed { time, pid, pieces }, records);
            self.is_new = true;
        }
        Some(count)
    }

    fn read_names(&mut self, pid: u32, now: u64, is_end: bool) {
        if let Some(known) = self.known.get_mut(&pid) {
            self.names.entry(pid).or_default().read(pid, known, &mut self.names_room, &self.mounts, now, is_end);
        }
    }

    /// Appends records of the names of what was written, as processes have left them in files at `now`.
    pub(crate) fn write_names(&mut self, records: &mut Vec<u8>, now: u64) {
        let pids: BTreeSet<u32> = self.known.keys().copied().collect();
        for pid in pids {
            self.read_names(pid, now, true);
            let (Some(known), Some(names)) = (self.known.get(&pid), self.names.get(&pid)) else { continue };
            let names = names.of_code(known);
            self.counts.names += names.len() as u64;
            for names in names.chunk_by(|(one, ..), (next, ..)| one == next) {
                let since = names.first().map_or(0, |(since, ..)| *since);
                let name =
                    |(_, range, name): &(u64, Range<Avma>, _)| (range.start.0, range.end.0 - range.start.0, *name);
                append(&format::MadeCode::Named { since, pid, names: names.iter().map(name).collect() }, records);
            }
        }
    }

    /// Another file is about to begin, which is to have all code that is executed from now on. Names were written: those of processes that have
    /// ended are not needed any more.
    pub(crate) fn write_again(&mut self) {
        self.known.clear();
        self.times.clear();
        let ended: Vec<u32> = self.names.keys().copied().filter(|pid| !is_running(*pid)).collect();
        ended.into_iter().for_each(|pid| self.forget_names(pid));
        self.room = Room::default();
    }

    /// What was counted is said.
    pub(crate) fn count_anew(&mut self) {
        self.counts = Counts::default();
        self.names_room.left_out = 0;
        self.sampled.count_anew();
    }

    /// What was written; `None` if there was no such code.
    pub(crate) fn metadata(&self) -> Option<MadeCodeMetadata> {
        let Counts { pieces, bytes, left_out, unplaced, names } = self.counts;
        let pages = self.sampled.counts;
        let written = MadeCodeMetadata {
            pieces: Some(pieces),
            bytes: Some(bytes),
            left_out: Some(left_out),
            unplaced: Some(unplaced),
            names: Some(names),
            names_left_out: Some(self.names_room.left_out),
            pages_left_out: Some(pages.left_out),
            pages_gone: Some(pages.gone),
            processes_refused: Some(pages.refused),
            processes_of_32_bit: Some(pages.of_32_bit),
            mappings_left_out: Some(pages.unplaced),
        };
        (pieces + left_out + unplaced > 0 || pages != SampledCounts::default()).then_some(written)
    }

    /// What is missing, in sentences.
    pub(crate) fn degradations(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.counts.left_out > 0 {
            sentences.push(format!(
                "{} blocks of code without a file found no room in what a burst hands over, or in the recording ({} MiB: once they are full, pages \
                 in which samples fall are not read any more): where they are new, they are unread",
                self.counts.left_out,
                MOST >> 20
            ));
        }
        if self.names_room.left_out > 0 {
            sentences.push(format!(
                "{} names of code without a file found no room ({} MiB): it may have the name of what was there before, or none",
                self.names_room.left_out,
                MOST_NAMES >> 20
            ));
        }
        sentences.extend(self.sampled.counts.sentences());
        sentences
    }
}

impl Room {
    /// Whether there is room for a piece, which takes it.
    fn take(&mut self, piece: &[u8]) -> bool {
        let used = self.used + PIECE + piece.len() as u64;
        let fits = used <= MOST;
        if fits {
            self.used = used;
        } else {
            self.is_full = true;
        }
        fits
    }
}

/// Code of a process is known of this time, too.
fn extend(times: &mut HashMap<u32, Times>, pid: u32, time: u64, has_changed: bool) {
    let times = times.entry(pid).or_insert(Times { first: time, last: time, changed: 0 });
    (times.first, times.last) = (times.first.min(time), times.last.max(time));
    if has_changed {
        times.changed = times.changed.max(time);
    }
}

/// The page so many pages after another one.
fn beside(at: Avma, pages: i64) -> Avma {
    Avma(at.0.wrapping_add_signed(pages * PAGE as i64))
}

/// Whether code was rewritten in the middle of a burst, which goes on after system calls: then all of it is written, for readers to see it.
fn has_changed(code: &ExecutedCode) -> bool {
    let mut executed = KnownCode::default();
    code.pieces().any(|(at, bytes)| {
        let differs = executed.contradicts(at, bytes);
        executed.put(at, bytes);
        differs
    })
}

fn append(code: &format::MadeCode<'_>, records: &mut Vec<u8>) {
    for body in code.to_record_bodies() {
        let size = body.len() as u16 + 8;
        records.extend(RECORD_TYPE.to_le_bytes());
        records.extend(0_u16.to_le_bytes());
        records.extend(size.to_le_bytes());
        records.extend(body);
    }
}

#[cfg(test)]
mod tests {
    use perfdata::Avma;

    use super::*;
    use crate::tracer::shared::monotonic_time;

    fn code(pieces: &[(u64, &[u8])]) -> ExecutedCode {
        let mut code = ExecutedCode::default();
        pieces.iter().for_each(|(at, bytes)| code.push(Avma(*at), bytes));
        code
    }

    /// A record: time, and pieces.
    type Written = (u64, Vec<(u64, Vec<u8>)>);

    fn written(made: &mut MadeCode) -> Vec<Written> {
        let mut records = Vec::new();
        made.write(&mut records, monotonic_time());
        let mut rest = records.as_slice();
        let mut all = Vec::new();
        while let Some((header, _)) = rest.split_first_chunk::<8>() {
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            let Some(format::MadeCode::Executed { time, pieces, .. }) =
                format::MadeCode::of_record(RECORD_TYPE, &rest[8..size])
            else {
                panic!("another record")
            };
            all.push((time, pieces.into_iter().map(|(at, bytes)| (at, bytes.to_vec())).collect()));
            rest = &rest[size..];
        }
        all
    }

    #[test]
    fn code_is_written_once_and_again_when_it_has_changed() {
        let mut made = MadeCode::default();
        made.add(7, 10, code(&[(0x1000, &[1, 2, 3]), (0x2000, &[4])]));
        made.add(7, 20, code(&[(0x1000, &[1, 2, 3])]));
        made.add(8, 20, code(&[(0x1000, &[1, 2, 3])]));
        let first = (10, vec![(0x1000, vec![1, 2, 3]), (0x2000, vec![4])]);
        assert_eq!(
            written(&mut made),
            [first, (20, vec![(0x1000, vec![1, 2, 3])])],
            "another process' is written, too"
        );
        made.add(7, 30, code(&[(0x1001, &[2])]));
        assert_eq!(written(&mut made), [], "a part of it");
        made.add(7, 40, code(&[(0x1001, &[9])]));
        made.add(7, 50, code(&[(0x1000, &[1, 2, 3])]));
        assert_eq!(written(&mut made), [(40, vec![(0x1001, vec![9])]), (50, vec![(0x1000, vec![1, 2, 3])])]);
    }

    #[test]
    fn another_file_has_the_code_again() {
        let mut made = MadeCode::default();
        for time in [10, 20] {
            made.add(7, time, code(&[(0x1000, &[1, 2, 3])]));
            assert_eq!(written(&mut made), [(time, vec![(0x1000, vec![1, 2, 3])])]);
            made.write_again();
        }
        assert_eq!(made.metadata().unwrap().pieces, Some(2));
        made.count_anew();
        assert!(made.metadata().is_none());
    }

    #[test]
    fn names_that_nobody_needs_give_back_their_room() {
        let mut made = MadeCode::default();
        let mut program = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = program.id();
        let map = format!("/tmp/perf-{pid}.map");
        std::fs::write(&map, "1000 10 a\n").unwrap();
        let mut time = 0;
        let mut taken = |made: &mut MadeCode| {
            time += 10;
            made.add(pid, time, code(&[(0x1000, &[1, 2, 3])]));
            written(made);
            made.names_room.taken
        };
        let first = taken(&mut made);
        made.begins_anew(pid);
        let after = made.names_room.taken;
        let again = taken(&mut made);
        let room_in_next_file = |made: &mut MadeCode| {
            made.write_names(&mut Vec::new(), monotonic_time());
            made.write_again();
            made.names_room.taken
        };
        let runs = room_in_next_file(&mut made);
        program.kill().unwrap();
        program.wait().unwrap();
        let ended = room_in_next_file(&mut made);
        std::fs::remove_file(map).unwrap();
        assert!(first > 0);
        assert_eq!([after, again, runs, ended], [0, first, first, 0]);
    }

    #[test]
    fn bursts_that_come_late_are_put_in_order() {
        let mut made = MadeCode::default();
        made.add(7, 20, code(&[(0x1000, &[2])]));
        made.add(7, 10, code(&[(0x1000, &[1])]));
        assert_eq!(written(&mut made), [(10, vec![(0x1000, vec![1])]), (20, vec![(0x1000, vec![2])])]);
        made.add(7, 30, code(&[(0x1000, &[2])]));
        assert_eq!(written(&mut made), []);
    }

    /// What they executed was there at their time, whatever was written of later ones before.
    #[test]
    fn bursts_that_come_late_are_written_though_later_ones_were() {
        let mut made = MadeCode::default();
        made.add(7, 20, code(&[(0x1000, &[2]), (0x2000, &[5])]));
        assert_eq!(written(&mut made).len(), 1);
        made.add(7, 10, code(&[(0x1000, &[1]), (0x2000, &[5]), (0x3000, &[6])]));
        let all = vec![(0x1000, vec![1]), (0x2000, vec![5]), (0x3000, vec![6])];
        assert_eq!(written(&mut made), [(10, all)]);
        made.add(7, 30, code(&[(0x1000, &[2]), (0x2000, &[5]), (0x3000, &[6])]));
        assert_eq!(written(&mut made), [], "as it was last");
        made.add(7, 40, code(&[(0x1000, &[1])]));
        made.add(7, 25, code(&[(0x2000, &[5])]));
        assert_eq!(written(&mut made), [(40, vec![(0x1000, vec![1])])], "known since 20");
    }

    #[test]
    fn a_burst_in_which_code_changes_is_written_with_both() {
        let mut made = MadeCode::default();
        made.add(7, 10, code(&[(0x1000, &[1])]));
        made.add(7, 20, code(&[(0x1000, &[1]), (0x1000, &[2])]));
        made.add(7, 30, code(&[(0x1000, &[2])]));
        let both = vec![(0x1000, vec![1]), (0x1000, vec![2])];
        assert_eq!(written(&mut made), [(10, vec![(0x1000, vec![1])]), (20, both)]);
    }

    /// Three pages of this process, which are its code for once, and where the first begins.
    fn own_pages() -> (Vec<u8>, usize, Avma) {
        let memory = vec![0; 4 * PAGE];
        let first = (memory.as_ptr() as usize).next_multiple_of(PAGE);
        let offset = first - memory.as_ptr() as usize;
        (memory, offset, Avma(first as u64))
    }

    #[test]
    fn a_page_in_which_samples_fall_is_written_once_and_what_changes_in_it_again() {
        let pid = std::process::id();
        let (mut memory, offset, at) = own_pages();
        memory[offset..offset + 3].copy_from_slice(&[1, 2, 3]);
        let mut made = MadeCode::default();
        made.sampled.mapped(pid, 1, at..Avma(at.0 + 3 * PAGE as u64), false);
        let sampled = |made: &mut MadeCode, time, page: u64| {
            made.sampled.see(pid, time, [5, at.0 + page * PAGE as u64 + 1, u64::MAX].into_iter());
            written(made)
        };
        assert_eq!(sampled(&mut made, 10, 0), [(10, vec![(at.0, vec![1, 2, 3])])], "without what is no code");
        assert!(made.is_being_made());
        assert_eq!(sampled(&mut made, 20, 0), []);
        assert!(!made.is_being_made());
        // Beside it is new code, which is read once the page itself has changed, or a sample falls in it.
        memory[offset + PAGE] = 7;
        assert_eq!(sampled(&mut made, 30, 0), []);
        memory[offset + 300] = 4;
        let both = [(15, vec![(at.0 + 300, vec![4])]), (15, vec![(at.0 + PAGE as u64, vec![7])])];
        assert_eq!(sampled(&mut made, 15, 0), both, "nothing that was known has changed");
        memory[offset] = 9;
        assert_eq!(sampled(&mut made, 12, 0), [(16, vec![(at.0, vec![9, 2, 3])])], "it has changed since");
        let metadata = made.metadata().unwrap();
        assert_eq!((metadata.pieces, metadata.bytes, metadata.pages_gone), (Some(4), Some(8), Some(0)));
    }

    #[test]
    fn what_a_burst_executed_is_in_no_page_again() {
        let pid = std::process::id();
        let (mut memory, offset, at) = own_pages();
        memory[offset..offset + 3].copy_from_slice(&[1, 2, 3]);
        let mut made = MadeCode::default();
        made.sampled.mapped(pid, 1, at..Avma(at.0 + PAGE as u64), false);
        made.sampled.see(pid, 10, [at.0].into_iter());
        made.add(pid, 20, code(&[(at.0, &[1, 2, 3])]));
        assert_eq!(written(&mut made), [(20, vec![(at.0, vec![1, 2, 3])])]);
        made.sampled.see(pid, 30, [at.0].into_iter());
        made.add(pid, 40, code(&[(at.0, &[1, 5])]));
        assert_eq!(written(&mut made), [(40, vec![(at.0, vec![1, 5])])], "the next burst says when it changed");
        made.sampled.see(pid, 45, [at.0].into_iter());
        assert_eq!(written(&mut made), [(45, vec![(at.0, vec![1, 2, 3])])], "there was none");
        memory[offset + 300] = 4;
        made.sampled.see(pid, 42, [at.0].into_iter());
        assert_eq!(written(&mut made), [(45, vec![(at.0 + 300, vec![4])])], "it is read after the change at 45");
        // Another program.
        made.began_anew_at(pid, 20);
        made.sampled.see(pid, 50, [at.0].into_iter());
        assert_eq!(written(&mut made), [], "all that is known is of this one");
        made.began_anew_at(pid, 60);
        made.sampled.see(pid, 70, [at.0].into_iter());
        assert_eq!(written(&mut made).len(), 1);
    }

    #[test]
    fn pages_of_processes_that_have_ended_are_counted() {
        let mut made = MadeCode::default();
        let pid = 0x3fff_fff0;
        made.sampled.mapped(pid, 1, Avma(0x1000)..Avma(0x3000), false);
        made.sampled.see(pid, 10, [0x1000, 0x2000].into_iter());
        assert_eq!(written(&mut made), []);
        assert_eq!(made.metadata().unwrap().pages_gone, Some(2));
        assert!(made.degradations()[0].starts_with("2 pages of code without a file"), "{:?}", made.degradations());
        made.sampled.see(pid, 20, [0x1000].into_iter());
        assert!(made.sampled.is_idle(), "it is forgotten");
    }

    #[test]
    fn what_finds_no_room_is_said() {
        let mut made = MadeCode::default();
        assert!(made.metadata().is_none() && made.degradations().is_empty());
        made.room.used = MOST - PIECE - 2;
        made.add(7, 10, code(&[(0x1000, &[1, 2, 3]), (0x2000, &[4])]));
        assert_eq!(written(&mut made), [(10, vec![(0x2000, vec![4])])]);
        assert_eq!(made.metadata().unwrap().left_out, Some(1));
        assert!(made.degradations()[0].starts_with("1 blocks"));
    }

    /// Whoever makes pieces of one byte does not get more memory than others.
    #[test]
    fn each_piece_takes_room_of_its_own() {
        let mut made = MadeCode::default();
        made.room.used = MOST - 3 * (PIECE + 1);
        made.add(7, 10, code(&[(0x1000, &[1]), (0x2000, &[2]), (0x3000, &[3]), (0x4000, &[4])]));
        assert_eq!(written(&mut made), [(10, vec![(0x1000, vec![1]), (0x2000, vec![2]), (0x3000, vec![3])])]);
    }

    #[test]
    fn pages_are_read_until_there_is_no_room() {
        let pid = std::process::id();
        let (mut memory, offset, at) = own_pages();
        for piece in [0, 300, 600, PAGE, 2 * PAGE] {
            memory[offset + piece] = 1;
        }
        let mut made = MadeCode::default();
        made.sampled.mapped(pid, 1, at..Avma(at.0 + 3 * PAGE as u64), false);
        let sampled = |made: &mut MadeCode, pages: &[u64]| {
            let words = pages.iter().map(|page| at.0 + page * PAGE as u64);
            made.sampled.see(pid, 10, words);
            let pieces = written(made).into_iter().flat_map(|(_, pieces)| pieces);
            pieces.map(|(of, _)| of - at.0).collect::<Vec<_>>()
        };
        made.room.used = MOST - PIECE - 1;
        assert_eq!(sampled(&mut made, &[0, 2]), [0]);
        assert_eq!(made.metadata().unwrap().left_out, Some(2), "those of the page that was read");
        assert!(sampled(&mut made, &[0, 1, 2]).is_empty());
        assert!(!made.is_being_made() && made.sampled.is_idle());
        assert_eq!((made.metadata().unwrap().left_out, made.metadata().unwrap().pages_gone), (Some(2), Some(0)));
        // Another file.
        made.write_again();
        made.count_anew();
        assert_eq!(sampled(&mut made, &[1]), [PAGE as u64, 0, 300, 600, 2 * PAGE as u64]);
        assert_eq!(made.metadata().unwrap().left_out, Some(0));
    }
}
