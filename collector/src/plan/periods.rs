//! How often to sample.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long the program is expected to run: longer runs need fewer samples a second for the same number of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunTime {
    /// Up to half a minute.
    Seconds,
    /// A few minutes; also what is assumed where nothing is known.
    #[default]
    Minutes,
    /// It runs longer than that.
    Long,
}

/// Sampling periods for one run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// Instructions between two EBS samples.
    pub ebs: u64,
    /// Taken branches between two branch stacks.
    pub lbr: u64,
    /// Nanoseconds of CPU time between two clock samples.
    pub clock: u64,
}

impl RunTime {
    /// The bracket of a run time that is known.
    pub fn of(duration: Duration) -> Self {
        match duration.as_secs() {
            0..=30 => Self::Seconds,
            31..=300 => Self::Minutes,
            _ => Self::Long,
        }
    }

    /// The periods. Those of counters are HBBP table 4; all are primes, so that they do not fall in step with a loop.
    /// The clock periods give 400, 250 and 100 samples per second of CPU time; where a sample costs
    /// 20 us, as in virtual machines, that is 0.8, 0.5 and 0.2 %.
    pub fn periods(self) -> Periods {
        match self {
            Self::Seconds => Periods { ebs: 1_000_037, lbr: 100_003, clock: 2_500_009 },
            Self::Minutes => Periods { ebs: 10_000_019, lbr: 1_000_037, clock: 4_000_037 },
            Self::Long => Periods { ebs: 100_000_007, lbr: 10_000_019, clock: 10_000_019 },
        }
    }
}

/// A text that names no run time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of seconds, minutes, long")]
pub struct UnknownRunTime(pub String);

impl FromStr for RunTime {
    type Err = UnknownRunTime;

    fn from_str(text: &str) -> Result<Self, UnknownRunTime> {
        match text {
            "seconds" => Ok(Self::Seconds),
            "minutes" => Ok(Self::Minutes),
            "long" => Ok(Self::Long),
            other => Err(UnknownRunTime(other.to_owned())),
        }
    }
}

impl fmt::Display for RunTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Long => "long",
        })
    }
}

/// The smallest prime that is `from` or more, for periods under 2^40 (a larger one is returned as it is).
pub fn prime_from(from: u64) -> u64 {
    if from >= 1 << 40 {
        return from;
    }
    (from.max(2)..).find(|&candidate| is_prime(candidate)).unwrap_or(from)
}

fn is_prime(number: u64) -> bool {
    number >= 2 && (2..).take_while(|&factor| factor * factor <= number).all(|factor| !number.is_multiple_of(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_periods_are_primes() {
        for run_time in [RunTime::Seconds, RunTime::Minutes, RunTime::Long] {
            let Periods { ebs, lbr, clock } = run_time.periods();
            for period in [ebs, lbr, clock] {
                assert!(is_prime(period), "{period}");
            }
            assert_eq!(run_time.to_string().parse(), Ok(run_time));
        }
    }

    #[test]
    fn next_primes() {
        for (from, prime) in [(0, 2), (14, 17), (17, 17), (1_000_000, 1_000_003), (10_000_000, 10_000_019)] {
            assert_eq!(prime_from(from), prime, "{from}");
        }
        assert_eq!(prime_from(1 << 50), 1 << 50);
    }

    #[test]
    fn brackets() {
        let of = |seconds| RunTime::of(Duration::from_secs(seconds));
        assert_eq!(
            [of(5), of(30), of(31), of(300), of(301)].map(|t| t.to_string()),
            ["seconds", "seconds", "minutes", "minutes", "long"]
        );
    }
}
