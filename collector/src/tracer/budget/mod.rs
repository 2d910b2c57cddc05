//! What tracing may cost and does: the governor, told of everything that is spent and of the time it is spent on.

pub(crate) mod cpu_time;
#[cfg(test)]
pub(crate) mod first_seconds;
pub(crate) mod governor;
pub(crate) mod signal_cost;
pub(crate) mod stop_cost;

use std::time::{Duration, Instant};

use crate::errno::Errno;
use crate::tracer::budget::cpu_time::{CpuTime, Whole};
use crate::tracer::budget::governor::Governor;
use crate::tracer::kernel::{Kernel, ThreadEvent};
use crate::tracer::settings::{Clock, Settings};
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::Thread;

pub(crate) struct Budget<E> {
    pub(crate) governor: Governor,
    cpu_time: CpuTime<E>,
    /// The part of the tracer's own CPU time that was charged,
    charged: Duration,
    /// and of that of the collector's other threads, which write the recording.
    charged_to_recorder: Duration,
    clock: Clock,
    /// What recording took of the threads' own CPU time, and was not taken off yet.
    inside: Duration,
    /// What bursts inside programs cost lately, ns.
    burst_took: f64,
    /// Counts of the clock per ns, where it is no clock.
    rate: f64,
    /// The burst of the stop that is being dealt with is complete.
    pub(crate) burst_is_over: bool,
}

impl<E: ThreadEvent> Budget<E> {
    /// `seed`: chooses how periods jitter.
    pub(crate) fn new(settings: &Settings, seed: u64, now: Instant) -> Self {
        Self {
            governor: Governor::new(settings.overhead / 100.0 * settings.burst_share, settings.start_credit, seed),
            cpu_time: CpuTime::new(settings.inherit, now).of_whole(Whole::of(settings)),
            charged: Duration::ZERO,
            charged_to_recorder: Duration::ZERO,
            inside: Duration::ZERO,
            burst_took: 0.0,
            clock: settings.clock,
            rate: 1.0,
            burst_is_over: false,
        }
    }

    /// Counts the CPU time of a process from now on.
    pub(crate) fn count_process(&mut self, process: i32, kernel: &impl Kernel) {
        self.cpu_time.add_process(process, kernel);
    }

    /// Counts that of a thread, and of all that it starts.
    pub(crate) fn count_thread(&mut self, thread: i32, kernel: &mut impl Kernel<Event = E>) {
        self.cpu_time.add_thread(thread, kernel);
    }

    /// A process that is traced has started another.
    pub(crate) fn process_begins(&mut self, process: i32) {
        self.cpu_time.begins(process);
    }

    /// A thread has ended, and its process with it if it was the last.
    pub(crate) fn thread_ends(&mut self, thread: i32, kernel: &impl Kernel) {
        self.cpu_time.ends(thread, kernel);
    }

    /// What the collector did so far was preparing, which is told of, and is charged where the program is running. Before a program
    /// begins, it is no reason for rare bursts in its first moments. Returns how long it took.
    pub(crate) fn begin(
        &mut self,
        is_program_running: bool,
        kernel: &impl Kernel,
        statistics: &mut TracerStatistics,
    ) -> Duration {
        self.charged = kernel.own_time();
        self.charged_to_recorder = recorder_time(kernel);
        let took = self.charged + self.charged_to_recorder;
        if is_program_running {
            self.governor.prepared(took);
        }
        statistics.time.other += took;
        took
    }

    /// The rest of the collector's CPU time until now.
    pub(crate) fn end(&self, kernel: &impl Kernel, statistics: &mut TracerStatistics) {
        statistics.collector_until_end = kernel.collector_time();
        let charged = self.charged + self.charged_to_recorder;
        statistics.time.other += statistics.collector_until_end.saturating_sub(charged);
    }

    /// Of the tracer's own time, so much is in the statistics.
    pub(crate) fn charged(&mut self, took: Duration) {
        self.charged += took;
    }

    /// A stop for a burst cost so much.
    pub(crate) fn charge_stop_of_burst(&mut self, thread: &mut Thread<E>, cost: Duration) {
        thread.cost += cost;
        self.governor.spent(cost);
        if std::mem::take(&mut self.burst_is_over) {
            let stood_for = thread.path.burst.period as f64 / self.rate;
            self.governor.burst(std::mem::take(&mut thread.cost), stood_for);
        }
    }

    /// A stop for something else cost so much in itself, and took so much of the tracer's own time.
    pub(crate) fn charge_other_stop(&mut self, cost: Duration, took: Duration) {
        self.charged += took;
        self.governor.spent(cost + took);
    }

    /// Charges what the tracer did while no thread was stopped for it: looking after threads, finding them, waiting; and what the
    /// recorder did, which comes in lumps and is made up for over the next seconds. Returns how long both took.
    pub(crate) fn charge_the_rest(&mut self, kernel: &impl Kernel, other: &mut Duration) -> Duration {
        let rest = kernel.own_time().saturating_sub(self.charged);
        let of_recorder = recorder_time(kernel).saturating_sub(self.charged_to_recorder);
        self.charged += rest;
        self.charged_to_recorder += of_recorder;
        *other += rest + of_recorder;
        self.governor.spent(rest);
        self.governor.written(of_recorder);
        rest + of_recorder
    }

    /// Charges what the tracer did since that time of its own, for a process once: that comes in lumps, too.
    pub(crate) fn charge_once(&mut self, began: Duration, kernel: &impl Kernel, other: &mut Duration) {
        let took = kernel.own_time().saturating_sub(began);
        self.charged += took;
        *other += took;
        self.governor.spread(took);
    }

    /// Recording took so much of the threads' own CPU time, which is not the program's then.
    pub(crate) fn took_inside(&mut self, time: Duration) {
        self.inside += time;
    }

    /// A thread has taken a burst itself, which cost so much and stood for so much CPU time in user space, ns.
    pub(crate) fn burst_inside(&mut self, cost: Duration, period: u64) {
        self.governor.spent(cost);
        self.governor.burst(cost, period as f64);
        self.took_inside(cost);
        self.burst_took += (cost.as_nanos() as f64 - self.burst_took) / 16.0;
    }

    /// What such bursts cost lately, ns.
    pub(crate) fn burst_took(&self) -> f64 {
        self.burst_took
    }

    /// What of the CPU time of the threads was the program's.
    fn of_program(&mut self, passed: Duration) -> Duration {
        let taken_off = self.inside.min(passed);
        self.inside -= taken_off;
        passed - taken_off
    }

    /// Looks how much CPU time passed, if that was not done for so long.
    pub(crate) fn look_at_time(&mut self, since: Duration, kernel: &impl Kernel, statistics: &mut TracerStatistics) {
        if let Some(passed) = self.cpu_time.passed(since, kernel) {
            let passed = self.of_program(passed);
            self.governor.passed(passed);
            statistics.time.application += passed;
        }
    }

    /// Looks at it in any case.
    pub(crate) fn look_at_all_time(&mut self, kernel: &impl Kernel, statistics: &mut TracerStatistics) {
        let passed = self.cpu_time.passed_until_now(kernel);
        let passed = self.of_program(passed);
        self.governor.passed(passed);
        statistics.time.application += passed;
    }

    /// Counts of the clock between two bursts of a thread, on average.
    pub(crate) fn period(&self) -> f64 {
        self.governor.period() * self.rate
    }

    /// Starts the clock of a thread for its next burst.
    ///
    /// # Errors
    /// What the kernel says: the thread is gone.
    pub(crate) fn arm(&mut self, thread: &mut Thread<E>, now: Instant) -> Result<(), Errno> {
        let period = self.period();
        // A thread's first burst may come at any time: threads that live shorter than a period get their share.
        let factor = if thread.is_new() { self.governor.jitter() - 0.5 } else { self.governor.jitter() };
        let count = (period * factor).max(1.0);
        let least = Duration::from_nanos((count / self.rate) as u64);
        thread.arm(period as u64, count as u64, now + least)
    }

    /// Learns how fast the clock of a stopped thread is.
    pub(crate) fn progress(&mut self, thread: &mut Thread<E>) {
        if self.clock == Clock::Time {
            return;
        }
        let progress = thread.progress();
        if progress.ran > 0 {
            let rate = progress.counts as f64 / progress.ran as f64;
            self.rate = if self.rate == 1.0 { rate } else { self.rate + (rate - self.rate) / 16.0 };
        }
    }
}

/// CPU time of the collector's threads that do not trace.
fn recorder_time(kernel: &impl Kernel) -> Duration {
    kernel.collector_time().saturating_sub(kernel.own_time())
}
