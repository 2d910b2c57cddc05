//! `hbbp vectorization`: is it vectorized?

mod answer;
mod csv;
mod json;
mod table;

use std::process::ExitCode;

use analyzer::counting::Detail;
use analyzer::mix;
use analyzer::mix::Filter;
use analyzer::uncertainty::Interval;
use analyzer::vectorization::{Domain, Query, Vectorization, vectorization};
use reports::mix::{bounds, group_by, unmatched};
use reports::{Reader, Reads, nothing_passes, without_code};

use crate::commands::filtering::FilterArgs;
use crate::commands::mix::keys;
use crate::commands::reporting::ReportArgs;
use crate::input::{Input, WITHOUT_CODE};
use crate::output;
use crate::output::{Colours, Format, Head, Layout, Precision, say_head};
use crate::usage::CommandLine;

/// Say which part of the floating-point and vector work is scalar, and in which functions and loops
///
/// Floating-point work is counted in operations: one for each element of a vector, two for multiply and add in one. Work on vectors of
/// integers is counted in instructions. Moves are no work. Functions with the most scalar floating-point operations come first.
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
pub struct Args {
    /// A row for each loop instead of one for each function
    #[arg(long)]
    loops: bool,

    #[command(flatten)]
    kept: FilterArgs,

    #[command(flatten)]
    report: ReportArgs,
}

const READER: Reader = Reader { name: "hbbp vectorization", reads: Reads::Flows, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp vectorization run.data                      which functions compute one number at a time?
  hbbp vectorization run.data --loops --top 10     which loops?
  hbbp vectorization --filter 'function=matmul*'   of these functions (reads hbbp.data)
  hbbp vectorization --overhead 5 -- ./bench       record and print in one go
  hbbp vectorization run.data --format json";

/// All that the report is printed from.
struct Report<'a> {
    vectorization: &'a Vectorization,
    head: &'a Head,
    by_loop: bool,
    top: usize,
    layout: Layout,
    colours: Colours,
}

/// Prints which part of the work of a recording is scalar.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.report.output.check()?;
    let filters = args.kept.filters::<Args>(READER.name, &args.kept.taxonomies()?);
    let input = args.report.input.begin(&READER, None)?;
    input.end(print(args, filters, &input))
}

fn print(args: &Args, filters: Vec<Filter>, input: &Input<'_>) -> anyhow::Result<()> {
    let of_mix = mix::Query { filters: filters.clone(), ..mix::Query::default() };
    let (by, by_loop) = (group_by(&of_mix), args.loops || of_mix.asks_loops());
    let detail = if by_loop { Detail::Branches } else { Detail::Blocks };
    let analysis = input.analyze_in_detail(by, detail)?;
    let query = Query { by_loop: args.loops, filters, threads: args.report.input.analysis.threads() };
    let result = vectorization(&analysis, &query)?;
    let nothing = args.report.output.say_without_samples(&analysis);
    let unmatched: Vec<String> = result.unmatched.iter().map(|of| unmatched::sentence(of, &CommandLine)).collect();
    if nothing.is_none() {
        if result.all.instructions <= 0.0 && !query.filters.is_empty() {
            let why = nothing_passes(without_code(&query.filters, &analysis, &CommandLine), &[], &unmatched);
            anyhow::bail!("there is nothing to show: {why}");
        }
        unmatched.iter().for_each(output::say);
        if result.all.flops() > 0.0 {
            bounds(result.all.instructions, &result.all.operations.sum).iter().for_each(output::say);
        }
    }
    let head = args.report.head(&analysis, Precision::of(&analysis, shares(&result).into_iter()));
    if nothing.is_none() && !analysis.has_readable_code() {
        say_head(&head, analysis.instructions());
        anyhow::bail!(WITHOUT_CODE);
    }
    let report = Report {
        vectorization: &result,
        head: &head,
        by_loop: args.loops,
        top: args.report.rows(),
        layout: args.report.output.layout(),
        colours: args.report.output.colours(),
    };
    args.report.output.write(&[], |out| match args.report.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// The shares of the rows in all floating-point operations, or where there are none, in the work on vectors of integers.
fn shares(result: &Vectorization) -> Vec<(f64, Interval)> {
    let domain = if result.all.flops() > 0.0 { Domain::Float } else { Domain::Integer };
    result.rows.iter().filter_map(|row| result.share(&row.work, domain)).collect()
}
