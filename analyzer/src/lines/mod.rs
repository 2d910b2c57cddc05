//! From addresses to source: which line of which function, inlined into which others.
//!
//! ```text
//! sections   .debug_* of the file, its debug file, .dwo, .dwp, dwz     bytes
//! units      headers and address ranges of all units                   which units were hit
//! unit       of a unit that was hit:
//!   scopes     functions and what was inlined into them                address -> scope
//!   rows       the line program                                        address -> file, line, discriminator
//! index      both together, of all units                               Span: addresses with one scope and one position
//! ```
//!
//! Only functions that were hit are kept. Debug information is hostile input: what is damaged is left out and told in
//! [`SourceIndex::notes`], nothing is read more often than a file's size allows, and nothing recurses.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod companions;
mod damage;
mod discriminator;
mod disjoint;
mod files;
mod functions;
mod index;
mod missing;
mod position;
mod ranges;
mod rows;
mod scopes;
mod sections;
mod short_names;
mod split;
mod strings;
mod unit;
mod unit_names;
mod units;

pub use companions::Companions;
pub(crate) use companions::{has_package, is_in_more_files};
pub use discriminator::{Discriminator, Encoding};
pub use index::{SourceIndex, joined};
pub use position::{FileId, Position, Scope, ScopeId, SourceFunction, Span};
pub(crate) use short_names::short_names;
pub(crate) use unit_names::unit_names;
