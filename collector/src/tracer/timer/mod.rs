//! Bursts where neither perf events nor ptrace are to be had: agents that get into programs by their dynamic loader, and timers of CPU time
//! that start their bursts.
//!
//! ```text
//! preload_file   the shared object that programs load     environment of the command
//!                                                                   |
//! engine    <--- bell ------------------------------  agent: first signal of a process
//!   looks at /proc: what it is, what it has mapped
//!   it may take bursts  ------ entry --------------->  next signals
//! timed_bursts: slots -> samples <------------------  slots
//! processes: who takes part, as records; new mappings
//! census: children of fork, which have no timer; processes that have no agent
//! ```
//!
//! Nothing tells of forks, execs and mappings here: `/proc` is read.

mod census;
mod engine;
mod preload_file;
mod processes;
mod timed_bursts;

pub(crate) use engine::TimerEngine;
pub(crate) use preload_file::PreloadFile;
pub(crate) use timed_bursts::TimedBursts;
