//! Branches.

use iced_x86::{Code, ConditionCode, Instruction, Mnemonic, OpKind};

use crate::BranchKind;
use crate::exit::{Exit, Step};
use crate::form::{Form, MEM, REG, by_condition, operands};
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{RCX, RSP};
use crate::stack::push_value;

/// Whether the instruction ends a block, whatever its handler turns out to be.
pub(crate) fn ends_block(instruction: &Instruction) -> bool {
    use iced_x86::FlowControl as F;
    !matches!(instruction.flow_control(), F::Next) && instruction.mnemonic() != Mnemonic::Cpuid
}

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    if instruction.op0_kind() == OpKind::NearBranch64 {
        op.imm = instruction.near_branch64();
    }
    match instruction.mnemonic() {
        Mnemonic::Jmp => match instruction.code() {
            Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Some(jump),
            Code::Jmp_rm64 => indirect_by(false, operands(instruction, op)?),
            _ => None,
        },
        Mnemonic::Call => match instruction.code() {
            Code::Call_rel32_64 => Some(call),
            Code::Call_rm64 => indirect_by(true, operands(instruction, op)?),
            _ => None,
        },
        Mnemonic::Ret => match instruction.code() {
            Code::Retnq => Some(ret),
            Code::Retnq_imm16 => {
                op.imm = u64::from(instruction.immediate16());
                Some(ret)
            }
            _ => None,
        },
        Mnemonic::Jrcxz => Some(jump_if_zero::<false>),
        Mnemonic::Jecxz => Some(jump_if_zero::<true>),
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => {
            op.extra = match instruction.mnemonic() {
                Mnemonic::Loop => 0,
                Mnemonic::Loope => 1,
                _ => 2,
            };
            match instruction.code() {
                Code::Loop_rel8_64_RCX | Code::Loope_rel8_64_RCX | Code::Loopne_rel8_64_RCX => {
                    Some(count_down::<false>)
                }
                Code::Loop_rel8_64_ECX | Code::Loope_rel8_64_ECX | Code::Loopne_rel8_64_ECX => Some(count_down::<true>),
                _ => None,
            }
        }
        _ if instruction.condition_code() != ConditionCode::None && instruction.is_jcc_short_or_near() => {
            if instruction.op0_kind() != OpKind::NearBranch64 {
                return None;
            }
            jump_by(instruction.condition_code() as u8 - 1)
        }
        _ => None,
    }
}

/// A conditional jump, by the number of its condition.
pub(crate) fn jump_by(condition: u8) -> Option<Handler> {
    by_condition!(condition, CC => Some(conditional::<CC> as Handler))
}

/// A jump or a call to where its operand says.
pub(crate) fn indirect_by(is_call: bool, form: Form) -> Option<Handler> {
    Some(match (is_call, form.dst) {
        (false, REG) => jump_indirect::<REG>,
        (false, _) => jump_indirect::<MEM>,
        (true, REG) => call_indirect::<REG>,
        (true, _) => call_indirect::<MEM>,
    })
}

fn taken(m: &mut Machine<'_>, target: u64, kind: BranchKind) -> Step {
    m.target = target;
    Err(Exit::Taken(kind))
}

fn conditional<const CC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    if m.flags.condition::<CC>() { taken(m, op.imm, BranchKind::Conditional) } else { Err(Exit::NotTaken) }
}

#[inline(never)]
pub(crate) fn jump(m: &mut Machine<'_>, op: &Op) -> Step {
    taken(m, op.imm, BranchKind::Jump)
}

fn operand<const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Result<u64, Exit> {
    if SRC == REG {
        return Ok(m.reg(op.dst));
    }
    let address = m.address(&op.address);
    m.load::<8>(address)
}

fn jump_indirect<const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let target = operand::<SRC>(m, op)?;
    taken(m, target, BranchKind::IndirectJump)
}

#[inline(never)]
pub(crate) fn call(m: &mut Machine<'_>, op: &Op) -> Step {
    push_value::<8>(m, op.next())?;
    taken(m, op.imm, BranchKind::Call)
}

fn call_indirect<const SRC: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let target = operand::<SRC>(m, op)?;
    push_value::<8>(m, op.next())?;
    taken(m, target, BranchKind::IndirectCall)
}

#[inline(never)]
pub(crate) fn ret(m: &mut Machine<'_>, op: &Op) -> Step {
    let top = m.reg(RSP);
    let target = m.load::<8>(top)?;
    m.set_reg(RSP, top.wrapping_add(8).wrapping_add(op.imm));
    taken(m, target, BranchKind::Return)
}

fn jump_if_zero<const SHORT: bool>(m: &mut Machine<'_>, op: &Op) -> Step {
    let count = if SHORT { m.get::<4>(RCX) } else { m.reg(RCX) };
    if count == 0 { taken(m, op.imm, BranchKind::Conditional) } else { Err(Exit::NotTaken) }
}

fn count_down<const SHORT: bool>(m: &mut Machine<'_>, op: &Op) -> Step {
    let count = if SHORT {
        let count = m.get::<4>(RCX).wrapping_sub(1);
        m.set::<4>(RCX, count);
        count & 0xffff_ffff
    } else {
        let count = m.reg(RCX).wrapping_sub(1);
        m.set_reg(RCX, count);
        count
    };
    let condition = match op.extra {
        0 => true,
        1 => m.flags.zf(),
        _ => !m.flags.zf(),
    };
    if count != 0 && condition { taken(m, op.imm, BranchKind::Conditional) } else { Err(Exit::NotTaken) }
}
