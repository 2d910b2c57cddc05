//! Data movement without memory side effects beyond the operand.

use iced_x86::{Instruction, Mnemonic, OpKind};

use crate::exit::Step;
use crate::flags::sign_extend;
use crate::form::{Form, IMM, MEM, REG, by_condition, by_size, operands};
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{RAX, RDX};

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    match instruction.mnemonic() {
        Mnemonic::Mov => mov(operands(instruction, op)?),
        Mnemonic::Lea => {
            let size = instruction.op0_register().size();
            operands(instruction, op)?;
            lea_of(size)
        }
        Mnemonic::Movzx => extend(instruction, op, extend_by::<false>),
        Mnemonic::Movsx | Mnemonic::Movsxd => extend(instruction, op, extend_by::<true>),
        Mnemonic::Xchg => {
            let form = operands(instruction, op)?;
            if form.dst == REG && form.src == MEM {
                op.src = op.dst;
            }
            by_size!(form.size, N => if form.dst == REG && form.src == REG { xchg::<N> } else { xchg_memory::<N> })
        }
        Mnemonic::Bswap => match operands(instruction, op)?.size {
            4 => Some(bswap::<4>),
            8 => Some(bswap::<8>),
            _ => None,
        },
        Mnemonic::Cbw => Some(widen::<1>),
        Mnemonic::Cwde => widen_to(4),
        Mnemonic::Cdqe => widen_to(8),
        Mnemonic::Cwd => Some(spread::<2>),
        Mnemonic::Cdq => spread_of(4),
        Mnemonic::Cqo => spread_of(8),
        _ => conditional(instruction, op),
    }
}

fn conditional(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    let code = instruction.condition_code() as u8;
    // iced numbers conditions from 1 (`o`) in encoding order.
    let code = code.checked_sub(1)?;
    if instruction.is_jcc_short_or_near()
        || instruction.op_count() == 0
        || instruction.is_loop()
        || instruction.is_loopcc()
    {
        return None;
    }
    let form = operands(instruction, op)?;
    if instruction.op_count() == 1 {
        return set_by(code, form);
    }
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    move_by(code, form)
}

/// `setcc`, by the number of its condition.
pub(crate) fn set_by(condition: u8, form: Form) -> Option<Handler> {
    by_condition!(condition, CC => Some(if form.dst == REG { setcc::<CC, REG> } else { setcc::<CC, MEM> } as Handler))
}

/// `cmovcc`, by the number of its condition.
pub(crate) fn move_by(condition: u8, form: Form) -> Option<Handler> {
    by_condition!(condition, CC => match (form.size, form.src) {
        (2, REG) => Some(cmov::<CC, 2, REG> as Handler),
        (4, REG) => Some(cmov::<CC, 4, REG>),
        (8, REG) => Some(cmov::<CC, 8, REG>),
        (2, _) => Some(cmov::<CC, 2, MEM>),
        (4, _) => Some(cmov::<CC, 4, MEM>),
        (8, _) => Some(cmov::<CC, 8, MEM>),
        _ => None,
    })
}

pub(crate) fn mov(form: Form) -> Option<Handler> {
    by_size!(form.size, N => match (form.dst, form.src) {
        (REG, REG) => mov_run::<N, REG, REG>,
        (REG, IMM) => mov_run::<N, REG, IMM>,
        (REG, MEM) => mov_run::<N, REG, MEM>,
        (MEM, REG) => mov_run::<N, MEM, REG>,
        _ => mov_run::<N, MEM, IMM>,
    })
}

fn mov_run<const N: usize, const DST: u8, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let value = match SRC {
        REG => m.get::<N>(op.src),
        IMM => op.imm,
        _ => {
            let address = m.address(&op.address);
            m.load::<N>(address)?
        }
    };
    if DST == MEM {
        let address = m.address(&op.address);
        m.store::<N>(address, value)
    } else {
        m.set::<N>(op.dst, value);
        Ok(())
    }
}

pub(crate) fn lea_of(size: usize) -> Option<Handler> {
    by_size!(size, N => lea::<N>)
}

fn lea<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let offset = m.offset(&op.address);
    m.set::<N>(op.dst, offset);
    Ok(())
}

fn extend(instruction: &Instruction, op: &mut Op, by: fn(Form, usize) -> Option<Handler>) -> Option<Handler> {
    let form = operands(instruction, op)?;
    let from = if form.src == MEM { instruction.memory_size().size() } else { instruction.op1_register().size() };
    by(form, from)
}

/// `movzx`, `movsx`, `movsxd` from so many bytes.
pub(crate) fn extend_by<const SIGNED: bool>(form: Form, from: usize) -> Option<Handler> {
    let handler: Handler = match (form.size, from, form.src) {
        (2, 1, REG) => extend_run::<SIGNED, 2, 1, REG>,
        (4, 1, REG) => extend_run::<SIGNED, 4, 1, REG>,
        (8, 1, REG) => extend_run::<SIGNED, 8, 1, REG>,
        (4, 2, REG) => extend_run::<SIGNED, 4, 2, REG>,
        (8, 2, REG) => extend_run::<SIGNED, 8, 2, REG>,
        (8, 4, REG) => extend_run::<SIGNED, 8, 4, REG>,
        (2, 1, _) => extend_run::<SIGNED, 2, 1, MEM>,
        (4, 1, _) => extend_run::<SIGNED, 4, 1, MEM>,
        (8, 1, _) => extend_run::<SIGNED, 8, 1, MEM>,
        (4, 2, _) => extend_run::<SIGNED, 4, 2, MEM>,
        (8, 2, _) => extend_run::<SIGNED, 8, 2, MEM>,
        (8, 4, _) => extend_run::<SIGNED, 8, 4, MEM>,
        _ => return None,
    };
    Some(handler)
}

fn extend_run<const SIGNED: bool, const N: usize, const FROM: usize, const SRC: u8>(
    m: &mut Machine<'_>,
    op: &Op,
) -> Step {
    let value = if SRC == MEM {
        let address = m.address(&op.address);
        m.load::<FROM>(address)?
    } else {
        m.get::<FROM>(op.src)
    };
    m.set::<N>(op.dst, if SIGNED { sign_extend::<FROM>(value) } else { value });
    Ok(())
}

fn xchg<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let (a, b) = (m.get::<N>(op.dst), m.get::<N>(op.src));
    m.set::<N>(op.dst, b);
    m.set::<N>(op.src, a);
    Ok(())
}

fn xchg_memory<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let address = m.address(&op.address);
    let value = m.load::<N>(address)?;
    m.store::<N>(address, m.get::<N>(op.src))?;
    m.set::<N>(op.src, value);
    Ok(())
}

fn bswap<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let value = m.get::<N>(op.dst);
    m.set::<N>(op.dst, value.swap_bytes() >> (64 - 8 * N));
    Ok(())
}

/// `cwde`, `cdqe`: to so many bytes.
pub(crate) fn widen_to(size: usize) -> Option<Handler> {
    Some(if size == 8 { widen::<4> } else { widen::<2> })
}

/// `cdq`, `cqo`: of so many bytes.
pub(crate) fn spread_of(size: usize) -> Option<Handler> {
    Some(if size == 8 { spread::<8> } else { spread::<4> })
}

/// `cbw`, `cwde`, `cdqe`: sign-extends the low half of the accumulator, `N` bytes, in place.
fn widen<const N: usize>(m: &mut Machine<'_>, _: &Op) -> Step {
    let value = sign_extend::<N>(m.get::<N>(RAX));
    match N {
        1 => m.set::<2>(RAX, value),
        2 => m.set::<4>(RAX, value),
        _ => m.set::<8>(RAX, value),
    }
    Ok(())
}

/// `cwd`, `cdq`, `cqo`: fills rdx with the sign of the accumulator.
fn spread<const N: usize>(m: &mut Machine<'_>, _: &Op) -> Step {
    let sign = (sign_extend::<N>(m.get::<N>(RAX)) as i64 >> 63) as u64;
    m.set::<N>(RDX, sign);
    Ok(())
}

fn setcc<const CC: u8, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let value = u64::from(m.flags.condition::<CC>());
    if DST == MEM {
        let address = m.address(&op.address);
        m.store::<1>(address, value)
    } else {
        m.set::<1>(op.dst, value);
        Ok(())
    }
}

fn cmov<const CC: u8, const N: usize, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    // The source is read, and may fault, even if the condition does not hold; a 4-byte destination is always zero-extended.
    let value = if SRC == MEM {
        let address = m.address(&op.address);
        m.load::<N>(address)?
    } else {
        m.get::<N>(op.src)
    };
    let kept = m.get::<N>(op.dst);
    let value = if m.flags.condition::<CC>() { value } else { kept };
    m.set::<N>(op.dst, value);
    Ok(())
}
