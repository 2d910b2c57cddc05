//! Cuts the instructions of hit functions into blocks.

use super::block::{Block, BlockStatistics, Evidence, Terminator};
use super::cell::Cell;
use super::trace::Traced;
use crate::address::Svma;
use instructions::Flow;

/// The outcome of [`cut`].
#[derive(Default)]
pub(super) struct Cut {
    pub blocks: Vec<Block>,
    /// Where blocks that overlap the next one go on, by block index.
    pub resumptions: Vec<(usize, Svma)>,
    pub statistics: BlockStatistics,
}

/// Blocks of all functions, which must be sorted by address.
pub(super) fn cut(hit: &mut [Traced]) -> Cut {
    let mut cut = Cut::default();
    for traced in hit {
        cut.statistics.functions += 1;
        cut.statistics.undecodable_bytes += traced.undecodable;
        cut.function(traced);
    }
    cut
}

impl Cut {
    fn function(&mut self, traced: &mut Traced) {
        // The block under construction ends at `expected`; `open` while more instructions may join it.
        let mut open = false;
        let mut expected = 0;
        for offset in 0..traced.cells.len() {
            let Some(&cell) = traced.cells.get(offset) else { break };
            if !cell.is_start() {
                self.statistics.observed_undecodable += u64::from(cell.is_observed());
                continue;
            }
            let address = Svma(traced.start.0 + offset as u64);
            if offset < expected {
                self.overlap(address, Svma(traced.start.0 + expected as u64), open);
                // Two ways lead to where the overlapped instruction ends.
                if let Some(end) = traced.cells.get_mut(expected) {
                    end.set(Cell::LEADER);
                }
                open = false;
            } else if open && offset > expected {
                self.end(Terminator::Undecodable);
                open = false;
            }
            if !open || cell.is_leader() {
                self.blocks.push(block(traced, address, cell));
            }
            expected = offset + cell.length();
            open = self.append(address, Svma(traced.start.0 + expected as u64), cell);
        }
        if open && expected < traced.cells.len() {
            self.end(Terminator::Undecodable);
        }
    }

    /// Adds an instruction to the last block; whether more may follow.
    fn append(&mut self, address: Svma, end: Svma, cell: Cell) -> bool {
        let Some(block) = self.blocks.last_mut() else { return false };
        block.last = address;
        block.end = end;
        block.instructions = block.instructions.saturating_add(1);
        let terminator = terminator(cell.flow());
        block.terminator = terminator.unwrap_or(Terminator::FallThrough);
        if terminator.is_none() && cell.is_source() {
            self.statistics.sources_without_branch += 1;
            block.terminator = Terminator::Observed;
        }
        block.terminator == Terminator::FallThrough
    }

    /// The next block starts inside the last one's last instruction.
    fn overlap(&mut self, next: Svma, resumption: Svma, open: bool) {
        self.statistics.overlapping_instructions += 1;
        self.resumptions.push((self.blocks.len() - 1, resumption));
        if let Some(block) = self.blocks.last_mut() {
            block.end = next;
        }
        if open {
            self.end(Terminator::Overlap);
        }
    }

    fn end(&mut self, terminator: Terminator) {
        if let Some(block) = self.blocks.last_mut() {
            block.terminator = terminator;
        }
    }
}

fn block(traced: &Traced, start: Svma, cell: Cell) -> Block {
    Block {
        start,
        end: start,
        last: start,
        instructions: 0,
        function: traced.id,
        terminator: Terminator::FallThrough,
        evidence: if cell.is_reached() { Evidence::Reached } else { Evidence::Swept },
    }
}

fn terminator(flow: Flow) -> Option<Terminator> {
    Some(match flow {
        Flow::Next => return None,
        Flow::Conditional => Terminator::Conditional,
        Flow::Jump => Terminator::Jump,
        Flow::IndirectJump => Terminator::IndirectJump,
        Flow::Call => Terminator::Call,
        Flow::IndirectCall => Terminator::IndirectCall,
        Flow::Return => Terminator::Return,
        Flow::SystemCall => Terminator::SystemCall,
        Flow::Trap => Terminator::Trap,
    })
}
