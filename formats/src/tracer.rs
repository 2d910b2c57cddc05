//! What the software tracer says of itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tolerant::{Tolerant, objects, tolerant_objects};

tolerant_objects! {
    /// The `tracer` object of a recording's metadata. While the tracer runs, only how it was told to work is known.
    pub struct TracerMetadata {
        /// How paths are found: `lookahead`, `agent`, `agent-check`, `timer`, `breakpoint` or `check`.
        pub kind: Option<String>,
        /// Instructions after which a burst ends.
        pub burst_instructions: Option<u64>,
        /// Taken branches after which a burst ends.
        pub depth: Option<u64>,
        /// Percent of the threads' CPU time that recording may take.
        pub overhead_allowed: Option<f64>,
        /// What it may take on top of that in the first second of CPU time, ns.
        pub start_credit_ns: Option<u64>,
        /// Percent of the threads' CPU time that it took: 0 to 100,000.
        pub overhead: Option<Percent>,
        /// The numbers are of so many files, of which this is the last; absent: of this one.
        pub of_files: Option<u64>,
        /// Bursts that are in the recording.
        pub bursts: Option<u64>,
        /// Bursts there was no room for.
        pub lost_bursts: Option<u64>,
        /// Samples of bursts that are not in the recording because they could not be written, which is a bug.
        pub unwritable_samples: Option<u64>,
        /// Instructions executed in bursts.
        pub instructions: Option<u64>,
        /// Taken branches in bursts.
        pub taken_branches: Option<u64>,
        /// Of those, decided by their bytes: direct jumps and calls.
        pub static_branches: Option<u64>,
        /// Conditional branches that were not taken.
        pub not_taken: Option<u64>,
        /// *Break Dancing*, figure 4: of the branches not decided by their bytes, the share that was taken.
        pub taken_fraction: Option<f64>,
        /// Of the taken branches, the share that is decided by its bytes.
        pub static_fraction: Option<f64>,
        /// Taken branches per branch that has to be evaluated.
        pub usefulness: Option<f64>,
        /// Pages of the threads' memory that bursts touched.
        pub pages: Option<u64>,
        /// Of those, read when they were touched; the others were read together before.
        pub pages_missed: Option<u64>,
        /// Times a thread was stopped for a burst.
        pub sampling_stops: Option<u64>,
        /// Times a thread stopped for something else: signals of the program, new threads, exec.
        pub other_stops: Option<u64>,
        /// Breakpoints that were reached.
        pub breakpoints: Option<u64>,
        /// Breakpoints given up: not reached in time, or not by the expected path.
        pub breakpoints_missed: Option<u64>,
        /// Threads that were traced.
        pub threads: Option<u64>,
        /// Processes that were traced.
        pub processes: Option<u64>,
        /// Times a thread was let go untraced for a while because its own signals took more than the budget.
        pub backed_off: Option<u64>,
        /// Why bursts ended, how often.
        pub ends: Option<BTreeMap<String, u64>>,
        /// What bursts went on after, by a breakpoint, how often.
        pub continued: Option<BTreeMap<String, u64>>,
        /// Instructions that are not interpreted, how often.
        pub unsupported: Option<BTreeMap<String, u64>>,
        /// Registers as predicted, where the thread could be looked at again.
        pub predictions: Option<PredictionCounts>,
        /// Bursts of agents beside what their threads did then, if that was compared.
        pub checks: Option<ChecksMetadata>,
        /// What it took until all threads were traced.
        pub starting: Option<StartingMetadata>,
        /// CPU time of the collector after tracing ended, ns; it is in `time`, too.
        pub ending_ns: Option<u64>,
        /// What agents inside the program did, if they took the bursts.
        pub agents: Option<AgentsMetadata>,
        /// What stops were taken to cost.
        pub stop_cost: Option<StopCostMetadata>,
        /// Where time went.
        pub time: Option<TracerTimes>,
    }

    /// What agents inside the program did. Where they run, there is none of the program's code.
    pub struct AgentsMetadata {
        /// The first address of the agent, in every process.
        pub start: Option<u64>,
        /// The first address after it.
        pub end: Option<u64>,
        /// Processes that got one.
        pub injected: Option<u64>,
        /// Times that was put off: the thread was in a system call.
        pub put_off: Option<u64>,
        /// Processes that got none, by reason.
        pub refused: Option<BTreeMap<String, u64>>,
        /// Bursts of threads without one: each was stopped for it.
        pub visited: Option<u64>,
        /// Processes that may not be traced at all.
        pub barred: Option<u64>,
        /// Signals without a burst: as many were being taken as can be.
        pub busy: Option<u64>,
        /// There was no room for one.
        pub no_room: Option<u64>,
        /// Another thread had the handlers of faults in hand.
        pub waiting: Option<u64>,
        /// Bursts that were given up, which is a bug, or memory that was unmapped meanwhile.
        pub given_up: Option<u64>,
        /// Threads that took another way than their burst, and came to another system call or on another stack.
        pub strayed: Option<u64>,
        /// What the signal of a burst was taken to cost beside its handler, ns,
        pub signal_ns: Option<u64>,
        /// and how far the quartiles of what was timed when tracing began are apart.
        pub signal_spread_ns: Option<u64>,
        /// The same of a system call that a burst goes on after,
        pub system_call_ns: Option<u64>,
        /// and its quartiles.
        pub system_call_spread_ns: Option<u64>,
        /// Why not all of these were timed: such a figure is another machine's.
        pub not_calibrated_because: Option<String>,
    }

    /// Predictions compared with what happened.
    pub struct PredictionCounts {
        /// How many were compared.
        pub checked: Option<u64>,
        /// Not as predicted: other threads or the kernel changed memory meanwhile, or a handler ran.
        pub diverged: Option<u64>,
    }

    /// Bursts of agents beside what their threads did then.
    pub struct ChecksMetadata {
        /// Bursts that were compared to the end, or as far as the thread went the same way.
        pub bursts: Option<u64>,
        /// Instructions that threads executed as their bursts say.
        pub instructions: Option<u64>,
        /// Taken branches among them.
        pub branches: Option<u64>,
        /// Bursts that their threads did not do, without a change of memory that would explain it.
        pub diverged: Option<u64>,
        /// Those that read memory which others changed meanwhile.
        pub raced: Option<u64>,
        /// Bursts that were not compared to the end, by reason.
        pub unfinished: Option<BTreeMap<String, u64>>,
        /// What the first ones that diverged did, in words,
        pub divergences: Vec<String>,
        /// and the first ones that read memory which others changed.
        pub races: Vec<String>,
    }

    /// What it took until all threads were traced.
    pub struct StartingMetadata {
        /// CPU time of the collector, ns; of the tracer alone where a command was started.
        pub took_ns: Option<u64>,
        /// Threads that were there.
        pub threads: Option<u64>,
        /// From when recording began to when the last of them was traced, ns.
        pub lasted_ns: Option<u64>,
    }

    /// What stops were taken to cost beside the CPU time of the tracer, and what that is based on.
    pub struct StopCostMetadata {
        /// Charged for a stop with the tracer on the CPU of the thread, ns.
        pub same_cpu_ns: Option<u64>,
        /// Charged for a stop with the tracer on another CPU, ns.
        pub other_cpu_ns: Option<u64>,
        /// Charged for a sample of the clock, ns.
        pub sample_ns: Option<u64>,
        /// Whether the costs of stops were scaled by stops that were timed when tracing began.
        pub calibrated: Option<bool>,
        /// Why they were not.
        pub not_calibrated_because: Option<String>,
        /// Stops that were timed, on either CPU.
        pub timed_stops: Option<u64>,
        /// How long a child stood still with the tracer on its CPU: median, ns.
        pub timed_same_cpu_ns: Option<u64>,
        /// From the first quartile of those times to the third, ns.
        pub timed_same_cpu_spread_ns: Option<u64>,
        /// The median with the tracer on another CPU, ns.
        pub timed_other_cpu_ns: Option<u64>,
        /// The spread there, ns.
        pub timed_other_cpu_spread_ns: Option<u64>,
    }

    /// CPU time of the program and of what recording did, ns.
    pub struct TracerTimes {
        /// CPU time of the traced threads.
        pub application_ns: Option<u64>,
        /// Interrupts and switches to the tracer and back.
        pub stops_ns: Option<u64>,
        /// Reading registers and memory of stopped threads.
        pub state_ns: Option<u64>,
        /// Interpreting code that was decoded.
        pub lookahead_ns: Option<u64>,
        /// Decoding instructions that were met for the first time.
        pub decoding_ns: Option<u64>,
        /// Setting breakpoints, and the stops at them.
        pub breakpoints_ns: Option<u64>,
        /// The rest of the tracer's CPU time.
        pub other_ns: Option<u64>,
        /// Event samples beside the bursts.
        pub samples_ns: Option<u64>,
    }
}

/// A share in per cent, 0 to 100,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Percent(pub f64);

impl Tolerant for Percent {
    fn of(value: Value) -> Option<Self> {
        f64::of(value).filter(|percent| (0.0..1e5).contains(percent)).map(Self)
    }
}

objects! { TracerMetadata AgentsMetadata PredictionCounts ChecksMetadata StartingMetadata StopCostMetadata TracerTimes }
