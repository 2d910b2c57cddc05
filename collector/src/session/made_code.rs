//! Code that is in no file, on its way into the recording: what samples say of it, and its records.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addresses::Avma;
use formats::metadata::Metadata;
use perf_event_open_sys::bindings as sys;
use perfdata::EventDescription;

use crate::session::Summary;
use crate::session::mapped_files::mapping_record::MISC_BUILD_ID;
use crate::session::producer::Producer;
use crate::session::record_layout::{
    BrokenRecord, MISC_EXEC, RecordBytes, RecordLayout, SAMPLE, halves, path_of_code, records, word,
};
use crate::sys::process::has_code_elsewhere;
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
        let mut found = None;
        for record in records(ring) {
            self.see_record(&record?, &mut found, &mut made_code);
        }
        Ok(())
    }

    /// `found`: the process that was found in `/proc` last.
    fn see_record(&self, record: &RecordBytes<'_>, found: &mut Option<u32>, made_code: &mut MadeCode) -> Option<()> {
        match record.kind {
            SAMPLE => {
                let (pid, time) = (self.layout.sample_pid(record)?, self.layout.time(record)?);
                let id = self.layout.sample_id(record);
                if id.is_none() || id != self.burst {
                    let words = record.body.as_chunks::<8>().0;
                    made_code.sampled.see(pid, time, words.iter().map(|word| u64::from_le_bytes(*word)));
                }
            }
            sys::PERF_RECORD_MMAP2 => {
                let [pid, _] = halves(word(record.body, 0)?);
                let path = path_of_code(record.body)?;
                let range = range(record.body)?;
                // What was found is there now, whatever its records say: those of an exec of before may come after them.
                let time = if *found == Some(pid) { monotonic_time() } else { self.layout.time(record)? };
                made_code.sampled.mapped(pid, time, range, has_code_elsewhere(path, has_file(record)));
            }
            sys::PERF_RECORD_FORK => {
                let [pid, parent] = halves(word(record.body, 0)?);
                let was_there = record.misc() & MISC_EXEC != 0;
                if was_there {
                    *found = Some(pid);
                } else if pid != parent {
                    let time = self.layout.time(record)?;
                    made_code.sampled.forked(pid, parent, time);
                    made_code.began_anew_at(pid, time);
                }
            }
            sys::PERF_RECORD_COMM if record.misc() & MISC_EXEC != 0 => {
                let [pid, _] = halves(word(record.body, 0)?);
                let time = self.layout.time(record)?;
                made_code.sampled.forget(pid, time);
                made_code.began_anew_at(pid, time);
            }
            // pid, ppid, tid, ptid.
            sys::PERF_RECORD_EXIT => {
                let ([pid, _], [tid, _]) = (halves(word(record.body, 0)?), halves(word(record.body, 8)?));
                if pid == tid {
                    made_code.sampled.ended(pid, self.layout.time(record)?);
                }
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

/// Whether a mapping has a file.
fn has_file(record: &RecordBytes<'_>) -> bool {
    // pid, tid, start, length, pgoff, maj, min, ino.
    record.misc() & MISC_BUILD_ID != 0 || word(record.body, 40).is_some_and(|inode| inode != 0)
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

#[cfg(test)]
mod tests {
    use perfdata::{Comm, Error, MappedFile, Mmap, SampleId, Task, Writer};

    use super::*;
    use crate::session::record_layout::one_event;
    use crate::session::standing::sample_id;

    const PARENT: u32 = 0x3fff_fff0;
    const CHILD: u32 = 0x3fff_fff1;

    fn at(pid: u32, time: u64) -> SampleId {
        SampleId { time: Some(time), ..sample_id(&one_event(), pid, pid) }
    }

    /// Memory of no file at the page `page`.
    fn memory(pid: u32, page: u64, time: u64) -> Mmap<'static> {
        let file = MappedFile::Inode { maj: 0, min: 0, ino: 0, generation: 0 };
        let start = Avma(page << 12);
        Mmap {
            pid,
            tid: pid,
            start,
            len: 0x1000,
            prot: 7,
            file,
            path: b"//anon",
            sample_id: at(pid, time),
            ..Mmap::default()
        }
    }

    fn task(pid: u32, tid: u32, time: u64) -> Task {
        Task { pid, ppid: PARENT, tid, ptid: PARENT, time, sample_id: at(pid, time) }
    }

    fn exec(pid: u32, time: u64) -> Comm<'static> {
        Comm { pid, tid: pid, exec: true, name: b"x", sample_id: at(pid, time) }
    }

    /// What one ring held.
    fn see(code: &SampledCode, write: impl FnOnce(&mut Writer<Vec<u8>>) -> Result<(), Error>) {
        let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
        write(&mut writer).unwrap();
        code.see(writer.get_mut()).unwrap();
    }

    fn code() -> SampledCode {
        SampledCode::new(Arc::default(), RecordLayout::of_events(&one_event()), None)
    }

    /// Whether a process has memory of no file at a page.
    fn has(code: &SampledCode, pid: u32, page: u64) -> bool {
        let sampled = &mut lock(&code.made_code).sampled;
        sampled.want_nothing();
        sampled.see(pid, 1, [page << 12].into_iter());
        !sampled.is_idle()
    }

    #[test]
    fn the_order_of_rings_is_not_that_of_time() {
        let code = code();
        see(&code, |ring| ring.write_mmap2(&memory(PARENT, 1, 5)));
        // The CPU that the child was moved to is read before the one that it was forked on.
        see(&code, |ring| {
            ring.write_comm(&exec(CHILD, 20))?;
            ring.write_mmap2(&memory(CHILD, 2, 30))
        });
        see(&code, |ring| ring.write_fork(&task(CHILD, CHILD, 10)));
        assert!(has(&code, CHILD, 2));
        see(&code, |ring| ring.write_comm(&exec(CHILD, 40)));
        assert!(!has(&code, CHILD, 2) && has(&code, PARENT, 1));
    }

    #[test]
    fn what_was_found_is_not_of_before() {
        let code = code();
        see(&code, |found| {
            found.write_fork_of_running(&task(CHILD, CHILD, 0))?;
            found.write_mmap2(&memory(CHILD, 2, 0))
        });
        see(&code, |ring| ring.write_comm(&exec(CHILD, 20)));
        assert!(has(&code, CHILD, 2), "it was found after that");
        let later = monotonic_time() + 1;
        see(&code, |ring| ring.write_comm(&exec(CHILD, later)));
        assert!(!has(&code, CHILD, 2));
    }

    #[test]
    fn processes_that_end_are_forgotten() {
        let code = code();
        see(&code, |ring| {
            ring.write_mmap2(&memory(PARENT, 1, 5))?;
            ring.write_mmap2(&memory(CHILD, 2, 5))?;
            ring.write_exit(&task(PARENT, PARENT, 10))?;
            // A thread.
            ring.write_exit(&task(CHILD, CHILD + 1, 10))
        });
        for expected in [true, false] {
            lock(&code.made_code).write(&mut Vec::new(), 0);
            assert_eq!((has(&code, PARENT, 1), has(&code, CHILD, 2)), (expected, true));
            lock(&code.made_code).sampled.want_nothing();
        }
    }
}
