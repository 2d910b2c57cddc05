//! The content of a recording, in one number.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use blake3::{Hash, Hasher, hash};
use serde::{Deserialize, Serialize};

/// Tells contents of files apart: length, and a digest of the digests of its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    length: u64,
    #[serde(with = "as_bytes")]
    digest: Hash,
}

/// A digest as 32 bytes.
mod as_bytes {
    use blake3::Hash;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(digest: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        digest.as_bytes().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        <[u8; 32]>::deserialize(deserializer).map(Hash::from_bytes)
    }
}

/// Bytes of a piece: it stays in the cache of a core between reading and hashing.
const PIECE: u64 = 1 << 18;

impl Content {
    /// Of the first `length` bytes of a file, read by that many threads.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter.
    pub fn of(file: &File, length: u64, threads: usize) -> io::Result<Self> {
        let pieces = length.div_ceil(PIECE);
        let next = AtomicU64::new(0);
        let read = || -> io::Result<Vec<(u64, Hash)>> {
            let mut digests = Vec::new();
            let mut buffer = vec![0; PIECE as usize];
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return Ok(digests);
                }
                let start = piece * PIECE;
                let bytes = &mut buffer[..PIECE.min(length - start) as usize];
                file.read_exact_at(bytes, start)?;
                digests.push((piece, hash(bytes)));
            }
        };
        let mut digests = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(pieces as usize)).map(|_| scope.spawn(read)).collect();
            let mut digests = read()?;
            for other in others {
                digests.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, io::Error>(digests)
        })?;
        digests.sort_unstable_by_key(|(piece, _)| *piece);
        let mut all = Hasher::new();
        digests.iter().for_each(|(_, digest)| {
            all.update(digest.as_bytes());
        });
        Ok(Content { length, digest: all.finalize() })
    }

    /// Length of the file, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn content(bytes: &[u8], threads: usize) -> Content {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Content::of(&file, bytes.len() as u64, threads).unwrap()
    }

    #[test]
    fn every_byte_and_the_order_of_pieces_matter_and_threads_do_not() {
        let piece = PIECE as usize;
        let bytes: Vec<u8> = (0..3 * piece + 5).map(|index| (index / 1000) as u8).collect();
        let whole = content(&bytes, 1);
        assert_eq!(whole, content(&bytes, 3));
        for at in [0, piece - 1, piece, 2 * piece + 7, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(whole, content(&other, 2), "byte {at}");
        }
        assert_ne!(whole, content(&bytes[..bytes.len() - 1], 1));
        let swapped = [&bytes[piece..2 * piece], &bytes[..piece], &bytes[2 * piece..]].concat();
        assert_ne!(whole, content(&swapped, 1));
    }

    #[test]
    fn a_file_that_got_shorter_has_no_content() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(PIECE).unwrap();
        assert!(Content::of(&file, PIECE + 1, 2).is_err());
    }
}
