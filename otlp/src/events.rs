//! What the values of a profile stand for.

use perfdata::{AttrFlags, EventAttr, EventDescription, SampleFormat};

/// What `hbbp export` calls the instructions of each place, beside `instructions` by calling context: those have no addresses.
pub const BY_ADDRESS: &str = "instructions_by_address";

/// An event of the recording. All are in all recordings, and those without samples count nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Values are CPU time.
    CpuTime,
    /// Values are samples, each of which stands for CPU time.
    CpuSamples,
    /// Values are instructions, or samples that stand for some.
    Instructions,
    /// The same of cycles.
    Cycles,
    /// Values are samples of nobody knows what.
    Samples,
}

/// What a value of a profile counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The event that it is of.
    pub event: Event,
    /// What one stands for: ns, instructions or cycles.
    pub of_one: u64,
    /// What a value grows by with each sample, where that is known.
    pub per_sample: Option<u64>,
}

/// A type of values and its unit, in small letters.
pub(crate) type Kind = (String, String);

impl Event {
    /// In the order of their numbers.
    const ALL: [Self; 5] = [Self::CpuTime, Self::CpuSamples, Self::Instructions, Self::Cycles, Self::Samples];

    /// The events, in the order of their numbers.
    pub(crate) fn descriptions() -> Vec<EventDescription> {
        let format =
            SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::PERIOD;
        let event = |(event, id): (Self, u64)| {
            // PERF_TYPE_SOFTWARE and _HARDWARE; of 4, which is a raw code, the name says more.
            let (kind, config, name) = match event {
                Self::CpuTime => (1, 0, "otlp/cpu-time/"),
                Self::CpuSamples => (1, 0, "otlp/cpu-samples/"),
                Self::Instructions => (0, 1, "otlp/instructions/"),
                Self::Cycles => (0, 0, "otlp/cycles/"),
                Self::Samples => (4, 0, "otlp/samples/"),
            };
            let attr = EventAttr {
                kind,
                config,
                sample_period_or_freq: 1,
                sample_format: format,
                flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::USE_CLOCKID,
                // CLOCK_REALTIME
                clockid: 0,
                ..EventAttr::default()
            };
            EventDescription { attr, name: name.to_owned(), ids: vec![id] }
        };
        Self::ALL.into_iter().zip(1..).map(event).collect()
    }

    /// Its number in the recording.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl Meaning {
    /// What values of this kind mean, of samples that were taken each so many of a period; `None` if they do not count code that ran.
    pub(crate) fn of((kind, unit): &Kind, (of_period, unit_of_period): &Kind, period: i64) -> Option<Self> {
        let period = u64::try_from(period).ok().filter(|period| *period > 0);
        let is_cpu = |kind: &str| matches!(kind, "cpu" | "on_cpu" | "on-cpu" | "cpu_time" | "cpu-time");
        let period_ns = nanoseconds(unit_of_period).zip(period).filter(|_| is_cpu(of_period));
        let period_ns = period_ns.map(|(ns, period)| period.saturating_mul(ns));
        let measure = |event, of_one| {
            let per_sample = period_ns.map(|ns| ns / of_one).filter(|units| event == Event::CpuTime && *units > 0);
            Some(Meaning { event, of_one, per_sample })
        };
        match (kind.as_str(), nanoseconds(unit)) {
            (kind, Some(ns)) if is_cpu(kind) => return measure(Event::CpuTime, ns),
            ("instructions", None) => return measure(Event::Instructions, 1),
            (BY_ADDRESS, None) => return measure(Event::Instructions, 1),
            ("cycles" | "cpu-cycles" | "cpu_cycles", None) => return measure(Event::Cycles, 1),
            // Samples of a clock, of which `hbbp export` writes sums.
            ("time", None) if unit == "count" => return measure(Event::Samples, 1),
            ("samples" | "sample" | "cpu" | "on_cpu" | "on-cpu", None) => {}
            _ => return None,
        }
        let (event, of_one) = match (of_period.as_str(), period_ns, period) {
            (_, Some(ns), _) => (Event::CpuSamples, ns),
            ("instructions", _, Some(period)) => (Event::Instructions, period),
            ("cycles" | "cpu-cycles" | "cpu_cycles", _, Some(period)) => (Event::Cycles, period),
            _ => (Event::Samples, 1),
        };
        Some(Meaning { event, of_one, per_sample: Some(1) })
    }
}

/// How many there are in one of a unit of time.
fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "nanoseconds" | "nanosecond" | "ns" => 1,
        "microseconds" | "microsecond" | "us" => 1_000,
        "milliseconds" | "millisecond" | "ms" => 1_000_000,
        "seconds" | "second" | "s" => 1_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_described_in_the_order_of_their_numbers() {
        assert_eq!(Event::ALL.map(Event::index), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn values_are_what_their_types_say() {
        let kind = |(kind, unit): (&str, &str)| (kind.to_owned(), unit.to_owned());
        let of = |values, periods, period| {
            Meaning::of(&kind(values), &kind(periods), period).map(|meaning| (meaning.event, meaning.of_one))
        };
        let cpu = ("cpu", "nanoseconds");
        assert_eq!(of(("samples", "count"), cpu, 50_000_000), Some((Event::CpuSamples, 50_000_000)));
        assert_eq!(of(("samples", "count"), ("cpu", "ms"), 10), Some((Event::CpuSamples, 10_000_000)));
        assert_eq!(of(("samples", "count"), ("", ""), 0), Some((Event::Samples, 1)));
        assert_eq!(of(("samples", "count"), cpu, -1), Some((Event::Samples, 1)));
        assert_eq!(of(cpu, cpu, 10), Some((Event::CpuTime, 1)));
        assert_eq!(of(("cpu", "milliseconds"), ("", ""), 0), Some((Event::CpuTime, 1_000_000)));
        assert_eq!(of(("instructions", "count"), ("", ""), 0), Some((Event::Instructions, 1)));
        assert_eq!(of((BY_ADDRESS, "count"), ("", ""), 0), Some((Event::Instructions, 1)));
        assert_eq!(of(("time", "count"), ("", ""), 0), Some((Event::Samples, 1)));
        for other in [
            ("off_cpu", "nanoseconds"),
            ("executions", "count"),
            ("inuse_space", "bytes"),
            ("wall", "ns"),
            ("time", "ns"),
        ] {
            assert_eq!(of(other, cpu, 10), None, "{other:?}");
        }
    }
}
