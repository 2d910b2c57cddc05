//! What the kernel does to its own code while it is recorded: an event on each CPU that counts nothing, and tells of symbols that come and go
//! (`PERF_RECORD_KSYMBOL`), of BPF programs (`PERF_RECORD_BPF_EVENT`), and of code that is patched (`PERF_RECORD_TEXT_POKE`).
//!
//! An event of a thread tells of what this thread does, but whoever patches the kernel patches it for all. So these are events of whole CPUs,
//! of all there are, whatever is recorded.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use formats::metadata::Metadata;
use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr, EventDescription, SampleFormat};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::session::Summary;
use crate::session::open::map_ring;
use crate::session::producer::Producer;
use crate::session::record_layout::{records, word};
use crate::sys::{EventFd, Ring, Scope};

/// Pages of a ring: room for some 4,000 records.
const PAGES: usize = 64;
/// Since Linux 5.1, and since 5.9.
const SYMBOLS: AttrFlags = AttrFlags::KSYMBOL.union(AttrFlags::BPF_EVENT);
const ALL: AttrFlags = SYMBOLS.union(AttrFlags::TEXT_POKE);

/// The events and their rings, one for each CPU.
#[derive(Debug)]
pub(crate) struct KernelChanges {
    rings: Vec<(EventFd, Ring)>,
    /// The event that readers take the records for.
    id: u64,
    /// Records for which there was no room in a ring.
    lost: u64,
    /// Events that have hung up: their CPU is not there any more.
    hung_up: Vec<usize>,
}

impl KernelChanges {
    /// Opens the events, which tell at once. `first`: the first event of the recording, whose records have the layout that all have. Returns
    /// what is missing, in a sentence, too.
    pub(crate) fn open(first: &EventDescription, cpus: &CpuList) -> (Option<Self>, Option<String>) {
        let id = first.ids.first().copied().unwrap_or(0);
        let open = |flags| {
            rings(&attr(&first.attr, flags), cpus).map(|rings| Self { rings, id, lost: 0, hung_up: Vec::new() })
        };
        let missing = |what: &str, why: &str| Some(format!("{what} is not in the recording: {why}"));
        let changes = "what the kernel changes of its code while it is recorded (patches, BPF programs)";
        let refused = |refused: Refused| match refused {
            Refused::Event(Errno::EINVAL) => missing(changes, "Linux tells it from 5.1 on"),
            Refused::Event(Errno::EACCES | Errno::EPERM) => {
                missing(changes, "that takes kernel.perf_event_paranoid of 0 or lower, or CAP_PERFMON")
            }
            Refused::Ring(Errno::EPERM) => {
                missing(changes, "there is no room for its rings in kernel.perf_event_mlock_kb, nor in ulimit -l")
            }
            Refused::Event(errno) | Refused::Ring(errno) => missing(changes, &errno.to_string()),
        };
        match open(ALL) {
            Ok(opened) => (Some(opened), None),
            Err(Refused::Event(Errno::EINVAL)) => match open(SYMBOLS) {
                Ok(opened) => {
                    (Some(opened), missing("what the kernel patches of its code", "Linux tells it from 5.9 on"))
                }
                Err(why) => (None, refused(why)),
            },
            Err(why) => (None, refused(why)),
        }
    }

    /// Says what was lost since this was asked last.
    fn say_lost(&mut self, summary: &mut Summary) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            summary.metadata.degradations.push(format!(
                "{lost} changes of kernel code found no room and are lost: code of the kernel may be counted as it was at another time"
            ));
        }
    }
}

/// What was refused: an event, or memory for its ring.
enum Refused {
    Event(Errno),
    Ring(Errno),
}

/// An event without samples, whose other records have the layout of those of `first`.
fn attr(first: &EventAttr, changes: AttrFlags) -> EventAttr {
    use SampleFormat as F;
    let in_trailer = F::TID | F::TIME | F::ID | F::STREAM_ID | F::CPU | F::IDENTIFIER;
    let ring_bytes = PAGES * rustix::param::page_size();
    EventAttr {
        kind: sys::PERF_TYPE_SOFTWARE,
        config: u64::from(sys::PERF_COUNT_SW_DUMMY),
        sample_format: SampleFormat(first.sample_format.0 & in_trailer.0),
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::USE_CLOCKID | AttrFlags::WATERMARK | changes,
        clockid: first.clockid,
        wakeup_events_or_watermark: (ring_bytes / 4) as u32,
        ..EventAttr::default()
    }
}

/// Opens the event on each CPU; one that is not there any more is passed over. Rings are as large as there is room for.
fn rings(attr: &EventAttr, cpus: &CpuList) -> Result<Vec<(EventFd, Ring)>, Refused> {
    let mut rings = Vec::new();
    let mut pages = PAGES;
    for cpu in cpus.iter() {
        let event = match EventFd::open(attr, Scope::Cpu(cpu)) {
            Ok(event) => event,
            Err(Errno::ENODEV) => continue,
            Err(errno) => return Err(Refused::Event(errno)),
        };
        let ring = map_ring(&event, &mut pages, true).map_err(Refused::Ring)?;
        rings.push((event, ring));
    }
    Ok(rings)
}

/// Gives records the id of an event of the recording, which has none for these: it is the last word of each. Returns how many were lost.
fn of_event(records_of_ring: &mut [u8], id: u64) -> u64 {
    let (mut end, mut lost) = (0, 0);
    loop {
        let Some(Ok(record)) = records(records_of_ring.get(end..).unwrap_or_default()).next() else { return lost };
        // id, lost.
        lost += if record.kind == sys::PERF_RECORD_LOST { word(record.body, 8).unwrap_or(0) } else { 0 };
        end += record.all.len();
        if let Some(last) = end.checked_sub(8).and_then(|at| records_of_ring.get_mut(at..end)) {
            last.copy_from_slice(&id.to_le_bytes());
        }
    }
}

impl Producer for KernelChanges {
    fn events(&self) -> &[EventDescription] {
        &[]
    }

    fn introduce(&self, _metadata: &mut Metadata) {}

    fn rings(&self) -> usize {
        self.rings.len()
    }

    fn drain(&mut self, ring: usize, records: &mut Vec<u8>) {
        let before = records.len();
        if let Some((_, ring)) = self.rings.get_mut(ring) {
            let _ = ring.drain(records);
            self.lost += of_event(&mut records[before..], self.id);
        }
    }

    fn polled(&self) -> Vec<(usize, BorrowedFd<'_>)> {
        let there = self.rings.iter().enumerate().filter(|(ring, _)| !self.hung_up.contains(ring));
        there.map(|(ring, (event, _))| (ring, event.as_fd())).collect()
    }

    fn hung_up(&mut self, ring: usize) {
        self.hung_up.push(ring);
    }

    fn stop(&mut self) {
        for (event, _) in &self.rings {
            let _ = event.disable();
        }
    }

    fn conclude_file(&mut self, _own: Range<usize>, summary: &mut Summary) {
        self.say_lost(summary);
    }

    fn conclude(&mut self, _own: Range<usize>, summary: &mut Summary) {
        self.say_lost(summary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::record_layout::{RecordLayout, one_event};

    #[test]
    fn records_are_those_of_an_event_of_the_recording() {
        let record = |words: &[u64]| -> Vec<u8> {
            let header = [17, 0, 0, 0, 0, 0, 8 + 8 * words.len() as u8, 0];
            header.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
        };
        let mut ring = [record(&[1, 2, 77]), record(&[3, 77])].concat();
        assert_eq!(of_event(&mut ring, 5), 0);
        assert_eq!(ring, [record(&[1, 2, 5]), record(&[3, 5])].concat());
        let mut lost = record(&[1, 40, 77]);
        lost[0] = 2;
        assert_eq!(of_event(&mut [lost, record(&[1, 2, 77])].concat(), 5), 40);
        // What is cut off stays as it is.
        let mut cut = record(&[1, 77])[..20].to_vec();
        of_event(&mut cut, 5);
        assert_eq!(cut, record(&[1, 77])[..20]);
    }

    #[test]
    fn records_have_the_layout_of_the_recording() {
        let mut first = one_event().remove(0).attr;
        first.sample_format |= SampleFormat::PERIOD | SampleFormat::BRANCH_STACK | SampleFormat::CPU;
        let side = attr(&first, ALL);
        assert!(!side.has_branch_stack());
        let bytes = [20, 0, 0, 0, 0, 0, 56, 0].into_iter().chain((1..7_u64).flat_map(u64::to_le_bytes));
        let bytes: Vec<u8> = bytes.collect();
        let record = crate::session::record_layout::first_record(&bytes, 0).unwrap().unwrap();
        assert_eq!(RecordLayout::of(&side).time(&record), RecordLayout::of(&first).time(&record));
        assert_eq!(RecordLayout::of(&side).time(&record), Some(4));
    }
}
