//! From a running program to a recording.
//!
//! [`machine::Machine`] is what the machine offers, [`plan::Wishes`] what the user asks for; [`choice::choose`] makes of them the events
//! to record. [`session::Session`] records them: it opens the events on every CPU and thread, starts the command, and takes the rings'
//! records, in order of time, to a `perf.data` file. [`doctor`] explains what would be recorded, and what would give more.
#![deny(unsafe_code)]

pub mod branch_filter;
mod build_id;
pub mod catalogue;
pub mod choice;
mod command;
pub mod cpu_list;
pub mod doctor;
pub mod errno;
mod error;
pub mod event_name;
pub mod event_spec;
mod facts;
mod kernel;
mod kernel_image;
pub mod ladder;
mod live;
pub mod machine;
pub mod microarchitecture;
mod open;
mod output;
pub mod periods;
pub mod plan;
pub mod pmu;
mod process;
mod rate;
mod record_layout;
mod recorder;
pub mod request;
pub mod session;
mod setup;
pub mod simulated_pmu;
mod simulation;
mod stacks;
mod synthesize;
mod tally;
mod time_order;
pub mod tracer;
mod tracing;

pub use command::{CommandError, CommandStatus};
pub use error::RecordError;
pub use facts::{EventFacts, Facts};
pub use open::{KernelOpener, OpenError, Totals};
pub use output::OutputError;
pub use record_layout::BrokenRecord;
pub use recorder::{RecorderError, Stop};
pub use tally::Counts;
pub use tracer::simulation::{CountedInstruction, SimulationFacts, Truth};
