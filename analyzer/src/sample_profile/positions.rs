//! From scopes of addresses to functions of a profile.

use std::collections::{BTreeMap, HashMap};

use super::names::Names;
use super::samples::{BodySample, FunctionSamples, Location};
use crate::code::FunctionTable;
use crate::flow::whole;
use crate::lines::{Position, Scope, ScopeId, SourceFunction, SourceIndex};

/// Index of a node: a function with code of its own, or one that was inlined at a certain call of a certain node. Copies of a call,
/// as of a loop that was unrolled, are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(usize);

/// Counts by node and location.
pub(super) struct Positions<'a> {
    nodes: Vec<Node<'a>>,
    /// The node of each scope of the source index, or why it has none.
    of_scope: Vec<Result<NodeId, Unplaced>>,
}

/// Why code has no place in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unplaced {
    /// It, or a call it was inlined at, is of no line.
    NoLine,
    /// One of its functions has no name, or no line on which it starts.
    NoStart,
}

struct Node<'a> {
    caller: Option<(NodeId, Location)>,
    name: &'a str,
    start_line: Option<u32>,
    head: f64,
    total: f64,
    body: BTreeMap<Location, Count<'a>>,
}

/// Counts of some instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Instructions {
    pub number: u64,
    /// Of the one that ran most.
    pub most: f64,
    pub sum: f64,
    /// The sum of each times the length of its instruction.
    pub bytes: f64,
}

#[derive(Default)]
struct Count<'a> {
    /// The most of any instruction.
    most: f64,
    /// What samples stand for, and the instructions they are of.
    sampled: f64,
    instructions: u64,
    targets: BTreeMap<&'a str, f64>,
}

impl<'a> Positions<'a> {
    /// The nodes of all scopes. Functions whose debug information does not say what the linker calls them have the name of the symbol
    /// at their entry.
    pub fn of(source: &'a SourceIndex, symbols: &'a Symbols, names: Names) -> Self {
        let mut positions = Self { nodes: Vec::new(), of_scope: Vec::with_capacity(source.scopes().len()) };
        let mut known: HashMap<(NodeId, Location, &str), NodeId> = HashMap::new();
        for (index, scope) in source.scopes().iter().enumerate() {
            let function = source.function(scope);
            let node = match scope.caller {
                None => {
                    let symbol = || symbols.by_scope.get(&ScopeId(index as u32)).map(String::as_str);
                    let name = function.linkage_name.as_deref().or_else(symbol).or(function.name.as_deref());
                    name.map(|name| positions.add(None, names.of(name), function)).ok_or(Unplaced::NoStart)
                }
                Some((caller, call)) => positions.location(caller, call).and_then(|place| {
                    let name = function.linkage_name.as_deref().or(function.name.as_deref());
                    let name = names.of(name.ok_or(Unplaced::NoStart)?);
                    let slot = known.entry((place.0, place.1, name));
                    Ok(*slot.or_insert_with(|| positions.add(Some(place), name, function)))
                }),
            };
            positions.of_scope.push(node);
        }
        positions
    }

    /// The node and the location in it of a position in a scope.
    pub fn location(&self, scope: ScopeId, position: Position) -> Result<(NodeId, Location), Unplaced> {
        let node = self.of_scope[scope.0 as usize]?;
        if position.line == 0 {
            return Err(Unplaced::NoLine);
        }
        let start = self.nodes[node.0].start_line.ok_or(Unplaced::NoStart)?;
        let offset = position.line.wrapping_sub(start) as u16;
        Ok((node, Location { offset, discriminator: position.discriminator.base }))
    }

    /// Executions of instructions there. The position counts as often as its instruction that ran most, times the copies that the
    /// compiler made of it.
    pub fn executed(&mut self, (node, location): (NodeId, Location), of: &Instructions, duplication: u32) {
        let node = &mut self.nodes[node.0];
        node.total += of.bytes;
        let most = &mut node.body.entry(location).or_default().most;
        *most = most.max(of.most * f64::from(duplication));
    }

    /// Samples of instructions there. The position counts as often as its instructions in the mean.
    pub fn sampled(&mut self, (node, location): (NodeId, Location), of: &Instructions) {
        let node = &mut self.nodes[node.0];
        node.total += of.bytes;
        let count = node.body.entry(location).or_default();
        count.sampled += of.sum;
        count.instructions += of.number;
    }

    /// Samples of the instructions there, in the mean.
    pub fn mean(&self, (node, location): (NodeId, Location)) -> f64 {
        self.nodes[node.0].body.get(&location).map_or(0.0, Count::mean)
    }

    /// Calls of a function of that name from there.
    pub fn called(&mut self, (node, location): (NodeId, Location), target: &'a str, count: f64) {
        let of = self.nodes[node.0].body.entry(location).or_default();
        *of.targets.entry(target).or_default() += count;
    }

    /// Calls of the function with code of its own that a scope is.
    pub fn entered(&mut self, scope: ScopeId, count: f64) {
        if let Ok(node) = self.of_scope[scope.0 as usize] {
            self.nodes[node.0].head += count;
        }
    }

    /// The functions, without those of which nothing ran.
    pub fn into_functions(self) -> BTreeMap<String, FunctionSamples> {
        let mut functions: BTreeMap<String, FunctionSamples> = BTreeMap::new();
        let mut inlined: Vec<BTreeMap<(Location, String), FunctionSamples>> = Vec::new();
        inlined.resize_with(self.nodes.len(), BTreeMap::new);
        // What was inlined comes after its caller.
        for (index, node) in self.nodes.into_iter().enumerate().rev() {
            let body: BTreeMap<Location, BodySample> =
                node.body.into_iter().map(|(location, count)| (location, count.finish())).collect();
            let inlined_here = std::mem::take(&mut inlined[index]);
            let inside = inlined_here.values().map(|function| function.total);
            let total = inside.fold(rounded(node.total), u64::saturating_add);
            let samples = FunctionSamples { head: rounded(node.head), total, body, inlined: inlined_here };
            match node.caller {
                Some((caller, call)) => {
                    inlined[caller.0].insert((call, node.name.to_owned()), samples);
                }
                None if total > 0 => functions.entry(node.name.to_owned()).or_default().add(samples),
                None => {}
            }
        }
        functions
    }

    fn add(&mut self, caller: Option<(NodeId, Location)>, name: &'a str, function: &SourceFunction) -> NodeId {
        self.nodes.push(Node {
            caller,
            name,
            start_line: function.start_line,
            head: 0.0,
            total: 0.0,
            body: BTreeMap::new(),
        });
        NodeId(self.nodes.len() - 1)
    }
}

impl Count<'_> {
    /// Where a compiler made copies of a call, each was counted by itself: all calls together may be more than any instruction ran.
    fn finish(self) -> BodySample {
        let mean = self.mean();
        let calls = self.targets.values().sum();
        let targets = self.targets.into_iter().map(|(name, count)| (name.to_owned(), rounded(count)));
        BodySample { count: rounded(self.most.max(mean).max(calls)), targets: targets.collect() }
    }

    fn mean(&self) -> f64 {
        if self.instructions > 0 { self.sampled / self.instructions as f64 } else { 0.0 }
    }
}

fn rounded(count: f64) -> u64 {
    if count > 0.0 { whole(count) } else { 0 }
}

/// Names of symbols at the entries of functions.
#[derive(Default)]
pub(super) struct Symbols {
    by_scope: HashMap<ScopeId, String>,
}

impl Symbols {
    pub fn of(source: &SourceIndex, functions: &FunctionTable) -> Self {
        let wanted = |scope: &Scope| scope.caller.is_none() && source.function(scope).linkage_name.is_none();
        let scopes = (0..).map(ScopeId).zip(source.scopes()).filter(|(_, scope)| wanted(scope));
        let named = scopes.filter_map(|(id, scope)| {
            let symbol = functions.at(scope.entry).filter(|&function| functions.is_entry(function, scope.entry))?;
            Some((id, functions.name(symbol).into_owned()))
        });
        Self { by_scope: named.collect() }
    }
}
