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
    /// These blocks of a module were executed one after the other, calls between them left out.
    fn path(&mut self, blocks: &[BlockKey], extent: Extent);
}

/// What of a path was seen: it is all that is between an entry or a back edge, and a back edge or an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// One of the pieces that a long path is told in.
    Piece,
    /// Its begin or its end was not seen.
    CutOff,
}

/// Blocks of a path; a longer one is cut into several.
const MOST_BLOCKS: usize = 256;
/// Activations that are searched for what a return belongs to.
const SEARCHED: usize = 64;
/// Loops that were left last and are remembered, in case control comes back into the middle of one.
const MOST_LEFT: usize = 16;

/// The functions that are active, the current one last. Made once, and begun anew for each burst or stack.
#[derive(Debug, Default)]
pub struct Activations {
    stack: Vec<Activation>,
    /// The loops of all of them.
    loops: Vec<OpenLoop>,
    /// Loops that all of them left, and that are not told yet.
    left: Vec<OpenLoop>,
    /// The blocks of the paths of all of them.
    blocks: Vec<BlockKey>,
}

#[derive(Clone, Debug)]
struct Activation {
    function: FunctionKey,
    entered: Entered,
    first: First,
    /// What it executed last is known, or that it begins.
    is_known: bool,
    path: PathState,
}

/// The first of what an activation has of what is kept for all.
#[derive(Clone, Copy, Debug)]
struct First {
    open: usize,
    left: usize,
    block: usize,
}

/// The path that an activation takes.
#[derive(Clone, Copy, Debug, Default)]
struct PathState {
    /// Its begin was seen.
    from_begin: bool,
    /// It went backward: a block may come again.
    went_back: bool,
    /// There are blocks before these that were told already.
    is_rest: bool,
}

/// How an activation came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entered {
    Before,
    Call(Range<Avma>),
    Kernel,
    /// The kernel called a signal handler.
    Signal,
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
            self.blocks.truncate(top.first.block);
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
        let repeats = self.move_to(key, innermost, first, is_known, map, found);
        let of_path = self.blocks.get(first.block..).unwrap_or_default();
        let goes_back = of_path.last().is_some_and(|last| key.index <= last.index);
        let Some(top) = self.stack.last_mut() else { return };
        let again = (top.path.went_back || goes_back) && of_path.contains(&key);
        let ends = repeats || again;
        if ends || of_path.len() >= MOST_BLOCKS {
            if !of_path.is_empty() {
                found.path(of_path, top.path.extent(ends, !ends));
            }
            self.blocks.truncate(first.block);
            top.path = PathState { from_begin: ends || top.path.from_begin, went_back: false, is_rest: !ends };
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
        first: First,
        is_known: bool,
        map: &CodeMap,
        found: &mut impl Found,
    ) -> bool {
        let depth = innermost.and_then(|id| map.get(id)).map_or(0, |one| one.depth);
        let is_around = |id: LoopId| map.around(innermost).any(|(around, _)| around == id);
        while self.loops.len() > first.open {
            let Some(open) = self.loops.pop_if(|open| !is_around(open.id)) else { break };
            if self.left.len() >= first.left + MOST_LEFT {
                self.left.remove(first.left).end(found);
            }
            self.left.push(open);
        }
        let open = self.loops.len() - first.open;
        let header = innermost.and_then(|id| map.get(id)).is_some_and(|one| one.header == key);
        if open == depth {
            let Some(current) = self.loops.last_mut().filter(|_| header && open > 0) else { return false };
            current.iterations = current.iterations.saturating_add(1);
            return true;
        }
        let missing = map.around(innermost).take(depth.saturating_sub(open));
        let ids: Vec<LoopId> = missing.map(|(id, _)| id).collect();
        for id in ids.into_iter().rev() {
            let is_at_header = header && Some(id) == innermost;
            let is_entered = is_known && is_at_header;
            if let Some(at) =
                (first.left..self.left.len()).find(|at| self.left.get(*at).is_some_and(|left| left.id == id))
            {
                let mut left = self.left.remove(at);
                // Into the middle of a loop comes what was not seen in the code, as `longjmp`: whether the loop had ended is not known.
                left.from_entry &= is_at_header;
                left.end(found);
            }
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
        if computed && !target.is_entry && self.unwind_to(target.function, found) {
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
        // Code returns to where it was told to go: to functions, from a handler to what restores the registers.
        if target.is_entry || self.has_entered(&Entered::Signal) {
            self.replace(target.function, target.is_entry, found);
        } else if self.stack.len() <= 1 {
            // To a caller that was not seen calling.
            self.leave(true, found);
            self.enter(target.function, Entered::Before, false);
        } else if !self.unwind_to(target.function, found) {
            self.begin(target.function, found); // Or else an exception is caught.
        }
    }

    /// Ends all activations above the nearest one of a function; says whether there is one.
    fn unwind_to(&mut self, function: FunctionKey, found: &mut impl Found) -> bool {
        let above = self.stack.iter().rev().take(SEARCHED).position(|one| one.function == function);
        (0..above.unwrap_or(0)).for_each(|_| self.leave(true, found));
        above.is_some()
    }

    /// Whether the current activation came to be that way.
    fn has_entered(&self, how: &Entered) -> bool {
        self.stack.last().is_some_and(|top| top.entered == *how)
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
        while self.current() != Some(target.function) && self.has_entered(&Entered::Signal) {
            self.leave(true, found);
        }
        if self.current() == Some(target.function) {
            return;
        }
        if target.is_entry {
            self.enter(target.function, Entered::Signal, true);
        } else if !self.unwind_to(target.function, found) {
            self.begin(target.function, found);
        }
    }

    fn replace(&mut self, function: FunctionKey, is_entry: bool, found: &mut impl Found) {
        let entered = self.stack.last().map_or(Entered::Before, |top| top.entered.clone());
        self.leave(true, found);
        self.enter(function, entered, is_entry);
    }

    fn enter(&mut self, function: FunctionKey, entered: Entered, is_entry: bool) {
        let first = First { open: self.loops.len(), left: self.left.len(), block: self.blocks.len() };
        let path = PathState { from_begin: is_entry, ..PathState::default() };
        self.stack.push(Activation { function, entered, first, is_known: is_entry, path });
    }

    /// The current function ends, or is cut off.
    fn leave(&mut self, to_exit: bool, found: &mut impl Found) {
        let Some(top) = self.stack.pop() else { return };
        self.left.drain(top.first.left..).for_each(|left| left.end(found));
        for open in self.loops.drain(top.first.open..).rev() {
            found.trip(open.id, open.iterations, open.from_entry, to_exit);
        }
        let of_path = self.blocks.get(top.first.block..).unwrap_or_default();
        if !of_path.is_empty() {
            found.path(of_path, top.path.extent(to_exit, false));
        }
        self.blocks.truncate(top.first.block);
    }
}

impl OpenLoop {
    fn end(self, found: &mut impl Found) {
        found.trip(self.id, self.iterations, self.from_entry, true);
    }
}

impl PathState {
    /// Of blocks that end where the path does, or are followed by more of it.
    fn extent(self, to_end: bool, goes_on: bool) -> Extent {
        match self {
            PathState { from_begin: true, is_rest, .. } if goes_on || (is_rest && to_end) => Extent::Piece,
            PathState { from_begin: true, .. } if to_end => Extent::Whole,
            _ => Extent::CutOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ModuleId;

    const MAIN: u32 = 0;
    const F: u32 = 1;
    const G: u32 = 2;
    const KERNEL: u32 = 3;

    /// Trips as module, iterations, seen from entry and to exit; paths as blocks and extent.
    #[derive(Default)]
    struct Told {
        trips: Vec<(u32, u32, bool, bool)>,
        paths: Vec<(Vec<u32>, Extent)>,
    }

    impl Found for Told {
        fn trip(&mut self, id: LoopId, iterations: u32, from_entry: bool, to_exit: bool) {
            self.trips.push((id.0, iterations, from_entry, to_exit));
        }

        fn path(&mut self, blocks: &[BlockKey], extent: Extent) {
            self.paths.push((blocks.iter().map(|block| block.index).collect(), extent));
        }
    }

    enum Does {
        Runs(u32),
        Goes(Transfer, u32, u64),
    }
    use Does::{Goes, Runs};

    fn at(function: u32, offset: u64) -> Target {
        let at = Avma(u64::from(function) * 0x100 + offset);
        Target { function: FunctionKey::unread(ModuleId(function)), at, is_entry: offset == 0 }
    }

    fn call(function: u32, back: u64) -> Transfer {
        let back = at(function, back).at;
        Transfer::Call { returns_to: back..Avma(back.0 + 1) }
    }

    const JUMP: Transfer = Transfer::Jump { computed: false };
    const COMPUTED: Transfer = Transfer::Jump { computed: true };

    /// Walks from `main` on: blocks are of the function that is current.
    fn walk(steps: Vec<Does>) -> Told {
        let (mut activations, mut told, map) = (Activations::default(), Told::default(), CodeMap::of_test(4, 600));
        let mut current = MAIN;
        activations.begin(FunctionKey::unread(ModuleId(MAIN)), &mut told);
        for step in steps {
            match step {
                Runs(index) => activations.run(BlockKey { module: ModuleId(current), index }, &map, &mut told),
                Goes(transfer, function, offset) => {
                    activations.go(&transfer, at(function, offset), &mut told);
                    current = function;
                }
            }
        }
        activations.cut_off(&mut told);
        told
    }

    /// A loop of `main` that is in its second iteration.
    fn in_loop() -> Vec<Does> {
        vec![Runs(0), Runs(1), Runs(2), Runs(1)]
    }

    fn trips(more: Vec<Does>) -> Vec<(u32, u32, bool, bool)> {
        walk(in_loop().into_iter().chain(more).collect()).trips
    }

    #[test]
    fn trips_go_on_around_calls_and_recursion() {
        let again =
            vec![Goes(call(MAIN, 0x10), MAIN, 0), Runs(0), Runs(1), Runs(4), Goes(Transfer::Return, MAIN, 0x10)];
        let told = trips(again.into_iter().chain([Runs(3), Runs(1), Runs(4)]).collect());
        assert_eq!(told, [(MAIN, 1, true, true), (MAIN, 3, true, true)]);
    }

    #[test]
    fn a_loop_has_two_exits() {
        for exit in [4, 5] {
            assert_eq!(trips(vec![Runs(exit)]), [(MAIN, 2, true, true)]);
        }
        assert_eq!(trips(vec![]), [(MAIN, 2, true, false)]);
    }

    #[test]
    fn a_tail_call_ends_loops() {
        assert_eq!(trips(vec![Goes(JUMP, F, 0), Runs(0)]), [(MAIN, 2, true, true)]);
    }

    /// They end what is above the function, and the loop in it goes on.
    #[test]
    fn exceptions_and_longjmp_keep_the_loops_of_who_catches() {
        for way in [Transfer::Return, COMPUTED] {
            let told = trips(vec![
                Goes(call(MAIN, 0x10), F, 0),
                Runs(0),
                Runs(1),
                Goes(call(F, 0x10), G, 0),
                Runs(0),
                Goes(way, MAIN, 0x50),
                Runs(3),
                Runs(1),
                Runs(4),
            ]);
            assert_eq!(told, [(F, 1, true, true), (MAIN, 3, true, true)]);
        }
        // Nobody was active who could catch it.
        let told = trips(vec![Goes(call(MAIN, 0x10), F, 0), Goes(Transfer::Return, G, 0x50)]);
        assert_eq!(told, [(MAIN, 2, true, false)]);
    }

    #[test]
    fn a_signal_handler_interrupts_and_ends_no_loop() {
        let told = trips(vec![
            Goes(Transfer::EnterKernel, KERNEL, 0x10),
            Goes(Transfer::LeaveKernel, F, 0),
            Runs(0),
            Goes(Transfer::Return, G, 0x8),
            Goes(Transfer::EnterKernel, KERNEL, 0x10),
            Goes(Transfer::LeaveKernel, MAIN, 0x20),
            Runs(3),
            Runs(1),
            Runs(4),
        ]);
        assert_eq!(told, [(MAIN, 3, true, true)]);
    }

    #[test]
    fn a_loop_that_control_comes_back_into_had_perhaps_not_ended() {
        let told =
            trips(vec![Runs(4), Goes(call(MAIN, 0x10), F, 0), Goes(COMPUTED, MAIN, 0x50), Runs(3), Runs(1), Runs(5)]);
        assert_eq!(told, [(MAIN, 2, false, true), (MAIN, 2, false, true)]);
        // By the header it is another trip.
        assert_eq!(trips(vec![Runs(4), Runs(1), Runs(4)]), [(MAIN, 2, true, true), (MAIN, 1, true, true)]);
    }

    #[test]
    fn long_paths_are_told_in_pieces() {
        let blocks = (4..504).map(Runs);
        let steps = [Goes(call(MAIN, 0x10), F, 0)].into_iter().chain(blocks);
        let whole = walk(steps.chain([Goes(Transfer::Return, MAIN, 0x10)]).collect());
        let seen: Vec<_> = whole.paths.iter().map(|(blocks, extent)| (blocks.len(), *extent)).collect();
        assert_eq!(seen, [(256, Extent::Piece), (244, Extent::Piece)]);
        // Without its begin, nothing of it is whole.
        let cut = walk((4..504).map(Runs).collect());
        assert!(cut.paths.iter().all(|(_, extent)| *extent == Extent::CutOff));
    }
}
