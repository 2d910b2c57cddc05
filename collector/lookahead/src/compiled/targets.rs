//! Where compiled blocks are that others go on to: a table by address, looked at by the blocks themselves.

const PLACES: usize = 1024;
const FOLDED: u8 = 11;
const NO_ADDRESS: u64 = u64::MAX;

/// A compiled block.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Target {
    /// Address of its first instruction.
    pub(crate) start: u64,
    /// Where its code is entered from another block.
    pub(crate) code: u64,
    /// The burst in which its bytes were last seen in memory.
    pub(crate) seen: u32,
    /// Instructions it has.
    pub(crate) count: u32,
}

const NONE: Target = Target { start: NO_ADDRESS, code: 0, seen: 0, count: 0 };

/// The last block of each place that the burst's loop has run.
pub(crate) struct Targets(Box<[Target; PLACES]>);

impl Default for Targets {
    fn default() -> Self {
        Self(Box::new([NONE; PLACES]))
    }
}

impl Targets {
    /// Bits of an address that are folded onto the lowest for its place, and how many places there are.
    pub(super) const FOLDED: u8 = FOLDED;
    pub(super) const PLACES: usize = PLACES;

    pub(super) fn place(start: u64) -> usize {
        (start ^ start >> FOLDED) as usize % PLACES
    }

    /// Others may go on to this block.
    #[inline(always)]
    pub(crate) fn put(&mut self, target: Target) {
        self.0[Self::place(target.start)] = target;
    }

    /// Nobody goes on to any block.
    pub(crate) fn clear(&mut self) {
        self.0.fill(NONE);
    }

    /// Where compiled code finds the first place.
    pub(crate) fn first(&mut self) -> *mut Target {
        self.0.as_mut_ptr()
    }
}
