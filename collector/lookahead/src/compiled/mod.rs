//! Blocks that run often, as machine code of the host.
//!
//! ```text
//! block (ops, bytes) -> frequent::decode -> status: which flags are needed -> translation -> Code -> native: memory for stubs
//! native::run_compiled -> the block's code: registers in the context, lines in the tables, taken branches in the context
//!                           -> step: the interpreter's operation, where the code cannot go on by itself
//!                           -> targets: the next block's code
//!                           -> exit code -> the burst's loop, which does what is left: blocks that are not compiled, limits
//! ```
//! Between two instructions, registers, memory and what is noted of data are as the interpreter would have them, so that any
//! instruction can be left to it. The status flags are in the context's form then ([`Hot::status`](crate::context::Hot::status)).

mod assembler;
pub(crate) mod exit_code;
#[allow(unsafe_code)] // assembly
pub(crate) mod routines;
mod status;
pub(crate) mod step;
pub(crate) mod targets;
mod translation;

use crate::frequent::{self, Frequent};
use crate::op::Op;
use assembler::Assembler;
use translation::Translation;

/// Machine code of a block that keeps the contract `native` calls it under, at a place that was chosen before.
pub(crate) struct Code<'c> {
    bytes: &'c [u8],
    place: CodePlace,
}

/// Where code of a block can be.
#[derive(Clone, Copy)]
pub(crate) struct CodePlace {
    /// Bytes from the start of the memory.
    pub(crate) start: usize,
    /// From there to the routines.
    pub(crate) routines: usize,
}

impl Code<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes
    }

    pub(crate) fn place(&self) -> CodePlace {
        self.place
    }
}

/// Translates blocks, and keeps memory for that.
#[derive(Default)]
pub(crate) struct Compiler {
    assembler: Assembler,
    instructions: Vec<(Op, Option<Frequent>)>,
    saves: Vec<bool>,
}

/// Of a block that is worth it, one in so many instructions at most is left to the interpreter.
const LEFT_TO_INTERPRETER: usize = 4;
/// Blocks have numbers of so many bits.
const NUMBER_BITS: u32 = 24;

impl Compiler {
    /// The code of the block of this number, of these operations, which were decoded from `bytes`. `None` if it would be too long, or is not
    /// worth it.
    pub(crate) fn compile(&mut self, number: u32, ops: &[Op], bytes: &[u8], place: CodePlace) -> Option<Code<'_>> {
        let (start, after) = (ops.first()?.ip, ops.last()?.next());
        let count = u8::try_from(ops.len()).ok().filter(|_| number < 1 << NUMBER_BITS)?;
        self.instructions.clear();
        for op in ops {
            let rest = bytes.get(op.ip.wrapping_sub(start) as usize..)?;
            self.instructions.push((*op, frequent::decode(rest, op.ip)));
        }
        let untranslated = self.instructions.iter().filter(|(_, frequent)| frequent.is_none()).count();
        if untranslated * LEFT_TO_INTERPRETER > ops.len() {
            return None;
        }
        status::saves(&self.instructions, &mut self.saves);
        let distance = place.start - place.routines;
        let mut translation = Translation::begin(&mut self.assembler, distance, number, count);
        let mut ends = false;
        for (index, ((op, frequent), saves)) in self.instructions.iter().zip(&self.saves).enumerate() {
            translation.add(index as u8, op, frequent.as_ref(), *saves);
            ends = frequent.as_ref().is_some_and(|frequent| frequent.kind.ends());
        }
        translation.end(ends, after)?;
        Some(Code { bytes: &self.assembler.code, place })
    }
}
