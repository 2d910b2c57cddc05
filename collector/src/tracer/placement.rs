//! Where the tracer runs.
//!
//! A stop is cheapest where the tracer runs on the CPU of the thread it stops: no other CPU has to be woken, which in a virtual machine
//! takes the hypervisor, and what is to be read lies in the caches. But a thread that is let go there finds its CPU busy with the tracer
//! and is moved to an idle one (`select_idle_sibling` in the kernel's `sched/fair.c`), away from its caches. A CPU that runs nothing but
//! `SCHED_IDLE` counts as idle: while it lets the thread go, the tracer has that policy.
//!
//! If the thread is put in its place at once, the tracer waits some milliseconds for its turn. So that is done only where nobody else waits
//! for the tracer: one thread stops again and again for its clock, and nothing else stops meanwhile. Where no CPU is idle, the thread has
//! nowhere else to go, and the tracer, being `SCHED_IDLE`, might not come back for long: it stays what it is.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys::process::last_cpu;
use crate::sys::{policy, set_policy};
use crate::tracer::budget::stop_cost::PerCpu;

/// `nice` of the tracer.
const NICE: i32 = -15;
/// Stops of one thread in a row until the tracer goes where that thread is.
const STOPS_BEFORE_MOVING: u32 = 4;
/// After so many more it looks again where the thread is.
const STOPS_BETWEEN_LOOKS: u32 = 8;

#[derive(Debug)]
pub(crate) struct Placement {
    /// Where the tracer may run.
    allowed: Option<CpuSet>,
    /// Tells how much runs; `None` without the right to choose a policy.
    load: Option<File>,
    /// The CPU it keeps to, and whether the thread was let go there.
    kept: Option<usize>,
    thread_is_here: bool,
    thread: i32,
    stops: u32,
}

impl Placement {
    /// Has the calling thread run before others: threads stand still while the tracer waits for a CPU. Without the privilege it has to
    /// wait.
    pub(crate) fn prefer_tracer() -> Self {
        let was_lower = getpriority_process(None).is_ok_and(|nice| nice > NICE);
        Self::new(setpriority_process(None, NICE).is_ok() && was_lower)
    }

    /// The tracer is where it likes, and every stop one from afar.
    pub(crate) fn afar() -> Self {
        Self { allowed: None, load: None, kept: None, thread_is_here: false, thread: 0, stops: 0 }
    }

    /// `privileged`: whether the tracer may raise its own priority. Without that it could not leave `SCHED_IDLE` again.
    fn new(privileged: bool) -> Self {
        let can_choose = privileged && policy() == libc::SCHED_OTHER;
        let load = if can_choose { File::open("/proc/loadavg").ok() } else { None };
        let allowed = sched_getaffinity(None).ok();
        Self { allowed, load, kept: None, thread_is_here: false, thread: 0, stops: 0 }
    }

    /// What a stop of this thread costs it now.
    pub(crate) fn stop(&self, thread: i32, cost: PerCpu<Duration>) -> Duration {
        let only_one_cpu = self.allowed.as_ref().is_some_and(|cpus| cpus.count() == 1);
        let here = only_one_cpu || thread == self.thread && self.thread_is_here;
        if here { cost.same } else { cost.other }
    }

    /// A thread has stopped because of its clock or breakpoint.
    pub(crate) fn stopped(&mut self, thread: i32) {
        if self.load.is_none() {
            return;
        }
        if thread != self.thread {
            self.stopped_otherwise();
            self.thread = thread;
        }
        self.stops += 1;
        if self.stops >= STOPS_BEFORE_MOVING && (self.stops - STOPS_BEFORE_MOVING).is_multiple_of(STOPS_BETWEEN_LOOKS) {
            self.go_to(last_cpu(thread as u32));
        }
    }

    /// A thread has stopped for another reason, and others may: the tracer is where it likes.
    pub(crate) fn stopped_otherwise(&mut self) {
        (self.stops, self.thread_is_here) = (0, false);
        if let (Some(_), Some(allowed)) = (self.kept.take(), &self.allowed) {
            let _ = sched_setaffinity(None, allowed);
        }
    }

    fn go_to(&mut self, cpu: Option<usize>) {
        let may = |cpu: &usize| *cpu < CpuSet::MAX_CPU && self.allowed.as_ref().is_some_and(|cpus| cpus.is_set(*cpu));
        if let Some(cpu) = cpu.filter(may).filter(|&cpu| self.kept != Some(cpu)) {
            let mut only = CpuSet::new();
            only.set(cpu);
            self.kept = sched_setaffinity(None, &only).is_ok().then_some(cpu);
        }
    }

    /// Does `resume`, which lets the thread go that has stopped last, without moving it to another CPU.
    pub(crate) fn in_place<T>(&mut self, resume: impl FnOnce() -> T) -> T {
        if self.kept.is_none() {
            return resume();
        }
        self.thread_is_here = true;
        if !self.is_a_cpu_idle() {
            return resume();
        }
        if set_policy(libc::SCHED_IDLE).is_err() {
            self.stopped_otherwise();
            return resume();
        }
        let done = resume();
        if set_policy(libc::SCHED_OTHER).is_err() {
            self.load = None;
        }
        done
    }

    /// Whether a CPU is idle: the thread would go there, and what else wants to run need not come here.
    fn is_a_cpu_idle(&self) -> bool {
        let (Some(allowed), Some(load)) = (&self.allowed, &self.load) else { return false };
        let mut text = [0; 64];
        let read = load.read_at(&mut text, 0).unwrap_or(0);
        runnable(&text[..read]).is_some_and(|runnable| runnable < allowed.count())
    }
}

/// Threads that run or want to, the one that asks included, from the text of proc_loadavg(5): three averages, then runnable/existing.
fn runnable(text: &[u8]) -> Option<u32> {
    let field = text.split(|&byte| byte == b' ').nth(3)?;
    str::from_utf8(field).ok()?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::budget::stop_cost::RARE_STOP as COST;

    #[test]
    fn runnable_threads_of_loadavg() {
        assert_eq!(runnable(b"0.20 0.18 0.12 3/802 11206\n"), Some(3));
        assert_eq!(runnable(b"0.20 0.18"), None);
    }

    #[test]
    fn stops_cost_more_until_the_tracer_has_come() {
        let mut placement = Placement::new(true);
        if placement.allowed.as_ref().is_some_and(|cpus| cpus.count() == 1) {
            return assert_eq!(placement.stop(1, COST), COST.same);
        }
        assert_eq!(placement.stop(1, COST), COST.other);
        (placement.thread, placement.thread_is_here) = (1, true);
        assert_eq!((placement.stop(1, COST), placement.stop(2, COST)), (COST.same, COST.other));
        placement.stopped_otherwise();
        assert_eq!(placement.stop(1, COST), COST.other);
    }
}
