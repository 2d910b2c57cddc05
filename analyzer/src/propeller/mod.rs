//! The layout of code for clang and lld (Propeller): which blocks of a function lie together, and which functions after each other.
//!
//! ```text
//! address_map  .llvm_bb_addr_map -> the compiler's blocks, by number
//! graph        a flow -> executions of these blocks, of the ways between them, of calls
//! ext_tsp      blocks that ran -> their order in a function
//! call_chains  functions that ran -> their order
//! names        symbols -> what the compiler and the linker call functions
//! profile      all of it
//! ```

mod address_map;
mod call_chains;
mod ext_tsp;
mod graph;
mod names;
mod profile;

pub use address_map::AddressMapError;
pub use profile::{LaidOutFunction, PropellerError, PropellerProfile};
