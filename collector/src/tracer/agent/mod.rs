//! Bursts that the sampled thread takes itself, by an agent in its process; and bursts of threads that are traced for them and not in between,
//! where there is no agent.
//!
//! ```text
//! sideband: exec, fork, exit          clocks of threads
//!            \                         |  until the agent is in: a signal to the tracer
//!             +--> engine <------------+  after that: a signal to the thread itself, whose handler is the agent's
//!                    | injection                        |
//!                    v                                  v
//!              the agent is in the process  --> slots --> collecting --> samples
//! ```
//!
//! A process gets the agent when one of its threads has run for a while, by a single stop of that thread (`ptrace`), which makes it map the
//! image and install a handler. After that nothing of it is traced: the kernel sends the thread the clock's signal, one on which nothing
//! happens by default, so that one that comes late does no harm. A process that runs for a shorter time than its clock's
//! period is stopped with the probability that its time gives it.
//!
//! Where the agent cannot be, or the signal does not come through, the clock goes on telling the tracer, which stops the thread for each of its
//! bursts and lets it go again ([`visits`]).

mod attention;
pub(crate) mod collecting;
mod cpu_clocks;
pub(crate) mod engine;
mod filter_makers;
pub(crate) mod injection;
pub(crate) mod obstacle;
pub(crate) mod quiet;
mod removal;
mod residents;
pub(crate) mod searched_files;
mod sideband;
mod stops;
mod tree;
mod vdso;
mod visits;
