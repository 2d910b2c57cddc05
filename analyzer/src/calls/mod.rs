//! Calling contexts: which functions were active when code ran, as far as branch records show it.
//!
//! ```text
//! burst or stack -> streams (`walks/`) -> shadow stack -> a tree of what this one shows    walk
//! all of them, each by its weight -> one tree, from what ran to its callers                walker, tree
//! the tree, and what the blocks of each function executed -> contexts                      contexts
//! LBR call stacks -> the same tree, by periods of samples                                  call_stacks
//! contexts, with what was inlined into the functions that ran                              inlined
//! ```
//!
//! Contexts are as deep as a burst can see: it shows the calls that it makes, and the callers that it returns to.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod call_stacks;
mod contexts;
mod inlined;
mod tree;
mod walk;
mod walker;

pub use crate::walks::{FunctionKey, Target, Transfer};
pub(crate) use call_stacks::{CallStackWalker, NamedCode};
pub use contexts::{CallContext, CalledFunction, Calls};
pub use tree::{CallerTree, TreeContext};
pub use walk::Walk;
pub(crate) use walker::CallWalker;
