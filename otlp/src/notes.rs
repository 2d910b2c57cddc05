//! What is weaker in a recording that was made of profiles, in sentences.

use std::collections::{BTreeMap, BTreeSet};

use crate::attributes::beginning;
use crate::events::Kind;

/// How many different names are kept of what is told by name, and how many letters of each.
const MOST_NAMES: usize = 16;
const MOST_LETTERS: usize = 100;

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The profilers: name and version.
    pub producers: BTreeSet<String>,
    /// Samples of profiles that do not count code that ran, by the type of their values.
    pub left_out: BTreeMap<String, u64>,
    /// Samples by calling context of what is counted by address.
    pub by_context: u64,
    /// Samples of code that has no address in a file, by what it is.
    pub without_address: BTreeMap<String, u64>,
    /// Samples that count.
    pub samples: u64,
    /// Samples whose callers are known.
    pub with_callers: u64,
    /// Samples without a time.
    pub timeless: u64,
    /// Sums of nobody knows how many samples.
    pub sums: u64,
    /// Samples with another number of times than of values.
    pub mismatched: u64,
    /// Values below zero.
    pub negative: u64,
    /// Profiles whose values are no numbers of executions.
    pub relative: u64,
    /// Samples of profiles that do not say what a sample stands for.
    pub without_period: u64,
}

/// Adds to what is told by name, and to all others where there are too many.
pub(crate) fn add(to: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    let name = beginning(name, MOST_LETTERS);
    let is_known = to.len() < MOST_NAMES || to.contains_key(name);
    let name = if is_known { name } else { "others" };
    *to.entry(name.to_owned()).or_default() += count;
}

impl Notes {
    /// A profiler wrote profiles.
    pub(crate) fn producer(&mut self, name: &str, version: &str) {
        let known = self.producers.len() < MOST_NAMES;
        if known && !name.is_empty() {
            let named = format!("{name} {version}");
            self.producers.insert(beginning(named.trim_end(), MOST_LETTERS).to_owned());
        }
    }

    /// So many samples of this type do not count.
    pub(crate) fn leave_out(&mut self, (kind, unit): &Kind, samples: u64) {
        let name = match (kind.as_str(), unit.as_str()) {
            ("", "") => "a type that is not said".to_owned(),
            (kind, "") => kind.to_owned(),
            (kind, unit) => format!("{kind} ({unit})"),
        };
        add(&mut self.left_out, &name, samples);
    }

    /// What there is instead of samples that count.
    pub(crate) fn instead(&self) -> String {
        match self.left_out.is_empty() {
            true => "it has no samples at all: was anything profiled?".to_owned(),
            false => format!(
                "its profiles are of {}; expected samples, CPU time (cpu), instructions or cycles",
                by_name(&self.left_out)
            ),
        }
    }

    /// The sentences.
    pub(crate) fn sentences(&self, renumbered: u64, unnumbered: u64) -> Vec<String> {
        let producers: Vec<&str> = self.producers.iter().map(String::as_str).collect();
        let by = if producers.is_empty() { String::new() } else { format!(" of {}", producers.join(", ")) };
        let mut all = vec![format!(
            "the samples are OTLP profiles{by}: they have no branches, and no costs are known of their code"
        )];
        // One thing, and many.
        let mut say = |number: u64, one: &str, many: &str, rest: &str| {
            if number > 0 {
                all.push(format!("{number} {}{rest}", if number == 1 { one } else { many }));
            }
        };
        say(
            self.with_callers,
            "sample has callers, which are not used: it counts",
            "samples have callers, which are not used: each counts",
            " where it was taken",
        );
        say(
            self.left_out.values().sum(),
            "sample does not count what ran, and is",
            "samples do not count what ran, and are",
            &format!(" left out: {}", by_name(&self.left_out)),
        );
        say(
            self.by_context,
            "sample of instructions by calling context is",
            "samples of instructions by calling context are",
            " left out: the same instructions are counted by address",
        );
        say(
            self.without_address.values().sum(),
            "sample is",
            "samples are",
            &format!(" of code without an address in a file, which is unread: {}", by_name(&self.without_address)),
        );
        say(
            self.timeless,
            "sample is part of a sum without a time: it is taken to have come at a random time of its profile",
            "samples are sums without times: they are taken to have come at random times of their profile",
            "",
        );
        say(
            self.sums,
            "count is a sum",
            "counts are sums",
            " of nobody knows how many samples: what is after ± takes each for one, and means little",
        );
        say(
            self.mismatched,
            "sample has another number of times than of values: it is taken as a sum",
            "samples have other numbers of times than of values: they are taken as sums",
            "",
        );
        say(self.negative, "value is below zero: left out", "values are below zero: left out", "");
        say(self.relative, "profile has counts", "profiles have counts", " that are relative");
        say(
            self.without_period,
            "sample does not say what it stands for: it counts",
            "samples do not say what they stand for: each counts",
            " as 1",
        );
        say(
            renumbered,
            "process has the number of another machine's or container's: it has another number here",
            "processes have the number of another machine's or container's: they have other numbers here",
            "",
        );
        say(
            unnumbered,
            "process has no number (process.pid): it is",
            "processes have no number (process.pid): they are",
            " told apart by name",
        );
        all
    }
}

fn by_name(counts: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    each.join(", ")
}
