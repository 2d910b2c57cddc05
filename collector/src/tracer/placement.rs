//! Where the tracer runs.
//!
//! A stop is cheapest where the tracer runs on the CPU of the thread it stops: no other CPU has to be woken, which in a virtual machine
//! takes the hypervisor, and what is to be read lies in the caches. But a thread that is let go there finds its CPU busy with the tracer
//! and is moved to an idle one (`select_idle_sibling` in the kernel's `sched/fair.c`), away from its caches. A CPU that runs nothing but
//! `SCHED_IDLE` counts as idle: for the moment in which it lets the thread go, the tracer has that policy.
//!
//! Having it, the tracer waits while others want that CPU. So that is done only where the same thread stops again and again, and another
//! CPU is idle.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::kernel::set_policy;
use crate::process::last_cpu;

/// Stops of one thread, with none of another between them, until the tracer goes where that thread is.
const SAME: u32 = 4;
/// After so many more it looks again where the thread is.
const LOOK: u32 = 8;

/// What a stop costs the thread besides the work done during it: the clock's interrupt or the breakpoint's exception, the signal, two
/// switches between tracer and thread, cold caches. Measured by `benches/tracer-overhead` in a virtual machine, for rare stops.
pub(super) const STOP: Duration = Duration::from_micros(90);
/// The same where the tracer has another CPU, which sleeps until then, while that of the thread sleeps during the stop.
pub(super) const STOP_FROM_AFAR: Duration = Duration::from_micros(190);

#[derive(Debug)]
pub(super) struct Placement {
    /// Where the tracer may run, and what tells how much runs; without the privilege to choose, nothing is.
    means: Option<(CpuSet, File)>,
    /// The CPU it keeps to, and whether the thread was let go there.
    kept: Option<usize>,
    kept_there: bool,
    thread: i32,
    stops: u32,
    /// What the last stop cost.
    pub(super) stop: Duration,
}

impl Placement {
    /// `privileged`: whether the tracer may raise its own priority. Without that it could not leave `SCHED_IDLE` again.
    pub(super) fn new(privileged: bool) -> Self {
        let means = || Some((sched_getaffinity(None).ok()?, File::open("/proc/loadavg").ok()?));
        Self {
            means: privileged.then(means).flatten(),
            kept: None,
            kept_there: false,
            thread: 0,
            stops: 0,
            stop: STOP_FROM_AFAR,
        }
    }

    /// A thread has stopped for the tracer.
    pub(super) fn stopped(&mut self, thread: i32) {
        let Some((everywhere, _)) = &self.means else { return };
        self.stop =
            if thread == self.thread && self.kept_there || everywhere.count() == 1 { STOP } else { STOP_FROM_AFAR };
        self.stops = if thread == self.thread { self.stops + 1 } else { 0 };
        self.thread = thread;
        if self.stops == 0 && self.kept.take().is_some() {
            let _ = sched_setaffinity(None, everywhere);
        }
        if self.stops < SAME || !(self.stops - SAME).is_multiple_of(LOOK) {
            return;
        }
        let cpu = last_cpu(thread as u32).filter(|&cpu| cpu < CpuSet::MAX_CPU && everywhere.is_set(cpu));
        if let Some(cpu) = cpu.filter(|&cpu| self.kept != Some(cpu)) {
            let mut only = CpuSet::new();
            only.set(cpu);
            self.kept = sched_setaffinity(None, &only).is_ok().then_some(cpu);
        }
    }

    /// Does `resume`, which lets the thread go that has stopped last, without moving it to another CPU.
    pub(super) fn in_place(&mut self, resume: impl FnOnce()) {
        let idle = self.kept.is_some() && self.others_have_room() && set_policy(libc::SCHED_IDLE).is_ok();
        resume();
        self.kept_there = idle;
        if idle {
            let _ = set_policy(libc::SCHED_OTHER);
        }
    }

    /// Whether a CPU is idle: the thread would go there, and what else wants to run need not come here.
    fn others_have_room(&self) -> bool {
        let Some((everywhere, load)) = &self.means else { return false };
        let mut text = [0; 64];
        let read = load.read_at(&mut text, 0).unwrap_or(0);
        // proc_loadavg(5): three averages, then runnable/existing; the tracer itself is one.
        let field = text[..read].split(|&byte| byte == b' ').nth(3).unwrap_or_default();
        let runnable = str::from_utf8(field).ok().and_then(|field| field.split_once('/')?.0.parse::<u32>().ok());
        runnable.is_some_and(|runnable| runnable < everywhere.count())
    }
}
