//! How often conditional branches were taken, from how often blocks ran: what flows into a block flows out of it.
//!
//! ```text
//! taken(X) + fallen(X) = executions(X)                        for every conditional branch
//! all that leads to Y  = executions(Y)                        for every block that only known branches lead to
//! ```
//!
//! An equation with one unknown solves it, which may leave another one with one unknown, and so on. Programs of ifs and loops are solved that
//! way. Blocks that something unknown may lead to have no equation: starts of functions, and all of a function with an
//! indirect jump. What no equation solves is divided like the executions of the two blocks it may go to.

/// How a block leads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// To the next block, always.
    Falls,
    /// To that block (by index, if it ran), or else to the next one.
    Branches(Option<usize>),
    /// To that block, always.
    Jumps(Option<usize>),
    /// To the next block, as often as the call returns.
    Calls,
    /// Nobody knows where to.
    Leaves,
}

/// A block that ran, with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownBlock {
    /// How often the block was executed.
    pub executions: f64,
    /// How it leads on.
    pub exit: Exit,
    /// The block after it is the next in the list.
    pub has_next: bool,
    /// Something unknown may lead to it.
    pub is_open: bool,
}

/// What flows out of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outflow {
    /// Along its branch or jump.
    pub taken: f64,
    /// Straight on, where no call is in between.
    pub fallen: f64,
    /// No equation said it.
    pub is_guess: bool,
}

/// Solves what can be solved. The blocks are sorted by address.
pub fn outflows(blocks: &[KnownBlock]) -> Vec<Outflow> {
    let mut solver = Solver::new(blocks);
    solver.solve();
    solver.finish()
}

/// Where the flow of a conditional branch, or back from a call, goes.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    flow: Option<f64>,
}

/// Edges whose flows add up to the executions of a block.
#[derive(Clone, Debug, Default)]
struct Side {
    edges: Vec<usize>,
    /// How many of them are not known, and the flow of the others.
    unknown: usize,
    known: f64,
}

struct Solver<'a> {
    blocks: &'a [KnownBlock],
    edges: Vec<Edge>,
    /// By block: its edges in, and out.
    into: Vec<Side>,
    out_of: Vec<Side>,
}

impl<'a> Solver<'a> {
    fn new(blocks: &'a [KnownBlock]) -> Self {
        let none = || vec![Side::default(); blocks.len()];
        let mut solver = Solver { blocks, edges: Vec::new(), into: none(), out_of: none() };
        for (from, block) in blocks.iter().enumerate() {
            let next = block.has_next.then_some(from + 1);
            match block.exit {
                Exit::Falls => solver.add(from, next, Some(block.executions)),
                Exit::Jumps(target) => solver.add(from, target, Some(block.executions)),
                // A block that never ran is in no list, and nothing went there.
                Exit::Branches(target) => {
                    solver.add(from, target, next.is_none().then_some(block.executions));
                    solver.add(from, next, target.is_none().then_some(block.executions));
                }
                Exit::Calls => solver.add(from, next, None),
                Exit::Leaves => {}
            }
        }
        solver
    }

    fn add(&mut self, from: usize, to: Option<usize>, flow: Option<f64>) {
        if let Some(to) = to {
            for side in [&mut self.into[to], &mut self.out_of[from]] {
                side.edges.push(self.edges.len());
                side.unknown += usize::from(flow.is_none());
                side.known += flow.unwrap_or(0.0);
            }
            self.edges.push(Edge { from, to, flow });
        }
    }

    fn solve(&mut self) {
        let mut waiting: Vec<usize> = (0..self.blocks.len()).rev().collect();
        while let Some(block) = waiting.pop() {
            let of = self.blocks[block];
            let sides = [(&self.into[block], !of.is_open), (&self.out_of[block], matches!(of.exit, Exit::Branches(_)))];
            // Only one of them is solved now: the other one may have changed by that, and waits.
            let solvable = sides.into_iter().find(|(side, has_equation)| *has_equation && side.unknown == 1);
            let Some((side, _)) = solvable else { continue };
            let unknown = side.edges.iter().copied().find(|&edge| self.edges[edge].flow.is_none());
            let Some(edge) = unknown else { continue };
            let rest = of.executions - side.known;
            let Edge { from, to, .. } = self.edges[edge];
            let flow = rest.clamp(0.0, self.blocks[from].executions);
            self.edges[edge].flow = Some(flow);
            for side in [&mut self.into[to], &mut self.out_of[from]] {
                side.unknown -= 1;
                side.known += flow;
            }
            waiting.extend([from, to]);
        }
    }

    fn finish(self) -> Vec<Outflow> {
        let outflow = |(index, block): (usize, &KnownBlock)| {
            let next = block.has_next.then_some(index + 1);
            let all = block.executions;
            let (target, fallen) = match block.exit {
                Exit::Falls => return Outflow { fallen: if next.is_some() { all } else { 0.0 }, ..Outflow::default() },
                Exit::Jumps(_) => return Outflow { taken: all, ..Outflow::default() },
                Exit::Calls | Exit::Leaves => return Outflow::default(),
                Exit::Branches(target) => (target, next),
            };
            let flow_to = |to: Option<usize>| {
                let mut edges = self.out_of[index].edges.iter().map(|&edge| &self.edges[edge]);
                edges.find(|edge| Some(edge.to) == to).and_then(|edge| edge.flow)
            };
            // Where both ways lead to one block, the first edge is the branch.
            match (flow_to(target), target, fallen) {
                (Some(taken), Some(_), Some(_)) => Outflow { taken, fallen: all - taken, is_guess: false },
                (_, Some(_), None) => Outflow { taken: all, ..Outflow::default() },
                (_, None, _) => Outflow { fallen: if fallen.is_some() { all } else { 0.0 }, ..Outflow::default() },
                (None, Some(target), Some(next)) => {
                    let [there, here] = [target, next].map(|block| self.blocks[block].executions);
                    let taken = all * there / (there + here).max(f64::MIN_POSITIVE);
                    Outflow { taken, fallen: all - taken, is_guess: true }
                }
            }
        };
        self.blocks.iter().enumerate().map(outflow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(executions: f64, exit: Exit) -> KnownBlock {
        KnownBlock { executions, exit, has_next: true, is_open: false }
    }

    /// Taken and fallen of each block.
    fn flows(blocks: &[KnownBlock]) -> Vec<(f64, f64, bool)> {
        outflows(blocks).iter().map(|flow| (flow.taken, flow.fallen, flow.is_guess)).collect()
    }

    #[test]
    fn an_if_inside_a_loop_is_solved() {
        let blocks = [
            KnownBlock { is_open: true, ..block(1.0, Exit::Falls) },
            block(10.0, Exit::Branches(Some(3))), // if
            block(7.0, Exit::Falls),              // then
            block(10.0, Exit::Branches(Some(1))), // again
            KnownBlock { has_next: false, ..block(1.0, Exit::Leaves) },
        ];
        let expected = [(0.0, 1.0), (3.0, 7.0), (0.0, 7.0), (9.0, 1.0), (0.0, 0.0)];
        assert_eq!(flows(&blocks), expected.map(|(taken, fallen)| (taken, fallen, false)));
    }

    #[test]
    fn what_never_ran_got_nothing() {
        let blocks = [
            KnownBlock { is_open: true, ..block(5.0, Exit::Branches(None)) },
            KnownBlock { has_next: false, ..block(5.0, Exit::Branches(Some(0))) },
        ];
        assert_eq!(flows(&blocks), [(0.0, 5.0, false), (5.0, 0.0, false)]);
    }

    #[test]
    fn a_call_that_does_not_return_leads_nowhere() {
        let blocks = [
            KnownBlock { is_open: true, ..block(10.0, Exit::Branches(Some(2))) },
            block(4.0, Exit::Calls), // throws once
            KnownBlock { has_next: false, ..block(9.0, Exit::Leaves) },
        ];
        assert_eq!(flows(&blocks)[0], (6.0, 4.0, false));
    }

    /// One equation after the other, all with branches to one block: takes forever if each looks at all of them.
    #[test]
    fn branches_to_one_block_are_solved_one_by_one() {
        const CHECKS: usize = 300_000;
        let check = |index: usize| block((2 * CHECKS - index) as f64, Exit::Branches(Some(CHECKS)));
        let mut blocks: Vec<KnownBlock> = (0..CHECKS).map(check).collect();
        blocks[0].is_open = true;
        // After the last check comes the block that all branch to.
        blocks[CHECKS - 1].exit = Exit::Falls;
        blocks.push(KnownBlock { has_next: false, ..block((2 * CHECKS) as f64, Exit::Leaves) });
        let flows = outflows(&blocks);
        assert!(flows[..CHECKS - 1].iter().all(|flow| (flow.taken, flow.is_guess) == (1.0, false)));
    }

    #[test]
    fn what_is_not_known_is_divided_and_said_to_be_a_guess() {
        let open = |of: KnownBlock| KnownBlock { is_open: true, ..of };
        let blocks = [
            open(block(8.0, Exit::Branches(Some(2)))),
            open(block(3.0, Exit::Leaves)),
            open(KnownBlock { has_next: false, ..block(9.0, Exit::Leaves) }),
        ];
        assert_eq!(flows(&blocks)[0], (6.0, 2.0, true));
    }
}
