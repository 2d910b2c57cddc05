//! `hbbp report`: a recording as a page for the browser.

mod code;
mod composed;
mod data;
mod digest;
mod page;
mod short;
mod source;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::annotate::{Query, SourceTexts, annotate};
use analyzer::mix::Taxonomies;
use anyhow::bail;

use crate::input::{Input, InputArgs, Reader, Reads, require_samples};
use crate::output;
use crate::output::{Head, Precision, write_to};
use crate::taxonomies::with_files;
use data::Data;

/// Write a page for the browser: summary, mix as a pivot, annotated functions, loops
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Put the code of the N functions with the most executed instructions into the page; 0 puts in all [default: the hottest, up to 500
    /// functions with 100,000 instructions in all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Leave out lines of the source, and do not read debug information
    #[arg(long)]
    no_source: bool,

    /// A file with a taxonomy of your own, whose name is one more attribute
    #[arg(long = "taxonomy", value_name = "FILE")]
    taxonomies: Vec<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    /// Write the page to this file instead of standard output (-)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
}

const READER: Reader = Reader { name: "hbbp report", reads: Reads::Flows, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp report run.data -o report.html              then open report.html in a browser
  hbbp report -o report.html -- ./bench            record first
  hbbp report run.data --top 0 -o report.html      with the code of all functions
  hbbp report run.data --taxonomy mine.toml -o report.html";

/// Functions whose code is in the page, where no number was asked for, and their instructions together: more would make it large.
const MOST_FUNCTIONS: usize = 500;
const MOST_INSTRUCTIONS: usize = 100_000;

/// Writes the page of a recording.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.file.is_none() && std::io::stdout().is_terminal() {
        bail!("a page is for a browser, not for a terminal: name a file with -o, or `-o -`");
    }
    let taxonomies = with_files(&args.taxonomies)?;
    let input = args.input.begin(&READER, None)?;
    input.end(write(args, &taxonomies, &input))
}

fn write(args: &Args, taxonomies: &Taxonomies, input: &Input<'_>) -> anyhow::Result<()> {
    let analysis = input.analyze_with_branches()?;
    require_samples(&analysis)?;
    let top = match args.top {
        None => MOST_FUNCTIONS,
        Some(0) => usize::MAX,
        Some(top) => top,
    };
    let threads = args.input.analysis.threads();
    let most_instructions = args.top.is_none().then_some(MOST_INSTRUCTIONS);
    let source = !args.no_source;
    let annotation =
        annotate(&analysis, &Query { functions: None, among: None, top, most_instructions, source, threads });
    annotation.notes.iter().for_each(output::say);
    let mut head = Head::of(&analysis);
    head.precision = Precision::of(&analysis, annotation.ranked.iter().map(|of| (of.share, of.share_interval)));
    let texts = SourceTexts::below(args.input.analysis.search().symfs);
    let title = args.input.title();
    let features = input.features()?;
    let data = Data::of(&analysis, &annotation, &head, taxonomies, texts).named(title.clone(), features);
    write_to(args.file.as_deref(), |out| page::write(&title, &data, out))
}
