//! What is kept of the records of everything that runs: those of some processes, and of those that they start.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;

use crate::session::last_thread::LastThreads;
use crate::session::record_layout::{
    BrokenRecord, RecordBytes, RecordLayout, SAMPLE, first_record, halves, records, word,
};
use crate::sys::process::{exists, is_alive};

/// How often it is looked whether those who belong to it are there still: the record of an end can be lost.
const SWEEP: Duration = Duration::from_secs(60);

/// Processes with all that comes from them.
#[derive(Debug)]
pub(crate) struct Family {
    layout: RecordLayout,
    members: HashSet<u32>,
    last_threads: LastThreads,
    /// Those that have ended in this round, and in the one before: their last records may be in a ring that was read before that of their end.
    ended: [Vec<u32>; 2],
    /// What rings held right after a round was read, which is of the next one.
    ahead: Vec<Vec<u8>>,
    next_sweep: Instant,
}

/// What changes who belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Born { pid: u32, parent: u32 },
    Ended { pid: u32, tid: u32 },
}

impl Family {
    /// Of these processes, and of those that they start.
    pub(crate) fn new(layout: RecordLayout, pids: &[u32]) -> Self {
        Self {
            layout,
            members: pids.iter().copied().collect(),
            last_threads: LastThreads::default(),
            ended: [Vec::new(), Vec::new()],
            ahead: Vec::new(),
            next_sweep: Instant::now() + SWEEP,
        }
    }

    /// Reads a round: what is of the family in each ring. `drain` appends what a ring holds.
    ///
    /// A process may run on another CPU than its parent, and say something there before the ring is read that tells of its birth. So all rings are
    /// read once more, after all have been read: what they hold then goes into the next round, and who is born there is known in this one.
    ///
    /// # Errors
    /// A ring holds no whole records.
    pub(crate) fn read(
        &mut self,
        rings: &mut Vec<Vec<u8>>,
        count: usize,
        mut drain: impl FnMut(usize, &mut Vec<u8>),
    ) -> Result<(), BrokenRecord> {
        rings.resize_with(count, Vec::new);
        self.ahead.resize_with(count, Vec::new);
        for (index, (ring, ahead)) in rings.iter_mut().zip(&mut self.ahead).enumerate() {
            ring.clear();
            ring.append(ahead);
            drain(index, ring);
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.iter_mut().enumerate().for_each(|(index, ring)| drain(index, ring));
        let kept = self.keep(rings, &ahead);
        self.ahead = ahead;
        kept
    }

    /// Whether something was read that is of the next round.
    pub(crate) fn is_ahead(&self) -> bool {
        self.ahead.iter().any(|ring| !ring.is_empty())
    }

    fn keep(&mut self, rings: &mut [Vec<u8>], ahead: &[Vec<u8>]) -> Result<(), BrokenRecord> {
        let mut changes = Vec::new();
        self.see(rings, true, &mut changes)?;
        self.see(ahead, false, &mut changes)?;
        changes.sort_unstable();
        for (_, change) in changes {
            self.apply(change);
        }
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
        if Instant::now() >= self.next_sweep {
            self.next_sweep = Instant::now() + SWEEP;
            now.extend(self.members.iter().copied().filter(|pid| !exists(*pid)));
        }
        Ok(())
    }

    /// Who was born and who has ended, with the times; of the next round births alone, which are seen again.
    fn see(&self, rings: &[Vec<u8>], with_ends: bool, to: &mut Vec<(u64, Change)>) -> Result<(), BrokenRecord> {
        for ring in rings {
            for record in records(ring) {
                let record = record?;
                let change = match (record.kind, word(record.body, 0).map(halves), word(record.body, 8).map(halves)) {
                    (sys::PERF_RECORD_FORK, Some([pid, parent]), _) if pid != parent => Change::Born { pid, parent },
                    (sys::PERF_RECORD_EXIT, Some([pid, _]), Some([tid, _])) if with_ends => Change::Ended { pid, tid },
                    _ => continue,
                };
                to.push((self.layout.time(&record).unwrap_or_default(), change));
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Born { pid, parent } if self.members.contains(&parent) => {
                self.members.insert(pid);
                // The number of one that has ended is given again.
                self.ended.iter_mut().for_each(|ended| ended.retain(|&id| id != pid));
            }
            Change::Ended { pid, tid }
                if self.members.contains(&pid) && self.last_threads.ends(pid, tid) && !is_alive(pid) =>
            {
                self.ended[0].push(pid);
            }
            Change::Born { .. } | Change::Ended { .. } => {}
        }
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

    fn family(pids: &[u32]) -> Family {
        Family::new(RecordLayout::of_events(&one_event()), pids)
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
        family.keep(&mut rings, &[]).unwrap();
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
        assert_eq!(kept(&mut family(&[A]), children()), [vec![C, B], vec![C, A], vec![B]]);
    }

    #[test]
    fn what_has_ended_is_known_for_a_round_more() {
        let mut family = family(&[A]);
        let ends = vec![ring(|writer| ended(writer, A, 20)), ring(|writer| named(writer, A, 19))];
        assert_eq!(kept(&mut family, ends), [[A], [A]]);
        // In a ring that was read before the one that told of its end.
        let one = || vec![ring(|writer| named(writer, A, 20))];
        assert_eq!(kept(&mut family, one()), [[A]]);
        assert_eq!(kept(&mut family, one()), [Vec::<u32>::new()], "another has its number");
        // Which is one of the family at once.
        let mut family = self::family(&[A, B]);
        kept(&mut family, vec![ring(|writer| ended(writer, A, 20))]);
        kept(&mut family, vec![ring(|writer| forked(writer, A, B, 21))]);
        assert_eq!(kept(&mut family, one()), [[A]]);
        assert_eq!(kept(&mut family, one()), [[A]]);
    }

    #[test]
    fn what_is_born_and_ends_within_a_round_is_forgotten() {
        let mut family = family(&[A]);
        let lives = vec![ring(|writer| ended(writer, B, 13)), ring(|writer| forked(writer, B, A, 11))];
        assert_eq!(kept(&mut family, lives), [[B], [B]]);
        kept(&mut family, Vec::new());
        assert_eq!(kept(&mut family, vec![ring(|writer| named(writer, B, 30))]), [Vec::<u32>::new()]);
    }

    #[test]
    fn a_birth_that_is_told_while_rings_are_read_is_known() {
        let mut family = family(&[A]);
        // The first ring has nothing when it is read; when the second one is, the child is there already.
        let mut told = [
            vec![Vec::new(), ring(|writer| forked(writer, B, A, 11))],
            vec![ring(|writer| named(writer, B, 12)), Vec::new()],
        ];
        let mut rings = Vec::new();
        family.read(&mut rings, 2, |index, to| to.append(&mut told[index].remove(0))).unwrap();
        let of = |rings: &[Vec<u8>]| rings.iter().map(|ring| records(ring).count()).collect::<Vec<_>>();
        assert_eq!(of(&rings), [0, 1]);
        assert!(family.is_ahead());
        family.read(&mut rings, 2, |_, _| {}).unwrap();
        assert_eq!(of(&rings), [1, 0]);
        assert!(!family.is_ahead());
    }

    #[test]
    fn what_is_of_nobody_is_kept_and_what_is_broken_is_told() {
        // PERF_RECORD_LOST: an id, and how many.
        let lost = [&2_u32.to_le_bytes()[..], &[0, 0, 24, 0], &[5; 16]].concat();
        let mut rings = vec![lost.clone()];
        family(&[]).keep(&mut rings, &[]).unwrap();
        assert_eq!(rings, [lost]);
        assert!(family(&[]).keep(&mut [vec![1; 9]], &[]).is_err());
    }
}
