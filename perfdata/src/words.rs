//! Views of 64-bit words in a record's bytes. The kernel writes samples in whole words.

/// A 64-bit little-endian number as stored.
pub(crate) type Word = [u8; 8];

/// Takes words off the front of a record's body.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a>(pub(crate) &'a [Word]);

impl<'a> Words<'a> {
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    /// Takes a word holding two 32-bit numbers; the one at the lower address first.
    #[inline]
    pub(crate) fn take_pair(&mut self) -> Option<(u32, u32)> {
        self.take().map(|word| (word as u32, (word >> 32) as u32))
    }

    #[inline]
    pub(crate) fn take_many(&mut self, count: usize) -> Option<&'a [Word]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(crate) fn bytes_left(&self) -> u64 {
        self.0.len() as u64 * 8
    }
}

/// A list of 64-bit numbers, read where they lie in the record.
#[derive(Clone, Copy, Default)]
pub struct U64s<'a>(pub(crate) &'a [Word]);

impl<'a> U64s<'a> {
    /// How many numbers the list has.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(|word| u64::from_le_bytes(*word))
    }

    /// All numbers in the order recorded.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone + use<'a> {
        self.0.iter().map(|word| u64::from_le_bytes(*word))
    }
}

impl PartialEq for U64s<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl std::fmt::Debug for U64s<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|value| format!("{value:#x}"))).finish()
    }
}
