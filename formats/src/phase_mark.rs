//! A mark that a phase of a program begins, as a record of the data section.
//!
//! Its type is that of the first metadata, `PERF_RECORD_HEADER_EVENT_TYPE` (65), which other tools pass over in silence; the
//! first word of its body tells them apart:
//!
//! ```text
//!  0 u8*8 hbbpmark
//!  8 u64  time, ns, on the clock of the samples
//! 16 u32  pid; 0: the phase of all processes
//! 20 u32  length of the name
//! 24      name, UTF-8, then zeros up to a multiple of 8 bytes; empty: no phase goes on
//! ```
//! All numbers are little-endian. Marks stand anywhere in a recording, in any order.

use crate::mark;
pub use crate::metadata::RECORD_TYPE;

/// The first word of its body. In a stream, smaller numbers than 256 are those of features.
pub const PHASE_MARK: u64 = u64::from_le_bytes(*b"hbbpmark");

/// Bytes of a name that fit into a record.
const MOST_NAME: usize = 60_000;

/// A phase begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseMark {
    /// When, ns, on the clock of the samples.
    pub time: u64,
    /// Of which process; `None` of all.
    pub pid: Option<u32>,
    /// Its name; empty: no phase goes on.
    pub name: String,
}

impl PhaseMark {
    /// The body of its record. Of a longer name than fits, the beginning is written.
    pub fn to_record_body(&self) -> Vec<u8> {
        mark::to_body(PHASE_MARK, self.time, self.pid.unwrap_or(0), &self.name, MOST_NAME)
    }

    /// Reads the body of a record of that type; `None` if it is no such mark.
    pub fn of_record(record_type: u32, body: &[u8]) -> Option<Self> {
        let (time, pid, name) = mark::of_record(PHASE_MARK, record_type, body)?;
        Some(Self { time, pid: (pid != 0).then_some(pid), name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_out_as_they_went_in() {
        for (pid, name) in [(Some(7), "solve"), (None, ""), (Some(u32::MAX), "exactly 8 + é!")] {
            let mark = PhaseMark { time: 99, pid, name: name.to_owned() };
            let body = mark.to_record_body();
            assert_eq!((body.len() % 8, PhaseMark::of_record(RECORD_TYPE, &body)), (0, Some(mark)));
            assert_eq!(PhaseMark::of_record(66, &body), None);
            assert_eq!(PhaseMark::of_record(RECORD_TYPE, &body[..20]), None);
        }
        let mut long = PhaseMark { time: 1, pid: None, name: "x".to_owned() }.to_record_body();
        long[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(PhaseMark::of_record(RECORD_TYPE, &long), None);
        let metadata = crate::metadata::Metadata::default().to_record_body().unwrap();
        assert_eq!(PhaseMark::of_record(RECORD_TYPE, &metadata), None);
    }
}
