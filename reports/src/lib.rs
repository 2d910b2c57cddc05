//! What reports on recordings are made of, whoever shows them: the command, or a data frame.
//!
//! ```text
//! kind, opening    which kind of file somebody named; recordings, archives, profiles of OpenTelemetry
//! models, cores    the rules that choose between the sources of counts; what code is taken to cost
//! folders          where what the user imported is kept
//! taxonomies       groups of instructions of one's own
//! mix/             the pivot: what may be asked, rows in their order, the numbers of each
//! blocks           rows of blocks
//! diff/            two profiles side by side
//! head, precision  what counts are made of, how good they are
//! lacks            what is missing, and what to do about it
//! arguments        names of what may be asked: each user has others
//! ```
//!
//! Errors are sentences for people. Nothing is printed here, and no process ends.
#![forbid(unsafe_code)]

mod arguments;
pub mod blocks;
pub mod cores;
pub mod diff;
mod filters;
pub mod folders;
pub mod head;
pub mod kind;
pub mod lacks;
pub mod left_out;
pub mod mix;
pub mod models;
pub mod nearest;
pub mod number;
mod opening;
mod opentelemetry;
mod precision;
mod sentence;
pub mod taxonomies;

pub use arguments::{Argument, Arguments};
pub use filters::{key_of_task, nothing_passes, passing, without_code};
pub use head::Head;
pub use kind::{Kind, Reader, Reads};
pub use opening::{Hint, is_recording, not_for_counts, open, open_recording, read_counts};
pub use opentelemetry::{recording_of, recordings_of_owners};
pub use precision::Precision;
pub use sentence::sentence;
