//! The bases of fs and gs.

use iced_x86::{Code, Instruction, Mnemonic};

use crate::exit::Step;
use crate::form::number;
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{FS, GS};
use crate::outcome::StopReason;
use crate::system::unsupported;

/// `rdfsbase` and its like, where the system has enabled them.
pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    if !crate::native::segment_bases_enabled() {
        return None;
    }
    op.dst = number(instruction.op0_register());
    op.src = match instruction.mnemonic() {
        Mnemonic::Rdfsbase | Mnemonic::Wrfsbase => FS,
        Mnemonic::Rdgsbase | Mnemonic::Wrgsbase => GS,
        _ => return None,
    };
    Some(match instruction.code() {
        Code::Rdfsbase_r32 | Code::Rdgsbase_r32 => read_base::<4>,
        Code::Rdfsbase_r64 | Code::Rdgsbase_r64 => read_base::<8>,
        Code::Wrfsbase_r32 | Code::Wrgsbase_r32 => write_base::<4>,
        _ => write_base::<8>,
    })
}

fn read_base<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let base = m.reg(op.src);
    m.set::<N>(op.dst, base);
    Ok(())
}

fn write_base<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let base = m.get::<N>(op.dst);
    if (base as i64) << 16 >> 16 != base as i64 {
        // With 57-bit addresses it may be one.
        return if (base as i64) << 7 >> 7 == base as i64 {
            unsupported(m, op)
        } else {
            m.stopped(StopReason::Exception)
        };
    }
    m.set_reg(op.src, base);
    Ok(())
}
