//! `hbbp diff`: two profiles side by side.

mod csv;
mod json;
mod limit;
mod pivot;
pub(super) mod table;
mod weaker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::mix::{Mix, Query, Taxonomies};
use anyhow::bail;
use reports::diff::{Changes, Compared, Names, Pivot, nothing_to_choose, said_of_mix};
use reports::mix::key;

use crate::commands::filtering::FilterArgs;
use crate::commands::mix::{keys, titles};
use crate::input::{AnalysisArgs, Asked, Reader, Reads, is_recording};
use crate::output;
use crate::output::{Colours, Format, HeadArgs, Layout, OutputArgs};
use crate::usage::{CommandLine, wrong_usage};
use limit::Limit;
use weaker::Weaker;

/// Compare two recordings: what they have in common, what moved, and which kinds of instructions changed
///
/// The overlap is the sum of the smaller of both shares: 100 % is the same, 0 % has nothing in common. It is computed over blocks (of
/// files that are the same on both sides), over functions (by name; by name without suffixes such as .constprop.0 where a name is on one
/// side only), and over source lines (counted from the start of their function, where there is debug information).
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("filters", |filters| filters.requires("rows")), mut_arg("taxonomies", |files| files.requires("rows")))]
#[command(mut_arg("model", |model| model.help(MODEL)))]
pub struct Args {
    /// The first side: a recording, a file of `hbbp merge`, exact counts (from `hbbp truth`), or what `hbbp blocks` or `annotate --format json` printed
    before: PathBuf,

    /// The second side: the same kinds of files
    after: PathBuf,

    /// Compare the mixes of both sides by these keys, in place of functions, blocks and lines: see the list below
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    rows: Vec<String>,

    #[command(flatten)]
    kept: FilterArgs,

    /// Rows of each list; 0 prints all [default: 20 in a table, all in csv and json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Exit with status 3 if this has changed by more than that, and by more than chance can explain: instructions>+2%,
    /// instructions:FUNCTION>+2%, or share:FUNCTION>+1% (points); `<-2%` for what must not become less. Limits are of all
    /// instructions, whatever --rows shows
    #[arg(long, value_name = "LIMIT", conflicts_with = "filters")]
    fail_if: Vec<Limit>,

    #[command(flatten)]
    analysis: AnalysisArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    head: HeadArgs,
}

/// What the process exits with where a limit is broken.
const BROKEN: u8 = 3;

const READER: Reader = Reader { name: "hbbp diff", reads: Reads::Flows, records: false };

const MODEL: &str = "\
Count blocks by the source that is chosen for each, as `hbbp mix` does: the file of a model, `published` (the paper's rule), or the \
kind of sources that a model is for (hardware, software, simulated) [default: branches alone, or samples where there are none]";

const EXAMPLES: &str = "\
Examples:
  hbbp diff monday.data tuesday.data
  hbbp diff run.data gzip.truth.json --top 5      an estimate and exact counts
  hbbp diff old.data new.data --rows isa,packing  what became packed?
  hbbp diff old.data new.data --rows mnemonic --filter 'function=matmul*'
  hbbp diff old.truth.json new.truth.json --fail-if 'instructions>+2%'
  hbbp diff before.flow after.flow --format json";

/// All that the printed differences are made from.
pub(super) struct Report<'a> {
    pub changes: Changes<'a>,
    /// The comparison by keys, if there are any.
    pub pivot: Option<&'a Pivot>,
    /// What is known of the limits.
    pub limits: Vec<limit::Kept>,
    weaker: Weaker,
    /// Rows of each list.
    pub top: usize,
    pub layout: Layout,
    pub colours: Colours,
}

impl<'a> Report<'a> {
    /// All of it, as it is.
    pub fn whole(changes: Changes<'a>) -> Self {
        let (pivot, limits, top) = (None, Vec::new(), usize::MAX);
        Report { changes, pivot, limits, weaker: Weaker::default(), top, layout: Layout::Text, colours: Colours::NONE }
    }
}

/// What is asked for by keys. The process ends with what is wrong, if something is.
fn query(args: &Args, taxonomies: &Taxonomies) -> Query {
    let key = |name: &String| {
        key(name, taxonomies).unwrap_or_else(|why| wrong_usage::<Args>(READER.name, format!("--rows: {why}")))
    };
    Query {
        rows: args.rows.iter().map(key).collect(),
        filters: args.kept.filters::<Args>(READER.name, taxonomies),
        threads: args.analysis.threads(),
        ..Query::default()
    }
}

/// Says what there is to say of the mix of a side.
fn say_of_mix(file: &Path, mix: Option<&Mix>, query: Option<&Query>) {
    let Some((mix, query)) = mix.zip(query) else { return };
    said_of_mix(mix, query, &CommandLine).for_each(|note| say!("{}: {note}", file.display()));
}

/// Prints what two recordings, flows or truths differ in.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    if args.analysis.chooses()
        && let Some(file) = [&args.before, &args.after].into_iter().find(|file| !is_recording(file))
    {
        wrong_usage::<Args>(READER.name, nothing_to_choose("--model", file));
    }
    if [&args.before, &args.after].into_iter().any(|file| !is_recording(file)) {
        args.analysis.not_for_counts().for_each(output::say);
    }
    let taxonomies = args.kept.taxonomies()?;
    let query = (!args.rows.is_empty()).then(|| query(args, &taxonomies));
    let chosen = args.analysis.rules()?;
    let asked = Asked { errors: true, mix: query.as_ref(), ..Asked::default() };
    let before = args.analysis.side_of_file(&chosen, &args.before, &READER, asked)?;
    let after = args.analysis.side_of_file(&chosen, &args.after, &READER, asked)?;
    let with = (&args.analysis.search(), args.analysis.threads());
    let compared = Compared::of_flows([&before.flow, &after.flow], [before.side, after.side], with);
    let named = [args.before.as_path(), args.after.as_path()];
    let notes = [(&*before.notes, before.shortcomings), (&*after.notes, after.shortcomings)];
    let where_it_is = if query.is_some() { "the rows have it" } else { "--rows function compares it, too" };
    let left_out = compared.left_out.clone().map(|why| why.map(|why| format!("{why}; {where_it_is}")));
    let weaker = Weaker::of(named, notes, &left_out, args.head.verbose);
    let is_in_head = args.output.format.is_for_people();
    if !is_in_head {
        weaker.say();
    }
    // There is no head then.
    let nothing = |why: String| -> anyhow::Result<ExitCode> {
        if is_in_head {
            weaker.say();
        }
        bail!(why)
    };
    for (file, mix) in named.into_iter().zip([&before.mix, &after.mix]) {
        say_of_mix(file, mix.as_ref(), query.as_ref());
    }
    let mixes = before.mix.as_ref().zip(after.mix.as_ref());
    if let Some((before, after)) = mixes
        && before.cells.is_empty()
        && after.cells.is_empty()
    {
        return nothing("there is nothing to show: no instruction of either side passes the filters".to_owned());
    }
    let files = [&args.before, &args.after].map(|file| file.display().to_string());
    let mut report = Report::whole(compared.changes(files));
    let names = Names::of(report.changes.comparison);
    let pivot = query
        .as_ref()
        .zip(mixes)
        .map(|(query, (before, after))| Pivot::of(query, [before, after], report.changes.sides, &names));
    for (file, sum) in [&args.before, &args.after].into_iter().zip(report.changes.comparison.instructions) {
        if sum <= 0.0 {
            return nothing(format!("{}: nothing was seen running", file.display()));
        }
    }
    (report.pivot, report.weaker) = (pivot.as_ref(), weaker);
    report.top = args.output.format.rows_of_lists(args.top);
    (report.layout, report.colours) = (args.output.layout(), args.output.colours());
    let (mut kept, mut unknown) = (Vec::new(), Vec::new());
    for limit in &args.fail_if {
        match limit.look(&report) {
            Ok(known) => kept.push(known),
            Err(why) => unknown.push(why),
        }
    }
    report.limits = kept;
    let keys = query.as_ref().map(|query| titles(&query.rows)).unwrap_or_default();
    args.output.write(&keys, |out| match args.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })?;
    let broken = limit::say(&report.limits);
    // The report is there whatever is not known of limits.
    if let Some(last) = unknown.pop() {
        unknown.iter().for_each(crate::complain);
        return Err(last);
    }
    Ok(if broken > 0 { ExitCode::from(BROKEN) } else { ExitCode::SUCCESS })
}
