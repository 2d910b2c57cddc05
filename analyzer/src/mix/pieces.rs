//! What was executed, in pieces that threads share.

use crate::mix::branches::Branches;
use crate::{Analysis, CountedBlock, CountedModule, GroupCount};

/// What was executed of a module.
pub(super) struct Executed<'a> {
    /// Its index in the analysis.
    pub at: usize,
    pub module: &'a CountedModule,
    pub branches: Branches<'a>,
    /// Executions of each block by group, in order of blocks, so that every block is decoded once.
    counts: Vec<GroupCount<'a>>,
}

impl<'a> Executed<'a> {
    /// Of all modules. `taken`: blocks whose branches were taken, too; `time`: and those with samples.
    pub fn all(analysis: &'a Analysis, taken: bool, time: bool) -> Vec<Self> {
        let of = |(at, module): (usize, &'a CountedModule)| {
            let branches = if taken { Branches::of(analysis, module) } else { Branches::default() };
            let was_taken = |block: &CountedBlock| branches.within(block.start..block.end).count > 0.0;
            let mut counts: Vec<GroupCount<'_>> = module.group_counts(&analysis.scale).collect();
            counts.retain(|count| count.count > 0.0 || time && count.ebs.0 > 0 || was_taken(count.block));
            counts.sort_unstable_by_key(|count| (count.block.index, count.group));
            Executed { at, module, branches, counts }
        };
        analysis.counted.iter().enumerate().map(of).collect()
    }
}

/// Counts of some modules, those of each beside each other.
pub(super) type Piece<'a> = Vec<(&'a Executed<'a>, &'a [GroupCount<'a>])>;

/// The counts of all modules, in pieces that threads share: of so many counts each, or some more, as those of a block stay together. Where they
/// end does not depend on the threads, so sums of floating-point numbers do not, either.
pub(super) fn pieces<'a>(executed: &'a [Executed<'a>], counts: usize) -> Vec<Piece<'a>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut room = 0;
    for of in executed {
        let mut rest = &of.counts[..];
        while !rest.is_empty() {
            if room == 0 {
                pieces.push(Vec::new());
                room = counts;
            }
            let last_block = rest[room.min(rest.len()) - 1].block.index;
            let (taken, after) = rest.split_at(rest.partition_point(|count| count.block.index <= last_block));
            if let Some(piece) = pieces.last_mut() {
                piece.push((of, taken));
            }
            room = room.saturating_sub(taken.len());
            rest = after;
        }
    }
    pieces
}
