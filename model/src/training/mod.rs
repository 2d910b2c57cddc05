//! Makes models from labelled blocks.
//!
//! ```text
//! blocks of programs -> for each program: parameters chosen and a tree grown from the others' blocks, tested on its own
//!                    -> parameters chosen and a tree grown from all blocks: the model
//! ```
//! A tree is grown best split first; `linfa-trees` finds the split of each node. The same blocks give the same model, byte for byte.

mod digits;
mod grow;
mod labelled;
mod leave_one_out;
mod measure;
mod table;

pub use labelled::LabelledBlock;
pub use leave_one_out::{Search, Tested, Training, TrainingError, train};
pub use table::{TableError, columns, read_blocks, write_blocks};
