//! The layout of all functions that ran.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::address_map::{AddressMap, AddressMapError, MappedFunction};
use super::call_chains::{self, Placed};
use super::ext_tsp::{self, Edge, Node};
use super::graph::Graph;
use super::names::{Names, SharedNames, fits_a_line};
use crate::address::Svma;
use crate::counting::AnalysedModule;
use crate::flow::Flow;
use crate::lines::unit_names;

/// Above this part of all jumps inside functions that go to no block, the map is not believed.
const MOST_STRANGE: f64 = 0.05;

/// A layout of the functions that ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PropellerProfile {
    /// By address.
    pub functions: Vec<LaidOutFunction>,
    /// Indices of the functions in the order in which they should lie.
    pub order: Vec<usize>,
    /// Part of the executions of ranges that touch no function of the address map, 0 to 1.
    pub unmapped: f64,
    /// What else is not in the profile, in sentences.
    pub notes: Vec<String>,
}

/// A function that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOutFunction {
    /// The symbols at its entry, global ones first; one at least.
    pub names: Vec<String>,
    /// The file that it was compiled from, as the compiler was told it, where another function has its name.
    pub unit: Option<String>,
    /// The numbers of the blocks that ran, in the order in which they should lie, the entry first.
    pub hot: Vec<u32>,
    /// Whether it has blocks that did not run.
    pub has_cold: bool,
}

/// Why there is no layout.
#[derive(Debug, thiserror::Error)]
pub enum PropellerError {
    /// The file has no address map that can be read.
    #[error(transparent)]
    Map(#[from] AddressMapError),
    /// Jumps go where the map knows no block.
    #[error(
        "the basic block address map is of another build, or the code was changed after linking: {part:.1} % of the jumps go to no \
         block of it; name the program that was recorded with --binary"
    )]
    Strange {
        /// How many of the jumps, in per cent.
        part: f64,
    },
    /// Nothing of what the map knows ran, or has a name.
    #[error("no function of the basic block address map ran and has a symbol{}", if *.is_stripped { ": the file is stripped, give it its symbols back" } else { "" })]
    Nothing {
        /// The file has no symbols.
        is_stripped: bool,
    },
}

/// What is left out, in functions that ran.
#[derive(Default)]
struct LeftOut {
    unnamed: usize,
    ambiguous: usize,
    numbered_twice: usize,
}

impl PropellerProfile {
    /// The layout of the module with that index, whose code is `code`.
    ///
    /// # Errors
    /// The file has no address map, or one that does not fit; or nothing of it ran.
    pub fn of(flow: &Flow, module: usize, code: &AnalysedModule) -> Result<Self, PropellerError> {
        let binary = &code.binary;
        let map = AddressMap::of(binary.images())?;
        let is_old = map.is_old;
        let mut left_out = LeftOut::default();
        let functions = distinct(map);
        let graph = Graph::of(&functions, flow, module, code);
        if graph.strange > MOST_STRANGE * graph.jumps {
            return Err(PropellerError::Strange { part: 100.0 * graph.strange / graph.jumps });
        }
        let entries: HashSet<Svma> = functions.iter().map(|function| function.entry).collect();
        let mut names = Names::of(binary, |at| entries.contains(&at));
        let ran = |index: &usize| graph.counts[*index].iter().any(|count| *count > 0.0);
        let mut named: Vec<(usize, LaidOutFunction, bool)> = Vec::new();
        for index in (0..functions.len()).filter(ran) {
            let function = &functions[index];
            if !is_numbered_once(function) {
                left_out.numbered_twice += 1;
                continue;
            }
            let found = names.at(function.entry);
            if found.names.is_empty() {
                left_out.unnamed += 1;
                continue;
            }
            let (hot, has_cold) = layout(function, &graph.counts[index], &graph.edges[index]);
            named.push((index, LaidOutFunction { names: found.names, unit: None, hot, has_cold }, found.is_shared));
        }
        name_units(&mut named, &functions, &names.shared(), code, &mut left_out);
        if named.is_empty() {
            return Err(PropellerError::Nothing { is_stripped: binary.images().all(|image| image.is_stripped()) });
        }
        let order = call_chains_of(&named, &functions, &graph);
        let mut notes = left_out.describe();
        if is_old {
            notes.push(
                "the basic block address map is of version 0 or 1: its compiler may be too old for this profile, which is of version 1 (clang 18 \
                 and newer read it)"
                    .into(),
            );
        }
        Ok(PropellerProfile {
            functions: named.into_iter().map(|(_, function, _)| function).collect(),
            order,
            unmapped: if graph.ranges > 0.0 { graph.outside / graph.ranges } else { 0.0 },
            notes,
        })
    }
}

/// The functions by address, each once: linkers fold those that are the same.
fn distinct(map: AddressMap) -> Vec<MappedFunction> {
    let mut functions = map.functions;
    functions.retain(|function| !function.blocks.is_empty());
    functions.sort_by_key(|function| function.entry);
    functions.dedup_by_key(|function| function.entry);
    functions
}

/// Whether every block has a number of its own. Copies that an earlier layout made of blocks have the numbers of their originals.
fn is_numbered_once(function: &MappedFunction) -> bool {
    let mut known = HashSet::new();
    function.blocks.iter().all(|block| known.insert(block.id))
}

/// The blocks that ran, in their order, and whether there are others.
fn layout(function: &MappedFunction, counts: &[f64], edges: &BTreeMap<(usize, usize), f64>) -> (Vec<u32>, bool) {
    let mut ran: Vec<bool> = counts.iter().map(|count| *count > 0.0).collect();
    ran[0] = true;
    edges.keys().for_each(|&(from, to)| (ran[from], ran[to]) = (true, true));
    let blocks: Vec<usize> = (0..ran.len()).filter(|block| ran[*block]).collect();
    let mut places = vec![0; ran.len()];
    blocks.iter().enumerate().for_each(|(place, block)| places[*block] = place);
    let node = |&block: &usize| {
        let of = &function.blocks[block];
        Node { size: of.end.0.saturating_sub(of.start.0).max(1), count: counts[block] }
    };
    let nodes: Vec<Node> = blocks.iter().map(node).collect();
    let edge = |(&(from, to), &count): (&(usize, usize), &f64)| Edge { from: places[from], to: places[to], count };
    let edges: Vec<Edge> = edges.iter().map(edge).collect();
    let order = ext_tsp::order(&nodes, &edges);
    let hot: Vec<u32> = order.into_iter().map(|place| function.blocks[blocks[place]].id).collect();
    let has_cold = hot.len() < function.blocks.len();
    (hot, has_cold)
}

/// Says of functions whose name others have which file they are of. Left out are those of which it is not known, and all that share a name and
/// a file as debug information states it: clang would lay out each of them as the profile says of one. `shared`: also those that did not run.
fn name_units(
    named: &mut Vec<(usize, LaidOutFunction, bool)>,
    functions: &[MappedFunction],
    shared: &SharedNames,
    code: &AnalysedModule,
    left_out: &mut LeftOut,
) {
    if !named.iter().any(|(.., is_shared)| *is_shared) {
        return;
    }
    let entries: Vec<Svma> = shared.keys().copied().collect();
    let units: BTreeMap<Svma, String> = entries
        .iter()
        .zip(unit_names(&code.binary, &entries))
        .filter_map(|(entry, unit)| Some((*entry, unit.filter(|unit| fits_a_line(unit))?)))
        .collect();
    let mut owners: HashMap<(&str, u64), usize> = HashMap::new();
    for (entry, unit) in &units {
        shared[entry].iter().for_each(|name| *owners.entry((unit, *name)).or_default() += 1);
    }
    let before = named.len();
    named.retain_mut(|(index, function, is_shared)| {
        let entry = functions[*index].entry;
        let unit =
            units.get(&entry).filter(|unit| shared[&entry].iter().all(|name| owners[&(unit.as_str(), *name)] == 1));
        function.unit = if *is_shared { unit.cloned() } else { None };
        !*is_shared || function.unit.is_some()
    });
    left_out.ambiguous = before - named.len();
}

/// The order of the functions, as indices of `named`.
fn call_chains_of(named: &[(usize, LaidOutFunction, bool)], functions: &[MappedFunction], graph: &Graph) -> Vec<usize> {
    let mut places = vec![None; functions.len()];
    named.iter().enumerate().for_each(|(place, (index, ..))| places[*index] = Some(place));
    let mut entered = vec![0.0; functions.len()];
    graph.calls.iter().for_each(|((_, function), count)| entered[*function] += count);
    let placed = |(index, ..): &(usize, LaidOutFunction, bool)| {
        let blocks = functions[*index].blocks.iter().zip(&graph.counts[*index]);
        let ran = blocks.filter(|(_, count)| **count > 0.0);
        let sizes = ran.map(|(block, count)| (block.end.0.saturating_sub(block.start.0), count));
        let (size, weight) = sizes
            .fold((0_u64, 0.0), |(size, weight), (of, count)| (size.saturating_add(of), weight + of as f64 * count));
        Placed { size, weight, entered: entered[*index].max(graph.counts[*index][0]) }
    };
    let placed: Vec<Placed> = named.iter().map(placed).collect();
    let call =
        |(&(caller, function), &count): (&(usize, usize), &f64)| Some(((places[caller]?, places[function]?), count));
    call_chains::order(&placed, &graph.calls.iter().filter_map(call).collect())
}

impl LeftOut {
    fn describe(&self) -> Vec<String> {
        let parts = [
            (self.unnamed, "without a symbol that clang could know"),
            (
                self.ambiguous,
                "with a name that others have, in files that debug information does not tell apart (compile with -gline-tables-only, \
                 from one folder, or with -funique-internal-linkage-names)",
            ),
            (self.numbered_twice, "with blocks that were copied by an earlier layout"),
        ];
        let say = |(count, what): &(usize, &str)| {
            let functions = if *count == 1 { "function" } else { "functions" };
            format!("not in the profile: {count} {functions} that ran, {what}")
        };
        parts.iter().filter(|(count, _)| *count > 0).map(say).collect()
    }
}
