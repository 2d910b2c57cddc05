//! A decoded instruction: a function and its operands.

use crate::exit::Step;
use crate::machine::Machine;
use crate::native::StubId;
use crate::operand::{Address, RBP, RSP, ZERO};
use crate::system::unsupported;

/// Executes one instruction. It either completes, or changes nothing that could be seen (apart from completed repetitions of a
/// string instruction) and returns [`Exit::Stop`](crate::exit::Exit::Stop).
pub(crate) type Handler = fn(&mut Machine<'_>, &Op) -> Step;

/// What an instruction does with its operand in memory. That of `lea` is not used; the stack of `push` and `call` is no operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryUse(u8);

impl MemoryUse {
    const LOADS: u8 = 1;
    const STORES: u8 = 2;
    /// Code alone does not tell where it is: a constant distance from `rsp` or `rbp` is another thing.
    const ELSEWHERE: u8 = 4;

    pub(crate) fn new(loads: bool, stores: bool, address: &Address) -> Self {
        let by_stack = matches!(address.base, RSP | RBP) && address.index == ZERO;
        let bit = |on: bool, bit: u8| if on { bit } else { 0 };
        Self(bit(loads, Self::LOADS) | bit(stores, Self::STORES) | bit((loads || stores) && !by_stack, Self::ELSEWHERE))
    }

    #[inline(always)]
    pub(crate) fn none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn loads(self) -> bool {
        self.0 & Self::LOADS != 0
    }

    #[inline(always)]
    pub(crate) fn stores(self) -> bool {
        self.0 & Self::STORES != 0
    }

    #[inline(always)]
    pub(crate) fn elsewhere(self) -> bool {
        self.0 & Self::ELSEWHERE != 0
    }
}

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
    /// What it does with its operand in memory.
    pub(crate) memory: MemoryUse,
    /// Bytes of that operand, 1 to 64: of larger ones, which save registers, the first.
    pub(crate) width: u8,
}

impl Op {
    /// Nothing is known of it but its address.
    pub(crate) fn blank(ip: u64) -> Self {
        Self {
            run: unsupported,
            imm: 0,
            address: Address::NONE,
            ip,
            dst: 0,
            src: 0,
            extra: 0,
            length: 1,
            stub: StubId::NONE,
            memory: MemoryUse::default(),
            width: 1,
        }
    }

    /// Address of the instruction after this one.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.ip.wrapping_add(u64::from(self.length))
    }
}
