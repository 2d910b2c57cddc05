//! What the signals cost by which agents get to their bursts.
//!
//! A thread that takes a burst itself loses more than its handler sees: the interrupt of the clock, the delivery of the signal and the
//! return from it; the same for the signals before a system call and after it. All of that is the kernel's work, and that of the
//! hypervisor below it, so it differs between machines.
//!
//! **What is measured** when tracing begins ([`SignalCost::measure`]): a child of the tracer's own makes system calls as threads do that
//! go on with their bursts after them, and then computes while a clock of it overflows. It takes some milliseconds and touches no other program.
//!
//! **What is not**: the cold caches after a burst, which depend on the program ([`COLD`]).

use std::io;
use std::time::Duration;

use perfdata::EventAttr;

use crate::errno::Errno;
use crate::sys::{EventFd, Measuring, MeasuringChild, Scope, children_time};
use crate::tracer::budget::stop_cost::Timing;
use crate::tracer::settings::Clock;

/// What a signal of a clock, and one system call that a burst goes on after, cost in a virtual machine (Zen 4): where nothing is measured.
const BUILT_IN: (Duration, Duration) = (Duration::from_micros(30), Duration::from_micros(17));
/// The caches of the program that are cold after a burst, as a part of the handler's time: what takes the handler time is memory that was not
/// in them, and what it takes the place of is fetched again. From `benches/budget` at 20 %: with the signal alone, a burst of a loop over
/// 16 KiB cost 17 us more than was charged, where the handler takes 67 us, and one of bzip2 102 us, where it takes 300.
const COLD: f64 = 0.3;

/// Overflows and system calls that are timed.
const TIMES: usize = 8;
/// CPU time between two of the overflows, ns: several times what one costs. With shorter ones the kernel's caches are warm: a twentieth less.
const PERIOD: u64 = 100_000;
/// How long the child is waited for.
const PATIENCE: Duration = Duration::from_millis(100);
/// No more than this is believed: beyond, something else had the CPU.
const MOST: Duration = Duration::from_micros(200);

/// What bursts of agents are charged beside the CPU time that their handlers see themselves use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignalCost {
    /// The overflow, the delivery of the signal, the return from it.
    pub(crate) signal: Charge,
    /// What going on after a system call costs: SIGSYS, SIGTRAP, and the returns from them.
    pub(crate) system_call: Charge,
    /// CPU time of the child.
    pub(crate) took: Duration,
}

/// What is charged, and what that is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) cost: Duration,
    /// From the first quartile of the times to the third; or why the constant holds.
    pub(crate) spread: Result<Duration, String>,
}

/// Why there are no times.
#[derive(Debug, thiserror::Error)]
enum NotTimed {
    #[error("a child: {0}")]
    Start(io::Error),
    #[error("a clock for a child: {0}")]
    Clock(Errno),
    #[error("a child: {0}")]
    GoOn(io::Error),
}

impl Charge {
    fn built_in(cost: Duration, why: impl Into<String>) -> Self {
        Self { cost, spread: Err(why.into()) }
    }

    /// From times, if there are enough.
    fn of(times: &[Duration], built_in: Duration) -> Self {
        let timing = Timing::of(times);
        if times.len() < TIMES || timing.median.is_zero() {
            return Self::built_in(built_in, format!("{} of {TIMES} were timed", times.len()));
        }
        Self { cost: timing.median.min(MOST), spread: Ok(timing.spread) }
    }
}

impl SignalCost {
    /// The constants; `why` nothing was measured here.
    pub(crate) fn built_in(why: impl Into<String>) -> Self {
        let why = why.into();
        let (signal, system_call) = BUILT_IN;
        let (signal, system_call) = (Charge::built_in(signal, why.clone()), Charge::built_in(system_call, why));
        Self { signal, system_call, took: Duration::ZERO }
    }

    /// From what the child measured.
    fn measured(signals: &[Duration], system_calls: &[Duration], took: Duration) -> Self {
        let (signal, system_call) = BUILT_IN;
        Self { signal: Charge::of(signals, signal), system_call: Charge::of(system_calls, system_call), took }
    }

    /// Measures it with a clock like those of the threads, or says why it cannot.
    pub(crate) fn measure() -> Self {
        let before = children_time();
        match times() {
            Ok((signals, system_calls)) => {
                Self::measured(&signals, &system_calls, children_time().saturating_sub(before))
            }
            Err(why) => Self::built_in(why.to_string()),
        }
    }

    /// What a burst is charged beside the time of its handler.
    pub(crate) fn of_burst(&self, handler: Duration, system_calls: u32) -> Duration {
        self.signal.cost + handler.mul_f64(COLD) + self.system_call.cost * system_calls
    }

    /// Why not all of it was measured.
    pub(crate) fn not_measured(&self) -> Option<String> {
        let why = |what: &str, charge: &Charge| charge.spread.as_ref().err().map(|why| format!("{what}: {why}"));
        let reasons = [why("signals", &self.signal), why("system calls", &self.system_call)];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// How long a child was kept from its code by signals of its clock, and by system calls with signals around them. It is gone then.
fn times() -> Result<(Vec<Duration>, Vec<Duration>), NotTimed> {
    let signal = libc::SIGURG;
    let child = MeasuringChild::start(Measuring::Signals { signal }, TIMES).map_err(NotTimed::Start)?;
    let attr = EventAttr { sample_period_or_freq: PERIOD, ..Clock::Time.attr() };
    let clock = EventFd::open(&attr, Scope::Thread(child.pid(), None)).map_err(NotTimed::Clock)?;
    child.go_on().map_err(NotTimed::GoOn)?;
    let system_calls = child.times(PATIENCE);
    if system_calls.is_empty() {
        return Ok((Vec::new(), system_calls));
    }
    clock.signal_to(child.pid(), signal).and_then(|()| clock.enable()).map_err(NotTimed::Clock)?;
    child.go_on().map_err(NotTimed::GoOn)?;
    Ok((child.times(PATIENCE), system_calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(microseconds: u64) -> Duration {
        Duration::from_micros(microseconds)
    }

    #[test]
    fn what_was_timed_is_charged() {
        let cost = SignalCost::measured(&[us(5); TIMES], &[us(3); TIMES], us(0));
        assert_eq!((cost.signal.cost, cost.system_call.cost, cost.not_measured()), (us(5), us(3), None));
        assert_eq!(cost.of_burst(us(100), 2), us(5 + 30 + 6));
        // Something else had the CPU.
        assert_eq!(SignalCost::measured(&[us(900); TIMES], &[us(3); TIMES], us(0)).signal.cost, MOST);
    }

    #[test]
    fn what_was_not_timed_is_taken_from_elsewhere() {
        let (signal, system_call) = BUILT_IN;
        // The clock did not overflow; the system calls could not be followed.
        let cost = SignalCost::measured(&[us(5); 3], &[us(3); TIMES], us(0));
        assert_eq!((cost.signal.cost, cost.system_call.cost), (signal, us(3)));
        assert!(cost.not_measured().is_some_and(|why| why.contains("signals: 3 of") && !why.contains("calls")));
        let cost = SignalCost::measured(&[us(5); TIMES], &[Duration::ZERO], us(0));
        assert_eq!((cost.signal.cost, cost.system_call.cost), (us(5), system_call));
    }

    #[test]
    fn a_child_is_timed() {
        if let Err(why) = EventFd::open(&Clock::Time.attr(), Scope::Thread(0, None)) {
            testing::skip!(NoTracing, "no event of a child opens: {why}");
            return;
        }
        // Other tests may have the CPUs for a while.
        let all = |cost: &SignalCost| cost.not_measured().is_none();
        let cost = (0..10).map(|_| SignalCost::measure()).find(all).expect("a child is timed once");
        assert!(cost.took > Duration::ZERO && cost.signal.cost <= MOST, "{cost:?}");
    }
}
