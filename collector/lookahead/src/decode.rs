//! From bytes to operations.

use iced_x86::{
    Decoder, DecoderError, DecoderOptions, Instruction, InstructionInfoFactory, InstructionInfoOptions, OpAccess,
    OpKind,
};

use crate::native::Stubs;
use crate::op::{Handler, MemoryUse, Op};
use crate::system::unsupported;
use crate::{
    arith, bits, control, foreign, frequent, gather, moves, multiply, save_restore, segment_base, shift, stack, string,
    system,
};

/// Instructions of a block at most.
const BLOCK: usize = 64;

/// Decodes a straight-line run from `bytes`, which lie at `pc`, and appends it to `ops`. Ends after the first branch, before
/// an instruction that `bytes` do not hold entirely, or after [`BLOCK`] instructions. Returns the address after the last.
pub(crate) fn decode_block(
    pc: u64,
    bytes: &[u8],
    ops: &mut Vec<Op>,
    factory: &mut InstructionInfoFactory,
    stubs: &mut Stubs,
) -> u64 {
    let mut instruction = Instruction::default();
    let mut end = pc;
    for _ in 0..BLOCK {
        let rest = &bytes[end.wrapping_sub(pc) as usize..];
        if let Some(frequent) = frequent::decode(rest, end) {
            end = frequent.op.next();
            ops.push(frequent.op);
            if frequent.kind.ends() {
                break;
            }
            continue;
        }
        let mut decoder = Decoder::with_ip(64, rest, end, DecoderOptions::NONE);
        if !decoder.can_decode() {
            break;
        }
        decoder.decode_out(&mut instruction);
        if decoder.last_error() == DecoderError::NoMoreBytes {
            break;
        }
        ops.push(operation(&instruction, factory, stubs));
        end = instruction.next_ip();
        if instruction.is_invalid() || control::ends_block(&instruction) {
            break;
        }
    }
    end
}

pub(crate) fn operation(instruction: &Instruction, factory: &mut InstructionInfoFactory, stubs: &mut Stubs) -> Op {
    let blank = Op { length: instruction.len().max(1) as u8, ..Op::blank(instruction.ip()) };
    if instruction.is_invalid() {
        return blank;
    }
    type Family = fn(&Instruction, &mut Op) -> Option<Handler>;
    const FAMILIES: [Family; 12] = [
        moves::select,
        arith::select,
        control::select,
        stack::select,
        shift::select,
        bits::select,
        multiply::select,
        string::select,
        system::select,
        gather::select,
        save_restore::select,
        segment_base::select,
    ];
    let (loads, stores) = access(instruction, factory);
    let width = instruction.memory_size().size().clamp(1, 64) as u8;
    let blank = Op { width, ..blank };
    let complete = |op: Op, run: Handler| Op { run, memory: MemoryUse::new(loads, stores, &op.address), ..op };
    for family in FAMILIES {
        let mut op = blank;
        if let Some(run) = family(instruction, &mut op) {
            return complete(op, run);
        }
    }
    let mut op = blank;
    match foreign::select(instruction, &mut op, factory, stubs) {
        Some(run) => complete(op, run),
        None => complete(blank, unsupported),
    }
}

/// Whether the operand in memory is read, and whether it is written. That of `lea` is neither; the stack of `push` and `call` is none.
fn access(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> (bool, bool) {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
    let operand = (0..instruction.op_count()).find(|&operand| instruction.op_kind(operand) == OpKind::Memory);
    let Some(operand) = operand else { return (false, false) };
    let only_accesses = InstructionInfoOptions::NO_REGISTER_USAGE | InstructionInfoOptions::NO_MEMORY_USAGE;
    match factory.info_options(instruction, only_accesses).op_access(operand) {
        Read | CondRead => (true, false),
        Write | CondWrite => (false, true),
        ReadWrite | ReadCondWrite => (true, true),
        _ => (false, false),
    }
}
