//! Which blocks a stream runs through, and whether it can.

use crate::address::{FileOffset, Svma};
use crate::code::{BlockMap, Image, Terminator, instructions};
use crate::counting::LocatedStream;

/// The code of a module as straight lines: what control runs through without a taken branch.
pub struct StraightLines<'a> {
    image: &'a Image,
    blocks: &'a BlockMap,
    breaks: &'a LineBreaks,
}

/// Where straight lines end, and which blocks they jump over.
#[derive(Debug)]
pub struct LineBreaks {
    /// By block: how many blocks before it the straight line cannot run through.
    breaks: Vec<u32>,
    /// Blocks whose last instruction the next block starts inside of, and where they go on.
    overlaps: Vec<(usize, usize)>,
}

/// Why a stream is none.
pub enum Broken {
    /// It runs through an instruction that always branches.
    ThroughBranch,
    /// Its ends are no instructions.
    Undecodable,
}

impl<'a> StraightLines<'a> {
    /// Of the blocks of an image.
    pub(super) fn new(image: &'a Image, blocks: &'a BlockMap, breaks: &'a LineBreaks) -> Self {
        StraightLines { image, blocks, breaks }
    }

    /// Calls `visit` with the blocks `[first, end)` that the stream executes to their last instruction.
    ///
    /// # Errors
    /// No execution of this code can have made the stream, and why.
    pub fn for_each_piece(&self, stream: &LocatedStream, visit: impl FnMut(usize, usize)) -> Result<(), Broken> {
        let PlacedStream { first, last, interrupted, .. } = self.place(stream)?;
        self.breaks.for_each_piece(first, if interrupted { last } else { last + 1 }, visit);
        Ok(())
    }

    /// The first and the last instruction that the stream executes; `None` where an interrupt came before it executed any.
    ///
    /// # Errors
    /// No execution of this code can have made the stream, and why.
    pub fn executed(&self, stream: &LocatedStream) -> Result<Option<(Svma, Svma)>, Broken> {
        let PlacedStream { last, start, end, interrupted, .. } = self.place(stream)?;
        if !interrupted {
            return Ok(Some((start, end)));
        }
        let blocks = self.blocks.blocks();
        let of_block = instructions(self.image, &blocks[last]).map(|instruction| Svma(instruction.ip()));
        let before = of_block.take_while(|at| *at < end).last();
        let before = before.or_else(|| last.checked_sub(1).map(|previous| blocks[previous].last));
        Ok(before.filter(|before| start <= *before).map(|before| (start, before)))
    }

    fn place(&self, stream: &LocatedStream) -> Result<PlacedStream, Broken> {
        let svma = |offset: FileOffset| self.image.svma_of_file_offset(offset.0).ok_or(Broken::Undecodable);
        let (start, end) = (svma(stream.start)?, svma(stream.end)?);
        let block_at = |at| self.blocks.block_at(at).ok_or(Broken::Undecodable);
        let (first, last) = (block_at(start)?, block_at(end)?);
        if !self.breaks.is_straight(first, last) {
            return Err(Broken::ThroughBranch);
        }
        let block = &self.blocks.blocks()[last];
        let made_by_program = matches!(block.terminator, Terminator::SystemCall | Terminator::Trap);
        let interrupted = stream.to_kernel && !(made_by_program && block.last == end);
        if !interrupted && block.last != end {
            return Err(Broken::Undecodable);
        }
        Ok(PlacedStream { first, last, start, end, interrupted })
    }
}

impl LineBreaks {
    /// Of the blocks of an image.
    pub fn of(blocks: &BlockMap) -> Self {
        let ends = blocks.blocks().iter().enumerate().filter(|(_, block)| block.terminator == Terminator::Overlap);
        let overlaps = ends.filter_map(|(index, _)| Some((index, blocks.following(index)?))).collect();
        LineBreaks { breaks: count_breaks(blocks), overlaps }
    }

    /// Whether a straight line can run from the one block to the other.
    pub fn is_straight(&self, first: usize, last: usize) -> bool {
        self.breaks[first] == self.breaks[last]
    }

    /// Calls `visit` with the pieces `[first, end)` of a straight line through the blocks `[first, end)`: it jumps over blocks that
    /// overlap its instructions.
    pub fn for_each_piece(&self, first: usize, end: usize, mut visit: impl FnMut(usize, usize)) {
        let mut first = first;
        let next_overlap = self.overlaps.partition_point(|(index, _)| *index < first);
        for &(index, goes_on) in &self.overlaps[next_overlap..] {
            if index + 1 >= end {
                break;
            }
            if index >= first {
                visit(first, index + 1);
                first = goes_on;
            }
        }
        visit(first, end);
    }
}

/// A stream in the code.
struct PlacedStream {
    /// Index of the first block.
    first: usize,
    /// Index of the last block.
    last: usize,
    /// Address of its first instruction.
    start: Svma,
    /// Address of its last instruction.
    end: Svma,
    /// An interrupt or fault came before the last instruction was executed.
    interrupted: bool,
}

/// `breaks[i]`: how many blocks before block i the straight line cannot run through.
fn count_breaks(blocks: &BlockMap) -> Vec<u32> {
    let blocks = blocks.blocks();
    let mut breaks = Vec::with_capacity(blocks.len() + 1);
    let mut sum = 0;
    for (index, block) in blocks.iter().enumerate() {
        breaks.push(sum);
        let goes_on = blocks.get(index + 1).is_some_and(|next| next.start == block.end);
        if !goes_on || !block.terminator.can_fall_through() {
            sum += 1;
        }
    }
    breaks
}
