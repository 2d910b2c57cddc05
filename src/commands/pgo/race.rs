//! Programs that run in turn, and how long each takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use analyzer::BinarySearch;
use anyhow::{Context, bail};
use collector::children_time;
use serde_json::{Value, json};

use crate::commands::pgo::project::Run;
use crate::commands::pgo::tasks::{own_command, own_step, run_log, tail};
use crate::commands::truth::read_truth;
use crate::output::{Align, Table, count, terminal_width};
use crate::progress::Progress;

/// CPU time under which the kernel's accounts say nothing, in seconds.
const SHORTEST: f64 = 0.05;

/// Rounds that an interval of 95 % needs.
const ENOUGH_ROUNDS: usize = 6;

/// What the comparison of the last version with the first says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    NoDifference,
    TooFew,
    TooShort,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference",
            Verdict::TooFew => "too few rounds",
            Verdict::TooShort => "too short",
        }
    }
}

/// A version of the program.
pub struct Variant {
    pub name: &'static str,
    pub file: PathBuf,
}

impl Variant {
    pub fn new(name: &'static str, file: PathBuf) -> Self {
        Self { name, file }
    }
}

/// How long each version took, the first the one that others are compared with.
pub struct RaceResult<'a> {
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    of: &'a Variant,
    /// CPU time of each run, in seconds.
    seconds: Vec<f64>,
    instructions: Option<u64>,
}

/// Runs each version so many times, in turn, and counts its instructions with `exact`.
///
/// # Errors
/// One fails, or cannot be put in its place.
pub fn race<'a>(
    run: &Run,
    variants: &'a [Variant],
    rounds: u32,
    folder: &Path,
    exact: bool,
) -> anyhow::Result<RaceResult<'a>> {
    let log = run_log(folder);
    let mut rows: Vec<Row> = variants.iter().map(|of| Row { of, seconds: Vec::new(), instructions: None }).collect();
    let progress = Progress::new();
    for round in 0..rounds {
        progress.show("running", round.into(), rounds.into());
        // Back and forth, so that no version always comes after the same one.
        let mut turn: Vec<&mut Row> = rows.iter_mut().collect();
        if round % 2 == 1 {
            turn.reverse();
        }
        for row in turn {
            run.install(&row.of.file)?;
            row.seconds.push(cpu_seconds(&run.words(&row.of.file, &log), row.of.name, &log)?);
        }
    }
    drop(progress);
    for row in rows.iter_mut().filter(|_| exact) {
        run.install(&row.of.file)?;
        // What was measured is not lost because valgrind cannot read a program.
        match counted(run, &row.of.file, folder, &log) {
            Ok(instructions) => row.instructions = Some(instructions),
            Err(error) => say!("    the instructions of {} cannot be counted: {error:#}", row.of.name),
        }
    }
    Ok(RaceResult { rows })
}

/// Instructions of user code of one run, by valgrind.
fn counted(run: &Run, program: &Path, folder: &Path, log: &Path) -> anyhow::Result<u64> {
    let truth = folder.join("exact.json");
    let mut counting = own_command()?;
    counting.args(["truth", "-o"]).arg(&truth).arg("--").args(run.words(program, log));
    own_step("truth", &mut counting, &[], folder)?;
    let instructions = read_truth(&truth, BinarySearch::default())?.counted;
    fs::remove_file(&truth).with_context(|| format!("cannot remove {}", truth.display()))?;
    Ok(instructions)
}

fn cpu_seconds(words: &[std::ffi::OsString], name: &str, log: &Path) -> anyhow::Result<f64> {
    let before = children_time();
    let status =
        Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).status().context("cannot run the program")?;
    if !status.success() {
        bail!("the program ({name}) did not succeed ({status}); the end of {}:\n{}", log.display(), tail(log, 0));
    }
    Ok((children_time() - before).as_secs_f64())
}

/// The median, and the interval that holds the median of all runs with 95 % at least (by order statistics), or all values where
/// there are too few for that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Median {
    value: f64,
    low: f64,
    high: f64,
}

impl Median {
    /// `values` are not empty.
    fn of(values: &[f64]) -> Self {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let value = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        // How many may be left out at each end: with half the chance, each value is below the median.
        let (mut left_out, mut below, mut ways) = (0, 0.0, 0.5_f64.powi(n as i32));
        while below + ways <= 0.025 && left_out < n / 2 {
            below += ways;
            left_out += 1;
            ways *= (n + 1 - left_out) as f64 / left_out as f64;
        }
        let left_out = left_out.saturating_sub(1);
        Self { value, low: values[left_out], high: values[n - 1 - left_out] }
    }
}

impl RaceResult<'_> {
    /// By how much of itself each version is faster than the first, round by round.
    fn gain(&self, row: &Row) -> Median {
        let gains: Vec<f64> =
            self.rows[0].seconds.iter().zip(&row.seconds).map(|(before, after)| before / after - 1.0).collect();
        Median::of(&gains)
    }

    /// A table, and what follows from it.
    pub fn text(&self) -> String {
        let has_instructions = self.rows.iter().any(|row| row.instructions.is_some());
        let spread = if self.rows[0].seconds.len() < ENOUGH_ROUNDS { "all runs" } else { "95 %" };
        let mut titles = vec![
            ("program", Align::Left),
            ("CPU time", Align::Right),
            (spread, Align::Right),
            ("faster by", Align::Right),
            (spread, Align::Right),
        ];
        if has_instructions {
            titles.extend([("instructions", Align::Right), ("change", Align::Right)]);
        }
        let mut table = Table::new(titles.into_iter().map(|(title, align)| (title.to_owned(), align)).collect());
        for (index, row) in self.rows.iter().enumerate() {
            let (time, gain) = (Median::of(&row.seconds), self.gain(row));
            let mut cells = vec![
                row.of.name.to_owned(),
                format!("{:.3} s", time.value),
                format!("{:.3} to {:.3}", time.low, time.high),
            ];
            cells.extend(if index == 0 {
                [String::new(), String::new()]
            } else {
                let percent = |part: f64| format!("{:+.1}", 100.0 * part);
                [format!("{} %", percent(gain.value)), format!("{} to {}", percent(gain.low), percent(gain.high))]
            });
            if has_instructions {
                let change = row.instructions.zip(self.rows[0].instructions).filter(|_| index > 0);
                cells.push(row.instructions.map_or_else(String::new, |all| count(all as f64)));
                cells.push(change.map_or_else(String::new, |(new, old)| {
                    format!("{:+.2} %", 100.0 * (new as f64 / old as f64 - 1.0))
                }));
            }
            table.row(cells);
        }
        let mut text = Vec::new();
        let printed = table.print(&mut text, terminal_width());
        debug_assert!(printed.is_ok(), "memory can be written");
        format!("{}\n{}\n", String::from_utf8_lossy(&text), self.sentence())
    }

    /// What can be said of the last version.
    pub fn verdict(&self) -> Verdict {
        let Some(last) = self.rows.last() else { return Verdict::NoDifference };
        let gain = self.gain(last);
        if Median::of(&self.rows[0].seconds).value < SHORTEST {
            Verdict::TooShort
        } else if last.seconds.len() < ENOUGH_ROUNDS {
            Verdict::TooFew
        } else if gain.low > 0.0 {
            Verdict::Faster
        } else if gain.high < 0.0 {
            Verdict::Slower
        } else {
            Verdict::NoDifference
        }
    }

    fn sentence(&self) -> String {
        let gain = self.rows.last().map_or(0.0, |last| self.gain(last).value);
        let percent = format!("{:.1} %", 100.0 * gain.abs());
        match self.verdict() {
            Verdict::Faster => format!("The new program is faster: {percent}."),
            Verdict::Slower => format!(
                "The new program is SLOWER: {percent} less work in the same time. The old one stays in its place."
            ),
            Verdict::NoDifference => {
                "No difference beyond the spread of the runs: more --rounds, or a longer --run, may show one.".into()
            }
            Verdict::TooFew => {
                format!("Fewer than {ENOUGH_ROUNDS} rounds are too few for an interval of 95 %: these are all values.")
            }
            Verdict::TooShort => {
                "The program runs too shortly for its CPU time to say anything: let it do more in --run.".into()
            }
        }
    }

    /// The same for scripts: `hbbp-pgo/1`.
    pub fn json(&self) -> Value {
        let interval = |of: Median| json!({ "median": of.value, "low": of.low, "high": of.high });
        let row = |row: &Row| {
            json!({
                "program": row.of.name,
                "file": row.of.file.display().to_string(),
                "cpu_seconds": interval(Median::of(&row.seconds)),
                "runs": row.seconds,
                "gain": interval(self.gain(row)),
                "instructions": row.instructions,
            })
        };
        json!({ "schema": "hbbp-pgo/1", "verdict": self.verdict().name(), "programs": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What there is to say of two versions that took so long.
    fn of<T>(before: &[f64], after: &[f64], said: impl Fn(&RaceResult) -> T) -> T {
        let variants = ["before", "profile"].map(|name| Variant::new(name, name.into()));
        let row = |(of, seconds): (_, &[f64])| Row { of, seconds: seconds.to_vec(), instructions: None };
        said(&RaceResult { rows: variants.iter().zip([before, after]).map(row).collect() })
    }

    /// By the binomial distribution: of 6 values both ends are needed (96.9 %), of 9 one may be left out at each (96.1 %).
    #[test]
    fn the_interval_of_a_median() {
        let of = |n: usize| Median::of(&(1..=n).map(|value| value as f64).collect::<Vec<_>>());
        assert_eq!(of(1), Median { value: 1.0, low: 1.0, high: 1.0 });
        assert_eq!(of(6), Median { value: 3.5, low: 1.0, high: 6.0 });
        assert_eq!(of(8), Median { value: 4.5, low: 1.0, high: 8.0 });
        assert_eq!(of(9), Median { value: 5.0, low: 2.0, high: 8.0 });
        assert_eq!(of(20), Median { value: 10.5, low: 6.0, high: 15.0 });
    }

    #[test]
    fn only_what_is_beyond_the_spread_is_a_gain() {
        let slow = [1.10, 1.12, 1.11, 1.13, 1.10, 1.12];
        let fast = [1.00, 1.01, 1.02, 1.00, 1.01, 1.00];
        let mixed = [1.00, 1.21, 1.02, 1.20, 1.21, 1.00];
        let sentence = |before: &[f64], after: &[f64]| of(before, after, |result| result.sentence());
        assert!(sentence(&slow, &fast).contains("is faster: 10."), "{}", sentence(&slow, &fast));
        assert!(sentence(&fast, &slow).contains("SLOWER"));
        assert!(sentence(&slow, &mixed).starts_with("No difference"));
        assert!(sentence(&slow[..5], &fast[..5]).contains("too few"));
        assert!(sentence(&[0.01; 6], &[0.001; 6]).contains("too shortly"));
        let text = of(&slow, &fast, |result| result.text());
        assert!(
            text.contains("before ") && text.contains("+10.") && text.lines().all(|line| line.len() <= 80),
            "{text}"
        );
    }
}
