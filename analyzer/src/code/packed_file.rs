//! ELF files of the kernel as distributions pack them: `ext4.ko.xz`, `vmlinux.zst`, and the boot image.
//!
//! A boot image has the compressed kernel in it (`Documentation/arch/x86/boot.rst` of Linux):
//!
//! ```text
//! boot sector and setup: (setup_sects + 1) * 512 bytes   | what unpacks the kernel, with the packed kernel in it
//!   0x1f1 setup_sects   0x202 "HdrS"   0x206 version     |<- payload_offset ->|<- payload_length ->|
//!   0x248 payload_offset   0x24c payload_length
//! ```

use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use lzma_rust2::XzReader;

use super::file_bytes::FileBytes;
use super::{Image, ImageError};

/// Bytes of a packed file that are read: a kernel has some 10 MB, with debug information some 100.
const MOST_PACKED: u64 = 256 << 20;
/// Bytes of what comes out, and how much larger than the packed file it may be.
const MOST: u64 = 1 << 30;
const MOST_EXPANSION: u64 = 100;
/// Bytes of a block of LZ4, unpacked.
const LZ4_BLOCK: usize = 8 << 20;
/// What the decompressors may take beside, in KiB; Linux packs itself with a dictionary of 128 MiB.
const MOST_MEMORY: u32 = 160 << 10;
const MOST_WINDOW: u32 = 27;

impl Image {
    /// Opens the ELF file that is packed in a file, by gzip, xz, LZ4 or Zstandard, as it is or in a boot image of Linux.
    ///
    /// # Errors
    /// The file cannot be read, nothing is packed in it in one of these ways, it is damaged, what comes out is longer than a kernel, or is
    /// no ELF file for x86.
    pub(crate) fn open_packed(path: &Path) -> Result<Self, ImageError> {
        let (bytes, identity) = super::image::open(path)?;
        let packed = bytes.get_up_to(0, MOST_PACKED);
        let unpacked = unpacked(payload(packed).unwrap_or(packed))
            .ok_or_else(|| ImageError::NotElf(packed.iter().take(4).copied().collect()))?;
        let unpacked = unpacked.map_err(|source| ImageError::Read { path: path.to_owned(), source })?;
        Ok(Self::parse_headers(FileBytes::of_memory(unpacked.into()))?.of_file(identity))
    }
}

/// The packed kernel in a boot image; `None` if it is none, or of before version 2.08 of the boot protocol (Linux 2.6.26).
fn payload(image: &[u8]) -> Option<&[u8]> {
    let field = |at: usize, size: usize| {
        let bytes = image.get(at..)?.get(..size)?;
        Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    if image.get(0x202..)?.get(..4)? != b"HdrS" || field(0x206, 2)? < 0x208 {
        return None;
    }
    let sectors = match field(0x1f1, 1)? {
        // As boot loaders of long ago left it.
        0 => 4,
        sectors => sectors,
    };
    let start = (sectors + 1) * 512 + field(0x248, 4)?;
    image.get(start..)?.get(..field(0x24c, 4)?)
}

/// `None` if the bytes do not begin as those of a format that is known here. What comes after the packed bytes is left: the kernel's
/// build adds their unpacked size.
fn unpacked(bytes: &[u8]) -> Option<io::Result<Vec<u8>>> {
    let most = (bytes.len() as u64).saturating_mul(MOST_EXPANSION).min(MOST);
    Some(match bytes {
        [0x1f, 0x8b, ..] => read(GzDecoder::new(bytes), most),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => read(XzReader::new_mem_limit(bytes, false, MOST_MEMORY), most),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstandard(bytes).and_then(|reader| read(reader, most)),
        [0x02, 0x21, 0x4c, 0x18, blocks @ ..] => lz4_blocks(blocks, most),
        _ => return None,
    })
}

fn read(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    reader.take(most + 1).read_to_end(&mut unpacked)?;
    within(most, unpacked)
}

fn within(most: u64, unpacked: Vec<u8>) -> io::Result<Vec<u8>> {
    match unpacked.len() as u64 > most {
        true => Err(io::Error::other(format!("unpacked it has more than {most} bytes"))),
        false => Ok(unpacked),
    }
}

fn zstandard(bytes: &[u8]) -> io::Result<impl Read> {
    let mut decoder = zstd::Decoder::with_buffer(bytes)?.single_frame();
    decoder.window_log_max(MOST_WINDOW)?;
    Ok(decoder)
}

/// LZ4 as Linux uses it, the legacy format: blocks, each after its packed size.
fn lz4_blocks(mut bytes: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let (mut unpacked, mut block) = (Vec::new(), vec![0; LZ4_BLOCK]);
    // The last four are the unpacked size.
    while let Some((size, rest)) = bytes.split_first_chunk().filter(|(_, rest)| !rest.is_empty()) {
        let packed = rest.split_at_checked(u32::from_le_bytes(*size) as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
        let length = lz4_flex::block::decompress_into(packed.0, &mut block).map_err(io::Error::other)?;
        unpacked.extend(block.iter().take(length));
        bytes = packed.1;
        if unpacked.len() as u64 > most {
            break;
        }
    }
    within(most, unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::made_elf;
    use std::io::Write;

    /// The bytes, packed in each of the ways.
    fn packed(bytes: &[u8]) -> [Vec<u8>; 4] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        let options = lzma_rust2::XzOptions::with_preset(0);
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        xz.write_all(bytes).unwrap();
        let blocks = bytes.chunks(LZ4_BLOCK / 8).map(lz4_flex::block::compress);
        let blocks = blocks.flat_map(|block| [&(block.len() as u32).to_le_bytes(), &block[..]].concat());
        let lz4 = b"\x02\x21\x4c\x18".iter().copied().chain(blocks).collect();
        [gzip.finish().unwrap(), xz.finish().unwrap(), zstd::encode_all(bytes, 1).unwrap(), lz4]
    }

    /// A boot image of one sector of setup.
    fn boot_image(payload: &[u8], version: u16) -> Vec<u8> {
        let mut image = vec![0; 0x600];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&version.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&0x200_u32.to_le_bytes());
        // With the size that the build adds.
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend(payload);
        image.extend([1, 2, 3, 4]);
        image.extend([0xee; 100]);
        image
    }

    fn opened(bytes: &[u8]) -> Result<Image, ImageError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Image::open_packed(file.path())
    }

    #[test]
    fn files_are_unpacked_alone_and_in_boot_images() {
        let start = 0xffff_ffff_8100_0000;
        let (elf, _) = made_elf(&[(start, vec![0x90; 0x3000])], &[(start, 0x3000, b"work"[..].into())]);
        for packed in packed(&elf) {
            for file in [packed.clone(), boot_image(&packed, 0x20f)] {
                let image = opened(&file).unwrap();
                assert_eq!(image.bytes_at(crate::address::Svma(start + 0x2fff), 1), Some(&[0x90][..]));
                assert!(image.identity().is_some(), "it changes when the file does");
            }
            assert!(matches!(opened(&boot_image(&packed, 0x207)), Err(ImageError::NotElf(_))), "its fields are others");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let (elf, _) = made_elf(&[(0x1000, (0..0x3000_u32).map(|at| ((at * at) >> 7) as u8).collect())], &[]);
        for packed in packed(&elf) {
            for length in [0, 3, 5, 30, packed.len() / 2] {
                assert!(opened(&packed[..length]).is_err(), "{length} bytes");
                assert!(
                    opened(&boot_image(&packed, 0x20f)[..0x600 + length]).is_err(),
                    "{length} bytes of a boot image"
                );
            }
        }
        assert!(matches!(opened(&boot_image(b"\x89LZO", 0x20f)), Err(ImageError::NotElf(_))));
    }

    #[test]
    fn what_grows_out_of_proportion_is_refused() {
        let zeros = vec![0; 4 << 20];
        for packed in packed(&zeros) {
            let unpacked = unpacked(&packed).unwrap();
            assert_eq!(unpacked.is_err(), packed.len() < zeros.len() / 100, "{} bytes", packed.len());
        }
    }
}
