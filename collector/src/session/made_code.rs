//! Code that is in no file, on its way into the recording: what samples say of it, and its records.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addresses::Avma;
use formats::metadata::Metadata;
use perf_event_open_sys::bindings as sys;
use perfdata::{EventDescription, is_memory_without_file};

use crate::session::Summary;
use crate::session::mapped_files::mapping_record::MISC_BUILD_ID;
use crate::session::producer::Producer;
use crate::session::record_layout::{
    BrokenRecord, MISC_EXEC, RecordBytes, RecordLayout, SAMPLE, halves, path_of_code, records, word,
};
use crate::tracer::made_code::MadeCode;
use crate::tracer::shared::monotonic_time;

/// While code is being made it is read after this time: it may be rewritten, and processes end.
const SOON: Duration = Duration::from_millis(100);

fn lock(made_code: &Mutex<MadeCode>) -> MutexGuard<'_, MadeCode> {
    made_code.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds the code in which samples fall.
#[derive(Debug)]
pub(crate) struct SampledCode {
    made_code: Arc<Mutex<MadeCode>>,
    layout: RecordLayout,
    /// The event whose samples are bursts of the tracer, which bring their code.
    burst: Option<u64>,
}

impl SampledCode {
    /// `made_code` reads it.
    pub(crate) fn new(made_code: Arc<Mutex<MadeCode>>, layout: RecordLayout, burst: Option<u64>) -> Self {
        Self { made_code, layout, burst }
    }

    /// Takes in what a ring held.
    ///
    /// # Errors
    /// When the bytes are not whole records; those before the break are taken.
    pub(crate) fn see(&self, ring: &[u8]) -> Result<(), BrokenRecord> {
        if ring.is_empty() {
            return Ok(());
        }
        let mut made_code = lock(&self.made_code);
        for record in records(ring) {
            self.see_record(&record?, &mut made_code);
        }
        Ok(())
    }

    fn see_record(&self, record: &RecordBytes<'_>, made_code: &mut MadeCode) -> Option<()> {
        match record.kind {
            SAMPLE => {
                let (pid, time) = (self.layout.sample_pid(record)?, self.layout.time(record)?);
                let id = self.layout.sample_id(record);
                if made_code.sampled.has_code(pid) && (id.is_none() || id != self.burst) {
                    let words = record.body.as_chunks::<8>().0;
                    made_code.sampled.see(pid, time, words.iter().map(|word| u64::from_le_bytes(*word)));
                }
            }
            sys::PERF_RECORD_MMAP2 => {
                let [pid, _] = halves(word(record.body, 0)?);
                let path = path_of_code(record.body)?;
                let range = range(record.body)?;
                made_code.sampled.mapped(pid, range, !is_made(record, path));
            }
            sys::PERF_RECORD_FORK => {
                let [pid, parent] = halves(word(record.body, 0)?);
                let was_there = record.misc() & MISC_EXEC != 0;
                if pid != parent && !was_there {
                    made_code.sampled.forked(pid, parent);
                    made_code.began_anew_at(pid, self.layout.time(record)?);
                }
            }
            sys::PERF_RECORD_COMM if record.misc() & MISC_EXEC != 0 => {
                let [pid, _] = halves(word(record.body, 0)?);
                made_code.sampled.forget(pid);
                made_code.began_anew_at(pid, self.layout.time(record)?);
            }
            _ => {}
        }
        Some(())
    }
}

/// pid, tid, start, length.
fn range(body: &[u8]) -> Option<Range<Avma>> {
    let (start, length) = (word(body, 8)?, word(body, 16)?);
    Some(Avma(start)..Avma(start.checked_add(length)?))
}

/// Whether a mapping with code is of no file, as of [`crate::sys::process::Mapping`].
fn is_made(record: &RecordBytes<'_>, path: &[u8]) -> bool {
    let of_kernel = path == b"[vdso]" || path == b"[vsyscall]";
    // pid, tid, start, length, pgoff, maj, min, ino.
    let has_file = record.misc() & MISC_BUILD_ID != 0 || word(record.body, 40).is_some_and(|inode| inode != 0);
    !of_kernel && (!has_file || is_memory_without_file(path))
}

/// Brings the code into the recording. It is drained after all who find code.
pub(crate) struct MadeCodeRecords {
    made_code: Arc<Mutex<MadeCode>>,
    is_stopped: bool,
}

impl MadeCodeRecords {
    pub(crate) fn new(made_code: Arc<Mutex<MadeCode>>) -> Self {
        Self { made_code, is_stopped: false }
    }
}

impl Producer for MadeCodeRecords {
    fn events(&self) -> &[EventDescription] {
        &[]
    }

    fn introduce(&self, _metadata: &mut Metadata) {}

    fn rings(&self) -> usize {
        1
    }

    fn drain(&mut self, _ring: usize, records: &mut Vec<u8>) {
        let mut made_code = lock(&self.made_code);
        let now = monotonic_time();
        made_code.write(records, now);
        if self.is_stopped {
            made_code.write_names(records, now);
        }
    }

    fn until_drain(&self) -> Duration {
        if lock(&self.made_code).is_being_made() { SOON } else { Duration::MAX }
    }

    fn polled(&self) -> Vec<(usize, BorrowedFd<'_>)> {
        Vec::new()
    }

    fn stop(&mut self) {
        self.is_stopped = true;
    }

    fn next_file(&mut self, records: &mut Vec<u8>) {
        let mut made_code = lock(&self.made_code);
        made_code.write_names(records, monotonic_time());
        made_code.write_again();
    }

    fn conclude_file(&mut self, own: Range<usize>, summary: &mut Summary) {
        self.conclude(own, summary);
        lock(&self.made_code).count_anew();
    }

    fn conclude(&mut self, _own: Range<usize>, summary: &mut Summary) {
        let made_code = lock(&self.made_code);
        summary.metadata.made_code = made_code.metadata();
        summary.metadata.degradations.extend(made_code.degradations());
    }
}
