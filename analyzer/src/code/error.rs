//! Why a file cannot be analyzed.

use std::path::PathBuf;

/// Why a file is not an image this crate can analyze.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path that was to be opened.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than [`Image::MAX_BYTES`](super::Image::MAX_BYTES).
    #[error("the file has {bytes} bytes, at most {limit} are read")]
    TooLarge {
        /// The file's length, in bytes.
        bytes: u64,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// The path names a directory, device or socket.
    #[error("{0} is not a regular file")]
    NotAFile(PathBuf),
    /// The first bytes are not ELF's.
    #[error("not an ELF file: it starts with {0:02x?}, not with 7f 45 4c 46")]
    NotElf(Vec<u8>),
    /// An ELF file of another class, byte order or version than x86 code has.
    #[error(
        "ELF class {class}, data encoding {data}, version {version}: \
         x86 code needs 1 or 2 (32 or 64 bits), 1 (little-endian), 1"
    )]
    Ident {
        /// `e_ident[EI_CLASS]`: 1 is 32 bits, 2 is 64 bits.
        class: u8,
        /// `e_ident[EI_DATA]`: 1 is little-endian, 2 is big-endian.
        data: u8,
        /// `e_ident[EI_VERSION]`: 1 (`EV_CURRENT`) is the only one there is.
        version: u8,
    },
    /// An ELF file for another machine, or of 64 bits for i386.
    #[error("ELF machine {0}: only 62 (x86-64), and 3 (i386) in files of 32 bits, can be analyzed")]
    Machine(u16),
    /// A structure that is needed does not fit in the file.
    #[error("{what} at {offset:#x} with {size} bytes does not fit in the file's {file} bytes")]
    Truncated {
        /// The structure: `the ELF header`.
        what: &'static str,
        /// Its file offset, in bytes.
        offset: u64,
        /// Its size, in bytes.
        size: u64,
        /// The file's length, in bytes.
        file: u64,
    },
    /// Sections, symbols or relocations of a module of the kernel.
    #[error("bad module of the kernel: {0}")]
    Relocatable(String),
    /// The program headers contradict the format or each other.
    #[error("bad program headers: {0}")]
    ProgramHeaders(String),
}

impl ImageError {
    pub(super) fn header_truncated(size: u64, file: u64) -> Self {
        Self::Truncated { what: "the ELF header", offset: 0, size, file }
    }
}
