//! Where operands are: numbers of registers, and addresses.

/// How to compute an address: `base + (index << scale) + displacement`, cut to 32 bits if `short`, plus the segment's base.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) displacement: u64,
    pub(crate) base: u8,
    pub(crate) index: u8,
    pub(crate) scale: u8,
    pub(crate) segment: u8,
    pub(crate) short: bool,
}

impl Address {
    pub(crate) const NONE: Self =
        Self { displacement: 0, base: ZERO, index: ZERO, scale: 0, segment: ZERO, short: false };
}

/// Number of the register that is always 0.
pub(crate) const ZERO: u8 = 16;
/// Number of the register that holds the base of fs.
pub(crate) const FS: u8 = 17;
/// Number of the register that holds the base of gs.
pub(crate) const GS: u8 = 18;
/// Added to the number of `ah`, `ch`, `dh`, `bh`'s register.
pub(crate) const HIGH: u8 = 32;

pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const RDX: u8 = 2;
pub(crate) const RSP: u8 = 4;
pub(crate) const RBP: u8 = 5;
pub(crate) const RSI: u8 = 6;
pub(crate) const RDI: u8 = 7;
