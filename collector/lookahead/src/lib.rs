//! Runs the code of a stopped thread ahead: on a copy of its registers, reading its memory and writing only to private copies of
//! pages, and records every taken branch, as a hardware branch record would.
//!
//! [`run()`] is exact: after every instruction, registers, flags and memory are those that the CPU would have, until the burst stops and says
//! why. Integer instructions are interpreted; vector, x87 and rare integer instructions are executed by the CPU itself, one at a
//! time, on the copied registers and a copy of the memory operand. Nothing the interpreted code does can be seen by the thread.
//!
//! ```text
//! Registers --> Machine -- op, op, ... branch --> CodeCache: next block --> ... --> Outcome, branches, Registers
//!                 |  loads, stores                    |  new address
//!              Overlay (pages of this burst)       decode (iced-x86): operation = function + operands
//!                 |  first touch                      |  vector, x87, rare
//!               Memory (the thread's)              stub: load registers, instruction, store registers
//! ```

#![deny(unsafe_code)]

mod arith;
mod bits;
mod branch;
mod code_cache;
mod code_lines;
mod context;
mod control;
mod decode;
mod features;
mod flags;
mod foreign;
mod form;
mod gather;
mod lines;
mod machine;
mod masked;
mod memory;
mod moves;
mod multiply;
#[allow(unsafe_code)]
mod native;
mod op;
mod outcome;
mod overlay;
mod registers;
mod run;
mod save_restore;
mod segment_base;
mod shift;
mod sink;
mod spin;
mod stack;
mod string;
mod stub;
mod system;
mod undefined;
mod xsave;

pub use branch::{Branch, BranchKind, Executed};
pub use code_cache::CodeCache;
pub use lines::{DataLines, DataUse, Forwarded};
pub use memory::{Fault, Memory, PAGE, Page};
pub use outcome::{Fuel, Outcome, StopReason, UnsupportedInstruction};
pub use overlay::Overlay;
pub use registers::{Registers, VectorState};
pub use run::{run, run_traced, run_with_lines};
pub use save_restore::{UndefinedSave, undefined_save};
pub use undefined::undefined_flags;
