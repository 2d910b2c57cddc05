#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod arith;
mod bits;
mod branch;
mod code_cache;
mod code_lines;
mod compiled;
mod context;
mod control;
mod decode;
mod executed_code;
mod exit;
mod features;
mod flags;
mod foreign;
mod form;
mod frequent;
mod gather;
mod line_tables;
mod lines;
mod machine;
mod masked;
mod memory;
mod moves;
mod multiply;
mod mxcsr;
#[allow(unsafe_code)]
mod native;
mod op;
mod operand;
mod outcome;
mod overlay;
mod registers;
mod run;
mod save_restore;
mod segment_base;
mod shift;
mod single_step;
mod sink;
mod spin;
mod stack;
mod string;
mod stub;
mod stub_call;
mod system;
mod undefined;
mod warm_up;
mod xsave;

pub use branch::{Branch, BranchKind, Branches, Executed};
pub use code_cache::{CodeCache, LONGEST_INSTRUCTION};
pub use executed_code::ExecutedCode;
pub use lines::{DataLines, DataUse, Forwarded};
pub use memory::{Fault, Memory, PAGE, Page};
pub use native::{InPlace, StubMemory};
pub use outcome::{Fuel, Outcome, StopReason, UnsupportedInstruction};
pub use overlay::Overlay;
pub use registers::{Registers, VectorState, returned_to};
pub use run::{run, run_traced, run_with_lines};
pub use save_restore::{UndefinedSave, undefined_save};
pub use single_step::SingleStep;
pub use undefined::undefined_flags;
pub use warm_up::warm_up;
