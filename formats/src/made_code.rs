//! Code that is in no file, as records of the data section: what bursts executed of it, and what was in memory where samples fell; its names, and
//! the vDSO.
//!
//! The type is that of the first metadata, `PERF_RECORD_HEADER_EVENT_TYPE` (65), which other tools pass over in silence; the first word of
//! the body tells them apart. All numbers are little-endian words of 64 bits, bytes and names have zeros up to a multiple of 8:
//!
//! ```text
//! hbbpcode  time, pid, then pieces:  address, length, bytes
//! hbbpname  pid, then names:         address, size, length of the name, name
//! hbbpcall  time, pid, then names:   the same, of names that hold from this time on
//! hbbpvdso  length, an ELF file that the kernel maps into all processes: into those of 32 bits, if its class is 32
//! ```
//!
//! Code and names of the kernel are those of process [`KERNEL_PID`]: of time 0 as it was when the recording ended, of another time from then on
//! (BPF programs).

use crate::metadata::RECORD_TYPE;
use crate::tolerant::{objects, tolerant_objects};

tolerant_objects! {
    /// The `made_code` object of a recording's metadata: what the recording has of code that is in no file.
    pub struct MadeCodeMetadata {
        /// Pieces that were written: blocks, or parts of pages, that were new or had changed.
        pub pieces: Option<u64>,
        /// Their bytes.
        pub bytes: Option<u64>,
        /// Pieces for which there was no room.
        pub left_out: Option<u64>,
        /// Pieces of processes that had ended before it was known what of their code is in files.
        pub unplaced: Option<u64>,
        /// Names that processes had given to their code.
        pub names: Option<u64>,
        /// Names for which there was no room.
        pub names_left_out: Option<u64>,
        /// Pages in which samples fell that were not read, for there were too many at a time.
        pub pages_left_out: Option<u64>,
        /// Pages in which samples fell that were gone when they were to be read.
        pub pages_gone: Option<u64>,
        /// Processes whose memory could not be read.
        pub processes_refused: Option<u64>,
        /// Processes of 32 bits, whose code is read of files only.
        pub processes_of_32_bit: Option<u64>,
        /// Mappings without a file that were too many to be kept.
        pub mappings_left_out: Option<u64>,
    }
}

objects! { MadeCodeMetadata }

/// The number of the process that code of the kernel is of, as its mappings are in `perf.data`: -1.
pub const KERNEL_PID: u32 = u32::MAX;

const CODE: u64 = u64::from_le_bytes(*b"hbbpcode");
const NAMES: u64 = u64::from_le_bytes(*b"hbbpname");
const NAMES_SINCE: u64 = u64::from_le_bytes(*b"hbbpcall");
const VDSO: u64 = u64::from_le_bytes(*b"hbbpvdso");

/// Bytes of a body at most, so that it fits into a record.
const MOST: usize = 65_512;
/// Bytes of a name that are written.
const MOST_NAME: usize = 4096;

/// What a record says of code that is in no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MadeCode<'a> {
    /// A burst executed this code, or a sample fell in it or near it. Pieces may begin amid an instruction.
    Executed {
        /// When, ns, on the clock of the samples: that of the burst's samples, or of the sample; later, where the code of before was seen later.
        /// Of the kernel see above.
        time: u64,
        /// In which process.
        pid: u32,
        /// Addresses in the process, and the bytes that were there.
        pieces: Vec<(u64, &'a [u8])>,
    },
    /// A process' code has these names.
    Named {
        /// From when on, ns, on the clock of the samples; 0 if that is not known. The first name of an address is that of all time before, too.
        since: u64,
        /// Which process.
        pid: u32,
        /// Of each name the first address, in the process, and the size in bytes.
        names: Vec<(u64, u64, &'a [u8])>,
    },
    /// The ELF file that processes have as `[vdso]`: those of 32 bits, if its class is 32, or else those of 64.
    Vdso(&'a [u8]),
}

impl<'a> MadeCode<'a> {
    /// Reads the body of a record of that type; `None` if it is none of these. What is cut off is left out.
    pub fn of_record(record_type: u32, body: &'a [u8]) -> Option<Self> {
        if record_type != RECORD_TYPE {
            return None;
        }
        let mut rest = Words(body);
        match rest.word()? {
            CODE => {
                let (time, pid) = (rest.word()?, rest.word()? as u32);
                let pieces = std::iter::from_fn(|| Some((rest.word()?, rest.bytes()?))).collect();
                Some(Self::Executed { time, pid, pieces })
            }
            tag @ (NAMES | NAMES_SINCE) => {
                let since = if tag == NAMES_SINCE { rest.word()? } else { 0 };
                let pid = rest.word()? as u32;
                let names = std::iter::from_fn(|| Some((rest.word()?, rest.word()?, rest.bytes()?))).collect();
                Some(Self::Named { since, pid, names })
            }
            VDSO => rest.bytes().map(Self::Vdso),
            _ => None,
        }
    }

    /// The bodies of its records: as many as it takes. A longer piece than fits into one is left out, of a longer name the beginning is
    /// written.
    pub fn to_record_bodies(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Executed { time, pid, pieces } => {
                let items = pieces.iter().map(|(at, bytes)| sized([*at].as_slice(), bytes));
                bodies(&[CODE, *time, u64::from(*pid)], items)
            }
            Self::Named { since, pid, names } => {
                let items = names
                    .iter()
                    .map(|(at, size, name)| sized([*at, *size].as_slice(), name.get(..MOST_NAME).unwrap_or(name)));
                match since {
                    0 => bodies(&[NAMES, u64::from(*pid)], items),
                    since => bodies(&[NAMES_SINCE, *since, u64::from(*pid)], items),
                }
            }
            Self::Vdso(bytes) => bodies(&[VDSO], std::iter::once(sized(&[], bytes))),
        }
    }
}

fn sized(words: &[u64], bytes: &[u8]) -> Vec<u8> {
    let mut item: Vec<u8> = words.iter().copied().chain([bytes.len() as u64]).flat_map(u64::to_le_bytes).collect();
    item.extend(bytes);
    item.resize(item.len().next_multiple_of(8), 0);
    item
}

fn bodies(head: &[u64], items: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let head: Vec<u8> = head.iter().copied().flat_map(u64::to_le_bytes).collect();
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for item in items.filter(|item| head.len() + item.len() <= MOST) {
        match bodies.last_mut() {
            Some(body) if body.len() + item.len() <= MOST => body.extend(item),
            _ => bodies.push([head.as_slice(), &item].concat()),
        }
    }
    bodies
}

/// What is left of a body.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A length, so many bytes, and the zeros after them.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.word()?).ok()?;
        let (bytes, _) = self.0.split_at_checked(length)?;
        self.0 = self.0.get(length.checked_next_multiple_of(8)?..).unwrap_or_default();
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(code: &MadeCode<'_>) {
        let bodies = code.to_record_bodies();
        assert_eq!(bodies.len(), 1);
        assert_eq!(bodies[0].len() % 8, 0);
        assert_eq!(MadeCode::of_record(RECORD_TYPE, &bodies[0]).as_ref(), Some(code));
        assert_eq!(MadeCode::of_record(66, &bodies[0]), None);
        assert!(crate::phase_mark::PhaseMark::of_record(RECORD_TYPE, &bodies[0]).is_none());
    }

    #[test]
    fn records_come_out_as_they_went_in() {
        let pieces = vec![(0x7f00_0000_1000, &[0x90, 0xc3][..]), (5, &[]), (u64::MAX, &[1; 8])];
        round_trip(&MadeCode::Executed { time: 99, pid: u32::MAX, pieces });
        for since in [0, 99] {
            round_trip(&MadeCode::Named {
                since,
                pid: 7,
                names: vec![(0x1000, 0x20, b"~Lazy \xff"), (1, u64::MAX, b"")],
            });
        }
        round_trip(&MadeCode::Vdso(b"\x7fELF and more"));
    }

    #[test]
    fn what_does_not_fit_into_a_record_is_several() {
        let bytes = [0x90; 200];
        let pieces: Vec<(u64, &[u8])> = (0..1000).map(|at| (at, &bytes[..])).collect();
        let bodies = MadeCode::Executed { time: 1, pid: 2, pieces: pieces.clone() }.to_record_bodies();
        assert!(bodies.len() > 1 && bodies.iter().all(|body| body.len() <= MOST));
        let read = bodies.iter().flat_map(|body| match MadeCode::of_record(RECORD_TYPE, body) {
            Some(MadeCode::Executed { time: 1, pid: 2, pieces }) => pieces,
            other => panic!("{other:?}"),
        });
        assert_eq!(read.collect::<Vec<_>>(), pieces);
    }

    #[test]
    fn absurd_lengths_end_a_record() {
        let mut body = MadeCode::Executed { time: 1, pid: 2, pieces: vec![(1, &[1; 8]), (2, &[2; 8])] }
            .to_record_bodies()
            .remove(0);
        for length in [9, 17, u64::MAX, u64::MAX - 6] {
            body[56..64].copy_from_slice(&length.to_le_bytes());
            let Some(MadeCode::Executed { pieces, .. }) = MadeCode::of_record(RECORD_TYPE, &body) else { panic!() };
            assert_eq!(pieces, [(1, &[1; 8][..])]);
        }
        assert_eq!(MadeCode::of_record(RECORD_TYPE, &body[..16]), None);
    }
}
