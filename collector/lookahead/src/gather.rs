//! Gathers and scatters: vectors of addresses.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::exit::Step;
use crate::form::number;
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{Address, FS, GS, ZERO};

/// In [`Op::extra`]: the mask is in the sign bits of a vector register.
const SIGNS: u8 = 0x80;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    use Mnemonic as M;
    if !instruction.is_vsib() {
        return None;
    }
    let (index, data, scatters) = match instruction.mnemonic() {
        M::Vgatherdps | M::Vpgatherdd => (4, 4, false),
        M::Vgatherdpd | M::Vpgatherdq => (4, 8, false),
        M::Vgatherqps | M::Vpgatherqd => (8, 4, false),
        M::Vgatherqpd | M::Vpgatherqq => (8, 8, false),
        M::Vscatterdps | M::Vpscatterdd => (4, 4, true),
        M::Vscatterdpd | M::Vpscatterdq => (4, 8, true),
        M::Vscatterqps | M::Vpscatterqd => (8, 4, true),
        M::Vscatterqpd | M::Vpscatterqq => (8, 8, true),
        _ => return None,
    };
    if !instruction.cpuid_features().iter().all(|&feature| crate::features::present(feature)) {
        return None;
    }
    let base = match instruction.memory_base() {
        Register::None => ZERO,
        register if register.is_gpr64() => number(register),
        _ => return None,
    };
    op.address = Address {
        displacement: instruction.memory_displacement64(),
        base,
        index: ZERO,
        scale: instruction.memory_index_scale().trailing_zeros() as u8,
        segment: match instruction.memory_segment() {
            Register::FS => FS,
            Register::GS => GS,
            _ => ZERO,
        },
        short: false,
    };
    let register = instruction.op_register(u32::from(scatters));
    op.dst = register.number() as u8;
    op.src = instruction.memory_index().number() as u8;
    op.extra = if instruction.has_op_mask() {
        instruction.op_mask().number() as u8
    } else if instruction.op_count() == 3 && instruction.op_kind(2) == OpKind::Register {
        SIGNS | instruction.op2_register().number() as u8
    } else {
        return None;
    };
    let count = (register.size() / data).min(instruction.memory_index().size() / index);
    op.imm = count as u64;
    Some(match (index, data, scatters) {
        (4, 4, false) => gather::<4, 4>,
        (4, _, false) => gather::<4, 8>,
        (_, 4, false) => gather::<8, 4>,
        (_, _, false) => gather::<8, 8>,
        (4, 4, _) => scatter::<4, 4>,
        (4, ..) => scatter::<4, 8>,
        (_, 4, _) => scatter::<8, 4>,
        _ => scatter::<8, 8>,
    })
}

fn element<const N: usize>(register: &[u8; 64], index: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&register[N * index..N * index + N]);
    bytes
}

fn selected<const DATA: usize>(m: &Machine<'_>, op: &Op, index: usize) -> bool {
    if op.extra & SIGNS == 0 {
        return m.context.vector.mask[usize::from(op.extra & 7)] >> index & 1 != 0;
    }
    m.context.vector.zmm[usize::from(op.extra & 31)][DATA * index + DATA - 1] & 0x80 != 0
}

fn address<const INDEX: usize>(m: &Machine<'_>, op: &Op, index: usize) -> u64 {
    let bytes = element::<INDEX>(&m.context.vector.zmm[usize::from(op.src & 31)], index);
    let offset = crate::flags::sign_extend::<INDEX>(u64::from_le_bytes(bytes));
    m.address(&op.address).wrapping_add(offset << (op.address.scale & 3))
}

/// All elements that were selected are done: none is left.
fn clear_mask(m: &mut Machine<'_>, op: &Op) {
    m.changed = true;
    if op.extra & SIGNS == 0 {
        m.context.vector.mask[usize::from(op.extra & 7)] = 0;
    } else {
        m.context.vector.zmm[usize::from(op.extra & 31)] = [0; 64];
    }
}

fn gather<const INDEX: usize, const DATA: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let count = (op.imm as usize).min(64 / INDEX.max(DATA));
    let mut result = [0; 64];
    for index in 0..count {
        let place = DATA * index..DATA * index + DATA;
        if selected::<DATA>(m, op, index) {
            let value = m.load::<DATA>(address::<INDEX>(m, op, index))?;
            result[place].copy_from_slice(&value.to_le_bytes()[..DATA]);
        } else {
            result[place.clone()].copy_from_slice(&m.context.vector.zmm[usize::from(op.dst & 31)][place]);
        }
    }
    clear_mask(m, op);
    m.context.vector.zmm[usize::from(op.dst & 31)] = result;
    Ok(())
}

fn scatter<const INDEX: usize, const DATA: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let count = (op.imm as usize).min(64 / INDEX.max(DATA));
    for index in 0..count {
        if selected::<DATA>(m, op, index) {
            m.check_writable(address::<INDEX>(m, op, index), DATA)?;
        }
    }
    for index in 0..count {
        if selected::<DATA>(m, op, index) {
            let value = element::<DATA>(&m.context.vector.zmm[usize::from(op.dst & 31)], index);
            m.store::<DATA>(address::<INDEX>(m, op, index), u64::from_le_bytes(value))?;
        }
    }
    clear_mask(m, op);
    Ok(())
}
