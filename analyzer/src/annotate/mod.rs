//! Functions with what is known of their code: counts of blocks, where branches went, loops, lines of the source.
//!
//! ```text
//! ranking     counted blocks -> functions, hottest first; those that were asked for
//! time        samples        -> the part of the time that functions took
//! ways        a flow         -> executions of the ways into and out of blocks, within a module
//! function    both           -> AnnotatedFunction: blocks by address, their instructions and branches
//! graph       blocks, ways   -> the ways within a function, how often control came to it
//! loops       blocks, ways   -> natural loops, how they nest
//! call_table  ways           -> how often each function was called
//! loop_table  all functions  -> the innermost loop of each block
//! source      DWARF          -> places in the source, what was inlined where
//! texts       files          -> the text of lines
//! ```

mod annotation;
mod call_table;
mod function;
mod graph;
mod loop_table;
mod loops;
mod place;
mod ranking;
mod source;
mod texts;
mod time;
mod ways;

pub use annotation::{Annotation, NoFunction, Query, Ranking, annotate};
pub(crate) use call_table::calls_of_functions;
pub(crate) use function::formatter;
pub use function::{AnnotatedBlock, AnnotatedFunction, AnnotatedInstruction, Branch, CountedLoop, Edge, Seen, Target};
pub use loop_table::{LoopPlace, LoopTable};
pub use place::Place;
pub(crate) use place::{Places, in_function};
pub use ranking::Ranked;
pub use source::{Inlined, SourcePlace};
pub use texts::{SourceFiles, SourceTexts};
pub use time::{TimeShare, Times};
