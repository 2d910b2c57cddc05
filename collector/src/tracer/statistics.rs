//! What the tracer did, for the recording and for whoever recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::tracer::options::{BurstSize, TracerKind};

/// CPU time that a sample of the clock costs (`benches/record-overhead`).
pub(crate) const SAMPLE: Duration = Duration::from_micros(20);

/// The `tracer` object of a recording's metadata.
#[derive(Clone, Debug, Serialize)]
pub struct TracerStatistics {
    /// How paths were found.
    pub kind: TracerKind,
    /// Where bursts ended at the latest.
    #[serde(flatten)]
    pub size: BurstSize,
    /// Percent of the threads' CPU time that recording was allowed to take.
    pub overhead_allowed: f64,
    /// Percent it took, by the times below.
    pub overhead: f64,
    /// Bursts recorded.
    pub bursts: u64,
    /// Bursts there was no room for.
    pub lost_bursts: u64,
    /// Samples of bursts that are not in the recording because they could not be written, which is a bug.
    pub unwritable_samples: u64,
    /// Instructions executed in bursts.
    pub instructions: u64,
    /// Taken branches recorded.
    pub taken_branches: u64,
    /// Of those, decided by their bytes: direct jumps and calls.
    pub static_branches: u64,
    /// Conditional branches that were not taken.
    pub not_taken: u64,
    /// *Break Dancing*, figure 4: of the branches not decided by their bytes, the share that was taken.
    pub taken_fraction: f64,
    /// Of the taken branches, the share that is decided by its bytes.
    pub static_fraction: f64,
    /// t / (1 - s): taken branches per branch that has to be evaluated.
    pub usefulness: f64,
    /// Pages of the threads' memory that bursts touched.
    pub pages: u64,
    /// Of those, read when they were touched; the others were read together before.
    pub pages_missed: u64,
    /// Times a thread was stopped for a burst.
    pub sampling_stops: u64,
    /// Times a thread stopped for something else: signals of the program, new threads, exec.
    pub other_stops: u64,
    /// Breakpoints that were reached.
    pub breakpoints: u64,
    /// Breakpoints given up: not reached in time, or not by the expected path.
    pub breakpoints_missed: u64,
    /// Threads and processes that were traced.
    pub threads: u64,
    /// As above.
    pub processes: u64,
    /// Times a thread was let go untraced for a while because its own signals took more than the budget.
    pub backed_off: u64,
    /// Why bursts ended.
    pub ends: BTreeMap<String, u64>,
    /// What bursts went on behind, by a breakpoint.
    pub continued: BTreeMap<String, u64>,
    /// Instructions that are not interpreted.
    pub unsupported: BTreeMap<String, u64>,
    /// Registers as predicted, where the thread could be looked at again.
    pub predictions: Predictions,
    /// Where time went.
    pub time: Times,
}

/// Predictions compared with what happened.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Predictions {
    /// Compared.
    pub checked: u64,
    /// Not as predicted: other threads or the kernel changed memory meanwhile, or a handler ran.
    pub diverged: u64,
}

/// Times, ns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// CPU time of the traced threads.
    #[serde(rename = "application_ns", serialize_with = "nanoseconds")]
    pub application: Duration,
    /// Interrupts and switches to the tracer and back: what a stop was measured to cost, with the tracer on the thread's CPU or another.
    #[serde(rename = "stops_ns", serialize_with = "nanoseconds")]
    pub stops: Duration,
    /// Reading registers and memory of stopped threads.
    #[serde(rename = "state_ns", serialize_with = "nanoseconds")]
    pub state: Duration,
    /// Interpreting.
    #[serde(rename = "lookahead_ns", serialize_with = "nanoseconds")]
    pub lookahead: Duration,
    /// Decoding.
    #[serde(rename = "decoding_ns", serialize_with = "nanoseconds")]
    pub decoding: Duration,
    /// Setting breakpoints, and the stops at them.
    #[serde(rename = "breakpoints_ns", serialize_with = "nanoseconds")]
    pub breakpoints: Duration,
    /// The rest of the tracer's CPU time.
    #[serde(rename = "other_ns", serialize_with = "nanoseconds")]
    pub other: Duration,
    /// Event samples beside: their number times what one was measured to cost.
    #[serde(rename = "samples_ns", serialize_with = "nanoseconds")]
    pub samples: Duration,
}

fn nanoseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Times {
    /// The parts that are measured on their own.
    pub(crate) fn measured(&self) -> Duration {
        self.state + self.lookahead + self.decoding + self.breakpoints
    }

    /// What recording took.
    pub fn spent(&self) -> Duration {
        self.stops + self.state + self.lookahead + self.decoding + self.breakpoints + self.other + self.samples
    }
}

impl TracerStatistics {
    pub(crate) fn new(kind: TracerKind, size: BurstSize, overhead_allowed: f64) -> Self {
        Self {
            kind,
            size,
            overhead_allowed,
            overhead: 0.0,
            bursts: 0,
            lost_bursts: 0,
            unwritable_samples: 0,
            instructions: 0,
            taken_branches: 0,
            static_branches: 0,
            not_taken: 0,
            taken_fraction: 0.0,
            static_fraction: 0.0,
            usefulness: 0.0,
            pages: 0,
            pages_missed: 0,
            sampling_stops: 0,
            other_stops: 0,
            breakpoints: 0,
            breakpoints_missed: 0,
            threads: 0,
            processes: 0,
            backed_off: 0,
            ends: BTreeMap::new(),
            continued: BTreeMap::new(),
            unsupported: BTreeMap::new(),
            predictions: Predictions::default(),
            time: Times::default(),
        }
    }

    /// Adds what event samples cost, and computes the shares.
    pub(crate) fn complete(&mut self, samples: u64) {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        self.time.samples = SAMPLE.saturating_mul(u32::try_from(samples).unwrap_or(u32::MAX));
        let application = self.time.application.as_secs_f64();
        self.overhead = if application > 0.0 { self.time.spent().as_secs_f64() / application * 100.0 } else { 0.0 };
        let evaluated = self.taken_branches - self.static_branches;
        self.taken_fraction = share(evaluated, evaluated + self.not_taken);
        self.static_fraction = share(self.static_branches, self.taken_branches);
        self.usefulness = share(self.taken_branches, evaluated + self.not_taken);
    }

    /// Adds one to a count that has a name.
    pub(crate) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
        match counts.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(counts.insert(name.to_owned(), 1)),
        }
    }
}
