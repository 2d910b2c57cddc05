//! What the signals cost by which agents get to their bursts.
//!
//! A thread that takes a burst itself loses more than its handler sees: the interrupt of the clock, the delivery of the signal and the
//! return from it; the same for the signals in front of a system call and after it. All of that is the kernel's work, and that of the
//! hypervisor below it, so it differs tenfold between machines.
//!
//! **What is measured** when tracing begins ([`SignalCost::measure`]): a child of the tracer's own makes system calls as threads do that
//! go on with their bursts after them, and then computes while a clock of it overflows. It takes some milliseconds and touches no other program.
//!
//! **What is not**: the cold caches after a burst, which depend on the program ([`COLD`]).

use std::time::Duration;

use perfdata::EventAttr;

use crate::sys::{EventFd, Measuring, MeasuringChild, Scope};
use crate::tracer::budget::stop_cost::Timing;
use crate::tracer::settings::Clock;

/// What a signal of a clock, and one system call that a burst goes on after, cost in a virtual machine (Zen 4): where nothing is measured.
const BUILT_IN: (Duration, Duration) = (Duration::from_micros(30), Duration::from_micros(17));
/// The caches of the program that are cold after a burst, as a part of the handler's time: what takes the handler time is memory that was not
/// in them, and what it takes the place of is fetched again. From `benches/budget` at 20 %: with the signal alone, a burst of a loop over
/// 16 KiB cost 17 us more than was charged, where the handler takes 67 us, and one of bzip2 102 us, where it takes 300.
const COLD: f64 = 0.3;

/// Overflows and system calls that are timed.
const TIMES: usize = 16;
/// CPU time between two of the overflows, ns.
const PERIOD: u64 = 30_000;
/// How long the child is waited for.
const PATIENCE: Duration = Duration::from_millis(100);
/// What is believed: beyond, something else had the CPU.
const MOST: Duration = Duration::from_micros(200);

/// What bursts of agents are charged beside the CPU time that their handlers see themselves use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignalCost {
    /// The overflow, the delivery of the signal, the return from it.
    pub(crate) signal: Duration,
    /// What going on after a system call costs: SIGSYS, SIGTRAP, and the returns from them.
    pub(crate) system_call: Duration,
    pub(crate) calibration: Calibration,
}

/// Whether costs were measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Calibration {
    Measured {
        signal: Timing,
        system_call: Timing,
    },
    /// Not at all: the constants hold. Why.
    BuiltIn(String),
}

impl SignalCost {
    /// The constants; `why` nothing was measured here.
    pub(crate) fn built_in(why: impl Into<String>) -> Self {
        let (signal, system_call) = BUILT_IN;
        Self { signal, system_call, calibration: Calibration::BuiltIn(why.into()) }
    }

    /// From what the child measured.
    fn measured(signals: &[Duration], system_calls: &[Duration]) -> Self {
        let (signal, system_call) = (Timing::of(signals), Timing::of(system_calls));
        let is_believed = |timing: &Timing| !timing.median.is_zero() && timing.median <= MOST;
        if signals.len() < TIMES || !is_believed(&signal) || !is_believed(&system_call) {
            let (signals, calls) = (signals.len(), system_calls.len());
            return Self::built_in(format!(
                "{signals} signals and {calls} system calls of a child were timed, medians {:?} and {:?}",
                signal.median, system_call.median
            ));
        }
        let calibration = Calibration::Measured { signal, system_call };
        Self { signal: signal.median, system_call: system_call.median, calibration }
    }

    /// Measures it with a clock like those of the threads, or says why it cannot.
    pub(crate) fn measure() -> Self {
        let signal = libc::SIGURG;
        let mut child = match MeasuringChild::fork(Measuring::Signals { signal }, TIMES) {
            Ok(child) => child,
            Err(error) => return Self::built_in(format!("fork: {error}")),
        };
        let attr = EventAttr { sample_period_or_freq: PERIOD, ..Clock::Time.attr() };
        let clock = match EventFd::open(&attr, Scope::Thread(child.pid(), None)) {
            Ok(clock) => clock,
            Err(errno) => return Self::built_in(format!("a clock for a child: {errno}")),
        };
        if let Err(error) = child.begin() {
            return Self::built_in(format!("a child: {error}"));
        }
        let system_calls = child.times(PATIENCE);
        if let Err(errno) = clock.signal_to(child.pid(), signal).and_then(|()| clock.enable()) {
            return Self::built_in(format!("a clock for a child: {errno}"));
        }
        Self::measured(&child.times(PATIENCE), &system_calls)
    }

    /// What a burst is charged beside the time of its handler.
    pub(crate) fn of_burst(&self, handler: Duration, system_calls: u32) -> Duration {
        self.signal + handler.mul_f64(COLD) + self.system_call * system_calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(microseconds: u64) -> Duration {
        Duration::from_micros(microseconds)
    }

    #[test]
    fn what_was_timed_is_charged() {
        let cost = SignalCost::measured(&[us(5); TIMES], &[us(3); TIMES]);
        assert_eq!((cost.signal, cost.system_call), (us(5), us(3)));
        assert_eq!(cost.of_burst(us(100), 2), us(5 + 30 + 6));
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let built_in = |cost: &SignalCost| {
            matches!(cost.calibration, Calibration::BuiltIn(_)) && (cost.signal, cost.system_call) == BUILT_IN
        };
        // The clock did not overflow; the system calls could not be followed; something else had the CPU.
        assert!(built_in(&SignalCost::measured(&[us(5); 3], &[us(3); TIMES])));
        assert!(built_in(&SignalCost::measured(&[us(5); TIMES], &[])));
        assert!(built_in(&SignalCost::measured(&[us(5); TIMES], &[Duration::ZERO])));
        assert!(built_in(&SignalCost::measured(&[MOST * 2; TIMES], &[us(3); TIMES])));
    }

    #[test]
    fn a_child_is_timed() {
        let cost = SignalCost::measure();
        eprintln!("{cost:?}");
        match &cost.calibration {
            Calibration::Measured { signal, system_call } => {
                assert_eq!((cost.signal, cost.system_call), (signal.median, system_call.median));
                assert!(signal.median > Duration::ZERO && system_call.median > Duration::ZERO);
            }
            Calibration::BuiltIn(why) => {
                testing::skip!(NoTracing, "signals cannot be timed here: {why}");
                assert_eq!((cost.signal, cost.system_call), BUILT_IN);
            }
        }
    }
}
