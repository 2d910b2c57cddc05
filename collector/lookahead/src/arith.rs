//! Addition, subtraction, logic and comparison.

use iced_x86::{Instruction, Mnemonic};

use crate::exit::{Exit, Step};
use crate::form::{Form, IMM, MEM, REG, by_size, operands};
use crate::machine::Machine;
use crate::op::{Handler, Op};

pub(crate) const ADD: u8 = 0;
pub(crate) const OR: u8 = 1;
pub(crate) const ADC: u8 = 2;
pub(crate) const SBB: u8 = 3;
pub(crate) const AND: u8 = 4;
pub(crate) const SUB: u8 = 5;
pub(crate) const XOR: u8 = 6;
pub(crate) const CMP: u8 = 7;
pub(crate) const TEST: u8 = 8;

pub(crate) const INC: u8 = 0;
pub(crate) const DEC: u8 = 1;
pub(crate) const NEG: u8 = 2;
pub(crate) const NOT: u8 = 3;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    let of_form: fn(Form) -> Option<Handler> = match instruction.mnemonic() {
        Mnemonic::Add => |form| by_number(ADD, form),
        Mnemonic::Or => |form| by_number(OR, form),
        Mnemonic::Adc => |form| by_number(ADC, form),
        Mnemonic::Sbb => |form| by_number(SBB, form),
        Mnemonic::And => |form| by_number(AND, form),
        Mnemonic::Sub => |form| by_number(SUB, form),
        Mnemonic::Xor => |form| by_number(XOR, form),
        Mnemonic::Cmp => |form| by_number(CMP, form),
        Mnemonic::Test => |form| by_number(TEST, form),
        Mnemonic::Inc => unary::<INC>,
        Mnemonic::Dec => unary::<DEC>,
        Mnemonic::Neg => unary::<NEG>,
        Mnemonic::Not => unary::<NOT>,
        Mnemonic::Xadd => exchange_add,
        Mnemonic::Cmpxchg => compare_exchange,
        _ => return None,
    };
    of_form(operands(instruction, op)?)
}

/// By the number of the operation, which is that of opcodes 00 to 3f and of 80 to 83; and `TEST`.
pub(crate) fn by_number(operation: u8, form: Form) -> Option<Handler> {
    match operation {
        ADD => binary::<ADD>(form),
        OR => binary::<OR>(form),
        ADC => binary::<ADC>(form),
        SBB => binary::<SBB>(form),
        AND => binary::<AND>(form),
        SUB => binary::<SUB>(form),
        XOR => binary::<XOR>(form),
        CMP => binary::<CMP>(form),
        TEST => binary::<TEST>(form),
        _ => None,
    }
}

fn binary<const OP: u8>(form: Form) -> Option<Handler> {
    by_size!(form.size, N => match (form.dst, form.src) {
        (REG, REG) => run::<OP, N, REG, REG>,
        (REG, IMM) => run::<OP, N, REG, IMM>,
        (REG, MEM) => run::<OP, N, REG, MEM>,
        (MEM, REG) => run::<OP, N, MEM, REG>,
        _ => run::<OP, N, MEM, IMM>,
    })
}

fn run<const OP: u8, const N: usize, const DST: u8, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let address = if DST == MEM || SRC == MEM { m.address(&op.address) } else { 0 };
    let a = if DST == MEM { m.load::<N>(address)? } else { m.get::<N>(op.dst) };
    let b = match SRC {
        REG => m.get::<N>(op.src),
        IMM => op.imm,
        _ => m.load::<N>(address)?,
    };
    let result = match OP {
        ADD => a.wrapping_add(b),
        ADC => a.wrapping_add(b).wrapping_add(u64::from(m.flags.cf())),
        SUB | CMP => a.wrapping_sub(b),
        SBB => a.wrapping_sub(b).wrapping_sub(u64::from(m.flags.cf())),
        AND | TEST => a & b,
        OR => a | b,
        _ => a ^ b,
    };
    if OP != CMP && OP != TEST {
        if DST == MEM {
            m.store::<N>(address, result)?;
        } else {
            m.set::<N>(op.dst, result);
        }
    }
    match OP {
        ADD | ADC => m.flags.add::<N>(a, b, result),
        SUB | SBB | CMP => m.flags.sub::<N>(a, b, result),
        _ => m.flags.logic::<N>(result),
    }
    Ok(())
}

pub(crate) fn unary<const OP: u8>(form: Form) -> Option<Handler> {
    by_size!(form.size, N => if form.dst == REG { run_unary::<OP, N, REG> } else { run_unary::<OP, N, MEM> })
}

fn run_unary<const OP: u8, const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let address = if DST == MEM { m.address(&op.address) } else { 0 };
    let a = if DST == MEM { m.load::<N>(address)? } else { m.get::<N>(op.dst) };
    let result = match OP {
        INC => a.wrapping_add(1),
        DEC => a.wrapping_sub(1),
        NEG => a.wrapping_neg(),
        _ => !a,
    };
    if DST == MEM {
        m.store::<N>(address, result)?;
    } else {
        m.set::<N>(op.dst, result);
    }
    let carry = m.flags.cf();
    match OP {
        INC => {
            m.flags.add::<N>(a, 1, result);
            m.flags.set_cf(carry);
        }
        DEC => {
            m.flags.sub::<N>(a, 1, result);
            m.flags.set_cf(carry);
        }
        NEG => m.flags.sub::<N>(0, a, result),
        _ => {}
    }
    Ok(())
}

fn exchange_add(form: Form) -> Option<Handler> {
    by_size!(form.size, N => if form.dst == REG { run_exchange_add::<N, REG> } else { run_exchange_add::<N, MEM> })
}

fn run_exchange_add<const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let b = m.get::<N>(op.src);
    let a = if DST == MEM {
        let address = m.address(&op.address);
        let a = m.load::<N>(address)?;
        m.store::<N>(address, a.wrapping_add(b))?;
        m.set::<N>(op.src, a);
        a
    } else {
        let a = m.get::<N>(op.dst);
        m.set::<N>(op.src, a);
        m.set::<N>(op.dst, a.wrapping_add(b));
        a
    };
    m.flags.add::<N>(a, b, a.wrapping_add(b));
    Ok(())
}

fn compare_exchange(form: Form) -> Option<Handler> {
    by_size!(form.size, N => if form.dst == REG { run_compare_exchange::<N, REG> } else { run_compare_exchange::<N, MEM> })
}

fn run_compare_exchange<const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Result<(), Exit> {
    let accumulator = m.get::<N>(crate::operand::RAX);
    let address = if DST == MEM { m.address(&op.address) } else { 0 };
    let present = if DST == MEM { m.load::<N>(address)? } else { m.get::<N>(op.dst) };
    let equal = accumulator == present;
    let new = if equal { m.get::<N>(op.src) } else { present };
    if DST == MEM {
        // The destination is written in either case, so it has to be writable.
        m.store::<N>(address, new)?;
    } else if equal {
        m.set::<N>(op.dst, new);
    }
    if !equal {
        m.set::<N>(crate::operand::RAX, present);
    }
    m.flags.sub::<N>(accumulator, present, accumulator.wrapping_sub(present));
    Ok(())
}
