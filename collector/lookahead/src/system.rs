//! Flags by themselves, hints, and instructions that end a burst.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

use crate::exit::{Exit, Step};
use crate::flags::{AF, CF, DF, Flags, PF, SF, STATUS, ZF};
use crate::form::{address, number};
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{FS, GS, RAX};
use crate::outcome::{StopReason, UnsupportedInstruction};

const LOW: u64 = CF | PF | AF | ZF | SF;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    use Mnemonic as M;
    let handler: Handler = match instruction.mnemonic() {
        M::Nop | M::Endbr64 | M::Endbr32 | M::Pause | M::Lfence | M::Mfence | M::Sfence => nothing,
        M::Prefetch | M::Prefetchw | M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 => nothing,
        M::Prefetchwt1 | M::Clflush | M::Clflushopt | M::Clwb | M::Cldemote | M::Reservednop => nothing,
        M::Clc => |m, _| set_carry(m, Some(false)),
        M::Stc => |m, _| set_carry(m, Some(true)),
        M::Cmc => |m, _| set_carry(m, None),
        M::Cld => |m, _| {
            m.other_flags &= !DF;
            Ok(())
        },
        M::Std => |m, _| {
            m.other_flags |= DF;
            Ok(())
        },
        M::Lahf => |m, _| {
            let flags = (m.flags.status() & LOW) | 2;
            m.set::<1>(RAX | crate::operand::HIGH, flags);
            Ok(())
        },
        M::Sahf => |m, _| {
            let flags = (m.flags.status() & !LOW) | (m.get::<1>(RAX | crate::operand::HIGH) & LOW);
            m.flags = Flags::from_rflags(flags & STATUS);
            Ok(())
        },
        M::Xlatb => {
            op.address.base = number(Register::RBX);
            op.address.segment = match instruction.memory_segment() {
                Register::FS => FS,
                Register::GS => GS,
                _ => crate::operand::ZERO,
            };
            |m, op| {
                let offset = m.offset(&op.address).wrapping_add(m.get::<1>(RAX));
                let value = m.load::<1>(offset.wrapping_add(m.reg(op.address.segment)))?;
                m.set::<1>(RAX, value);
                Ok(())
            }
        }
        M::Ldmxcsr | M::Vldmxcsr => {
            op.address = address(instruction)?;
            |m, op| {
                let address = m.address(&op.address);
                let value = m.load::<4>(address)? as u32;
                if value & !0xffff != 0 {
                    // Reserved bits, or AMD's own that allows misaligned operands.
                    return unsupported(m, op);
                }
                m.context.vector.mxcsr = value;
                m.changed = true;
                Ok(())
            }
        }
        M::Stmxcsr | M::Vstmxcsr => {
            op.address = address(instruction)?;
            |m, op| {
                let address = m.address(&op.address);
                m.store::<4>(address, u64::from(m.context.vector.mxcsr))
            }
        }
        M::Vzeroupper => |m, _| {
            for register in &mut m.context.vector.zmm[..16] {
                register[16..].fill(0);
            }
            Ok(())
        },
        M::Rdsspd | M::Rdsspq => |m, op| if m.shadow_stack { unsupported(m, op) } else { Ok(()) },
        M::Wait => |m, op| {
            if m.context.vector.x87[2] & 0x80 != 0 { unsupported(m, op) } else { Ok(()) }
        },
        M::Syscall | M::Sysenter => |m, _| m.stopped(StopReason::SystemCall),
        M::Int if instruction.immediate8() == 0x80 => |m, _| m.stopped(StopReason::SystemCall),
        M::Int | M::Int1 | M::Int3 => |m, _| m.stopped(StopReason::Interrupt),
        M::Ud0 | M::Ud1 | M::Ud2 | M::Hlt => |m, _| m.stopped(StopReason::Exception),
        _ => return None,
    };
    Some(handler)
}

#[inline(never)]
pub(crate) fn nothing(_: &mut Machine<'_>, _: &Op) -> Step {
    Ok(())
}

fn set_carry(m: &mut Machine<'_>, carry: Option<bool>) -> Step {
    m.flags.set_cf(carry.unwrap_or(!m.flags.cf()));
    Ok(())
}

/// Ends the burst before an instruction that is not interpreted.
pub(crate) fn unsupported(m: &mut Machine<'_>, op: &Op) -> Step {
    let mut bytes = [0; 15];
    let length = usize::from(op.length).min(15);
    if m.load_bytes(op.ip, &mut bytes[..length]).is_err() {
        return m.stopped(StopReason::UnreadableCode);
    }
    let mut instruction = Instruction::default();
    Decoder::with_ip(64, &bytes[..length], op.ip, DecoderOptions::NONE).decode_out(&mut instruction);
    m.stop = StopReason::Unsupported(UnsupportedInstruction {
        mnemonic: instruction.mnemonic(),
        bytes,
        length: length as u8,
    });
    Err(Exit::Stop)
}
