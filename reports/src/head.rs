//! The head of every report: what the numbers are made from, and what was lost or weaker than it could be.

use analyzer::recording::{SourceEvents, Tracer};
use analyzer::{Analysis, Summary};
use serde::Serialize;

use crate::Precision;

/// The provenance of what a simulated PMU made.
pub const SIMULATED: &str = "simulated";
/// The provenance of a trace of all branches: Intel PT.
pub const TRACE: &str = "trace";

/// What goes before every table and into every JSON document.
#[derive(Serialize)]
pub struct Head {
    /// `ebs`, `lbr` or `hybrid`.
    pub source: &'static str,
    /// `executions`, or `relative` where counts are only proportional to executions or time.
    pub unit: &'static str,
    /// Events whose samples gave the event-based counts; none if there are no such samples.
    pub ebs_source: Option<EbsSource>,
    /// Events whose branch stacks gave counts; none if there are no stacks.
    pub lbr_source: Option<LbrSource>,
    /// Events whose samples served for nothing.
    pub unused_events: Vec<EbsSource>,
    /// How the source was chosen per block.
    pub choice: String,
    /// Records and samples that never reached the recording.
    pub lost: u64,
    /// How often the kernel throttled an event.
    pub throttled: u64,
    /// Records that could not be read.
    pub malformed: u64,
    /// Records of unknown types.
    pub unknown_records: u64,
    /// What is weaker than it could be: first what is missing or damaged, then how it was recorded.
    pub degraded: Vec<String>,
    /// How many of these are of the former.
    #[serde(skip)]
    pub shortcomings: usize,
    /// It is of an analysis that was kept.
    #[serde(skip)]
    pub is_kept: bool,
    /// Whether people see all of it.
    #[serde(skip)]
    pub verbose: bool,
    /// How right the largest rows of the report are; none where it does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

/// An event and how many samples it has.
#[derive(Serialize)]
pub struct EbsSource {
    /// The name of the event.
    pub event: String,
    /// How many samples it has.
    pub samples: u64,
    /// `simulated`, if a simulated PMU made them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<&'static str>,
}

/// An event with branch stacks, and what they hold.
#[derive(Serialize)]
pub struct LbrSource {
    /// The name of the event.
    pub event: String,
    /// How many samples it has.
    pub samples: u64,
    /// Branches in all stacks.
    pub branches: u64,
    /// Streams between the branches of the stacks.
    pub streams: u64,
    /// Streams used for nothing, by reason.
    pub broken: analyzer::counting::BrokenStreams,
    /// `hardware`, `software` for bursts, or `simulated`.
    pub provenance: &'static str,
    /// The bursts, if it has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
}

/// Stacks that were followed in software.
#[derive(Serialize)]
pub struct Bursts {
    /// How many bursts there are.
    pub bursts: u64,
    /// Instructions in one, on the average.
    pub mean_instructions: f64,
    /// Taken branches in one, on the average.
    pub mean_branches: f64,
    /// What each weighs as much as it stands for: `nanoseconds` (of CPU time), `instructions`, or other `events`.
    pub weighted_by: String,
    /// That was divided by an estimate of what code costs where they start.
    pub divided_by_cost: bool,
    /// The core on which that is simulated.
    pub core: Option<&'static str>,
    /// With what was measured of the machine.
    pub calibrated: bool,
    /// What the tracer said of itself.
    pub tracer: Option<Tracer>,
}

impl Bursts {
    fn of(source: &SourceEvents, summary: &Summary) -> Option<Self> {
        let bursts = source.events.iter().map(|&event| summary.records.bursts[event]).sum::<u64>();
        let mean = |sum: u64| if bursts > 0 { sum as f64 / bursts as f64 } else { 0.0 };
        source.has_bursts.then(|| Bursts {
            bursts,
            mean_instructions: mean(summary.stacks.instructions),
            mean_branches: mean(summary.stacks.branches),
            weighted_by: source.kind.to_string(),
            divided_by_cost: summary.estimate.is_some(),
            core: summary.estimate.as_ref().map(|estimate| estimate.core.name()),
            calibrated: summary.estimate.as_ref().is_some_and(|estimate| estimate.is_calibrated),
            tracer: summary.tracer.clone(),
        })
    }
}

impl Head {
    /// The head of a report on this analysis.
    pub fn of(analysis: &Analysis) -> Self {
        let summary = &analysis.summary;
        let records = &summary.records;
        let samples = |source: &SourceEvents| source.events.iter().map(|&event| records.samples[event]).sum();
        let mut degraded = summary.shortcomings.clone();
        degraded.extend(records.first_malformed.iter().map(|(offset, what)| {
            format!("{} records could not be read, the first at {offset:#x}: {what}", records.malformed)
        }));
        if records.timeless > 0 {
            degraded.push(format!("{} samples have no time: they are taken as the last of all", records.timeless));
        }
        if records.processless > 0 {
            degraded.push(format!("{} samples do not say their process", records.processless));
        }
        if records.in_agents > 0 {
            let were = if records.in_agents == 1 { "sample was" } else { "samples were" };
            degraded.push(format!("{} {were} in the tracer's own code: left out", records.in_agents));
        }
        if records.code_left_out > 0 {
            degraded.push(format!(
                "{} blocks of code without a file found no room: it changes too often, and is unread from then on",
                records.code_left_out
            ));
        }
        let shortcomings = degraded.len();
        degraded.extend_from_slice(&summary.degradations);
        Head {
            source: analysis.source(),
            unit: if analysis.scale.executions { "executions" } else { "relative" },
            ebs_source: analysis.sources.ebs.as_ref().map(|source| EbsSource {
                event: source.name.clone(),
                samples: samples(source),
                provenance: source.is_simulated.then_some(SIMULATED),
            }),
            lbr_source: analysis.sources.lbr.as_ref().map(|source| LbrSource {
                event: source.name.clone(),
                samples: samples(source),
                branches: summary.stacks.branches,
                streams: summary.streams,
                broken: summary.broken,
                provenance: match source {
                    SourceEvents { is_simulated: true, .. } => SIMULATED,
                    SourceEvents { has_bursts: true, .. } => "software",
                    SourceEvents { is_trace: true, .. } => TRACE,
                    _ => "hardware",
                },
                bursts: Bursts::of(source, summary),
            }),
            unused_events: summary
                .unused_events
                .iter()
                .map(|(event, samples)| EbsSource { event: event.clone(), samples: *samples, provenance: None })
                .collect(),
            choice: summary.choice.clone(),
            lost: records.lost_in_all(),
            throttled: records.throttled,
            malformed: records.malformed,
            unknown_records: records.unknown,
            degraded,
            shortcomings,
            is_kept: analysis.is_kept,
            verbose: false,
            precision: None,
        }
    }
}
