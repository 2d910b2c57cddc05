//! What is kept of the records of everything that runs: those of some processes, and of those that they start.

use std::collections::HashSet;

use perf_event_open_sys::bindings as sys;

use crate::session::last_thread::LastThreads;
use crate::session::record_layout::{
    BrokenRecord, RecordBytes, RecordLayout, SAMPLE, first_record, halves, records, word,
};

/// Processes with all that comes from them.
#[derive(Debug)]
pub(crate) struct Family {
    layout: RecordLayout,
    members: HashSet<u32>,
    /// Those that they start belong to them.
    grows: bool,
    last_threads: LastThreads,
    /// Those that have ended in this round, and in the one before: their last records may be in a ring that was read before that of their end.
    ended: [Vec<u32>; 2],
}

impl Family {
    /// Of these processes. `grows`: and of those that they start.
    pub(crate) fn new(layout: RecordLayout, pids: &[u32], grows: bool) -> Self {
        let members = pids.iter().copied().collect();
        Self { layout, members, grows, last_threads: LastThreads::default(), ended: [Vec::new(), Vec::new()] }
    }

    /// Keeps what is of the family in `rings`, what all rings of a round held. A process can be on another CPU than its parent, so who belongs to
    /// it is known when all have been looked at.
    ///
    /// # Errors
    /// A ring holds no whole records.
    pub(crate) fn keep(&mut self, rings: &mut [Vec<u8>]) -> Result<(), BrokenRecord> {
        self.see(rings)?;
        for ring in rings {
            let (mut from, mut to) = (0, 0);
            while let Some(record) = first_record(&ring[from..], from)? {
                let (length, is_kept) = (record.all.len(), self.is_of_it(&record));
                if is_kept {
                    ring.copy_within(from..from + length, to);
                    to += length;
                }
                from += length;
            }
            ring.truncate(to);
        }
        let [now, before] = &mut self.ended;
        for pid in before.drain(..) {
            self.members.remove(&pid);
        }
        std::mem::swap(now, before);
        Ok(())
    }

    /// Learns who was born, in order, and who has ended.
    fn see(&mut self, rings: &[Vec<u8>]) -> Result<(), BrokenRecord> {
        let mut born = Vec::new();
        for ring in rings {
            for record in records(ring) {
                let record = record?;
                match (record.kind, word(record.body, 0).map(halves)) {
                    (sys::PERF_RECORD_FORK, Some([pid, parent])) if self.grows && pid != parent => {
                        born.push((self.layout.time(&record).unwrap_or_default(), pid, parent));
                    }
                    (sys::PERF_RECORD_EXIT, Some([pid, _])) if self.members.contains(&pid) => {
                        let thread = word(record.body, 8).map(halves);
                        if thread.is_some_and(|[tid, _]| self.last_threads.ends(pid, tid)) {
                            self.ended[0].push(pid);
                        }
                    }
                    _ => {}
                }
            }
        }
        born.sort_unstable();
        for (_, pid, parent) in born {
            if self.members.contains(&parent) {
                self.members.insert(pid);
                // The number of one that has ended is given again.
                self.ended.iter_mut().for_each(|ended| ended.retain(|&id| id != pid));
            }
        }
        Ok(())
    }

    /// Whether a record is of the family, or of nobody in particular: what was lost, what the kernel did.
    fn is_of_it(&self, record: &RecordBytes<'_>) -> bool {
        let pid = match record.kind {
            SAMPLE => self.layout.sample_pid(record),
            sys::PERF_RECORD_MMAP
            | sys::PERF_RECORD_MMAP2
            | sys::PERF_RECORD_COMM
            | sys::PERF_RECORD_FORK
            | sys::PERF_RECORD_EXIT => word(record.body, 0).map(|ids| halves(ids)[0]),
            _ => None,
        };
        pid.is_none_or(|pid| self.members.contains(&pid))
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{Comm, SampleId, Task, Writer};

    use super::*;
    use crate::session::record_layout::one_event;
    use crate::session::standing::sample_id;

    fn family(pids: &[u32], grows: bool) -> Family {
        Family::new(RecordLayout::of_events(&one_event()), pids, grows)
    }

    fn at(pid: u32, time: u64) -> SampleId {
        SampleId { time: Some(time), ..sample_id(&one_event(), pid, pid) }
    }

    /// What a ring holds that these write.
    fn ring(write: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
        let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
        write(&mut writer);
        std::mem::take(writer.get_mut())
    }

    fn named(writer: &mut Writer<Vec<u8>>, pid: u32, time: u64) {
        writer.write_comm(&Comm { pid, tid: pid, exec: false, name: b"x", sample_id: at(pid, time) }).unwrap();
    }

    fn forked(writer: &mut Writer<Vec<u8>>, pid: u32, ppid: u32, time: u64) {
        writer.write_fork(&Task { pid, ppid, tid: pid, ptid: ppid, time, sample_id: at(ppid, time) }).unwrap();
    }

    fn ended(writer: &mut Writer<Vec<u8>>, pid: u32, time: u64) {
        writer.write_exit(&Task { pid, ppid: 1, tid: pid, ptid: 1, time, sample_id: at(pid, time) }).unwrap();
    }

    /// The processes whose records are kept of each ring.
    fn kept(family: &mut Family, mut rings: Vec<Vec<u8>>) -> Vec<Vec<u32>> {
        family.keep(&mut rings).unwrap();
        let pids =
            |ring: &Vec<u8>| records(ring).map(|record| halves(word(record.unwrap().body, 0).unwrap())[0]).collect();
        rings.iter().map(pids).collect()
    }

    // No process has these numbers.
    const A: u32 = u32::MAX - 1;
    const B: u32 = u32::MAX - 2;
    const C: u32 = u32::MAX - 3;
    const D: u32 = u32::MAX - 4;

    #[test]
    fn children_belong_to_it_wherever_they_run() {
        let children = || {
            vec![
                // A grandchild is told of before its parent, and both before the ring of their births.
                ring(|writer| {
                    named(writer, C, 14);
                    named(writer, B, 12);
                    named(writer, D, 12);
                }),
                ring(|writer| {
                    forked(writer, C, B, 13);
                    named(writer, A, 14);
                }),
                ring(|writer| {
                    forked(writer, B, A, 11);
                    forked(writer, D, 7, 11);
                }),
            ]
        };
        assert_eq!(kept(&mut family(&[A], true), children()), [vec![C, B], vec![C, A], vec![B]]);
        assert_eq!(kept(&mut family(&[A], false), children()), [vec![], vec![A], vec![]]);
    }

    #[test]
    fn what_has_ended_is_known_for_a_round_more() {
        let mut family = family(&[A], true);
        let ends = vec![ring(|writer| ended(writer, A, 20)), ring(|writer| named(writer, A, 19))];
        assert_eq!(kept(&mut family, ends), [[A], [A]]);
        // In a ring that was read before the one that told of its end.
        let one = || vec![ring(|writer| named(writer, A, 20))];
        assert_eq!(kept(&mut family, one()), [[A]]);
        assert_eq!(kept(&mut family, one()), [Vec::<u32>::new()], "another has its number");
        // Which is one of the family at once.
        let mut family = self::family(&[A, B], true);
        kept(&mut family, vec![ring(|writer| ended(writer, A, 20))]);
        kept(&mut family, vec![ring(|writer| forked(writer, A, B, 21))]);
        assert_eq!(kept(&mut family, one()), [[A]]);
        assert_eq!(kept(&mut family, one()), [[A]]);
    }

    #[test]
    fn what_is_of_nobody_is_kept_and_what_is_broken_is_told() {
        // PERF_RECORD_LOST: an id, and how many.
        let lost = [&2_u32.to_le_bytes()[..], &[0, 0, 24, 0], &[5; 16]].concat();
        let mut rings = vec![lost.clone()];
        family(&[], true).keep(&mut rings).unwrap();
        assert_eq!(rings, [lost]);
        assert!(family(&[], true).keep(&mut [vec![1; 9]]).is_err());
    }
}
