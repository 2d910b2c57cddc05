//! What the tracer and the simulator ask of the kernel: the seam between their decisions and the threads they decide about.
//!
//! [`LinuxKernel`](crate::tracer::kernel::linux::LinuxKernel) does it; in tests, a script does. Nothing here assumes that a thread is traced all
//! the time: a thread is seized, stopped, looked at, let run, and let go, each by a request of its own.

pub(crate) mod linux;
#[cfg(test)]
pub(crate) mod scripted;

use std::time::{Duration, Instant};

use lookahead::Page;
use perfdata::{Avma, EventAttr};

use crate::errno::Errno;
use crate::sys::process::Mapping;
use crate::sys::{Report, Server, SignalInfo, ThreadRegisters};

/// The kernel, as the thread that traces others sees it.
///
/// Requests fail with what the kernel says; `ESRCH` for a thread that is not there any more, or does not stand still where it has to.
pub(crate) trait Kernel: ThreadMemory + Processes {
    /// An event of a thread: its clock, or its breakpoint. It is closed when it is dropped.
    type Event: ThreadEvent;

    /// The time, for deadlines and waits; no CPU time.
    fn now(&self) -> Instant;
    /// CPU time of the calling thread.
    fn own_time(&self) -> Duration;
    /// CPU time of the calling thread's process, which also writes the recording.
    fn collector_time(&self) -> Duration;
    /// The id of the calling thread.
    fn own_thread(&self) -> i32;
    /// What the jitter of periods begins with: another number in each recording.
    fn seed(&self) -> u64;

    /// The next report of a thread that the calling thread traces, if there is one.
    fn next_report(&mut self) -> Option<(i32, Report)>;
    /// Waits, at most for `timeout`, until a thread has something to report or an event sends a signal: which, and what came with it.
    fn wait(&mut self, timeout: Duration) -> Option<(i32, SignalInfo)>;

    /// The calling thread becomes the tracer of `thread`, which goes on running. `options`: `PTRACE_O_*`.
    fn seize(&mut self, thread: i32, options: i32) -> Result<(), Errno>;
    /// Asks a thread to stop.
    fn interrupt(&mut self, thread: i32) -> Result<(), Errno>;
    /// Lets a stopped thread run, with a signal for it or 0.
    fn resume(&mut self, thread: i32, signal: i32) -> Result<(), Errno>;
    /// Lets a stopped thread execute one instruction, with a signal for it or 0.
    #[cfg(feature = "simulated-pmu")]
    fn single_step(&mut self, thread: i32, signal: i32) -> Result<(), Errno>;
    /// A thread that job control has stopped stays so.
    fn listen(&mut self, thread: i32) -> Result<(), Errno>;
    /// A stopped thread goes on untraced, with a signal for it or 0.
    fn detach(&mut self, thread: i32, signal: i32) -> Result<(), Errno>;
    /// Other `PTRACE_O_*` for a stopped thread.
    fn set_options(&mut self, thread: i32, options: i32) -> Result<(), Errno>;
    /// What came with an event of a stopped thread: the former id of one that called exec.
    fn event_message(&self, thread: i32) -> Result<u64, Errno>;
    /// What came with the signal a thread has stopped for.
    fn signal_info(&self, thread: i32) -> Result<SignalInfo, Errno>;
    /// The signals a stopped thread blocks: bit n - 1 for signal n.
    fn signal_mask(&self, thread: i32) -> Result<u64, Errno>;
    /// Lets one of [`SIGNALS`](crate::tracer::notice::SIGNALS) through to a stopped thread that an event of its own has sent and that waits for
    /// it, even if the thread blocks it. Returns whether there is one: the thread is to go on without a signal, and stops for that before it
    /// executes anything. From its next report on or when it is let go, it blocks again what
    /// it blocked.
    fn let_through(&mut self, thread: i32, is_of_event: &dyn Fn(SignalInfo) -> bool) -> bool;
    /// Threads that have not stopped for that yet. If another thread has made the program ignore the signal meanwhile, they do not.
    fn threads_let_through(&mut self) -> Vec<i32>;
    /// A thread is gone that has not; its id may be another's.
    fn forget_let_through(&mut self, thread: i32);
    /// A word of the `user_regs_struct` of a stopped thread; all bits set if it cannot be read.
    fn register(&self, thread: i32, offset: usize) -> u64;
    /// Changes such a word.
    fn set_register(&mut self, thread: i32, offset: usize, value: u64) -> Result<(), Errno>;
    /// All registers of a stopped thread; `ENOSYS` if it executes 32-bit code.
    fn registers(&mut self, thread: i32) -> Result<ThreadRegisters, Errno>;
    /// Gives a stopped thread, whose registers were the last to be read, these ones; those of vectors if `vector`.
    #[cfg(feature = "simulated-pmu")]
    fn set_registers(&mut self, thread: i32, registers: &lookahead::Registers, vector: bool) -> Result<(), Errno>;

    /// Opens an event of a thread, on whatever CPU it runs.
    fn open(&mut self, attr: &EventAttr, thread: i32) -> Result<Self::Event, Errno>;
}

/// The memory of processes. It can be read while they run.
pub(crate) trait ThreadMemory {
    /// Reads `bytes.len()` bytes; whether all could be read.
    fn read_memory(&self, process: i32, address: Avma, bytes: &mut [u8]) -> bool;
    /// Reads the pages at `addresses`, in order, up to the first that cannot be read. Returns how many.
    fn read_pages(&self, process: i32, addresses: &[Avma], pages: &mut [Page]) -> usize;
    /// Of the pages at ascending addresses, those that are in the process's page tables: reading them waits for nobody.
    fn present(&self, process: i32, addresses: &[Avma], present: &mut [bool]);
    /// Whether the kernel can put a page there without asking another process. It does so then.
    fn comes_alone(&self, process: i32, page: Avma) -> bool;
    /// Reads the page at `offset` of those through which the kernel shows its clock to every process; whether it could.
    fn read_clock_page(&self, offset: u64, page: &mut Page) -> bool;
    /// Writes pieces, each to its address. Fails with the first address that could not be written to.
    #[cfg(feature = "simulated-pmu")]
    fn write_memory(&mut self, process: i32, pieces: &[(Avma, &[u8])]) -> Result<(), Avma>;
}

/// What is known of processes and threads without stopping them. Those that have ended have nothing.
pub(crate) trait Processes {
    /// The threads of a process.
    fn threads(&self, process: i32) -> Vec<i32>;
    /// The process of a thread.
    fn process_of(&self, thread: i32) -> Option<i32>;
    /// CPU time of all threads of a process, those that have ended included. No thread is interrupted for that. A process that has ended
    /// has it until its parent has waited for it.
    fn cpu_time(&self, process: i32) -> Option<Duration>;
    /// The processes that a thread has started.
    fn children(&self, process: i32, thread: i32) -> Vec<i32>;
    /// The mappings of a thread's process, by ascending address.
    fn mappings(&self, thread: i32) -> Vec<Mapping>;
    /// Who serves a file that a process has mapped, where the kernel does not itself.
    fn server(&self, process: i32, map: &Mapping) -> Option<Server>;
    /// Offset and size of the section that describes restartable sequences (`rseq(2)`), in the file that a mapping is of.
    fn section_of_sequences(&self, process: i32, map: &Mapping) -> Option<(u64, usize)>;
    /// Signals the process of a thread has handlers for: bit n - 1 for signal n.
    fn signals_caught(&self, thread: i32) -> u64;
    /// Signals a thread blocks.
    fn signals_blocked(&self, thread: i32) -> u64;
    /// Signals that wait for a thread to take them, and those it blocks, at the same moment.
    fn signals_pending_and_blocked(&self, thread: i32) -> (u64, u64);
    /// Whether a thread has to take a signal before it executes anything.
    #[cfg(feature = "simulated-pmu")]
    fn has_signal_to_take(&self, thread: i32) -> bool;
    /// Whether a thread may be interrupted where it is now: it computes, or what it waits in is made again as if nothing had been.
    fn may_be_interrupted(&self, process: i32, thread: i32) -> bool;
    /// Whether a thread runs, or could, and does not wait in a system call.
    fn is_computing(&self, thread: i32) -> bool;
}

/// An event of a thread.
pub(crate) trait ThreadEvent {
    /// What its signals carry.
    fn number(&self) -> i32;
    /// Lets it overflow once; it stops counting then.
    fn once(&self) -> Result<(), Errno>;
    /// It counts no more until it is started again.
    fn disable(&self) -> Result<(), Errno>;
    /// The same, and no signal of it is on its way any more.
    fn silence(&self);
    /// Counts between two overflows, from now on.
    fn set_period(&self, period: u64) -> Result<(), Errno>;
    /// From now on its overflows send `signal` to `thread`.
    fn signal_to(&self, thread: i32, signal: i32) -> Result<(), Errno>;
    /// Moves a breakpoint, and starts it.
    fn modify(&self, attr: &EventAttr) -> Result<(), Errno>;
    /// Its count, and what its `read_format` adds.
    fn read(&self, words: &mut [u64]) -> Result<usize, Errno>;
}
