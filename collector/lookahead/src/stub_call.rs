//! Calls of stubs: the operand in memory, flags and floating-point environment around them.

use crate::context::SCRATCH;
use crate::exit::Step;
use crate::flags::Flags;
use crate::machine::Machine;
use crate::memory::PAGE;
use crate::op::Op;
use crate::system::unsupported;

/// Bits of [`Op::extra`].
pub(crate) const TAKES_FLAGS: u8 = 1;
pub(crate) const GIVES_FLAGS: u8 = 2;
pub(crate) const FLOAT: u8 = 4;
pub(crate) const X87: u8 = 8;
pub(crate) const READS: u8 = 16;
pub(crate) const WRITES: u8 = 32;

/// Copies a stub's memory operand into the context.
pub(crate) fn load_scratch(m: &mut Machine<'_>, address: u64, size: usize) -> Step {
    if (address & 0xfff) as usize + size <= PAGE {
        let (page, at) = m.readable(address, size)?;
        page.copy(at, &mut m.context.scratch[..size]);
        return Ok(());
    }
    let mut bytes = [0; SCRATCH];
    m.load_bytes(address, &mut bytes[..size])?;
    m.context.scratch[..size].copy_from_slice(&bytes[..size]);
    Ok(())
}

/// Copies a part of the operand back to memory.
pub(crate) fn store_scratch(m: &mut Machine<'_>, address: u64, from: usize, size: usize) -> Step {
    let bytes = m.context.scratch;
    m.store_bytes(address, &bytes[from..from + size])
}

/// Runs a stub with flags and floating-point environment as it needs them.
pub(crate) fn call(m: &mut Machine<'_>, op: &Op) -> Step {
    if op.extra & FLOAT != 0 && m.context.vector.mxcsr & 0x1f80 != 0x1f80 {
        return unsupported(m, op);
    }
    if op.extra & X87 != 0 && (m.context.vector.x87[0] & 0x3f != 0x3f || m.context.vector.x87[2] & 0x80 != 0) {
        return unsupported(m, op);
    }
    if op.extra & TAKES_FLAGS != 0 {
        m.context.flags = m.flags.status() | 0x202;
    }
    m.changed = true;
    run(m, op)?;
    if op.extra & GIVES_FLAGS != 0 {
        m.flags = Flags::from_rflags(m.context.flags);
    }
    Ok(())
}

/// Runs a stub that needs nothing but registers.
#[inline(always)]
pub(crate) fn run(m: &mut Machine<'_>, op: &Op) -> Step {
    if m.resident.stubs.call(op.stub, &mut m.context) {
        return Ok(());
    }
    unsupported(m, op)
}
