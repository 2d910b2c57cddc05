//! What the core needs to know of an instruction.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use instructions::{Attributes, MemoryAccess};

use crate::core::{Core, Unit};
use crate::kind::{Kind, crosses, moves_vector};

/// A set of registers: general ones from bit 0, flags at 16, vectors at 32, masks at 64, x87 at 72, MMX at 80.
pub(crate) type RegisterSet = u128;

/// As many as a [`RegisterSet`] can hold.
pub(crate) const REGISTERS: usize = 128;

/// Bytes of a line of the caches.
const LINE_BYTES: f64 = 64.0;
/// Bit of the flags.
pub(crate) const FLAGS: u32 = 16;
const VECTORS: u32 = 32;
/// The number that instructions encode for `rsp`.
pub(crate) const RSP: u8 = 4;
/// General registers, numbered as instructions encode them.
pub(crate) const GENERAL: usize = 16;

/// What it does to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// On to the next instruction.
    Next,
    /// To a target or on.
    Conditional,
    /// The target is in the instruction, or on the stack of returns.
    Known,
    /// The target is in a register or in memory.
    Indirect,
}

/// An operand in memory: base + index x scale + displacement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operand {
    pub(crate) base: Option<u8>,
    pub(crate) index: Option<u8>,
    pub(crate) scale: i64,
    pub(crate) displacement: i64,
}

impl Operand {
    /// Whether the other has the same registers and displacement; that of the stack pointer is known to the core.
    pub(crate) fn is_place_of(&self, other: &Operand) -> bool {
        (self.base, self.index, self.scale) == (other.base, other.index, other.scale)
            && (self.displacement == other.displacement || self.base == Some(RSP))
    }
}

/// What happens to the value of a general register, as far as it can be said without knowing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbolic {
    /// Results are new values.
    New,
    /// The first register becomes the second and a constant.
    Sum(u8, u8, i64),
    /// `push`, `pop`, `call`, `ret`: the stack pointer moves by so much, which costs nothing.
    Stack(i64),
}

/// An instruction as a core sees it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its address.
    pub ip: u64,
    /// Address of the instruction after it.
    pub next: u64,
    /// Registers read, but for those of the address.
    pub(crate) sources: RegisterSet,
    /// Registers of the address.
    pub(crate) address: RegisterSet,
    pub(crate) results: RegisterSet,
    /// From operands to results, cycles; what a load takes is not part of it.
    pub(crate) latency: f64,
    pub(crate) unit: Unit,
    /// Cycles for which its unit can start nothing else.
    pub(crate) occupies: f64,
    /// Whether it adds floating point numbers.
    pub(crate) is_sum: bool,
    /// What it reads from memory,
    pub load: Option<Operand>,
    /// and what it writes there.
    pub store: Option<Operand>,
    /// Lines that it writes past the caches: `movntdq` and the like, half a line with 32 bytes.
    pub(crate) streamed: f64,
    /// What it does to the path.
    pub flow: Flow,
    pub(crate) symbolic: Symbolic,
}

impl Operation {
    /// A decoded instruction, on a core.
    pub fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory, core: &Core) -> Self {
        let attributes = Attributes::of(instruction);
        let clears = is_zero_idiom(instruction);
        let symbolic = symbolic(instruction, &attributes);
        let moves_stack = matches!(symbolic, Symbolic::Stack(_));
        let info = factory.info(instruction);
        let (mut sources, mut results, mut address) = (0, 0, 0);
        for used in info.used_registers() {
            let Some(bit) = number(used.register()).map(|number| 1u128 << number) else { continue };
            if bit == 1 << RSP && moves_stack {
                continue;
            }
            let (reads, writes) = access(used.access());
            // What is written under a condition only depends on what was there.
            let keeps = used.access() == OpAccess::CondWrite;
            sources |= if (reads || keeps) && !clears { bit } else { 0 };
            results |= if writes { bit } else { 0 };
        }
        sources |= if instruction.rflags_read() != 0 { 1 << FLAGS } else { 0 };
        results |= if instruction.rflags_modified() != 0 { 1 << FLAGS } else { 0 };
        let (mut load, mut store) = (None, None);
        if !matches!(attributes.memory, MemoryAccess::None) {
            for used in info.used_memory() {
                let (reads, writes) = access(used.access());
                let register = |register: Register| number(register).filter(|number| *number < GENERAL as u32);
                let (base, index) = (register(used.base()), register(used.index()));
                let implied = moves_stack && base == Some(u32::from(RSP));
                for number in [base.filter(|_| !implied), index].into_iter().flatten() {
                    address |= 1 << number;
                }
                let as_byte = |number: Option<u32>| number.map(|number| number as u8);
                let displacement = used.displacement() as i64;
                let scale = used.scale() as i64;
                let operand = Operand { base: as_byte(base), index: as_byte(index), scale, displacement };
                load = if reads { load.or(Some(operand)) } else { load };
                store = if writes { Some(operand) } else { store };
            }
        }
        let kind = Kind::of(instruction, &attributes);
        let (time, unit) = core.executes(kind);
        let takes_no_time =
            clears || moves_stack || is_copy(instruction, &attributes) || is_plain_move(instruction, &attributes);
        Operation {
            ip: instruction.ip(),
            next: instruction.next_ip(),
            sources: sources & !address,
            address,
            results,
            latency: if takes_no_time { 0.0 } else { time.latency },
            unit,
            occupies: time.occupies,
            is_sum: kind == Kind::FloatAdd,
            load,
            store,
            streamed: streamed(instruction),
            flow: flow(instruction),
            symbolic,
        }
    }

    /// Whether it loads into a vector register, which takes longer.
    pub(crate) fn loads_vector(&self) -> bool {
        self.results >> VECTORS & 0xffff_ffff != 0
    }
}

fn number(register: Register) -> Option<u32> {
    let full = register.full_register();
    let from = |first: Register, place: u32| place + (full as u32 - first as u32);
    Some(match full {
        full if full.is_gpr() => from(Register::RAX, 0),
        full if full.is_zmm() => from(Register::ZMM0, VECTORS),
        full if full.is_k() => from(Register::K0, 64),
        full if full.is_st() => from(Register::ST0, 72),
        full if full.is_mm() => from(Register::MM0, 80),
        _ => return None,
    })
}

/// Whether it reads, and whether it writes.
fn access(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

fn flow(instruction: &Instruction) -> Flow {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Flow::Conditional,
        FlowControl::IndirectBranch | FlowControl::IndirectCall => Flow::Indirect,
        FlowControl::UnconditionalBranch | FlowControl::Call | FlowControl::Return => Flow::Known,
        _ => Flow::Next,
    }
}

/// Lines that it writes past the caches.
fn streamed(instruction: &Instruction) -> f64 {
    use Mnemonic::{
        Movdir64b, Movdiri, Movntdq, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss, Vmovntdq, Vmovntpd, Vmovntps,
    };
    match instruction.mnemonic() {
        Movdiri | Movntdq | Movnti | Movntpd | Movntps | Movntq | Movntsd | Movntss | Vmovntdq | Vmovntpd
        | Vmovntps => instruction.memory_size().size() as f64 / LINE_BYTES,
        Movdir64b => 1.0,
        _ => 0.0,
    }
}

/// `xor r, r` and its like, which wait for nothing and are not executed.
fn is_zero_idiom(instruction: &Instruction) -> bool {
    use Mnemonic::{Pxor, Sub, Vpxor, Vxorpd, Vxorps, Xor, Xorpd, Xorps};
    let last = instruction.op_count().wrapping_sub(1);
    matches!(instruction.mnemonic(), Xor | Sub | Pxor | Xorps | Xorpd | Vpxor | Vxorps | Vxorpd)
        && instruction.op_kind(last) == OpKind::Register
        && instruction.op_kind(last - 1) == OpKind::Register
        && instruction.op_register(last) == instruction.op_register(last - 1)
}

/// A load or store that does nothing else: its time is that of the access.
fn is_plain_move(instruction: &Instruction, attributes: &Attributes) -> bool {
    use Mnemonic::{Mov, Movsx, Movsxd, Movzx};
    let in_memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
    let moves = matches!(instruction.mnemonic(), Mov | Movzx | Movsx | Movsxd) || moves_vector(instruction, attributes);
    moves && (in_memory(0) || in_memory(1))
}

/// A copy of a whole register, done by renaming.
fn is_copy(instruction: &Instruction, attributes: &Attributes) -> bool {
    let is_register = |operand| instruction.op_kind(operand) == OpKind::Register;
    let to = instruction.op0_register();
    let is_whole = match instruction.mnemonic() {
        Mnemonic::Mov => to.is_gpr() && to.size() >= 4,
        _ => moves_vector(instruction, attributes) && !crosses(instruction),
    };
    is_whole && is_register(0) && is_register(1)
}

fn symbolic(instruction: &Instruction, attributes: &Attributes) -> Symbolic {
    let general =
        |register: Register| number(register).filter(|number| *number < GENERAL as u32).map(|number| number as u8);
    let is_register = |operand| instruction.op_kind(operand) == OpKind::Register;
    let of_itself = |by: i64| match general(instruction.op0_register()) {
        Some(register) if is_register(0) && instruction.op0_register().size() >= 4 => {
            Symbolic::Sum(register, register, by)
        }
        _ => Symbolic::New,
    };
    match instruction.mnemonic() {
        Mnemonic::Leave | Mnemonic::Enter => Symbolic::New,
        _ if attributes.stack => Symbolic::Stack(i64::from(instruction.stack_pointer_increment())),
        Mnemonic::Mov if is_copy(instruction, attributes) => {
            match (general(instruction.op0_register()), general(instruction.op1_register())) {
                (Some(to), Some(from)) => Symbolic::Sum(to, from, 0),
                _ => Symbolic::New,
            }
        }
        Mnemonic::Add if !is_register(1) && !instruction.op1_kind().eq(&OpKind::Memory) => {
            of_itself(instruction.immediate(1) as i64)
        }
        Mnemonic::Sub if !is_register(1) && !instruction.op1_kind().eq(&OpKind::Memory) => {
            of_itself((instruction.immediate(1) as i64).wrapping_neg())
        }
        Mnemonic::Inc => of_itself(1),
        Mnemonic::Dec => of_itself(-1),
        Mnemonic::Lea if instruction.memory_index() == Register::None => {
            match (general(instruction.op0_register()), general(instruction.memory_base())) {
                (Some(to), Some(from)) => Symbolic::Sum(to, from, instruction.memory_displacement64() as i64),
                _ => Symbolic::New,
            }
        }
        _ => Symbolic::New,
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;
    use crate::Microarchitecture;

    fn operation(bytes: &[u8]) -> Operation {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        Operation::of(&instruction, &mut InstructionInfoFactory::new(), &Microarchitecture::Zen5.core())
    }

    #[test]
    fn a_load_waits_for_its_address_and_nothing_else() {
        let load = operation(&[0x48, 0x8b, 0x44, 0xcb, 0x08]); // mov rax, [rbx + rcx * 8 + 8]
        assert_eq!((load.address, load.sources, load.results), (1 << 3 | 1 << 1, 0, 1));
        assert!(load.store.is_none() && load.latency == 0.0);
        assert!(matches!(load.load, Some(Operand { base: Some(3), index: Some(1), scale: 8, displacement: 8 })));
    }

    #[test]
    fn the_stack_pointer_is_no_dependence() {
        let push = operation(&[0x53]); // push rbx
        assert_eq!((push.sources, push.address, push.results, push.symbolic), (1 << 3, 0, 0, Symbolic::Stack(-8)));
        assert!(push.load.is_none());
        assert!(matches!(push.store, Some(Operand { base: Some(RSP), index: None, displacement: -8, .. })));
        assert_eq!(operation(&[0xc3]).symbolic, Symbolic::Stack(8));
    }

    #[test]
    fn loads_and_stores_have_operands_of_their_own() {
        let call = operation(&[0xff, 0x10]); // call [rax]
        assert!(matches!(call.load, Some(Operand { base: Some(0), .. })), "{call:?}");
        assert!(matches!(call.store, Some(Operand { base: Some(RSP), displacement: -8, .. })), "{call:?}");
        let copy = operation(&[0x48, 0xa5]); // movsq
        assert!(matches!(
            (copy.load, copy.store),
            (Some(Operand { base: Some(6), .. }), Some(Operand { base: Some(7), .. }))
        ));
    }

    #[test]
    fn sums_with_constants_are_known() {
        assert_eq!(operation(&[0x48, 0x83, 0xc0, 0x10]).symbolic, Symbolic::Sum(0, 0, 16)); // add rax, 16
        assert_eq!(operation(&[0x48, 0x83, 0xe8, 0x10]).symbolic, Symbolic::Sum(0, 0, -16)); // sub rax, 16
        assert_eq!(operation(&[0x48, 0x8d, 0x43, 0xf8]).symbolic, Symbolic::Sum(0, 3, -8)); // lea rax, [rbx - 8]
        assert_eq!(operation(&[0x48, 0x89, 0xd8]).symbolic, Symbolic::Sum(0, 3, 0)); // mov rax, rbx
        assert_eq!(operation(&[0x48, 0x01, 0xd8]).symbolic, Symbolic::New); // add rax, rbx
        assert_eq!(operation(&[0x48, 0x83, 0x00, 0x10]).symbolic, Symbolic::New); // add qword [rax], 16
    }

    #[test]
    fn cleared_registers_wait_for_nothing() {
        let clear = operation(&[0x31, 0xc0]); // xor eax, eax
        assert_eq!((clear.sources, clear.latency), (0, 0.0));
        assert_eq!(clear.results & 1, 1);
    }

    #[test]
    fn vzeroupper_takes_no_time() {
        assert_eq!(operation(&[0xc5, 0xf8, 0x77]).latency, 0.0);
        assert!(operation(&[0x0f, 0xa2]).latency > 20.0); // cpuid
    }

    #[test]
    fn divisions_take_long() {
        assert_eq!(operation(&[0x48, 0xf7, 0xf3]).unit, Unit::Divide); // div rbx
        assert_eq!(operation(&[0x48, 0xf7, 0x33]).latency, operation(&[0x48, 0xf7, 0xf3]).latency); // div qword [rbx]
        assert_eq!(operation(&[0xf2, 0x0f, 0x5e, 0xc1]).unit, Unit::VectorDivide); // divsd xmm0, xmm1
        assert_eq!(operation(&[0xf2, 0x0f, 0x59, 0xc1]).latency, 3.0); // mulsd xmm0, xmm1
    }

    #[test]
    fn moves_of_vectors_take_no_unit() {
        assert_eq!(operation(&[0x66, 0x0f, 0x6f, 0xc1]).latency, 0.0); // movdqa xmm0, xmm1
        assert_eq!(operation(&[0x66, 0x0f, 0x6f, 0x03]).latency, 0.0); // movdqa xmm0, [rbx]
        assert_eq!(operation(&[0x0f, 0x16, 0x03]).unit, Unit::Vector); // movhps xmm0, [rbx]
        assert_eq!(operation(&[0x66, 0x0f, 0x6e, 0xc0]).latency, 4.0); // movd xmm0, eax
        assert_eq!(operation(&[0x66, 0x0f, 0xfe, 0xc1]).latency, 2.0); // paddd xmm0, xmm1
    }

    #[test]
    fn units_have_parts() {
        let multiply = operation(&[0x66, 0x0f, 0xf5, 0xc1]).unit; // pmaddwd xmm0, xmm1
        assert_eq!((multiply, multiply.is_part_of()), (Unit::VectorMultiply, Some(Unit::Vector)));
        let shift = operation(&[0x66, 0x0f, 0x71, 0xe0, 0x08]).unit; // psraw xmm0, 8
        assert_eq!((shift, shift.is_part_of()), (Unit::VectorShift, Some(Unit::Vector)));
    }
}
