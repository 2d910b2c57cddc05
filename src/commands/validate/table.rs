//! The comparison for people.

use std::io::Write;

use analyzer::recording::base_name;
use analyzer::validation::{
    CodeQuality, Coverages, Estimate, LEAST_SHARE, Measure, Named, Quality, Side, Validation, WorstBlock,
};
use model::Source;

use super::verdict::sentence;
use super::{NO_WEIGHT, Report};
use crate::output::{Align, Table, count, more, print_head, print_line, share};

/// What is left out is named one by one down to this share.
const NAMED: f64 = 0.0005;

/// Prints the whole report.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    head(report, out)?;
    qualities(report, out)?;
    writeln!(out)?;
    coverages(report, out)?;
    writeln!(out)?;
    mnemonics(report, out)?;
    writeln!(out)?;
    functions(report, out)?;
    writeln!(out)?;
    worst(report, out)?;
    writeln!(out)?;
    let verdict = report.validation.verdict().map(|verdict| sentence(&verdict, report.validation));
    let verdict = verdict.unwrap_or_else(|| "none: the recording has no counts".into());
    Ok(print_line("verdict", &verdict, out, report.layout)?)
}

fn percent(value: f64) -> String {
    share(value, 1.0)
}

fn head(report: &Report<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let (truth, validation, layout) = (report.truth, report.validation, report.layout);
    print_head(report.head, report.analysis.instructions(), out, layout)?;
    let processes = if truth.processes == 1 { "process" } else { "processes" };
    let counted = count(truth.counted as f64);
    let what = if truth.command.is_empty() { String::new() } else { format!("; {}", truth.command) };
    print_line(
        "truth",
        &format!("{}: {counted} instructions of {} {processes}{what}", truth.engine, truth.processes),
        out,
        layout,
    )?;
    let [of_truth, of_recording] = [validation.compared_truth, validation.compared_recording].map(percent);
    print_line(
        "compared",
        &format!("{of_truth} of the truth's instructions, {of_recording} of the recording's"),
        out,
        layout,
    )?;
    for side in [Side::Truth, Side::Recording] {
        let of_side = || validation.left_out.iter().filter(|left| left.side == side);
        for left in of_side().filter(|left| left.share >= NAMED) {
            print_line("left out", &format!("{}: {} {}", side.as_str(), percent(left.share), left.what), out, layout)?;
        }
        let small: Vec<f64> = of_side().map(|left| left.share).filter(|share| *share < NAMED).collect();
        if !small.is_empty() {
            let sum = percent(small.iter().sum());
            print_line("left out", &format!("{}: {sum} for {} more reasons", side.as_str(), small.len()), out, layout)?;
        }
    }
    if validation.mnemonics_of_all_code {
        print_line("mnemonics", "of all user code: the truth counted them beside its blocks", out, layout)?;
    }
    writeln!(out)
}

/// The estimates that the recording has.
fn present(validation: &Validation) -> Vec<(Estimate, &Quality)> {
    let all = Estimate::ALL.into_iter().zip(&validation.qualities);
    all.filter_map(|(estimate, quality)| Some((estimate, quality.as_ref()?))).collect()
}

fn columns(first: &[(&str, Align)], report: &Report<'_>) -> Table {
    let mut all: Vec<(String, Align)> = first.iter().map(|(title, align)| (title.to_string(), *align)).collect();
    let title = |estimate| match estimate {
        Estimate::Lbr => report.analysis.title_of(Source::Lbr),
        estimate => estimate.as_str(),
    };
    all.extend(present(report.validation).iter().map(|(estimate, _)| (title(*estimate).to_string(), Align::Right)));
    Table::new(all)
}

fn qualities(report: &Report<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let qualities = present(report.validation);
    let mut table = columns(&[("average weighted error", Align::Left)], report);
    let mut row = |title: &str, value: &dyn Fn(&Quality) -> Option<f64>| {
        let cell = |quality: &Quality| value(quality).map_or("-".into(), percent);
        let cells = qualities.iter().map(|(_, quality)| cell(quality));
        table.row([title.to_string()].into_iter().chain(cells).collect());
    };
    fn code(quality: &Quality) -> Option<&CodeQuality> {
        quality.code.as_ref()
    }
    type Get = fn(&Quality) -> Option<Measure>;
    let measures: [(&str, Get); 3] = [
        ("mnemonics", |quality| Some(quality.mnemonic)),
        ("blocks", |quality| Some(code(quality)?.block)),
        ("functions", |quality| Some(code(quality)?.function)),
    ];
    for (title, measure) in measures {
        row(title, &|quality| Some(measure(quality)?.error));
        row("  by chance", &|quality| measure(quality)?.noise);
        row("  beyond chance", &|quality| measure(quality)?.bias());
    }
    row("overlap of blocks", &|quality| Some(code(quality)?.block_overlap));
    row("overlap of functions", &|quality| Some(code(quality)?.function_overlap));
    table.print(out, report.layout)
}

/// How many rows have the truth in their interval.
fn coverages(report: &Report<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let titles = [
        (format!("rows of {} or more", share(LEAST_SHARE, 1.0)), Align::Left),
        ("rows".into(), Align::Right),
        ("in ±".into(), Align::Right),
        ("by weight".into(), Align::Right),
    ];
    let mut table = Table::new(titles.to_vec());
    let Coverages { mnemonic, function, block } = report.validation.coverages;
    for (name, coverage) in [("mnemonics", Some(mnemonic)), ("functions", function), ("blocks", block)] {
        let Some(coverage) = coverage else { continue };
        let cell = |value: Option<f64>| value.map_or("-".into(), |value| format!("{:.0} %", 100.0 * value));
        table.row(vec![
            name.into(),
            count((coverage.rows + coverage.unknown) as f64),
            cell(coverage.share()),
            cell(coverage.weighted()),
        ]);
    }
    table.print(out, report.layout)
}

fn errors<N>(report: &Report<'_>, named: &Named<N>) -> Vec<String> {
    let error = |(estimate, _): &(Estimate, &Quality)| named.error(*estimate).map_or("-".into(), percent);
    present(report.validation).iter().map(error).collect()
}

fn mnemonics(report: &Report<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let mut table = columns(&[("error by mnemonic", Align::Left), ("truth", Align::Right)], report);
    let (shown, rest) = Rest::of(report, &report.validation.mnemonics);
    for named in shown {
        let first = [named.name.clone(), percent(named.truth)];
        table.row(first.into_iter().chain(errors(report, named)).collect());
    }
    table.print(out, report.layout)?;
    rest.print(["mnemonic", "mnemonics"], out)
}

fn functions(report: &Report<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let titles = [("worst functions", Align::Left), ("module", Align::Left), ("truth", Align::Right)];
    let mut table = columns(&titles, report);
    let (shown, rest) = Rest::of(report, &report.validation.functions);
    for named in shown {
        let function = named.name.function.clone().unwrap_or_else(|| "?".into());
        let first = [function, name_of(report, named.name.module), percent(named.truth)];
        table.row(first.into_iter().chain(errors(report, named)).collect());
    }
    table.print(out, report.layout)?;
    rest.print(["function", "functions"], out)
}

fn worst(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let titles = [
        ("adds", Align::Right),
        ("truth", Align::Right),
        ("hybrid", Align::Right),
        ("start", Align::Right),
        ("worst blocks", Align::Left),
        ("why", Align::Left),
    ];
    let titles = titles.map(|(title, align)| (title.to_string(), align)).to_vec();
    let mut table = Table::new(titles);
    let has_weight = |block: &&WorstBlock| block.truth.max(block.estimates[Estimate::Hybrid as usize]) >= report.least;
    for block in report.validation.worst.iter().filter(has_weight).take(report.top) {
        let hybrid = block.estimates[Estimate::Hybrid as usize];
        let function = block.function.clone().unwrap_or_else(|| name_of(report, block.module));
        table.row(vec![
            percent(block.contribution()),
            percent(block.truth),
            percent(hybrid),
            block.start.to_string(),
            function,
            block.reason.clone(),
        ]);
    }
    Ok(table.print(out, report.layout)?)
}

fn name_of(report: &Report<'_>, module: usize) -> String {
    base_name(&report.validation.modules[module])
}

/// The rows of a list that are not shown.
struct Rest {
    rows: usize,
    /// How many of them are of no weight.
    weightless: usize,
    /// Their share of the truth.
    truth: f64,
}

impl Rest {
    /// The rows to show, and the rest.
    fn of<'a, N>(report: &Report<'_>, all: &'a [Named<N>]) -> (Vec<&'a Named<N>>, Self) {
        let (mut shown, mut rest) = (Vec::new(), Rest { rows: 0, weightless: 0, truth: 0.0 });
        for row in all {
            let has_weight = row.weight() >= report.least;
            if has_weight && shown.len() < report.top {
                shown.push(row);
            } else {
                rest.rows += 1;
                rest.weightless += usize::from(!has_weight);
                rest.truth += row.truth;
            }
        }
        (shown, rest)
    }

    fn print(&self, what: [&str; 2], out: &mut dyn Write) -> std::io::Result<()> {
        let Rest { rows, weightless, truth } = *self;
        let mut with = percent(truth);
        if weightless > 0 {
            with += &format!(", {weightless} of less than {} each", percent(NO_WEIGHT));
        }
        if rows > 0 { writeln!(out, "{}", more(rows, what, &with)) } else { Ok(()) }
    }
}
