//! Calling contexts: which functions were active when code ran, as far as branch records show it.
//!
//! ```text
//! burst or stack -> streams -> shadow stack -> a tree of what this one shows       streams, code, walk
//! all of them, each by its weight -> one tree, from what ran to its callers        read, tree
//! the tree, and what the blocks of each function executed -> contexts              contexts
//! contexts, with what was inlined into the functions that ran                      inlined
//! ```
//!
//! Contexts are as deep as a burst can see: it shows the calls that it makes, and the callers that it returns to.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod code;
mod contexts;
mod function;
mod inlined;
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

/// Two numbers that differ in few low bits, as one of which all bits differ: what a hash table wants.
fn fold(one: u64, other: u64) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xc2b2_ae3d_27d4_eb4f;
    let product = u128::from(one ^ A) * u128::from(other ^ B);
    product as u64 ^ (product >> 64) as u64
}
