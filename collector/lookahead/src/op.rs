//! A decoded instruction: a function and its operands.

use crate::exit::Step;
use crate::machine::Machine;
use crate::native::StubId;
use crate::operand::Address;

/// Executes one instruction. It either completes, or changes nothing that could be seen (apart from completed repetitions of a
/// string instruction) and returns [`Exit::Stop`](crate::exit::Exit::Stop).
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

impl Op {
    /// Address of the instruction after this one.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.ip.wrapping_add(u64::from(self.length))
    }
}
