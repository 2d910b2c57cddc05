//! Private copies of the pages a burst touches.
//!
//! ```text
//! address -> slots[page & 255] (two compares) -> frames[i]         hot path
//!         -> table (open addressing, only on a slot miss) -> frames[i]
//!         -> Memory::read_page                                     once per page and burst
//! ```

use std::ops::Range;

use addresses::Avma;

use crate::memory::{Fault, Memory, PAGE, Page};

const SLOTS: usize = 256;
const NO_PAGE: u64 = u64::MAX;

/// Where an access went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Not readable, or not writable.
    Fault(u64),
    /// The overlay holds as many pages as it may.
    Full,
}

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Page number that may be read through this slot.
    pub(crate) readable: u64,
    /// Page number that may be written through this slot: a page that was written before and holds no decoded code.
    pub(crate) writable: u64,
    pub(crate) frame: u32,
}

const EMPTY: Slot = Slot { readable: NO_PAGE, writable: NO_PAGE, frame: 0 };

#[derive(Clone, Copy)]
struct Frame {
    page: u64,
    written: bool,
}

/// Copies of the pages that were read or written since the last [`clear`](Self::clear). Reused from burst to burst: it
/// allocates only while it grows to the largest burst seen.
pub struct Overlay {
    pub(crate) slots: Box<[Slot; SLOTS]>,
    pub(crate) frames: Vec<Page>,
    about: Vec<Frame>,
    /// Frame number + 1 at the hash of its page; 0 is free.
    table: Vec<u32>,
    limit: usize,
    /// Pages as they were before the first write, at the places of their frames; none are kept if there is no vector.
    originals: Option<Vec<Page>>,
}

impl Overlay {
    /// An overlay that holds at most `pages` pages (4 KiB each); a burst that touches more of them stops.
    pub fn new(pages: usize) -> Self {
        let limit = pages.clamp(4, 1 << 20);
        Self {
            slots: Box::new([EMPTY; SLOTS]),
            frames: Vec::new(),
            about: Vec::new(),
            table: vec![0; (limit * 2).next_power_of_two()],
            limit,
            originals: None,
        }
    }

    /// An overlay that knows what was changed in its pages: see [`changes`](Self::changes).
    pub fn with_originals(pages: usize) -> Self {
        Self { originals: Some(Vec::new()), ..Self::new(pages) }
    }

    /// Forgets every page, written or not. To be called whenever the thread has run.
    pub fn clear(&mut self) {
        for index in 0..self.about.len() {
            let page = self.about[index].page;
            self.slots[page as usize % SLOTS] = EMPTY;
        }
        if self.about.len() * 8 > self.table.len() {
            self.table.fill(0);
        } else {
            // Latest first, so that every probe still finds what was put in after an earlier page.
            for index in (0..self.about.len()).rev() {
                let at = self.probe(self.about[index].page);
                self.table[at] = 0;
            }
        }
        self.about.clear();
    }

    /// Number of pages held.
    pub fn pages(&self) -> usize {
        self.about.len()
    }

    /// Addresses of the pages held, in the order of their first use: the next burst of the thread is likely to need many of them
    /// again, and reading them together is cheaper.
    pub fn touched(&self) -> impl Iterator<Item = Avma> {
        self.about.iter().map(|about| Avma(about.page << 12))
    }

    /// The pages that the interpreted code wrote to, with their present content.
    pub fn written(&self) -> impl Iterator<Item = (Avma, &Page)> {
        self.about.iter().zip(&self.frames).filter(|(about, _)| about.written).map(|(a, f)| (Avma(a.page << 12), f))
    }

    /// The pieces of memory that the interpreted code changed, with their present content, in the order of the first use of their pages.
    /// Nothing if the overlay keeps no originals. What others may have written beside them meanwhile is left alone by whoever writes
    /// these back.
    pub fn changes(&self) -> impl Iterator<Item = (Avma, &[u8])> {
        let originals = self.originals.as_deref().unwrap_or_default();
        let pages = self.about.iter().zip(&self.frames).zip(originals).filter(|((about, _), _)| about.written);
        pages.flat_map(|((about, frame), original)| {
            changed_ranges(original, frame).map(|range| (Avma((about.page << 12) + range.start as u64), &frame[range]))
        })
    }

    pub(crate) fn is_written(&self, page: u64) -> bool {
        match self.table[self.probe(page)] {
            0 => false,
            frame => self.about[frame as usize - 1].written,
        }
    }

    /// Where `page` is or belongs in the table.
    fn probe(&self, page: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut at = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.table[at] {
                0 => return at,
                frame if self.about[frame as usize - 1].page == page => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// The frame that holds `page`, read now if it is new, and opened for reading in its slot.
    #[cold]
    pub(crate) fn open(&mut self, page: u64, memory: &mut dyn Memory) -> Result<u32, Miss> {
        let at = self.probe(page);
        let frame = match self.table[at] {
            0 => {
                let frame = self.about.len();
                if frame >= self.limit {
                    return Err(Miss::Full);
                }
                if frame == self.frames.len() {
                    self.frames.push([0; PAGE]);
                }
                memory.read_page(Avma(page << 12), &mut self.frames[frame]).map_err(|Fault| Miss::Fault(page << 12))?;
                self.about.push(Frame { page, written: false });
                self.table[at] = frame as u32 + 1;
                frame as u32
            }
            frame => frame - 1,
        };
        let slot = &mut self.slots[page as usize % SLOTS];
        if slot.readable != page {
            *slot = Slot { readable: page, writable: NO_PAGE, frame };
        }
        Ok(frame)
    }

    /// Like [`open`](Self::open), for writing. `fast` opens the slot for writing, too.
    pub(crate) fn open_for_writing(&mut self, page: u64, fast: bool, memory: &mut dyn Memory) -> Result<u32, Miss> {
        let frame = self.open(page, memory)?;
        let about = &mut self.about[frame as usize];
        if !about.written {
            if !memory.writable(Avma(page << 12)) {
                return Err(Miss::Fault(page << 12));
            }
            about.written = true;
            if let Some(originals) = &mut self.originals {
                let frame = frame as usize;
                if originals.len() <= frame {
                    originals.resize(frame + 1, [0; PAGE]);
                }
                originals[frame] = self.frames[frame];
            }
        }
        self.slots[page as usize % SLOTS].writable = if fast { page } else { NO_PAGE };
        Ok(frame)
    }

    /// No page may be written through its slot until it was looked at again: decoded code has appeared.
    pub(crate) fn close_for_writing(&mut self, page: u64) {
        let slot = &mut self.slots[page as usize % SLOTS];
        if slot.writable == page {
            slot.writable = NO_PAGE;
        }
    }
}

/// The ranges in which two pages differ, ascending.
fn changed_ranges(before: &Page, now: &Page) -> impl Iterator<Item = Range<usize>> {
    const WORD: usize = 8;
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < PAGE && before[at] == now[at] {
            // Words that are the same are passed over at once.
            let same_word = at.is_multiple_of(WORD) && before[at..at + WORD] == now[at..at + WORD];
            at += if same_word { WORD } else { 1 };
        }
        let start = at;
        while at < PAGE && before[at] != now[at] {
            at += 1;
        }
        (start < at).then_some(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbered;

    impl Memory for Numbered {
        fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
            page.fill((address.0 >> 12) as u8);
            Ok(())
        }
    }

    #[test]
    fn pages_are_found_again_and_forgotten() {
        let mut overlay = Overlay::new(600);
        for round in 0..3u64 {
            for page in 0..500u64 {
                let page = page * 256 + round; // all in one slot
                let frame = overlay.open(page, &mut Numbered).unwrap() as usize;
                assert_eq!(overlay.frames[frame][0], page as u8);
                assert_eq!(overlay.open(page, &mut Numbered).unwrap() as usize, frame);
            }
            assert_eq!(overlay.pages(), 500);
            overlay.clear();
            assert!(overlay.table.iter().all(|&at| at == 0));
        }
        assert_eq!(overlay.frames.len(), 500);
    }

    #[test]
    fn changes_are_what_differs_from_the_originals() {
        let mut overlay = Overlay::with_originals(8);
        for round in 1..3 {
            overlay.open(9, &mut Numbered).unwrap();
            let frame = overlay.open_for_writing(4, true, &mut Numbered).unwrap() as usize;
            overlay.frames[frame][17..20].fill(50 + round);
            overlay.frames[frame][21] = 60;
            overlay.frames[frame][22] = 4; // what was there
            overlay.frames[frame][PAGE - 1] = 61;
            overlay.open_for_writing(5, true, &mut Numbered).unwrap();
            let changes: Vec<(Avma, Vec<u8>)> = overlay.changes().map(|(at, bytes)| (at, bytes.to_vec())).collect();
            assert_eq!(
                changes,
                [(Avma(0x4011), vec![50 + round; 3]), (Avma(0x4015), vec![60]), (Avma(0x4fff), vec![61])]
            );
            overlay.clear();
            assert_eq!(overlay.changes().count(), 0);
        }
    }

    #[test]
    fn few_pages_are_cleared_one_by_one() {
        let mut overlay = Overlay::new(1000);
        for page in 0..20 {
            overlay.open(page << 20, &mut Numbered).unwrap();
        }
        overlay.clear();
        assert!(overlay.table.iter().all(|&at| at == 0));
        assert!(overlay.slots.iter().all(|slot| slot.readable == NO_PAGE));
    }
}
