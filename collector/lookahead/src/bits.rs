//! Single bits and bit strings, and the commonest counts of bits.

use iced_x86::{Instruction, Mnemonic};

use crate::exit::Step;
use crate::flags::sign_extend;
use crate::form::{Form, IMM, MEM, REG, by_size, operands};
use crate::machine::Machine;
use crate::op::{Handler, Op};

const TEST: u8 = 0;
const SET: u8 = 1;
const RESET: u8 = 2;
const COMPLEMENT: u8 = 3;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    let handler: fn(Form) -> Option<Handler> = match instruction.mnemonic() {
        Mnemonic::Bt => bit::<TEST>,
        Mnemonic::Bts => bit::<SET>,
        Mnemonic::Btr => bit::<RESET>,
        Mnemonic::Btc => bit::<COMPLEMENT>,
        _ => return None,
    };
    handler(operands(instruction, op)?)
}

fn bit<const OP: u8>(form: Form) -> Option<Handler> {
    by_size!(form.size, N => match (form.dst, form.src) {
        (REG, REG) => run::<OP, N, REG, REG>,
        (REG, _) => run::<OP, N, REG, IMM>,
        (_, REG) => run::<OP, N, MEM, REG>,
        _ => run::<OP, N, MEM, IMM>,
    })
}

fn run<const OP: u8, const N: usize, const DST: u8, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let bits = 8 * N as u64;
    let index = if SRC == IMM { op.imm } else { sign_extend::<N>(m.get::<N>(op.src)) };
    let mask = 1u64 << (index & (bits - 1));
    let (address, a) = if DST == MEM {
        // With the index in a register, the operand is a bit string that reaches far to both sides of the address.
        let words = if SRC == IMM { 0 } else { ((index as i64) >> bits.trailing_zeros()) as u64 };
        let segment = m.reg(op.address.segment);
        let offset = m.offset(&op.address).wrapping_add(words.wrapping_mul(N as u64));
        let offset = if op.address.short { offset & 0xffff_ffff } else { offset };
        let address = offset.wrapping_add(segment);
        (address, m.load::<N>(address)?)
    } else {
        (0, m.get::<N>(op.dst))
    };
    let result = match OP {
        TEST => a,
        SET => a | mask,
        RESET => a & !mask,
        _ => a ^ mask,
    };
    if OP != TEST {
        if DST == MEM {
            m.store::<N>(address, result)?;
        } else {
            m.set::<N>(op.dst, result);
        }
    }
    m.flags.set_cf(a & mask != 0);
    Ok(())
}
