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
//! instruction can be left to it. The status flags are in the context's form then ([`ForBlocks::status`](crate::context::ForBlocks)).

mod assembler;
pub(crate) mod exit_code;
mod status;
pub(crate) mod step;
pub(crate) mod targets;
mod translation;

use crate::frequent::{self, Frequent};
use crate::op::Op;
use assembler::Assembler;
use translation::Translation;

/// Machine code of a block that keeps the contract `native` calls it under: a function `extern "sysv64" fn(*mut Context) -> u32`.
pub(crate) struct Code<'c>(&'c [u8]);

impl Code<'_> {
    /// Where it is entered from another block.
    pub(crate) const ENTRY: usize = translation::ENTRY;

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0
    }
}

/// Translates blocks, and keeps memory for that.
#[derive(Default)]
pub(crate) struct Compiler {
    assembler: Assembler,
    instructions: Vec<(Op, Option<Frequent>)>,
    saves: Vec<bool>,
}

impl Compiler {
    /// The code of a block of these operations, which were decoded from `bytes`. `first` is the place of the first one among all.
    pub(crate) fn compile(&mut self, first: u32, ops: &[Op], bytes: &[u8]) -> Option<Code<'_>> {
        let (start, after) = (ops.first()?.ip, ops.last()?.next());
        let count = u8::try_from(ops.len()).ok()?;
        self.instructions.clear();
        for op in ops {
            let rest = bytes.get(op.ip.wrapping_sub(start) as usize..)?;
            self.instructions.push((*op, frequent::decode(rest, op.ip)));
        }
        status::saves(&self.instructions, &mut self.saves);
        let mut translation = Translation::begin(&mut self.assembler, first, count);
        for (index, ((op, frequent), saves)) in self.instructions.iter().zip(&self.saves).enumerate() {
            translation.add(index as u8, op, frequent.as_ref(), *saves);
        }
        translation.end(after);
        Some(Code(&self.assembler.code))
    }
}
