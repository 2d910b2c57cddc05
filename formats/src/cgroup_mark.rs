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

pub use crate::metadata::RECORD_TYPE;

/// The first word of its body.
pub const CGROUP_MARK: u64 = u64::from_le_bytes(*b"hbbpcgrp");

const PATH: usize = 24;
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
        let path = self.path.as_bytes();
        let path = path.get(..MOST_PATH).unwrap_or(path);
        let mut body = [CGROUP_MARK.to_le_bytes(), self.time.to_le_bytes()].concat();
        body.extend(self.pid.to_le_bytes());
        body.extend((path.len() as u32).to_le_bytes());
        body.extend(path);
        body.resize(body.len().next_multiple_of(8), 0);
        body
    }

    /// Reads the body of a record of that type; `None` if it is no such mark.
    pub fn of_record(record_type: u32, body: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
        if record_type != RECORD_TYPE || word(0)? != CGROUP_MARK {
            return None;
        }
        let (pid, length) = (word(16)? as u32, (word(16)? >> 32) as usize);
        let path = String::from_utf8_lossy(body.get(PATH..)?.get(..length)?).into_owned();
        Some(Self { time: word(8)?, pid, path })
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
