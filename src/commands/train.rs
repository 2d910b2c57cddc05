//! `hbbp train`: from labelled blocks to a model.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use model::training::{LabelledBlock, Search, Tested, Training, read_blocks, train};
use model::{Parameters, SourcePair, Weighting};

use crate::output::{Align, Table, dot, evidence, svg, terminal_width, tree, write_to};
use crate::progress::Progress;

/// Train a model that chooses the source of each block
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Labelled blocks, from `hbbp label`
    #[arg(value_name = "CSV", required = true)]
    tables: Vec<PathBuf>,

    /// Write the model to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The kind of sources that counted the blocks: hardware, software or simulated
    #[arg(long = "for", value_name = "KIND", default_value = "software")]
    pair: SourcePair,

    /// Leaves of the tree at most [default: the best of 1 to 8]
    #[arg(long, value_name = "N")]
    leaves: Option<usize>,

    /// Splits from the root to a leaf at most [default: the best of 1, 2 and 4]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,

    /// Weight of a block: instructions (executed), root (the square root of that), equal, or cost (of the wrong choice)
    /// [default: the best of all]
    #[arg(long, value_name = "KIND")]
    weights: Option<Weighting>,

    /// The least share of the weight of all blocks in a leaf, 0 to 1
    #[arg(long, value_name = "PART", default_value_t = Search::default().min_weight)]
    min_weight: f64,

    /// Draw the tree for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,

    /// Draw the tree as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp train training-data/software.csv                   how good would a tree be?
  hbbp train blocks.csv -o mine.json --svg tree.svg       train, and draw the tree
  hbbp mix -i run.data --model mine.json                  use it once
  hbbp model import mine.json                             use it from now on

Every program is left out once: the tree that is tested on it, and its parameters, come from the other programs only.";

/// Grows a tree from tables of labelled blocks, tests it on programs that it has not seen, and writes the model.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut blocks = Vec::new();
    for table in &args.tables {
        blocks.extend(read(table).with_context(|| table.display().to_string())?);
    }
    let search = search(args);
    let progress = Progress::new();
    let show = |done, of| progress.show("growing trees", done as u64, of as u64);
    let training = train(&blocks, args.pair, &search, &show)?;
    drop(progress);
    if let Some(file) = &args.output {
        write_to(Some(file), |out| Ok(out.write_all(training.model.to_json().as_bytes())?))?;
    }
    if let Some(file) = &args.dot {
        write_to(Some(file), |out| Ok(dot(&training.model.tree, out)?))?;
    }
    if let Some(file) = &args.svg {
        write_to(Some(file), |out| Ok(svg(&training.model.tree, out)?))?;
    }
    write_to(None, |out| Ok(report(&training, out, terminal_width())?))?;
    Ok(ExitCode::SUCCESS)
}

fn read(table: &Path) -> anyhow::Result<Vec<LabelledBlock>> {
    Ok(read_blocks(std::io::BufReader::new(std::fs::File::open(table)?))?)
}

fn search(args: &Args) -> Search {
    let all = Search::default();
    Search {
        weightings: args.weights.map_or(all.weightings, |one| vec![one]),
        leaves: args.leaves.map_or(all.leaves, |one| vec![one]),
        depths: args.depth.map_or(all.depths, |one| vec![one]),
        min_weight: args.min_weight,
    }
}

fn report(training: &Training, out: &mut dyn Write, width: Option<usize>) -> std::io::Result<()> {
    let Training { model, tested } = training;
    evidence(model, out, width)?;
    writeln!(out, "\n# parameters chosen, and the tree they gave")?;
    let titles = [
        ("for the test on", Align::Left),
        ("leaves", Align::Right),
        ("most", Align::Right),
        ("depth", Align::Right),
        ("weights", Align::Left),
    ];
    let mut table = Table::new(titles.map(|(title, align)| (title.to_string(), align)).to_vec());
    let row = |name: &str, leaves: usize, parameters: &Parameters| {
        let Parameters { weighting, leaves: most, depth, .. } = parameters;
        vec![name.to_string(), leaves.to_string(), most.to_string(), depth.to_string(), weighting.to_string()]
    };
    for (program, Tested { parameters, tree }) in model.evidence.leave_one_out.iter().zip(tested) {
        table.row(row(&program.program, tree.leaves(), parameters));
    }
    table.row(row("(the model)", model.tree.leaves(), &model.evidence.parameters));
    table.print(out, width)?;
    writeln!(out)?;
    tree(&model.tree, out, width)
}
