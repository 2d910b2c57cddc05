//! Instruction mixes: block counts times instructions, as a pivot table.

mod dimension;
mod filter;
mod pivot;

pub use dimension::{Dimension, UnknownDimension};
pub use filter::{Filter, FilterError};
pub use pivot::{Cell, Mix, MixError, Query, UNREADABLE, Uncertainty, mix};
