//! What a recording is good for, in one sentence.

use analyzer::uncertainty::{CountKind, Interval};
use analyzer::{Analysis, Origin};
use serde::Serialize;

use crate::number::{counted, with_digits};

/// How right the largest rows of a report are, and what would make them better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// The sentence.
    pub text: String,
    /// By which part of itself the share of the least certain of the largest rows may be wrong, 0 to 1 and more; none where the recording
    /// does not tell.
    pub error: Option<f64>,
    /// The same by chance alone.
    pub error_by_chance: Option<f64>,
    /// How many times as much recording would bring the error by chance to 1 %; none where it is less.
    pub times_for_one_percent: Option<f64>,
}

/// How many rows the sentence speaks of.
const LARGEST: usize = 5;
/// Rows of less are not among the largest, in the sentence's sense.
const LEAST: f64 = 0.01;
/// The error that one would like to have.
const WANTED: f64 = 0.01;

impl Precision {
    /// Of a report with these rows: their shares, 0 to 1, and how uncertain these are. `None` where there is nothing to speak of.
    pub fn of(analysis: &Analysis, rows: impl Iterator<Item = (f64, Interval)>) -> Option<Self> {
        if analysis.origin != Origin::Recording || analysis.design.kind != CountKind::Sampled {
            return None;
        }
        let mut rows: Vec<(f64, Interval)> = rows.filter(|(share, _)| *share >= LEAST).collect();
        rows.sort_by(|one, other| other.0.total_cmp(&one.0));
        rows.truncate(LARGEST);
        let most = |width: fn(&Interval) -> Option<f64>| {
            let errors = rows.iter().map(|(share, interval)| Some(width(interval)? / share));
            errors.reduce(|most, error| Some(f64::max(most?, error?)))?
        };
        let first = rows.first()?.1;
        let seen = seen(analysis);
        let better = if analysis.sources.lbr.as_ref().is_some_and(|lbr| lbr.has_bursts) {
            "record longer, or with a larger --overhead"
        } else {
            "record longer, or with a higher --freq"
        };
        let (Some(error), Some(by_chance), Some(_)) =
            (most(|interval| interval.half_width), most(|interval| interval.by_chance), first.half_width)
        else {
            let text = format!("{seen}: too little to tell how far the numbers are from the truth; {better}");
            return Some(Precision { text, error: None, error_by_chance: None, times_for_one_percent: None });
        };
        let of_costs = (error * error - by_chance * by_chance).max(0.0).sqrt();
        // Where nothing is certain, nobody wants to know by how much.
        let causes = match error < 1.0 && of_costs > WANTED / 2.0 {
            true => format!(" (chance: {}, cost of code: {})", percent(by_chance), percent(of_costs)),
            false => String::new(),
        };
        let times = (by_chance > WANTED).then(|| (by_chance / WANTED).powi(2));
        let help = times.map_or(String::new(), |times| match error < 1.0 {
            true => format!("; {} times as much would bring chance to 1 %: {better}", with_digits(times, 2)),
            false => format!("; {better}"),
        });
        let few = if rows.iter().any(|(_, interval)| interval.rests_on_little) {
            ", too few to rely on all of it"
        } else {
            ""
        };
        let right = match error < 1.0 {
            true => format!("the largest rows are right within {}", percent(error)),
            false => "some of the largest rows may be next to nothing".to_string(),
        };
        let text = format!("{seen}{few}: {right}{causes}{help}");
        Some(Precision { text, error: Some(error), error_by_chance: Some(by_chance), times_for_one_percent: times })
    }
}

/// What counts rest on.
fn seen(analysis: &Analysis) -> String {
    let records = &analysis.summary.records;
    let by_samples = analysis.source() == "ebs";
    match (&analysis.sources.lbr, &analysis.sources.ebs) {
        (Some(lbr), _) if !by_samples && lbr.has_bursts => {
            counted(lbr.events.iter().map(|&event| records.bursts[event]).sum(), "burst", "bursts")
        }
        (Some(lbr), _) if !by_samples => {
            counted(lbr.events.iter().map(|&event| records.samples[event]).sum(), "branch stack", "branch stacks")
        }
        (_, Some(ebs)) => counted(ebs.events.iter().map(|&event| records.samples[event]).sum(), "sample", "samples"),
        _ => "no samples".into(),
    }
}

fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    if percent < 1.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
