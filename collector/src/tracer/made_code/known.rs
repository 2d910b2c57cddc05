//! The bytes of a process' code that the recording has.

use std::collections::BTreeMap;

use addresses::Avma;

/// Bytes that are kept together.
const CHUNK: u64 = 256;

/// Bytes by address, as they were last.
#[derive(Debug, Default)]
pub(crate) struct KnownCode {
    chunks: BTreeMap<u64, Box<Chunk>>,
}

#[derive(Clone, Debug)]
struct Chunk {
    bytes: [u8; CHUNK as usize],
    known: [bool; CHUNK as usize],
}

impl KnownCode {
    /// Whether all of these bytes are known there.
    pub(crate) fn has(&self, at: Avma, bytes: &[u8]) -> bool {
        parts(at, bytes).all(|(index, first, part)| {
            let range = first..first + part.len();
            let chunk = self.chunks.get(&index);
            chunk.is_some_and(|chunk| {
                chunk.bytes[range.clone()] == *part && chunk.known[range].iter().all(|known| *known)
            })
        })
    }

    /// Whether another byte is known there.
    pub(crate) fn contradicts(&self, at: Avma, bytes: &[u8]) -> bool {
        parts(at, bytes).any(|(index, first, part)| {
            let range = first..first + part.len();
            let differs = |chunk: &Chunk| {
                let both = chunk.bytes[range.clone()].iter().zip(part).zip(&chunk.known[range.clone()]);
                both.into_iter().any(|((byte, new), known)| *known && byte != new)
            };
            self.chunks.get(&index).is_some_and(|chunk| differs(chunk))
        })
    }

    /// These bytes are there now.
    pub(crate) fn put(&mut self, at: Avma, bytes: &[u8]) {
        for (index, first, part) in parts(at, bytes) {
            let empty = || Box::new(Chunk { bytes: [0; CHUNK as usize], known: [false; CHUNK as usize] });
            let chunk = self.chunks.entry(index).or_insert_with(empty);
            chunk.bytes[first..first + part.len()].copy_from_slice(part);
            chunk.known[first..first + part.len()].fill(true);
        }
    }

    /// Whether some byte between two addresses may be known.
    pub(crate) fn touches(&self, start: Avma, end: Avma) -> bool {
        start < end && self.chunks.range(start.0 / CHUNK..=(end.0 - 1) / CHUNK).next().is_some()
    }
}

/// The parts of `bytes` that are in one chunk each: its index, the first byte in it.
fn parts(at: Avma, bytes: &[u8]) -> impl Iterator<Item = (u64, usize, &[u8])> {
    let (mut at, mut rest) = (at.0, bytes);
    std::iter::from_fn(move || {
        let first = (at % CHUNK) as usize;
        let (part, after) = rest.split_at(rest.len().min(CHUNK as usize - first));
        let index = at / CHUNK;
        (at, rest) = (at.wrapping_add(part.len() as u64), after);
        (!part.is_empty()).then_some((index, first, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_known_across_chunks() {
        let mut known = KnownCode::default();
        let bytes: Vec<u8> = (0..=255).chain(0..=255).collect();
        known.put(Avma(0x10f0), &bytes);
        assert!(known.has(Avma(0x10f0), &bytes) && known.has(Avma(0x11ff), &bytes[0x10f..0x111]));
        assert!(!known.has(Avma(0x10ef), &bytes[..2]) && !known.has(Avma(0x11ff), &[0xff]));
        assert!(!known.has(Avma(0x12ef), &[255, 0]), "one byte after the last");
        assert!(known.touches(Avma(0x1000), Avma(0x1001)), "the same chunk");
        assert!(!known.touches(Avma(0x1300), Avma(0x5000)) && !known.touches(Avma(0x1100), Avma(0x1100)));
        assert!(known.contradicts(Avma(0x11ff), &[0]) && !known.contradicts(Avma(0x12ef), &[255, 0]));
        known.put(Avma(u64::MAX), &[1, 2]);
        assert!(known.has(Avma(u64::MAX), &[1]));
    }
}
