//! Programs that do to a tracer what is hard on one: each must run as if it were not recorded.
//!
//! ```text
//! cargo test --test torture                                       under the look-ahead tracer, as what runs already is
//! HBBP_TRACER=breakpoint cargo test --test torture                under the other one
//! HBBP_TRACER=agent cargo test --test torture                     under agents inside the programs
//! HBBP_TRACER=none cargo test --test torture                      recorded without a tracer: nothing is asked of bursts then
//! HBBP_TORTURE_OPTIONS='--depth 4000' cargo test --test torture   other options for the tracer, between spaces
//! HBBP_TORTURE_KILLS=200 cargo test --test torture killed         so many killed collectors; 20 without
//! HBBP_TORTURE_SECONDS=600 cargo test --test torture memory       so long recordings for what is said of memory; 5 without
//! ```
//!
//! The programs are the C files in `programs/`, compiled by `gcc` when needed. They check themselves: each prints one line known
//! beforehand, or what damage it found ([`programs`]). Every one runs alone first and must be right, and then under `hbbp record` with stops as
//! frequent as can be had ([`tracer`]): same output, same exit status, nothing left behind, neither running, nor stopped, nor as a
//! zombie ([`kept`]), and a whole recording with bursts in it ([`trial`]).
//!
//! These tests need perf events (software events suffice), the right to trace, and gcc. What is missing is said, as `SKIPPED`. No test
//! measures time; only a program that waits in vain gives up, after seconds.

mod contents;
mod kept;
#[path = "../support/place.rs"]
mod place;
mod programs;
mod running;
mod status;
mod tracer;
mod trial;

mod attaching;
mod blocking;
mod code;
mod kills;
mod memory;
mod privileges;
mod processes;
mod sequences;
mod signals;
mod stopping;
mod threads;
