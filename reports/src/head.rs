//! The head of every report: what the numbers are made from, and what was lost or weaker than it could be.

use analyzer::recording::{SourceEvents, Tracer};
use analyzer::{Analysis, Summary};
use serde::Serialize;

use crate::Precision;
use crate::idle::idle;
use crate::number::{count, share};

/// The provenance of what a simulated PMU made.
const SIMULATED: &str = "simulated";
const TRACE: &str = "trace";

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
    shortcomings: usize,
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

    fn lines(&self) -> Vec<(&'static str, String)> {
        let [bursts, instructions, branches] =
            [self.bursts as f64, self.mean_instructions, self.mean_branches].map(count);
        let weight = match self.weighted_by.as_str() {
            "nanoseconds" if self.divided_by_cost => "the CPU time it stands for / the cost of code where it starts",
            "nanoseconds" => "the CPU time it stands for",
            "instructions" => "the instructions it stands for",
            _ => "the events it stands for",
        };
        let core = self
            .core
            .map(|core| format!(" ({core} core{})", if self.calibrated { ", calibrated" } else { "" }))
            .unwrap_or_default();
        let mut lines = vec![
            ("bursts", format!("{bursts}; mean: {instructions} instructions, {branches} branches")),
            ("", format!("each burst weighs {weight}{core}")),
        ];
        if let Some(tracer) = &self.tracer {
            let kind = tracer.kind.as_deref().unwrap_or("of unknown kind");
            if let Some(times) = tracer.idle {
                lines.push(("tracer", format!("{kind}; {}", idle(times))));
                return lines;
            }
            let overhead = tracer.overhead.map(|overhead| format!(", overhead {}", share(overhead, 100.0)));
            let credit = tracer.start_credit_ns.filter(|&credit| credit > 0);
            let credit = credit.map(|credit| format!(", {} ms of it allowed for the start", credit as f64 / 1e6));
            lines.push(("tracer", format!("{kind}{}{}", overhead.unwrap_or_default(), credit.unwrap_or_default())));
        }
        lines
    }
}

impl Head {
    /// The head of a report on this analysis.
    pub fn of(analysis: &Analysis) -> Self {
        let summary = &analysis.summary;
        let records = &summary.records;
        let samples = |source: &SourceEvents| source.events.iter().map(|&event| records.samples[event]).sum();
        let mut degraded = summary.shortcomings.clone();
        degraded.extend(records.damage.iter().map(|damage| format!("the recording is damaged: {damage}")));
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

    /// What counts are made from, how good they are, and what is missing.
    pub fn in_short(&self, instructions: f64) -> Vec<(&'static str, String)> {
        let unit = match self.unit {
            "executions" => format!("{} instructions executed", count(instructions)),
            _ => "counts are relative".to_owned(),
        };
        let mut lines = vec![("source", format!("{}; {unit}", self.made_from()))];
        lines.extend(self.precision.iter().map(|precision| ("errors", precision.text.clone())));
        let broken = self.lbr_source.as_ref().map_or(0, |lbr| lbr.broken.total());
        let losses = [
            ("samples lost", self.lost),
            ("streams broken", broken),
            ("samples not used", self.unused_events.iter().map(|event| event.samples).sum()),
            ("throttled", self.throttled),
            ("records malformed", self.malformed),
            ("records unknown", self.unknown_records),
        ];
        let some = losses.into_iter().filter(|(_, number)| *number > 0);
        let losses: Vec<String> = some.map(|(what, number)| format!("{what}: {}", count(number as f64))).collect();
        lines.extend((!losses.is_empty()).then(|| ("lost", losses.join(", "))));
        let (shortcomings, of_recorder) = self.degraded.split_at(self.shortcomings.min(self.degraded.len()));
        let mut weaker = shortcomings.to_vec();
        match of_recorder {
            [] => {}
            [one] => weaker.push(one.clone()),
            more => weaker.push(format!("{} things about how it was recorded (-v shows them)", more.len())),
        }
        lines.extend(weaker.into_iter().map(|sentence| ("weaker", sentence)));
        lines
    }

    /// The sources of the counts and how much there is of each.
    fn made_from(&self) -> String {
        let number = |number: u64| count(number as f64);
        let simulated = |provenance| if provenance == Some(SIMULATED) { ", simulated" } else { "" };
        let samples = self
            .ebs_source
            .as_ref()
            .map(|ebs| format!("{} samples of {}{}", number(ebs.samples), ebs.event, simulated(ebs.provenance)));
        let branches = self.lbr_source.as_ref().map(|lbr| match &lbr.bursts {
            Some(bursts) => {
                let cost = bursts.tracer.as_ref().and_then(|tracer| match (tracer.idle, tracer.overhead) {
                    (Some(times), _) => Some(format!("; {}", idle(times))),
                    (None, overhead) => Some(format!(", overhead {}", share(overhead?, 100.0))),
                });
                let [bursts, length] = [bursts.bursts as f64, bursts.mean_instructions].map(count);
                format!("traced branches: {bursts} bursts of {length} instructions{}", cost.unwrap_or_default())
            }
            None if lbr.provenance == TRACE => {
                format!("the trace of {}, {} taken branches", lbr.event, number(lbr.branches))
            }
            None => {
                let simulated = simulated(Some(lbr.provenance));
                format!("{} branch stacks of {}{simulated}", number(lbr.samples), lbr.event)
            }
        });
        match (self.source, samples, branches) {
            ("ebs", Some(samples), _) => samples,
            ("lbr", _, Some(branches)) => branches,
            (_, Some(samples), Some(branches)) => format!("{branches}, and {samples}; {}", self.choice),
            _ => self.choice.clone(),
        }
    }

    /// All of its lines: a title, or none where a line goes on with what the one before it says, and a text.
    pub fn lines(&self, instructions: f64) -> Vec<(&'static str, String)> {
        let source = match self.source {
            "exact" | "flow" => self.choice.clone(),
            source => format!("{source} ({})", self.choice),
        };
        let mut lines = vec![("source", source)];
        if let Some(ebs) = &self.ebs_source {
            let by = ebs.provenance.map_or(String::new(), |provenance| format!(", {provenance}"));
            lines.push(("ebs", format!("{}: {} samples{by}", ebs.event, count(ebs.samples as f64))));
        }
        if let Some(lbr) = &self.lbr_source {
            let [samples, branches, streams] = [lbr.samples, lbr.branches, lbr.streams].map(|n| count(n as f64));
            let broken = lbr.broken.total() as f64;
            let streams =
                format!("{streams} streams, {} broken ({})", count(broken), share(broken, lbr.streams as f64));
            match &lbr.bursts {
                None => {
                    let by = if lbr.provenance == SIMULATED { ", simulated" } else { "" };
                    lines.push(("lbr", format!("{}: {samples} samples{by}, {branches} branches, {streams}", lbr.event)))
                }
                Some(bursts) => {
                    lines.push(("lbr", format!("{}: traced in software; {streams}", lbr.event)));
                    lines.extend(bursts.lines());
                }
            }
        }
        lines.extend(
            self.unused_events
                .iter()
                .map(|unused| ("unused", format!("{}: {} samples", unused.event, count(unused.samples as f64)))),
        );
        let [lost, throttled, malformed, unknown] =
            [self.lost, self.throttled, self.malformed, self.unknown_records].map(|n| count(n as f64));
        lines.push((
            "lost",
            format!("{lost} samples; throttled {throttled} times; records: {malformed} malformed, {unknown} unknown"),
        ));
        lines.extend(self.degraded.iter().map(|degraded| ("degraded", degraded.clone())));
        let instructions = count(instructions);
        lines.push((
            "counts",
            match self.unit {
                "executions" => format!("executions; {instructions} instructions executed"),
                _ => format!("relative, to be compared only with each other; their sum is {instructions}"),
            },
        ));
        lines.extend(self.precision.iter().map(|precision| ("errors", precision.text.clone())));
        lines
    }
}
