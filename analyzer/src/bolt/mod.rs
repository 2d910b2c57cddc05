//! Code as BOLT sees it: its functions, and executions of the edges between its blocks.
//!
//! ```text
//! functions   symbols and unwind entries -> functions by BOLT's names
//! edges       a flow -> executions of edges: taken branches, fall-throughs
//! balance     what flows into a block flows out of it
//! ```

mod balance;
mod edge;
mod edges;
mod functions;

pub use edge::BoltEdge;
pub use edges::bolt_edges;
pub use functions::{BoltFunction, BoltFunctions};
