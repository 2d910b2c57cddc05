//! Whether processes that run already are recorded by events of CPUs, in place of events of their threads.
//!
//! A thread that has events of its own costs more at every switch to and from it (decision 030). Where threads compute for microseconds at a time,
//! as in servers that wait for each request, that is many times what samples and bursts take. Events of CPUs cost the same whoever runs there, and
//! nothing at switches; of what they tell, the recorder keeps what is of the processes (decision 051).

use std::time::Duration;

use crate::machine::Machine;
use crate::plan::Options;
use crate::plan::choice::choose;
use crate::plan::event_spec::{EventSpec, Period, Unit};
use crate::plan::request::{Request, Target};
use crate::session::open::KernelOpener;
use crate::sys::process::{Scheduled, busy_time, scheduled, threads};

/// What the events of a thread cost at each time that it runs for: when it is put on a CPU, and when it is taken from it.
const SWITCH: Duration = Duration::from_micros(5);
/// The part of the budget that switches may take before events of CPUs are the better way.
const SHARE: f64 = 0.25;
/// What the recorder takes to read a sample of somebody else, and to throw it away.
const OTHERS_SAMPLE: Duration = Duration::from_micros(2);
/// How long it is looked what the machine does.
const LOOK: Duration = Duration::from_millis(100);

/// Clocks of CPUs in place of `events`, as often, beside bursts of threads that are visited, where that is better and may be.
pub(crate) fn by_cpu(request: &Request, machine: &Machine, events: &[EventSpec]) -> Option<Vec<EventSpec>> {
    let Target::Processes(pids) = &request.target else { return None };
    let are_clocks = |events: &[EventSpec]| events.iter().all(|event| event.unit == Unit::Nanoseconds);
    let is_rate_open = request.options.ebs_period.is_none() && request.options.frequency.is_none();
    let is_possible = machine.may_sample_system()
        && request.cpus.is_none()
        && !machine.counts_instructions()
        && !request.no_inherit
        && is_rate_open;
    let Period::Every(period) = events.first()?.period else { return None };
    if !is_possible
        || !are_clocks(events)
        || !Observed::of(pids).is_better_by_cpu(request.tracer.overhead, Duration::from_nanos(period))
    {
        return None;
    }
    let options = Options { system_wide: true, ..request.options.clone() };
    let by_cpu = choose(machine, &options, &mut KernelOpener).ok()?.events;
    let as_often = |event| EventSpec { period: Period::Every(period), ..event };
    are_clocks(&by_cpu).then(|| by_cpu.into_iter().map(as_often).collect())
}

/// How all threads of processes have run so far.
fn scheduled_in_all(pids: &[u32]) -> Scheduled {
    let threads = pids.iter().flat_map(|&pid| threads(pid).into_iter().filter_map(move |tid| scheduled(pid, tid)));
    threads.fold(Scheduled::default(), |all, one| Scheduled { ran: all.ran + one.ran, times: all.times + one.times })
}

/// What processes do, and the machine.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    /// How all threads have run since they began,
    so_far: Scheduled,
    /// and for a moment just now,
    now: Scheduled,
    /// in which others ran for so long.
    others: Duration,
}

impl Observed {
    /// Looks for a moment.
    fn of(pids: &[u32]) -> Self {
        let look = || (scheduled_in_all(pids), busy_time().unwrap_or_default());
        let (before, busy_before) = look();
        std::thread::sleep(LOOK);
        let (so_far, busy) = look();
        let now =
            Scheduled { ran: so_far.ran.saturating_sub(before.ran), times: so_far.times.saturating_sub(before.times) };
        Self { so_far, now, others: busy.saturating_sub(busy_before).saturating_sub(now.ran) }
    }

    /// Whether events of threads would cost more than their part of a budget, in percent, and more than the recorder would take for samples of
    /// all others, which come so often. Where nothing runs just now, neither costs much, and it is judged by the past.
    fn is_better_by_cpu(&self, overhead: f64, period: Duration) -> bool {
        let switches = |scheduled: &Scheduled| SWITCH.as_secs_f64() * scheduled.times as f64;
        let how = if self.now.ran.is_zero() { &self.so_far } else { &self.now };
        let cost_too_much = switches(how) > SHARE * overhead / 100.0 * how.ran.as_secs_f64();
        let of_others = OTHERS_SAMPLE.as_secs_f64() * self.others.div_duration_f64(period);
        cost_too_much && (self.now.ran.is_zero() || switches(&self.now) > of_others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ran(milliseconds: u64, times: u64) -> Scheduled {
        Scheduled { ran: Duration::from_millis(milliseconds), times }
    }

    #[test]
    fn what_computes_for_long_has_events_of_its_own() {
        let is_by_cpu = |now, overhead| {
            Observed { so_far: ran(10_000, 2500), now, others: Duration::ZERO }.is_better_by_cpu(overhead, MS)
        };
        // Once in 4 ms, as the scheduler does with two on one CPU.
        assert!(!is_by_cpu(ran(100, 25), 1.0));
        assert!(is_by_cpu(ran(100, 25), 0.1));
        // For 60 us at a time.
        assert!(is_by_cpu(ran(10, 160), 5.0));
        assert!(!is_by_cpu(ran(10, 160), 50.0));
        // By what it did before.
        assert!(!is_by_cpu(ran(0, 0), 1.0) && is_by_cpu(ran(0, 0), 0.1));
        assert!(!Observed::default().is_better_by_cpu(1.0, MS), "nothing is known");
    }

    #[test]
    fn others_who_compute_much_are_not_sampled_for_little() {
        // 160 switches cost 0.8 ms, 400 samples as much.
        let beside = |others, period| {
            Observed { now: ran(10, 160), others, ..Observed::default() }.is_better_by_cpu(1.0, period)
        };
        assert!(beside(350 * MS, MS) && !beside(450 * MS, MS));
        assert!(beside(3500 * MS, 10 * MS) && !beside(4500 * MS, 10 * MS));
    }

    #[test]
    fn what_this_process_does_is_seen() {
        if scheduled(std::process::id(), std::process::id()).is_none() {
            return testing::skip!(Kernel, "no schedstat (CONFIG_SCHED_INFO)");
        }
        let done = std::sync::atomic::AtomicBool::new(false);
        let observed = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let observed = Observed::of(&[std::process::id()]);
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            observed
        });
        assert!(!observed.now.ran.is_zero() && observed.so_far.ran >= observed.now.ran, "{observed:?}");
    }
}
