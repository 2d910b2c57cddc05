//! Steps from record to record and tells whole ones from broken ones.

use std::ops::Range;

use crate::chunk::RecordHeader;
use crate::{Error, RecordType};

/// What is at the front of some bytes.
pub(crate) enum Step {
    /// A whole record.
    Whole(RecordHeader),
    /// The beginning of a record; the bytes end before it does.
    Cut(Error),
    /// Not a record.
    Broken(Error),
}

/// Looks at the record at the front of `bytes`, which is not empty; `offset` is where that is.
#[inline]
pub(crate) fn step(bytes: &[u8], offset: u64) -> Step {
    let left = bytes.len() as u64;
    let Some(header) = RecordHeader::of(bytes) else {
        return Step::Cut(Error::Short { what: "record header", offset, needs: RecordHeader::SIZE as u64, left });
    };
    if usize::from(header.size) < RecordHeader::SIZE {
        return Step::Broken(Error::RecordSize { offset, size: header.size });
    }
    if u64::from(header.size) > left {
        return Step::Cut(Error::RecordCut { offset, record_type: header.record_type, size: header.size.into(), left });
    }
    Step::Whole(header)
}

/// How many bytes that are not records follow this whole record.
#[inline]
pub(crate) fn bytes_after(header: &RecordHeader, record: &[u8]) -> u64 {
    let body = record.get(RecordHeader::SIZE..).unwrap_or_default();
    match header.record_type {
        RecordType::AUXTRACE => body.first_chunk().map_or(0, |size| u64::from_le_bytes(*size)),
        RecordType::HEADER_TRACING_DATA => body.first_chunk().map_or(0, |size| u32::from_le_bytes(*size).into()),
        _ => 0,
    }
}

/// Where in a compressed record's body the compressed bytes are; `None` for any other record.
pub(crate) fn compressed_bytes(header: &RecordHeader, body: &[u8]) -> Option<Range<usize>> {
    match header.record_type {
        RecordType::COMPRESSED => Some(0..body.len()),
        RecordType::COMPRESSED2 => {
            let (size, data) = body.split_first_chunk::<8>()?;
            let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
            Some(size_of::<u64>()..size_of::<u64>() + size.min(data.len()))
        }
        _ => None,
    }
}
