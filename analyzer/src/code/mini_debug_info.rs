//! MiniDebugInfo: the symbols of a stripped file, compressed in the file itself.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use lzma_rust2::XzReader;

use super::Image;
use super::file_bytes::FileBytes;

/// How much larger than its compressed bytes the symbols may be: symbol tables shrink to a fifth, names to less.
const MOST_EXPANSION: u64 = 100;
/// The size that any may have, in bytes.
const SMALL: u64 = 1 << 20;
/// The size that none may have, in bytes: real ones have a few MB, and every module may keep its own.
const MOST: u64 = 64 << 20;
/// What the decompressor may take beside, in KiB: `xz -9` makes streams that need 65 MiB.
const MOST_MEMORY: u32 = 80 << 10;

impl Image {
    /// The ELF file that is in `.gnu_debugdata`, compressed by xz: it has `.symtab` and no code. `None` where there is none, or it is
    /// damaged, or becomes larger than is believed.
    pub(crate) fn mini_debug_info(&self) -> Option<Image> {
        let compressed = self.section_bytes(self.section(".gnu_debugdata")?);
        let bytes = expand(&compressed)?;
        let mut image = Self::parse_headers(FileBytes::of_memory(bytes)).ok()?;
        // It changes when the file does.
        image.identity = self.identity();
        Some(image)
    }
}

/// It is expanded twice: first to know its size, so that no more memory is taken than what comes out needs.
fn expand(compressed: &[u8]) -> Option<Arc<[u8]>> {
    let most = (compressed.len() as u64).saturating_mul(MOST_EXPANSION).clamp(SMALL, MOST);
    let reader = || XzReader::new_mem_limit(Cursor::new(compressed), false, MOST_MEMORY);
    let size = io::copy(&mut reader().take(most + 1), &mut io::sink()).ok().filter(|&size| size <= most)?;
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(size).ok()?).collect();
    reader().read_exact(Arc::get_mut(&mut bytes)?).ok()?;
    Some(bytes)
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

    #[test]
    fn what_becomes_more_than_64_mib_is_none_however_large_it_is_compressed() {
        // With so much that does not become smaller, the expansion is believed.
        let made = |bytes: usize| {
            let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
            let zeros = vec![0; bytes - (1 << 20)];
            std::io::Write::write_all(&mut writer, &zeros).unwrap();
            let mut state = 1_u64;
            let mixed = (0..1 << 20).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            });
            std::io::Write::write_all(&mut writer, &mixed.collect::<Vec<u8>>()).unwrap();
            writer.finish().unwrap()
        };
        assert_eq!(expand(&made(64 << 20)).map(|bytes| bytes.len()), Some(64 << 20));
        assert_eq!(expand(&made((64 << 20) + 1)), None);
    }
}
