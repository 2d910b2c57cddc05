//! Where the trace of each thread is in a recording.
//!
//! The kernel says with a record (AUX) which part of an area a thread has filled, each time that it stops tracing the thread; `perf` copies the
//! areas into the recording (AUXTRACE). An area belongs to a CPU, or to a thread.

use std::collections::BTreeMap;

use perfdata::{Aux, Auxtrace, AuxtraceInfo};

/// `PERF_AUXTRACE_INTEL_PT`
const INTEL_PT: u32 = 1;
/// `INTEL_PT_SNAPSHOT_MODE` among the words of AUXTRACE_INFO (tools/perf/util/intel-pt.h).
const SNAPSHOT_MODE: usize = 8;
/// `PERF_AUX_FLAG_TRUNCATED` and `PERF_AUX_FLAG_PARTIAL`: what came next found no room, or there are gaps.
const INCOMPLETE: u64 = 1 | 4;

/// Whose area it is: a CPU's, or a thread's where it belongs to no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    Cpu(u32),
    Thread(u32),
}

/// Bytes of an area that are in the recording.
#[derive(Clone, Copy, Debug)]
struct Copied {
    /// Where in the area.
    offset: u64,
    size: u64,
    /// Where in the recording.
    at: u64,
}

/// What one thread filled from when it began to run until it stopped.
#[derive(Clone, Copy, Debug)]
struct Filled {
    pid: u32,
    tid: u32,
    time: u64,
    offset: u64,
    size: u64,
    is_truncated: bool,
}

/// All that a recording says of traces.
#[derive(Debug, Default)]
pub struct TraceParts {
    kind: Option<u32>,
    is_snapshot: bool,
    copied: BTreeMap<Area, Vec<Copied>>,
    filled: BTreeMap<Area, Vec<Filled>>,
    /// Bytes of areas that are not a thread's alone: all threads of the machine were traced.
    of_all_threads: u64,
    /// Places that `perf inject` could not decode.
    not_decoded_by_perf: u64,
}

/// Bytes of the trace of one thread, one after the other in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub area: Area,
    pub pid: u32,
    pub tid: u32,
    /// When the thread stopped to fill it, ns.
    pub time: u64,
    /// Where in the recording, and how many bytes.
    pub pieces: Vec<(u64, u64)>,
    /// Bytes of the area before it, or within it, are not in the recording or nobody's.
    pub has_gap: bool,
    /// There was no room for what came after it.
    pub is_truncated: bool,
}

impl TraceParts {
    /// Takes in what the traces are.
    pub(crate) fn info(&mut self, info: &AuxtraceInfo<'_>) {
        self.kind = Some(info.kind);
        self.is_snapshot = info.words.iter().nth(SNAPSHOT_MODE).is_some_and(|mode| mode != 0);
    }

    /// Takes in a copy of a part of an area; `at`: where its bytes are in the recording.
    pub(crate) fn copied(&mut self, copy: &Auxtrace, at: u64) {
        let area = if copy.cpu == u32::MAX { Area::Thread(copy.tid) } else { Area::Cpu(copy.cpu) };
        if copy.tid == u32::MAX {
            self.of_all_threads = self.of_all_threads.saturating_add(copy.size);
            return;
        }
        self.copied.entry(area).or_default().push(Copied { offset: copy.offset, size: copy.size, at });
    }

    /// Takes in that a thread has filled a part. Whose it is, is not known without these.
    pub(crate) fn filled(&mut self, aux: &Aux) {
        let id = &aux.sample_id;
        let (Some(pid), Some(tid), Some(time)) = (id.pid, id.tid, id.time) else { return };
        let is_truncated = aux.flags & INCOMPLETE != 0;
        let filled = Filled { pid, tid, time, offset: aux.aux_offset, size: aux.aux_size, is_truncated };
        if let Some(cpu) = id.cpu {
            self.filled.entry(Area::Cpu(cpu)).or_default().push(filled);
        }
        self.filled.entry(Area::Thread(tid)).or_default().push(filled);
    }

    /// Takes in that `perf inject` could not decode a place.
    pub(crate) fn not_decoded(&mut self) {
        self.not_decoded_by_perf += 1;
    }

    /// What is missing of what `perf inject` made of a trace.
    pub(super) fn lost_by_perf(&self) -> Option<String> {
        let places = match self.not_decoded_by_perf {
            0 => return None,
            1 => "1 place".to_owned(),
            places => format!("{places} places"),
        };
        Some(format!(
            "perf could not decode the processor trace in {places}: what ran there is missing (perf script --itrace=e says why)"
        ))
    }

    /// Whether there is a trace of any kind.
    pub(crate) fn is_there(&self) -> bool {
        self.kind.is_some()
    }

    /// Why its traces cannot be read; `None` if they can.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        match self.kind {
            Some(INTEL_PT) if self.is_snapshot => Some("it is a snapshot"),
            Some(INTEL_PT) if self.of_all_threads > 0 => Some("it is of all threads of the machine (-a, -C)"),
            Some(INTEL_PT) if self.copied.is_empty() => Some("it is in samples (--aux-sample), or there is none"),
            Some(INTEL_PT) => None,
            _ => Some("it is not of Intel PT"),
        }
    }

    /// The traces of all threads, by time. No byte is in two of them.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (area, copied) in &self.copied {
            let filled = self.filled.get(area).map_or(&[][..], Vec::as_slice);
            parts.extend(parts_of(*area, copied.clone(), filled.to_vec()));
        }
        parts.sort_by_key(|part| part.time);
        parts
    }
}

/// What is in the recording of each part of an area. Both follow each other in the area, as the hardware goes around in it; where what they
/// say overlaps, the first one counts.
fn parts_of(area: Area, mut copied: Vec<Copied>, mut filled: Vec<Filled>) -> Vec<Part> {
    copied.sort_by_key(|copy| copy.offset);
    filled.sort_by_key(|filled| filled.offset);
    let mut copies = copied.into_iter().peekable();
    let (mut parts, mut done) = (Vec::new(), 0_u64);
    for filled in filled {
        let (start, end) = (filled.offset.max(done), filled.offset.saturating_add(filled.size));
        let (mut pieces, mut at) = (Vec::new(), start);
        while let Some(copy) = copies.peek().copied().filter(|copy| at < end && copy.offset < end) {
            let copy_end = copy.offset.saturating_add(copy.size);
            let (from, to) = (copy.offset.max(at), copy_end.min(end));
            if from < to {
                pieces.push((copy.at.saturating_add(from - copy.offset), to - from));
                at = to;
            }
            if copy_end > end {
                break;
            }
            copies.next();
        }
        let there: u64 = pieces.iter().map(|(_, size)| size).sum();
        let has_gap = start > done || there < end.saturating_sub(start) || filled.offset < done;
        done = done.max(end);
        parts.push(Part {
            area,
            pid: filled.pid,
            tid: filled.tid,
            time: filled.time,
            pieces,
            has_gap,
            is_truncated: filled.is_truncated,
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(offset: u64, size: u64) -> Filled {
        Filled { pid: 7, tid: 7, time: offset, offset, size, is_truncated: false }
    }

    fn pieces(copied: &[(u64, u64, u64)], filled: Vec<Filled>) -> Vec<(Vec<(u64, u64)>, bool)> {
        let copied = copied.iter().map(|&(offset, size, at)| Copied { offset, size, at }).collect();
        parts_of(Area::Cpu(0), copied, filled).into_iter().map(|part| (part.pieces, part.has_gap)).collect()
    }

    #[test]
    fn parts_are_put_together_of_copies() {
        let found = pieces(&[(10, 10, 500), (0, 10, 100)], vec![filled(0, 4), filled(4, 12), filled(16, 4)]);
        let expected = [(vec![(100, 4)], false), (vec![(104, 6), (500, 6)], false), (vec![(506, 4)], false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_missing_or_nobodys_is_a_gap() {
        assert_eq!(pieces(&[(0, 4, 100)], vec![filled(0, 8)]), [(vec![(100, 4)], true)]);
        assert_eq!(
            pieces(&[(0, 16, 100)], vec![filled(0, 4), filled(8, 4)]),
            [(vec![(100, 4)], false), (vec![(108, 4)], true)]
        );
        assert_eq!(pieces(&[], vec![filled(0, 4)]), [(vec![], true)]);
    }

    /// However often records say the same bytes, each is read once.
    #[test]
    fn no_byte_is_in_two_parts() {
        let copied: Vec<(u64, u64, u64)> = (0..20_000).map(|at| (at % 7, 1 << 20, at)).collect();
        let found = pieces(&copied, (0..20_000).map(|at| filled(at % 5, 1 << 20)).collect());
        let bytes: u64 = found.iter().flat_map(|(pieces, _)| pieces).map(|(_, size)| size).sum();
        assert!(bytes <= (1 << 20) + 4, "{bytes}");
        let huge =
            pieces(&[(u64::MAX - 1, u64::MAX, u64::MAX)], vec![filled(u64::MAX - 1, u64::MAX), filled(0, u64::MAX)]);
        assert_eq!(huge.len(), 2);
    }
}
