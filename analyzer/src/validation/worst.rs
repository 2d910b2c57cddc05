//! The blocks that contribute most to the error.

use crate::address::Svma;
use crate::counting::BlockCount;
use crate::validation::Estimate;
use crate::validation::code_counts::{BlockPlace, ModuleRows, Row};
use crate::validation::counts::{Column, Counts};
use crate::{Analysis, CountedBlock};

/// A piece of code that neither side cuts.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstBlock {
    /// Place of its module in [`Validation::modules`](crate::validation::Validation::modules).
    pub module: usize,
    /// Address of the first instruction.
    pub start: Svma,
    /// After the last instruction.
    pub end: Svma,
    /// How many instructions it has.
    pub instructions: u64,
    /// Name of its function.
    pub function: Option<String>,
    /// Share of all instructions of the truth that are compared.
    pub truth: f64,
    /// The same in the estimates: EBS, branch stacks, hybrid.
    pub estimates: [f64; 3],
    /// Which source the hybrid chose, where it saw the block.
    pub chosen: Option<&'static str>,
    /// EBS samples in the block of the analysis that holds it.
    pub ebs_samples: u64,
    /// Streams that cover it.
    pub lbr_streams: u64,
    /// What can be seen of the reason.
    pub reason: String,
}

impl WorstBlock {
    /// What it adds to the block error of the hybrid.
    pub fn contribution(&self) -> f64 {
        (self.truth - self.estimates[Estimate::Hybrid as usize]).abs()
    }
}

/// Instructions that follow each other and have the same counts.
pub(super) struct Piece {
    pub start: Svma,
    pub end: Svma,
    pub instructions: u64,
    /// Shares of all its instructions.
    pub shares: Counts,
    pub first: Row,
}

/// Cuts a module where a block of either side starts.
pub(super) fn pieces(module: &ModuleRows, totals: &Counts) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (&at, row) in &module.rows {
        let shares = row.counts.shares(totals);
        match pieces.last_mut() {
            Some(piece) if piece.end == at && !row.starts && piece.first.block == row.block => {
                piece.end = row.next;
                piece.instructions += 1;
                piece.shares.add(&shares);
            }
            _ => pieces.push(Piece { start: at, end: row.next, instructions: 1, shares, first: row.clone() }),
        }
    }
    pieces
}

/// The piece as a finished row.
pub(super) fn worst_block(module: usize, piece: &Piece, function: Option<String>, analysis: &Analysis) -> WorstBlock {
    let seen = piece.first.block.map(|place| block_at(analysis, place));
    let count = seen.map(|block| block.count);
    let truth = piece.shares.get(Column::Truth);
    let estimates = Estimate::ALL.map(|estimate| piece.shares.get(Column::Whole(estimate)));
    WorstBlock {
        module,
        start: piece.start,
        end: piece.end,
        instructions: piece.instructions,
        function,
        truth,
        estimates,
        chosen: count.map(|count| count.chosen.as_str()),
        ebs_samples: count.map_or(0, |count| count.ebs_samples),
        lbr_streams: count.map_or(0, |count| count.lbr_streams),
        reason: reason(truth, estimates[Estimate::Hybrid as usize], seen, bursts(analysis)),
    }
}

fn block_at(analysis: &Analysis, place: BlockPlace) -> &CountedBlock {
    &analysis.counted[place.module as usize].blocks[place.block as usize]
}

/// How many bursts the streams are of, if they are of any.
fn bursts(analysis: &Analysis) -> Option<u64> {
    let lbr = analysis.sources.lbr.as_ref().filter(|lbr| lbr.has_bursts)?;
    Some(lbr.events.iter().map(|&event| analysis.summary.records.bursts[event]).sum())
}

fn reason(truth: f64, estimate: f64, seen: Option<&CountedBlock>, bursts: Option<u64>) -> String {
    let Some(block) = seen else { return "never seen: no sample and no stream".into() };
    let BlockCount { ebs_samples, lbr_streams, chosen, bias, .. } = block.count;
    // Streams of one burst follow from each other.
    let (seen, independent, what) = match (chosen, bursts) {
        (model::Source::Ebs, _) => (ebs_samples, ebs_samples, "samples"),
        (model::Source::Lbr, None) => (lbr_streams, lbr_streams, "streams"),
        (model::Source::Lbr, Some(all)) => (lbr_streams, lbr_streams.min(all), "bursts at most"),
    };
    let chance = DEVIATIONS * estimate.max(truth) / (independent as f64).sqrt();
    let mut reasons = Vec::new();
    reasons.push(match chosen {
        model::Source::Ebs if seen == 0 => format!("no samples, {lbr_streams} streams"),
        model::Source::Lbr if seen == 0 => format!("in no branch stack, {ebs_samples} samples"),
        _ if truth == 0.0 => "did not run in the truth".into(),
        _ if (estimate - truth).abs() > chance => format!("beyond chance: {independent} {what}"),
        _ if independent < FEW => format!("only {independent} {what}"),
        _ => format!("within chance: {independent} {what}"),
    });
    if bias {
        reasons.push("biased branch".into());
    }
    if chosen == model::Source::Ebs && block.size.instructions <= SHORT {
        reasons.push(format!("short: {:.0} instructions", block.size.instructions));
    }
    if chosen == model::Source::Lbr && block.size.instructions > SHORT {
        reasons.push(format!("long: {:.0} instructions", block.size.instructions));
    }
    reasons.join(", ")
}

/// Standard deviations of a count of independent events within which a difference is no surprise.
const DEVIATIONS: f64 = 3.0;
/// Fewer independent events than this make an error of more than 10 %.
const FEW: u64 = 100;
/// The paper's rule calls blocks up to this many instructions short.
const SHORT: f64 = 18.0;
