//! The processes of a control group, as far as the recording knows their mappings.
//!
//! The kernel tells of mappings, names and forks of processes while they are in the group. What a process was before it came in is read from
//! `/proc`, when it is found there, or with its first record, and is in the file before that. A child has what its parent had, if that was
//! known when it forked: what is read of the parent later may be of another program. Otherwise the child is read itself.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;
use perfdata::{EventDescription, Writer};

use crate::session::last_thread::LastThreads;
use crate::session::record_layout::{
    BrokenRecord, MISC_EXEC, RecordBytes, RecordLayout, SAMPLE, TIME_OF_FORK, halves, records, word,
};
use crate::session::recorder::RecorderError;
use crate::session::synthesize;
use crate::sys::control_group::ControlGroup;
use crate::sys::thread_cpu_time;
use crate::tracer::shared::monotonic_time;

/// How often it is looked who is in the group,
const OFTEN: Duration = Duration::from_millis(500);
/// and how small a share of the time that takes, however many there are.
const SHARE: u32 = 1000;
/// So many of those who were found there are read with each ring: meanwhile the rings fill. One that computes does not wait.
const AT_ONCE: usize = 64;

/// What lives in a group.
#[derive(Debug)]
pub(crate) struct Members {
    group: ControlGroup,
    layout: RecordLayout,
    events: Vec<EventDescription>,
    /// Those of which everything is known that was since that time, ns of the clock of records.
    known: HashMap<u32, u64>,
    /// Those who are there and are not known, to be read.
    waiting: Vec<u32>,
    last_threads: LastThreads,
    next_look: Instant,
}

impl Members {
    /// None is known yet.
    pub(crate) fn new(group: ControlGroup, events: &[EventDescription]) -> Self {
        Self {
            group,
            layout: RecordLayout::of_events(events),
            events: events.to_vec(),
            known: HashMap::new(),
            waiting: Vec::new(),
            last_threads: LastThreads::default(),
            next_look: Instant::now() + OFTEN,
        }
    }

    /// Takes in records of processes that were found when recording began, as they were just now.
    pub(crate) fn found(&mut self, found: &[u8]) -> Result<(), BrokenRecord> {
        let now = monotonic_time();
        for record in records(found) {
            let record = record?;
            if record.kind == sys::PERF_RECORD_FORK
                && let Some(ids) = word(record.body, 0)
            {
                self.known.insert(halves(ids)[0], now);
            }
        }
        Ok(())
    }

    /// Puts records of the processes that are new in the group before `ring`, what a ring held, with the time `time`: no record that is
    /// still to be written is older. Those of children that are new follow it, with the time of their fork.
    pub(crate) fn complete(&mut self, ring: &mut Vec<u8>, time: u64) -> Result<(), RecorderError> {
        self.look();
        let mut unseen = Unseen { time, ..Unseen::default() };
        let next: Vec<u32> = self.waiting.drain(..AT_ONCE.min(self.waiting.len())).collect();
        for pid in next {
            self.first_record(pid, &mut unseen)?;
        }
        for record in records(ring) {
            self.see(&record?, &mut unseen)?;
        }
        ring.splice(0..0, unseen.before);
        ring.append(&mut unseen.children);
        Ok(())
    }

    /// Looks who has come, if it is time. Who has left, or ended without a word, is forgotten: its mappings change without the recording,
    /// and its number may be another's.
    fn look(&mut self) {
        if Instant::now() < self.next_look {
            return;
        }
        let own = thread_cpu_time();
        let there: HashSet<u32> = self.group.processes().into_iter().collect();
        self.known.retain(|pid, _| there.contains(pid));
        self.waiting = there.into_iter().filter(|pid| !self.known.contains_key(pid)).collect();
        self.waiting.sort_unstable();
        self.next_look = Instant::now() + OFTEN.max(thread_cpu_time().saturating_sub(own) * SHARE);
    }

    /// Reads those who came in without a record of it.
    fn see(&mut self, record: &RecordBytes<'_>, unseen: &mut Unseen) -> Result<(), RecorderError> {
        let first = || word(record.body, 0).map(halves);
        match record.kind {
            SAMPLE => self.layout.sample_pid(record).map_or(Ok(()), |pid| self.first_record(pid, unseen)),
            // All that it is comes after this.
            sys::PERF_RECORD_COMM if record.misc() & MISC_EXEC != 0 => {
                if let Some([pid, _]) = first() {
                    self.is_known_since(pid, self.layout.time(record).unwrap_or_default());
                }
                Ok(())
            }
            sys::PERF_RECORD_COMM | sys::PERF_RECORD_MMAP2 => {
                first().map_or(Ok(()), |[pid, _]| self.first_record(pid, unseen))
            }
            sys::PERF_RECORD_FORK => match (first(), word(record.body, TIME_OF_FORK)) {
                (Some([pid, parent]), Some(time)) if pid != parent => self.forked(pid, parent, time, unseen),
                _ => Ok(()),
            },
            sys::PERF_RECORD_EXIT => {
                if let (Some([pid, _]), Some([tid, _])) = (first(), word(record.body, 8).map(halves))
                    && self.known.contains_key(&pid)
                    && self.last_threads.ends(pid, tid)
                {
                    self.known.remove(&pid);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_known_since(&mut self, pid: u32, time: u64) {
        self.known.entry(pid).and_modify(|since| *since = time.min(*since)).or_insert(time);
    }

    /// There is a record of a process, which is to be known before it.
    fn first_record(&mut self, pid: u32, unseen: &mut Unseen) -> Result<(), RecorderError> {
        if !self.known.contains_key(&pid) && unseen.tried.insert(pid) {
            self.read(pid, unseen.time, &mut unseen.before)?;
        }
        Ok(())
    }

    /// A child has what its parent had, and nothing else, whatever was known of it: a record of it may come before that of its fork.
    fn forked(&mut self, pid: u32, parent: u32, time: u64, unseen: &mut Unseen) -> Result<(), RecorderError> {
        self.first_record(parent, unseen)?;
        if self.known.get(&parent).is_some_and(|since| *since <= time) {
            self.is_known_since(pid, time);
            return Ok(());
        }
        self.known.remove(&pid);
        self.read(pid, time, &mut unseen.children)
    }

    /// Appends records of what a process is now, with this time. It is known from then on, unless it is gone, or cannot be read now.
    fn read(&mut self, pid: u32, time: u64, to: &mut Vec<u8>) -> Result<(), RecorderError> {
        // Those who have no number here, and the idle task.
        if matches!(pid, 0 | u32::MAX) {
            return Ok(());
        }
        let mut writer = Writer::of_records(Vec::new(), &self.events)?;
        synthesize::process(&mut writer, pid)?;
        let found = writer.get_mut();
        if !found.is_empty() {
            self.layout.put_at(found, time)?;
            to.append(found);
            self.known.insert(pid, monotonic_time());
        }
        Ok(())
    }
}

/// Records of those who came in unseen, which go with what a ring held.
#[derive(Debug, Default)]
struct Unseen {
    /// No record that is still to be written is older.
    time: u64,
    before: Vec<u8>,
    children: Vec<u8>,
    /// Those who were read for `before`, if they could be.
    tried: HashSet<u32>,
}

#[cfg(test)]
mod tests {
    use perfdata::{Comm, Task};

    use super::*;
    use crate::session::record_layout::one_event;
    use crate::session::standing::sample_id;

    /// A record of a process at a time.
    fn at(pid: u32, time: u64) -> perfdata::SampleId {
        perfdata::SampleId { time: Some(time), ..sample_id(&one_event(), pid, pid) }
    }

    /// The processes of which records come before those of `write`, and after them, with their times.
    fn around(members: &mut Members, write: impl FnOnce(&mut Writer<Vec<u8>>)) -> [Vec<(u32, u64)>; 2] {
        let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
        write(&mut writer);
        let mut ring = std::mem::take(writer.get_mut());
        let own = ring.clone();
        members.complete(&mut ring, 17).unwrap();
        let at = ring.windows(own.len()).position(|part| part == own).unwrap();
        [&ring[..at], &ring[at + own.len()..]].map(|found| {
            let mut of = Vec::new();
            for record in records(found) {
                let record = record.unwrap();
                let time = members.layout.time(&record).unwrap();
                if record.kind == sys::PERF_RECORD_FORK {
                    assert_eq!(word(record.body, TIME_OF_FORK), Some(time));
                    of.push((halves(word(record.body, 0).unwrap())[0], time));
                }
            }
            of.dedup();
            of
        })
    }

    const NOBODY: [Vec<(u32, u64)>; 2] = [Vec::new(), Vec::new()];
    const GONE: u32 = u32::MAX - 1;

    fn before(pid: u32) -> [Vec<(u32, u64)>; 2] {
        [vec![(pid, 17)], Vec::new()]
    }

    fn members() -> Members {
        let group = ControlGroup::of_test(std::path::Path::new("/proc/self"));
        Members { next_look: Instant::now() + 1000 * OFTEN, ..Members::new(group, &one_event()) }
    }

    fn named(writer: &mut Writer<Vec<u8>>, pid: u32, exec: bool, time: u64) {
        writer.write_comm(&Comm { pid, tid: pid, exec, name: b"x", sample_id: at(pid, time) }).unwrap();
    }

    fn forked(writer: &mut Writer<Vec<u8>>, pid: u32, ppid: u32, time: u64) {
        writer.write_fork(&Task { pid, ppid, tid: pid, ptid: ppid, time, sample_id: at(ppid, time) }).unwrap();
    }

    fn is_known(all: &Members, pid: u32) -> bool {
        all.known.contains_key(&pid)
    }

    #[test]
    fn what_came_in_unseen_is_read_once_before_its_first_record() {
        let own = std::process::id();
        let mut all = members();
        assert_eq!(around(&mut all, |writer| named(writer, own, false, 20)), before(own));
        assert_eq!(around(&mut all, |writer| named(writer, own, false, 21)), NOBODY);
        // What is gone has nothing to be read.
        assert_eq!(around(&mut all, |writer| named(writer, GONE, false, 22)), NOBODY);
        assert!(!is_known(&all, GONE));
    }

    #[test]
    fn a_child_of_what_came_in_unseen_is_read_itself() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // A parent that is gone, or of which nothing tells what it was when it forked.
        let mut all = members();
        let read = around(&mut all, |writer| forked(writer, child.id(), GONE, 20));
        assert_eq!(read, [vec![], vec![(child.id(), 20)]]);
        assert_eq!(around(&mut all, |writer| named(writer, child.id(), false, 21)), NOBODY);
        let mut all = members();
        let read = around(&mut all, |writer| {
            // A record of the child from another ring.
            named(writer, child.id(), false, 22);
            forked(writer, child.id(), own, 20);
        });
        assert_eq!(read, [vec![(child.id(), 17), (own, 17)], vec![(child.id(), 20)]]);
        // A child that is gone itself, and one of it.
        let mut all = members();
        let read = around(&mut all, |writer| {
            forked(writer, GONE, own, 20);
            forked(writer, child.id(), GONE, 21);
        });
        assert_eq!(read, [vec![(own, 17)], vec![(child.id(), 21)]]);
        assert!(!is_known(&all, GONE));
        // Since then the parent is known.
        let now = monotonic_time();
        assert_eq!(around(&mut all, |writer| forked(writer, child.id(), own, now)), NOBODY);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn of_what_begins_in_the_group_the_kernel_tells_everything() {
        let own = std::process::id();
        let mut all = members();
        let told = around(&mut all, |writer| {
            named(writer, own, true, 20);
            forked(writer, GONE, own, 21);
            named(writer, GONE, false, 22);
        });
        assert_eq!(told, NOBODY);
        assert!(is_known(&all, GONE));
        // Another process may have its number.
        around(&mut all, |writer| {
            writer
                .write_exit(&Task { pid: GONE, ppid: own, tid: GONE, ptid: own, time: 30, sample_id: at(GONE, 30) })
                .unwrap();
        });
        assert!(!is_known(&all, GONE));
    }

    #[test]
    fn what_was_found_waits_for_its_turn() {
        let mut all = members();
        let own = std::process::id();
        all.waiting = (0..AT_ONCE as u32).map(|number| GONE - number).chain([own]).collect();
        assert_eq!(around(&mut all, |writer| named(writer, GONE, true, 20)), NOBODY);
        assert_eq!(around(&mut all, |writer| named(writer, GONE, true, 21)), before(own));
        assert!(all.waiting.is_empty());
    }
}
