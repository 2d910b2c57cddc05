//! Shifts and rotations by an immediate, by `cl`, and the flagless ones of BMI2.

use iced_x86::{Instruction, Mnemonic};

use crate::exit::Step;
use crate::flags::sign_extend;
use crate::form::{Form, IMM, MEM, REG, by_size, operands};
use crate::machine::Machine;
use crate::native::ShiftOverflow;
use crate::op::{Handler, Op};
use crate::operand::RCX;

const SHL: u8 = 0;
const SHR: u8 = 1;
const SAR: u8 = 2;
const ROL: u8 = 3;
const ROR: u8 = 4;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    let handler: fn(Form) -> Option<Handler> = match instruction.mnemonic() {
        Mnemonic::Shl | Mnemonic::Sal => by::<SHL>,
        Mnemonic::Shr => by::<SHR>,
        Mnemonic::Sar => by::<SAR>,
        Mnemonic::Rol => by::<ROL>,
        Mnemonic::Ror => by::<ROR>,
        Mnemonic::Shlx | Mnemonic::Shrx | Mnemonic::Sarx => {
            let form = operands(instruction, op)?;
            op.extra = crate::form::number(instruction.op2_register());
            return match instruction.mnemonic() {
                Mnemonic::Shlx => flagless::<SHL>(form),
                Mnemonic::Shrx => flagless::<SHR>(form),
                _ => flagless::<SAR>(form),
            };
        }
        _ => return None,
    };
    handler(operands(instruction, op)?)
}

/// By the number of the operation, that of opcodes c0, c1, and d0 to d3.
pub(crate) fn by_number(operation: u8, form: Form) -> Option<Handler> {
    match operation {
        0 => by::<ROL>(form),
        1 => by::<ROR>(form),
        4 => by::<SHL>(form),
        5 => by::<SHR>(form),
        7 => by::<SAR>(form),
        _ => None,
    }
}

fn by<const OP: u8>(form: Form) -> Option<Handler> {
    by_size!(form.size, N => match (form.dst, form.src) {
        (REG, IMM) => run::<OP, N, REG, IMM>,
        (REG, _) => run::<OP, N, REG, REG>,
        (_, IMM) => run::<OP, N, MEM, IMM>,
        _ => run::<OP, N, MEM, REG>,
    })
}

fn run<const OP: u8, const N: usize, const DST: u8, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let bits = 8 * N as u32;
    let count = if SRC == IMM { op.imm as u32 } else { m.reg(RCX) as u32 } & if N == 8 { 63 } else { 31 };
    let address = if DST == MEM { m.address(&op.address) } else { 0 };
    let a = if DST == MEM { m.load::<N>(address)? } else { m.get::<N>(op.dst) };
    let (result, carry) = match OP {
        SHL => {
            let wide = u128::from(a) << count;
            (wide as u64, wide >> bits & 1 != 0)
        }
        SHR => (a >> count, count > 0 && a >> (count - 1) & 1 != 0),
        SAR => {
            let a = sign_extend::<N>(a) as i64;
            ((a >> count) as u64, count > 0 && a >> (count - 1) & 1 != 0)
        }
        ROL => {
            let count = count % bits;
            let result = (a << count) | a.checked_shr(bits - count).unwrap_or(0);
            (result, result & 1 != 0)
        }
        _ => {
            let count = count % bits;
            let result = (a >> count) | a.checked_shl(bits - count).unwrap_or(0);
            (result, result >> (bits - 1) & 1 != 0)
        }
    };
    if DST == MEM {
        m.store::<N>(address, result)?;
    } else {
        m.set::<N>(op.dst, result);
    }
    if count == 0 {
        return Ok(());
    }
    let top = result >> (bits - 1) & 1 != 0;
    let below = result >> (bits - 2) & 1 != 0;
    let before = [a >> (bits - 1) & 1 != 0, a >> (bits - 2) & 1 != 0, a & 1 != 0];
    let af = m.quirks.shift_sets_af;
    match OP {
        SAR => m.flags.shifted::<N>(result, carry, false, af),
        SHL | SHR => {
            let rule = if count == 1 { ShiftOverflow::OfResult } else { m.quirks.shifted };
            let overflow = match (rule, OP, before) {
                (ShiftOverflow::Kept, ..) => m.flags.of(),
                (ShiftOverflow::OfOneBit, SHL, [top, below, _]) => top != below,
                (ShiftOverflow::OfOneBit, _, [top, ..]) => top,
                (ShiftOverflow::OfResult, SHL, _) => carry != top,
                (ShiftOverflow::OfResult, ..) => top != below,
            };
            m.flags.shifted::<N>(result, carry, overflow, af);
        }
        _ => {
            let overflow = match (rotation_overflow::<DST, SRC>(m, count), OP, before) {
                (ShiftOverflow::Kept, ..) => m.flags.of(),
                (ShiftOverflow::OfOneBit, ROL, [top, below, _]) => top != below,
                (ShiftOverflow::OfOneBit, _, [top, _, bottom]) => top != bottom,
                (ShiftOverflow::OfResult, ROL, _) => carry != top,
                (ShiftOverflow::OfResult, ..) => top != below,
            };
            m.flags.set_carry_overflow(carry, overflow);
        }
    }
    Ok(())
}

/// By the manuals, OF is defined for one bit only.
fn rotation_overflow<const DST: u8, const SRC: u8>(m: &Machine<'_>, count: u32) -> ShiftOverflow {
    match (count, DST, SRC) {
        (1, ..) => ShiftOverflow::OfResult,
        (_, MEM, IMM) => m.quirks.rotated_in_memory,
        (_, _, IMM) => m.quirks.rotated_by_immediate,
        _ => m.quirks.rotated_by_cl,
    }
}

fn flagless<const OP: u8>(form: Form) -> Option<Handler> {
    match (form.size, form.src) {
        (4, REG) => Some(run_flagless::<OP, 4, REG>),
        (4, MEM) => Some(run_flagless::<OP, 4, MEM>),
        (8, REG) => Some(run_flagless::<OP, 8, REG>),
        (8, MEM) => Some(run_flagless::<OP, 8, MEM>),
        _ => None,
    }
}

fn run_flagless<const OP: u8, const N: usize, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let a = if SRC == MEM {
        let address = m.address(&op.address);
        m.load::<N>(address)?
    } else {
        m.get::<N>(op.src)
    };
    let count = m.reg(op.extra) as u32 & (8 * N as u32 - 1);
    let result = match OP {
        SHL => a << count,
        SHR => a >> count,
        _ => ((sign_extend::<N>(a) as i64) >> count) as u64,
    };
    m.set::<N>(op.dst, result);
    Ok(())
}
