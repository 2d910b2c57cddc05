//! Sections of debug information, decompressed.

use object::elf::{CompressionHeader32, CompressionHeader64, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};
use object::read::elf::CompressionHeader;
use object::read::{CompressedData, CompressionFormat};
use object::{LittleEndian as LE, pod};

use super::{Image, Section};
use crate::build_id::BuildId;

/// How much larger than its compressed bytes a section may be. Debug information shrinks to a third as a rule, strings and zeros to
/// less; a small file must not become gigabytes.
const MOST_EXPANSION: u64 = 100;
/// The size that any section may have, in bytes.
const SMALL: u64 = 1 << 20;

/// The kinds of `.debug_sup`.
const USES_SUPPLEMENT: u8 = 0;
const IS_SUPPLEMENT: u8 = 1;

/// Why a compressed section cannot be expanded. Every message begins with the section's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpansionError {
    /// It has `SHF_COMPRESSED`, and is shorter than the header (`Elf64_Chdr`, `Elf32_Chdr`) that it has to begin with.
    #[error("{name} is compressed, and its {bytes} bytes do not hold the header")]
    Header {
        /// Name of the section.
        name: String,
        /// Its size, in bytes.
        bytes: usize,
    },
    /// Its header states another algorithm than zlib or zstd.
    #[error("{name} is compressed in a way that is not known ({algorithm})")]
    Algorithm {
        /// Name of the section.
        name: String,
        /// `ch_type`: 1 is zlib, 2 is zstd.
        algorithm: u32,
    },
    /// A section of the old kind, which has to begin with `ZLIB` and a size of eight bytes.
    #[error("{name} is compressed, and does not start as such sections do")]
    OldHeader {
        /// Name of the section.
        name: String,
    },
    /// It states more bytes than its compressed ones are believed to become.
    #[error("{name} states {stated} bytes, compressed to {compressed}: more than is believed")]
    Size {
        /// Name of the section.
        name: String,
        /// The size that it states, in bytes.
        stated: u64,
        /// The compressed bytes that are there.
        compressed: usize,
    },
    /// Its stream is damaged, or does not become as many bytes as stated.
    #[error("{name} cannot be decompressed: {source}")]
    Stream {
        /// Name of the section.
        name: String,
        /// What the decompressor said.
        source: object::Error,
    },
}

impl Image {
    /// The bytes of a section by its name (`.debug_info`), or of its old compressed form (`.zdebug_info`); none where the file has
    /// neither, or only says how large it was (`SHT_NOBITS`).
    ///
    /// # Errors
    /// The section is compressed, and its bytes are damaged or state an unbelievable size.
    pub(crate) fn debug_section(&self, name: &str) -> Result<Vec<u8>, ExpansionError> {
        if let Some(section) = self.section(name) {
            return self.expanded(section);
        }
        match name.strip_prefix(".debug").and_then(|rest| self.section(&format!(".zdebug{rest}"))) {
            Some(section) => expand_gnu(name, &self.section_bytes(section)),
            None => Ok(Vec::new()),
        }
    }

    /// The bytes of a section, decompressed; none where it only says how large it was (`SHT_NOBITS`).
    ///
    /// # Errors
    /// As for [`Self::debug_section`].
    pub(crate) fn expanded(&self, section: &Section) -> Result<Vec<u8>, ExpansionError> {
        let bytes = self.section_bytes(section);
        match (section.compressed, self.address_bytes()) {
            (false, _) => Ok(bytes.into_owned()),
            (true, 4) => expand_elf::<CompressionHeader32<LE>>(&section.name, &bytes),
            (true, _) => expand_elf::<CompressionHeader64<LE>>(&section.name, &bytes),
        }
    }

    /// Whether the file itself has debug information.
    pub(crate) fn has_debug_information(&self) -> bool {
        [".debug_info", ".zdebug_info"].iter().any(|name| self.section(name).is_some_and(|section| section.has_bytes()))
    }

    /// What compilers and linkers say of themselves (`.comment`).
    pub(crate) fn comments(&self) -> Vec<String> {
        let bytes = self.section(".comment").map(|section| self.section_bytes(section)).unwrap_or_default();
        let texts = bytes.split(|byte| *byte == 0).filter(|text| !text.is_empty());
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    /// The name and the checksum (CRC-32) of the separate debug file that the file states in `.gnu_debuglink`.
    pub(crate) fn debug_link(&self) -> Option<(String, u32)> {
        let bytes = self.section_bytes(self.section(".gnu_debuglink")?);
        let (name, _) = at_nul(&bytes)?;
        let checksum = bytes.get((name.len() + 4) & !3..)?.first_chunk()?;
        let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty() && !name.contains('/'))?;
        Some((name.to_owned(), u32::from_le_bytes(*checksum)))
    }

    /// The name and the build id of the file that `.gnu_debugaltlink`, or `.debug_sup` of DWARF 5, states: `dwz` moves to it what several
    /// files have in common.
    pub(crate) fn alternate_debug_file(&self) -> Option<(String, BuildId)> {
        let Some(section) = self.section(".gnu_debugaltlink") else { return self.supplement(USES_SUPPLEMENT) };
        let bytes = self.section_bytes(section);
        let (name, build_id) = at_nul(&bytes)?;
        Some((String::from_utf8_lossy(name).into_owned(), BuildId::new(build_id)?))
    }

    /// What tells a file to which `dwz` moved something from others: its build id, or the checksum that DWARF 5 has instead.
    pub fn alternate_id(&self) -> Option<BuildId> {
        self.build_id().cloned().or_else(|| Some(self.supplement(IS_SUPPLEMENT)?.1))
    }

    /// The name and the checksum in `.debug_sup` (DWARF 5, section 7.3.6), if it is of this kind.
    fn supplement(&self, kind: u8) -> Option<(String, BuildId)> {
        let bytes = self.section_bytes(self.section(".debug_sup")?);
        let rest = bytes.strip_prefix(&[5, 0, kind])?;
        let (name, rest) = at_nul(rest)?;
        // Its length is one byte where it is shorter than 128, as all are.
        let (&length, rest) = rest.split_first().filter(|(length, _)| **length < 0x80)?;
        Some((String::from_utf8_lossy(name).into_owned(), BuildId::new(rest.get(..length.into())?)?))
    }

    /// The checksum that a `.gnu_debuglink` states of a file.
    pub(crate) fn checksum(&self) -> u32 {
        const PIECE: u64 = 1 << 20;
        let bytes = self.shared_bytes();
        let mut hasher = crc32fast::Hasher::new();
        for offset in (0..bytes.length()).step_by(PIECE as usize) {
            hasher.update(&bytes.copy_up_to(offset, PIECE));
        }
        hasher.finalize()
    }
}

/// A section with `SHF_COMPRESSED`: a header, then the stream.
fn expand_elf<Header: CompressionHeader<Endian = LE>>(name: &str, bytes: &[u8]) -> Result<Vec<u8>, ExpansionError> {
    let (header, stream) = pod::from_bytes::<Header>(bytes)
        .map_err(|()| ExpansionError::Header { name: name.to_owned(), bytes: bytes.len() })?;
    let format = match header.ch_type(LE) {
        ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        other => return Err(ExpansionError::Algorithm { name: name.to_owned(), algorithm: other.0 }),
    };
    expand(name, format, stream, header.ch_size(LE).into())
}

/// A section of the old kind: `ZLIB`, the size in eight bytes, the largest first, then the stream.
fn expand_gnu(name: &str, bytes: &[u8]) -> Result<Vec<u8>, ExpansionError> {
    let rest = bytes.strip_prefix(b"ZLIB").and_then(<[u8]>::split_first_chunk);
    let (size, stream) = rest.ok_or_else(|| ExpansionError::OldHeader { name: name.to_owned() })?;
    expand(name, CompressionFormat::Zlib, stream, u64::from_be_bytes(*size))
}

fn expand(
    name: &str,
    format: CompressionFormat,
    data: &[u8],
    uncompressed_size: u64,
) -> Result<Vec<u8>, ExpansionError> {
    let most = (data.len() as u64).saturating_mul(MOST_EXPANSION).max(SMALL);
    if uncompressed_size > most {
        return Err(ExpansionError::Size { name: name.to_owned(), stated: uncompressed_size, compressed: data.len() });
    }
    let expanded = CompressedData { format, data, uncompressed_size }.decompress();
    expanded
        .map(std::borrow::Cow::into_owned)
        .map_err(|source| ExpansionError::Stream { name: name.to_owned(), source })
}

/// What is before the first NUL, and what is after it.
fn at_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, from) = bytes.split_at_checked(bytes.iter().position(|&byte| byte == 0)?)?;
    Some((before, from.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_size_that_cannot_be_is_refused() {
        let mut old = b"ZLIB".to_vec();
        old.extend(u64::to_be_bytes(1 << 40));
        old.extend([0x78, 0x9c]);
        let refused = |result: Result<Vec<u8>, ExpansionError>| result.unwrap_err().to_string();
        assert_eq!(
            refused(expand_gnu(".debug_str", &old)),
            ".debug_str states 1099511627776 bytes, compressed to 2: more than is believed"
        );
        assert_eq!(
            refused(expand_gnu(".debug_str", b"ZLIX")),
            ".debug_str is compressed, and does not start as such sections do"
        );
        assert_eq!(
            refused(expand_elf::<CompressionHeader64<LE>>(".debug_str", &[0; 4])),
            ".debug_str is compressed, and its 4 bytes do not hold the header"
        );
        let mut unknown = [0; 24];
        unknown[0] = 3;
        assert_eq!(
            refused(expand_elf::<CompressionHeader64<LE>>(".debug_str", &unknown)),
            ".debug_str is compressed in a way that is not known (3)"
        );
        old[4..12].copy_from_slice(&17_u64.to_be_bytes());
        assert!(refused(expand_gnu(".debug_str", &old)).starts_with(".debug_str cannot be decompressed: "));
    }

    #[test]
    fn a_compressed_section_is_expanded() {
        // `zlib.compress(b"hello hello hello")`
        let stream = [0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x90, 0x00, 0x3a, 0x2e, 0x06, 0x7d];
        let mut old = b"ZLIB".to_vec();
        old.extend(17_u64.to_be_bytes());
        old.extend(stream);
        assert_eq!(expand_gnu(".debug_str", &old).unwrap(), b"hello hello hello");
        let mut new = [1_u32.to_le_bytes(), [0; 4]].concat();
        new.extend([17_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat());
        new.extend(stream);
        assert_eq!(expand_elf::<CompressionHeader64<LE>>(".debug_str", &new).unwrap(), b"hello hello hello");
        let mut short = [1_u32, 17, 1].map(u32::to_le_bytes).concat();
        short.extend(stream);
        assert_eq!(expand_elf::<CompressionHeader32<LE>>(".debug_str", &short).unwrap(), b"hello hello hello");
    }
}
