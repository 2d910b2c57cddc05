//! What lives at a time of the recording, told by the records up to then: processes, the names of their threads, their mappings, and the
//! phases that go on. A file that begins in the middle of a recording begins with it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use formats::phase_mark::PhaseMark;
use perf_event_open_sys::bindings as sys;
use perfdata::{Comm, Error, EventDescription, RecordType, SampleId, Task, Writer};

use crate::session::phases_standing::PhasesStanding;
use crate::session::record_layout::{MISC_EXEC, RecordBytes, RecordLayout, halves, word};
use crate::sys::process::{is_running, mappings};

/// Bytes of an MMAP2 record up to the mapping's beginning.
const START: usize = 8;
/// Mappings of a process from which on it is looked which are there still: the kernel does not tell what is unmapped.
const MANY: usize = 4096;

/// Everything that lives.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    layout: RecordLayout,
    processes: BTreeMap<u32, Process>,
    pub(crate) phases: PhasesStanding,
}

#[derive(Clone, Debug, Default)]
struct Process {
    parent: u32,
    /// Names of its threads.
    threads: BTreeMap<u32, Vec<u8>>,
    /// Its first thread has ended, others may live.
    is_without_first: bool,
    /// Forked processes share them until one maps something.
    mappings: Arc<Mappings>,
    /// It did not run when it was looked at last; records of its end may still come.
    gone: bool,
}

/// Mappings of code.
#[derive(Clone, Debug, Default)]
struct Mappings {
    /// Whole records, by where they begin and when they came.
    by_start: BTreeMap<(u64, u64), Mapped>,
    came: u64,
    /// How many there were when those that are gone were last looked for.
    looked_at: usize,
}

#[derive(Clone, Debug)]
struct Mapped {
    end: u64,
    record: Arc<[u8]>,
}

impl Standing {
    /// Nothing lives yet.
    pub(crate) fn new(layout: RecordLayout) -> Self {
        Self { layout, ..Self::default() }
    }

    /// Takes in a record that goes to the file.
    pub(crate) fn see(&mut self, record: &RecordBytes<'_>) {
        if let Some(time) = self.layout.time(record) {
            self.phases.pass(time);
        }
        match record.kind {
            sys::PERF_RECORD_COMM => self.name(record),
            sys::PERF_RECORD_FORK => self.fork(record),
            sys::PERF_RECORD_EXIT => self.exit(record),
            sys::PERF_RECORD_MMAP2 => self.map(record),
            _ => None,
        };
    }

    /// Takes in a mark that a phase begins.
    pub(crate) fn mark(&mut self, mark: &PhaseMark) {
        self.phases.hear(mark.clone());
    }

    /// pid, tid, name.
    fn name(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let [pid, tid] = halves(word(record.body, 0)?);
        let name = record.body.get(8..)?.split(|&byte| byte == 0).next()?.to_vec();
        let process = self.processes.entry(pid).or_default();
        if record.misc() & MISC_EXEC != 0 {
            process.mappings = Arc::default();
            process.threads.clear();
            process.is_without_first = false;
            self.phases.execute(pid);
        }
        process.threads.insert(tid, name);
        Some(())
    }

    /// pid, ppid, tid, ptid, time.
    fn fork(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let ([pid, ppid], [tid, ptid]) = (halves(word(record.body, 0)?), halves(word(record.body, 8)?));
        let parent = self.processes.get(&ppid);
        let name = parent.and_then(|parent| parent.threads.get(&ptid)).cloned().unwrap_or_default();
        let was_there = record.misc() & MISC_EXEC != 0;
        if pid != ppid && !was_there {
            let mappings = parent.map(|parent| parent.mappings.clone()).unwrap_or_default();
            self.processes.insert(pid, Process { mappings, ..Process::default() });
            self.phases.fork(pid, ppid);
        }
        let process = self.processes.entry(pid).or_default();
        if pid != ppid {
            process.parent = ppid;
        }
        process.threads.insert(tid, name);
        Some(())
    }

    fn exit(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let ([pid, _], [tid, _]) = (halves(word(record.body, 0)?), halves(word(record.body, 8)?));
        let process = self.processes.get_mut(&pid)?;
        // The first thread's name is that of the process.
        process.is_without_first |= tid == pid;
        if tid != pid {
            process.threads.remove(&tid);
        }
        if process.is_without_first && process.threads.keys().all(|&thread| thread == pid) {
            self.processes.remove(&pid);
            self.phases.execute(pid);
        }
        Some(())
    }

    /// pid, tid, start, length.
    fn map(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let [pid, _] = halves(word(record.body, 0)?);
        let start = word(record.body, START)?;
        let end = start.checked_add(word(record.body, START + 8)?)?;
        let process = self.processes.entry(pid).or_default();
        let mappings = Arc::make_mut(&mut process.mappings);
        mappings.put(start..end, record.all.into());
        if mappings.is_to_be_looked_at() {
            mappings.look_at(pid);
        }
        Some(())
    }

    /// Forgets processes that do not run, and did not when this was asked before: their end was lost.
    pub(crate) fn prune(&mut self) {
        let kernel = u32::MAX;
        self.processes.retain(|&pid, process| {
            let gone_before = std::mem::replace(&mut process.gone, pid != kernel && !is_running(pid));
            !(gone_before && process.gone)
        });
    }

    /// The records with which a file begins, as if all of it had been there before.
    ///
    /// # Errors
    /// There is no event.
    pub(crate) fn records(&self, events: &[EventDescription]) -> Result<Vec<u8>, Error> {
        let mut writer = Writer::of_records(Vec::new(), events)?;
        for (&pid, process) in &self.processes {
            for (&tid, name) in &process.threads {
                let sample_id = sample_id(events, pid, tid);
                let parent = if tid == pid { process.parent } else { pid };
                let task = Task { pid, ppid: parent, tid, ptid: parent, time: 0, sample_id };
                writer.write_fork_of_running(&task)?;
                writer.write_comm(&Comm { pid, tid, exec: false, name, sample_id })?;
            }
            writer.write_raw(&process.mappings.records(pid, self.layout))?;
        }
        for mark in self.phases.marks() {
            writer.write_user_record(RecordType(formats::phase_mark::RECORD_TYPE), &mark.to_record_body())?;
        }
        Ok(std::mem::take(writer.get_mut()))
    }
}

impl Mappings {
    /// A mapping is there now, in place of those that it covers.
    fn put(&mut self, range: Range<u64>, record: Arc<[u8]>) {
        let within = self.by_start.range((range.start, 0)..(range.end, 0));
        let covered: Vec<(u64, u64)> =
            within.filter(|(_, mapped)| mapped.end <= range.end).map(|(place, _)| *place).collect();
        covered.iter().for_each(|place| drop(self.by_start.remove(place)));
        self.came += 1;
        self.by_start.insert((range.start, self.came), Mapped { end: range.end, record });
    }

    fn is_to_be_looked_at(&self) -> bool {
        self.by_start.len() > MANY.max(2 * self.looked_at)
    }

    /// Leaves those that the process has still; all, if it cannot be asked.
    fn look_at(&mut self, pid: u32) {
        let there: BTreeMap<u64, u64> = mappings(pid).into_iter().map(|map| (map.start, map.end)).collect();
        if !there.is_empty() {
            self.by_start
                .retain(|(start, _), mapped| there.range(..mapped.end).next_back().is_some_and(|(_, end)| end > start));
        }
        self.looked_at = self.by_start.len();
    }

    /// Their records in the order they came in, as those of `pid`, before everything that is recorded.
    fn records(&self, pid: u32, layout: RecordLayout) -> Vec<u8> {
        let mut mapped: Vec<_> = self.by_start.iter().map(|((_, came), mapped)| (came, &mapped.record)).collect();
        mapped.sort_unstable_by_key(|(came, _)| **came);
        let mut records = Vec::new();
        for (_, record) in mapped {
            let begin = records.len();
            records.extend_from_slice(record);
            layout.put_before_all(&mut records[begin..], pid);
        }
        records
    }
}

/// The sample id of a record of a task that was there before everything that is recorded.
pub(crate) fn sample_id(events: &[EventDescription], pid: u32, tid: u32) -> SampleId {
    let id = events.first().and_then(|event| event.ids.first()).copied();
    SampleId { pid: Some(pid), tid: Some(tid), time: Some(0), id, stream_id: id, cpu: Some(0), identifier: id }
}

#[cfg(test)]
mod tests {
    use perfdata::{Avma, MappedFile, Mmap, Record, Recording};

    use super::*;
    use crate::session::record_layout::{first_record, one_event};

    fn at(time: u64) -> SampleId {
        SampleId { time: Some(time), ..sample_id(&one_event(), 0, 0) }
    }

    /// What a file that begins after these records says first, in words.
    fn after(write: impl FnOnce(&mut Writer<Vec<u8>>) -> Result<(), Error>) -> Vec<String> {
        let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
        write(&mut writer).unwrap();
        let (records, mut standing) =
            (std::mem::take(writer.get_mut()), Standing::new(RecordLayout::of_events(&one_event())));
        let mut offset = 0;
        while let Some(record) = first_record(&records[offset..], offset).unwrap() {
            standing.see(&record);
            offset += record.all.len();
        }
        let mut file = Writer::create(std::io::Cursor::new(Vec::new()), &one_event()).unwrap();
        file.write_raw(&standing.records(&one_event()).unwrap()).unwrap();
        let recording =
            Recording::from_bytes(file.finish(&perfdata::Features::default()).unwrap().into_inner()).unwrap();
        let (mut chunks, mut chunk, mut said) = (recording.chunks(), perfdata::Chunk::new(), Vec::new());
        while chunks.next_into(&mut chunk).unwrap() {
            for raw in chunk.records() {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (words, id) = match recording.parse(&raw).unwrap() {
                    Record::Fork(task) => {
                        assert_eq!(raw.misc & MISC_EXEC, MISC_EXEC, "its own mappings are written");
                        (format!("{}/{} of {}", task.pid, task.tid, task.ppid), task.sample_id)
                    }
                    Record::Comm(comm) => (format!("{}/{} {}", comm.pid, comm.tid, text(comm.name)), comm.sample_id),
                    Record::Mmap2(map) => (format!("{} {:#x} {}", map.pid, map.start.0, text(map.path)), map.sample_id),
                    other => panic!("{other:?}"),
                };
                assert_eq!(id.time, Some(0));
                said.push(words);
            }
        }
        said
    }

    fn task(pid: u32, ppid: u32, tid: u32, time: u64) -> Task {
        Task { pid, ppid, tid, ptid: ppid, time, sample_id: at(time) }
    }

    fn map(pid: u32, start: u64, len: u64, path: &'static [u8]) -> Mmap<'static> {
        let file = MappedFile::Inode { maj: 0, min: 0, ino: 7, generation: 0 };
        Mmap { pid, tid: pid, start: Avma(start), len, file, prot: 5, path, sample_id: at(20), ..Mmap::default() }
    }

    fn comm(pid: u32, tid: u32, exec: bool, name: &'static [u8]) -> Comm<'static> {
        Comm { pid, tid, exec, name, sample_id: at(10) }
    }

    #[test]
    fn what_lives_is_there_and_nothing_else() {
        let said = after(|writer| {
            writer.write_comm(&comm(7, 7, true, b"server"))?;
            writer.write_mmap2(&map(7, 0x1000, 0x3000, b"/bin/server"))?;
            writer.write_fork(&task(7, 7, 8, 30))?;
            writer.write_comm(&comm(7, 8, false, b"worker"))?;
            writer.write_fork(&task(7, 7, 9, 31))?;
            writer.write_exit(&task(7, 7, 9, 40))?;
            // A child that goes on with what its parent had, one that executes something else, and one that ends.
            writer.write_fork(&task(20, 7, 20, 50))?;
            writer.write_fork(&task(21, 7, 21, 50))?;
            writer.write_comm(&comm(21, 21, true, b"sh"))?;
            writer.write_mmap2(&map(21, 0x5000, 0x1000, b"/bin/sh"))?;
            writer.write_fork(&task(22, 7, 22, 50))?;
            writer.write_exit(&task(22, 7, 22, 60))?;
            // What comes in its place later is not the child's.
            writer.write_mmap2(&map(7, 0x1000, 0x3000, b"/lib/later"))
        });
        let expected = [
            "7/7 of 0",
            "7/7 server",
            "7/8 of 7",
            "7/8 worker",
            "7 0x1000 /lib/later",
            "20/20 of 7",
            "20/20 server",
            "20 0x1000 /bin/server",
            "21/21 of 7",
            "21/21 sh",
            "21 0x5000 /bin/sh",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        let first_ends = |writer: &mut Writer<Vec<u8>>| {
            writer.write_comm(&comm(7, 7, true, b"server"))?;
            writer.write_fork(&task(7, 7, 8, 30))?;
            writer.write_exit(&task(7, 7, 7, 40))
        };
        assert_eq!(after(first_ends), ["7/7 of 0", "7/7 server", "7/8 of 7", "7/8 server"]);
        let all_end = |writer: &mut Writer<Vec<u8>>| {
            first_ends(writer)?;
            writer.write_exit(&task(7, 7, 8, 50))
        };
        assert_eq!(after(all_end), Vec::<String>::new());
    }

    #[test]
    fn mappings_that_are_covered_in_part_stay_before_those_that_cover_them() {
        let said = after(|writer| {
            writer.write_mmap2(&map(7, 0x1000, 0x4000, b"/long"))?;
            writer.write_mmap2(&map(7, 0x1000, 0x1000, b"/short"))?;
            writer.write_mmap2(&map(7, 0x8000, 0x1000, b"/covered"))?;
            writer.write_mmap2(&map(7, 0x7000, 0x4000, b"/covers"))?;
            writer.write_mmap2(&map(7, u64::MAX - 5, 0x4000, b"/beyond"))
        });
        assert_eq!(said, ["7 0x1000 /long", "7 0x1000 /short", "7 0x7000 /covers"]);
    }

    #[test]
    fn memory_is_bounded_where_nobody_tells_what_is_unmapped() {
        let mut mappings = Mappings::default();
        let (own, mut most) = (std::process::id(), 0);
        for number in 0..20_000 {
            mappings.put(number << 12..(number + 1) << 12, Arc::from([]));
            if mappings.is_to_be_looked_at() {
                mappings.look_at(own);
            }
            most = most.max(mappings.by_start.len());
        }
        assert!(most <= MANY + 1, "{most}");
    }
}
