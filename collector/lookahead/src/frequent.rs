//! The instructions that most code consists of, decoded without the library.
//!
//! When new code is decoded, the caches hold the program's memory, not the decoder: the less of its own code and tables it needs, the
//! better. What is not here, or has a prefix other than REX, is left to the library, and where
//! both can do it they give the same (SDM volume 2, chapter 2 and appendix A).

use crate::form::{Form, IMM, MEM, REG};
use crate::op::{Handler, MemoryUse, Op};
use crate::operand::{Address, HIGH, RAX, RCX, ZERO};
use crate::{arith, control, moves, shift, stack, system};

/// Bits of a REX prefix.
const REX_W: u8 = 8;
const REX_R: u8 = 4;
const REX_X: u8 = 2;
const REX_B: u8 = 1;

/// What one of these instructions is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the number that [`arith::by_number`] knows.
    Arithmetic(u8),
    /// By the number that [`arith::unary`] knows.
    Unary(u8),
    /// By the number that [`shift::by_number`] knows.
    Shift(u8),
    Move,
    /// Of so many bytes.
    Extend {
        from: usize,
        signed: bool,
    },
    Lea,
    Push,
    Pop,
    /// `cwde`, `cdqe`
    Widen,
    /// `cdq`, `cqo`
    Spread,
    Nothing,
    /// By the number of the condition, as are the two after it.
    JumpIf(u8),
    SetIf(u8),
    MoveIf(u8),
    Jump,
    Call,
    IndirectJump,
    IndirectCall,
    Return,
}

impl Kind {
    /// Whether it ends a block.
    pub(crate) fn ends(self) -> bool {
        use Kind::{Call, IndirectCall, IndirectJump, Jump, JumpIf, Return};
        matches!(self, JumpIf(_) | Jump | Call | IndirectJump | IndirectCall | Return)
    }
}

/// An instruction that was decoded.
pub(crate) struct Frequent {
    pub(crate) op: Op,
    pub(crate) kind: Kind,
    /// Its operands, if it has some.
    pub(crate) form: Form,
}

/// Where an instruction has no operands that can be told apart.
const NO_FORM: Form = Form { size: 8, dst: REG, src: REG };

/// Decodes the instruction at `ip`, with which `bytes` begin, if it is one of these and all of it is there.
#[inline(never)]
pub(crate) fn decode(bytes: &[u8], ip: u64) -> Option<Frequent> {
    use Kind::{Arithmetic, Extend, Shift, Unary};
    let mut it = Decoding { bytes, at: 0, rex: 0, is_relative: false, op: Op::blank(ip) };
    let mut opcode = it.byte()?;
    if opcode & 0xf0 == 0x40 {
        it.rex = opcode;
        opcode = it.byte()?;
    }
    let word = if it.rex & REX_W != 0 { 8 } else { 4 };
    let size = if opcode & 1 == 0 { 1 } else { word };
    match opcode {
        0x00..=0x3f if opcode & 7 < 6 => {
            let form = match opcode & 7 {
                0 | 1 => it.rm_reg(size)?,
                2 | 3 => it.reg_rm(size, size)?,
                _ => {
                    it.op.dst = RAX;
                    it.immediate(Form { size, dst: REG, src: IMM })?
                }
            };
            let operation = opcode >> 3;
            it.changes(arith::by_number(operation, form), Arithmetic(operation), form, operation != arith::CMP)
        }
        0x50..=0x5f => {
            it.op.dst = it.register(opcode & 7, REX_B, 8);
            let (run, kind) = if opcode < 0x58 {
                (stack::push(NO_FORM), Kind::Push)
            } else {
                (Some(stack::pop::<8> as Handler), Kind::Pop)
            };
            it.done(run, kind, NO_FORM)
        }
        0x63 if word == 8 => {
            let form = it.reg_rm(8, 4)?;
            it.loads(moves::extend_by::<true>(form, 4), Extend { from: 4, signed: true }, form)
        }
        0x68 | 0x6a => {
            it.op.imm = if opcode == 0x68 { it.signed::<4>()? } else { it.signed::<1>()? };
            let form = Form { size: 8, dst: IMM, src: REG };
            it.done(stack::push(form), Kind::Push, form)
        }
        0x70..=0x7f | 0xeb => {
            let distance = it.signed::<1>()?;
            match opcode {
                0xeb => it.branch(Some(control::jump), Kind::Jump, distance),
                _ => it.branch(control::jump_by(opcode & 15), Kind::JumpIf(opcode & 15), distance),
            }
        }
        0x80 | 0x81 | 0x83 => {
            let size = if opcode == 0x80 { 1 } else { word };
            let modrm = it.byte()?;
            let form = it.rm(modrm, size, IMM)?;
            let form = if opcode == 0x83 { it.short_immediate(form)? } else { it.immediate(form)? };
            let operation = modrm >> 3 & 7;
            it.changes(arith::by_number(operation, form), Arithmetic(operation), form, operation != arith::CMP)
        }
        0x84 | 0x85 => {
            let form = it.rm_reg(size)?;
            it.changes(arith::by_number(arith::TEST, form), Arithmetic(arith::TEST), form, false)
        }
        0x88 | 0x89 => {
            let form = it.rm_reg(size)?;
            it.stores(moves::mov(form), Kind::Move, form)
        }
        0x8a | 0x8b => {
            let form = it.reg_rm(size, size)?;
            it.loads(moves::mov(form), Kind::Move, form)
        }
        0x8d => {
            let form = it.reg_rm(word, 1)?;
            if form.src != MEM {
                return None;
            }
            it.done(moves::lea_of(word), Kind::Lea, form)
        }
        0x90 if it.rex == 0 => it.done(Some(system::nothing), Kind::Nothing, NO_FORM),
        0x98 => it.done(moves::widen_to(word), Kind::Widen, Form { size: word, ..NO_FORM }),
        0x99 => it.done(moves::spread_of(word), Kind::Spread, Form { size: word, ..NO_FORM }),
        0xa8 | 0xa9 => {
            it.op.dst = RAX;
            let form = it.immediate(Form { size, dst: REG, src: IMM })?;
            it.done(arith::by_number(arith::TEST, form), Arithmetic(arith::TEST), form)
        }
        0xb0..=0xbf => {
            let size = if opcode < 0xb8 { 1 } else { word };
            it.op.dst = it.register(opcode & 7, REX_B, size);
            it.op.imm = match size {
                1 => it.unsigned::<1>()?,
                4 => it.unsigned::<4>()?,
                _ => it.unsigned::<8>()?,
            };
            let form = Form { size, dst: REG, src: IMM };
            it.done(moves::mov(form), Kind::Move, form)
        }
        0xc0 | 0xc1 | 0xd0 | 0xd1 | 0xd2 | 0xd3 => {
            let modrm = it.byte()?;
            let by_register = opcode & 0xfe == 0xd2;
            let form = it.rm(modrm, size, if by_register { REG } else { IMM })?;
            match opcode {
                0xc0 | 0xc1 => it.op.imm = it.unsigned::<1>()?,
                0xd0 | 0xd1 => it.op.imm = 1,
                _ => it.op.src = RCX,
            }
            let number = modrm >> 3 & 7;
            it.changes(shift::by_number(number, form), Shift(number), form, true)
        }
        0xc3 => it.done(Some(control::ret), Kind::Return, NO_FORM),
        0xc6 | 0xc7 => {
            let modrm = it.byte()?;
            let form = it.rm(modrm, size, IMM)?;
            let form = it.immediate(form)?;
            let run = if modrm >> 3 & 7 == 0 { moves::mov(form) } else { None };
            it.stores(run, Kind::Move, form)
        }
        0xe8 | 0xe9 => {
            let distance = it.signed::<4>()?;
            match opcode {
                0xe8 => it.branch(Some(control::call), Kind::Call, distance),
                _ => it.branch(Some(control::jump), Kind::Jump, distance),
            }
        }
        0xf6 | 0xf7 => {
            let modrm = it.byte()?;
            let number = modrm >> 3 & 7;
            let form = it.rm(modrm, size, if number == 0 { IMM } else { REG })?;
            match number {
                0 => {
                    let form = it.immediate(form)?;
                    it.changes(arith::by_number(arith::TEST, form), Arithmetic(arith::TEST), form, false)
                }
                2 => it.changes(arith::unary::<{ arith::NOT }>(form), Unary(arith::NOT), form, true),
                3 => it.changes(arith::unary::<{ arith::NEG }>(form), Unary(arith::NEG), form, true),
                _ => None,
            }
        }
        0xfe | 0xff => {
            let modrm = it.byte()?;
            match (modrm >> 3 & 7, opcode) {
                (0, _) => {
                    let form = it.rm(modrm, size, REG)?;
                    it.changes(arith::unary::<{ arith::INC }>(form), Unary(arith::INC), form, true)
                }
                (1, _) => {
                    let form = it.rm(modrm, size, REG)?;
                    it.changes(arith::unary::<{ arith::DEC }>(form), Unary(arith::DEC), form, true)
                }
                (number @ (2 | 4), 0xff) => {
                    let form = it.rm(modrm, 8, REG)?;
                    it.uses(form.dst == MEM, false);
                    let kind = if number == 2 { Kind::IndirectCall } else { Kind::IndirectJump };
                    it.done(control::indirect_by(number == 2, form), kind, form)
                }
                (6, 0xff) => {
                    let form = it.rm(modrm, 8, REG)?;
                    it.uses(form.dst == MEM, false);
                    it.done(stack::push(form), Kind::Push, form)
                }
                _ => None,
            }
        }
        0x0f => it.two_bytes(word),
        _ => None,
    }
}

struct Decoding<'b> {
    bytes: &'b [u8],
    at: usize,
    rex: u8,
    /// The operand in memory is at a distance from the next instruction.
    is_relative: bool,
    op: Op,
}

impl Decoding<'_> {
    /// Opcodes that begin with 0f.
    fn two_bytes(mut self, word: usize) -> Option<Frequent> {
        use Kind::{Extend, MoveIf, SetIf};
        let opcode = self.byte()?;
        match opcode {
            0x1f => {
                let modrm = self.byte()?;
                self.place(modrm, word)?;
                // Its operand is not used.
                (self.op.address, self.is_relative) = (Address::NONE, false);
                let run = if modrm >> 3 & 7 == 0 { Some(system::nothing as Handler) } else { None };
                self.done(run, Kind::Nothing, NO_FORM)
            }
            0x40..=0x4f => {
                let form = self.reg_rm(word, word)?;
                self.loads(moves::move_by(opcode & 15, form), MoveIf(opcode & 15), form)
            }
            0x80..=0x8f => {
                let distance = self.signed::<4>()?;
                self.branch(control::jump_by(opcode & 15), Kind::JumpIf(opcode & 15), distance)
            }
            0x90..=0x9f => {
                let modrm = self.byte()?;
                let form = self.rm(modrm, 1, REG)?;
                self.stores(moves::set_by(opcode & 15, form), SetIf(opcode & 15), form)
            }
            0xb6 | 0xb7 | 0xbe | 0xbf => {
                let from = 1 + usize::from(opcode & 1);
                let form = self.reg_rm(word, from)?;
                let signed = opcode >= 0xb8;
                let run =
                    if signed { moves::extend_by::<true>(form, from) } else { moves::extend_by::<false>(form, from) };
                self.loads(run, Extend { from, signed }, form)
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }

    #[inline(always)]
    fn unsigned<const N: usize>(&mut self) -> Option<u64> {
        let bytes = self.bytes.get(self.at..self.at + N)?;
        self.at += N;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    #[inline(always)]
    fn signed<const N: usize>(&mut self) -> Option<u64> {
        let unused = 64 - 8 * N as u32;
        Some(((self.unsigned::<N>()? << unused) as i64 >> unused) as u64)
    }

    /// The number of a register with a bit of the prefix; of bytes, some have another meaning without one.
    fn register(&self, number: u8, extension: u8, size: usize) -> u8 {
        if size == 1 && self.rex == 0 && number >= 4 {
            return (number - 4) | HIGH;
        }
        number | if self.rex & extension != 0 { 8 } else { 0 }
    }

    /// The operand in a register or in memory, which comes first, beside one of kind `src`.
    fn rm(&mut self, modrm: u8, size: usize, src: u8) -> Option<Form> {
        Some(match self.place(modrm, size)? {
            Some(register) => {
                self.op.dst = register;
                Form { size, dst: REG, src }
            }
            None => Form { size, dst: MEM, src },
        })
    }

    /// A register, and one in a register or in memory before it.
    fn rm_reg(&mut self, size: usize) -> Option<Form> {
        let modrm = self.byte()?;
        self.op.src = self.register(modrm >> 3 & 7, REX_R, size);
        self.rm(modrm, size, REG)
    }

    /// A register, and one in a register or in memory of `from` bytes after it.
    fn reg_rm(&mut self, size: usize, from: usize) -> Option<Form> {
        let modrm = self.byte()?;
        self.op.dst = self.register(modrm >> 3 & 7, REX_R, size);
        Some(match self.place(modrm, from)? {
            Some(register) => {
                self.op.src = register;
                Form { size, dst: REG, src: REG }
            }
            None => Form { size, dst: REG, src: MEM },
        })
    }

    /// The register that the byte after the opcode names, or `None` for memory, whose address is the operation's then.
    fn place(&mut self, modrm: u8, size: usize) -> Option<Option<u8>> {
        let (kind, number) = (modrm >> 6, modrm & 7);
        if kind == 3 {
            return Some(Some(self.register(number, REX_B, size)));
        }
        let extended = |number: u8, rex: u8, bit: u8| number | if rex & bit != 0 { 8 } else { 0 };
        let mut address = Address { base: extended(number, self.rex, REX_B), ..Address::NONE };
        let mut is_long = kind == 2;
        if number == 4 {
            let sib = self.byte()?;
            let index = extended(sib >> 3 & 7, self.rex, REX_X);
            address.index = if index == 4 { ZERO } else { index };
            address.scale = sib >> 6;
            address.base = extended(sib & 7, self.rex, REX_B);
            if kind == 0 && sib & 7 == 5 {
                (address.base, is_long) = (ZERO, true);
            }
        } else if kind == 0 && number == 5 {
            (address.base, is_long, self.is_relative) = (ZERO, true, true);
        }
        if is_long {
            address.displacement = self.signed::<4>()?;
        } else if kind == 1 {
            address.displacement = self.signed::<1>()?;
        }
        self.op.address = address;
        self.op.width = size as u8;
        Some(None)
    }

    /// An immediate operand of the other's size; of 8 bytes, the lower half, sign-extended.
    fn immediate(&mut self, form: Form) -> Option<Form> {
        self.op.imm = match form.size {
            1 => self.unsigned::<1>()?,
            4 => self.unsigned::<4>()?,
            _ => self.signed::<4>()?,
        };
        Some(form)
    }

    /// One of a byte, sign-extended.
    fn short_immediate(&mut self, form: Form) -> Option<Form> {
        self.op.imm = self.signed::<1>()?;
        Some(form)
    }

    /// What happens with the operand in memory.
    fn uses(&mut self, loads: bool, stores: bool) {
        self.op.memory = MemoryUse::new(loads, stores, &self.op.address);
    }

    /// It reads its second operand.
    fn loads(mut self, run: Option<Handler>, kind: Kind, form: Form) -> Option<Frequent> {
        self.uses(form.src == MEM, false);
        self.done(run, kind, form)
    }

    /// It writes its first operand.
    fn stores(mut self, run: Option<Handler>, kind: Kind, form: Form) -> Option<Frequent> {
        self.uses(false, form.dst == MEM);
        self.done(run, kind, form)
    }

    /// It reads both operands, and writes the first if `writes`.
    fn changes(mut self, run: Option<Handler>, kind: Kind, form: Form, writes: bool) -> Option<Frequent> {
        self.uses(form.dst == MEM || form.src == MEM, form.dst == MEM && writes);
        self.done(run, kind, form)
    }

    /// It goes so far, or may.
    fn branch(mut self, run: Option<Handler>, kind: Kind, distance: u64) -> Option<Frequent> {
        self.op.imm = self.op.ip.wrapping_add(self.at as u64).wrapping_add(distance);
        self.done(run, kind, NO_FORM)
    }

    fn done(mut self, run: Option<Handler>, kind: Kind, form: Form) -> Option<Frequent> {
        self.op.run = run?;
        self.op.length = self.at as u8;
        if self.is_relative {
            let address = &mut self.op.address;
            address.displacement = address.displacement.wrapping_add(self.op.ip).wrapping_add(self.at as u64);
        }
        Some(Frequent { op: self.op, kind, form })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    use super::*;
    use crate::decode::operation;
    use crate::native::Stubs;

    const IP: u64 = 0x7f12_3456_7000;

    fn fields(op: &Op) -> impl PartialEq + std::fmt::Debug {
        let Address { displacement, base, index, scale, segment, short } = op.address;
        let address = (displacement, base, index, scale, segment, short);
        let registers = (op.dst, op.src, op.extra);
        // Without an operand in memory it has no width.
        let width = (!op.memory.none()).then_some(op.width);
        (op.run as usize, op.imm, address, op.ip, registers, op.length, op.stub, op.memory, width)
    }

    /// Every opcode of one byte, and of two, with every prefix REX and every byte after it, and some addresses, as the library has it.
    #[test]
    fn the_library_gives_the_same() {
        let (mut factory, mut stubs) = (InstructionInfoFactory::new(), Stubs::default());
        let mut decoded = BTreeSet::new();
        let prefixes = [None].into_iter().chain((0x40..=0x4f).map(Some));
        for rex in prefixes {
            for opcode in 0..0x200_u16 {
                let head: Vec<u8> =
                    rex.into_iter().chain((opcode >= 0x100).then_some(0x0f)).chain([opcode as u8]).collect();
                for modrm in 0..=255_u8 {
                    // Bases and indexes that are something special, and others.
                    for sib in [0x24, 0xe5, 0x8d, 0x51] {
                        let tail = [modrm, sib, 0x87, 0x65, 0x43, 0xa1, 0x12, 0x34, 0x56, 0x78, 0x9a];
                        let bytes: Vec<u8> = head.iter().chain(&tail).copied().collect();
                        let Some(Frequent { op, kind, .. }) = decode(&bytes, IP) else { break };
                        let instruction = Decoder::with_ip(64, &bytes, IP, DecoderOptions::NONE).decode();
                        let expected = operation(&instruction, &mut factory, &mut stubs);
                        assert_eq!(fields(&op), fields(&expected), "{bytes:02x?} {instruction:?}");
                        assert_eq!(kind.ends(), control::ends_block(&instruction), "{bytes:02x?} {instruction:?}");
                        decoded.insert(opcode);
                        let cut = &bytes[..usize::from(op.length) - 1];
                        assert!(decode(cut, IP).is_none(), "{cut:02x?}: it is not all there");
                    }
                }
            }
        }
        let ranges = [
            // Before other opcodes.
            0x0f..=0x0f,
            0x40..=0x4f,
            0x50..=0x5f,
            0x63..=0x63,
            0x68..=0x68,
            0x6a..=0x6a,
            0x70..=0x7f,
            0x80..=0x81,
            0x83..=0x85,
            0x88..=0x8b,
            0x8d..=0x8d,
            0x90..=0x90,
            0x98..=0x99,
            0xa8..=0xa9,
            0xb0..=0xc1,
            0xc3..=0xc3,
            0xc6..=0xc7,
            0xd0..=0xd3,
            0xe8..=0xe9,
            0xeb..=0xeb,
            0xf6..=0xf7,
            0xfe..=0xff,
            0x11f..=0x11f,
            0x140..=0x14f,
            0x180..=0x19f,
            0x1b6..=0x1b7,
            0x1be..=0x1bf,
        ];
        let arithmetic = (0..0x40).filter(|opcode| opcode & 7 < 6);
        let expected: BTreeSet<u16> = arithmetic.chain(ranges.into_iter().flatten()).collect();
        assert_eq!(decoded, expected);
    }
}
