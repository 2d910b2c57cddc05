//! Instruction mixes: block counts times instructions, as a pivot table.

mod branches;
mod calls;
mod comparison;
mod composition;
mod dimension;
mod filter;
mod function_name;
mod key;
mod kind;
mod operations;
mod pieces;
mod pivot;
mod places;
mod source;
mod tasks;
mod taxonomy;
mod timed;
mod values;

pub use branches::Taken;
pub use calls::Calls;
pub use comparison::ComparisonError;
pub use composition::{Attribute, AttributeValue, Composition};
pub use dimension::Dimension;
pub use filter::{Filter, FilterError, Unmatched};
pub use function_name::bare_names;
pub use key::{Key, UnknownKey};
pub use operations::{ExecutedOperations, Operations};
pub(crate) use pivot::mix_with_loops;
pub use pivot::{Cell, Mix, MixError, NO_LOOP, Query, Sum, UNREADABLE, Uncertainty, mix};
pub use places::Places;
pub use source::NO_SOURCE;
pub use tasks::{TaskBlock, Tasks};
pub use taxonomy::{Group, Problem, Taxonomies, Taxonomy, TaxonomyError};
pub use timed::Timed;
pub use values::Values;
