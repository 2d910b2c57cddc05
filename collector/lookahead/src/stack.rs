//! Instructions that use the stack without branching.

use iced_x86::{Code, Instruction, Mnemonic};

use crate::exit::Step;
use crate::flags::{DF, Flags, STATUS};
use crate::form::{Form, IMM, REG, operands};
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{RBP, RSP};

/// Flags that `popf` may change in user mode, besides the status flags: TF is left out (it would trap), so are IOPL and IF.
const POPPED: u64 = DF | (1 << 14) | (1 << 18) | (1 << 21);
const TRAP: u64 = 1 << 8;
/// Flags that `pushf` does not show: RF and VM.
const HIDDEN: u64 = (1 << 16) | (1 << 17);

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    match instruction.mnemonic() {
        Mnemonic::Push => {
            let immediate = matches!(instruction.code(), Code::Pushq_imm8 | Code::Pushq_imm32);
            let form = operands(instruction, op)?;
            push(if immediate { Form { size: 8, ..form } } else { form })
        }
        Mnemonic::Pop => {
            let form = operands(instruction, op)?;
            match (form.size, form.dst) {
                (8, REG) => Some(pop::<8>),
                (8, _) => Some(pop_memory::<8>),
                (2, REG) => Some(pop::<2>),
                (2, _) => Some(pop_memory::<2>),
                _ => None,
            }
        }
        Mnemonic::Leave => (instruction.code() == Code::Leaveq).then_some(leave as Handler),
        Mnemonic::Enter => {
            op.imm = u64::from(instruction.immediate16());
            (instruction.code() == Code::Enterq_imm16_imm8 && instruction.immediate8_2nd() == 0)
                .then_some(enter as Handler)
        }
        Mnemonic::Pushfq => Some(push_flags),
        Mnemonic::Popfq => Some(pop_flags),
        _ => None,
    }
}

pub(crate) fn push(form: Form) -> Option<Handler> {
    match (form.size, form.dst) {
        (8, REG) => Some(run_push::<8, 0>),
        (8, IMM) => Some(run_push::<8, 2>),
        (8, _) => Some(run_push::<8, 1>),
        (2, REG) => Some(run_push::<2, 0>),
        (2, IMM) => Some(run_push::<2, 2>),
        (2, _) => Some(run_push::<2, 1>),
        _ => None,
    }
}

/// Puts `N` bytes on the stack.
#[inline(always)]
pub(crate) fn push_value<const N: usize>(m: &mut Machine<'_>, value: u64) -> Step {
    let top = m.reg(RSP).wrapping_sub(N as u64);
    m.store::<N>(top, value)?;
    m.set_reg(RSP, top);
    Ok(())
}

fn run_push<const N: usize, const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let value = match SRC {
        0 => m.get::<N>(op.dst),
        2 => op.imm,
        _ => {
            let address = m.address(&op.address);
            m.load::<N>(address)?
        }
    };
    push_value::<N>(m, value)
}

pub(crate) fn pop<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let top = m.reg(RSP);
    let value = m.load::<N>(top)?;
    m.set_reg(RSP, top.wrapping_add(N as u64));
    m.set::<N>(op.dst, value);
    Ok(())
}

fn pop_memory<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let top = m.reg(RSP);
    let value = m.load::<N>(top)?;
    // An address relative to rsp is computed after rsp was incremented.
    m.set_reg(RSP, top.wrapping_add(N as u64));
    let address = m.address(&op.address);
    let stored = m.store::<N>(address, value);
    if stored.is_err() {
        m.set_reg(RSP, top);
    }
    stored
}

fn leave(m: &mut Machine<'_>, _: &Op) -> Step {
    let frame = m.reg(RBP);
    let saved = m.load::<8>(frame)?;
    m.set_reg(RSP, frame.wrapping_add(8));
    m.set_reg(RBP, saved);
    Ok(())
}

fn enter(m: &mut Machine<'_>, op: &Op) -> Step {
    let frame = m.reg(RSP).wrapping_sub(8);
    m.store::<8>(frame, m.reg(RBP))?;
    m.set_reg(RBP, frame);
    m.set_reg(RSP, frame.wrapping_sub(op.imm));
    Ok(())
}

fn push_flags(m: &mut Machine<'_>, _: &Op) -> Step {
    let rflags = m.rflags() & !HIDDEN;
    push_value::<8>(m, rflags)
}

fn pop_flags(m: &mut Machine<'_>, op: &Op) -> Step {
    let top = m.reg(RSP);
    let rflags = m.load::<8>(top)?;
    if rflags & TRAP != 0 {
        return crate::system::unsupported(m, op);
    }
    m.set_reg(RSP, top.wrapping_add(8));
    m.flags = Flags::from_rflags(rflags);
    m.other_flags = ((m.other_flags & !POPPED) | (rflags & POPPED)) & !STATUS;
    Ok(())
}
