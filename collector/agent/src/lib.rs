//! The agent: the look-ahead interpreter on the thread that is sampled, inside the program that is recorded.
//!
//! A burst that another process takes costs a switch to it and back, copies of every page and cold caches: many times what its
//! instructions cost. The agent takes it in the handler of the clock's signal.
//!
//! ```text
//! recorder                                        program
//! image: the recorder's own executable at a       the same pages at the same address: code shared,
//!   fixed address, made ready there (prepare)       data private
//! bursts are taken out of slots   <- shared ->    handler -> inside::burst -> lookahead -> a slot
//! ```
//!
//! What runs inside is a copy of the recorder's own executable: one file to install, and it works in any program, whatever C library that
//! has. It never enters the program's code, takes no lock the program could hold, and allocates from memory of its own
//! (`inside`). Functions of the C library that it could call are replaced when the image is made (`imports`); whatever else it might
//! call gives the burst up.
//!
//! This crate writes and reads memory by address, and runs on stacks of its own: `unsafe` is what it is about. Each block says why it
//! holds.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(clippy::undocumented_unsafe_blocks)]

mod executable;
mod file_code;
mod image;
mod imports;
mod inside;
mod layout;
mod loader;
mod path_copy;
mod preload;
mod resident;
mod slot_code;
mod slots;
mod timers;
mod vdso_code;

pub use image::{Image, ImageError};
pub use layout::REGION;
pub use loader::{LoadStatus, Loading, PageFile, ProgramRegisters, SIGNAL, STATUS, page};
pub use preload::{Clock, Preload, SIGNAL_OF_TIMERS};
pub use resident::{InUse, RESTORE, Resident, Restoring, Waiting};
pub use slots::{Burst, Checked, Difference, Limits, MemoryChange, Outcome, Slots, Tally};
pub use timers::{Part, Signals, Timers};
pub use vdso_code::{code_to_map, code_to_unmap};
