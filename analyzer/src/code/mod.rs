//! From an ELF file to static basic blocks and their instructions.
//!
//! ```text
//! Image --------> FunctionTable --------> BlockMap --------> instructions() --------> Attributes
//! bytes, PT_LOAD  symbols, PLT, FDEs,     blocks of the hit  decoded again,           what one
//! file <-> Svma   gaps: disjoint ranges   functions only     lazily                   instruction is
//! ```
//!
//! Everything here reads one file and knows nothing of processes or recordings: what a recording saw of the
//! file comes in as [`Observed`] addresses.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod bitness;
mod block;
mod block_hash;
mod block_map;
mod build_id;
mod candidate;
mod cell;
mod cut;
mod debug_section;
mod decode;
mod demangle;
mod eh_frame;
mod error;
mod file_bytes;
mod function;
mod functions;
mod image;
mod kept;
mod kept_blocks;
mod kept_functions;
mod layers;
mod loaded_module;
mod made_elf;
mod mini_debug_info;
mod names;
mod observed;
mod packed_file;
mod plt;
mod region;
mod relocations;
mod section;
mod segment;
mod symbols;
mod trace;
mod variants;

pub use bitness::Bitness;
pub use block::{Block, BlockStatistics, Evidence, Terminator};
pub(crate) use block_hash::block_hash;
pub use block_map::BlockMap;
pub(crate) use debug_section::ExpansionError;
pub(crate) use decode::LONGEST_INSTRUCTION;
pub use decode::instructions;
pub use demangle::demangle;
pub use error::ImageError;
pub use function::{Function, FunctionId, Origin};
pub use functions::FunctionTable;
pub use image::Image;
pub(crate) use kept_functions::KeptFunctions;
pub use observed::Observed;
pub use section::Section;
pub use segment::Segment;
pub use variants::variants;

// What BOLT's functions are made from.
pub(crate) use eh_frame::unwind_ranges;
pub(crate) use made_elf::{MadeElf, MadeFunction, made_core, made_elf};
pub(crate) use names::{NameBytes, NamesOf};
pub(crate) use region::{Region, regions};
pub(crate) use symbols::SymbolTable;
