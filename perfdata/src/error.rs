//! What can be wrong with a recording.

use std::io;

use crate::RecordType;

/// A rule of the format that a recording breaks, with the values found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The first eight bytes are not those of a recording.
    #[error("not a perf.data file: it begins with \"{}\", not with \"PERFILE2\"", magic.escape_ascii())]
    NotPerfData {
        /// The first bytes, at most eight.
        magic: Vec<u8>,
    },
    /// There is not a single byte.
    #[error("it is empty, and so no perf.data file: was its recorder killed at once, or the disk full?")]
    Empty,
    /// It is a directory, and none that `perf record --kcore` makes.
    #[error("it is a directory without a file `data`: only those of `perf record --kcore` are recordings")]
    Directory,
    /// Its samples are in other files, beside the one that has its header.
    #[error(
        "its samples are in a file for each thread of the recorder (`perf record --threads`), which are not read: record without --threads"
    )]
    SeveralFiles,
    /// Recorded on a big-endian machine.
    #[error("the recording is big-endian; only little-endian recordings can be read")]
    BigEndian,
    /// A recording of before Linux 2.6.33.
    #[error("the recording has the format of before Linux 2.6.33 (\"PERFFILE\"), which is not supported")]
    VersionOne,
    /// The header is of a size no version of the format has.
    #[error("the file header says it is {size} bytes long; 104 (or 72, or 16 in a pipe) are known")]
    HeaderSize {
        /// What the header says.
        size: u64,
    },
    /// Something is cut short.
    #[error("{what} at {offset:#x} needs {needs} bytes, {left} bytes left")]
    Short {
        /// What was being read.
        what: &'static str,
        /// Where it starts in the file or stream.
        offset: u64,
        /// The bytes it needs.
        needs: u64,
        /// The bytes that are there.
        left: u64,
    },
    /// A count that the bytes left cannot hold.
    #[error("{what} at {offset:#x} says {count} {things}, {left} bytes left, needs {needs}")]
    Count {
        /// What was being read.
        what: &'static str,
        /// Where it starts in the file or stream.
        offset: u64,
        /// The count it states.
        count: u64,
        /// What it counts, a plural: `events`.
        things: &'static str,
        /// The bytes the count needs (`u64::MAX` when that overflows).
        needs: u64,
        /// The bytes that are there.
        left: u64,
    },
    /// An event description of a size that cannot be.
    #[error(
        "event {index} says its perf_event_attr is {size} bytes long; its entry has {room}, the shortest version 64"
    )]
    AttrSize {
        /// Which event of the file.
        index: usize,
        /// The size it states.
        size: u64,
        /// The bytes it has.
        room: u64,
    },
    /// The file describes no event.
    #[error("the recording describes no event")]
    NoEvents,
    /// Samples could not be told apart.
    #[error(
        "events {first} and {second} keep their sample id at different places, so their records cannot be told apart"
    )]
    SampleIdPlaces {
        /// An event, counted from 0 in the order of the file.
        first: usize,
        /// Another one, counted in the same way.
        second: usize,
    },
    /// A record of an event the file does not describe.
    #[error("{what} at {offset:#x} has the event id {id}, which no event of the recording has")]
    UnknownId {
        /// What was being read.
        what: &'static str,
        /// Where the record starts in the file or stream.
        offset: u64,
        /// The id that the record states.
        id: u64,
    },
    /// A record whose size is shorter than its own header.
    #[error("record at {offset:#x} says it is {size} bytes long; its header alone has 8")]
    RecordSize {
        /// Where the record starts in the file or stream.
        offset: u64,
        /// The size it states.
        size: u16,
    },
    /// The data ends inside a record.
    #[error("record at {offset:#x} ({record_type}) says it is {size} bytes long, {left} bytes left")]
    RecordCut {
        /// Where the record starts in the file or stream.
        offset: u64,
        /// The type it states.
        record_type: RecordType,
        /// The size it states.
        size: u64,
        /// The bytes that are there.
        left: u64,
    },
    /// A feature with a number that no feature can have.
    #[error("feature section at {offset:#x} has the number {bit}, which is not known to this version")]
    UnknownFeature {
        /// Where its record starts in the stream.
        offset: u64,
        /// The number that the record states, above 255.
        bit: u64,
    },
    /// Compressed data that the decompressor refuses.
    #[error("compressed record at {offset:#x}: {reason}")]
    Compressed {
        /// Where the record starts in the file or stream.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The wrong parser was asked.
    #[error("record at {offset:#x} is a {found}, not a {expected}")]
    RecordKind {
        /// Where the record starts in the file or stream.
        offset: u64,
        /// The type it has.
        found: RecordType,
        /// The type that was expected.
        expected: &'static str,
    },
    /// The writer was given something that a recording cannot hold.
    #[error("cannot write {what}: {reason}")]
    CannotWrite {
        /// What was to be written.
        what: &'static str,
        /// The rule it breaks.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
