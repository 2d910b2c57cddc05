//! The functions that are active along a burst or stack: the loops that each is in, and the path that it takes.
//!
//! ```text
//! call       a new activation; that of the caller waits, with its loops and its path
//! return     it ends, and all its loops and its path with it
//! jump to another function (a tail call, a stub of the procedure linkage table)   the same, and one of that function begins
//! back edge  a path ends at the header of a loop, and the next one begins
//! ```
//!
//! Where the walk begins, it is not known how the function came there: which of its loops had gone around how often, how its path began.
//! Where it ends, or cannot go on, it is not known how it would have gone on.

use std::ops::Range;

use crate::address::Avma;
use crate::paths::map::{CodeMap, LoopId};
use crate::walks::{BlockKey, FunctionKey, Target, Transfer};

/// What is told of activations.
pub trait Found {
    /// A loop went around so often, at least 1. `from_entry`: it was seen entering; `to_exit`: and leaving.
    fn trip(&mut self, id: LoopId, iterations: u32, from_entry: bool, to_exit: bool);
    /// These blocks of a module were executed one after the other, calls between them left out. `is_whole`: they are all between an entry or
    /// a back edge, and a back edge or an exit.
    fn path(&mut self, blocks: &[BlockKey], is_whole: bool);
}

/// Blocks of a path; a longer one is cut into several.
const MOST_BLOCKS: usize = 256;
/// Activations that are searched for what a return belongs to.
const SEARCHED: usize = 64;

/// The functions that are active, the current one last. Made once, and begun anew for each burst or stack.
#[derive(Debug, Default)]
pub struct Activations {
    stack: Vec<Activation>,
    /// The loops of all of them.
    loops: Vec<OpenLoop>,
    /// The blocks of the paths of all of them.
    blocks: Vec<BlockKey>,
}

#[derive(Clone, Debug)]
struct Activation {
    function: FunctionKey,
    entered: Entered,
    /// Its first loop and its first block.
    first: (usize, usize),
    /// What it executed last is known, or that it begins.
    is_known: bool,
    path: PathState,
}

/// The path that an activation takes.
#[derive(Clone, Copy, Debug, Default)]
struct PathState {
    /// Its begin was seen.
    from_begin: bool,
    /// It went backward: a block may come again.
    went_back: bool,
}

/// How an activation came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entered {
    Before,
    Call(Range<Avma>),
    Kernel,
}

#[derive(Clone, Copy, Debug)]
struct OpenLoop {
    id: LoopId,
    iterations: u32,
    from_entry: bool,
}

impl Activations {
    /// Begins anew in a function of which nothing is known; what was active is cut off.
    pub fn begin(&mut self, function: FunctionKey, found: &mut impl Found) {
        self.cut_off(found);
        self.enter(function, Entered::Before, false);
    }

    /// The function that is current.
    pub fn current(&self) -> Option<FunctionKey> {
        self.stack.last().map(|top| top.function)
    }

    /// All that is active is cut off.
    pub fn cut_off(&mut self, found: &mut impl Found) {
        while !self.stack.is_empty() {
            self.leave(false, found);
        }
    }

    /// Control goes on in a function without a branch to it.
    pub fn run_into(&mut self, function: FunctionKey, found: &mut impl Found) {
        if self.current() != Some(function) {
            self.replace(function, false, found);
        }
    }

    /// The current function is known to have executed a block, and nothing of what was before.
    pub fn come_from(&mut self, block: BlockKey, map: &CodeMap, found: &mut impl Found) {
        self.run(block, map, found);
        // The block itself was not seen.
        if let Some(top) = self.stack.last_mut() {
            self.blocks.truncate(top.first.1);
            top.path = PathState::default();
        }
    }

    /// A branch went to a block, and whether that was executed is not known.
    pub fn come_to(&mut self, block: BlockKey, map: &CodeMap, found: &mut impl Found) {
        self.run(block, map, found);
        self.blocks.pop();
    }

    /// The current function executes a block.
    pub fn run(&mut self, key: BlockKey, map: &CodeMap, found: &mut impl Found) {
        let Some(&Activation { first, is_known, .. }) = self.stack.last() else { return };
        let innermost = map.block(key).innermost;
        let repeats = self.move_to(key, innermost, first.0, is_known, map, found);
        let of_path = self.blocks.get(first.1..).unwrap_or_default();
        let goes_back = of_path.last().is_some_and(|last| key.index <= last.index);
        let Some(top) = self.stack.last_mut() else { return };
        let again = (top.path.went_back || goes_back) && of_path.contains(&key);
        if repeats || again || of_path.len() >= MOST_BLOCKS {
            if !of_path.is_empty() {
                found.path(of_path, top.path.from_begin);
            }
            self.blocks.truncate(first.1);
            top.path = PathState { from_begin: true, went_back: false };
        } else {
            top.path.went_back |= goes_back;
        }
        top.is_known = true;
        self.blocks.push(key);
    }

    /// Leaves the loops of the current function that a block is not in, enters those that it is in. Says whether it closes one.
    fn move_to(
        &mut self,
        key: BlockKey,
        innermost: Option<LoopId>,
        first: usize,
        is_known: bool,
        map: &CodeMap,
        found: &mut impl Found,
    ) -> bool {
        let depth = innermost.and_then(|id| map.get(id)).map_or(0, |one| one.depth);
        let is_around = |id: LoopId| map.around(innermost).any(|(around, _)| around == id);
        while self.loops.len() > first {
            let Some(&open) = self.loops.last().filter(|open| !is_around(open.id)) else { break };
            found.trip(open.id, open.iterations, open.from_entry, true);
            self.loops.pop();
        }
        let open = self.loops.len() - first;
        let header = innermost.and_then(|id| map.get(id)).is_some_and(|one| one.header == key);
        if open == depth {
            let Some(current) = self.loops.last_mut().filter(|_| header && open > 0) else { return false };
            current.iterations = current.iterations.saturating_add(1);
            return true;
        }
        let missing = map.around(innermost).take(depth.saturating_sub(open));
        let ids: Vec<LoopId> = missing.map(|(id, _)| id).collect();
        for id in ids.into_iter().rev() {
            let is_entered = is_known && header && Some(id) == innermost;
            self.loops.push(OpenLoop { id, iterations: 1, from_entry: is_entered });
        }
        false
    }

    /// Control goes elsewhere.
    pub fn go(&mut self, transfer: &Transfer, target: Target, found: &mut impl Found) {
        match transfer {
            Transfer::Jump { computed } => self.jump(*computed, target, found),
            Transfer::Call { returns_to } if returns_to.contains(&target.at) => {}
            Transfer::Call { returns_to } => {
                self.enter(target.function, Entered::Call(returns_to.clone()), target.is_entry);
            }
            Transfer::Return => self.go_back(target, found),
            Transfer::EnterKernel => self.enter(target.function, Entered::Kernel, false),
            Transfer::LeaveKernel => self.leave_kernel(target, found),
            Transfer::Unclear if self.called_from(target).is_some() => self.go_back(target, found),
            Transfer::Unclear => self.begin(target.function, found),
        }
    }

    fn jump(&mut self, computed: bool, target: Target, found: &mut impl Found) {
        if self.current() == Some(target.function) {
            return;
        }
        // `longjmp` goes on in the middle of a function that called it, in the end.
        let is_of = |one: &Activation| one.function == target.function;
        if computed
            && !target.is_entry
            && let Some(above) = self.stack.iter().rev().take(SEARCHED).position(is_of)
        {
            (0..above).for_each(|_| self.leave(true, found));
            return;
        }
        self.replace(target.function, target.is_entry, found);
    }

    fn go_back(&mut self, target: Target, found: &mut impl Found) {
        if let Some(keep) = self.called_from(target) {
            while self.stack.len() > keep {
                self.leave(true, found);
            }
            if self.current() != Some(target.function) {
                self.replace(target.function, false, found);
            }
            return;
        }
        let is_first = self.stack.len() <= 1;
        match target.is_entry {
            // Code returns to where it was told to go.
            true => self.replace(target.function, true, found),
            // To a caller that was not seen calling.
            false if is_first => {
                self.leave(true, found);
                self.enter(target.function, Entered::Before, false);
            }
            false => self.begin(target.function, found),
        }
    }

    /// How many activations are left when the nearest one returns that was called from right before there.
    fn called_from(&self, target: Target) -> Option<usize> {
        let belongs = |one: &Activation| matches!(&one.entered, Entered::Call(back) if back.contains(&target.at));
        let above = self.stack.iter().rev().take(SEARCHED).position(belongs)?;
        Some(self.stack.len() - 1 - above)
    }

    fn leave_kernel(&mut self, target: Target, found: &mut impl Found) {
        let entered = self.stack.iter().rev().take(SEARCHED).position(|one| one.entered == Entered::Kernel);
        let Some(above) = entered else { return self.begin(target.function, found) };
        (0..=above).for_each(|_| self.leave(true, found));
        if self.current() != Some(target.function) {
            // A signal handler, or another place.
            self.begin(target.function, found);
        }
    }

    fn replace(&mut self, function: FunctionKey, is_entry: bool, found: &mut impl Found) {
        let entered = self.stack.last().map_or(Entered::Before, |top| top.entered.clone());
        self.leave(true, found);
        self.enter(function, entered, is_entry);
    }

    fn enter(&mut self, function: FunctionKey, entered: Entered, is_entry: bool) {
        let first = (self.loops.len(), self.blocks.len());
        let path = PathState { from_begin: is_entry, went_back: false };
        self.stack.push(Activation { function, entered, first, is_known: is_entry, path });
    }

    /// The current function ends, or is cut off.
    fn leave(&mut self, to_exit: bool, found: &mut impl Found) {
        let Some(top) = self.stack.pop() else { return };
        for open in self.loops.drain(top.first.0..).rev() {
            found.trip(open.id, open.iterations, open.from_entry, to_exit);
        }
        let of_path = self.blocks.get(top.first.1..).unwrap_or_default();
        if !of_path.is_empty() {
            found.path(of_path, top.path.from_begin && to_exit);
        }
        self.blocks.truncate(top.first.1);
    }
}
