//! `xsave`, `xsavec` and `xrstor` of SSE, AVX and AVX-512 state, as the dynamic linker uses them around lazy binding (SDM vol. 1,
//! chapter 13).
//!
//! Not the x87 component: its image holds the address of the last x87 instruction, which is not kept. Not `xsaveopt`: what it leaves out
//! depends on what was saved and restored where before.

use std::ops::Range;

use addresses::Avma;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use crate::exit::Step;
use crate::form::address;
use crate::machine::Machine;
use crate::native::{has_xsavec, mxcsr_mask, xcr0};
use crate::op::{Handler, Op};
use crate::operand::{FS, GS, RAX, RDX, ZERO};
use crate::outcome::StopReason;
use crate::registers::{INITIAL_MXCSR, Registers, VectorState};
use crate::system::unsupported;
use crate::xsave::{self, Part};

const SSE: u64 = 1 << 1;
const AVX: u64 = 1 << 2;
/// SSE, AVX, and the three components of AVX-512.
const KNOWN: u64 = 0b1110_0110;
const COMPACTED: u64 = 1 << 63;
/// Offsets in the area: `mxcsr` and its mask, the header's two bit maps, the end of the header.
const MXCSR: u64 = 24;
const STATE_BITS: u64 = 512;
const COMPACTION: u64 = 520;
const EXTENDED: usize = 576;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    let handler: Handler = match instruction.mnemonic() {
        Mnemonic::Xsave | Mnemonic::Xsave64 => save::<false>,
        Mnemonic::Xsavec | Mnemonic::Xsavec64 if has_xsavec() => save::<true>,
        Mnemonic::Xrstor | Mnemonic::Xrstor64 => restore,
        _ => return None,
    };
    op.address = address(instruction)?;
    Some(handler)
}

/// Components that the instruction asks for and the system has enabled.
fn requested(eax: u64, edx: u64) -> u64 {
    ((edx << 32) | (eax & 0xffff_ffff)) & xcr0()
}

/// Whether a component is not in its initial state, which is all zero. CPUs may take an initial component as in use, too.
fn in_use(part: &Part, state: &mut VectorState) -> bool {
    let mut zero = true;
    for index in 0..part.count {
        part.place(state, index, |bytes| zero &= bytes.iter().all(|&byte| byte == 0));
    }
    !zero
}

/// The components of `wanted` that are in use. For `xsavec` an `mxcsr` that is not the initial one makes SSE so.
fn all_in_use(wanted: u64, compact: bool, state: &mut VectorState) -> u64 {
    let parts = xsave::parts();
    let parts = parts.iter().filter(|part| wanted >> part.component & 1 != 0);
    let found = parts.filter(|part| in_use(part, state)).map(|part| 1 << part.component).sum();
    if compact && wanted & SSE != 0 && state.mxcsr != INITIAL_MXCSR { found | SSE } else { found }
}

/// Where a component lies in an area; `layout` are the components of a compacted one.
fn place_of(part: &Part, layout: Option<u64>) -> Option<usize> {
    let Some(layout) = layout.filter(|_| part.component > 1) else { return part.offset };
    let mut at = EXTENDED;
    for component in (2..=part.component).filter(|component| layout >> component & 1 != 0) {
        let (size, aligned) = crate::native::xsave_size(component)?;
        if aligned {
            at = at.next_multiple_of(64);
        }
        if component == part.component {
            return Some(at);
        }
        at += size;
    }
    None
}

fn save<const COMPACT: bool>(m: &mut Machine<'_>, op: &Op) -> Step {
    let area = m.address(&op.address);
    let wanted = requested(m.reg(RAX), m.reg(RDX));
    if wanted & !KNOWN != 0 {
        return unsupported(m, op);
    }
    if area & 63 != 0 {
        return m.stopped(StopReason::Exception);
    }
    let used = all_in_use(wanted, COMPACT, &mut m.context.vector);
    let saved = if COMPACT { used } else { wanted };
    let mut pieces: Vec<(usize, Vec<u8>)> = Vec::new();
    for part in xsave::parts().iter().filter(|part| saved >> part.component & 1 != 0) {
        let Some(at) = place_of(part, COMPACT.then_some(wanted)) else { return unsupported(m, op) };
        let mut bytes = Vec::with_capacity(part.bytes * part.count);
        for index in 0..part.count {
            part.place(&mut m.context.vector, index, |one| bytes.extend_from_slice(one));
        }
        pieces.push((at, bytes));
    }
    if saved & (if COMPACT { SSE } else { SSE | AVX }) != 0 {
        let both = u64::from(m.context.vector.mxcsr) | u64::from(mxcsr_mask()) << 32;
        pieces.push((MXCSR as usize, both.to_le_bytes().to_vec()));
    }
    let bits = if COMPACT {
        pieces.push((COMPACTION as usize, (wanted | COMPACTED).to_le_bytes().to_vec()));
        used
    } else {
        (m.load::<8>(area.wrapping_add(STATE_BITS))? & !wanted) | used
    };
    pieces.push((STATE_BITS as usize, bits.to_le_bytes().to_vec()));
    for (at, bytes) in &pieces {
        m.check_writable(area.wrapping_add(*at as u64), bytes.len())?;
    }
    for (at, bytes) in &pieces {
        m.store_bytes(area.wrapping_add(*at as u64), bytes)?;
    }
    Ok(())
}

fn restore(m: &mut Machine<'_>, op: &Op) -> Step {
    let area = m.address(&op.address);
    let wanted = requested(m.reg(RAX), m.reg(RDX));
    if wanted & !KNOWN != 0 {
        return unsupported(m, op);
    }
    if area & 63 != 0 {
        return m.stopped(StopReason::Exception);
    }
    let mut header = [0; 64];
    m.load_bytes(area.wrapping_add(STATE_BITS), &mut header)?;
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
    let (present, compaction) = (word(0), word(8));
    let compacted = compaction & COMPACTED != 0;
    let layout = compaction & !COMPACTED;
    let valid = if compacted {
        has_xsavec() && layout & !xcr0() == 0 && present & !layout == 0 && header[16..].iter().all(|&byte| byte == 0)
    } else {
        present & !xcr0() == 0 && header[8..24].iter().all(|&byte| byte == 0)
    };
    if !valid {
        return m.stopped(StopReason::Exception);
    }
    let mut state = m.context.vector.clone();
    for part in xsave::parts().iter().filter(|part| wanted >> part.component & 1 != 0) {
        let mut bytes = vec![0; part.bytes * part.count];
        if present >> part.component & 1 != 0 {
            let Some(at) = place_of(part, compacted.then_some(layout)) else { return unsupported(m, op) };
            m.load_bytes(area.wrapping_add(at as u64), &mut bytes)?;
        }
        for (index, bytes) in bytes.chunks_exact(part.bytes).enumerate() {
            part.place(&mut state, index, |one| one.copy_from_slice(bytes));
        }
    }
    // In the standard form `mxcsr` goes with either, and is always there; in the compacted one it is a part of SSE.
    if !compacted && wanted & (SSE | AVX) != 0 || compacted && wanted & present & SSE != 0 {
        let mxcsr = m.load::<4>(area.wrapping_add(MXCSR))? as u32;
        if mxcsr & !mxcsr_mask() != 0 {
            return m.stopped(StopReason::Exception);
        }
        if mxcsr & !0xffff != 0 {
            return unsupported(m, op);
        }
        state.mxcsr = mxcsr;
    } else if compacted && wanted & SSE != 0 {
        state.mxcsr = INITIAL_MXCSR;
    }
    m.context.vector = state;
    m.changed = true;
    Ok(())
}

/// The part of the memory of `xsave` and `xsavec` that the manuals leave to the CPU: a component in its initial state may be taken as
/// in use or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedSave {
    /// Address of the header's `XSTATE_BV`, 8 bytes.
    pub state_bits: Avma,
    /// The bits in it that may be either.
    pub either: u64,
    /// What may be stored or left alone.
    pub bytes: Vec<Range<Avma>>,
}

/// What the `xsave` or `xsavec` at the start of `bytes` may store either way, given the registers before it; `None` for other
/// instructions and those that are not interpreted.
pub fn undefined_save(bytes: &[u8], registers: &Registers) -> Option<UndefinedSave> {
    let instruction = Decoder::with_ip(64, bytes, registers.rip, DecoderOptions::NONE).decode();
    let compact = match instruction.mnemonic() {
        Mnemonic::Xsave | Mnemonic::Xsave64 => false,
        Mnemonic::Xsavec | Mnemonic::Xsavec64 => true,
        _ => return None,
    };
    let wanted = requested(registers.general[usize::from(RAX)], registers.general[usize::from(RDX)]);
    if wanted & !KNOWN != 0 {
        return None;
    }
    let area = area_of(&instruction, registers)?;
    let either = wanted & !all_in_use(wanted, compact, &mut registers.vector.clone());
    let mut stored = Vec::new();
    if compact {
        for part in xsave::parts().iter().filter(|part| either >> part.component & 1 != 0) {
            let at = area.wrapping_add(place_of(part, Some(wanted))? as u64);
            stored.push(Avma(at)..Avma(at.wrapping_add((part.bytes * part.count) as u64)));
        }
        if either & SSE != 0 {
            stored.push(Avma(area.wrapping_add(MXCSR))..Avma(area.wrapping_add(MXCSR + 8)));
        }
    }
    Some(UndefinedSave { state_bits: Avma(area.wrapping_add(STATE_BITS)), either, bytes: stored })
}

fn area_of(instruction: &Instruction, registers: &Registers) -> Option<u64> {
    let at = address(instruction)?;
    let register = |number: u8| match number {
        ZERO => 0,
        FS => registers.fs_base,
        GS => registers.gs_base,
        number => registers.general[usize::from(number & 15)],
    };
    let offset = register(at.base).wrapping_add(register(at.index) << (at.scale & 3)).wrapping_add(at.displacement);
    Some((if at.short { offset & 0xffff_ffff } else { offset }).wrapping_add(register(at.segment)))
}
