//! From a running program to a recording.
//!
//! [`machine::Machine`] is what the machine offers, [`plan::Options`] what the user asks for; [`plan::choice::choose`] makes of them the events
//! to record. [`session::Session`] records them: it opens the events on every CPU and thread, starts the command, and takes the rings'
//! records, in order of time, to a `perf.data` file. [`doctor`] explains what would be recorded, and what would give more.
#![deny(unsafe_code)]

pub mod calibration;
mod control;
pub mod doctor;
pub mod errno;
mod error;
pub mod machine;
mod named;
pub mod plan;
pub mod session;
#[cfg_attr(not(feature = "simulated-pmu"), path = "simulation/absent.rs")]
pub mod simulation;
mod sys;
pub mod tracer;

pub use error::RecordError;
pub use named::processes_named;
pub use session::command::find_program;
pub use session::command_outcome::{CommandError, CommandStatus};
pub use session::limits::LimitError;
pub use session::open::{KernelOpener, OpenError, Totals};
pub use session::output::{OutputError, is_standard_output};
pub use session::record_layout::BrokenRecord;
pub use session::recorder::{RecorderError, Stop};
pub use session::tally::Counts;
pub use simulation::SimulationStatistics;
#[cfg(feature = "simulated-pmu")]
pub use simulation::Truth;
pub use sys::control_group::{ControlGroup, ControlGroupError};
pub use sys::{
    allocate_in_large_steps, children_time, ignore_file_size_signal, ignore_interrupts, raise_limits, with_inherited,
};
