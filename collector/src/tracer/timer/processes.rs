//! The processes that take part, as far as `/proc` shows them, and the records that say so.

use std::collections::HashSet;

use addresses::Avma;
use agent::{Image, REGION};
use perfdata::{Comm, EventDescription, SampleId, Task, Writer};

use crate::session::synthesize::mmap;
use crate::sys::is_same_file;
use crate::sys::process::{Mapping, group_and_parent, is_alive, mappings, thread_name};
use crate::tracer::agent::injection::is_in_own_namespace;

/// A process that may take bursts.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its entry.
    pub(crate) place: usize,
    /// Its executable mappings, by ascending address.
    maps: Vec<Mapping>,
    /// What it is called, and its threads if they call themselves nothing else.
    name: Vec<u8>,
    /// Its threads that are in the recording.
    threads: HashSet<i32>,
    /// When it came into the recording, ns,
    began: u64,
    /// and when its mappings were read.
    read: u64,
}

/// Why a process takes no bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPart {
    /// It has ended.
    Ended,
    /// It is not what it says, or it would do harm.
    Because(&'static str),
}

/// How long the mappings of a process are believed where an address is in none of them, ns.
const BELIEVED: u64 = 20_000_000;

impl Process {
    /// The process that has an entry, if it may take bursts; with the records of what it is.
    pub(crate) fn look(
        process: i32,
        place: usize,
        image: &Image,
        harm: impl FnOnce(&[Mapping]) -> Option<&'static str>,
        is_known: bool,
        now: u64,
        records: &mut Records,
    ) -> Result<Self, NoPart> {
        let pid = process as u32;
        let maps = mappings(pid);
        if maps.is_empty() {
            let may_not = NoPart::Because("its mappings may not be read: another user's");
            return Err(if is_alive(pid) { may_not } else { NoPart::Ended });
        }
        // In another namespace of processes, this one is another.
        let has_agent = maps.iter().any(|map| map.shared && REGION.contains(&map.start) && is_same_file(image, map));
        if !is_in_own_namespace(process) {
            return Err(NoPart::Because("in another namespace of processes"));
        }
        if !has_agent {
            return Err(NoPart::Because("it executes another program by now"));
        }
        if let Some(why) = harm(&maps) {
            return Err(NoPart::Because(why));
        }
        let (Some((_, parent)), Some(name)) = (group_and_parent(pid), thread_name(pid, pid)) else {
            return Err(NoPart::Ended);
        };
        let task = Task { pid, ppid: parent, tid: pid, ptid: parent, time: now, sample_id: SampleId::default() };
        if !is_known {
            records.task(&task, now, false);
        }
        records.name(pid, pid, is_known, &name, now);
        let maps: Vec<Mapping> = maps.into_iter().filter(|map| map.prot & 4 != 0).collect();
        maps.iter().for_each(|map| records.mapping(pid, map, now));
        Ok(Self { place, maps, name, threads: [process].into(), began: now, read: now })
    }

    /// Whether all of these addresses are in mappings that are known.
    pub(crate) fn covers(&self, addresses: impl Iterator<Item = Avma>) -> bool {
        let mut last = 0..0;
        for Avma(address) in addresses {
            if last.contains(&address) {
                continue;
            }
            let after = self.maps.partition_point(|map| map.start <= address);
            match after.checked_sub(1).map(|at| &self.maps[at]).filter(|map| address < map.end) {
                Some(map) => last = map.start..map.end,
                None => return false,
            }
        }
        true
    }

    /// Reads what it has mapped by now, unless that was just done. What is new is of before `time`.
    pub(crate) fn look_again(&mut self, process: i32, time: u64, now: u64, records: &mut Records) {
        if now < self.read.saturating_add(BELIEVED) {
            return;
        }
        // What began after that time has no mappings before.
        let time = time.max(self.read);
        self.read = now;
        let maps: Vec<Mapping> = mappings(process as u32).into_iter().filter(|map| map.prot & 4 != 0).collect();
        // It may have ended: what was known stays.
        if maps.is_empty() {
            return;
        }
        for map in maps.iter().filter(|map| !self.maps.contains(map)) {
            records.mapping(process as u32, map, time);
        }
        self.maps = maps;
    }

    /// A thread of it has taken a burst. Returns whether that is its first.
    pub(crate) fn thread(&mut self, process: i32, thread: i32, time: u64, records: &mut Records) -> bool {
        let time = time.max(self.began);
        let is_new = self.threads.insert(thread);
        if is_new {
            let (pid, tid) = (process as u32, thread as u32);
            // That of one that has ended by now cannot be read any more.
            let name = thread_name(pid, tid).unwrap_or_else(|| self.name.clone());
            let task = Task { pid, ppid: pid, tid, ptid: pid, time, sample_id: SampleId::default() };
            records.task(&task, time, false);
            records.name(pid, tid, false, &name, time);
        }
        is_new
    }
}

/// Records of processes, on their way to the recording.
pub(crate) struct Records {
    writer: Writer<Vec<u8>>,
    id: u64,
}

impl Records {
    /// For a recording of this event.
    pub(crate) fn of(event: &EventDescription) -> Result<Self, perfdata::Error> {
        let id = event.ids.first().copied().unwrap_or_default();
        Ok(Self { writer: Writer::of_records(Vec::new(), std::slice::from_ref(event))?, id })
    }

    /// What was added since this was asked last.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.get_mut())
    }

    /// Gives back what could not be handed over.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>) {
        *self.writer.get_mut() = bytes;
    }

    fn sample_id(&self, pid: u32, tid: u32, time: u64) -> SampleId {
        let id = Some(self.id);
        SampleId { pid: Some(pid), tid: Some(tid), time: Some(time), id, stream_id: id, cpu: Some(0), identifier: id }
    }

    // A vector takes everything; one with a name or path that is too long is left out, which the kernel's never are.

    fn task(&mut self, task: &Task, time: u64, is_end: bool) {
        let task = Task { sample_id: self.sample_id(task.pid, task.tid, time), ..*task };
        let _ = if is_end { self.writer.write_exit(&task) } else { self.writer.write_fork(&task) };
    }

    fn name(&mut self, pid: u32, tid: u32, exec: bool, name: &[u8], time: u64) {
        let sample_id = self.sample_id(pid, tid, time);
        let _ = self.writer.write_comm(&Comm { pid, tid, exec, name, sample_id });
    }

    fn mapping(&mut self, pid: u32, map: &Mapping, time: u64) {
        let _ = self.writer.write_mmap2(&mmap(pid, map, self.sample_id(pid, pid, time)));
    }

    /// A process has ended by this time.
    pub(crate) fn end(&mut self, process: i32, time: u64) {
        let pid = process as u32;
        let task = Task { pid, ppid: pid, tid: pid, ptid: pid, time, sample_id: SampleId::default() };
        self.task(&task, time, true);
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{EventAttr, SampleFormat};

    use super::*;

    fn process(ranges: &[(u64, u64)]) -> Process {
        let map = |&(start, end)| Mapping {
            start,
            end,
            prot: 5,
            shared: false,
            offset: 0,
            device: (0, 0),
            inode: 0,
            path: Vec::new(),
        };
        let maps = ranges.iter().map(map).collect();
        Process { place: 0, maps, name: b"server".to_vec(), threads: HashSet::new(), began: 0, read: 0 }
    }

    #[test]
    fn a_thread_that_has_ended_is_called_as_its_process() {
        let attr = EventAttr { sample_format: SampleFormat::TID, ..EventAttr::default() };
        let mut records = Records::of(&EventDescription { attr, ..EventDescription::default() }).unwrap();
        // No process has this number.
        let mut process = process(&[]);
        assert!(process.thread(i32::MAX, i32::MAX, 5, &mut records));
        let bytes = records.take();
        assert!(bytes.windows(6).any(|name| name == b"server"), "{bytes:02x?}");
        assert!(!process.thread(i32::MAX, i32::MAX, 6, &mut records) && records.take().is_empty());
    }

    #[test]
    fn addresses_are_covered_by_mappings() {
        let process = process(&[(0x1000, 0x2000), (0x3000, 0x4000)]);
        let covers = |addresses: &[u64]| process.covers(addresses.iter().map(|&address| Avma(address)));
        assert!(covers(&[]) && covers(&[0x1000, 0x1fff, 0x3000, 0x1234]));
        for outside in [0xfff, 0x2000, 0x2fff, 0x4000] {
            assert!(!covers(&[0x1000, outside]), "{outside:#x}");
        }
    }
}
