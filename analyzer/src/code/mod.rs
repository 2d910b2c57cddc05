//! From an ELF file to static basic blocks and instruction attributes.
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

mod attributes;
mod block;
mod block_map;
mod build_id;
mod by_mnemonic;
mod candidate;
mod category;
mod category_table;
mod cell;
mod code_attributes;
mod cut;
mod debug_section;
mod decode;
mod demangle;
mod eh_frame;
mod element_table;
mod error;
mod file_bytes;
mod flow;
mod function;
mod functions;
mod image;
mod isa;
mod isa_table;
mod kinds;
mod layers;
mod names;
mod observed;
mod operands;
mod plt;
mod region;
mod section;
mod segment;
mod symbols;
mod trace;
mod variants;
mod vocabulary;

pub use attributes::Attributes;
pub use block::{Block, BlockStatistics, Evidence, Terminator};
pub use block_map::BlockMap;
pub use category::Category;
pub use code_attributes::mnemonic_name;
pub(crate) use debug_section::ExpansionError;
pub(crate) use decode::LONGEST_INSTRUCTION;
pub use decode::instructions;
pub use demangle::demangle;
pub use error::ImageError;
pub use function::{Function, FunctionId, Origin};
pub use functions::FunctionTable;
pub use image::Image;
pub use isa::isa_names;
pub use kinds::{BranchKind, Element, Encoding, MemoryAccess, Packing, Width};
pub use observed::Observed;
pub use section::Section;
pub use segment::Segment;
pub use variants::variants;
pub use vocabulary::UnknownName;

// What BOLT's functions are made from.
pub(crate) use eh_frame::unwind_ranges;
pub(crate) use names::{NameBytes, NamesOf};
pub(crate) use region::{Region, regions};
pub(crate) use symbols::SymbolTable;
