//! All bursts and stacks, walked and added up.

use crate::calls::{CallerTree, Walk};
use crate::walks::{Known, Streams, WalkedStack, Walker};

/// Walks bursts and stacks for calling contexts.
pub struct CallWalker<'a> {
    streams: Streams<'a>,
    walk: Walk,
    /// The contexts.
    pub tree: CallerTree,
    /// Bursts, pieces of them, and stacks.
    pub walks: u64,
    /// How often a walk could not go on from what it knew of callers, and began anew.
    pub lost: u64,
}

impl<'a> CallWalker<'a> {
    /// Nothing was walked yet.
    pub fn new(streams: Streams<'a>) -> Self {
        let tree = CallerTree::new(CallerTree::MOST_NODES, CallerTree::MOST_FRAMES);
        CallWalker { streams, walk: Walk::default(), tree, walks: 0, lost: 0 }
    }

    fn walk_branches(&mut self, stack: &WalkedStack<'_>) {
        let mut at = stack.start;
        if let Some(function) = at.and_then(|start| self.streams.function_at(stack.space, start)) {
            self.walk.begin(function);
        }
        for branch in stack.branches {
            for stream in self.streams.get(stack.space, at, branch) {
                match &stream.parts {
                    // What the kernel's entry executes, samples count: only how that is shared between those who call it is told here.
                    _ if stream.known == Known::WayBack => self.walk.run(stream.function, 1),
                    Some(_) if at.is_none() => self.walk.begin(stream.function),
                    Some(parts) => parts.iter().for_each(|part| self.walk.run(part.function, part.instructions)),
                    None => self.walk.lose(stream.function),
                }
                self.walk.go(&stream.transfer, stream.target);
            }
            at = Some(branch.to);
        }
    }
}

impl Walker for CallWalker<'_> {
    fn walk(&mut self, stack: &WalkedStack<'_>) {
        self.walk_branches(stack);
        self.lost += self.walk.finish(stack.weight, &mut self.tree);
        self.walks += 1;
    }

    fn merge(&mut self, other: Self) {
        self.tree.merge(&other.tree);
        self.walks += other.walks;
        self.lost += other.lost;
    }
}
