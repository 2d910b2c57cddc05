//! Annotated code as CSV: a row for each instruction.

use std::io::Write;

use analyzer::address::Svma;
use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction, AnnotatedInstruction};
use analyzer::paths::LoopTrips;
use anyhow::Context;

use super::{Report, word};

const TITLES: [&str; 27] = [
    "module",
    "function",
    "block",
    "address",
    "instruction",
    "seen",
    "count",
    "count_error",
    "share",
    "share_error",
    "rests_on_little",
    "ebs",
    "lbr",
    "chosen",
    "bias",
    "depth",
    "trips",
    "branch",
    "target",
    "taken_rate",
    "mispredict_rate",
    "file",
    "line",
    "inlined",
    "cycles",
    "ipc",
    "trip_histogram",
];

/// Prints all functions.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(TITLES)?;
    for function in &report.of.annotation.functions {
        let mut before = None;
        for (index, block) in function.blocks.iter().enumerate() {
            for instruction in &block.instructions {
                csv.write_record(row(report, function, (index, block), instruction, before))?;
                before = Some(instruction.address);
            }
        }
    }
    csv.flush().context("cannot write the table")
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// What is of the block stands in the row of each of its instructions, what is of its branch in that of the last.
fn row(
    report: &Report<'_>,
    function: &AnnotatedFunction,
    (index, block): (usize, &AnnotatedBlock),
    instruction: &AnnotatedInstruction,
    before: Option<Svma>,
) -> [String; TITLES.len()] {
    let place = report.of.annotation.place(function, instruction.address);
    let begun = report.of.annotation.begun(function, before, instruction.address);
    let names: Vec<&str> = begun.iter().map(|inlined| inlined.function.as_deref().unwrap_or_default()).collect();
    let is_first = block.instructions.first().is_some_and(|first| first.address == instruction.address);
    let is_last = block.instructions.last().is_some_and(|last| last.address == instruction.address);
    let innermost = function.innermost(block);
    let headed = innermost.filter(|one| is_first && one.header == index);
    let cycles = report.of.cycles(function, block);
    let branch = block.branch.as_ref().filter(|_| is_last);
    let all = branch.and_then(|branch| branch.taken).unwrap_or(0.0);
    let target = branch.map(|branch| match &branch.target {
        Some(target) => target.name(),
        None => {
            let name = |target: &analyzer::annotate::Target| format!("{} {}", target.place.name(), target.count / all);
            branch.targets.iter().map(name).collect::<Vec<_>>().join("; ")
        }
    });
    [
        report.of.module(function).to_owned(),
        function.name.clone(),
        block.start.to_string(),
        instruction.address.to_string(),
        instruction.text.clone(),
        word(block.seen).to_owned(),
        text(block.count.map(|counted| counted.count)),
        text(block.count_interval.half_width),
        text(block.count.map(|_| report.of.share(block.executed()))),
        text(block.share_interval.half_width),
        block.share_interval.rests_on_little.to_string(),
        text(block.count.map(|count| count.ebs)),
        text(block.count.map(|count| count.lbr)),
        text(block.count.map(|count| count.chosen)),
        block.count.is_some_and(|count| count.bias).to_string(),
        innermost.map_or(0, |one| one.depth).to_string(),
        text(headed.and_then(|one| one.mean_trips())),
        text(branch.map(|branch| branch.kind.as_str())),
        target.unwrap_or_default(),
        text(branch.and_then(|branch| branch.taken_rate())),
        text(branch.and_then(|branch| branch.mispredict_rate())),
        text(place.map(|place| place.path)),
        text(place.map(|place| place.line)),
        names.join("; "),
        text(cycles.map(|of| of.cycles)),
        text(cycles.and_then(|of| of.ipc)),
        headed.and_then(|one| report.of.trips(function, one)).map_or(String::new(), histogram),
    ]
}

/// Shares by iterations: `1 0.2; 3-4 0.5; >=40 0.3`.
fn histogram(of: &LoopTrips) -> String {
    let range = |least: u32, most: u32| if least == most { least.to_string() } else { format!("{least}-{most}") };
    let shares = of.buckets.iter().filter(|bucket| bucket.share > 0.0);
    let mut parts: Vec<String> =
        shares.map(|bucket| format!("{} {}", range(bucket.least, bucket.most), bucket.share)).collect();
    parts.extend((of.longer > 0.0).then(|| format!(">={} {}", of.at_least, of.longer)));
    parts.join("; ")
}
