//! The processes of a control group, as far as the recording knows their mappings.
//!
//! The kernel tells of mappings, names and forks of processes while they are in the group. What a process was before it came in is read from
//! `/proc`, when it is found there, or with its first record, and is in the file before that.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;
use perfdata::{EventDescription, Writer};

use crate::session::last_thread::LastThreads;
use crate::session::record_layout::{
    BrokenRecord, MISC_EXEC, RecordBytes, RecordLayout, SAMPLE, halves, records, word,
};
use crate::session::recorder::RecorderError;
use crate::session::synthesize;
use crate::sys::control_group::ControlGroup;
use crate::sys::thread_cpu_time;

/// How often it is looked who is in the group,
const OFTEN: Duration = Duration::from_millis(500);
/// and how small a share of the time that takes, however many there are.
const SHARE: u32 = 1000;

/// What lives in a group.
#[derive(Debug)]
pub(crate) struct Members {
    group: ControlGroup,
    layout: RecordLayout,
    events: Vec<EventDescription>,
    known: HashSet<u32>,
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
            known: HashSet::new(),
            last_threads: LastThreads::default(),
            next_look: Instant::now() + OFTEN,
        }
    }

    /// Takes in records of processes that were found when recording began.
    pub(crate) fn found(&mut self, found: &[u8]) -> Result<(), BrokenRecord> {
        for record in records(found) {
            let record = record?;
            if record.kind == sys::PERF_RECORD_FORK
                && let Some(ids) = word(record.body, 0)
            {
                self.known.insert(halves(ids)[0]);
            }
        }
        Ok(())
    }

    /// Puts records of the processes that are new in the group before `ring`, what a ring held, with the time `time`: no record that is
    /// still to be written is older.
    pub(crate) fn complete(&mut self, ring: &mut Vec<u8>, time: u64) -> Result<(), RecorderError> {
        let mut new = self.look();
        for record in records(ring) {
            self.see(&record?, &mut new);
        }
        if new.is_empty() {
            return Ok(());
        }
        let mut writer = Writer::of_records(Vec::new(), &self.events)?;
        for pid in new {
            synthesize::process(&mut writer, pid)?;
        }
        let mut found = std::mem::take(writer.get_mut());
        self.layout.put_at(&mut found, time)?;
        ring.splice(0..0, found);
        Ok(())
    }

    /// Those who have come, if it is time to look. Who has left, or ended without a word, is forgotten: its mappings change without
    /// the recording, and its number may be another's.
    fn look(&mut self) -> Vec<u32> {
        if Instant::now() < self.next_look {
            return Vec::new();
        }
        let own = thread_cpu_time();
        let there: HashSet<u32> = self.group.processes().into_iter().collect();
        self.known.retain(|pid| there.contains(pid));
        let mut new: Vec<u32> = there.into_iter().filter(|pid| self.known.insert(*pid)).collect();
        new.sort_unstable();
        self.next_look = Instant::now() + OFTEN.max(thread_cpu_time().saturating_sub(own) * SHARE);
        new
    }

    /// Adds those to `new` that came in without a record of it.
    fn see(&mut self, record: &RecordBytes<'_>, new: &mut Vec<u32>) {
        let first = || word(record.body, 0).map(halves);
        let (pid, parent) = match record.kind {
            SAMPLE => (self.layout.sample_pid(record), None),
            sys::PERF_RECORD_COMM => {
                let pid = first().map(|[pid, _]| pid);
                if record.misc() & MISC_EXEC != 0 {
                    // All that it is comes after this.
                    self.known.extend(pid);
                    return;
                }
                (pid, None)
            }
            sys::PERF_RECORD_MMAP2 => (first().map(|[pid, _]| pid), None),
            sys::PERF_RECORD_FORK => match first() {
                Some([pid, parent]) if pid != parent => (Some(pid), Some(parent)),
                _ => (None, None),
            },
            sys::PERF_RECORD_EXIT => {
                if let (Some([pid, _]), Some([tid, _])) = (first(), word(record.body, 8).map(halves))
                    && self.known.contains(&pid)
                    && self.last_threads.ends(pid, tid)
                {
                    self.known.remove(&pid);
                }
                return;
            }
            _ => return,
        };
        // Those who have no number here, and the idle task.
        let has_number = |pid: &u32| !matches!(*pid, 0 | u32::MAX);
        match parent {
            // A child has what its parent had.
            Some(parent) => {
                if has_number(&parent) && self.known.insert(parent) {
                    new.push(parent);
                }
                self.known.extend(pid.filter(has_number));
            }
            None => new.extend(pid.filter(|pid| has_number(pid) && self.known.insert(*pid))),
        }
    }
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

    /// The processes of which records come before those of `write`, all with their time.
    fn before(members: &mut Members, write: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u32> {
        let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
        write(&mut writer);
        let mut ring = std::mem::take(writer.get_mut());
        let own = ring.clone();
        members.complete(&mut ring, 17).unwrap();
        let found = ring.strip_suffix(own.as_slice()).unwrap();
        let mut pids = Vec::new();
        for record in records(found) {
            let record = record.unwrap();
            assert_eq!(members.layout.time(&record), Some(17));
            if record.kind == sys::PERF_RECORD_FORK {
                pids.push(halves(word(record.body, 0).unwrap())[0]);
            }
        }
        pids.dedup();
        pids
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

    #[test]
    fn what_came_in_unseen_is_read_once_before_its_first_record() {
        let (own, child) = (std::process::id(), u32::MAX - 1);
        let mut all = members();
        assert_eq!(before(&mut all, |writer| named(writer, own, false, 20)), [own]);
        assert_eq!(before(&mut all, |writer| named(writer, own, false, 21)), [0; 0]);
        // It is the parent of one whose own record comes first.
        let mut all = members();
        assert_eq!(before(&mut all, |writer| forked(writer, child, own, 20)), [own]);
        assert!(all.known.contains(&child));
    }

    #[test]
    fn of_what_begins_in_the_group_the_kernel_tells_everything() {
        let (own, child) = (std::process::id(), u32::MAX - 1);
        let mut all = members();
        let told = before(&mut all, |writer| {
            named(writer, own, true, 20);
            forked(writer, child, own, 21);
            named(writer, child, false, 22);
        });
        assert_eq!(told, [0; 0]);
        // Another process may have its number.
        before(&mut all, |writer| {
            writer
                .write_exit(&Task { pid: child, ppid: own, tid: child, ptid: own, time: 30, sample_id: at(child, 30) })
                .unwrap();
        });
        assert!(!all.known.contains(&child));
    }
}
