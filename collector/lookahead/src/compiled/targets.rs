//! Where compiled blocks are to which branches lead whose targets the code does not say: a table by address.

const PLACES: usize = 512;
const NO_ADDRESS: u64 = u64::MAX;

/// A compiled block.
#[derive(Clone, Copy)]
#[repr(C)]
struct Target {
    /// Address of its first instruction.
    start: u64,
    /// Where its code is.
    code: u64,
}

const NONE: Target = Target { start: NO_ADDRESS, code: 0 };

/// Of each place the block that was compiled last, or that a branch led to and did not find.
pub(crate) struct Targets(Box<[Target; PLACES]>);

impl Default for Targets {
    fn default() -> Self {
        Self(Box::new([NONE; PLACES]))
    }
}

impl Targets {
    /// So many bits of an address are not folded onto others to choose its place.
    pub(super) const FOLDED: u8 = 11;
    pub(super) const PLACES: usize = PLACES;

    /// Others may go on to the block that begins at `start`, whose code is at `code`.
    #[inline(always)]
    pub(crate) fn put(&mut self, start: u64, code: u64) {
        self.0[(start ^ start >> Self::FOLDED) as usize % PLACES] = Target { start, code };
    }

    /// Nobody goes on to any block.
    pub(crate) fn clear(&mut self) {
        self.0.fill(NONE);
    }

    /// Where compiled code finds the first place.
    pub(crate) fn first(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}
