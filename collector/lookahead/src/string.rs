//! String instructions, repeated or not.

use iced_x86::{Instruction, Mnemonic};

use crate::exit::{Exit, Step};
use crate::flags::DF;
use crate::form::by_size;
use crate::machine::Machine;
use crate::memory::PAGE;
use crate::op::{Handler, Op};
use crate::operand::{RAX, RCX, RDI, RSI};
use crate::outcome::StopReason;

const MOVS: u8 = 0;
const STOS: u8 = 1;
const LODS: u8 = 2;
const SCAS: u8 = 3;
const CMPS: u8 = 4;

const ONCE: u8 = 0;
const REP: u8 = 1;
const REPNE: u8 = 2;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    if !instruction.is_string_instruction() {
        return None;
    }
    let (which, size) = match instruction.mnemonic() {
        Mnemonic::Movsb => (MOVS, 1),
        Mnemonic::Movsw => (MOVS, 2),
        Mnemonic::Movsd => (MOVS, 4),
        Mnemonic::Movsq => (MOVS, 8),
        Mnemonic::Stosb => (STOS, 1),
        Mnemonic::Stosw => (STOS, 2),
        Mnemonic::Stosd => (STOS, 4),
        Mnemonic::Stosq => (STOS, 8),
        Mnemonic::Lodsb => (LODS, 1),
        Mnemonic::Lodsw => (LODS, 2),
        Mnemonic::Lodsd => (LODS, 4),
        Mnemonic::Lodsq => (LODS, 8),
        Mnemonic::Scasb => (SCAS, 1),
        Mnemonic::Scasw => (SCAS, 2),
        Mnemonic::Scasd => (SCAS, 4),
        Mnemonic::Scasq => (SCAS, 8),
        Mnemonic::Cmpsb => (CMPS, 1),
        Mnemonic::Cmpsw => (CMPS, 2),
        Mnemonic::Cmpsd => (CMPS, 4),
        Mnemonic::Cmpsq => (CMPS, 8),
        _ => return None,
    };
    let kinds = (0..instruction.op_count()).map(|operand| instruction.op_kind(operand));
    use iced_x86::OpKind as K;
    if kinds.into_iter().any(|k| matches!(k, K::MemorySegSI | K::MemorySegESI | K::MemoryESDI | K::MemoryESEDI)) {
        return None; // 32-bit addresses: no compiler emits them
    }
    op.address.segment = match instruction.memory_segment() {
        iced_x86::Register::FS if which != STOS && which != SCAS => crate::operand::FS,
        iced_x86::Register::GS if which != STOS && which != SCAS => crate::operand::GS,
        _ => crate::operand::ZERO,
    };
    op.extra = match (instruction.has_rep_prefix(), instruction.has_repne_prefix()) {
        (true, _) => REP,
        (_, true) => REPNE,
        _ => ONCE,
    };
    match which {
        MOVS => by_size!(size, N => run::<MOVS, N>),
        STOS => by_size!(size, N => run::<STOS, N>),
        LODS => by_size!(size, N => run::<LODS, N>),
        SCAS => by_size!(size, N => run::<SCAS, N>),
        _ => by_size!(size, N => run::<CMPS, N>),
    }
}

fn run<const OP: u8, const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    if op.extra == ONCE {
        return element::<OP, N>(m, op);
    }
    while m.reg(RCX) != 0 {
        if m.repetitions == 0 {
            return m.stopped(StopReason::Fuel);
        }
        let done = match OP {
            MOVS | STOS if m.other_flags & DF == 0 => many::<OP, N>(m, op)?,
            _ => 0,
        };
        if done > 0 {
            continue;
        }
        element::<OP, N>(m, op)?;
        m.repetitions -= 1;
        m.set_reg(RCX, m.reg(RCX).wrapping_sub(1));
        if (OP == SCAS || OP == CMPS) && m.flags.zf() != (op.extra == REP) {
            break;
        }
    }
    Ok(())
}

/// One repetition. Changes nothing if it stops.
fn element<const OP: u8, const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let step = if m.other_flags & DF == 0 { N as u64 } else { (N as u64).wrapping_neg() };
    let (rsi, rdi) = (m.reg(RSI), m.reg(RDI));
    let source = rsi.wrapping_add(m.reg(op.address.segment));
    match OP {
        MOVS => {
            let value = m.load::<N>(source)?;
            m.store::<N>(rdi, value)?;
        }
        STOS => m.store::<N>(rdi, m.reg(RAX))?,
        LODS => {
            let value = m.load::<N>(source)?;
            m.set::<N>(RAX, value);
        }
        SCAS => {
            let (a, b) = (m.get::<N>(RAX), m.load::<N>(rdi)?);
            m.flags.sub::<N>(a, b, a.wrapping_sub(b));
        }
        _ => {
            let (a, b) = (m.load::<N>(source)?, m.load::<N>(rdi)?);
            m.flags.sub::<N>(a, b, a.wrapping_sub(b));
        }
    }
    if matches!(OP, MOVS | LODS | CMPS) {
        m.set_reg(RSI, rsi.wrapping_add(step));
    }
    if OP != LODS {
        m.set_reg(RDI, rdi.wrapping_add(step));
    }
    Ok(())
}

/// Does as many upward repetitions of `movs` or `stos` as lie in one page each, and returns their number.
fn many<const OP: u8, const N: usize>(m: &mut Machine<'_>, op: &Op) -> Result<u64, Exit> {
    let (rsi, rdi) = (m.reg(RSI), m.reg(RDI));
    let source = rsi.wrapping_add(m.reg(op.address.segment));
    let room = |address: u64| PAGE - (address & 0xfff) as usize;
    let mut count = m.reg(RCX).min(m.repetitions).min((room(rdi) / N) as u64) as usize;
    if OP == MOVS {
        count = count.min(room(source) / N);
        // A destination shortly after the source repeats what was just written: one by one.
        if rdi.wrapping_sub(source) < (count * N) as u64 {
            return Ok(0);
        }
    }
    if count < 2 {
        return Ok(0);
    }
    let length = count * N;
    if OP == MOVS {
        let mut buffer = [0; PAGE];
        m.load_bytes(source, &mut buffer[..length])?;
        m.store_bytes(rdi, &buffer[..length])?;
        m.set_reg(RSI, rsi.wrapping_add(length as u64));
    } else {
        let frame = m.writable(rdi, length)?;
        m.changed = true;
        let at = (rdi & 0xfff) as usize;
        let value = m.reg(RAX).to_le_bytes();
        for place in m.overlay.frames[frame][at..at + length].chunks_exact_mut(N) {
            place.copy_from_slice(&value[..N]);
        }
    }
    m.set_reg(RDI, rdi.wrapping_add(length as u64));
    m.set_reg(RCX, m.reg(RCX).wrapping_sub(count as u64));
    m.repetitions -= count as u64;
    Ok(count as u64)
}
