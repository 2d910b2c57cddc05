//! What a stop costs, beside the CPU time that the tracer sees itself use.
//!
//! A thread that is stopped loses more than the tracer's CPU time: the interrupt of its clock, the switches to the tracer and back, the
//! caches that are cold afterwards. Nothing tells the tracer of these while it works, so they are charged by a constant per stop.
//!
//! **What is measured** when tracing begins ([`calibrate`]): a child of the tracer's own, which nobody else knows of, sends itself the
//! signal that clocks send, some dozen times, and measures for how long it stands still; the tracer takes the stop as any other and
//! lets it go on. Once the tracer is on the child's CPU, once on another: the signal, the switches, the little that the tracer does, and,
//! on another CPU, its waking up. That takes a few milliseconds and touches no other program.
//!
//! **What is not**: the interrupt itself (or the exception of a breakpoint), for the child has no clock; and the cold caches after
//! *rare* stops, for the child's follow one another. Both are in what `benches/tracer-overhead` measured for rare stops of programs, in
//! a virtual machine ([`RARE_STOP`]), where the child's stops on the same CPU took [`CHILD_STOP`]. Here a rare stop is taken to cost as
//! much more than the child's as there; and on another CPU no less than three of four of the child's did there. Between a half and
//! twice of what it was there is believed: beyond, something else had the CPU.

use std::io;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::errno::Errno;
use crate::sys::{Measuring, MeasuringChild, Report};
use crate::tracer::kernel::Kernel;
use crate::tracer::notice::SIGNALS;

/// What a rare stop of a thread costs besides the tracer's CPU time, with the tracer on the same CPU, and on another, which sleeps until
/// then, while that of the thread sleeps during the stop. Measured by `benches/tracer-overhead` in a virtual machine.
pub(crate) const RARE_STOP: PerCpu<Duration> =
    PerCpu { same: Duration::from_micros(70), other: Duration::from_micros(170) };
/// What calibration measures there with the tracer on the child's CPU.
const CHILD_STOP: Duration = Duration::from_micros(4);
/// CPU time that a sample of the clock costs (`benches/record-overhead`).
pub(crate) const SAMPLE: Duration = Duration::from_micros(20);
/// The part of the budget that event samples beside the bursts may take,
pub(crate) const SAMPLE_SHARE: f64 = 0.2;
/// and where agents take the bursts. They are so many then that the moments they start at tell as much of time as samples do.
pub(crate) const SAMPLE_SHARE_BESIDE_AGENTS: f64 = 0.1;
/// The part of the budget that is kept for what comes too late to be made up for: the end.
pub(crate) const UNSEEN_SHARE: f64 = 0.1;
/// The same beside agents, whose stops need no allowance: what the end takes, kept back in the first seconds.
pub(crate) const END: Duration = Duration::from_millis(5);
/// What it is taken to cost to begin with a thread that is there already: to trace it, to look what it blocks, to open its clock.
pub(crate) const NEW_THREAD: Duration = Duration::from_micros(100);
/// What a burst is taken to cost before one was seen.
pub(crate) const FIRST_BURST: Duration = Duration::from_micros(250);

/// Stops of the child with the tracer on its CPU, and as many on another.
const STOPS: usize = 24;
/// How long the child is waited for.
const PATIENCE: Duration = Duration::from_millis(100);
/// How far a measurement is believed.
const LEAST: f64 = 0.5;
const MOST: u32 = 2;

/// One of each: with the tracer on the CPU of the thread, and on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerCpu<T> {
    pub(crate) same: T,
    pub(crate) other: T,
}

/// What stops cost on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StopCost {
    /// Charged for a stop, beside the tracer's CPU time.
    pub(crate) charged: PerCpu<Duration>,
    /// What that is based on.
    pub(crate) calibration: Calibration,
}

/// Whether costs were measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Calibration {
    /// Of so many stops with the tracer on either CPU: what the child's cost.
    Measured { stops: usize, child: PerCpu<Timing> },
    /// Not at all: the constants hold. Why.
    BuiltIn(String),
}

/// Median and spread of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Three of four took longer.
    first_quartile: Duration,
    pub(crate) median: Duration,
    /// From the first quartile to the third.
    pub(crate) spread: Duration,
}

impl Timing {
    pub(crate) fn of(times: &[Duration]) -> Self {
        let mut times = times.to_vec();
        times.sort_unstable();
        let at = |quarter: usize| times.get((times.len().saturating_sub(1)) * quarter / 4).copied().unwrap_or_default();
        Self { first_quartile: at(1), median: at(2), spread: at(3).saturating_sub(at(1)) }
    }
}

impl StopCost {
    /// The constants; `why` nothing was measured here.
    pub(crate) fn built_in(why: impl Into<String>) -> Self {
        Self { charged: RARE_STOP, calibration: Calibration::BuiltIn(why.into()) }
    }

    /// From what the child measured.
    fn measured(same: &[Duration], other: &[Duration]) -> Self {
        let child = PerCpu { same: Timing::of(same), other: Timing::of(other) };
        let slower = child.same.median.as_secs_f64() / CHILD_STOP.as_secs_f64();
        let slower = slower.clamp(LEAST, f64::from(MOST));
        let charged = RARE_STOP.same.mul_f64(slower);
        let woken = charged + child.other.first_quartile.saturating_sub(child.same.median);
        let other = RARE_STOP.other.mul_f64(slower).max(woken).min(MOST * RARE_STOP.other);
        Self {
            charged: PerCpu { same: charged, other },
            calibration: Calibration::Measured { stops: same.len(), child },
        }
    }
}

/// Measures what a stop costs here, or says why it cannot.
pub(crate) fn calibrate(kernel: &mut impl Kernel) -> StopCost {
    let allowed = sched_getaffinity(None).ok();
    let timed = timed_stops(kernel, allowed.as_ref());
    if let Some(allowed) = &allowed {
        let _ = sched_setaffinity(None, allowed);
    }
    match timed {
        Ok(times) if times.len() == 2 * STOPS => {
            let (same, other) = times.split_at(STOPS);
            StopCost::measured(same, other)
        }
        Ok(times) => StopCost::built_in(format!("{} of {} stops were timed", times.len(), 2 * STOPS)),
        Err(why) => StopCost::built_in(why.to_string()),
    }
}

/// Why the child's stops were not timed.
#[derive(Debug, thiserror::Error)]
enum NotTimed {
    /// There is no child.
    #[error("a child: {0}")]
    Start(io::Error),
    /// It may not be traced.
    #[error("tracing a child: {0}")]
    Seize(Errno),
    /// `sched_setaffinity` failed for the child or the tracer.
    #[error("CPUs cannot be chosen")]
    Affinity,
    /// It does not begin.
    #[error("a child: {0}")]
    Begin(io::Error),
    /// It does not go on after a stop.
    #[error("a child: {0}")]
    Resume(Errno),
    /// It had not ended after [`PATIENCE`].
    #[error("its stops took too long")]
    Patience,
}

/// The times that the child stood still.
fn timed_stops(kernel: &mut impl Kernel, allowed: Option<&CpuSet>) -> Result<Vec<Duration>, NotTimed> {
    let stops = Measuring::Stops { signal: SIGNALS[0] };
    let mut child = MeasuringChild::start(stops, 2 * STOPS).map_err(NotTimed::Start)?;
    let pid = child.pid();
    kernel.seize(pid, libc::PTRACE_O_EXITKILL).map_err(NotTimed::Seize)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_some_and(|allowed| allowed.is_set(cpu)));
    let (here, elsewhere) = (cpus.next(), cpus.next());
    let keep_to = |thread: Option<Pid>, cpu: Option<usize>| {
        let mut only = CpuSet::new();
        only.set(cpu?);
        sched_setaffinity(thread, &only).ok()
    };
    let pinned = keep_to(Pid::from_raw(pid), here).and_then(|()| keep_to(None, here));
    pinned.ok_or(NotTimed::Affinity)?;
    child.go_on().map_err(NotTimed::Begin)?;
    let (mut stops, end) = (0, kernel.now() + PATIENCE);
    loop {
        match kernel.next_report() {
            Some((thread, Report::Ended(_))) if thread == pid => break,
            Some((thread, Report::Signal(_))) if thread == pid => {
                stops += 1;
                // The other half, from afar.
                if stops == STOPS {
                    let _ = keep_to(None, elsewhere);
                }
                kernel.resume(pid, 0).map_err(NotTimed::Resume)?;
            }
            Some(_) => {}
            None if kernel.now() > end => return Err(NotTimed::Patience),
            None => drop(kernel.wait(PATIENCE / 10)),
        }
    }
    child.has_ended();
    Ok(child.times(PATIENCE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Waiting, realtime_signal};
    use crate::tracer::kernel::linux::LinuxKernel;

    const fn us(microseconds: u64) -> Duration {
        Duration::from_micros(microseconds)
    }

    #[test]
    fn median_and_spread_of_times() {
        let times: Vec<Duration> = (1..=9).map(|time| us(10 * time)).collect();
        let expected = Timing { first_quartile: us(30), median: us(50), spread: us(40) };
        assert_eq!(Timing::of(&times), expected);
        assert_eq!(Timing::of(&[]), Timing::default());
    }

    #[test]
    fn a_machine_of_half_the_speed_charges_twice() {
        let cost = |slower: u32, other: Duration| StopCost::measured(&[slower * CHILD_STOP; STOPS], &[other; STOPS]);
        assert_eq!(cost(1, us(10)).charged, RARE_STOP);
        let twice = cost(2, us(20));
        assert_eq!(twice.charged, PerCpu { same: 2 * RARE_STOP.same, other: 2 * RARE_STOP.other });
        let Calibration::Measured { stops, child } = twice.calibration else { unreachable!() };
        assert_eq!((stops, child.same.median, child.other.spread), (STOPS, 2 * CHILD_STOP, us(0)));
        assert_eq!(cost(1, us(200)).charged.other, us(200) + RARE_STOP.same - CHILD_STOP, "it takes long to wake up");
        let disturbed = cost(1000, us(100_000)).charged;
        assert_eq!(disturbed, PerCpu { same: 2 * RARE_STOP.same, other: 2 * RARE_STOP.other });
    }

    #[test]
    fn a_child_is_timed_and_is_gone_then() {
        let waiting = Waiting::block(realtime_signal());
        let mut kernel = LinuxKernel::new(waiting.signals());
        let cost = calibrate(&mut kernel);
        eprintln!("{cost:?}");
        match cost.calibration {
            Calibration::Measured { stops, child } => {
                assert_eq!(stops, STOPS);
                assert!(child.same.median > Duration::ZERO && child.same.median < PATIENCE);
                assert!(cost.charged.same >= RARE_STOP.same / 2 && cost.charged.other <= 2 * RARE_STOP.other);
            }
            Calibration::BuiltIn(why) => {
                testing::skip!(NoTracing, "stops cannot be timed here: {why}");
                assert_eq!(cost.charged, RARE_STOP);
            }
        }
        assert_eq!(kernel.next_report(), None);
    }
}
