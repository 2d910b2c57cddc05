//! CPU time of everything that was to be traced, whether it is or not.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr};

use crate::sys::control_group::ControlGroup;
use crate::sys::process::busy_time;
use crate::tracer::kernel::{Kernel, ThreadEvent};
use crate::tracer::settings::{ByCpu, Settings};

/// Looking takes this small a share of the time, however much there is to look at.
const SHARE: u32 = 2000;

/// What the CPU time is read from.
///
/// Processes have a clock, which is read without any effect on them. Of single threads, and of a command with all that it starts, events
/// count the time, which those they start inherit; where such a thread is running, its CPU has to be interrupted for reading, and the
/// reader waits for that, in a virtual machine for milliseconds. A control group has a count of its own, in the unified hierarchy, and so
/// has the machine.
pub(crate) struct CpuTime<E> {
    /// What the clock of each process showed when it was looked at last.
    processes: HashMap<i32, Duration>,
    /// What processes used that have ended since.
    ended: Duration,
    counters: Vec<E>,
    /// What is counted as a whole, and what its count was when it was looked at last. Where it has one, nothing else is counted.
    whole: Option<(Whole, Option<Duration>)>,
    inherit: bool,
    counted: u64,
    last: Instant,
    next: Instant,
}

/// What has a count of its own.
#[derive(Clone, Debug)]
pub(crate) enum Whole {
    Group(ControlGroup),
    Machine,
}

impl Whole {
    /// What the kernel counts as a whole of what is recorded.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let machine = (settings.by_cpu == Some(ByCpu::Everything)).then_some(Self::Machine);
        settings.group.clone().map(Self::Group).or(machine)
    }

    fn cpu_time(&self) -> Option<Duration> {
        match self {
            Self::Group(group) => group.cpu_time(),
            Self::Machine => busy_time(),
        }
    }
}

impl<E: ThreadEvent> CpuTime<E> {
    pub(crate) fn new(inherit: bool, now: Instant) -> Self {
        let (processes, counters) = (HashMap::new(), Vec::new());
        Self { processes, ended: Duration::ZERO, counters, whole: None, inherit, counted: 0, last: now, next: now }
    }

    /// Counts all of it from now on, where the kernel does; who is in it need not be told then.
    pub(crate) fn of_whole(self, whole: Option<Whole>) -> Self {
        let with_count = |whole: Whole| {
            let now = whole.cpu_time();
            (whole, now)
        };
        Self { whole: whole.map(with_count), ..self }
    }

    fn is_counted_as_a_whole(&self) -> bool {
        matches!(self.whole, Some((_, Some(_))))
    }

    /// Counts a process with all its threads from now on.
    pub(crate) fn add_process(&mut self, process: i32, kernel: &impl Kernel) {
        if self.is_counted_as_a_whole() {
            return;
        }
        self.processes.entry(process).or_insert_with(|| kernel.cpu_time(process).unwrap_or_default());
    }

    /// A process that has just begun was started by one that is counted. Counters are inherited without being told.
    pub(crate) fn begins(&mut self, process: i32) {
        let by_process = !self.processes.is_empty() || self.whole.is_some();
        if by_process && !self.is_counted_as_a_whole() {
            self.processes.entry(process).or_default();
        }
    }

    /// A process has ended, if `thread` was its last one. What its clock shows is still there for a moment.
    pub(crate) fn ends(&mut self, thread: i32, kernel: &impl Kernel) {
        if let Some(seen) = self.processes.get(&thread)
            && let Some(time) = kernel.cpu_time(thread)
        {
            self.ended += time.saturating_sub(*seen);
        }
        if self.processes.len() > 1 || self.whole.is_some() {
            self.processes.remove(&thread);
        }
    }

    /// Counts a thread from now on, and all that it starts.
    pub(crate) fn add_thread(&mut self, thread: i32, kernel: &mut impl Kernel<Event = E>) {
        if self.is_counted_as_a_whole() {
            return;
        }
        let attr = EventAttr {
            kind: sys::PERF_TYPE_SOFTWARE,
            config: u64::from(sys::PERF_COUNT_SW_TASK_CLOCK),
            flags: AttrFlags(if self.inherit { AttrFlags::INHERIT.0 } else { 0 }),
            ..EventAttr::default()
        };
        // Without the permission to see kernel time, what there is.
        let user = EventAttr { flags: attr.flags | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV, ..attr.clone() };
        self.counters.extend(kernel.open(&attr, thread).or_else(|_| kernel.open(&user, thread)));
    }

    /// Time that passed since the last time this returned some, if that is so long ago and it is time to look. It is better to look
    /// while a thread is stopped: then it need not be interrupted.
    pub(crate) fn passed(&mut self, since: Duration, kernel: &impl Kernel) -> Option<Duration> {
        let now = kernel.now();
        if now < self.next.max(self.last + since) {
            return None;
        }
        let began = kernel.own_time();
        let passed = self.passed_until_now(kernel);
        self.last = now;
        // What it cost, not how long it took: others may have had the CPU meanwhile.
        self.next = now + kernel.own_time().saturating_sub(began) * SHARE;
        Some(passed)
    }

    /// As above, at any time.
    pub(crate) fn passed_until_now(&mut self, kernel: &impl Kernel) -> Duration {
        let mut passed = std::mem::take(&mut self.ended);
        for (&process, seen) in &mut self.processes {
            if let Some(time) = kernel.cpu_time(process) {
                passed += time.saturating_sub(*seen);
                *seen = time.max(*seen);
            }
        }
        if let Some((whole, Some(seen))) = &mut self.whole
            && let Some(time) = whole.cpu_time()
        {
            passed += time.saturating_sub(*seen);
            *seen = time.max(*seen);
        }
        let count = |counter: &E| {
            let mut word = [0];
            counter.read(&mut word).map_or(0, |_| word[0])
        };
        let total: u64 = self.counters.iter().map(count).sum();
        passed += Duration::from_nanos(total.saturating_sub(self.counted));
        self.counted = self.counted.max(total);
        passed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tracer::kernel::scripted::{ScriptedEvent, ScriptedKernel};
    use crate::tracer::shared::Shared;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn kernel(threads: &[(i32, i32)]) -> ScriptedKernel {
        ScriptedKernel::new(threads, &[], &[], &Arc::new(Shared::new().unwrap()))
    }

    #[test]
    fn processes_count_with_all_threads_and_with_those_they_start() {
        let kernel = kernel(&[(100, 100), (101, 100)]);
        kernel.world().pass(ms(50), 1.0);
        let mut time = CpuTime::<ScriptedEvent>::new(true, kernel.now());
        time.add_process(100, &kernel);
        kernel.world().pass(ms(10), 1.0);
        assert_eq!(time.passed_until_now(&kernel), ms(20), "from now on, two threads");
        assert_eq!(time.passed_until_now(&kernel), ms(0));
        kernel.world().add(200, 200);
        time.begins(200);
        kernel.world().pass(ms(10), 1.0);
        time.ends(200, &kernel);
        kernel.world().threads.remove(&200);
        assert_eq!(time.passed_until_now(&kernel), ms(30), "one that ended before anyone looked");
        kernel.world().pass(ms(10), 1.0);
        assert_eq!(time.passed_until_now(&kernel), ms(20));
    }

    #[test]
    fn a_group_counts_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let used = |milliseconds: u64| {
            std::fs::write(dir.path().join("cpu.stat"), format!("usage_usec {}\n", 1000 * milliseconds)).unwrap();
        };
        used(70);
        let mut kernel = kernel(&[(100, 100)]);
        let group = ControlGroup::of_test(dir.path());
        let mut time = CpuTime::<ScriptedEvent>::new(true, kernel.now()).of_whole(Some(Whole::Group(group.clone())));
        time.add_process(100, &kernel);
        time.add_thread(100, &mut kernel);
        kernel.world().pass(ms(10), 1.0);
        used(75);
        assert_eq!(time.passed_until_now(&kernel), ms(5), "what others in it use, and nothing twice");
        std::fs::remove_file(dir.path().join("cpu.stat")).unwrap();
        assert_eq!(time.passed_until_now(&kernel), ms(0), "it was removed");

        // In version 1 it has no count.
        let mut time = CpuTime::<ScriptedEvent>::new(true, kernel.now()).of_whole(Some(Whole::Group(group.clone())));
        time.begins(100);
        assert_eq!(time.passed_until_now(&kernel), ms(10), "what begins in an empty one counts");
        time.ends(100, &kernel);
        kernel.world().pass(ms(10), 1.0);
        assert_eq!(time.passed_until_now(&kernel), ms(0), "it has left");
    }

    #[test]
    fn threads_count_by_events() {
        let mut kernel = kernel(&[(100, 100), (101, 100)]);
        let mut time = CpuTime::<ScriptedEvent>::new(true, kernel.now());
        time.add_thread(101, &mut kernel);
        time.begins(200);
        kernel.world().pass(ms(10), 1.0);
        assert_eq!(time.passed_until_now(&kernel), ms(10));
    }

    #[test]
    fn looking_is_no_rarer_where_others_have_the_cpu() {
        let kernel = kernel(&[(100, 100)]);
        kernel.world().stolen = ms(10);
        kernel.world().cost = Duration::from_micros(5);
        let mut time = CpuTime::<ScriptedEvent>::new(true, kernel.now());
        time.add_process(100, &kernel);
        assert_eq!(time.passed(ms(100), &kernel), None, "it is too early");
        for _ in 0..3 {
            kernel.world().pass(ms(100), 1.0);
            assert!(time.passed(ms(100), &kernel).is_some());
        }
    }
}
