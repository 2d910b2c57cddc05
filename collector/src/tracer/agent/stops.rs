//! Threads that are asked to stop, one of a process at a time.
//!
//! A thread that calls execve(2) waits until all others of its process are gone, and one that is traced is gone when its tracer has heard of
//! it. Who begins to trace the one that waits, waits for it (`cred_guard_mutex` in the kernel): a tracer of two threads of a process
//! could wait for itself for ever.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use crate::errno::Errno;
use crate::tracer::agent::tree::Watched;
use crate::tracer::kernel::Kernel;
use crate::tracer::notice::Notice;

/// The clock of a thread that is asked to stop overflows after so many ns of its CPU time at least.
pub(crate) const AT_ONCE: u64 = 10_000;

/// What a thread is stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its process gets the agent.
    Agent,
    /// It has a burst.
    Visit,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    thread: i32,
    purpose: Purpose,
    since: Instant,
}

/// A thread that was asked to stop at this time, and did not yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub(crate) process: i32,
    pub(crate) thread: i32,
    pub(crate) since: Instant,
    /// Others of its process wait for their turn.
    pub(crate) keeps_others: bool,
}

/// The thread of each process that is traced now, and those that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    asked: HashMap<i32, Asked>,
    waiting: HashMap<i32, VecDeque<i32>>,
}

impl Stops {
    /// Whether a thread of the process is asked already.
    pub(crate) fn is_under_way(&self, process: i32) -> bool {
        self.asked.contains_key(&process)
    }

    /// A thread is to be asked when the one that is traced has been let go.
    pub(crate) fn wait(&mut self, process: i32, thread: i32) {
        self.waiting.entry(process).or_default().push_back(thread);
    }

    /// A thread whose turn it is.
    pub(crate) fn next_waiting(&mut self, process: i32) -> Option<i32> {
        if self.is_under_way(process) {
            return None;
        }
        let next = self.waiting.get_mut(&process)?.pop_front();
        if next.is_none() {
            self.waiting.remove(&process);
        }
        next
    }

    /// None waits any more.
    pub(crate) fn forget_waiting(&mut self, process: i32) {
        self.waiting.remove(&process);
    }

    /// Asks a thread to stop when it has computed for `delay` more ns: its clock sends it the signal of `notice` where it executes its own code,
    /// so that no system call is interrupted. One that blocks the signals has to be interrupted, at once.
    ///
    /// # Errors
    /// What the kernel says: the thread is gone, or may not be traced.
    pub(crate) fn ask(
        &mut self,
        thread: i32,
        watched: &mut Watched,
        purpose: Purpose,
        (notice, delay): (Notice, u64),
        kernel: &mut impl Kernel,
    ) -> Result<(), Errno> {
        kernel.seize(thread, 0)?;
        self.asked.insert(watched.process, Asked { thread, purpose, since: kernel.now() });
        let clock = &watched.clock;
        let asked = match notice {
            Notice::Signal(signal) => clock
                .disable()
                .and_then(|()| clock.signal_to(thread, signal))
                .and_then(|()| clock.set_period(delay))
                .and_then(|()| watched.start_once()),
            Notice::Interrupt => kernel.interrupt(thread),
        };
        // One that has called exec meanwhile has the id of its process, and no clock.
        asked.or_else(|_| kernel.interrupt(watched.process))
    }

    /// A thread has stopped. Returns what for; `None` if it was not asked, or has another program now and another id.
    pub(crate) fn answered(&mut self, process: i32, thread: i32) -> Option<Purpose> {
        self.asked.remove(&process).filter(|asked| asked.thread == thread).map(|asked| asked.purpose)
    }

    /// A thread that was stopped stays traced: it is on its way to a breakpoint, or about to end.
    pub(crate) fn stays(&mut self, process: i32, thread: i32, now: Instant) {
        self.asked.insert(process, Asked { thread, purpose: Purpose::Visit, since: now });
    }

    /// None of the process is traced any more.
    pub(crate) fn forget(&mut self, process: i32) {
        self.asked.remove(&process);
    }

    /// A thread is gone.
    pub(crate) fn ended(&mut self, process: i32, thread: i32) {
        if self.asked.get(&process).is_some_and(|asked| asked.thread == thread) {
            self.asked.remove(&process);
        }
    }

    /// The processes and threads that were asked, and did not stop yet.
    pub(crate) fn asked(&self) -> Vec<Asking> {
        let late = |(&process, asked): (&i32, &Asked)| Asking {
            process,
            thread: asked.thread,
            since: asked.since,
            keeps_others: self.waiting.get(&process).is_some_and(|waiting| !waiting.is_empty()),
        };
        self.asked.iter().map(late).collect()
    }

    /// The process of a thread that was asked.
    pub(crate) fn process_of(&self, thread: i32) -> Option<i32> {
        self.asked.iter().find(|(_, asked)| asked.thread == thread).map(|(process, _)| *process)
    }
}
