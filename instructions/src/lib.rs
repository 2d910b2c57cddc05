//! What one instruction is.
//!
//! ```text
//! iced_x86::Instruction -> Attributes: category, instruction set, elements, width, memory, branch
//!                      \-> Form: kinds and sizes of operands, bytes of memory, the mode of the address, length
//!                      \-> Flow: where control goes after it
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod attributes;
mod by_mnemonic;
mod category;
mod category_table;
mod code_attributes;
mod element_table;
mod flow;
mod form;
mod isa;
mod isa_table;
mod kinds;
mod operands;
mod vocabulary;

pub use attributes::Attributes;
pub use category::Category;
pub use code_attributes::mnemonic_name;
pub use flow::Flow;
pub use form::{AddressMode, Bytes, Form, OperandKind, OperandKinds, is_masked};
pub use isa::isa_names;
pub use kinds::{BranchKind, Element, Encoding, MemoryAccess, Packing, Width};
pub use vocabulary::UnknownName;
