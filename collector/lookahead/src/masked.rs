//! Memory operands of which a mask selects elements: the others are not accessed, and cannot fault.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::exit::{Exit, Step};
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::outcome::StopReason;
use crate::stub_call::{call, load_scratch, store_scratch};

/// In [`Op::dst`]: the mask is in the sign bits of a vector register.
const SIGNS: u8 = 0x80;
/// In [`Op::imm`]: selected elements are next to each other in memory.
const PACKED: u64 = 1 << 32;

/// Chooses the handler if a mask selects elements in memory.
pub(crate) fn select(instruction: &Instruction, op: &mut Op, reads: bool, writes: bool) -> Option<Handler> {
    use Mnemonic as M;
    let signs = matches!(instruction.mnemonic(), M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq);
    let packed = matches!(
        instruction.mnemonic(),
        M::Vpcompressb
            | M::Vpcompressw
            | M::Vpcompressd
            | M::Vpcompressq
            | M::Vcompressps
            | M::Vcompresspd
            | M::Vpexpandb
            | M::Vpexpandw
            | M::Vpexpandd
            | M::Vpexpandq
            | M::Vexpandps
            | M::Vexpandpd
    );
    if signs {
        op.dst = SIGNS | instruction.op1_register().number() as u8;
    } else if instruction.has_op_mask() {
        op.dst = instruction.op_mask().number() as u8;
    } else {
        return None;
    }
    let element = match instruction.mnemonic() {
        M::Vmaskmovps | M::Vpmaskmovd => 4,
        M::Vmaskmovpd | M::Vpmaskmovq => 8,
        _ => instruction.memory_size().element_size().max(1),
    };
    op.imm |= (element as u64) << 16;
    if packed {
        op.imm |= PACKED;
    }
    debug_assert!(instruction.op_mask() == Register::None || !signs);
    let stores = writes && instruction.op0_kind() == OpKind::Memory;
    Some(if stores {
        store
    } else if reads {
        load
    } else {
        return None;
    })
}

/// One bit per selected element.
fn selected(m: &Machine<'_>, op: &Op, element: usize, count: usize) -> u64 {
    let all = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    if op.dst & SIGNS == 0 {
        return m.context.vector.mask[usize::from(op.dst & 7)] & all;
    }
    let register = &m.context.vector.zmm[usize::from(op.dst & 31)];
    (0..count)
        .filter(|i| register.get(i * element + element - 1).is_some_and(|top| top & 0x80 != 0))
        .map(|i| 1 << i)
        .sum()
}

struct Operand {
    address: u64,
    size: usize,
    element: usize,
    selected: u64,
}

fn operand(m: &mut Machine<'_>, op: &Op) -> Result<Operand, Exit> {
    let address = m.address(&op.address);
    let (size, element) = ((op.imm & 0xffff) as usize, (op.imm >> 16 & 0xffff) as usize);
    let selected = selected(m, op, element, size / element);
    if address & u64::from(op.src) != 0 && selected != 0 {
        return m.stopped(StopReason::Exception);
    }
    let size = if op.imm & PACKED != 0 { selected.count_ones() as usize * element } else { size };
    Ok(Operand { address, size, element, selected })
}

fn load(m: &mut Machine<'_>, op: &Op) -> Step {
    let memory = operand(m, op)?;
    m.context.scratch[..64].fill(0);
    if op.imm & PACKED != 0 {
        if memory.size > 0 {
            load_scratch(m, memory.address, memory.size)?;
        }
    } else if load_scratch(m, memory.address, memory.size).is_err() {
        // The full width cannot be read; what was selected may still be.
        for index in ones(memory.selected) {
            let at = index * memory.element;
            let mut bytes = [0; 8];
            let element = memory.element.min(8);
            m.load_bytes(memory.address.wrapping_add(at as u64), &mut bytes[..element])?;
            m.context.scratch[at..at + element].copy_from_slice(&bytes[..element]);
        }
    }
    call(m, op)
}

fn store(m: &mut Machine<'_>, op: &Op) -> Step {
    let memory = operand(m, op)?;
    let whole = op.imm & PACKED != 0 || memory.selected.count_ones() as usize * memory.element == memory.size;
    if whole {
        m.check_writable(memory.address, memory.size)?;
        call(m, op)?;
        return store_scratch(m, memory.address, 0, memory.size);
    }
    for index in ones(memory.selected) {
        m.check_writable(memory.address.wrapping_add((index * memory.element) as u64), memory.element)?;
    }
    call(m, op)?;
    for index in ones(memory.selected) {
        let at = index * memory.element;
        store_scratch(m, memory.address.wrapping_add(at as u64), at, memory.element)?;
    }
    Ok(())
}

fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        next
    })
}
