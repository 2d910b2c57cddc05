//! The pivot: what may be asked, rows in their order, the numbers of each, and what there is to say of them.

mod described;
pub mod nested;
pub mod numbers;
pub mod order;
mod query;
mod said;
pub mod unmatched;
mod wrong;

pub use described::{Asked, Described, Numbered};
pub use query::{Shape, filter, group_by, key};
pub use said::{bounds, is_of_code, lacks_code, precision, said, without_source};
pub use wrong::WrongShape;
