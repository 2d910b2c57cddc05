//! Code that a burst executed, in its slot: what is of no file is known from nothing else.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use addresses::Avma;
use lookahead::ExecutedCode;

/// Words of eight bytes: some 2,000 blocks.
const WORDS: usize = 8192;
/// Where a piece's length less one stands beside its address: addresses in user space have at most 56 bits.
const LENGTH_SHIFT: u32 = 56;
/// Bytes of a piece at most: no block is longer.
const LONGEST: usize = 256;

/// Pieces of code: address and length, then the bytes.
#[repr(C)]
pub(crate) struct SlotCode {
    /// Words that are filled.
    filled: AtomicU32,
    /// Pieces that found no room.
    left_out: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl SlotCode {
    /// Another burst begins.
    pub(crate) fn clear(&self) {
        self.filled.store(0, Relaxed);
        self.left_out.store(0, Relaxed);
    }

    /// Adds a piece, if there is room.
    pub(crate) fn put(&self, at: Avma, bytes: &[u8]) {
        let filled = self.filled.load(Relaxed) as usize;
        let words = bytes.len().div_ceil(8);
        let place = self.words.get(filled..).and_then(|rest| rest.get(..=words));
        let (Some([header, place @ ..]), 1..=LONGEST) = (place, bytes.len()) else {
            self.left_out.fetch_add(1, Relaxed);
            return;
        };
        header.store(at.0 & !(0xff << LENGTH_SHIFT) | (bytes.len() as u64 - 1) << LENGTH_SHIFT, Relaxed);
        let (whole, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for (word, bytes) in place.iter().zip(whole.iter().chain([&last])) {
            word.store(u64::from_le_bytes(*bytes), Relaxed);
        }
        self.filled.store((filled + 1 + words) as u32, Relaxed);
    }

    /// Appends the pieces to `code`. Returns how many found no room. The program could have written anything: what does not fit ends it.
    pub(crate) fn read(&self, code: &mut ExecutedCode) -> u64 {
        let mut rest = self.words.get(..self.filled.load(Relaxed) as usize).unwrap_or_default();
        let mut bytes = [0; LONGEST];
        while let Some((header, after)) = rest.split_first() {
            let header = header.load(Relaxed);
            let (at, length) = (header & !(0xff << LENGTH_SHIFT), (header >> LENGTH_SHIFT) as usize + 1);
            let Some((piece, after)) = after.split_at_checked(length.div_ceil(8)) else { break };
            for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(piece) {
                *bytes = word.load(Relaxed).to_le_bytes();
            }
            code.push(Avma(at), &bytes[..length]);
            rest = after;
        }
        u64::from(self.left_out.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Box<SlotCode> {
        let words = [const { AtomicU64::new(0) }; WORDS];
        Box::new(SlotCode { filled: AtomicU32::new(0), left_out: AtomicU32::new(0), words })
    }

    fn read(slot: &SlotCode) -> (Vec<(u64, Vec<u8>)>, u64) {
        let mut code = ExecutedCode::default();
        let left_out = slot.read(&mut code);
        (code.pieces().map(|(at, bytes)| (at.0, bytes.to_vec())).collect(), left_out)
    }

    #[test]
    fn pieces_of_any_length_come_out_as_they_went_in() {
        let slot = empty();
        let pieces: Vec<(u64, Vec<u8>)> = [1, 7, 8, 9, 16, 255, 256]
            .iter()
            .map(|&length| (0x7fff_0000_0000 + length, vec![0xab; length as usize]))
            .collect();
        pieces.iter().for_each(|(at, bytes)| slot.put(Avma(*at), bytes));
        assert_eq!(read(&slot), (pieces, 0));
        slot.clear();
        assert_eq!(read(&slot), (Vec::new(), 0));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let slot = empty();
        slot.put(Avma(1), &[]);
        slot.put(Avma(1), &[0; 257]);
        (0..WORDS as u64).for_each(|at| slot.put(Avma(at), &[0x90; 8]));
        let (pieces, left_out) = read(&slot);
        assert_eq!((pieces.len(), left_out), (WORDS / 2, 2 + WORDS as u64 / 2));
    }

    #[test]
    fn any_words_are_read_without_harm() {
        let slot = empty();
        slot.words.iter().for_each(|word| word.store(u64::MAX, Relaxed));
        slot.filled.store(u32::MAX, Relaxed);
        assert_eq!(read(&slot).0, []);
        slot.filled.store(40, Relaxed);
        assert_eq!(read(&slot).0.len(), 1, "33 words, and 7 that are too few");
    }
}
