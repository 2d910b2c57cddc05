//! A decoded instruction: a function and its operands.

use crate::machine::Machine;
use crate::native::StubId;

/// What an instruction does to control flow, other than falling through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A branch was taken, to [`Machine::target`].
    Taken(crate::BranchKind),
    /// A conditional branch was not taken.
    NotTaken,
    /// The instruction cannot be executed for the reason in [`Machine::stop`]; the state is the one in front of it.
    Stop,
}

pub(crate) type Step = Result<(), Exit>;

/// Executes one instruction. It either completes, or changes nothing that could be seen (apart from completed repetitions of a
/// string instruction) and returns [`Exit::Stop`].
pub(crate) type Handler = fn(&mut Machine<'_>, &Op) -> Step;

/// One pre-decoded instruction.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    pub(crate) run: Handler,
    /// Immediate operand, sign-extended; or the target of a direct branch.
    pub(crate) imm: u64,
    pub(crate) address: Address,
    /// Address of the instruction.
    pub(crate) ip: u64,
    /// Register operands: numbers for [`Machine::reg`].
    pub(crate) dst: u8,
    pub(crate) src: u8,
    /// Further parameters, as the handler has it.
    pub(crate) extra: u8,
    pub(crate) length: u8,
    pub(crate) stub: StubId,
    /// Its operand in memory is read, and written.
    pub(crate) loads: bool,
    pub(crate) stores: bool,
    /// Bytes of that operand, 1 to 64: of larger ones, which save registers, the first.
    pub(crate) width: u8,
}

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

impl Op {
    /// Address of the instruction behind this one.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.ip.wrapping_add(u64::from(self.length))
    }
}
