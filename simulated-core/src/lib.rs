//! How many cycles a path of instructions takes on a core that executes out of order.
//!
//! What is simulated is what decides how fast one loop is against another: which branches are predicted, which instructions wait for which, for
//! a unit, for room in the window, and for data that is far away. Only ratios of the cycles matter.
//!
//! ```text
//! CPUID of the recording -> Microarchitecture -> Core: widths, latencies, caches (tables/)
//!                                                  |
//! instruction -> Kind -> Operation <---------------+
//!                           \-> Predictor -> Pipeline -> cycles
//! ```

#![forbid(unsafe_code)]

mod core;
mod execution;
mod kind;
mod microarchitecture;
mod operation;
mod pipeline;
mod predictor;
mod ready;
mod tables;
mod wait;
mod wrong_path;

pub use crate::core::{Core, Level, Measured, Time, Times, Unit, Units};
pub use crate::kind::Kind;
pub use crate::microarchitecture::Microarchitecture;
pub use crate::operation::{Flow, Operand, Operation};
pub use crate::pipeline::Pipeline;
pub use crate::predictor::{Outcome, Predictor};
pub use crate::wait::{MEMORY_LINE, Wait};
