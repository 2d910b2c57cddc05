//! Code that is in no file: what bursts executed of it goes into the recording, once, and again where it has changed.
//!
//! ```text
//! agent: blocks that a burst executed -> slot --+
//! visit: blocks of anonymous memory ------------+-> pending, by time -> known already? -> records of the recording
//! the end: /tmp/perf-PID.map, jit-PID.dump: names of what is known -----------------------> records
//! ```

mod file_code;
mod known;
mod names;

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use addresses::Avma;
use formats::made_code as format;
use formats::metadata::{MadeCodeMetadata, RECORD_TYPE};
use lookahead::ExecutedCode;

use crate::tracer::made_code::file_code::ProcessCode;
use crate::tracer::made_code::known::KnownCode;
use crate::tracer::made_code::names::{Names, mapped_dump};

/// Bytes of code that a recording has at most,
const MOST: u64 = 64 << 20;
/// and bytes that wait to be written.
const MOST_PENDING: usize = 16 << 20;

/// The code of a recording that is in no file.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    processes: HashMap<u32, ProcessCode>,
    known: HashMap<u32, KnownCode>,
    /// Of processes that have mapped a jitdump.
    dumps: HashMap<u32, PathBuf>,
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
        self.dumps.remove(&pid);
    }

    /// Appends records of what is new since the last time. All bursts of before are known by now.
    pub(crate) fn write(&mut self, records: &mut Vec<u8>) {
        self.pending_bytes = 0;
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|of| of.time);
        for Pending { time, pid, code } in pending {
            if !self.known.contains_key(&pid) {
                self.dumps.extend(mapped_dump(pid).map(|dump| (pid, dump)));
            }
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
                known.put(at, bytes);
                self.counts.pieces += 1;
                self.counts.bytes += bytes.len() as u64;
                pieces.push((at.0, bytes));
            }
            append(&format::MadeCode::Executed { time, pid, pieces }, records);
        }
    }

    /// Appends records of the names of what was written, as processes have left them in files.
    pub(crate) fn write_names(&mut self, records: &mut Vec<u8>) {
        let mut pids: Vec<u32> = self.known.keys().copied().collect();
        pids.sort_unstable();
        for pid in pids {
            let Some(known) = self.known.get(&pid) else { continue };
            let names = Names::of(pid, self.dumps.get(&pid).map(PathBuf::as_path), known);
            let names = names.iter().map(|(range, name)| (range.start.0, range.end.0 - range.start.0, name)).collect();
            let named = format::MadeCode::Named { pid, names };
            if let format::MadeCode::Named { names, .. } = &named {
                self.counts.names += names.len() as u64;
            }
            append(&named, records);
        }
    }

    /// Another file is about to begin, which is to have all code that is executed from now on.
    pub(crate) fn write_again(&mut self) {
        self.known.clear();
    }

    /// What was counted is said.
    pub(crate) fn count_anew(&mut self) {
        self.counts = Counts::default();
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
        };
        (pieces + left_out + unplaced > 0).then_some(written)
    }

    /// What is missing, in sentences.
    pub(crate) fn degradations(&self) -> Option<String> {
        (self.counts.left_out > 0).then(|| {
            format!(
                "{} blocks of code without a file found no room in what a burst hands over, or in the recording ({} MiB): where they are new, they are \
                 unread",
                self.counts.left_out,
                MOST >> 20
            )
        })
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
        made.write(&mut records);
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
        assert!(made.metadata().is_none() && made.degradations().is_none());
        made.counts.bytes = MOST - 2;
        made.add(7, 10, code(&[(0x1000, &[1, 2, 3]), (0x2000, &[4])]));
        assert_eq!(written(&mut made), [(10, vec![(0x2000, vec![4])])]);
        assert_eq!(made.metadata().unwrap().left_out, Some(1));
        assert!(made.degradations().unwrap().starts_with("1 blocks"));
    }
}
