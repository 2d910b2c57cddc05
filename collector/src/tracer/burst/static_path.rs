//! The path from an instruction to the next branch that is not decided by its bytes (*Break Dancing*, FindNextUnresolvedBranch).

use addresses::Avma;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};
use lookahead::{Branch, BranchKind, LONGEST_INSTRUCTION, PAGE};

use crate::tracer::kernel::ThreadMemory;

/// Instructions looked at for one branch; after that, something is wrong.
const LONGEST: u64 = 100_000;
/// Bytes read at once.
const WINDOW: usize = 256;

/// A branch to be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unresolved {
    pub(crate) address: Avma,
    /// Instructions executed before it.
    pub(crate) instructions: u64,
    /// The stack pointer there, if the instructions before it say.
    pub(crate) stack: Option<u64>,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBranch {
    /// The number of taken branches was reached before, after so many instructions.
    Depth(u64),
    /// The code cannot be read or decoded.
    Unreadable,
    /// An instruction that no breakpoint helps with: a software interrupt, a transaction, a far branch.
    Unsupported,
    /// Only direct jumps, round and round.
    Endless,
}

/// Follows the code from `start` and appends the direct branches on the way to `branches`, at most `depth`.
///
/// # Errors
/// [`NoBranch`]: there is no such branch that a breakpoint could be set at.
pub(crate) fn next_unresolved(
    memory: &impl ThreadMemory,
    pid: i32,
    start: Avma,
    stack: u64,
    depth: u64,
    branches: &mut Vec<Branch>,
) -> Result<Unresolved, NoBranch> {
    let (mut ip, mut stack, mut taken) = (start.0, Some(stack), 0);
    let mut bytes = [0; WINDOW];
    let (mut window, mut length) = (0_u64, 0);
    let mut instruction = Instruction::default();
    for instructions in 0..LONGEST {
        let at = ip.wrapping_sub(window) as usize;
        if at >= length || length - at < LONGEST_INSTRUCTION {
            window = ip;
            length = read_code(memory, pid, ip, &mut bytes);
        }
        let at = (ip - window) as usize;
        let mut decoder = Decoder::with_ip(64, &bytes[at..length], ip, DecoderOptions::NONE);
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return Err(NoBranch::Unreadable);
        }
        let here = Unresolved { address: Avma(ip), instructions, stack };
        let next = match instruction.flow_control() {
            FlowControl::Next => None,
            FlowControl::Call if matches!(instruction.code(), Code::Syscall | Code::Sysenter) => None,
            FlowControl::Interrupt if instruction.code() == Code::Int_imm8 && instruction.immediate8() == 0x80 => None,
            FlowControl::UnconditionalBranch => Some(BranchKind::Jump),
            FlowControl::Call => Some(BranchKind::Call),
            FlowControl::ConditionalBranch | FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                return Ok(here);
            }
            FlowControl::Return if matches!(instruction.code(), Code::Retnq | Code::Retnq_imm16) => return Ok(here),
            FlowControl::Return | FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => {
                return Err(NoBranch::Unsupported);
            }
        };
        stack = stack_after(&instruction, stack);
        match next {
            None => ip = instruction.next_ip(),
            Some(_) if !instruction.is_jmp_short_or_near() && !instruction.is_call_near() => {
                return Err(NoBranch::Unsupported);
            }
            Some(kind) => {
                let to = instruction.near_branch_target();
                branches.push(Branch { from: Avma(ip), to: Avma(to), kind });
                ip = to;
                taken += 1;
                if taken == depth {
                    return Err(NoBranch::Depth(instructions + 1));
                }
            }
        }
    }
    Err(NoBranch::Endless)
}

/// What pushes, pops and calls make of the stack pointer; `None` after anything else that writes to it.
fn stack_after(instruction: &Instruction, stack: Option<u64>) -> Option<u64> {
    let change = instruction.stack_pointer_increment();
    let stack = stack?.wrapping_add(i64::from(change) as u64);
    let writes = instruction.op_count() > 0
        && instruction.op0_register().full_register() == Register::RSP
        && !instruction.is_stack_instruction();
    let leaves = matches!(instruction.code(), Code::Leaveq | Code::Leavew | Code::Enterq_imm16_imm8);
    (!writes && !leaves).then_some(stack)
}

/// Reads code, less of it where the next page cannot be read. Returns how many bytes.
pub(crate) fn read_code(memory: &impl ThreadMemory, pid: i32, address: u64, bytes: &mut [u8]) -> usize {
    let next = (address | (PAGE as u64 - 1)).wrapping_add(1);
    let (mut present, goes_on) = ([true], next - address < bytes.len() as u64);
    if goes_on {
        memory.present(pid, &[Avma(next)], &mut present);
    }
    // The next page may be one that others serve, and need not be code.
    if present == [true] && memory.read_memory(pid, Avma(address), bytes) {
        return bytes.len();
    }
    let left = (PAGE - address as usize % PAGE).min(bytes.len());
    if memory.read_memory(pid, Avma(address), &mut bytes[..left]) { left } else { 0 }
}
