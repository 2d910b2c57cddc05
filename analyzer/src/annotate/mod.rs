//! Functions with what is known of their code: counts of blocks, where branches went, loops, lines of the source.
//!
//! ```text
//! ranking     counted blocks -> functions, hottest first; those that were asked for
//! ways        a flow         -> executions of the ways into and out of blocks, within a module
//! function    both           -> AnnotatedFunction: blocks by address, their instructions and branches
//! loops       blocks, ways   -> natural loops, how they nest
//! source      DWARF          -> places in the source, what was inlined where
//! texts       files          -> the text of lines
//! ```

mod annotation;
mod function;
mod loops;
mod place;
mod ranking;
mod source;
mod texts;
mod ways;

pub use annotation::{Annotation, NoFunction, Query, Ranking, annotate};
pub use function::{AnnotatedBlock, AnnotatedFunction, AnnotatedInstruction, Branch, CountedLoop, Edge, Seen, Target};
pub use place::Place;
pub use ranking::Ranked;
pub use source::{Inlined, SourcePlace};
pub use texts::SourceTexts;
