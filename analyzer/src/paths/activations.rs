//! The functions that are active along a burst or stack: the loops that each is in, and the path that it takes.
//!
//! ```text
//! call       a new activation; that of the caller waits, with its loops and its path
//! return     it ends, and all its loops and its path with it
//! jump to another function (a tail call, a stub of the procedure linkage table)   the same, and one of that function begins;
//!            if that jumps back into the middle, it was a part of the function (cold code), and the loops had not ended
//! back edge  a path ends at the header of a loop, and the next one begins
//! ```
//!
//! Where the walk begins, it is not known how the function came there: which of its loops had gone around how often, how its path began.
//! Where it ends, or cannot go on, it is not known how it would have gone on.

use crate::paths::map::{CodeMap, LoopId};
use crate::walks::{BlockKey, Frames, FunctionKey, ShadowStack, Target, Transfer};

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
/// Loops that were left last and are remembered, in case control comes back into the middle of one.
const MOST_LEFT: usize = 16;

/// The functions that are active. Made once, and begun anew for each burst or stack.
#[derive(Debug, Default)]
pub struct Activations {
    stack: ShadowStack,
    active: Active,
}

/// What is known of them, the current one last.
#[derive(Debug, Default)]
struct Active {
    all: Vec<Activation>,
    /// The loops of all of them.
    loops: Vec<OpenLoop>,
    /// Loops that all of them left, and that are not told yet.
    left: Vec<OpenLoop>,
    /// The blocks of the paths of all of them.
    blocks: Vec<BlockKey>,
}

#[derive(Clone, Debug)]
struct Activation {
    first: First,
    /// What it executed last is known, or that it begins.
    is_known: bool,
    path: PathState,
    /// The one below waits in the same frame.
    took_over: bool,
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

#[derive(Clone, Copy, Debug)]
struct OpenLoop {
    id: LoopId,
    iterations: u32,
    from_entry: bool,
}

impl Activations {
    /// Begins anew in a function of which nothing is known; what was active is cut off.
    pub fn begin(&mut self, function: FunctionKey, found: &mut impl Found) {
        self.stack.begin(function, &mut Told { active: &mut self.active, found });
    }

    /// The function that is current.
    pub fn current(&self) -> Option<FunctionKey> {
        self.stack.current()
    }

    /// All that is active is cut off.
    pub fn cut_off(&mut self, found: &mut impl Found) {
        self.stack.clear();
        self.active.leave_all(false, found);
    }

    /// Control goes on in a function without a branch to it.
    pub fn run_into(&mut self, function: FunctionKey, found: &mut impl Found) {
        self.stack.run_into(function, &mut Told { active: &mut self.active, found });
    }

    /// Control goes elsewhere.
    pub fn go(&mut self, transfer: &Transfer, target: Target, found: &mut impl Found) {
        self.stack.go(transfer, target, &mut Told { active: &mut self.active, found });
    }

    /// The current function is known to have executed a block, and nothing of what was before.
    pub fn come_from(&mut self, block: BlockKey, map: &CodeMap, found: &mut impl Found) {
        self.active.run(block, map, found);
        // The block itself was not seen.
        if let Some(top) = self.active.all.last_mut() {
            self.active.blocks.truncate(top.first.block);
            top.path = PathState::default();
        }
    }

    /// A branch went to a block, and whether that was executed is not known.
    pub fn come_to(&mut self, block: BlockKey, map: &CodeMap, found: &mut impl Found) {
        self.active.run(block, map, found);
        self.active.blocks.pop();
    }

    /// The current function executes a block.
    pub fn run(&mut self, key: BlockKey, map: &CodeMap, found: &mut impl Found) {
        self.active.run(key, map, found);
    }
}

impl Active {
    fn run(&mut self, key: BlockKey, map: &CodeMap, found: &mut impl Found) {
        let Some(&Activation { first, is_known, .. }) = self.all.last() else { return };
        let block = map.block(key);
        // No way in the code leads to where exceptions are caught: only where it goes on from there tells the loop.
        let repeats = !block.is_apart && self.move_to(key, block.innermost, first, is_known, map, found);
        let of_path = self.blocks.get(first.block..).unwrap_or_default();
        let goes_back = of_path.last().is_some_and(|last| key.index <= last.index);
        let Some(top) = self.all.last_mut() else { return };
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

    fn enter(&mut self, is_entry: bool, took_over: bool) {
        let first = First { open: self.loops.len(), left: self.left.len(), block: self.blocks.len() };
        let path = PathState { from_begin: is_entry, ..PathState::default() };
        self.all.push(Activation { first, is_known: is_entry, path, took_over });
    }

    /// The current activation ends, or is cut off: its loops and its path.
    fn leave_one(&mut self, [loops_end, path_ends]: [bool; 2], found: &mut impl Found) -> Option<Activation> {
        let top = self.all.pop()?;
        self.left.drain(top.first.left..).for_each(|left| left.end(found));
        for open in self.loops.drain(top.first.open..).rev() {
            found.trip(open.id, open.iterations, open.from_entry, loops_end);
        }
        let of_path = self.blocks.get(top.first.block..).unwrap_or_default();
        if !of_path.is_empty() {
            found.path(of_path, top.path.extent(path_ends, false));
        }
        self.blocks.truncate(top.first.block);
        Some(top)
    }

    /// The current frame ends, with what waits in it.
    fn leave(&mut self, found: &mut impl Found) {
        while self.leave_one([true; 2], found).is_some_and(|one| one.took_over) {}
    }

    /// All frames end, or are cut off.
    fn leave_all(&mut self, to_exit: bool, found: &mut impl Found) {
        let mut waits = false;
        // Most of what waits has made a tail call, which ends its path; but not in a loop.
        while let Some(one) = self.leave_one([to_exit, to_exit || waits], found) {
            waits = one.took_over;
        }
    }

    /// What waits in the current frame ends, and what took that over does not.
    fn leave_waiting(&mut self, found: &mut impl Found) {
        let Some(mut top) = self.all.pop_if(|top| top.took_over) else { return };
        let loops = self.loops.split_off(top.first.open);
        let left = self.left.split_off(top.first.left);
        let blocks = self.blocks.split_off(top.first.block);
        if let Some(waiting) = self.leave_one([true; 2], found) {
            (top.first, top.took_over) = (waiting.first, false);
        }
        self.loops.extend(loops);
        self.left.extend(left);
        self.blocks.extend(blocks);
        self.all.push(top);
    }
}

/// Activations that follow a stack, and what is told of them.
struct Told<'a, F> {
    active: &'a mut Active,
    found: &'a mut F,
}

impl<F: Found> Frames for Told<'_, F> {
    fn begin(&mut self, _: FunctionKey) {
        self.active.leave_all(false, self.found);
        self.active.enter(false, false);
    }

    fn enter(&mut self, _: FunctionKey, at_entry: bool) {
        self.active.enter(at_entry, false);
    }

    fn replace(&mut self, _: FunctionKey, at_entry: bool, from_waits: bool) {
        if from_waits {
            self.active.leave_waiting(self.found);
        } else {
            self.active.leave(self.found);
        }
        self.active.enter(at_entry, from_waits);
    }

    fn resume(&mut self, _: FunctionKey) {
        self.active.leave_one([true; 2], self.found);
    }

    fn leave(&mut self) {
        self.active.leave(self.found);
    }

    fn reveal(&mut self, _: FunctionKey) {
        self.active.leave_all(true, self.found);
        self.active.enter(false, false);
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
    use crate::address::Avma;
    use crate::paths::map::APART;
    use crate::recording::ModuleId;

    const MAIN: u32 = 0;
    const F: u32 = 1;
    const G: u32 = 2;
    const KERNEL: u32 = 3;

    /// Trips as module, iterations, seen from entry and to exit; paths as blocks and extent.
    #[derive(Default)]
    struct Seen {
        trips: Vec<(u32, u32, bool, bool)>,
        paths: Vec<(Vec<u32>, Extent)>,
    }

    impl Found for Seen {
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
    fn walk(steps: Vec<Does>) -> Seen {
        let (mut activations, mut told, map) = (Activations::default(), Seen::default(), CodeMap::of_test(4, 600));
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
        let returns = || vec![Goes(Transfer::Return, G, 0x10)];
        for jump in [JUMP, COMPUTED] {
            let steps = vec![Goes(jump, F, 0), Runs(0)].into_iter().chain(returns()).collect();
            assert_eq!(trips(steps), [(MAIN, 2, true, true)]);
        }
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

    /// Nothing in the code leads to where they are caught, and cold code may go on from there.
    #[test]
    fn a_loop_that_catches_goes_on() {
        let caught = |more: Vec<Does>| {
            let thrown = vec![Goes(call(MAIN, 0x10), F, 0), Runs(0), Goes(Transfer::Return, MAIN, 0x50)];
            let back = vec![Runs(3), Runs(1), Runs(4)];
            trips(thrown.into_iter().chain([Runs(APART as u32)]).chain(more).chain(back).collect())
        };
        assert_eq!(caught(vec![]), [(MAIN, 3, true, true)]);
        let cold = |computed| {
            let catch = vec![Goes(JUMP, G, 0), Runs(0), Goes(call(G, 0x10), F, 0), Goes(Transfer::Return, G, 0x10)];
            catch.into_iter().chain([Goes(Transfer::Jump { computed }, MAIN, 0x60)]).collect()
        };
        assert_eq!(caught(cold(false)), [(MAIN, 3, true, true)]);
        assert_eq!(caught(cold(true)), [(MAIN, 3, true, true)]);
        // Caught outside of the loop.
        let thrown = vec![Goes(call(MAIN, 0x10), F, 0), Goes(Transfer::Return, MAIN, 0x50), Runs(APART as u32)];
        assert_eq!(trips(thrown.into_iter().chain([Runs(5)]).collect()), [(MAIN, 2, true, true)]);
    }

    #[test]
    fn what_a_part_jumps_back_to_had_not_ended() {
        let to_part = || vec![Goes(JUMP, G, 0), Runs(0), Runs(1), Runs(4)];
        let back = |at| [Goes(JUMP, MAIN, at), Runs(3), Runs(1), Runs(4)];
        assert_eq!(
            trips(to_part().into_iter().chain(back(0x60)).collect()),
            [(G, 1, true, true), (MAIN, 3, true, true)]
        );
        // A call of its begin is another activation.
        assert_eq!(
            trips(to_part().into_iter().chain(back(0)).collect()),
            [(MAIN, 2, true, true), (MAIN, 2, false, true), (G, 1, true, true)]
        );
        // Whether it would have come back is not known, and then it is.
        assert_eq!(trips(to_part()), [(G, 1, true, true), (MAIN, 2, true, false)]);
        let returned = to_part().into_iter().chain([Goes(Transfer::Return, KERNEL, 0x10)]).collect();
        assert_eq!(trips(returned), [(G, 1, true, true), (MAIN, 2, true, true)]);
        // Another one takes the frame over: what waited has ended, and its part waits.
        let three = to_part().into_iter().chain([Goes(JUMP, F, 0), Runs(0)]).chain([Goes(JUMP, G, 0x40), Runs(2)]);
        assert_eq!(trips(three.collect()), [(MAIN, 2, true, true), (G, 1, false, true), (G, 1, false, false)]);
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
