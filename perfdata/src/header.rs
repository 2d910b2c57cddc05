//! The file header: where the events, the data and the feature sections are.

use crate::Error;
use crate::fields::Fields;
use crate::recording_bytes::RecordingBytes;

/// First bytes of a recording (a big-endian machine writes them in reverse).
pub(crate) const MAGIC: [u8; 8] = *b"PERFILE2";
const MAGIC_BIG_ENDIAN: [u8; 8] = *b"2ELIFREP";
const MAGIC_VERSION_ONE: [u8; 8] = *b"PERFFILE";

/// Size of the header in a file.
pub(crate) const FILE_HEADER_SIZE: u64 = 104;
/// The same without feature bits, as the first versions wrote it.
const OLD_HEADER_SIZE: u64 = 72;
/// Size of the header of a stream.
pub(crate) const PIPE_HEADER_SIZE: u64 = 16;

/// `struct perf_file_section`: a part of the file, from `offset` on, of `size` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    pub(crate) fn parse(fields: &mut Fields<'_>) -> Result<Self, Error> {
        Ok(Self { offset: fields.u64()?, size: fields.u64()? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Header {
    File(FileHeader),
    /// A stream (`struct perf_pipe_file_header`): events and features are records, too.
    Pipe,
}

/// `struct perf_file_header` without its magic number and its own size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FileHeader {
    /// Bytes of one entry of `attrs`: the attr and the section of its ids.
    pub(crate) attr_size: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// Bit n of the 256: feature n has a section.
    pub(crate) features: [u64; 4],
}

impl Header {
    pub(crate) fn read(source: &RecordingBytes) -> Result<Self, Error> {
        let mut bytes = [0; FILE_HEADER_SIZE as usize];
        let count = source.read_at(0, &mut bytes)?;
        let bytes = bytes.get(..count).unwrap_or(&bytes);
        let mut fields = Fields::new("file header", 0, bytes);
        match fields.bytes(8) {
            Ok(magic) if magic == MAGIC => {}
            Ok(magic) if magic == MAGIC_BIG_ENDIAN => return Err(Error::BigEndian),
            Ok(magic) if magic == MAGIC_VERSION_ONE => return Err(Error::VersionOne),
            _ if bytes.is_empty() => return Err(Error::Empty),
            _ => return Err(Error::NotPerfData { magic: bytes.iter().take(8).copied().collect() }),
        }
        let size = fields.u64()?;
        match size {
            PIPE_HEADER_SIZE => Ok(Self::Pipe),
            FILE_HEADER_SIZE | OLD_HEADER_SIZE => {
                let mut header = FileHeader {
                    attr_size: fields.u64()?,
                    attrs: Section::parse(&mut fields)?,
                    data: Section::parse(&mut fields)?,
                    features: [0; 4],
                };
                let _event_types = Section::parse(&mut fields)?;
                if size == FILE_HEADER_SIZE {
                    for word in &mut header.features {
                        *word = fields.u64()?;
                    }
                }
                Ok(Self::File(header))
            }
            // The byte order of the size tells it as well where only the magic was patched.
            _ if size.swap_bytes() == FILE_HEADER_SIZE => Err(Error::BigEndian),
            _ => Err(Error::HeaderSize { size }),
        }
    }
}

impl FileHeader {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let event_types = Section::default();
        for word in [FILE_HEADER_SIZE, self.attr_size] {
            bytes.extend(word.to_le_bytes());
        }
        for section in [self.attrs, self.data, event_types] {
            bytes.extend(section.offset.to_le_bytes());
            bytes.extend(section.size.to_le_bytes());
        }
        for word in self.features {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }
}
