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

mod attributes;
mod block_map;
mod bolt_functions;
mod build_id;
mod category;
mod cell;
mod code_attributes;
mod cut;
mod debug_section;
mod decode;
mod demangle;
mod eh_frame;
mod error;
mod file_bytes;
mod flow;
mod functions;
mod image;
mod isa;
mod layers;
mod names;
mod observed;
mod operands;
mod plt;
mod section;
mod segment;
mod symbols;
mod trace;
mod variants;
mod vocabulary;

pub use attributes::{Attributes, BranchKind, Element, Encoding, MemoryAccess, Packing, Width};
pub use block_map::{Block, BlockMap, BlockStatistics, Evidence, Terminator};
pub use bolt_functions::{BoltFunction, BoltFunctions};
pub use category::Category;
pub use code_attributes::mnemonic_name;
pub(crate) use decode::LONGEST_INSTRUCTION;
pub use decode::instructions;
pub use demangle::demangle;
pub use error::ImageError;
pub use functions::{Function, FunctionId, FunctionTable, Origin};
pub use image::Image;
pub use isa::isa_names;
pub use observed::Observed;
pub use section::Section;
pub use segment::Segment;
pub use variants::variants;
pub use vocabulary::UnknownName;
