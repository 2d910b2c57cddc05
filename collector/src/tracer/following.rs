//! Which threads are traced: from their clone, or from when they are found, to their end.
//!
//! A traced thread stops at every clone, fork and signal of its own. Where such stops take more than the budget, the tracer backs
//! off: it leaves out what is new, and lets go threads that get signals; when there is room again it looks for what it missed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::errno::Errno;
use crate::sys::process::{children, group_and_parent, signals_caught, threads};
use crate::sys::{detach, event_message, seize, set_options};
use crate::tracer::AttachError;
use crate::tracer::address_space::AddressSpace;
use crate::tracer::burst::ThreadId;
use crate::tracer::engine::{Engine, Process};
use crate::tracer::own_time::own_time;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::Thread;

/// Looking for what was left out takes this small a share of the time, but it is done
const SHARE: u32 = 2000;
/// so often at least.
const LONGEST_WITHOUT_LOOKING: Duration = Duration::from_secs(5);

/// Processes of which threads may be missing.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    processes: HashSet<i32>,
    /// When to look for them again.
    next: Option<Instant>,
}

impl Engine {
    /// Becomes the tracer of all threads of these processes, or of these threads.
    pub(crate) fn attach(&mut self, ids: &[u32], whole_processes: bool) -> Result<(), AttachError> {
        let mut refused = None;
        for &id in ids {
            let all = if whole_processes { threads(id) } else { vec![id] };
            all.into_iter().for_each(|tid| self.cpu_time.add(tid as i32));
            // Threads that start meanwhile are found in a further round, or by their clone.
            loop {
                let all = if whole_processes { threads(id) } else { vec![id] };
                let (found, error) = self.seize_new(&all);
                refused = refused.or(error);
                if !found || !whole_processes {
                    break;
                }
            }
        }
        match refused {
            Some(error) if self.threads.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// Becomes the tracer of those that are not traced yet. Returns whether there were any, and what kept it from one.
    fn seize_new(&mut self, ids: &[u32]) -> (bool, Option<AttachError>) {
        let (mut found, mut refused) = (false, None);
        for tid in ids.iter().map(|&id| id as i32) {
            if self.threads.contains_key(&tid) {
                continue;
            }
            match seize(tid, self.options(true)) {
                Ok(()) => {
                    found = true;
                    self.add(tid);
                }
                Err(Errno::ESRCH) => {}
                // It may have been started by a traced one just now.
                Err(errno) => refused = refused.or(Some(AttachError { thread: tid, errno })),
            }
        }
        (found, refused)
    }

    fn options(&self, follow: bool) -> i32 {
        let new = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
        libc::PTRACE_O_TRACEEXEC | if follow && self.settings.inherit { new } else { 0 }
    }

    /// A thread has started another. If there are too many of those, the further ones are left out for now.
    pub(crate) fn started_another(&mut self, tid: i32) {
        if self.governor.exceeded()
            && let Some(thread) = self.threads.get_mut(&tid)
        {
            thread.follows = false;
            let pid = thread.id.pid;
            self.missing.processes.insert(pid);
            let _ = set_options(tid, self.options(false));
        }
    }

    /// A stopped thread may tell of new ones again.
    pub(crate) fn follow_again(&mut self, tid: i32) {
        let options = self.options(true);
        let has_room = self.governor.has_room();
        if let Some(thread) = self.threads.get_mut(&tid).filter(|thread| !thread.follows && has_room) {
            thread.follows = set_options(tid, options).is_ok();
        }
    }

    /// A thread is about to get a signal of the program's. If there are too many of those, it goes on untraced. Returns whether it does.
    pub(crate) fn let_go(&mut self, tid: i32, signal: i32) -> bool {
        if !self.governor.exceeded() || !self.settings.inherit {
            return false;
        }
        if let Some(thread) = self.threads.get(&tid) {
            let _ = thread.clock.disable();
            thread.unbreak();
        }
        if detach(tid, signal).is_err() {
            return false;
        }
        self.statistics.backed_off += 1;
        if let Some(thread) = self.threads.get(&tid) {
            self.missing.processes.insert(thread.id.pid);
        }
        self.remove(tid);
        true
    }

    /// Looks for threads and processes that were left out.
    pub(crate) fn find_missing(&mut self) {
        let now = Instant::now();
        let is_due = self.missing.next.is_none_or(|next| now >= next);
        if self.missing.processes.is_empty() || !is_due || !self.governor.has_room() {
            return;
        }
        let began = own_time();
        let pids: Vec<i32> = self.missing.processes.drain().collect();
        for pid in pids {
            let all = threads(pid as u32);
            let new_processes: Vec<u32> = all.iter().flat_map(|&tid| children(pid as u32, tid)).collect();
            self.seize_new(&all);
            // Its threads that do not tell of new ones will tell again at their next stop; until then there may be more.
            if self.threads.values().any(|thread| thread.id.pid == pid && !thread.follows) {
                self.missing.processes.insert(pid);
            }
            for child in new_processes {
                if !self.processes.contains_key(&(child as i32)) {
                    self.seize_new(&threads(child));
                    self.missing.processes.insert(child as i32);
                }
            }
        }
        if self.running {
            let idle: Vec<i32> = self.threads.values().filter(|it| it.is_new()).map(|it| it.id.tid).collect();
            for tid in idle {
                self.with_thread(tid, |engine, thread| engine.arm(thread));
            }
        }
        let took = own_time().saturating_sub(began);
        self.missing.next = Some(now + (took * SHARE).min(LONGEST_WITHOUT_LOOKING));
    }

    pub(crate) fn add(&mut self, tid: i32) -> bool {
        if self.threads.contains_key(&tid) {
            return true;
        }
        let Some((pid, _)) = group_and_parent(tid as u32) else { return false };
        let Ok(thread) = Thread::new(ThreadId { pid: pid as i32, tid }, &self.clock) else {
            TracerStatistics::count(&mut self.statistics.ends, "no event could be opened on a thread");
            return false;
        };
        let process = self.processes.entry(pid as i32).or_insert_with(|| {
            self.statistics.processes += 1;
            Process { space: AddressSpace::new(pid as i32), threads: 0, caught: signals_caught(pid), bursts: 0 }
        });
        process.threads += 1;
        self.statistics.threads += 1;
        self.threads.insert(tid, thread);
        true
    }

    pub(crate) fn remove(&mut self, tid: i32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        self.progress(&mut thread);
        if thread.is_in_burst() {
            self.write(&mut thread, "end of the thread");
        }
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.threads -= 1;
            if process.threads == 0 {
                self.processes.remove(&thread.id.pid);
            }
        }
    }

    /// All other threads of the process are gone, and the one that called exec has the process's id now.
    pub(crate) fn exec(&mut self, pid: i32) {
        let former = event_message(pid).map_or(pid, |id| id as i32);
        let gone: Vec<i32> = self
            .threads
            .values()
            .filter(|thread| thread.id.pid == pid && thread.id.tid != former)
            .map(|thread| thread.id.tid)
            .collect();
        gone.into_iter().for_each(|tid| self.remove(tid));
        let mut has_clock = false;
        if let Some(mut thread) = self.threads.remove(&former) {
            has_clock = !thread.is_new() && !thread.is_in_burst();
            if thread.is_in_burst() {
                thread.unbreak();
                self.write(&mut thread, "exec");
            }
            thread.id.tid = pid;
            if former != pid {
                thread.forget_owner();
            }
            thread.working_set.clear();
            self.threads.insert(pid, thread);
        } else {
            self.add(pid);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.space.forget();
            process.caught = signals_caught(pid as u32);
        }
        // A command's exec may come before its start is known here.
        if self.running {
            self.with_thread(pid, |engine, thread| {
                if has_clock {
                    // Started anew, it would spare programs that live shorter than a period.
                    engine.choose_notice(thread);
                } else {
                    engine.arm_stopped(thread);
                }
            });
        }
    }
}
