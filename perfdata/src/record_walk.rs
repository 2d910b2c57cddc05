//! Steps from record to record and tells whole ones from broken ones.

use std::ops::Range;

use crate::chunk::RecordHeader;
use crate::{Error, RecordType};

/// What is at the front of some bytes.
pub(crate) enum Step<'a> {
    /// A record that is there from its header to its end.
    Whole(Whole<'a>),
    /// The beginning of a record; the bytes end before it does.
    Cut(Error),
    /// The size that the header states cannot be: nothing after it can be found.
    Broken(Error),
}

/// A whole record, and what follows it.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub(crate) header: RecordHeader,
    /// The record without its header.
    pub(crate) body: &'a [u8],
    pub(crate) rest: &'a [u8],
}

/// Looks at the record at the front of `bytes`, which is not empty; `offset` is where that is.
#[inline]
pub(crate) fn step(bytes: &[u8], offset: u64) -> Step<'_> {
    let left = bytes.len() as u64;
    let Some(header) = RecordHeader::of(bytes) else {
        return Step::Cut(Error::Short { what: "record header", offset, needs: RecordHeader::SIZE as u64, left });
    };
    let size = usize::from(header.size);
    if size < RecordHeader::SIZE {
        return Step::Broken(Error::RecordSize { offset, size: header.size });
    }
    match bytes.split_at_checked(size).and_then(|(record, rest)| Some((record.get(RecordHeader::SIZE..)?, rest))) {
        Some((body, rest)) => Step::Whole(Whole { header, body, rest }),
        None => Step::Cut(Error::RecordCut { offset, record_type: header.record_type, size: header.size.into(), left }),
    }
}

impl Whole<'_> {
    /// Bytes of the record, its header included.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.header.size.into()
    }

    /// How many bytes that are not records follow this record.
    #[inline]
    pub(crate) fn bytes_after(&self) -> u64 {
        match self.header.record_type {
            RecordType::AUXTRACE => self.body.first_chunk().map_or(0, |size| u64::from_le_bytes(*size)),
            RecordType::HEADER_TRACING_DATA => {
                self.body.first_chunk().map_or(0, |size| u32::from_le_bytes(*size).into())
            }
            _ => 0,
        }
    }

    /// Where in the body of a compressed record the compressed bytes are; `None` for any other record.
    #[inline]
    pub(crate) fn compressed_bytes(&self) -> Option<Range<usize>> {
        match self.header.record_type {
            RecordType::COMPRESSED => Some(0..self.body.len()),
            RecordType::COMPRESSED2 => {
                let (size, data) = self.body.split_first_chunk::<8>()?;
                let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
                Some(size_of::<u64>()..size_of::<u64>() + size.min(data.len()))
            }
            _ => None,
        }
    }
}
