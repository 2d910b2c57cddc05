//! Processes that compute and have no timer: children of fork, which are asked to begin, and programs without a dynamic loader, which are
//! counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::sys::process::{
    all_processes, each_mapping, group_and_parent, has_timer, is_in_uninterruptible_sleep, signals_blocked, threads,
};
use crate::sys::{cpu_time, queue_signal, thread_cpu_time};
use crate::tracer::kernel::Processes;
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::timer::preload_file::PreloadFile;

/// A process is looked at when it has computed for so long. Most of what is forked executes a program or ends before.
const GROWN_UP: Duration = Duration::from_millis(20);
/// One that was asked, and does not begin, is asked again after so much more.
const PATIENCE: Duration = Duration::from_millis(100);
/// So many times at most: the program may have a handler of its own for the signal.
const MOST_TIMES: u32 = 3;
/// Looking takes this small a share of the time.
const SHARE: u32 = 500;
/// How often it is looked at most.
const OFTEN: Duration = Duration::from_millis(100);

pub(crate) struct Census {
    seen: HashMap<u32, Seen>,
    next: Instant,
    token: u64,
}

/// A process that has no part.
#[derive(Clone, Copy, Debug)]
struct Seen {
    what: What,
    /// Its CPU time then: one that shows less has the same id only.
    at: Duration,
    /// How often it was asked to begin.
    asked: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It does not come from the command.
    Foreign,
    /// It has no agent, and cannot get one.
    Without,
    /// Its timer's signal did not come through, or it was asked to begin and did not.
    Deaf,
    /// It has its parent's agent, and no timer.
    Forked,
}

/// Processes that were found for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Those that have no agent, and cannot get one.
    pub(crate) without: u64,
    /// Those whose timer's signal did not come through.
    pub(crate) deaf: u64,
}

impl Census {
    /// `token`: what the signals carry that ask.
    pub(crate) fn new(token: u64, now: Instant) -> Self {
        Self { seen: HashMap::new(), next: now + OFTEN, token }
    }

    /// Looks if it is time. A process that begins now has its first signal after `period` of CPU time at the latest, one that has begun before
    /// after `longest`.
    pub(crate) fn look(
        &mut self,
        takes_part: impl Fn(i32) -> bool,
        [period, longest]: [Duration; 2],
        preload: &PreloadFile,
        kernel: &LinuxKernel,
        now: Instant,
    ) -> Found {
        let mut found = Found::default();
        if now < self.next {
            return found;
        }
        let began = thread_cpu_time();
        let own = std::process::id();
        let mut still = HashMap::new();
        for process in all_processes().into_iter().filter(|&process| process != own) {
            if takes_part(process as i32) {
                continue;
            }
            let Some(used) = cpu_time(process as i32).filter(|used| *used >= GROWN_UP.max(period)) else { continue };
            let known = self.seen.get(&process).filter(|seen| seen.at <= used).copied();
            let seen = match known {
                Some(seen) if seen.what != What::Forked || used < seen.at + PATIENCE => seen,
                // It was asked for the last time, and has no timer all the same.
                Some(seen) if seen.asked >= MOST_TIMES => {
                    found.deaf += 1;
                    Seen { what: What::Deaf, ..seen }
                }
                _ => {
                    let Some(what) = what(process, preload, used > longest) else { continue };
                    let is_new = known.is_none_or(|seen| seen.what != what);
                    found.without += u64::from(is_new && what == What::Without);
                    found.deaf += u64::from(is_new && what == What::Deaf);
                    let is_asked = what == What::Forked && self.ask(process, kernel);
                    // One that cannot be asked now is asked the next time.
                    let at = if what == What::Forked && !is_asked { used.saturating_sub(PATIENCE) } else { used };
                    Seen { what, at, asked: known.map_or(0, |seen| seen.asked) + u32::from(is_asked) }
                }
            };
            still.insert(process, seen);
        }
        self.seen = still;
        self.next = now + (thread_cpu_time().saturating_sub(began) * SHARE).max(OFTEN);
        found
    }

    /// Asks a process to begin: by a signal to a thread that computes, so that no system call is interrupted. Returns whether there is one.
    fn ask(&self, process: u32, kernel: &LinuxKernel) -> bool {
        // A child of vfork has its parent's memory, and the parent waits for it.
        let parent = group_and_parent(process).map(|(_, parent)| parent);
        if parent.is_none_or(|parent| threads(parent).into_iter().any(is_in_uninterruptible_sleep)) {
            return false;
        }
        let signal = agent::SIGNAL_OF_TIMERS;
        let takes_it =
            |thread: &u32| signals_blocked(*thread) & 1 << (signal - 1) == 0 && kernel.is_computing(*thread as i32);
        let thread = threads(process).into_iter().find(takes_it);
        thread.is_some_and(|thread| queue_signal(process as i32, thread as i32, signal, self.token).is_ok())
    }
}

/// `None`: its timer may still send its first signal.
fn what(process: u32, preload: &PreloadFile, is_late: bool) -> Option<What> {
    if !each_mapping(process).any(|map| preload.is_of(&map)) {
        let without = preload.is_in_environment_of(process);
        return Some(if without { What::Without } else { What::Foreign });
    }
    match has_timer(process, agent::SIGNAL_OF_TIMERS) {
        true => is_late.then_some(What::Deaf),
        false => Some(What::Forked),
    }
}
