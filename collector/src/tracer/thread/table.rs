//! Which threads are traced: from their clone, or from when they are found, to their end.
//!
//! A traced thread stops at every clone, fork and signal of its own. Where such stops take more than the budget, the tracer backs
//! off: it leaves out what is new, and lets go threads that get signals; when there is room again it looks for what it missed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use perfdata::EventAttr;

use crate::errno::Errno;
use crate::sys::SignalInfo;
use crate::tracer::burst::ThreadId;
use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::kernel::{Kernel, ThreadEvent};
use crate::tracer::notice::SIGNAL_MASK;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::Thread;
use crate::tracer::thread::event::Stop;

/// Looking for what was left out takes this small a share of the time, but it is done
const SHARE: u32 = 2000;
/// so often at least.
const LONGEST_WITHOUT_LOOKING: Duration = Duration::from_secs(5);

/// A process and how many of its threads are traced.
pub(crate) struct Process {
    pub(crate) space: AddressSpace,
    threads: usize,
    /// Signals it has handlers for, bit n - 1 for signal n.
    pub(crate) caught: u64,
    bursts: u32,
}

impl Process {
    /// A burst of one of its threads begins.
    pub(crate) fn count_burst(&mut self, pid: i32, kernel: &impl Kernel) {
        self.bursts += 1;
        // Programs begin by choosing their handlers.
        if self.bursts.is_power_of_two() || self.bursts.is_multiple_of(64) {
            self.caught = kernel.signals_caught(pid);
        }
    }

    /// It has another program now.
    pub(crate) fn exec(&mut self, pid: i32, kernel: &impl Kernel) {
        self.space.forget();
        self.caught = kernel.signals_caught(pid);
    }
}

/// The threads and processes that are traced.
pub(crate) struct ThreadTable<E> {
    threads: HashMap<i32, Thread<E>>,
    processes: HashMap<i32, Process>,
    missing: Missing,
    clock: EventAttr,
    /// New threads and processes are traced, too.
    pub(crate) follows: bool,
}

/// Processes of which threads may be missing.
#[derive(Debug, Default)]
struct Missing {
    processes: HashSet<i32>,
    /// When to look for them again.
    next: Option<Instant>,
}

impl<E: ThreadEvent> ThreadTable<E> {
    /// `clock`: the event that starts bursts.
    pub(crate) fn new(clock: EventAttr, follows: bool) -> Self {
        Self { threads: HashMap::new(), processes: HashMap::new(), missing: Missing::default(), clock, follows }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.threads.len()
    }

    pub(crate) fn contains(&self, thread: i32) -> bool {
        self.threads.contains_key(&thread)
    }

    pub(crate) fn get(&self, thread: i32) -> Option<&Thread<E>> {
        self.threads.get(&thread)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Thread<E>> {
        self.threads.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Thread<E>> {
        self.threads.values_mut()
    }

    /// The ids of the threads for which `which` holds, ascending.
    pub(crate) fn ids(&self, which: impl Fn(&Thread<E>) -> bool) -> Vec<i32> {
        let mut ids: Vec<i32> =
            self.threads.values().filter(|thread| which(thread)).map(|thread| thread.id.tid).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn process(&mut self, pid: i32) -> Option<&mut Process> {
        self.processes.get_mut(&pid)
    }

    /// Takes a thread out while something is done with it; it still counts as one of its process.
    pub(crate) fn take(&mut self, thread: i32) -> Option<Thread<E>> {
        self.threads.remove(&thread)
    }

    /// Puts it back, under the id it has now.
    pub(crate) fn put(&mut self, thread: Thread<E>) {
        self.threads.insert(thread.id.tid, thread);
    }

    /// A thread that was taken out does not come back.
    pub(crate) fn gone(&mut self, pid: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads -= 1;
            if process.threads == 0 {
                self.processes.remove(&pid);
            }
        }
    }

    /// Signals that the process of a thread has handlers for.
    pub(crate) fn caught(&self, thread: &Thread<E>) -> u64 {
        self.processes.get(&thread.id.pid).map_or(0, |process| process.caught)
    }

    /// Signals that wait for a thread, that may be of its events, and that the program could get: it has a handler, or the thread blocks them,
    /// perhaps to wait for them (signalfd(2), sigwaitinfo(2)). And the signals that it blocks.
    pub(crate) fn waiting_signals(&self, thread: &Thread<E>, kernel: &impl Kernel) -> (u64, u64) {
        let (pending, blocked) = kernel.signals_pending_and_blocked(thread.id.tid);
        (pending & SIGNAL_MASK & (self.caught(thread) | blocked), blocked)
    }

    /// Looks which signals the processes have handlers for now.
    pub(crate) fn look_at_handlers(&mut self, kernel: &impl Kernel) {
        for (&pid, process) in &mut self.processes {
            process.caught = kernel.signals_caught(pid);
        }
    }

    /// The thread whose clock has sent a signal.
    pub(crate) fn clock_owner(&self, info: SignalInfo) -> Option<i32> {
        self.threads.values().find(|thread| thread.owner_of(info) == Some(Stop::Clock)).map(|thread| thread.id.tid)
    }

    /// `PTRACE_O_*` of a thread that tells of new ones, or of one that does not.
    pub(crate) fn options(&self, tells_of_new: bool) -> i32 {
        let new = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
        libc::PTRACE_O_TRACEEXEC | if tells_of_new && self.follows { new } else { 0 }
    }

    /// Becomes the tracer of a thread, of this process if that is known, that goes on running. Returns whether it is traced now; `false`
    /// if it has ended.
    ///
    /// # Errors
    /// Why it cannot be traced.
    pub(crate) fn seize(
        &mut self,
        thread: i32,
        process: Option<i32>,
        kernel: &mut impl Kernel<Event = E>,
        statistics: &mut TracerStatistics,
    ) -> Result<bool, Errno> {
        match kernel.seize(thread, self.options(true)) {
            Ok(()) => Ok(self.add(thread, process, kernel, statistics)),
            Err(Errno::ESRCH) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Enters a thread that is traced already. Returns whether it is in the table.
    pub(crate) fn add(
        &mut self,
        tid: i32,
        process: Option<i32>,
        kernel: &mut impl Kernel<Event = E>,
        statistics: &mut TracerStatistics,
    ) -> bool {
        if self.contains(tid) {
            return true;
        }
        let Some(pid) = process.or_else(|| kernel.process_of(tid)) else { return false };
        let Ok(thread) = Thread::new(ThreadId { pid, tid }, &self.clock, kernel) else {
            TracerStatistics::count(&mut statistics.ends, "no event could be opened on a thread");
            return false;
        };
        let process = self.processes.entry(pid).or_insert_with(|| {
            statistics.processes += 1;
            Process { space: AddressSpace::new(pid), threads: 0, caught: kernel.signals_caught(pid), bursts: 0 }
        });
        process.threads += 1;
        statistics.threads += 1;
        self.threads.insert(tid, thread);
        true
    }

    /// Threads of the process may be there that are not traced.
    pub(crate) fn misses_threads_of(&mut self, pid: i32) {
        self.missing.processes.insert(pid);
    }

    /// Becomes the tracer of those that are not traced yet.
    fn seize_new(&mut self, ids: &[i32], kernel: &mut impl Kernel<Event = E>, statistics: &mut TracerStatistics) {
        for &tid in ids {
            if !self.contains(tid) {
                // Refused, it may have been started by a traced one just now.
                let _ = self.seize(tid, None, kernel, statistics);
            }
        }
    }

    /// Looks for threads and processes that were left out, if that is due. Returns whether it did.
    pub(crate) fn find_missing(
        &mut self,
        kernel: &mut impl Kernel<Event = E>,
        statistics: &mut TracerStatistics,
    ) -> bool {
        let now = kernel.now();
        let is_due = self.missing.next.is_none_or(|next| now >= next);
        if self.missing.processes.is_empty() || !is_due {
            return false;
        }
        let began = kernel.own_time();
        let pids: Vec<i32> = self.missing.processes.drain().collect();
        for pid in pids {
            let all = kernel.threads(pid);
            let new_processes: Vec<i32> = all.iter().flat_map(|&tid| kernel.children(pid, tid)).collect();
            self.seize_new(&all, kernel, statistics);
            // Its threads that do not tell of new ones will tell again at their next stop; until then there may be more.
            if self.threads.values().any(|thread| thread.id.pid == pid && !thread.state.tells_of_new) {
                self.missing.processes.insert(pid);
            }
            for child in new_processes {
                if !self.processes.contains_key(&child) {
                    self.seize_new(&kernel.threads(child), kernel, statistics);
                    self.missing.processes.insert(child);
                }
            }
        }
        let took = kernel.own_time().saturating_sub(began);
        self.missing.next = Some(now + (took * SHARE).min(LONGEST_WITHOUT_LOOKING));
        true
    }
}
