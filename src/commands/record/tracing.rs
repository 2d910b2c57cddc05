//! What `hbbp record` says of branches traced in software.

use std::collections::BTreeMap;
use std::time::Duration;

use collector::tracer::{Agents, Checks, TracerKind, TracerStatistics};

use crate::output::{PREFIX, columns_of, count, counted, idle, share};

/// Columns that `hbbp: ` leaves of a terminal's 80.
const COLUMNS: usize = 80 - PREFIX.len();
/// Entries of a histogram that are said.
const MOST: usize = 4;

/// In plain words what the tracer did, in lines that fit a terminal. `hardly_ran`: the program's CPU time and that of the recording, if it
/// was idle. `verbose`: how it was done, too.
pub fn lines(statistics: &TracerStatistics, hardly_ran: Option<(Duration, Duration)>, verbose: bool) -> Vec<String> {
    let mut sentences = vec![what_was_traced(statistics)];
    match hardly_ran {
        Some(times) => {
            sentences.push(format!("{}; recording took {}", idle(times), milliseconds(statistics.time.spent())))
        }
        None => {
            sentences.push(where_time_went(statistics));
            sentences.extend(what_starting_took(statistics));
        }
    }
    if verbose {
        sentences.extend((statistics.bursts > 0).then(|| what_evaluation_gave(statistics)));
        sentences.extend(histogram("bursts ended: ", &statistics.ends));
        sentences.extend(histogram("bursts continued after: ", &statistics.continued));
        sentences.extend(histogram("not interpreted: ", &statistics.unsupported));
    }
    if statistics.backed_off > 0 {
        let times = counted(statistics.backed_off, "time", "times");
        sentences.push(format!("a thread went on untraced {times}: its signals would have taken more than the budget"));
    }
    if statistics.lost_bursts > 0 {
        sentences.push(format!(
            "{} bursts lost: the recording could not be written as fast",
            number(statistics.lost_bursts)
        ));
    }
    sentences.extend(statistics.agents.as_ref().and_then(what_agents_missed));
    let predictions = statistics.predictions;
    if predictions.diverged > 0 || statistics.kind == TracerKind::Check {
        let [diverged, checked] = [predictions.diverged, predictions.checked].map(number);
        sentences.push(format!("{diverged} of {checked} predictions that could be checked were wrong"));
    }
    sentences.extend(statistics.checks.iter().flat_map(what_checks_gave));
    sentences.iter().flat_map(|sentence| wrapped(sentence)).collect()
}

fn what_was_traced(statistics: &TracerStatistics) -> String {
    let way = match statistics.kind {
        TracerKind::Lookahead => "looking ahead",
        TracerKind::Agent => "agents inside the program",
        TracerKind::Timer => "agents inside the program, started by timers",
        TracerKind::AgentCheck => "agents inside the program, and compared",
        TracerKind::Breakpoint => "breakpoints",
        TracerKind::Check => "looking ahead and by breakpoints",
    };
    let mean = |sum: u64| count((sum as f64 / statistics.bursts as f64).round());
    let mean = match statistics.bursts {
        0 => String::new(),
        _ => format!(
            " (mean: {} instructions, {} branches)",
            mean(statistics.instructions),
            mean(statistics.taken_branches)
        ),
    };
    format!(
        "branches traced in software by {way}: {}{mean} in {} of {}",
        counted(statistics.bursts, "burst", "bursts"),
        counted(statistics.threads, "thread", "threads"),
        counted(statistics.processes, "process", "processes"),
    )
}

/// Signals without a burst.
fn what_agents_missed(agents: &Agents) -> Option<String> {
    let mut missed: Vec<String> = Vec::new();
    let tally = agents.tally;
    for (times, what) in [
        (tally.busy, "all contexts were in use"),
        (tally.no_slot, "there was no room for it"),
        (tally.waiting, "the program dealt with a fault"),
    ] {
        if times > 0 {
            missed.push(format!("{} missed: {what}", counted(times, "burst", "bursts")));
        }
    }
    if tally.given_up > 0 {
        let times = counted(tally.given_up, "burst", "bursts");
        missed.push(format!(
            "{times} given up: memory was unmapped meanwhile, or a bug (the last at {:#x})",
            tally.given_up_at
        ));
    }
    (!missed.is_empty()).then(|| missed.join("; "))
}

/// Bursts beside what their threads did then.
fn what_checks_gave(checks: &Checks) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} of {} that were compared with their threads diverged, and {} read memory that others changed: {} \
         instructions, {} branches were the same",
        number(checks.diverged),
        counted(checks.bursts, "burst", "bursts"),
        number(checks.raced),
        number(checks.instructions),
        number(checks.branches)
    )];
    sentences.extend(histogram("not compared to the end: ", &checks.unfinished));
    sentences.extend(checks.divergences.iter().map(|example| format!("diverged: {example}")));
    sentences
}

/// *Break Dancing*, figure 3.
fn where_time_went(statistics: &TracerStatistics) -> String {
    let time = &statistics.time;
    let parts = [
        ("stops", time.stops),
        ("memory", time.state),
        ("look-ahead", time.lookahead),
        ("decoding", time.decoding),
        ("breakpoints", time.breakpoints),
        ("samples", time.samples),
        ("other", time.other),
    ];
    let part = |(name, part): (&str, Duration)| {
        format!("{name} {}", share(part.as_secs_f64(), time.application.as_secs_f64()))
    };
    format!(
        "overhead {:.2} % of CPU time ({} % allowed{}): {}",
        statistics.overhead,
        statistics.overhead_allowed,
        on_top(statistics.start_credit),
        parts.map(part).join(", ")
    )
}

/// What a command may take beside its budget, after the words for that.
pub fn on_top(start_credit: Duration) -> String {
    match start_credit.as_secs_f64() * 1e3 {
        0.0 => String::new(),
        milliseconds => format!(" and up to {milliseconds} ms at the beginning"),
    }
}

/// A sentence if it was much, which it is where the program computes little or is recorded for a short time.
fn what_starting_took(statistics: &TracerStatistics) -> Option<String> {
    let share = statistics.starting_exceeded().filter(|share| share.is_finite())?;
    let took = milliseconds(statistics.starting.took);
    let alone = if share > statistics.overhead_allowed { ", alone more than was allowed" } else { "" };
    Some(format!(
        "of that, starting took {took}, {share:.2} % of CPU time{alone}: it weighs less the longer is recorded"
    ))
}

/// *Break Dancing*, figure 4.
fn what_evaluation_gave(statistics: &TracerStatistics) -> String {
    format!(
        "t = {} of the evaluated branches were taken, s = {} of the taken ones needed no evaluation: t/(1-s) = {:.2} \
         taken branches per evaluation",
        share(statistics.taken_fraction, 1.0),
        share(statistics.static_fraction, 1.0),
        statistics.usefulness
    )
}

/// The most frequent names first.
fn histogram(lead: &str, counts: &BTreeMap<String, u64>) -> Option<String> {
    let mut counts: Vec<(&str, u64)> = counts.iter().map(|(name, &count)| (name.as_str(), count)).collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let (first, rest) = counts.split_at(counts.len().min(MOST));
    let mut names: Vec<String> = first.iter().map(|&(name, count)| format!("{name} {}", number(count))).collect();
    if !rest.is_empty() {
        names.push(format!("others {}", number(rest.iter().map(|(_, count)| count).sum())));
    }
    (!names.is_empty()).then(|| format!("{lead}{}", names.join(", ")))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn number(value: u64) -> String {
    count(value as f64)
}

fn wrapped(sentence: &str) -> Vec<String> {
    let columns = columns_of(std::io::stderr()).map_or(COLUMNS, |all| all.saturating_sub(PREFIX.len()).min(COLUMNS));
    let options =
        textwrap::Options::new(columns).subsequent_indent("  ").word_splitter(textwrap::WordSplitter::NoHyphenation);
    // A number stays with its unit and its name.
    let bound = sentence.replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms").replace(" = ", "\u{a0}=\u{a0}");
    textwrap::wrap(&bound, options).iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_short_and_begin_with_the_most_frequent() {
        let counts: BTreeMap<String, u64> =
            [("a", 1), ("b", 5000), ("c", 3), ("d", 3), ("e", 2), ("f", 1)].map(|(k, v)| (k.to_owned(), v)).into();
        assert_eq!(histogram("ended: ", &counts).unwrap(), "ended: b 5,000, c 3, d 3, e 2, others 2");
        assert_eq!(histogram("ended: ", &BTreeMap::new()), None);
    }

    #[test]
    fn lines_fit_and_numbers_stay_with_their_units() {
        let sentence = "0.01 % ".repeat(40);
        let lines = wrapped(sentence.trim_end());
        assert!(lines.iter().all(|line| line.len() <= COLUMNS && line.ends_with('%')), "{lines:#?}");
        assert!(lines[1].starts_with("  0"));
    }
}
