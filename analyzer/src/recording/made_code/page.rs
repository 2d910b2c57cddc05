//! The bytes of a page of code, as far as they are known.

use crate::recording::pages::{PAGE, pages};

/// What is not known: no instruction begins so.
const UNKNOWN: u8 = 0x06;
#[derive(Clone, Debug)]
pub(super) struct Page(pub Box<PageBytes>);

#[derive(Clone, Debug)]
pub(super) struct PageBytes {
    pub bytes: [u8; PAGE as usize],
    /// A bit for each byte.
    pub known: [u64; PAGE as usize / 64],
}

impl Page {
    pub fn empty() -> Self {
        Self(Box::new(PageBytes { bytes: [UNKNOWN; PAGE as usize], known: [0; PAGE as usize / 64] }))
    }

    pub fn knows(&self, at: usize) -> bool {
        self.0.known.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }

    /// Whether other bytes are known there.
    pub fn contradicts(&self, first: usize, bytes: &[u8]) -> bool {
        self.others(first, bytes).next().is_some()
    }

    /// Which bytes are known to be others.
    pub fn others(&self, first: usize, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let both = (first..).zip(self.0.bytes.iter().skip(first).zip(bytes));
        both.filter(|(at, (byte, new))| byte != new && self.knows(*at)).map(|(at, _)| at)
    }

    pub fn put(&mut self, first: usize, bytes: &[u8]) {
        for (at, (byte, new)) in (first..).zip(self.0.bytes.iter_mut().skip(first).zip(bytes)) {
            *byte = *new;
            if let Some(bits) = self.0.known.get_mut(at / 64) {
                *bits |= 1 << (at % 64);
            }
        }
    }
}

/// The parts of `bytes` that are in one page each: its address, the first byte in it.
pub(super) fn parts(at: u64, bytes: &[u8]) -> Vec<(u64, usize, &[u8])> {
    pages(at, bytes).map(|(at, part)| (at - at % PAGE, (at % PAGE) as usize, part)).collect()
}
