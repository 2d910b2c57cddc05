//! The third reading, where one is asked for: each burst or stack once more, from its oldest branch to its newest.
//!
//! ```text
//! samples -> bursts and stacks, what each weighs       read
//! branches -> streams: the code of each, its end       streams, code, transfer
//! their ends -> which functions are active             shadow_stack
//! what is told by what came before it -> one tree      tree
//! ```
//!
//! The second reading adds up streams, and knows nothing of their order. What the order tells is found here: calling contexts (`calls/`),
//! paths, trips of loops and cycles (`paths/`).

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod code;
mod function;
mod read;
mod shadow_stack;
mod streams;
mod transfer;
mod tree;

pub(crate) use code::{BlockKey, Part, WalkedCode};
pub use function::FunctionKey;
pub(crate) use read::{Reading, Spaces, Walked, WalkedStack, Walker};
pub(crate) use shadow_stack::{Frames, ShadowStack};
pub(crate) use streams::{Known, Space, SpaceId, Streams};
pub use transfer::{Target, Transfer};
pub(crate) use tree::{SuffixTree, TreeKey, TreeSum};

/// Two numbers that differ in few low bits, as one of which all bits differ: what a hash table wants.
pub(crate) fn fold(one: u64, other: u64) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xc2b2_ae3d_27d4_eb4f;
    let product = u128::from(one ^ A) * u128::from(other ^ B);
    product as u64 ^ (product >> 64) as u64
}
