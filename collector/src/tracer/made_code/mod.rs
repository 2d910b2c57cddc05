//! Code that is in no file: what bursts executed of it goes into the recording, once, and again where it has changed.
//!
//! ```text
//! agent: blocks that a burst executed -> slot --+
//! visit: blocks of anonymous memory ------------+-> pending, by time -> known already? -> records of the recording
//! /tmp/perf-PID.map, jit-PID.dump: along the way, and at the end --> names -> of what is known --> records at the end
//! ```

mod file_code;
mod known;
mod names;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use addresses::Avma;
use formats::made_code as format;
use formats::metadata::{MadeCodeMetadata, RECORD_TYPE};
use lookahead::ExecutedCode;

use crate::tracer::made_code::file_code::ProcessCode;
use crate::tracer::made_code::known::KnownCode;
use crate::tracer::made_code::names::{MOST_NAMES, Names, NamesRoom};

/// Bytes of code that a recording has at most,
const MOST: u64 = 64 << 20;
/// and bytes that wait to be written.
const MOST_PENDING: usize = 16 << 20;

/// The code of a recording that is in no file.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    processes: HashMap<u32, ProcessCode>,
    known: HashMap<u32, KnownCode>,
    names: HashMap<u32, Names>,
    names_room: NamesRoom,
    pending: Vec<Pending>,
    pending_bytes: usize,
    counts: Counts,
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
        self.names.remove(&pid);
    }

    /// Appends records of what is new since the last time, and reads the names that there are at `now`. All bursts of before are known by then.
    pub(crate) fn write(&mut self, records: &mut Vec<u8>, now: u64) {
        self.pending_bytes = 0;
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|of| of.time);
        let pids: BTreeSet<u32> = pending.iter().map(|of| of.pid).collect();
        for Pending { time, pid, code } in pending {
            let known = self.known.entry(pid).or_default();
            let mut pieces = Vec::new();
            let has_changed = has_changed(&code);
            for (at, bytes) in code.pieces() {
                if !has_changed && known.has(at, bytes) {
                    continue;
                }
                if self.counts.bytes + bytes.len() as u64 > MOST {
                    self.counts.left_out += 1;
                    continue;
                }
                known.put_at(time, at, bytes);
                self.counts.pieces += 1;
                self.counts.bytes += bytes.len() as u64;
                pieces.push((at.0, bytes));
            }
            append(&format::MadeCode::Executed { time, pid, pieces }, records);
        }
        pids.into_iter().for_each(|pid| self.read_names(pid, now, false));
    }

    fn read_names(&mut self, pid: u32, now: u64, is_end: bool) {
        if let Some(known) = self.known.get_mut(&pid) {
            self.names.entry(pid).or_default().read(pid, known, &mut self.names_room, now, is_end);
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

    /// Another file is about to begin, which is to have all code that is executed from now on.
    pub(crate) fn write_again(&mut self) {
        self.known.clear();
    }

    /// What was counted is said.
    pub(crate) fn count_anew(&mut self) {
        self.counts = Counts::default();
        self.names_room.left_out = 0;
    }

    /// What was written; `None` if there was no such code.
    pub(crate) fn metadata(&self) -> Option<MadeCodeMetadata> {
        let Counts { pieces, bytes, left_out, unplaced, names } = self.counts;
        let written = MadeCodeMetadata {
            pieces: Some(pieces),
            bytes: Some(bytes),
            left_out: Some(left_out),
            unplaced: Some(unplaced),
            names: Some(names),
            names_left_out: Some(self.names_room.left_out),
        };
        (pieces + left_out + unplaced > 0).then_some(written)
    }

    /// What is missing, in sentences.
    pub(crate) fn degradations(&self) -> impl Iterator<Item = String> {
        let names = self.names_room.left_out;
        let names = (names > 0).then(|| {
            format!("{names} names of code without a file found no room ({} MiB): it may have the name of what was there before, or none", MOST_NAMES >> 20)
        });
        let code = (self.counts.left_out > 0).then(|| {
            format!(
                "{} blocks of code without a file found no room in what a burst hands over, or in the recording ({} MiB): where they are new, they are \
                 unread",
                self.counts.left_out,
                MOST >> 20
            )
        });
        code.into_iter().chain(names)
    }
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

    fn code(pieces: &[(u64, &[u8])]) -> ExecutedCode {
        let mut code = ExecutedCode::default();
        pieces.iter().for_each(|(at, bytes)| code.push(Avma(*at), bytes));
        code
    }

    /// A record: time, and pieces.
    type Written = (u64, Vec<(u64, Vec<u8>)>);

    fn written(made: &mut MadeCode) -> Vec<Written> {
        let mut records = Vec::new();
        made.write(&mut records, 0);
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
    fn bursts_that_come_late_are_put_in_order() {
        let mut made = MadeCode::default();
        made.add(7, 20, code(&[(0x1000, &[2])]));
        made.add(7, 10, code(&[(0x1000, &[1])]));
        assert_eq!(written(&mut made), [(10, vec![(0x1000, vec![1])]), (20, vec![(0x1000, vec![2])])]);
        made.add(7, 30, code(&[(0x1000, &[2])]));
        assert_eq!(written(&mut made), []);
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

    #[test]
    fn what_finds_no_room_is_said() {
        let mut made = MadeCode::default();
        assert!(made.metadata().is_none() && made.degradations().next().is_none());
        made.counts.bytes = MOST - 2;
        made.add(7, 10, code(&[(0x1000, &[1, 2, 3]), (0x2000, &[4])]));
        assert_eq!(written(&mut made), [(10, vec![(0x2000, vec![4])])]);
        assert_eq!(made.metadata().unwrap().left_out, Some(1));
        assert!(made.degradations().next().unwrap().starts_with("1 blocks"));
    }
}
