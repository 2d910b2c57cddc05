//! `hbbp merge`: many recordings, one profile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::flow::Merge;
use anyhow::{Context, bail};

use crate::input::{AnalysisArgs, Reader, Reads};
use crate::output;
use crate::output::profile::left_out;
use crate::output::{count, write_to, written_to};
use crate::progress::Progress;
use crate::usage::wrong_usage;

/// Add up recordings of one host or many into one file, which `export` and `diff` read like a recording
///
/// Files with the same build id are the same code; files without a build id are the same code if they have the same path. Recordings
/// are read one after the other: memory grows with the code that ran, and not with the number of recordings.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("model", |model| model.hide(true)))]
pub struct Args {
    /// Recordings, merged files, exact counts (from `hbbp truth`), what `hbbp blocks` or `annotate --format json` printed, or - for standard input; each counts WEIGHT times [default: 1]
    #[arg(required = true, value_name = "FILE[:WEIGHT]")]
    inputs: Vec<String>,

    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Leave out files that cannot be read, and go on
    #[arg(long)]
    keep_going: bool,

    #[command(flatten)]
    analysis: AnalysisArgs,
}

const READER: Reader = Reader { name: "hbbp merge", reads: Reads::Flows, records: false };

const EXAMPLES: &str = "\
Examples:
  hbbp merge -o all.flow host1.data host2.data
  hbbp merge -o all.flow canary.data:10 fleet/*.data
  hbbp export --format bolt all.flow --binary ./server -o server.fdata";

/// Adds up the flows of all inputs, each times its weight, and writes the sum.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let inputs: Vec<(&Path, f64)> = args.inputs.iter().map(|text| weighted(text)).collect::<Result<_, _>>()?;
    if args.analysis.chooses() {
        wrong_usage::<Args>(
            READER.name,
            "--model is not for merging: what was seen (ranges, branches, samples) is added up as it is, and no source is chosen \
             for any block",
        );
    }
    let chosen = args.analysis.rules()?;
    let mut merge = Merge::default();
    let mut skipped = 0;
    let progress = Progress::new();
    let (mut executions, mut relative) = (0, 0);
    let (mut with_branches, mut without) = (0, 0);
    // How many files each was said of.
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    for (index, (file, weight)) in inputs.iter().enumerate() {
        progress.show("merging", index as u64, inputs.len() as u64);
        match args.analysis.flow_of_file(&chosen, file, &READER) {
            Ok((analysed, said)) => {
                let flow = analysed.flow();
                said.into_iter().for_each(|note| *notes.entry(note).or_default() += 1);
                *(if flow.executions { &mut executions } else { &mut relative }) += 1;
                *(if flow.range_total() > 0.0 { &mut with_branches } else { &mut without }) += 1;
                merge.add(flow, *weight);
            }
            Err(error) if args.keep_going => {
                skipped += 1;
                say!("left out: {}", reports::sentence(&error));
            }
            Err(error) => return Err(error.context("nothing was written; --keep-going leaves out what cannot be read")),
        }
    }
    drop(progress);
    notes.iter().for_each(|(note, files)| say!("{} of {} files: {note}", files, inputs.len()));
    if skipped == inputs.len() {
        bail!("none of the files could be read");
    }
    if executions > 0 && relative > 0 {
        say!(
            "{executions} files count executions, {relative} only what is proportional to them: weigh them so that \
             they can be added (FILE:WEIGHT)"
        );
    }
    if with_branches > 0 && without > 0 {
        say!(
            "{with_branches} files have branches, {without} only samples: profiles of code that has branches are made of the \
             branches alone"
        );
    }
    if inputs.iter().any(|(_, weight)| *weight < 1.0) {
        say!(
            "profiles count in whole numbers, 1 at least: with weights below 1 rare code counts too much in them; weigh the \
             other files more instead"
        );
    }
    let flow = merge.finish();
    flow.check_counts().context("nothing was written; use smaller weights")?;
    write_to(Some(&args.output), |out| Ok(flow.write_json(out)?))?;
    let ranges: usize = flow.modules.iter().map(|module| module.ranges.len()).sum();
    let branches: usize = flow.modules.iter().map(|module| module.branches.len()).sum();
    say!(
        "{} of {} files: {} ranges, {} branches of {} modules, written to {}",
        inputs.len() - skipped,
        inputs.len(),
        count(ranges as f64),
        count(branches as f64),
        flow.modules.len(),
        written_to(&args.output)
    );
    left_out(&flow).iter().for_each(output::say);
    Ok(ExitCode::SUCCESS)
}

/// A file and its weight. What is a file as it stands has none.
fn weighted(text: &str) -> anyhow::Result<(&Path, f64)> {
    let whole = (Path::new(text), 1.0);
    if whole.0.exists() {
        return Ok(whole);
    }
    let Some((file, weight)) = text.rsplit_once(':') else { return Ok(whole) };
    let Ok(weight) = weight.parse::<f64>() else {
        if !Path::new(file).exists() {
            bail!("{text}: there is no such file");
        }
        bail!("{text}: the weight is no number: {weight:?}");
    };
    if !(weight.is_finite() && weight > 0.0) {
        bail!("{text}: the weight is {weight}, expected more than 0");
    }
    Ok((Path::new(file), weight))
}
