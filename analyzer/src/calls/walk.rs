//! One burst or one stack, walked from its oldest branch to its newest: who called whom.
//!
//! The shadow stack (`walks/shadow_stack`) says which functions are active.
//!
//! Where the walk begins, nothing is known of the callers. A return beyond the first frame says who was the caller, and all that the walk
//! has seen so far becomes part of what that one called.

use std::collections::HashMap;

use crate::calls::{CallerTree, FunctionKey, Target, Transfer};
use crate::recording::Weight;
use crate::walks::{Frames, ShadowStack};

/// A walk: made once, and begun anew for each burst or stack.
#[derive(Debug, Default)]
pub struct Walk {
    stack: ShadowStack,
    contexts: Contexts,
}

/// The contexts of a walk.
#[derive(Debug, Default)]
struct Contexts {
    nodes: Vec<Node>,
    children: HashMap<(u32, FunctionKey), u32>,
    /// The node of each frame, the current one last.
    frames: Vec<u32>,
    /// The node of the caller that is not known.
    open: u32,
}

/// A function in one context of the walk.
#[derive(Debug)]
struct Node {
    /// `None` of a caller that is not known, which has no caller.
    function: Option<FunctionKey>,
    caller: u32,
    /// That it executed itself.
    instructions: u64,
}

impl Walk {
    /// Begins anew in a function whose callers are not known. What the walk has seen so far stays.
    pub fn begin(&mut self, function: FunctionKey) {
        self.stack.begin(function, &mut self.contexts);
    }

    /// So many instructions are executed straight on, in a function that is most often the current one.
    pub fn run(&mut self, function: FunctionKey, instructions: u64) {
        self.stack.run_into(function, &mut self.contexts);
        let top = self.contexts.top();
        if let Some(node) = self.contexts.nodes.get_mut(top as usize) {
            node.instructions = node.instructions.saturating_add(instructions);
        }
    }

    /// Control goes elsewhere.
    pub fn go(&mut self, transfer: &Transfer, target: Target) {
        self.stack.go(transfer, target, &mut self.contexts);
    }

    /// Begins anew because nothing says how control came here.
    pub fn lose(&mut self, function: FunctionKey) {
        self.stack.lose(function, &mut self.contexts);
    }

    /// Adds all that was executed to a tree, each instruction with that weight, and forgets it. Returns how often the walk began anew.
    pub fn finish(&mut self, weight: Weight, tree: &mut CallerTree) -> u64 {
        let Contexts { nodes, children, frames, .. } = &mut self.contexts;
        for node in nodes.iter().filter(|node| node.instructions > 0) {
            let callers = std::iter::successors(Some(node), |node| nodes.get(node.caller as usize));
            let functions = callers.map_while(|node| node.function);
            tree.add(functions, Weight(weight.0.saturating_mul(u128::from(node.instructions))));
        }
        nodes.clear();
        children.clear();
        frames.clear();
        self.stack.clear();
        self.stack.take_lost()
    }
}

impl Contexts {
    /// A function is called from a context, or goes on in one.
    fn push(&mut self, caller: u32, function: FunctionKey) {
        let node = match self.children.get(&(caller, function)) {
            Some(&node) => node,
            None => {
                let node = self.node(Some(function), caller);
                self.children.insert((caller, function), node);
                node
            }
        };
        self.frames.push(node);
    }

    fn node(&mut self, function: Option<FunctionKey>, caller: u32) -> u32 {
        self.nodes.push(Node { function, caller, instructions: 0 });
        (self.nodes.len() - 1) as u32
    }

    fn top(&self) -> u32 {
        self.frames.last().copied().unwrap_or(self.open)
    }
}

impl Frames for Contexts {
    fn begin(&mut self, function: FunctionKey) {
        self.open = self.node(None, u32::MAX);
        self.frames.clear();
        self.push(self.open, function);
    }

    fn enter(&mut self, function: FunctionKey, _: bool) {
        self.push(self.top(), function);
    }

    fn replace(&mut self, function: FunctionKey, _: bool, _: bool) {
        let Some(node) = self.frames.pop() else { return };
        let caller = self.nodes.get(node as usize).map_or(self.open, |node| node.caller);
        self.push(caller, function);
    }

    fn resume(&mut self, function: FunctionKey) {
        self.replace(function, false, false);
    }

    fn leave(&mut self) {
        self.frames.pop();
    }

    fn reveal(&mut self, function: FunctionKey) {
        let caller = self.open;
        self.open = self.node(None, u32::MAX);
        if let Some(node) = self.nodes.get_mut(caller as usize) {
            (node.function, node.caller) = (Some(function), self.open);
        }
        self.children.insert((self.open, function), caller);
        self.frames.clear();
        self.frames.push(caller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Avma;
    use crate::recording::ModuleId;

    const MAIN: u32 = 0;
    const F: u32 = 1;
    const G: u32 = 2;
    const H: u32 = 3;
    const NAMES: [&str; 4] = ["main", "f", "g", "h"];

    fn key(function: u32) -> FunctionKey {
        FunctionKey::unread(ModuleId(function))
    }

    /// The function starts at its number times 0x100.
    fn target(function: u32, offset: u64) -> Target {
        let at = Avma(u64::from(function) * 0x100 + offset);
        Target { function: key(function), at, is_entry: offset == 0 }
    }

    /// A call from five bytes before there.
    fn call(function: u32, back: u64) -> Transfer {
        let back = target(function, back).at;
        Transfer::Call { returns_to: back..Avma(back.0 + 1) }
    }

    const JUMP: Transfer = Transfer::Jump { computed: false };
    const COMPUTED: Transfer = Transfer::Jump { computed: true };

    /// Walks from a function on: it executes one instruction, and then one wherever control goes. Returns the contexts, and how often the walk was lost.
    fn walk(first: u32, steps: &[(Transfer, Target)]) -> (Vec<String>, u64) {
        let mut walk = Walk::default();
        let mut tree = CallerTree::new(CallerTree::MOST_NODES, CallerTree::MOST_FRAMES);
        walk.begin(key(first));
        walk.run(key(first), 1);
        for (transfer, target) in steps {
            walk.go(transfer, *target);
            walk.run(target.function, 1);
        }
        let lost = walk.finish(Weight(1), &mut tree);
        (shown(&tree), lost)
    }

    fn shown(tree: &CallerTree) -> Vec<String> {
        let mut contexts: Vec<String> = tree
            .contexts()
            .map(|context| {
                let names = context.functions.iter().rev().map(|key| NAMES[key.module().0 as usize]);
                format!("{} {}", names.collect::<Vec<_>>().join(";"), context.instructions.0)
            })
            .collect();
        contexts.sort();
        contexts
    }

    fn check(first: u32, steps: &[(Transfer, Target)], expected: &[&str]) {
        assert_eq!(walk(first, steps), (expected.iter().map(ToString::to_string).collect(), 0));
    }

    #[test]
    fn calls_and_returns() {
        let steps = [
            (call(MAIN, 0x10), target(F, 0)),
            (Transfer::Return, target(MAIN, 0x10)),
            (call(MAIN, 0x20), target(F, 0)),
            (call(F, 0x10), target(G, 0)),
            (Transfer::Return, target(F, 0x10)),
            (Transfer::Return, target(MAIN, 0x20)),
        ];
        check(MAIN, &steps, &["main 3", "main;f 3", "main;f;g 1"]);
    }

    #[test]
    fn a_caller_that_is_known_afterwards_is_that_of_all_before() {
        let steps = [
            (call(G, 0x10), target(H, 0)),
            (Transfer::Return, target(G, 0x10)),
            (Transfer::Return, target(F, 0x10)),
            (Transfer::Return, target(MAIN, 0x10)),
            // The same functions again are the same contexts.
            (call(MAIN, 0x20), target(F, 0)),
            (call(F, 0x10), target(G, 0)),
        ];
        check(G, &steps, &["main 1", "main;f 2", "main;f;g 3", "main;f;g;h 1"]);
    }

    #[test]
    fn recursion_is_a_frame_for_each_call() {
        let mut steps = vec![(call(F, 0x10), target(F, 0)); 3];
        steps.extend(vec![(Transfer::Return, target(F, 0x10)); 3]);
        steps.push((Transfer::Return, target(MAIN, 0x10)));
        check(F, &steps, &["main 1", "main;f 2", "main;f;f 2", "main;f;f;f 2", "main;f;f;f;f 1"]);
    }

    #[test]
    fn a_tail_call_takes_the_frame_over() {
        let steps = [
            (call(MAIN, 0x10), target(F, 0)),
            (JUMP, target(G, 0)),
            (COMPUTED, target(H, 0)),
            (Transfer::Return, target(MAIN, 0x10)),
        ];
        check(MAIN, &steps, &["main 2", "main;f 1", "main;g 1", "main;h 1"]);
        // Before any caller is known, too.
        check(F, &steps[1..], &["main 1", "main;f 1", "main;g 1", "main;h 1"]);
    }

    #[test]
    fn a_call_of_the_next_instruction_calls_nothing() {
        check(MAIN, &[(call(MAIN, 0x10), target(MAIN, 0x10))], &["main 2"]);
    }

    #[test]
    fn a_return_past_frames_takes_them_off() {
        let calls = [(call(MAIN, 0x10), target(F, 0)), (call(F, 0x10), target(G, 0)), (call(G, 0x10), target(H, 0))];
        let to = |step| [&calls[..], &[step]].concat();
        let unwound = ["main 2", "main;f 1", "main;f;g 1", "main;f;g;h 1"];
        check(MAIN, &to((Transfer::Return, target(MAIN, 0x10))), &unwound);
        // `longjmp`, and an exception that is caught.
        check(MAIN, &to((COMPUTED, target(MAIN, 0x50))), &unwound);
        check(MAIN, &to((Transfer::Return, target(MAIN, 0x50))), &unwound);
    }

    #[test]
    fn a_return_to_the_start_of_a_function_is_a_jump() {
        let steps = [
            (call(MAIN, 0x10), target(F, 0)),
            (Transfer::Return, target(G, 0)),
            (Transfer::Return, target(MAIN, 0x10)),
        ];
        check(MAIN, &steps, &["main 2", "main;f 1", "main;g 1"]);
    }

    #[test]
    fn where_nothing_fits_the_walk_begins_anew() {
        let calls = [
            (call(MAIN, 0x10), target(F, 0)),
            (Transfer::Return, target(H, 0x70)),
            (Transfer::Return, target(G, 0x20)),
        ];
        assert_eq!(walk(MAIN, &calls), (vec!["g 1".into(), "g;h 1".into(), "main 1".into(), "main;f 1".into()], 1));
    }

    /// In code that was not read, records that do not say the kind of branch.
    #[test]
    fn what_is_not_known_is_a_return_if_it_fits_a_call() {
        let calls = [(call(MAIN, 0x10), target(F, 0)), (Transfer::Unclear, target(MAIN, 0x10))];
        check(MAIN, &calls, &["main 2", "main;f 1"]);
        let elsewhere = [(call(MAIN, 0x10), target(F, 0)), (Transfer::Unclear, target(G, 0))];
        assert_eq!(walk(MAIN, &elsewhere), (vec!["g 1".into(), "main 1".into(), "main;f 1".into()], 1));
    }

    #[test]
    fn the_kernel_is_called_and_signal_handlers_by_it() {
        const KERNEL: u32 = H;
        let steps = [
            (call(MAIN, 0x10), target(F, 0)),
            (Transfer::EnterKernel, target(KERNEL, 0x10)),
            (Transfer::LeaveKernel, target(F, 0x12)),
            (Transfer::EnterKernel, target(KERNEL, 0x10)),
            (Transfer::LeaveKernel, target(G, 0)),
            (Transfer::EnterKernel, target(KERNEL, 0x10)),
            (Transfer::LeaveKernel, target(F, 0x14)),
            (Transfer::Return, target(MAIN, 0x10)),
        ];
        check(MAIN, &steps, &["main 2", "main;f 3", "main;f;g 1", "main;f;g;h 1", "main;f;h 2"]);
        check(KERNEL, &[(Transfer::LeaveKernel, target(F, 0x12))], &["f 1", "f;h 1"]);
    }

    #[test]
    fn walks_do_not_see_each_other() {
        let mut walk = Walk::default();
        let mut tree = CallerTree::new(CallerTree::MOST_NODES, CallerTree::MOST_FRAMES);
        for (function, weight) in [(F, 10), (G, 5), (F, 1)] {
            walk.begin(key(function));
            walk.run(key(function), 2);
            walk.finish(Weight(weight), &mut tree);
        }
        assert_eq!(shown(&tree), ["f 22", "g 10"]);
    }
}
