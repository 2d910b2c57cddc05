//! Limits of what may change: `--fail-if 'instructions>+2%'`.

use std::fmt;
use std::str::FromStr;

use analyzer::flow::{FunctionName, Moved};
use analyzer::mix::bare_names;
use analyzer::uncertainty::{change_error, width_of_many};
use anyhow::{Context, bail};
use reports::diff::Work;
use reports::nearest::nearest;
use serde_json::{Value, json};

use super::Report;
use crate::output::{count, with_digits};

/// What must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    of: Quantity,
    /// It must not become more than this, or less.
    more: bool,
    /// As a fraction: 0.02 is 2 %, or two points of a share.
    change: f64,
    /// As it was given.
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Quantity {
    /// Executed instructions: of everything, or of a function.
    Instructions(Option<String>),
    /// The share of a function.
    Share(String),
}

/// Changes that differ by less are the same: what rounding leaves of sums.
const ROUNDING: f64 = 1e-9;

/// Limits are asked again and again, with every change of a program, and by its ± alone one of forty would fail without a reason. So what is
/// past one must be beyond what chance makes of any of so many, at 95 %.
const ASKED: usize = 50;

/// What is known of a limit.
pub struct Kept {
    limit: Limit,
    /// The change, as a fraction; infinite where there was nothing before.
    change: f64,
    /// Half the width of its interval (95 %); 0 where it is exact, infinite where it may be all chance.
    error: f64,
    /// How many times that the change must be past the limit.
    times: f64,
}

/// What a limit looks like.
const FORM: &str =
    "expected instructions>+2%, instructions:FUNCTION>+2%, or share:FUNCTION>+1%; or < and a change such as -2%";

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Names of functions have < and >, too.
        let at = text.rfind(['<', '>']).ok_or(FORM)?;
        let (what, change) = (text[..at].trim(), text[at + 1..].trim());
        let (what, function) = match what.split_once(':') {
            Some((_, function)) if function.trim().is_empty() => return Err(FORM.to_owned()),
            Some((what, function)) => (what, Some(function.trim())),
            None => (what, None),
        };
        let of = match (what, function) {
            ("instructions", function) => Quantity::Instructions(function.map(str::to_owned)),
            ("share", Some(function)) => Quantity::Share(function.to_owned()),
            _ => return Err(FORM.to_owned()),
        };
        let number = change.strip_suffix('%').ok_or(FORM)?.trim();
        let change = number.parse::<f64>().ok().filter(|change| change.is_finite()).ok_or(FORM)? / 100.0;
        Ok(Limit { of, more: text[at..].starts_with('>'), change, text: text.to_owned() })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Limit {
    /// What is known of it.
    ///
    /// # Errors
    /// Its function is on neither side, or is not known to have changed or not.
    pub fn look(&self, report: &Report<'_>) -> anyhow::Result<Kept> {
        let times = width_of_many(ASKED, report.changes.sides);
        let (change, error) = match &self.of {
            Quantity::Instructions(None) => {
                let work = Work::of(&report.changes);
                work.change().with_context(|| format!("--fail-if '{self}': {}", work.text(&report.changes)))?
            }
            Quantity::Instructions(Some(name)) => {
                let work = Work::of(&report.changes);
                let (all, error_of_all) = work.change().with_context(|| {
                    let share = format!("share:{name}");
                    format!("--fail-if '{self}': {}; '{share}' asks for its share", work.text(&report.changes))
                })?;
                let (moved, error) = self.function(name, report)?;
                let [before, after] = moved.shares;
                if before <= 0.0 {
                    // From nothing to something is more than any limit, if it is not chance.
                    let error = if after > times * error { 0.0 } else { f64::INFINITY };
                    return Ok(Kept { limit: self.clone(), change: f64::INFINITY, error, times });
                }
                let ratio = after / before * (1.0 + all);
                let of_share = error / before * (1.0 + all);
                (ratio - 1.0, of_share.hypot(error_of_all * after / before))
            }
            Quantity::Share(name) => {
                let (moved, error) = self.function(name, report)?;
                (moved.change(), error)
            }
        };
        Ok(Kept { limit: self.clone(), change, error, times })
    }

    /// The functions of a name together, and how uncertain the change of their share is.
    fn function(&self, name: &str, report: &Report<'_>) -> anyhow::Result<(Moved<()>, f64)> {
        let functions = &report.changes.comparison.functions;
        let is_meant = |function: &str| function == name || bare_names(function).iter().any(|bare| bare == name);
        let meant: Vec<&Moved<FunctionName>> =
            functions.iter().filter(|of| of.what.function.as_deref().is_some_and(is_meant)).collect();
        if meant.is_empty() {
            let names: Vec<String> = functions.iter().filter_map(|of| of.what.function.clone()).collect();
            let like: Vec<String> = nearest(name, &names).into_iter().map(|name| format!("'{name}'")).collect();
            let like = if like.is_empty() { String::new() } else { format!(": did you mean {}?", like.join(" or ")) };
            bail!("--fail-if '{self}': neither side has run a function {name}{like}");
        }
        let rows: Vec<_> = meant.iter().map(|of| report.changes.rows_of_function(&of.what)).collect();
        let names = [0, 1].map(|side| rows.iter().flat_map(|rows| rows[side].iter().cloned()).collect::<Vec<_>>());
        let error = change_error(report.changes.sides, [&names[0], &names[1]]).with_context(|| {
            format!("--fail-if '{self}': how uncertain the share of {name} is is not known; recordings and exact counts say so")
        })?;
        let shares = [0, 1].map(|side| meant.iter().map(|of| of.shares[side]).sum());
        Ok((Moved { what: (), shares }, error))
    }
}

impl Kept {
    /// How far the change is past the limit; less than nothing if it is not.
    fn past(&self) -> f64 {
        if self.limit.more { self.change - self.limit.change } else { self.limit.change - self.change }
    }

    /// Whether the change is past the limit; `None` if it may be, and may not: chance could be it.
    pub fn is_broken(&self) -> Option<bool> {
        let past = self.past();
        if past > self.times * self.error + ROUNDING {
            Some(true)
        } else if past <= ROUNDING - self.error {
            Some(false)
        } else {
            None
        }
    }

    /// What is known, in a sentence.
    pub fn text(&self) -> String {
        let Kept { limit, change, error, times } = self;
        let change = 100.0 * if change.abs() < ROUNDING { 0.0 } else { *change };
        let digits = if *error > 0.0 { with_digits(100.0 * error, 2) } else { "0".to_owned() };
        // What is exact is not rounded to nothing.
        let exact = || (2..=7).find(|places| change.abs() >= 0.5 * 0.1f64.powi(*places)).unwrap_or(2) as usize;
        let rounded = || digits.split_once('.').map_or(0, |(_, places)| places.len());
        let places = if *error > 0.0 { rounded() } else { exact() };
        // Nor is a little less than nothing written as `-0.00`.
        let change = if change.abs() < 0.5 * 0.1f64.powi(places as i32) { 0.0 } else { change };
        let unit = if let Quantity::Share(_) = limit.of { "points" } else { "%" };
        let what = match &limit.of {
            Quantity::Instructions(None) => "executed instructions".to_owned(),
            Quantity::Instructions(Some(name)) => format!("executed instructions of {name}"),
            Quantity::Share(name) => format!("the share of {name}"),
        };
        let verdict = match self.is_broken() {
            Some(true) => "past the limit".to_owned(),
            Some(false) => "within the limit".to_owned(),
            None if self.past() > *error => {
                format!(
                    "past the limit by less than {times:.1} times its ±: in many runs, chance does that, and it does not fail"
                )
            }
            None => "past the limit or not: that is within the uncertainty, and does not fail".to_owned(),
        };
        if change.is_infinite() {
            return format!("{what} were none before, and are some now: {verdict} {limit}");
        }
        format!("{what} changed by {change:+.places$} {unit} (± {digits}): {verdict} {limit}")
    }

    /// The same for programs; numbers that are infinite are `null`.
    pub fn json(&self) -> Value {
        json!({
            "limit": self.limit.text,
            "change": self.change,
            "change_error": self.error,
            "broken": self.is_broken(),
        })
    }
}

/// Says what is known of all limits. Returns how many are broken.
pub fn say(limits: &[Kept]) -> usize {
    limits.iter().for_each(|kept| say!("{}", kept.text()));
    let broken = limits.iter().filter(|kept| kept.is_broken() == Some(true)).count();
    if broken > 0 {
        say!("{} of {} limits of --fail-if broken", count(broken as f64), limits.len());
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Limit {
        text.parse().unwrap()
    }

    #[test]
    fn limits_are_read() {
        let read = limit("instructions > +2.5 %");
        assert_eq!((read.of, read.more, read.change), (Quantity::Instructions(None), true, 0.025));
        let read = limit("instructions:std::vector<int>::size<-1%");
        assert_eq!((read.of, read.more), (Quantity::Instructions(Some("std::vector<int>::size".into())), false));
        assert_eq!(limit("share:main>1%").of, Quantity::Share("main".into()));
        for wrong in [
            "",
            "instructions",
            "instructions>2",
            "time>2%",
            "share>2%",
            "instructions>x%",
            "share:>1%",
            "instructions:>2%",
            "instructions>inf%",
        ] {
            assert_eq!(wrong.parse::<Limit>(), Err(FORM.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_certain_breaks_a_limit() {
        let broken = |text: &str, change, error| Kept { limit: limit(text), change, error, times: 1.6 }.is_broken();
        assert_eq!(broken("instructions>+2%", 0.021, 0.0), Some(true));
        assert_eq!(broken("instructions>+2%", 0.02, 0.0), Some(false));
        assert_eq!(broken("instructions>+2%", 0.03, 0.02), None);
        assert_eq!(broken("instructions>+2%", 0.05, 0.02), None);
        assert_eq!(broken("instructions>+2%", 0.054, 0.02), Some(true));
        assert_eq!(broken("instructions>+2%", -0.05, 0.02), Some(false));
        assert_eq!(broken("instructions>+2%", -0.01, 0.02), Some(false));
        assert_eq!(broken("instructions<-2%", -0.03, 0.0), Some(true));
        assert_eq!(broken("instructions<-2%", 0.03, 0.0), Some(false));
        // What rounding leaves is no change.
        assert_eq!(broken("instructions>0%", 2.0f64.powi(-52), 0.0), Some(false));
        assert_eq!(broken("instructions<0%", -2.0f64.powi(-52), 0.0), Some(false));
        assert_eq!(broken("instructions>2%", 102.0 / 100.0 - 1.0, 0.0), Some(false));
        assert_eq!(broken("instructions>0%", 1e-6, 0.0), Some(true));
        // From nothing to something, and what may be chance.
        assert_eq!(broken("instructions:main>900%", f64::INFINITY, 0.0), Some(true));
        assert_eq!(broken("instructions:main<-1%", f64::INFINITY, 0.0), Some(false));
        assert_eq!(broken("instructions:main>1%", f64::INFINITY, f64::INFINITY), None);
    }

    #[test]
    fn sentences_say_how_certain_they_are() {
        let text = |text: &str, change, error| Kept { limit: limit(text), change, error, times: 1.6 }.text();
        assert_eq!(
            text("instructions>+2%", 0.031234, 0.0),
            "executed instructions changed by +3.12 % (± 0): past the limit instructions>+2%"
        );
        let nothing = "executed instructions changed by +0.00 % (± 0): within the limit instructions>0%";
        assert_eq!(text("instructions>0%", -2.0f64.powi(-52), 0.0), nothing);
        assert!(text("instructions>0%", -0.000004, 0.01).contains("changed by +0.0 % (± 1.0)"));
        assert!(text("instructions>0%", 0.000004, 0.0).contains("changed by +0.0004 % (± 0): past"));
        let new =
            "executed instructions of main were none before, and are some now: past the limit instructions:main>1%";
        assert_eq!(text("instructions:main>1%", f64::INFINITY, 0.0), new);
        assert_eq!(
            text("share:main>+2%", 0.031234, 0.0234),
            "the share of main changed by +3.1 points (± 2.3): past the limit or not: that is within the uncertainty, and does not \
             fail share:main>+2%"
        );
        let text = text("share:main>+2%", 0.051, 0.02);
        assert!(text.contains("(± 2.0): past the limit by less than 1.6 times its ±"), "{text}");
    }
}
