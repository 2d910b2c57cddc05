//! Which control group a process is in, as a record of the data section.
//!
//! ```text
//!  0 u8*8 hbbpcgrp
//!  8 u64  time from which on, ns, on the clock of the samples
//! 16 u32  pid
//! 20 u32  length of the path
//! 24      path of the group as the recorder sees it, UTF-8, then zeros up to a multiple of 8 bytes
//! ```
//! Its type is that of [`crate::phase_mark`]. Marks stand anywhere in a recording. A process that is forked is in its parent's group.

use crate::mark;
pub use crate::metadata::RECORD_TYPE;

/// The first word of its body.
pub const CGROUP_MARK: u64 = u64::from_le_bytes(*b"hbbpcgrp");

/// Bytes of a path that are written, as many as one has at most.
const MOST_PATH: usize = 4096;

/// A process is in a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMark {
    /// From when on, ns, on the clock of the samples.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The path of the group, such as `/system.slice/nginx.service`.
    pub path: String,
}

impl CgroupMark {
    /// The body of its record. Of a longer path than fits, the beginning is written.
    pub fn to_record_body(&self) -> Vec<u8> {
        mark::to_body(CGROUP_MARK, self.time, self.pid, &self.path, MOST_PATH)
    }

    /// Reads the body of a record of that type; `None` if it is no such mark.
    pub fn of_record(record_type: u32, body: &[u8]) -> Option<Self> {
        let (time, pid, path) = mark::of_record(CGROUP_MARK, record_type, body)?;
        Some(Self { time, pid, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_out_as_they_went_in() {
        for path in ["/system.slice/nginx.service", "/", "", "/docker/é"] {
            let mark = CgroupMark { time: 99, pid: 7, path: path.to_owned() };
            let body = mark.to_record_body();
            assert_eq!((body.len() % 8, CgroupMark::of_record(RECORD_TYPE, &body)), (0, Some(mark)));
            assert_eq!(CgroupMark::of_record(66, &body), None);
            assert_eq!(CgroupMark::of_record(RECORD_TYPE, &body[..20]), None);
        }
        let phase = crate::phase_mark::PhaseMark { time: 1, pid: None, name: String::new() }.to_record_body();
        assert_eq!(CgroupMark::of_record(RECORD_TYPE, &phase), None);
    }
}
