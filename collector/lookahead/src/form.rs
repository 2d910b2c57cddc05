//! Operands of an instruction as handlers are specialised for them.

use iced_x86::{Instruction, OpKind, Register};

use crate::op::Op;
use crate::operand::{Address, FS, GS, HIGH, ZERO};

/// An operand in a register.
pub(crate) const REG: u8 = 0;
/// An operand in memory.
pub(crate) const MEM: u8 = 1;
/// An immediate operand.
pub(crate) const IMM: u8 = 2;

/// The kinds of the first two operands, and their size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) size: usize,
    pub(crate) dst: u8,
    pub(crate) src: u8,
}

/// Instantiates a handler for a size of 1, 2, 4 or 8 bytes; `None` for others.
macro_rules! by_size {
    ($size:expr, $n:ident => $handler:expr) => {
        match $size {
            1 => {
                const $n: usize = 1;
                Some($handler as $crate::op::Handler)
            }
            2 => {
                const $n: usize = 2;
                Some($handler as $crate::op::Handler)
            }
            4 => {
                const $n: usize = 4;
                Some($handler as $crate::op::Handler)
            }
            8 => {
                const $n: usize = 8;
                Some($handler as $crate::op::Handler)
            }
            _ => None,
        }
    };
}
pub(crate) use by_size;

/// Instantiates a handler for a condition code.
macro_rules! by_condition {
    ($code:expr, $cc:ident => $handler:expr) => {
        by_condition!(@ $code, $cc, $handler, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $code:expr, $cc:ident, $handler:expr, $($value:literal)*) => {
        match $code {
            $($value => { const $cc: u8 = $value; $handler })*
            _ => None,
        }
    };
}
pub(crate) use by_condition;

/// Number of a general register for [`Machine::get`](crate::machine::Machine::get).
pub(crate) fn number(register: Register) -> u8 {
    let high = matches!(register, Register::AH | Register::CH | Register::DH | Register::BH);
    register.full_register().number() as u8 | if high { HIGH } else { 0 }
}

/// Fills in the operands common to most instructions: address, first two register operands, last immediate.
pub(crate) fn operands(instruction: &Instruction, op: &mut Op) -> Option<Form> {
    let count = instruction.op_count();
    let mut kinds = [REG; 2];
    let mut size = 0;
    for operand in 0..count {
        let kind = match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = instruction.op_register(operand);
                if !register.is_gpr() {
                    return None;
                }
                match operand {
                    0 => op.dst = number(register),
                    1 => op.src = number(register),
                    _ => {}
                }
                if operand == 0 {
                    size = register.size();
                }
                REG
            }
            OpKind::Memory => {
                op.address = address(instruction)?;
                if operand == 0 {
                    size = instruction.memory_size().size();
                }
                MEM
            }
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
            | OpKind::Immediate8_2nd => {
                op.imm = instruction.immediate(operand);
                IMM
            }
            _ => return None,
        };
        if operand < 2 {
            kinds[operand as usize] = kind;
        }
    }
    Some(Form { size, dst: kinds[0], src: kinds[1] })
}

/// The address of the memory operand; `None` for a vector of addresses.
pub(crate) fn address(instruction: &Instruction) -> Option<Address> {
    let part = |register: Register| match register {
        Register::None | Register::RIP | Register::EIP => Some(ZERO),
        register if register.is_gpr32() || register.is_gpr64() => Some(register.full_register().number() as u8),
        _ => None,
    };
    let base = part(instruction.memory_base())?;
    let index = part(instruction.memory_index())?;
    let segment = match instruction.memory_segment() {
        Register::FS => FS,
        Register::GS => GS,
        _ => ZERO,
    };
    let narrow = |register: Register| register.is_gpr32() || register == Register::EIP;
    let short = narrow(instruction.memory_base())
        || narrow(instruction.memory_index())
        || (base == ZERO && index == ZERO && instruction.memory_displ_size() == 4 && {
            // Displacement alone: 8 says 64-bit addressing, 4 says 32-bit.
            instruction.memory_base() == Register::None
        });
    Some(Address {
        displacement: instruction.memory_displacement64(),
        base,
        index,
        scale: instruction.memory_index_scale().trailing_zeros() as u8,
        segment,
        short,
    })
}
