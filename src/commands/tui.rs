//! `hbbp tui`: a recording in the terminal, to be looked around in.

mod blocks;
mod browser;
mod code;
mod cursor;
mod diff;
mod functions;
mod help;
mod narrowed;
mod pivot;
mod prompt;
mod recorded;
mod screen;
mod sheet;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::annotate::SourceTexts;
use analyzer::counting::Detail;
use analyzer::mix::{Query, Taxonomies};
use analyzer::{Analysis, Origin};
use reports::diff::Compared;

use crate::commands::diff::Report;
use crate::commands::mix::keys;
use crate::commands::mix::query::{PivotArgs, query};
use crate::input::{Input, InputArgs, Reader, Reads, require_samples, title_of};
use crate::usage::wrong_usage;
use browser::Browser;
use diff::Diff;
use recorded::{Recorded, Settings};

/// Look around in a recording, or in two, in the terminal: functions, blocks, code, pivot
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("command", |command| command.index(3)))]
pub struct Args {
    #[command(flatten)]
    pivot: PivotArgs,

    /// Leave out lines of the source, and do not read debug information
    #[arg(long)]
    no_source: bool,

    #[command(flatten)]
    input: InputArgs,

    /// A second recording, merged file or exact counts, which FILE is compared with
    #[arg(index = 2, value_name = "AFTER", conflicts_with_all = ["input", "command"])]
    after: Option<PathBuf>,
}

const READER: Reader = Reader { name: "hbbp tui", reads: Reads::Flows, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp tui run.data                                then ? for the keys
  hbbp tui --overhead 5 -- ./bench                 record first
  hbbp tui monday.data tuesday.data                what changed, too
  hbbp tui run.data --rows isa --columns packing   a pivot to begin with (key 4)";

/// Shows a recording, or two.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    require_terminal();
    let taxonomies = args.pivot.kept.taxonomies()?;
    let query = query::<Args>(READER.name, &args.pivot, &taxonomies, args.input.analysis.threads());
    let input = args.input.begin(&READER, None)?;
    let shown = browse(args, (query, taxonomies), &input, |browser| {
        browser.update(&terminal::resized()?);
        terminal::show(browser)
    });
    input.end(shown)
}

/// Ends the process where there is no terminal to be looked at and typed into.
fn require_terminal() {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let why = if !std::io::stdout().is_terminal() {
        "standard output is no terminal"
    } else if !std::io::stdin().is_terminal() {
        "standard input is no terminal"
    } else if is_dumb {
        "the terminal has no screen (TERM is dumb)"
    } else {
        return;
    };
    wrong_usage::<Args>(READER.name, format!("{why}: use `hbbp mix`, `hbbp annotate` or `hbbp report` instead"));
}

/// Analyses what there is to look at, and calls `show` with it.
fn browse(
    args: &Args,
    (query, taxonomies): (Query, Taxonomies),
    input: &Input<'_>,
    show: impl FnOnce(&mut Browser<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let after = args.after.as_ref().map(|file| args.input.other(file, &READER)).transpose()?;
    let inputs: Vec<&Input<'_>> = [Some(input), after.as_ref()].into_iter().flatten().collect();
    let titles = [Some(args.input.title()), args.after.as_deref().map(title_of)];
    let mut analyses = Vec::new();
    for input in &inputs {
        let mut analysis = input.analyze_with_branches()?;
        require_samples(&analysis)?;
        if args.input.analysis.chooses() && analysis.origin == Origin::Recording {
            analysis.count_flow_by_choice();
        }
        analyses.push(analysis);
    }
    let search = args.input.analysis.search();
    let recorded: Vec<Recorded<'_>> = analyses
        .iter()
        .zip(inputs)
        .zip(titles.into_iter().flatten())
        .enumerate()
        .map(|(recording, ((analysis, input), title))| {
            let again = Box::new(move |group_by| input.analyze_again(group_by, Detail::Branches));
            let texts = SourceTexts::below(search.symfs.clone());
            let settings = Settings { title, query: query.clone(), texts, source: !args.no_source, again };
            Recorded::new(recording, analysis, settings)
        })
        .collect();
    let diff = match (analyses.as_slice(), recorded.as_slice()) {
        ([before, after], [of_before, of_after]) => Some(difference(args, [before, after], [of_before, of_after])),
        _ => None,
    };
    show(&mut Browser::new(recorded, diff, taxonomies))
}

/// What `hbbp diff` compares.
fn difference(args: &Args, analyses: [&Analysis; 2], recorded: [&Recorded<'_>; 2]) -> Diff {
    let compared = Compared::of(analyses, (&args.input.analysis.search(), args.input.analysis.threads()));
    let report = Report::whole(compared.changes(recorded.map(|recorded| recorded.title.clone())));
    Diff::of(&report, recorded)
}
