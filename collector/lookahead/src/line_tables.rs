//! Where lines of data are, for compiled code: a line that is here may be read, or written, without asking the overlay.
//!
//! ```text
//! READS   1024 places  lines that [`DataLines`](crate::DataLines) has at the same place: a further use of them is nothing new
//! WRITES   256 places  those of them that may be written, too
//! STACK_READS, STACK_WRITES  64 places each  lines of the stack, whose uses by `push`, `pop`, `call` and `ret` nobody notes
//! ```
//! What is here is right until the overlay moves a line, or another run begins.

use crate::memory::PAGE;
use crate::overlay::{LINE, Slot};

/// Places for lines that are known to have been used.
pub(crate) const KNOWN: usize = 1024;
/// Bits of a line: addresses have 64.
pub(crate) const LINE_BITS: u32 = 58;
/// Runs are told apart by a number above the line, so that not all has to be forgotten for each. The last one is that of none.
const NUMBERS: u64 = 63;
const NONE: Place = Place { tag: u64::MAX, distance: 0 };

/// First places of the tables, and how many each has.
pub(crate) const READS: Table = Table { first: 0, places: KNOWN };
pub(crate) const WRITES: Table = Table { first: KNOWN, places: 256 };
pub(crate) const STACK_READS: Table = Table { first: KNOWN + 256, places: 64 };
pub(crate) const STACK_WRITES: Table = Table { first: KNOWN + 320, places: 64 };
const PLACES: usize = KNOWN + 384;

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) first: usize,
    /// A power of two.
    pub(crate) places: usize,
}

impl Table {
    /// Where a line belongs. Rows of matrices whose distance is a power of two have places of their own.
    #[inline(always)]
    fn place(self, line: u64) -> usize {
        let place = if self.first < STACK_READS.first { place(line) } else { line as usize };
        self.first + place % self.places
    }
}

/// Higher bits of a line help to choose its place.
pub(crate) const FOLDED: u8 = 10;

/// The place of a line among those that are known.
#[inline(always)]
pub(crate) fn place(line: u64) -> usize {
    (line ^ line >> FOLDED) as usize % KNOWN
}

/// A line, as compiled code has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Place {
    /// Address / 64, and the number of the run above it.
    pub(crate) tag: u64,
    /// From an address in it to where its bytes are.
    pub(crate) distance: u64,
}

/// The tables, one after the other.
#[derive(Default)]
pub(crate) struct LineTables {
    /// None until compiled code runs.
    places: Box<[Place]>,
    number: u64,
    /// Some line was put in since the run began: else nobody looks at the tables, and they need not be in the caches.
    in_use: bool,
}

impl LineTables {
    /// Forgets everything: another run begins.
    pub(crate) fn begin(&mut self) {
        self.in_use = false;
        self.number = (self.number + 1) % NUMBERS;
        if self.number == 0 {
            // Those of earlier runs have the same numbers.
            self.places.fill(NONE);
        }
    }

    /// What is above the lines of this run.
    pub(crate) fn tag(&self) -> u64 {
        self.number << LINE_BITS
    }

    /// Where compiled code finds the first place.
    pub(crate) fn start(&mut self) -> *mut Place {
        if self.places.is_empty() {
            self.places = Box::new([NONE; PLACES]);
        }
        self.places.as_mut_ptr()
    }

    /// A line that is known has lost its place to another.
    #[inline(always)]
    pub(crate) fn forget_place(&mut self, place: usize) {
        if self.in_use {
            self.places[READS.first + place] = NONE;
            self.places[WRITES.first + place % WRITES.places] = NONE;
        }
    }

    /// Lines of a page are elsewhere from now on. They could be read where they were, not written.
    pub(crate) fn moved(&mut self, page: u64, mut lines: u64) {
        if !self.in_use {
            return;
        }
        while lines != 0 {
            let line = page * (PAGE / LINE) as u64 + u64::from(lines.trailing_zeros());
            for table in [READS, STACK_READS] {
                let place = &mut self.places[table.place(line)];
                if place.tag == line | self.number << LINE_BITS {
                    *place = NONE;
                }
            }
            lines &= lines - 1;
        }
    }

    /// Puts the line of `address` into a table, if its page's slot opens it for that.
    pub(crate) fn put(&mut self, address: u64, slot: &Slot, table: Table) {
        let open = if table == WRITES || table == STACK_WRITES { slot.writable } else { slot.readable };
        if !self.places.is_empty() && slot.page == address >> 12 && open >> ((address & 0xfff) as usize / LINE) & 1 != 0
        {
            self.in_use = true;
            let line = address / LINE as u64;
            let distance = slot.bytes.address().wrapping_sub(slot.page << 12);
            self.places[table.place(line)] = Place { tag: line | self.tag(), distance };
        }
    }
}
