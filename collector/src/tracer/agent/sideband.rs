//! Execs, forks and exits of the program, as soon as they happen: the kernel's records of them, from rings of their own.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr, SampleFormat};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::session::record_layout::first_record;
use crate::sys::control_group::ControlGroup;
use crate::sys::{EventFd, Ring, Scope};

/// Pages of a ring: some 800 records.
const PAGES: usize = 8;
/// PERF_RECORD_MISC_COMM_EXEC.
const EXEC: u16 = 1 << 13;

/// What happened to a process or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The process has another program.
    Exec { process: i32 },
    /// A thread or process began.
    Begin { process: i32, thread: i32, parent: i32 },
    /// A thread ended.
    End { process: i32, thread: i32 },
}

impl Happening {
    /// The process that must be followed for this to be of one that is.
    pub(crate) fn of_process(&self) -> i32 {
        match *self {
            Self::Begin { parent, .. } => parent,
            Self::Exec { process } | Self::End { process, .. } => process,
        }
    }

    /// The thread, if it has ended.
    pub(crate) fn ended_thread(&self) -> Option<i32> {
        match *self {
            Self::End { thread, .. } => Some(thread),
            _ => None,
        }
    }
}

/// How often at most the rings are read at a time.
const MOST_ROUNDS: u32 = 8;
/// How often at most threads are listed to find some that began while events were opened.
const MOST_LISTS: u32 = 5;

/// The rings, one for each CPU.
pub(crate) struct Sideband {
    rings: Vec<(EventFd, Ring)>,
    /// Events of other threads, with the same rings.
    others: Vec<EventFd>,
    bytes: Vec<u8>,
}

impl Sideband {
    /// Of the threads that `list` names, and all that comes from them. Each record makes a ring readable. What a thread begins while its
    /// event is opened may be told twice.
    pub(crate) fn open(cpus: &CpuList, list: impl Fn() -> Vec<i32>) -> Result<Self, Errno> {
        let mut sideband = Self::empty();
        let attr = attr(AttrFlags::INHERIT);
        let mut known = HashSet::new();
        for _ in 0..MOST_LISTS {
            let new: Vec<i32> = list().into_iter().filter(|thread| known.insert(*thread)).collect();
            if new.is_empty() {
                break;
            }
            for thread in new {
                match sideband.add(&attr, cpus, |cpu| Scope::Thread(thread, Some(cpu))) {
                    Ok(()) | Err(Errno::ESRCH) => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        sideband.with_rings()
    }

    /// Of what is in a control group.
    pub(crate) fn of_group(cpus: &CpuList, group: &ControlGroup) -> Result<Self, Errno> {
        let folder = group.open()?;
        let mut sideband = Self::empty();
        sideband.add(&attr(AttrFlags::default()), cpus, |cpu| Scope::Group(folder.as_raw_fd(), cpu))?;
        sideband.with_rings()
    }

    /// Of everything that runs.
    pub(crate) fn of_cpus(cpus: &CpuList) -> Result<Self, Errno> {
        let mut sideband = Self::empty();
        sideband.add(&attr(AttrFlags::default()), cpus, Scope::Cpu)?;
        sideband.with_rings()
    }

    fn empty() -> Self {
        Self { rings: Vec::new(), others: Vec::new(), bytes: Vec::new() }
    }

    fn with_rings(self) -> Result<Self, Errno> {
        if self.rings.is_empty() { Err(Errno::ESRCH) } else { Ok(self) }
    }

    /// Opens the event on each CPU; the first event of a CPU has its ring.
    fn add(&mut self, attr: &EventAttr, cpus: &CpuList, scope: impl Fn(u32) -> Scope) -> Result<(), Errno> {
        for (place, cpu) in cpus.iter().enumerate() {
            let event = EventFd::open(attr, scope(cpu))?;
            if let Some((first, _)) = self.rings.get(place) {
                event.share_ring_of(first)?;
                self.others.push(event);
            } else {
                let ring = Ring::map(&event, PAGES)?;
                self.rings.push((event, ring));
            }
        }
        Ok(())
    }

    /// What becomes readable when something has happened.
    pub(crate) fn polled(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|(event, _)| event.as_fd())
    }

    /// What happened since the last time, in order, and when, ns of the kernel's clock of events.
    pub(crate) fn happened(&mut self) -> Vec<(u64, Happening)> {
        self.bytes.clear();
        let rings = &mut self.rings;
        drain_all(&mut self.bytes, |bytes| rings.iter_mut().for_each(|(_, ring)| _ = ring.drain(bytes)));
        read(&self.bytes)
    }
}

/// Reads all rings until they hold nothing: what was read of one may follow from what came into another after that one was read, as the
/// fork of a child from that of its parent.
fn drain_all(bytes: &mut Vec<u8>, mut drain: impl FnMut(&mut Vec<u8>)) {
    for _ in 0..MOST_ROUNDS {
        let before = bytes.len();
        drain(bytes);
        if bytes.len() == before {
            break;
        }
    }
}

/// An event that tells of forks, execs and exits at once, and counts nothing.
fn attr(inherit: AttrFlags) -> EventAttr {
    EventAttr {
        kind: sys::PERF_TYPE_SOFTWARE,
        config: u64::from(sys::PERF_COUNT_SW_DUMMY),
        flags: inherit
            | AttrFlags::TASK
            | AttrFlags::COMM
            | AttrFlags::COMM_EXEC
            | AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::WATERMARK
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV,
        sample_format: SampleFormat::TIME,
        wakeup_events_or_watermark: 1,
        ..EventAttr::default()
    }
}

fn read(bytes: &[u8]) -> Vec<(u64, Happening)> {
    let (mut happened, mut offset) = (Vec::new(), 0);
    while let Ok(Some(record)) = first_record(&bytes[offset..], offset) {
        offset += record.all.len();
        let word = |at: usize| {
            record.body.get(4 * at..4 * at + 4).map(|word| i32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
        };
        let misc = u16::from_ne_bytes([record.all[4], record.all[5]]);
        let (Some(first), Some(second)) = (word(0), word(1)) else { continue };
        // The time is the last field (sample_id_all).
        let Some(time) = record.body.last_chunk::<8>().map(|time| u64::from_ne_bytes(*time)) else { continue };
        match record.kind {
            sys::PERF_RECORD_COMM if misc & EXEC != 0 => {
                happened.push((time, Happening::Exec { process: first }));
            }
            // pid, ppid, tid, ptid.
            sys::PERF_RECORD_FORK => {
                let Some(thread) = word(2) else { continue };
                happened.push((time, Happening::Begin { process: first, thread, parent: second }));
            }
            sys::PERF_RECORD_EXIT => {
                let Some(thread) = word(2) else { continue };
                happened.push((time, Happening::End { process: first, thread }));
            }
            _ => {}
        }
    }
    happened.sort_by_key(|(time, _)| *time);
    happened
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[i32]) -> Vec<u8> {
        let size = 8 + 4 * words.len() as u16;
        let header = [kind.to_ne_bytes().as_slice(), &misc.to_ne_bytes(), &size.to_ne_bytes()].concat();
        words.iter().fold(header, |bytes, word| [bytes, word.to_ne_bytes().to_vec()].concat())
    }

    fn at(time: i32, kind: u32, misc: u16, words: &[i32]) -> Vec<u8> {
        record(kind, misc, &[words, &[time, 0]].concat())
    }

    #[test]
    fn records_of_processes_and_threads() {
        let bytes = [
            at(4, sys::PERF_RECORD_FORK, 0, &[6, 6, 9, 6, 0, 0]),
            at(6, sys::PERF_RECORD_EXIT, 0, &[7, 6, 7, 6, 0, 0]),
            // Of another ring.
            at(3, sys::PERF_RECORD_FORK, 0, &[7, 6, 7, 6, 0, 0]),
            at(5, sys::PERF_RECORD_COMM, EXEC, &[7, 7, 0, 0]),
            at(5, sys::PERF_RECORD_COMM, 0, &[7, 7, 0, 0]),
        ];
        assert_eq!(
            read(&bytes.concat()),
            [
                (3, Happening::Begin { process: 7, thread: 7, parent: 6 }),
                (4, Happening::Begin { process: 6, thread: 9, parent: 6 }),
                (5, Happening::Exec { process: 7 }),
                (6, Happening::End { process: 7, thread: 7 }),
            ]
        );
        // What is broken is passed over.
        assert_eq!(read(&record(sys::PERF_RECORD_FORK, 0, &[7])), []);
        assert_eq!(read(&[1, 2, 3]), []);
    }

    #[test]
    fn rings_are_read_until_they_are_empty() {
        // What each ring gets before each round: the child's parent is born in the first one after that was read.
        let child = at(4, sys::PERF_RECORD_FORK, 0, &[8, 7, 8, 7, 0, 0]);
        let parent = at(3, sys::PERF_RECORD_FORK, 0, &[7, 6, 7, 6, 0, 0]);
        let mut rounds = vec![vec![child], vec![parent], vec![]].into_iter();
        let mut bytes = Vec::new();
        drain_all(&mut bytes, |bytes| bytes.extend(rounds.next().unwrap().concat()));
        let of = |id, parent| Happening::Begin { process: id, thread: id, parent };
        assert_eq!(read(&bytes), [(3, of(7, 6)), (4, of(8, 7))]);
        let mut rounds = 0;
        drain_all(&mut Vec::new(), |bytes| (rounds, _) = (rounds + 1, bytes.push(0)));
        assert_eq!(rounds, MOST_ROUNDS, "it ends");
    }
}
