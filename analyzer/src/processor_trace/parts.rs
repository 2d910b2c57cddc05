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
enum Area {
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
    is_incomplete: bool,
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
    pub pid: u32,
    pub tid: u32,
    /// When the thread stopped to fill it, ns.
    pub time: u64,
    /// Where in the recording, and how many bytes.
    pub pieces: Vec<(u64, u64)>,
    /// Some of it is not there, or what came after it.
    pub is_incomplete: bool,
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
            self.of_all_threads += copy.size;
            return;
        }
        self.copied.entry(area).or_default().push(Copied { offset: copy.offset, size: copy.size, at });
    }

    /// Takes in that a thread has filled a part.
    pub(crate) fn filled(&mut self, aux: &Aux) {
        let id = &aux.sample_id;
        let (Some(pid), Some(tid), Some(time)) = (id.pid, id.tid, id.time) else { return };
        let filled = Filled {
            pid,
            tid,
            time,
            offset: aux.aux_offset,
            size: aux.aux_size,
            is_incomplete: aux.flags & INCOMPLETE != 0,
        };
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

    /// The traces of all threads, by time.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (area, copied) in &self.copied {
            let mut copied = copied.clone();
            copied.sort_by_key(|copy| copy.offset);
            for filled in self.filled.get(area).into_iter().flatten() {
                let end = filled.offset.saturating_add(filled.size);
                let mut pieces = Vec::new();
                let mut there = 0_u64;
                let first = copied.partition_point(|copy| copy.offset.saturating_add(copy.size) <= filled.offset);
                for copy in copied.iter().skip(first).take_while(|copy| copy.offset < end) {
                    let (from, to) = (copy.offset.max(filled.offset), copy.offset.saturating_add(copy.size).min(end));
                    if from < to {
                        pieces.push((copy.at.saturating_add(from - copy.offset), to - from));
                        there += to - from;
                    }
                }
                let is_incomplete = filled.is_incomplete || there < filled.size;
                parts.push(Part { pid: filled.pid, tid: filled.tid, time: filled.time, pieces, is_incomplete });
            }
        }
        parts.sort_by_key(|part| part.time);
        parts
    }
}
