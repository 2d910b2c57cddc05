//! MiniDebugInfo: the symbols of a stripped file, compressed in the file itself.

use std::io::{Cursor, Read};

use lzma_rust2::XzReader;

use super::Image;
use super::file_bytes::FileBytes;

/// How much larger than its compressed bytes the symbols may be: symbol tables shrink to a fifth, names to less.
const MOST_EXPANSION: u64 = 100;
/// The size that any may have, in bytes.
const SMALL: u64 = 1 << 20;
/// The size that none may have, in bytes.
const MOST: u64 = 256 << 20;
/// What the decompressor may take beside, in KiB: `xz -9` makes streams that need 65 MiB.
const MOST_MEMORY: u32 = 80 << 10;

impl Image {
    /// The ELF file that is in `.gnu_debugdata`, compressed by xz: it has `.symtab` and no code. `None` where there is none, or it is
    /// damaged, or becomes larger than is believed.
    pub(crate) fn mini_debug_info(&self) -> Option<Image> {
        let compressed = self.section_bytes(self.section(".gnu_debugdata")?);
        let bytes = expand(&compressed)?;
        let mut image = Self::parse_headers(FileBytes::of_memory(bytes.into())).ok()?;
        // It changes when the file does.
        image.identity = self.identity();
        Some(image)
    }
}

fn expand(compressed: &[u8]) -> Option<Vec<u8>> {
    let most = (compressed.len() as u64).saturating_mul(MOST_EXPANSION).clamp(SMALL, MOST);
    let mut bytes = Vec::new();
    let reader = XzReader::new_mem_limit(Cursor::new(compressed), false, MOST_MEMORY);
    reader.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf hello | xz --check=crc32`
    const HELLO: [u8; 60] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00,
        0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x04, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0x00,
        0x86, 0xa6, 0x10, 0x36, 0x00, 0x01, 0x19, 0x05, 0xbc, 0xe8, 0xec, 0xcb, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00,
        0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    #[test]
    fn a_stream_is_expanded_and_damage_is_none() {
        assert_eq!(expand(&HELLO).as_deref(), Some(&b"hello"[..]));
        assert_eq!(expand(&[]), None);
        for length in 1..HELLO.len() {
            assert_eq!(expand(&HELLO[..length]), None, "{length} bytes");
        }
        for at in 0..HELLO.len() {
            let mut damaged = HELLO;
            damaged[at] ^= 0x40;
            assert_eq!(expand(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn a_dictionary_of_a_gibibyte_is_not_made() {
        let mut large = HELLO;
        large[16] = 0x24;
        large[20..24].copy_from_slice(&[0x5e, 0x1f, 0xc7, 0xf9]);
        assert_eq!(expand(&large), None);
    }

    #[test]
    fn what_becomes_much_more_is_none() {
        let zeros = |bytes: usize| {
            let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
            std::io::Write::write_all(&mut writer, &vec![0; bytes]).unwrap();
            writer.finish().unwrap()
        };
        assert_eq!(expand(&zeros(1 << 20)).map(|bytes| bytes.len()), Some(1 << 20));
        assert_eq!(expand(&zeros((1 << 20) + 1)), None);
    }
}
