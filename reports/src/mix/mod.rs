//! The pivot: what may be asked, rows in their order, the numbers of each, and what there is to say of them.

mod more_numbers;
pub mod nested;
pub mod numbers;
pub mod order;
mod query;
mod said;
pub mod unmatched;

pub use more_numbers::{Asked, Numbered};
pub use query::{Shape, WrongShape, group_by, key};
pub use said::{bounds, precision, said, without_code, without_source};
