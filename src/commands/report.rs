//! `hbbp report`: a recording as a page for the browser.

mod address;
mod changes;
mod code;
mod composed;
mod contexts;
mod data;
mod digest;
mod key;
mod names;
mod page;
mod short;
mod side;
mod source;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::counting::Detail;
use analyzer::mix::Taxonomies;
use analyzer::recording::notes;
use analyzer::uncertainty::Side::Sampled;
use anyhow::bail;
use reports::diff::Compared;
use reports::taxonomies::with_files;

use crate::cache::{Page, PlaceOfPage};
use crate::commands::diff::Report as Changed;
use crate::input::{Input, InputArgs, Reader, Reads, is_standard_input, title_of};
use crate::output::{self, write_to};
use crate::usage::wrong_usage;
use changes::Shown;
use side::Side;

/// Write a page for the browser: summary, mix, annotated functions, flame graph; of two recordings what changed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("command", |command| command.index(3)))]
pub struct Args {
    /// Put the code of the N functions with the most executed instructions into the page; 0 puts in all [default: the hottest, up to 500
    /// functions with 100,000 instructions in all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Leave out lines of the source and what was inlined; debug information is read only where two recordings are compared
    #[arg(long)]
    no_source: bool,

    /// A file with a taxonomy of your own, whose name is one more attribute
    #[arg(long = "taxonomy", value_name = "FILE")]
    taxonomies: Vec<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    /// A second recording, merged file or exact counts, which FILE is compared with: the page says what changed, and has the code of both
    #[arg(index = 2, value_name = "AFTER", conflicts_with_all = ["input", "command"])]
    after: Option<PathBuf>,

    /// Write the page to this file instead of standard output (-)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
}

const READER: Reader = Reader { name: "hbbp report", reads: Reads::Flows, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp report run.data -o report.html              then open report.html in a browser
  hbbp report -o report.html -- ./bench            record first
  hbbp report monday.data tuesday.data -o changes.html
  hbbp report run.data --top 0 -o report.html      with the code of all functions
  hbbp report run.data --taxonomy mine.toml -o report.html";

/// Writes the page of a recording.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.file.is_none() && std::io::stdout().is_terminal() {
        bail!("a page is for a browser, not for a terminal: name a file with -o, or `-o -`");
    }
    if args.after.as_deref().is_some_and(is_standard_input) {
        let why = "standard input (-) can be the first recording only: write the second one to a file, and name that";
        wrong_usage::<Args>(READER.name, why);
    }
    let taxonomies = with_files(&args.taxonomies)?;
    let input = args.input.begin(&READER, None)?;
    input.end(write(args, &taxonomies, &input))
}

fn write(args: &Args, taxonomies: &Taxonomies, input: &Input<'_>) -> anyhow::Result<()> {
    let Some(file) = &args.after else {
        let html = page_of_one(args, taxonomies, input)?;
        return write_to(args.file.as_deref(), |out| Ok(out.write_all(html.as_bytes())?));
    };
    let input_after = args.input.other(file, &READER)?;
    let titles = args.input.file().map_or_else(|| [args.input.title(), title_of(file)], |first| titles([first, file]));
    let [title_before, title_after] = titles;
    let mut before = Side::of(args, input, title_before, Detail::Calls)?;
    let mut after = Side::of(args, &input_after, title_after, Detail::Calls)?;
    let [calls_before, calls] = [before.take_calls()?, after.take_calls()?];
    let with = (&args.input.analysis.search(), args.input.analysis.threads());
    let mut compared = Compared::of([&before.analysis, &after.analysis], with);
    let composed = || Ok([before.composed(args, taxonomies)?, after.composed(args, taxonomies)?]);
    let (contexts, (contexts_before, composed)) =
        after.beside_contexts(args, calls, || before.beside_contexts(args, calls_before, composed))?;
    for (rows, composed) in compared.sides.iter_mut().zip(&composed) {
        if let Sampled(rows) = rows {
            rows.add_values(&composed.attributes);
        }
    }
    let report = Changed::whole(compared.changes(labels([&before.title, &after.title])));
    let keys = composed.each_ref().map(|composed| composed.attributes.clone());
    let instructions = [&before, &after].map(|side| side.analysis.instructions());
    let shown = [0, 1].map(|side| Shown {
        attributes: &keys[side],
        instructions: instructions[side],
        left_out: compared.left_out[side].as_deref(),
    });
    let [composed_before, composed_after] = composed;
    let data_before = before.data(args, composed_before)?.with_contexts(&before.analysis, contexts_before);
    let data = after.data(args, composed_after)?.with_contexts(&after.analysis, contexts);
    let data = data.compared(data_before, &report, shown);
    let title = format!("{}, {}", before.title, after.title);
    write_to(args.file.as_deref(), |out| page::write(&title, &data, out))
}

/// The page of one recording: that which was made before, if it would be the same now.
fn page_of_one(args: &Args, taxonomies: &Taxonomies, input: &Input<'_>) -> anyhow::Result<String> {
    let title = args.input.title();
    // Paths of the source may be relative.
    let folder = std::env::current_dir().ok();
    let of = format!("{title:?} {:?} {:?} {taxonomies:?} {folder:?}", args.top, args.no_source);
    let place = input.place_of_page(&of)?;
    if let Some(Page { html, said }) = place.as_ref().and_then(PlaceOfPage::find) {
        notes(input.recording()?).chain(said).for_each(output::say);
        return Ok(html);
    }
    let mut side = Side::of(args, input, title, Detail::Calls)?;
    let calls = side.take_calls()?;
    let (contexts, mut composed) = side.beside_contexts(args, calls, || side.composed(args, taxonomies))?;
    // Callers are named by files that are not compared.
    let is_kept = !contexts.as_ref().is_ok_and(|(calls, _)| calls.events.is_some());
    let said = side.said().into_iter().chain(std::mem::take(&mut composed.said)).collect();
    let data = side.data(args, composed)?.with_contexts(&side.analysis, contexts);
    let mut html = Vec::new();
    page::write(&side.title, &data, &mut html)?;
    let page = Page { html: String::from_utf8(html)?, said };
    place.iter().filter(|_| is_kept).for_each(|place| place.keep(&page, &side.analysis, &data.files));
    Ok(page.html)
}

/// What two files are called: by as many of the last parts of their paths as differ, or by their names if nothing does.
fn titles(files: [&Path; 2]) -> [String; 2] {
    let last = |file: &Path, number: usize| -> PathBuf {
        let parts: Vec<_> = file.components().collect();
        parts[parts.len().saturating_sub(number)..].iter().collect()
    };
    let most = files.map(|file| file.components().count()).into_iter().max().unwrap_or(0);
    let differ = (1..=most).map(|number| files.map(|file| last(file, number))).find(|[before, after]| before != after);
    differ.map_or_else(|| files.map(title_of), |files| files.map(|file| file.to_string_lossy().into_owned()))
}

/// What the sides are called beside each other: the same name twice would say nothing.
fn labels(titles: [&String; 2]) -> [String; 2] {
    let [before, after] = titles.map(Clone::clone);
    if before == after { [format!("{before} (before)"), format!("{after} (after)")] } else { [before, after] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_told_apart() {
        let of = |before: &str, after: &str| titles([Path::new(before), Path::new(after)]);
        assert_eq!(of("old/a.data", "new/b.data"), ["a.data", "b.data"]);
        assert_eq!(of("/x/old/1/run.data", "/x/new/1/run.data"), ["old/1/run.data", "new/1/run.data"]);
        assert_eq!(of("run.data", "old/run.data"), ["run.data", "old/run.data"]);
        let same = of("run.data", "run.data");
        assert_eq!(same, ["run.data", "run.data"]);
        assert_eq!(labels([&same[0], &same[1]]), ["run.data (before)", "run.data (after)"]);
    }
}
