//! What runs inside a program, in the handler of the clock's signal.
//!
//! ```text
//! entry     the handler: a context of its own (stack, thread-local storage, heap), and back
//! burst     registers of the signal frame -> lookahead -> a slot
//! own       the program's memory, where it is; the first touch of a page is a probe
//! faults    handlers of SIGSEGV, SIGBUS, SIGFPE and SIGILL while bursts run
//! follow    on after a system call
//! check     the thread executes a copy of the burst's path, and what it leaves is compared
//! timer     signals of a timer in place of a clock's: whether a burst is due, when the next one comes
//! programs  signals that are not the agent's: the program's handlers
//! ```
//!
//! All signals but those four are blocked while a burst runs. The only waits are for handlers that are being installed, some microseconds; no function of
//! the program's libraries is called.

pub(crate) mod burst;
pub(crate) mod check;
pub(crate) mod context;
pub(crate) mod entry;
pub(crate) mod faults;
pub(crate) mod follow;
pub(crate) mod frame;
pub(crate) mod heap;
pub(crate) mod own;
pub(crate) mod programs;
pub(crate) mod system;
pub(crate) mod timer;
