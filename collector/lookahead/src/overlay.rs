//! The pages a burst touches: private copies, or where they are until they are written to.
//!
//! ```text
//! address -> slots[page & 255] (page, line) -> bytes               hot path
//!         -> table (open addressing, only on a slot miss) -> held[i]
//!         -> Memory::in_place, or Memory::read_page into a frame   once per page and burst
//! a page in place -> gets a frame                                  at the first write
//! a line of it    -> copied into the frame                         at the first use after that
//! ```
//!
//! Most pages that are written to are so in a line or two, and copying all of them is most of what a burst would cost.

use std::ops::Range;

use addresses::Avma;

use crate::line_tables::LineTables;
use crate::memory::{Fault, Memory, PAGE, Page};
use crate::native::{Frames, PageBytes};

const SLOTS: usize = 256;
const NO_PAGE: u64 = u64::MAX;
/// Bytes of a line: a page has as many as a word has bits.
pub(crate) const LINE: usize = 64;
const ALL_LINES: u64 = u64::MAX;

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
    pub(crate) page: u64,
    /// Lines that may be read through this slot: those that are where `bytes` says.
    pub(crate) readable: u64,
    /// Lines that may be written through this slot: the same if the page was written before and holds no decoded code.
    pub(crate) writable: u64,
    /// Where the page is.
    pub(crate) bytes: PageBytes,
    /// Its frame, if it may be written.
    pub(crate) frame: u32,
}

const EMPTY: Slot = Slot { page: NO_PAGE, readable: 0, writable: 0, bytes: PageBytes::NONE, frame: NO_FRAME };
/// Frame of a page that is read in place.
const NO_FRAME: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Held {
    page: u64,
    /// Where it is,
    bytes: PageBytes,
    /// these lines of it,
    lines: u64,
    /// and where the others are.
    below: PageBytes,
    frame: u32,
    written: bool,
}

/// The pages that were read or written since the last [`clear`](Self::clear). Reused from burst to burst: it allocates only while it
/// grows to the largest burst seen.
pub struct Overlay {
    pub(crate) slots: Box<[Slot; SLOTS]>,
    pub(crate) frames: Frames,
    frames_used: usize,
    held: Vec<Held>,
    /// Index in `held` + 1 at the hash of the page; 0 is free.
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
            frames: Frames::default(),
            frames_used: 0,
            held: Vec::new(),
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
        for index in 0..self.held.len() {
            let page = self.held[index].page;
            self.slots[page as usize % SLOTS] = EMPTY;
        }
        if self.held.len() * 8 > self.table.len() {
            self.table.fill(0);
        } else {
            // Latest first, so that every probe still finds what was put in after an earlier page.
            for index in (0..self.held.len()).rev() {
                let at = self.probe(self.held[index].page);
                self.table[at] = 0;
            }
        }
        self.held.clear();
        self.frames_used = 0;
    }

    /// Number of pages held.
    pub fn pages(&self) -> usize {
        self.held.len()
    }

    /// Addresses of the pages held, in the order of their first use: the next burst of the thread is likely to need many of them
    /// again, and reading them together is cheaper.
    pub fn touched(&self) -> impl Iterator<Item = Avma> {
        self.held.iter().map(|held| Avma(held.page << 12))
    }

    /// The pages that the interpreted code wrote to, with their present content.
    pub fn written(&self) -> impl Iterator<Item = (Avma, Page)> {
        self.held.iter().filter(|held| held.written).map(|held| {
            let mut page = self.frames[held.frame as usize];
            copy_lines(held.below, !held.lines, &mut page);
            (Avma(held.page << 12), page)
        })
    }

    /// The pieces of memory that the interpreted code changed, with their present content, in the order of the first use of their pages.
    /// Nothing if the overlay keeps no originals. What others may have written beside them meanwhile is left alone by whoever writes
    /// these back.
    pub fn changes(&self) -> impl Iterator<Item = (Avma, &[u8])> {
        let originals = self.originals.as_deref().unwrap_or_default();
        let pages = self.held.iter().filter(|held| held.written);
        let with_originals = pages.filter_map(|held| Some((held, originals.get(held.frame as usize)?)));
        with_originals.flat_map(|(held, original)| {
            let frame = &self.frames[held.frame as usize];
            changed_ranges(original, frame).map(|range| (Avma((held.page << 12) + range.start as u64), &frame[range]))
        })
    }

    /// Of a page that the interpreted code wrote to: the lines of 64 bytes that were copied, as bits, and a page with their present content,
    /// in which the other lines mean nothing. `None` if it was not written to.
    pub fn copied_lines(&self, address: Avma) -> Option<(u64, &Page)> {
        let index = self.table[self.probe(address.0 >> 12)].checked_sub(1)?;
        let held = &self.held[index as usize];
        held.written.then(|| (held.lines, &self.frames[held.frame as usize]))
    }

    pub(crate) fn is_written(&self, page: u64) -> bool {
        match self.table[self.probe(page)] {
            0 => false,
            index => self.held[index as usize - 1].written,
        }
    }

    /// Where `page` is or belongs in the table.
    fn probe(&self, page: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut at = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.table[at] {
                0 => return at,
                index if self.held[index as usize - 1].page == page => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Where `lines` of `page` are, which is read now if it is new. They are opened for reading in its slot.
    #[cold]
    pub(crate) fn open(
        &mut self,
        page: u64,
        lines: u64,
        memory: &mut dyn Memory,
        tables: &mut LineTables,
    ) -> Result<PageBytes, Miss> {
        let index = self.hold(page, memory)?;
        self.bring(index, lines, tables);
        Ok(self.held[index].bytes)
    }

    /// Has lines of a page where the others are that were used since it was written.
    fn bring(&mut self, index: usize, lines: u64, tables: &mut LineTables) {
        let Held { page, lines: there, below, frame, .. } = self.held[index];
        if lines & !there == 0 {
            return;
        }
        copy_lines(below, lines & !there, &mut self.frames[frame as usize]);
        self.held[index].lines |= lines;
        tables.moved(page, lines & !there);
        let slot = &mut self.slots[page as usize % SLOTS];
        if slot.page == page {
            slot.readable |= lines;
            slot.writable |= if slot.writable == 0 { 0 } else { lines };
        }
    }

    /// Like [`open`](Self::open), for writing: the frame that holds a copy of these lines. `fast` opens the slot for writing, too.
    pub(crate) fn open_for_writing(
        &mut self,
        page: u64,
        lines: u64,
        fast: bool,
        memory: &mut dyn Memory,
        tables: &mut LineTables,
    ) -> Result<u32, Miss> {
        // Asked before a new page is read: one that is in use only when it is written to is brought in once, and not for reading before.
        if !self.is_written(page) && !memory.writable(Avma(page << 12)) {
            return Err(Miss::Fault(page << 12));
        }
        let index = self.hold(page, memory)?;
        if !self.held[index].written {
            self.held[index].written = true;
            if self.held[index].frame == NO_FRAME {
                let frame = self.next_frame();
                self.frames_used += 1;
                let held = &mut self.held[index];
                (held.frame, held.bytes, held.lines) = (frame as u32, self.frames.bytes(frame), 0);
            }
            if self.originals.is_some() {
                self.bring(index, ALL_LINES, tables);
            }
            if let Some(originals) = &mut self.originals {
                let frame = self.held[index].frame as usize;
                if originals.len() <= frame {
                    originals.resize(frame + 1, [0; PAGE]);
                }
                originals[frame] = self.frames[frame];
            }
        }
        self.bring(index, lines, tables);
        let Held { bytes, frame, lines: readable, .. } = self.held[index];
        let writable = if fast { readable } else { 0 };
        self.slots[page as usize % SLOTS] = Slot { page, readable, writable, bytes, frame };
        Ok(frame)
    }

    /// The index of `page` in what is held, read now if it is new, and opened for reading in its slot.
    fn hold(&mut self, page: u64, memory: &mut dyn Memory) -> Result<usize, Miss> {
        let at = self.probe(page);
        let index = match self.table[at] {
            0 => {
                let index = self.held.len();
                if index >= self.limit {
                    return Err(Miss::Full);
                }
                let address = Avma(page << 12);
                let fault = |Fault| Miss::Fault(address.0);
                let (bytes, frame) = match memory.in_place(address).map_err(fault)? {
                    Some(in_place) => (in_place.into(), NO_FRAME),
                    None => {
                        let frame = self.next_frame();
                        memory.read_page(address, &mut self.frames[frame]).map_err(fault)?;
                        (self.frames.bytes(frame), frame as u32)
                    }
                };
                self.held.push(Held { page, bytes, lines: ALL_LINES, below: bytes, frame, written: false });
                self.frames_used += usize::from(frame != NO_FRAME);
                self.table[at] = index as u32 + 1;
                index
            }
            index => index as usize - 1,
        };
        let slot = &mut self.slots[page as usize % SLOTS];
        if slot.page != page {
            let Held { bytes, lines, frame, .. } = self.held[index];
            *slot = Slot { page, readable: lines, writable: 0, bytes, frame };
        }
        Ok(index)
    }

    /// A frame that no page has. It is the same one until `frames_used` says that it is used.
    fn next_frame(&mut self) -> usize {
        if self.frames_used == self.frames.len() {
            self.frames.push();
        }
        self.frames_used
    }

    /// No page may be written through its slot until it was looked at again: decoded code has appeared.
    pub(crate) fn close_for_writing(&mut self, page: u64) {
        let slot = &mut self.slots[page as usize % SLOTS];
        if slot.page == page {
            slot.writable = 0;
        }
    }
}

/// Copies the lines of a page that `lines` says.
fn copy_lines(from: PageBytes, mut lines: u64, to: &mut Page) {
    while lines != 0 {
        let at = lines.trailing_zeros() as usize * LINE;
        to[at..at + LINE].copy_from_slice(&from.load::<LINE>(at));
        lines &= lines - 1;
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
    fn threads_may_hand_it_on() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<Overlay>();
    }

    #[test]
    fn pages_are_found_again_and_forgotten() {
        let mut overlay = Overlay::new(600);
        for round in 0..3u64 {
            for page in 0..500u64 {
                let page = page * 256 + round; // all in one slot
                assert_eq!(
                    overlay.open(page, ALL_LINES, &mut Numbered, &mut LineTables::default()).unwrap().load(0),
                    [page as u8]
                );
                assert_eq!(
                    overlay.open(page, ALL_LINES, &mut Numbered, &mut LineTables::default()).unwrap().load(PAGE - 1),
                    [page as u8]
                );
                assert_eq!(overlay.pages() as u64, page / 256 + 1);
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
            overlay.open(9, 1, &mut Numbered, &mut LineTables::default()).unwrap();
            let frame =
                overlay.open_for_writing(4, 1, true, &mut Numbered, &mut LineTables::default()).unwrap() as usize;
            overlay.frames[frame][17..20].fill(50 + round);
            overlay.frames[frame][21] = 60;
            overlay.frames[frame][22] = 4; // what was there
            overlay.frames[frame][PAGE - 1] = 61;
            overlay.open_for_writing(5, 1, true, &mut Numbered, &mut LineTables::default()).unwrap();
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
            overlay.open(page << 20, 1, &mut Numbered, &mut LineTables::default()).unwrap();
        }
        overlay.clear();
        assert!(overlay.table.iter().all(|&at| at == 0));
        assert!(overlay.slots.iter().all(|slot| slot.page == NO_PAGE));
    }
}
