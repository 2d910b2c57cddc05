//! An edge of BOLT's control flow graph.

use crate::address::Svma;

/// Executions from one place to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoltEdge {
    /// The last instruction of a block; `None` in another module.
    pub from: Option<Svma>,
    /// The first instruction of a block; `None` in another module.
    pub to: Option<Svma>,
    /// How often, 1 at least.
    pub count: u64,
    /// How many of them were mispredicted.
    pub mispredicted: u64,
    /// How many were seen. The count differs where what flows into a block would not flow out of it, and is a whole number.
    pub seen: f64,
}
