//! Calling contexts: which functions were active when code ran, as far as branch records show it.
//!
//! ```text
//! burst or stack -> streams -> shadow stack -> a tree of what this one shows       streams, code, walk
//! all of them, each by its weight -> one tree, from what ran to its callers        read, tree
//! the tree, and what the blocks of each function executed -> contexts              contexts
//! ```
//!
//! Contexts are as deep as a burst can see: it shows the calls that it makes, and the callers that it returns to.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod code;
mod contexts;
mod function;
mod read;
mod streams;
mod tree;
mod walk;

pub(crate) use code::CalledCode;
pub use contexts::{CallContext, CalledFunction, Calls};
pub use function::FunctionKey;
pub(crate) use read::{Spaces, Walks};
pub use tree::{CallerTree, TreeContext};
pub use walk::{Target, Transfer, Walk};
