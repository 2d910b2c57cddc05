//! Writes stubs: one instruction between loads and stores of the registers it uses.

pub(crate) mod code;

use std::mem::offset_of;

use iced_x86::{
    Code as C, Encoder, EncodingKind, Instruction, MemoryOperand, OpAccess, OpKind, Register, UsedRegister,
};

use crate::context::Context;
use crate::features::vector_bytes;
use crate::registers::VectorState;
use code::{Code, Traits};

/// An instruction with its registers, as a stub can be made of it.
pub(crate) struct Plan<'r> {
    /// The instruction, already checked to be harmless.
    pub(crate) instruction: Instruction,
    pub(crate) used: &'r [UsedRegister],
    pub(crate) traits: Traits,
}

/// Registers that may hold the context's address: any that needs no REX prefix, so that `ah` can stay an operand.
const CANDIDATES: [Register; 7] =
    [Register::RDI, Register::RSI, Register::RCX, Register::RDX, Register::RAX, Register::RBX, Register::RBP];
const SAVED: [Register; 6] = [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

impl Plan<'_> {
    /// Puts the memory operand into the context, rsp out of the way, and encodes. The key is the same for instructions that can
    /// share a stub. Returns the register that holds the context's address, too.
    pub(crate) fn normalise(&mut self) -> Option<([u8; 16], Register)> {
        let free = |register: &Register| !self.used.iter().any(|u| u.register().full_register() == *register);
        let mut candidates = CANDIDATES.iter().copied().filter(free);
        let state = candidates.next()?;
        let stack = candidates.next()?;
        let mut replaced = 0;
        for operand in 0..self.instruction.op_count() {
            match self.instruction.op_kind(operand) {
                OpKind::Memory => {
                    self.instruction.set_memory_base(state);
                    self.instruction.set_memory_index(Register::None);
                    self.instruction.set_memory_index_scale(1);
                    self.instruction.set_memory_displ_size(8);
                    self.instruction.set_memory_displacement64(offset_of!(Context, scratch) as u64);
                    self.instruction.set_segment_prefix(Register::None);
                }
                OpKind::Register => {
                    let register = self.instruction.op_register(operand);
                    if register.full_register() == Register::RSP {
                        let same_size = match register {
                            Register::RSP => stack,
                            Register::ESP => stack.full_register32(),
                            _ => return None,
                        };
                        self.instruction.set_op_register(operand, same_size);
                        replaced = stack.number() as u8 + 1;
                    }
                }
                _ => {}
            }
        }
        self.instruction.set_has_lock_prefix(false);
        self.instruction.set_has_xacquire_prefix(false);
        self.instruction.set_has_xrelease_prefix(false);
        let mut encoder = Encoder::new(64);
        encoder.encode(&self.instruction, 0).ok()?;
        let bytes = encoder.take_buffer();
        let mut key = [0; 16];
        key.get_mut(..bytes.len().min(15))?.copy_from_slice(bytes.get(..bytes.len().min(15))?);
        key[15] = replaced;
        Some((key, state))
    }

    /// The whole stub; `normalise` has to have been called.
    pub(crate) fn write(&self, key: &[u8; 16], state: Register) -> Option<Code> {
        let stack_stand_in = CANDIDATES.iter().copied().find(|r| key[15] == r.number() as u8 + 1 && key[15] != 0);
        let mut registers = Used::of(self.used, stack_stand_in)?;
        registers.pushed.extend(
            SAVED.iter().filter(|&&saved| saved == state || registers.general.iter().any(|&(r, ..)| r == saved)),
        );
        let mut writer = Writer { encoder: Encoder::new(64), state };
        writer.stub(&self.instruction, &registers, self.traits)?;
        Some(Code::new(writer.encoder.take_buffer()))
    }
}

/// The registers of an instruction by unit; the flag says whether they are stored afterwards.
#[derive(Default)]
struct Used {
    /// Register in the stub, its number in the context, written.
    general: Vec<(Register, usize, bool)>,
    vector: Vec<(Register, bool)>,
    mask: Vec<(Register, bool)>,
    pushed: Vec<Register>,
}

impl Used {
    fn of(used: &[UsedRegister], stack_stand_in: Option<Register>) -> Option<Self> {
        let mut all = Self::default();
        for one in used {
            let written = !matches!(one.access(), OpAccess::Read | OpAccess::CondRead);
            let register = one.register().full_register();
            if register.is_gpr64() {
                let stands_in = if register == Register::RSP { stack_stand_in? } else { register };
                match all.general.iter_mut().find(|(r, ..)| *r == stands_in) {
                    Some((.., w)) => *w |= written,
                    None => all.general.push((stands_in, register.number(), written)),
                }
            } else if register.is_vector_register() {
                match all.vector.iter_mut().find(|(r, _)| *r == register) {
                    Some((_, w)) => *w |= written,
                    None => all.vector.push((register, written)),
                }
            } else if register.is_k() {
                match all.mask.iter_mut().find(|(r, _)| *r == register) {
                    Some((_, w)) => *w |= written,
                    None => all.mask.push((register, written)),
                }
            } else if register.is_segment_register() || register.is_st() || register.is_mm() {
                // Segments belong to the operand that was replaced; x87 is saved as a whole.
            } else {
                return None;
            }
        }
        Some(all)
    }
}

struct Writer {
    encoder: Encoder,
    state: Register,
}

impl Writer {
    fn stub(&mut self, instruction: &Instruction, used: &Used, traits: Traits) -> Option<()> {
        const MXCSR: usize = offset_of!(Context, vector) + offset_of!(VectorState, mxcsr);
        const X87: usize = offset_of!(Context, vector) + offset_of!(VectorState, x87);
        const HOST: usize = offset_of!(Context, host_mxcsr);
        const FLAGS: usize = offset_of!(Context, flags);
        let rounding = traits.float || traits.x87;
        for &register in &used.pushed {
            self.put(Instruction::with1(C::Push_r64, register))?;
        }
        if self.state != Register::RDI {
            self.put(Instruction::with2(C::Mov_r64_rm64, self.state, Register::RDI))?;
        }
        if traits.x87 {
            self.put(Instruction::with1(C::Fxrstor64_m512byte, self.at(X87)))?;
        }
        // Instructions of SSE keep what is above the low 16 bytes, and wait for it: on Intel CPUs for some 190 ns if it is in use.
        let bytes = if instruction.encoding() == EncodingKind::Legacy { 16 } else { vector_bytes() };
        for &(register, _) in &used.vector {
            self.vector(register, bytes, false)?;
        }
        for &(register, _) in &used.mask {
            let place = self.at(mask_place(register));
            let code = if vector_bytes() == 64 { C::VEX_Kmovq_kr_km64 } else { C::VEX_Kmovw_kr_km16 };
            self.put(Instruction::with2(code, register, place))?;
        }
        if rounding {
            self.put(Instruction::with1(C::Ldmxcsr_m32, self.at(MXCSR)))?;
        }
        if traits.takes_flags {
            self.put(Instruction::with1(C::Push_rm64, self.at(FLAGS)))?;
            self.put(Ok(Instruction::with(C::Popfq)))?;
        }
        for &(register, number, _) in &used.general {
            self.put(Instruction::with2(C::Mov_r64_rm64, register, self.at(Context::register(number))))?;
        }
        self.put(Ok(*instruction))?;
        if traits.gives_flags {
            self.put(Ok(Instruction::with(C::Pushfq)))?;
            self.put(Instruction::with1(C::Pop_rm64, self.at(FLAGS)))?;
        }
        for &(register, number, _) in used.general.iter().filter(|(.., written)| *written) {
            self.put(Instruction::with2(C::Mov_rm64_r64, self.at(Context::register(number)), register))?;
        }
        for &(register, _) in used.mask.iter().filter(|(_, written)| *written) {
            let place = self.at(mask_place(register));
            let code = if vector_bytes() == 64 { C::VEX_Kmovq_m64_kr } else { C::VEX_Kmovw_m16_kr };
            self.put(Instruction::with2(code, place, register))?;
        }
        for &(register, _) in used.vector.iter().filter(|(_, written)| *written) {
            self.vector(register, bytes, true)?;
        }
        if rounding {
            self.put(Instruction::with1(C::Stmxcsr_m32, self.at(MXCSR)))?;
        }
        if traits.x87 {
            self.put(Instruction::with1(C::Fxsave64_m512byte, self.at(X87)))?;
            self.put(Ok(Instruction::with(C::Fninit)))?;
        }
        if rounding {
            self.put(Instruction::with1(C::Ldmxcsr_m32, self.at(HOST)))?;
        }
        if !used.vector.is_empty() && bytes > 16 {
            self.put(Ok(Instruction::with(C::VEX_Vzeroupper)))?;
        }
        for &register in used.pushed.iter().rev() {
            self.put(Instruction::with1(C::Pop_r64, register))?;
        }
        self.put(Ok(Instruction::with(C::Retnq)))
    }

    fn at(&self, offset: usize) -> MemoryOperand {
        MemoryOperand::with_base_displ_size(self.state, offset as i64, 8)
    }

    fn put(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) -> Option<()> {
        self.encoder.encode(&instruction.ok()?, 0).ok().map(|_| ())
    }

    /// Loads or stores the low `bytes` of a vector register: 16, 32 or 64.
    fn vector(&mut self, register: Register, bytes: usize, store: bool) -> Option<()> {
        let number = register.number();
        let place = self.at(offset_of!(Context, vector) + offset_of!(VectorState, zmm) + 64 * number);
        let (load, save, register) = match bytes {
            64 => {
                (C::EVEX_Vmovdqu64_zmm_k1z_zmmm512, C::EVEX_Vmovdqu64_zmmm512_k1z_zmm, Register::ZMM0 + number as u32)
            }
            32 if number < 16 => {
                (C::VEX_Vmovdqu_ymm_ymmm256, C::VEX_Vmovdqu_ymmm256_ymm, Register::YMM0 + number as u32)
            }
            16 if number < 16 => (C::Movdqu_xmm_xmmm128, C::Movdqu_xmmm128_xmm, Register::XMM0 + number as u32),
            _ => return None,
        };
        self.put(if store {
            Instruction::with2(save, place, register)
        } else {
            Instruction::with2(load, register, place)
        })
    }
}

fn mask_place(register: Register) -> usize {
    offset_of!(Context, vector) + offset_of!(VectorState, mask) + 8 * register.number()
}
