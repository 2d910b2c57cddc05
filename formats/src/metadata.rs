//! What a recording says of itself beyond what `perf.data` has a place for: JSON of the schema `hbbp-recording/1`.
//!
//! It stands in a recording twice:
//! - **first**, as the first record of the data section: the number of the feature (250, `u64`), then the text, with spaces at its end
//!   up to a multiple of 8 bytes. It says what is known when recording begins, and so is there if the recorder is killed. The record's
//!   type is `PERF_RECORD_HEADER_EVENT_TYPE` (65), for which `perf` has had no use since 3.10 and which it passes over in silence, as
//!   `llvm-profgen`, `perf2bolt` and `create_llvm_prof` do. (At a `PERF_RECORD_HEADER_FEATURE`, as pipe mode has them, `perf report`
//!   stops if it does not know the feature; at record types that it does not know `perf` 6.1 stops, too.)
//! - **last**, as the feature section of bit 250, with all counts and everything that became known since.
//!
//! A reader takes the last if there is one, else the first. Every field may be absent. A value that is odd, or that this version does
//! not know, is read as an absent one; fields that it does not know are ignored.
//!
//! ```text
//! {"schema":"hbbp-recording/1","version":"0.1.0","source":"clock","target":"command",
//!  "events":[{"name":"task-clock:u","role":"ebs","unit":"nanoseconds","period":{"every":10000019},"precise":0,"levels":"user",
//!             "samples":412,"counted":..,"enabled_ns":..,"running_ns":..,"lost":0},
//!            {"name":"burst:u","role":"lbr",..,"branches":"any,u","provenance":"software","samples":..}],
//!  "tracer":{"kind":"lookahead",..},"degradations":["no PMU: .."],
//!  "samples":..,"lost":0,"lost_by_hardware":0,"throttled":0,"late":0,
//!  "began_unix_ns":..,"duration_ns":..,"collector_cpu_ns":..}
//! ```

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::calibration::Calibration;
pub use crate::made_code::MadeCodeMetadata;
pub use crate::mapped_files::MappedFilesMetadata;
pub use crate::simulation::SimulationMetadata;
use crate::tolerant::{Tolerant, object, plain_values, tolerant_objects};
pub use crate::tracer::{
    AgentsMetadata, ChecksMetadata, Percent, PredictionCounts, StartingMetadata, StopCostMetadata, TracerMetadata,
    TracerTimes,
};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-recording/1";

/// The number of the feature section in which it stands last, and the first word of the record in which it stands first.
pub const FEATURE: u32 = 250;

/// The type of that record, `PERF_RECORD_HEADER_EVENT_TYPE`.
pub const RECORD_TYPE: u32 = 65;

/// What fits into a record beside its header and the number of the feature.
const MOST_IN_RECORD: usize = 65_528 - 16;

tolerant_objects! {
    /// What a recording says of itself: the JSON of feature 250.
    pub struct Metadata {
        /// [`SCHEMA`]; readers take later versions, too.
        pub schema: Option<String>,
        /// Version of hbbp that recorded.
        pub version: Option<String>,
        /// What the counts come from.
        pub source: Option<CountsFrom>,
        /// What was recorded: `command`, `processes`, `threads`, `cgroup` or `system`.
        pub target: Option<String>,
        /// The control group that was recorded: its path in the hierarchy, as the recorder saw it.
        pub cgroup: Option<String>,
        /// The events, in the order of the recording.
        pub events: Vec<EventMetadata>,
        /// Entries of a full branch stack, where the kernel says.
        pub branch_depth: Option<u32>,
        /// The software tracer, if branches are traced.
        pub tracer: Option<TracerMetadata>,
        /// The simulated PMU, if it makes the samples.
        pub simulation: Option<SimulationMetadata>,
        /// What the recording has of code that is in no file, if bursts executed some.
        pub made_code: Option<MadeCodeMetadata>,
        /// What is known of the files that were mapped as code.
        pub mapped_files: Option<MappedFilesMetadata>,
        /// How far away data was on the machine, where that had been measured.
        pub calibration: Option<Calibration>,
        /// Everything that is less than it could be, in sentences.
        pub degradations: Vec<String>,
        /// Samples in the recording, of all events.
        pub samples: Option<u64>,
        /// Records the kernel had no room for in a ring, samples and others (`PERF_RECORD_LOST`); those lost after the last that was
        /// written are in no other place.
        pub lost: Option<u64>,
        /// Samples the hardware or its driver lost (`PERF_RECORD_LOST_SAMPLES`).
        pub lost_by_hardware: Option<u64>,
        /// Times the kernel held an event back because it sampled too often.
        pub throttled: Option<u64>,
        /// Records whose place in time was past when they were read.
        pub late: Option<u64>,
        /// Samples of other events that came before the first burst and were left out; absent if there were none.
        pub before_first_burst: Option<u64>,
        /// Samples that were left out because what made them was switched off; absent if there were none.
        pub switched_off: Option<u64>,
        /// Marks of phases; absent if there are none.
        pub phase_marks: Option<u64>,
        /// Which file of a recording it is that goes on in others, from 1 on.
        pub file: Option<u64>,
        /// Samples made before this file, and after the one before, while no file could be written; absent if there were none.
        pub unwritten: Option<u64>,
        /// When recording began, by the clock of the machine: ns since 1970 in UTC. Recordings of before do not say it.
        pub began_unix_ns: Option<u64>,
        /// Time from start to stop, ns.
        pub duration_ns: Option<u64>,
        /// CPU time of the collector itself, ns.
        pub collector_cpu_ns: Option<u64>,
    }

    /// One event of a recording. One without a name is passed over.
    pub struct EventMetadata {
        /// Its name in the recording.
        pub name: String,
        /// What its samples are for.
        pub role: Option<Role>,
        /// What its period counts.
        pub unit: Option<Unit>,
        /// When it samples: `{"every": N}` or `{"frequency": N}`.
        pub period: Option<Period>,
        /// `precise_ip`, 0 to 3.
        pub precise: Option<u8>,
        /// Privilege levels at which it samples.
        pub levels: Option<Levels>,
        /// Branches its samples hold, in the words of `perf record -j`.
        pub branches: Option<String>,
        /// Where its samples, or their branch stacks, come from.
        pub provenance: Option<Provenance>,
        /// Samples in the recording.
        pub samples: Option<u64>,
        /// What it counted in all, over all CPUs and threads, inherited ones included.
        pub counted: Option<u64>,
        /// Time it was to count, ns: run time of the threads, or of the CPUs.
        pub enabled_ns: Option<u64>,
        /// Time it counted, ns: less where events outnumber counters, or the event is one of some CPUs only.
        pub running_ns: Option<u64>,
        /// Samples lost, where the kernel says.
        pub lost: Option<u64>,
    }
}

/// CPU time of a program that hardly ran, ns;
const HARDLY_ANY_NS: u64 = 20_000_000;
/// where it is less than such a part of the time, as much as this.
const HARDLY_ANY_PART: u64 = 100;
const LITTLE_NS: u64 = 1_000_000_000;

/// Why a text is no metadata.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MetadataError(#[from] serde_json::Error);

impl Metadata {
    /// Reads a recording's metadata, of any version.
    ///
    /// # Errors
    /// The text is no JSON object. Odd values in one are no errors.
    pub fn read(text: &[u8]) -> Result<Self, MetadataError> {
        // An array would be taken for the fields in their order.
        let fields: Map<String, Value> = serde_json::from_slice(text)?;
        Ok(serde_json::from_value(Value::Object(fields))?)
    }

    /// Writes it, as one line.
    pub fn to_json(&self) -> Vec<u8> {
        // Maps have strings as keys, and nothing in it refuses: there is nothing that could fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Writes it so that it fits into a record. Sentences that do not fit in are left out, the last first, and a sentence says how many;
    /// `None` if it is too long even then.
    pub fn to_record_text(&self) -> Option<Vec<u8>> {
        let mut text = self.to_json();
        for kept in (0..self.degradations.len()).rev() {
            if text.len() <= MOST_IN_RECORD {
                break;
            }
            let mut shorter = self.clone();
            shorter.degradations.truncate(kept);
            let left_out = self.degradations.len() - kept;
            shorter.degradations.push(format!("degradations left out for lack of room in a record: {left_out}"));
            text = shorter.to_json();
        }
        (text.len() <= MOST_IN_RECORD).then_some(text)
    }

    /// Writes it as the body of the record in which it stands first, [shortened](Self::to_record_text) if it must be; `None` if it is too
    /// long even then.
    pub fn to_record_body(&self) -> Option<Vec<u8>> {
        let mut text = self.to_record_text()?;
        let mut body = u64::from(FEATURE).to_le_bytes().to_vec();
        body.append(&mut text);
        body.resize(body.len().next_multiple_of(8), b' ');
        Some(body)
    }

    /// The text in the body of such a record, if it is one.
    pub fn text_of_record(record_type: u32, body: &[u8]) -> Option<&[u8]> {
        let (feature, text) = body.split_first_chunk()?;
        (record_type == RECORD_TYPE && u64::from_le_bytes(*feature) == u64::from(FEATURE)).then_some(text)
    }

    /// The CPU time of the program, and how long was recorded, if the program hardly ran: less than 20 ms, or less than 1 s
    /// and than a hundredth of the time.
    /// What recording took is a matter of its own then, and no share of anything.
    pub fn idle(&self) -> Option<(Duration, Duration)> {
        if self.tracer.as_ref()?.of_files.is_some() {
            return None;
        }
        let program = self.tracer.as_ref()?.time.as_ref()?.application_ns?;
        let recorded = self.duration_ns?;
        let is_idle = program < HARDLY_ANY_NS.max((recorded / HARDLY_ANY_PART).min(LITTLE_NS));
        is_idle.then(|| (Duration::from_nanos(program), Duration::from_nanos(recorded)))
    }

    /// When the recording ended, ns since 1970 in UTC; when it began, where it does not say how long it was.
    pub fn ended_unix_ns(&self) -> Option<u64> {
        self.began_unix_ns?.checked_add(self.duration_ns.unwrap_or_default())
    }

    /// What is said of the event of that name.
    pub fn event(&self, name: &str) -> Option<&EventMetadata> {
        self.events.iter().find(|event| event.name == name)
    }
}

impl Tolerant for EventMetadata {
    fn of(value: Value) -> Option<Self> {
        object(value).filter(|event: &Self| !event.name.is_empty())
    }
}

plain_values! { CountsFrom Role Provenance Unit Period Levels }

/// Where the counts of a recording come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountsFrom {
    /// Branch stacks of the hardware, with or without event samples.
    BranchRecords,
    /// Event samples of a hardware counter.
    Counter,
    /// There are samples of a clock only.
    Clock,
    /// Samples of some other event the user chose.
    Other,
}

/// What an event's samples are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Event-based sampling: the ip counts, a branch stack is not used.
    Ebs,
    /// Branch stacks: the stack counts, the ip is not used.
    Lbr,
}

/// Where branch stacks come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The branch records of the CPU.
    #[default]
    Hardware,
    /// The tracer. The ip of such a sample is that of the first instruction of the path that its stack shows, and its weight the
    /// number of instructions on it.
    Software,
    /// The simulated PMU.
    Simulated,
}

/// What one step of an event's period is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A retired instruction.
    Instructions,
    /// A dispatched micro-operation (AMD IBS).
    Operations,
    /// A retired branch that was taken.
    TakenBranches,
    /// A retired branch, taken or not.
    Branches,
    /// A nanosecond of CPU time.
    Nanoseconds,
    /// Something else, by the user's choice of event.
    Other,
}

/// When an event samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// Once in so many counts.
    Every(u64),
    /// So many times a second; the kernel adapts the period.
    Frequency(u64),
}

/// Privilege levels that are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// User space and kernel.
    #[default]
    All,
    /// User space only: the kernel's code has no samples.
    User,
    /// The kernel's code only: user space has no samples.
    Kernel,
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(count) => write!(f, "every {count}"),
            Self::Frequency(hertz) => write!(f, "{hertz} Hz"),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instructions",
            Self::Operations => "micro-operations",
            Self::TakenBranches => "taken branches",
            Self::Branches => "branches",
            Self::Nanoseconds => "ns of CPU time",
            Self::Other => "counts",
        })
    }
}
