//! Instruction mixes: block counts times instructions, as a pivot table.

mod dimension;
mod filter;
mod function_name;
mod pivot;

pub use dimension::{Dimension, UnknownDimension};
pub use filter::{Filter, FilterError, Unmatched};
pub use function_name::bare_names;
pub use pivot::{Cell, Mix, MixError, Query, UNREADABLE, Uncertainty, mix};
