//! Calling contexts, for the flame graph of a page: a tree of frames without the smallest.

use std::collections::HashMap;

use analyzer::calls::Calls;
use analyzer::recording::ModuleTable;
use serde::Serialize;

use super::short::Short;
use crate::output::cut_inside;
use crate::output::profile::UNKNOWN_CALLERS;

/// Frames that a page has at most.
const MOST_FRAMES: usize = 40_000;
/// Columns of a name.
const LONGEST_NAME: usize = 256;

/// The frames, or why there are none.
#[derive(Default, Serialize)]
pub struct Contexts {
    /// Why nothing is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// What is counted, where it is not executed instructions: the events whose LBR call stacks these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// What the frames are of, each once: names, the first of which is that of unknown callers.
    names: Vec<String>,
    /// By name, the index of the function in the page, if it is one.
    functions: Vec<Option<usize>>,
    /// By frame, the index of its name. A frame comes before those that it called, and these come with the largest first.
    name: Vec<usize>,
    /// By frame, how many callers it has.
    depth: Vec<usize>,
    /// By frame, the instructions executed in it and in what it called.
    executed: Vec<Short>,
    /// By frame, those executed in it itself.
    own: Vec<Short>,
    /// Frames that are left out, and the instructions that they executed themselves.
    left_out: (usize, Short),
    /// How far the contexts reach, in sentences.
    notes: Vec<String>,
}

/// A frame of the tree.
struct Frame {
    name: usize,
    /// Instructions executed in it itself, and with what it called.
    own: f64,
    executed: f64,
    callees: Vec<usize>,
}

impl Contexts {
    /// None, for that reason.
    pub fn none(why: String) -> Self {
        Contexts { why: Some(why), ..Contexts::default() }
    }

    /// Of calls. `functions` are indices in the page by path of the module and name.
    pub fn of(
        calls: &Calls,
        modules: &ModuleTable,
        functions: &HashMap<(&str, &str), usize>,
        notes: Vec<String>,
    ) -> Self {
        let frames = tree(calls);
        let mut sizes: Vec<f64> = frames.iter().map(|frame| frame.executed).collect();
        sizes.sort_by(|one, other| other.total_cmp(one));
        // A caller is as large as what it called, at least: no frame that is kept loses its callers.
        let too_small = sizes.get(MOST_FRAMES).copied();
        let is_kept = |frame: &Frame| too_small.is_none_or(|size| frame.executed > size);
        let names = calls.functions.iter().map(|function| {
            let mut name = function.name.clone();
            cut_inside(&mut name, LONGEST_NAME);
            name
        });
        let known = |function: &analyzer::calls::CalledFunction| {
            functions.get(&(modules.get(function.module).path.as_str(), function.name.as_str())).copied()
        };
        let mut contexts = Contexts {
            names: [UNKNOWN_CALLERS.to_owned()].into_iter().chain(names).collect(),
            functions: [None].into_iter().chain(calls.functions.iter().map(known)).collect(),
            unit: calls.events.clone(),
            notes,
            ..Contexts::default()
        };
        let mut open = vec![(0, 0)];
        while let Some((at, depth)) = open.pop() {
            let Some(frame) = frames.get(at).filter(|frame| is_kept(frame)) else { continue };
            contexts.name.push(frame.name);
            contexts.depth.push(depth);
            contexts.executed.push(Short(frame.executed));
            contexts.own.push(Short(frame.own));
            let mut callees = frame.callees.clone();
            let size = |at: &usize| frames.get(*at).map_or(0.0, |frame| frame.executed);
            callees.sort_by(|one, other| size(other).total_cmp(&size(one)));
            open.extend(callees.into_iter().rev().map(|callee| (callee, depth + 1)));
        }
        let small = frames.iter().filter(|frame| !is_kept(frame));
        let own: f64 = small.clone().map(|frame| frame.own).sum();
        contexts.left_out = (small.count(), Short(own));
        contexts.without_unused_names()
    }

    /// Names that no frame has are not in the page.
    fn without_unused_names(mut self) -> Self {
        let mut places: Vec<Option<usize>> = vec![None; self.names.len()];
        let mut used = Vec::new();
        for name in &mut self.name {
            let Some(place) = places.get_mut(*name) else { continue };
            *name = *place.get_or_insert_with(|| {
                used.push(*name);
                used.len() - 1
            });
        }
        self.names = used.iter().filter_map(|&name| self.names.get_mut(name).map(std::mem::take)).collect();
        self.functions = used.iter().filter_map(|&name| self.functions.get(name).copied()).collect();
        self
    }
}

/// All frames: the first is that of the unknown callers of all contexts. Names are indices of functions, and one more.
fn tree(calls: &Calls) -> Vec<Frame> {
    let frame = |name| Frame { name, own: 0.0, executed: 0.0, callees: Vec::new() };
    let mut frames = vec![frame(0)];
    // Contexts come in order: those that begin in the same way are beside each other.
    let mut open = vec![0];
    let mut before: &[usize] = &[];
    for context in calls.contexts() {
        let same = before.iter().zip(context.frames).take_while(|(one, other)| one == other).count();
        open.truncate(same + 1);
        for function in context.frames.iter().skip(same) {
            let (at, caller) = (frames.len(), open.last().copied().unwrap_or(0));
            frames.push(frame(function + 1));
            frames[caller].callees.push(at);
            open.push(at);
        }
        for &at in &open {
            frames[at].executed += context.instructions;
        }
        if let Some(&ran) = open.last() {
            frames[ran].own += context.instructions;
        }
        before = context.frames;
    }
    frames
}
