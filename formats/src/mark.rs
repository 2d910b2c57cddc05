//! The body that records of marks share: which kind it is, when, of which process, and a text.
//!
//! ```text
//!  0 u64  the kind
//!  8 u64  time, ns
//! 16 u32  pid
//! 20 u32  length of the text
//! 24      the text, UTF-8, then zeros up to a multiple of 8 bytes
//! ```

use crate::metadata::RECORD_TYPE;

const TEXT: usize = 24;

/// The body of a record. Of a text of more than `most` bytes, the beginning is written.
pub(crate) fn to_body(kind: u64, time: u64, pid: u32, text: &str, most: usize) -> Vec<u8> {
    let text = text.as_bytes();
    let text = text.get(..most).unwrap_or(text);
    let mut body = [kind.to_le_bytes(), time.to_le_bytes()].concat();
    body.extend(pid.to_le_bytes());
    body.extend((text.len() as u32).to_le_bytes());
    body.extend(text);
    body.resize(body.len().next_multiple_of(8), 0);
    body
}

/// Time, pid and text of the body of a record of that type; `None` if it is no mark of that kind.
pub(crate) fn of_record(kind: u64, record_type: u32, body: &[u8]) -> Option<(u64, u32, String)> {
    let word = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
    if record_type != RECORD_TYPE || word(0)? != kind {
        return None;
    }
    let (pid, length) = (word(16)? as u32, (word(16)? >> 32) as usize);
    let text = String::from_utf8_lossy(body.get(TEXT..)?.get(..length)?).into_owned();
    Some((word(8)?, pid, text))
}
