//! Which bytes of the hit functions are instructions.
//!
//! Two kinds of evidence, the better one first:
//! 1. *Reached*: from the function's entry and every address that the recording saw, along fall-throughs and direct jumps.
//!    These are instructions as surely as the recording belongs to the file. Where two reached
//!    instructions overlap (a jump over a `lock` prefix), both are kept.
//! 2. *Swept*: what lies between reached instructions (cases of a `switch` nobody went to, padding, tables) is decoded
//!    in a line. A swept instruction never overlaps another one.
//!
//! Code that nothing describes ([`Origin::Gap`]), and of which only a part is there ([`Origin::Part`]), is not swept: there is no place to start
//! from but observed addresses.

use std::collections::BTreeSet;
use std::collections::HashMap;

use iced_x86::{Instruction, OpKind};
use instructions::Flow;

use super::cell::Cell;
use super::decode::CodeDecoder;
use super::{FunctionId, FunctionTable, Image, Observed, Origin};
use crate::address::Svma;

/// A function that the recording hit, byte by byte.
pub(super) struct Traced {
    pub id: FunctionId,
    pub start: Svma,
    pub cells: Vec<Cell>,
    /// Bytes that were to be instructions and are none.
    pub undecodable: u64,
    swept: bool,
}

impl Traced {
    fn offset_of(&self, address: Svma) -> Option<usize> {
        let distance = usize::try_from(address.0.checked_sub(self.start.0)?).ok()?;
        (distance < self.cells.len()).then_some(distance)
    }

    /// What is known of a byte; of one outside of the function nothing.
    fn cell(&self, offset: usize) -> Cell {
        self.cells.get(offset).copied().unwrap_or_default()
    }

    fn decoder<'image>(&self, image: &'image Image) -> CodeDecoder<'image> {
        CodeDecoder::new(image, self.start, self.cells.len() as u64)
    }
}

/// The functions that hold an observed address, by address, with every instruction found in them.
pub(super) fn trace(image: &Image, functions: &FunctionTable, observed: &Observed) -> Trace {
    let mut tracer =
        Tracer { image, functions, hit: Vec::new(), index: HashMap::new(), queue: Vec::new(), missed: BTreeSet::new() };
    let mut outside = 0;
    for address in observed.iter() {
        match functions.at(address) {
            Some(id) => {
                let index = tracer.hit(id);
                if let Some(offset) = tracer.function(index).offset_of(address) {
                    tracer.set(index, offset, Cell::OBSERVED);
                    tracer.queue.push((index, offset));
                }
            }
            None => outside += 1,
        }
    }
    for &target in &observed.targets {
        tracer.mark(target, Cell::LEADER);
    }
    for &source in &observed.sources {
        tracer.mark(source, Cell::SOURCE);
    }
    tracer.follow_all();
    for index in 0..tracer.hit.len() {
        tracer.sweep(index);
    }
    let mut hit = tracer.hit;
    hit.sort_unstable_by_key(|traced| traced.id);
    Trace { hit, outside }
}

/// The outcome of [`trace`].
pub(super) struct Trace {
    /// The functions that were hit, by address.
    pub hit: Vec<Traced>,
    /// Observed addresses outside of the image's code.
    pub outside: u64,
}

struct Tracer<'a> {
    image: &'a Image,
    functions: &'a FunctionTable,
    hit: Vec<Traced>,
    /// Where a function is in `hit`.
    index: HashMap<FunctionId, usize>,
    /// Where to follow from: index in `hit`, offset in the function.
    queue: Vec<(usize, usize)>,
    /// Targets of direct jumps in functions that are not hit (yet).
    missed: BTreeSet<Svma>,
}

impl Tracer<'_> {
    /// The index of a function among the hit ones, made hit if it is not.
    fn hit(&mut self, id: FunctionId) -> usize {
        let next = self.hit.len();
        *self.index.entry(id).or_insert_with(|| {
            let function = self.functions.get(id);
            let size = usize::try_from(function.end.0 - function.start.0).unwrap_or(0);
            let swept = !matches!(function.origin, Origin::Gap | Origin::Part);
            let mut cells = vec![Cell::default(); size];
            if let (Some(entry), true) = (cells.first_mut(), swept) {
                entry.set(Cell::LEADER);
                self.queue.push((next, 0));
            }
            self.hit.push(Traced { id, start: function.start, cells, undecodable: 0, swept });
            next
        })
    }

    #[expect(clippy::indexing_slicing, reason = "only `hit` makes these indices")]
    fn function(&self, index: usize) -> &Traced {
        &self.hit[index]
    }

    #[expect(clippy::indexing_slicing, reason = "only `hit` makes these indices")]
    fn function_mut(&mut self, index: usize) -> &mut Traced {
        &mut self.hit[index]
    }

    /// Sets a flag of a byte of a hit function.
    fn set(&mut self, index: usize, offset: usize, flag: u16) {
        if let Some(cell) = self.function_mut(index).cells.get_mut(offset) {
            cell.set(flag);
        }
    }

    /// Makes an instruction start at a byte of a hit function.
    fn set_instruction(&mut self, index: usize, offset: usize, length: usize, flow: Flow, evidence: u16) {
        if let Some(cell) = self.function_mut(index).cells.get_mut(offset) {
            cell.set_instruction(length, flow, evidence);
        }
    }

    /// Sets a flag of the byte at an address in any hit function, and says which byte that is.
    fn mark(&mut self, address: Svma, flag: u16) -> Option<(usize, usize)> {
        let index = *self.index.get(&self.functions.at(address)?)?;
        let offset = self.function(index).offset_of(address)?;
        self.set(index, offset, flag);
        Some((index, offset))
    }

    fn follow_all(&mut self) {
        while let Some((index, offset)) = self.queue.pop() {
            self.follow(index, offset);
        }
    }

    /// Marks the instructions that run from one on, up to a transfer that does not come back, or to known ones.
    fn follow(&mut self, index: usize, mut offset: usize) {
        if self.function(index).cell(offset).is_start() {
            return;
        }
        let mut code = self.function(index).decoder(self.image);
        loop {
            if self.function(index).cell(offset).is_start() {
                return;
            }
            let Some(instruction) = code.at(offset) else { return };
            let flow = Flow::of(instruction);
            self.set_instruction(index, offset, instruction.len(), flow, Cell::REACHED);
            offset += instruction.len();
            if let Some(target) = direct_target(instruction) {
                self.branch(index, target, matches!(flow, Flow::Conditional | Flow::Jump));
            }
            if offset >= self.function(index).cells.len() {
                if matches!(flow, Flow::Next | Flow::Conditional) {
                    self.run_into_next(index);
                }
                return;
            }
            if matches!(flow, Flow::Jump | Flow::IndirectJump | Flow::Return | Flow::Trap) {
                return;
            }
        }
    }

    fn branch(&mut self, index: usize, target: Svma, follow: bool) {
        let place = match self.function(index).offset_of(target) {
            Some(offset) => {
                self.set(index, offset, Cell::LEADER);
                Some((index, offset))
            }
            None => self.mark(target, Cell::LEADER),
        };
        match place {
            Some(place) if follow => self.queue.push(place),
            None if follow => drop(self.missed.insert(target)),
            _ => {}
        }
    }

    /// A function that ends without a transfer runs into the one after it (assembly code does), which is hit then too.
    /// One that ends with a call does not: what it calls never returns.
    fn run_into_next(&mut self, index: usize) {
        let end = self.functions.get(self.function(index).id).end;
        let Some(id) = self.functions.at(end) else { return };
        let next = self.hit(id);
        self.queue.push((next, 0));
        // Jumps into it that were seen before it was hit.
        let range = self.functions.get(id).start..self.functions.get(id).end;
        let jumps: Vec<_> = self.missed.range(range).copied().collect();
        for target in jumps {
            self.missed.remove(&target);
            let place = self.mark(target, Cell::LEADER);
            self.queue.extend(place);
        }
    }

    /// Decodes what is between the reached instructions of a function.
    fn sweep(&mut self, index: usize) {
        if !self.function(index).swept {
            return;
        }
        let mut code = self.function(index).decoder(self.image);
        let size = self.function(index).cells.len();
        let mut covered = 0;
        let mut position = 0;
        while position < size {
            let traced = self.function(index);
            if traced.cell(position).is_start() {
                covered = covered.max(position + traced.cell(position).length());
            }
            if position < covered {
                position += 1;
                continue;
            }
            let hole = traced.cells.iter().skip(position).take_while(|cell| !cell.is_start());
            let end = position + hole.count();
            self.sweep_hole(index, &mut code, position, end);
            position = end;
        }
    }

    fn sweep_hole(&mut self, index: usize, code: &mut CodeDecoder<'_>, mut position: usize, end: usize) {
        while position < end {
            let fits = |instruction: &&Instruction| position + instruction.len() <= end;
            let Some(instruction) = code.at(position).filter(fits) else {
                let traced = self.function_mut(index);
                let rest = traced.cells.iter().take(end).skip(position + 1);
                let skipped = 1 + rest.take_while(|cell| !cell.is_leader()).count();
                traced.undecodable += skipped as u64;
                position += skipped;
                continue;
            };
            let flow = Flow::of(instruction);
            self.set_instruction(index, position, instruction.len(), flow, 0);
            position += instruction.len();
            if let Some(target) = direct_target(instruction) {
                self.mark(target, Cell::LEADER);
            }
        }
    }
}

/// The target of a near branch or call that states it.
fn direct_target(instruction: &Instruction) -> Option<Svma> {
    let near = matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    near.then(|| Svma(instruction.near_branch_target()))
}
