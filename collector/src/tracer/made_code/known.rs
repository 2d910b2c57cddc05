//! The bytes of a process' code that the recording has.

use std::collections::BTreeMap;
use std::ops::Range;

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
    /// When bytes came there last that were new, ns.
    newest: u64,
    /// When other bytes came there, since it was named last.
    rewritten: Vec<u64>,
}

/// Times that are kept of a chunk, the last ones,
const MOST_TIMES: usize = 16;
/// and chunks of a function that are asked for them: of a longer function these tell.
const MOST_CHUNKS: usize = 64;

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

    /// Whether some byte there, or near it, came after `time`, ns.
    pub(crate) fn is_newer(&self, time: u64, at: Avma, bytes: &[u8]) -> bool {
        parts(at, bytes).any(|(index, ..)| self.chunks.get(&index).is_some_and(|chunk| chunk.newest > time))
    }

    /// Whether another byte is known there.
    pub(crate) fn contradicts(&self, at: Avma, bytes: &[u8]) -> bool {
        parts(at, bytes)
            .any(|(index, first, part)| self.chunks.get(&index).is_some_and(|chunk| chunk.contradicts(first, part)))
    }

    /// These bytes were there at `time`, ns; times ascend where others were there before.
    pub(crate) fn put_at(&mut self, time: u64, at: Avma, bytes: &[u8]) {
        for (index, first, part) in parts(at, bytes) {
            let Some(chunk) = self.chunks.get_mut(&index) else { continue };
            if chunk.contradicts(first, part) && chunk.rewritten.last() != Some(&time) {
                if chunk.rewritten.len() == MOST_TIMES {
                    chunk.rewritten.remove(0);
                }
                chunk.rewritten.push(time);
            }
        }
        self.put(at, bytes);
        for (index, ..) in parts(at, bytes) {
            if let Some(chunk) = self.chunks.get_mut(&index) {
                chunk.newest = chunk.newest.max(time);
            }
        }
    }

    /// When code in this range was rewritten since it was named last, ns, ascending.
    pub(crate) fn rewritten(&self, range: &Range<Avma>) -> Vec<u64> {
        let mut times: Vec<u64> = self
            .chunks
            .range(chunks(range))
            .take(MOST_CHUNKS)
            .flat_map(|(_, chunk)| &chunk.rewritten)
            .copied()
            .collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The code in this range has a name: what was rewritten before tells nothing of the next one.
    pub(crate) fn is_named(&mut self, range: &Range<Avma>) {
        self.chunks.range_mut(chunks(range)).take(MOST_CHUNKS).for_each(|(_, chunk)| chunk.rewritten.clear());
    }

    /// These bytes are there now.
    pub(crate) fn put(&mut self, at: Avma, bytes: &[u8]) {
        for (index, first, part) in parts(at, bytes) {
            let empty = || {
                let (bytes, known) = ([0; CHUNK as usize], [false; CHUNK as usize]);
                Box::new(Chunk { bytes, known, newest: 0, rewritten: Vec::new() })
            };
            let chunk = self.chunks.entry(index).or_insert_with(empty);
            chunk.bytes[first..first + part.len()].copy_from_slice(part);
            chunk.known[first..first + part.len()].fill(true);
        }
    }

    /// Whether some byte in this range may be known.
    pub(crate) fn touches(&self, range: &Range<Avma>) -> bool {
        range.start < range.end && self.chunks.range(chunks(range)).next().is_some()
    }
}

impl Chunk {
    /// Whether other bytes are known from the byte `first` of it on.
    fn contradicts(&self, first: usize, bytes: &[u8]) -> bool {
        let range = first..first + bytes.len();
        let both = self.bytes[range.clone()].iter().zip(bytes).zip(&self.known[range]);
        both.into_iter().any(|((byte, new), known)| *known && byte != new)
    }
}

/// The chunks of a range: none of an empty one.
fn chunks(range: &Range<Avma>) -> Range<u64> {
    let first = range.start.0 / CHUNK;
    first..range.end.0.div_ceil(CHUNK).max(first)
}

/// The parts of `bytes` that are kept together, and where they begin.
pub(super) fn in_chunks(at: Avma, bytes: &[u8]) -> impl Iterator<Item = (Avma, &[u8])> {
    parts(at, bytes).map(|(index, first, part)| (Avma(index * CHUNK + first as u64), part))
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
        assert!(known.touches(&(Avma(0x1000)..Avma(0x1001))), "the same chunk");
        assert!(!known.touches(&(Avma(0x1300)..Avma(0x5000))) && !known.touches(&(Avma(0x1100)..Avma(0x1100))));
        assert!(known.contradicts(Avma(0x11ff), &[0]) && !known.contradicts(Avma(0x12ef), &[255, 0]));
        known.put(Avma(u64::MAX), &[1, 2]);
        assert!(known.has(Avma(u64::MAX), &[1]));
    }
}
