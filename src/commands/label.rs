//! `hbbp label`: from a recording and its truth to labelled blocks.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::Analysis;
use analyzer::counting::GroupBy;
use analyzer::recording::base_name;
use analyzer::truth::{Reference, Truth};
use anyhow::{Context, bail};
use model::Source;
use model::training::{LabelledBlock, write_blocks};

use crate::commands::truth::read_truth;
use crate::input::{FILE_OF_SAMPLES, Input, InputArgs, Reader, Reads, require_samples};
use crate::output::{count, share, write_to};

/// Label every block of a recording with the source that is nearer the truth, as CSV for `hbbp train`
///
/// The blocks are of user code, in modules that the truth has, too. Both counts are scaled, each to as many executed instructions as
/// the truth.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("recording", |file| file.help(FILE_OF_SAMPLES)))]
pub struct Args {
    /// Exact counts: what `hbbp truth` wrote, or a file of callgrind (--dump-instr=yes) or of SDE's -mix
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,

    /// Name of the program in the table
    #[arg(long, value_name = "NAME")]
    program: String,

    /// Keep only the N blocks with the most executed instructions, by the truth or by either source; 0 keeps all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    top: usize,

    #[command(flatten)]
    input: InputArgs,

    /// Write the table to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const READER: Reader = Reader { name: "hbbp label", reads: Reads::Recordings, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp truth -o gzip.json -- gzip -t big.tar.gz
  env $(hbbp truth --environment) \\
      hbbp record --overhead 2 -o gzip.data -- gzip -t big.tar.gz
  hbbp label gzip.data --truth gzip.json --program gzip -o gzip.csv
  hbbp train gzip.csv perl.csv python.csv";

/// Writes the blocks of a recording with their features and with which source was closer to the truth.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.input.check(&READER);
    let truth = read_truth(&args.truth, args.input.analysis.search())?;
    let input = args.input.begin(&READER, None)?;
    input.end(print(args, &truth, &input))
}

fn print(args: &Args, truth: &Truth, input: &Input<'_>) -> anyhow::Result<()> {
    let analysis = input.analyze(GroupBy::default())?;
    require_samples(&analysis)?;
    if analysis.sources.pair().is_none() {
        bail!("the recording has no pair of sources to choose from: record both event-based samples and branch stacks");
    }
    let mut blocks = labelled(&analysis, &Reference::of(&analysis, truth), &args.program);
    if blocks.is_empty() {
        bail!("the truth and the recording have no code in common");
    }
    scale_to_truth(&mut blocks);
    let executed: f64 = blocks.iter().map(LabelledBlock::weight).sum();
    let all = blocks.len();
    keep_largest(&mut blocks, args.top);
    let kept: f64 = blocks.iter().map(LabelledBlock::weight).sum();
    say!(
        "{}: {} of {} blocks, {} of their executed instructions",
        args.program,
        count(blocks.len() as f64),
        count(all as f64),
        share(kept, executed)
    );
    write_to(args.output.as_deref(), |out| write_blocks(&blocks, out).context("cannot write the table"))
}

/// The blocks of modules that can be compared, but for functions that the truth never saw: under instrumentation, libraries can
/// take other variants.
fn labelled(analysis: &Analysis, reference: &Reference, program: &str) -> Vec<LabelledBlock> {
    let mut blocks = Vec::new();
    for (index, module) in analysis.counted.iter().enumerate() {
        let Ok(reference) = reference.module(index) else { continue };
        let path = &analysis.modules.get(module.counts.module).path;
        let file = base_name(path);
        let executions: Vec<f64> = module.blocks.iter().map(|block| reference.executions(module, block)).collect();
        let ran = module.blocks.iter().zip(&executions).filter(|(_, executions)| **executions > 0.0);
        let functions: BTreeSet<u32> = ran.map(|(block, _)| module.function_id(block.index)).collect();
        for (block, executions) in module.blocks.iter().zip(executions) {
            if functions.contains(&module.function_id(block.index)) {
                blocks.push(LabelledBlock {
                    program: program.to_owned(),
                    module: file.clone(),
                    function: shortened(module.function_name(block.index).unwrap_or_default()),
                    start: block.start.0,
                    features: module.features(block),
                    executions,
                });
            }
        }
    }
    blocks
}

/// Names of C++ and Rust can fill pages.
fn shortened(name: String) -> String {
    const LONGEST: usize = 60;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

/// Scales each source's counts to the truth's sum of executed instructions.
fn scale_to_truth(blocks: &mut [LabelledBlock]) {
    let executed: f64 = blocks.iter().map(LabelledBlock::weight).sum();
    let by = |blocks: &[LabelledBlock], source| -> f64 {
        blocks.iter().map(|block| block.count(source) * f64::from(block.features.instructions)).sum()
    };
    let factors = [Source::Ebs, Source::Lbr].map(|source| match by(blocks, source) {
        seen if seen > 0.0 => executed / seen,
        _ => 1.0,
    });
    for block in blocks {
        block.features.ebs_count *= factors[0];
        block.features.lbr_count *= factors[1];
    }
}

/// Keeps the blocks with the most instructions, in their order.
fn keep_largest(blocks: &mut Vec<LabelledBlock>, top: usize) {
    let most = |block: &LabelledBlock| {
        let counts = [block.executions, block.features.ebs_count, block.features.lbr_count];
        counts.into_iter().fold(0.0, f64::max) * f64::from(block.features.instructions)
    };
    if top == 0 || blocks.len() <= top {
        return;
    }
    let mut sizes: Vec<(usize, f64)> = blocks.iter().map(most).enumerate().collect();
    sizes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let kept: BTreeSet<usize> = sizes.into_iter().take(top).map(|(index, _)| index).collect();
    let mut index = 0;
    blocks.retain(|_| {
        index += 1;
        kept.contains(&(index - 1))
    });
}
