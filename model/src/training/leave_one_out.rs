//! The search for a tree, and its test on programs it has not seen.
//!
//! Parameters are chosen by leave-one-out errors. An error that something was chosen by is too good to judge it by, so the test of each
//! program chooses parameters anew, by the other programs alone.

use std::collections::BTreeMap;

use crate::training::LabelledBlock;
use crate::training::grow::{Ground, Grower};
use crate::training::measure::error;
use crate::{Chooser, Errors, Evidence, LeftOut, MOST_DEPTH, MOST_NODES, Model, Parameters, PublishedRule, Source};
use crate::{SourcePair, Tree, Weighting};

/// The parameters of trees that are tried, each with each.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The ways to weigh blocks.
    pub weightings: Vec<Weighting>,
    /// The largest numbers of leaves to try.
    pub leaves: Vec<usize>,
    /// The largest numbers of splits from the root to a leaf to try.
    pub depths: Vec<usize>,
    /// The least part of the weight of all blocks in a leaf, 0.001 to 0.5.
    pub min_weight: f64,
}

impl Default for Search {
    /// Trees that people can read.
    fn default() -> Self {
        Search {
            weightings: Weighting::ALL.to_vec(),
            leaves: (1..=8).collect(),
            depths: vec![1, 2, 4],
            min_weight: 0.01,
        }
    }
}

/// A model, and what was chosen for the test of each program.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The model that was made of all programs.
    pub model: Model,
    /// One per program, in the order of the model's evidence.
    pub tested: Vec<Tested>,
}

/// The tree that was tested on a program, made from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    /// The parameters that were chosen for it.
    pub parameters: Parameters,
    /// The tree that was made with them.
    pub tree: Tree,
}

/// Why no model can be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainingError {
    /// Nothing is left to choose parameters by when one program is left out for the test and one for the choice.
    #[error("the blocks are of {0} programs; leaving one out needs at least {LEAST_PROGRAMS}")]
    Programs(usize),
    /// Its errors would be parts of nothing.
    #[error("no block of {0} was executed")]
    NotExecuted(String),
    /// A limit that no tree can keep, or nothing to try.
    #[error("{0}")]
    Search(String),
}

const LEAST_PROGRAMS: usize = 3;

/// Sums of single precision, which `linfa-trees` works with, tell no smaller leaf from none.
const LEAST_WEIGHT: f64 = 0.001;

struct Program<'a> {
    name: &'a str,
    rows: Vec<usize>,
    blocks: Vec<&'a LabelledBlock>,
}

/// Searches, tests and trains. `progress` is told how many of all steps are done.
///
/// # Errors
/// Too few programs, programs without executions, limits out of range.
pub fn train(
    blocks: &[LabelledBlock],
    pair: SourcePair,
    search: &Search,
    progress: &dyn Fn(usize, usize),
) -> Result<Training, TrainingError> {
    let candidates = search.candidates()?;
    let programs = by_program(blocks)?;
    let mut executed = vec![0.0; blocks.len()];
    for program in &programs {
        let instructions: f64 = program.blocks.iter().map(|block| block.weight()).sum();
        program.rows.iter().for_each(|&row| executed[row] = instructions);
    }
    let ground = Ground::new(blocks, executed);
    let steps = programs.len() * (programs.len() + 1) / 2 + 1;
    let done = std::cell::Cell::new(0);
    let trees_without = |left_out: &[usize]| {
        let kept = programs.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
        let mut rows: Vec<usize> = kept.flat_map(|(_, program)| program.rows.iter().copied()).collect();
        rows.sort_unstable();
        done.set(done.get() + 1);
        progress(done.get(), steps);
        grow_all(&ground, &rows, &candidates)
    };

    // errors[i][j][c]: of candidate c on program i, trained without i and j; i = j: without i.
    let mut errors = vec![vec![Vec::new(); programs.len()]; programs.len()];
    let mut without_one = Vec::new();
    for i in 0..programs.len() {
        for j in 0..i {
            let trees = trees_without(&[i, j]);
            errors[i][j] = block_errors(&trees, &programs[i]);
            errors[j][i] = block_errors(&trees, &programs[j]);
        }
        let trees = trees_without(&[i]);
        errors[i][i] = block_errors(&trees, &programs[i]);
        without_one.push(trees);
    }
    let test = |(i, program): (usize, &Program<'_>)| {
        let others = (0..programs.len()).filter(|&other| other != i);
        let chosen = best(candidates.len(), &others.map(|other| &errors[other][i]).collect::<Vec<_>>());
        let tree = without_one[i][chosen].clone();
        let left_out = LeftOut {
            program: program.name.to_owned(),
            blocks: program.rows.len() as u64,
            errors: errors_of(program, &tree),
        };
        (left_out, Tested { parameters: candidates[chosen], tree })
    };
    let (leave_one_out, tested) = programs.iter().enumerate().map(test).unzip();
    let own: Vec<&Vec<f64>> = (0..programs.len()).map(|i| &errors[i][i]).collect();
    let chosen = best(candidates.len(), &own);
    let tree = trees_without(&[]).swap_remove(chosen);
    let evidence = Evidence { blocks: blocks.len() as u64, parameters: candidates[chosen], leave_one_out };
    Ok(Training { model: Model { pair, tree, evidence }, tested })
}

impl Search {
    /// All combinations, simple ones first.
    fn candidates(&self) -> Result<Vec<Parameters>, TrainingError> {
        let check = |holds: bool, rule: String| if holds { Ok(()) } else { Err(TrainingError::Search(rule)) };
        let most_leaves = MOST_NODES / 2;
        let weights = LEAST_WEIGHT..=0.5;
        check(
            weights.contains(&self.min_weight),
            format!("the least weight of a leaf must be between {LEAST_WEIGHT} and 0.5"),
        )?;
        check(
            self.leaves.iter().all(|leaves| (1..=most_leaves).contains(leaves)),
            format!("a tree has 1 to {most_leaves} leaves"),
        )?;
        check(
            self.depths.iter().all(|depth| (1..=MOST_DEPTH).contains(depth)),
            format!("a tree has a depth of 1 to {MOST_DEPTH}"),
        )?;
        let mut candidates = Vec::new();
        for &leaves in &self.leaves {
            for &depth in &self.depths {
                for &weighting in &self.weightings {
                    candidates.push(Parameters { weighting, leaves, depth, min_weight: self.min_weight });
                }
            }
        }
        check(!candidates.is_empty(), "there is nothing to try".into())?;
        Ok(candidates)
    }
}

fn by_program(blocks: &[LabelledBlock]) -> Result<Vec<Program<'_>>, TrainingError> {
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, block) in blocks.iter().enumerate() {
        rows.entry(&block.program).or_default().push(row);
    }
    if rows.len() < LEAST_PROGRAMS {
        return Err(TrainingError::Programs(rows.len()));
    }
    let program = |(name, rows): (_, Vec<usize>)| {
        let blocks: Vec<&LabelledBlock> = rows.iter().map(|&row| &blocks[row]).collect();
        let executed = blocks.iter().any(|block| block.weight() > 0.0);
        let program = Program { name, rows, blocks };
        if executed { Ok(program) } else { Err(TrainingError::NotExecuted(name.to_owned())) }
    };
    rows.into_iter().map(program).collect()
}

/// One tree per candidate.
fn grow_all(ground: &Ground<'_>, rows: &[usize], candidates: &[Parameters]) -> Vec<Tree> {
    let mut growers: BTreeMap<&str, Grower<'_>> = BTreeMap::new();
    let mut grow = |parameters: &Parameters| {
        let Parameters { weighting, leaves, depth, min_weight } = *parameters;
        let grower = growers
            .entry(weighting.as_str())
            .or_insert_with(|| Grower::new(ground, rows.to_vec(), weighting, min_weight));
        grower.grow(leaves, depth)
    };
    candidates.iter().map(&mut grow).collect()
}

fn block_errors(trees: &[Tree], program: &Program<'_>) -> Vec<f64> {
    trees.iter().map(|tree| error(&program.blocks, |block| tree.choose(&block.features)).blocks).collect()
}

/// The candidate whose mean error is the lowest, the first of several.
fn best(candidates: usize, errors: &[&Vec<f64>]) -> usize {
    let mean = |candidate: usize| errors.iter().map(|errors| errors[candidate]).sum::<f64>();
    (0..candidates).min_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap_or(0)
}

fn errors_of(program: &Program<'_>, tree: &Tree) -> Errors {
    let blocks = &program.blocks;
    Errors {
        ebs: error(blocks, |_| Source::Ebs),
        lbr: error(blocks, |_| Source::Lbr),
        published: error(blocks, |block| PublishedRule.choose(&block.features)),
        tree: error(blocks, |block| tree.choose(&block.features)),
        perfect: error(blocks, LabelledBlock::label),
    }
}
