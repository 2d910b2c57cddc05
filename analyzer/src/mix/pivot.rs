//! Counts added up by key.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Analysis;
use crate::CountedModule;
use crate::address::Svma;
use crate::annotate::LoopTable;
use crate::code::instructions;
use crate::counting::{Code, GroupId};
use crate::mix::kind::Kind;
use crate::mix::source::{Place, SourceOf, Sources};
use crate::mix::{Dimension, Filter, Key, Unmatched};
use crate::uncertainty::{Design, Interval, Sampled};

/// What to break a mix down by.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Keys of the rows.
    pub rows: Vec<Key>,
    /// Keys of the columns; without any there is one column.
    pub columns: Vec<Key>,
    /// What to keep; all must hold.
    pub filters: Vec<Filter>,
    /// Threads that read debug information, where a key needs it; the result does not depend on them.
    pub threads: usize,
}

impl Query {
    /// Whether any key is that of loops, which are found best with
    /// [`Detail::Branches`](crate::counting::Detail::Branches).
    pub fn asks_loops(&self) -> bool {
        let keys = self.rows.iter().chain(&self.columns).chain(self.filters.iter().map(|filter| &filter.key));
        keys.into_iter().any(|key| *key == Dimension::Loop)
    }
}

/// Executed instructions that have the same values of all keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The values of the row keys.
    pub row: Vec<String>,
    /// The values of the column keys.
    pub column: Vec<String>,
    /// How many instructions were executed.
    pub count: f64,
    /// What that would be in the replicates.
    pub sampled: Sampled,
}

/// A mix: who executed how many instructions of which kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    /// Sorted by the row's total, largest first, then by row and column values.
    pub cells: Vec<Cell>,
    /// Executed instructions that passed the filters.
    pub instructions: f64,
    /// What that would be in the replicates.
    pub sampled: Sampled,
    /// What the replicates mean.
    pub design: Design,
    /// Values of filters that nothing has.
    pub unmatched: Vec<Unmatched>,
    /// What was damaged or missing in debug information, where it was read, in words.
    pub notes: Vec<String>,
}

/// How uncertain a number of instructions and its share are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// Of the number.
    pub count: Interval,
    /// Of its share of all instructions, 0 to 1.
    pub share: Interval,
}

impl Mix {
    /// How uncertain the sum of these cells is.
    pub fn uncertainty<'a>(&self, cells: impl Iterator<Item = &'a Cell>) -> Uncertainty {
        let (mut count, mut sampled) = (0.0, Sampled::default());
        for cell in cells {
            count += cell.count;
            sampled.add(&cell.sampled, 1.0);
        }
        Uncertainty {
            count: self.design.interval(count, &sampled),
            share: self.design.share((count, &sampled), (self.instructions, &self.sampled)),
        }
    }
}

/// A query that cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MixError {
    /// More keys than fit.
    #[error("rows, columns and filters name {0} different keys, at most {MAX_KEYS} are possible")]
    TooManyKeys(usize),
    /// The query names no key for the rows.
    #[error("a mix needs at least one row key")]
    NoRows,
}

/// Value of instruction keys where the code was not read.
pub const UNREADABLE: &str = "[unreadable]";

/// Value of the key of loops where code is in none.
pub const NO_LOOP: &str = "[no loop]";

const MAX_KEYS: usize = 12;
type Ids = [u32; MAX_KEYS];

/// Adds up executed instructions by the keys of the query's rows and columns.
///
/// # Errors
/// The query has no rows, or more keys than a mix can have.
pub fn mix(analysis: &Analysis, query: &Query) -> Result<Mix, MixError> {
    let loops = if query.asks_loops() { LoopTable::of(analysis, query.threads) } else { LoopTable::default() };
    mix_with_loops(analysis, query, &loops)
}

/// The same, with loops that have been looked for.
pub(crate) fn mix_with_loops(analysis: &Analysis, query: &Query, loops: &LoopTable) -> Result<Mix, MixError> {
    if query.rows.is_empty() {
        return Err(MixError::NoRows);
    }
    let mut keys: Vec<Key> = query.rows.iter().chain(&query.columns).cloned().collect();
    let shown = keys.len();
    for filter in &query.filters {
        if !keys.contains(&filter.key) {
            keys.push(filter.key.clone());
        }
    }
    if keys.len() > MAX_KEYS {
        return Err(MixError::TooManyKeys(keys.len()));
    }
    let mut filters = query.filters.clone();
    let mut unmatched = Vec::new();
    if filters.iter().any(|filter| filter.key == Dimension::Function) {
        let existing = functions(analysis);
        let of_functions = filters.iter_mut().filter(|filter| filter.key == Dimension::Function);
        of_functions.for_each(|filter| unmatched.extend(filter.resolve(&existing)));
    }
    let mut pivot = Pivot {
        with_form: keys.iter().any(Key::needs_form),
        keys,
        shown,
        query,
        loops,
        filters,
        values: Values::default(),
        of_kinds: HashMap::new(),
        sums: HashMap::new(),
    };
    let needs_source = pivot.keys.iter().any(|key| key.is_of_source());
    let sources = if needs_source { Sources::read(analysis, query.threads) } else { Sources::default() };
    for (index, module) in analysis.counted.iter().enumerate() {
        pivot.add_module(analysis, (index, module), &sources.of(module));
    }
    for filter in pivot.filters.iter_mut().filter(|filter| filter.key != Dimension::Function) {
        unmatched.extend(filter.resolve(&pivot.values.seen(&filter.key, &pivot.keys)));
    }
    Ok(Mix { unmatched, notes: sources.notes(), ..pivot.finish(analysis.design) })
}

/// The names of all functions that ran.
fn functions(analysis: &Analysis) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for module in &analysis.counted {
        let ran: BTreeMap<u32, u32> =
            module.blocks.iter().map(|block| (module.function_id(block.index), block.index)).collect();
        names.extend(ran.into_values().map(|index| module.function_name(index).unwrap_or(UNREADABLE.into())));
    }
    names
}

struct Pivot<'a> {
    keys: Vec<Key>,
    shown: usize,
    /// Whether a key is of the form of instructions.
    with_form: bool,
    query: &'a Query,
    /// Empty where no key is of them.
    loops: &'a LoopTable,
    /// Those of the query, whose functions have been looked for.
    filters: Vec<Filter>,
    values: Values,
    /// The values of attributes, by kind of instruction.
    of_kinds: HashMap<Kind, Ids>,
    sums: HashMap<Ids, (f64, Sampled)>,
}

/// Interned values and, per place of a key, whether a value passes the filters on that key: of all values that there are.
#[derive(Default)]
struct Values {
    ids: HashMap<String, u32>,
    texts: Vec<String>,
    passes: HashMap<(usize, u32), bool>,
}

impl Values {
    fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.ids.insert(text.to_string(), id);
        self.texts.push(text.to_string());
        id
    }

    /// All values of a key that has filters.
    fn seen(&self, key: &Key, keys: &[Key]) -> BTreeSet<String> {
        let ids = self.passes.keys().filter(|(place, _)| keys.get(*place) == Some(key)).map(|(_, id)| *id);
        ids.map(|id| self.texts[id as usize].clone()).collect()
    }

    fn pass(&mut self, filters: &[Filter], (place, key): (usize, &Key), id: u32) -> bool {
        *self.passes.entry((place, id)).or_insert_with(|| {
            let text = &self.texts[id as usize];
            filters.iter().filter(|filter| filter.key == *key).all(|filter| filter.keeps(text))
        })
    }
}

impl Pivot<'_> {
    fn add_module(&mut self, analysis: &Analysis, (place, module): (usize, &CountedModule), source: &SourceOf<'_>) {
        // Executions of each block by group, in order of blocks, so that every block is decoded once.
        let mut counts: Vec<(u32, GroupId, f64, &Sampled)> = Vec::with_capacity(module.counts.sums.len());
        module.for_each_group_count(&analysis.scale, |group, block, count, sampled| {
            if count > 0.0 {
                counts.push((block.index, group, count, sampled));
            }
        });
        counts.sort_unstable_by_key(|(index, group, ..)| (*index, *group));
        let mut functions: HashMap<u32, u32> = HashMap::new();
        let mut kinds: Vec<(Ids, f64)> = Vec::new();
        let mut places: HashMap<Place, u32> = HashMap::new();
        let mut blocks = module.blocks.iter();
        for group_counts in counts.chunk_by(|a, b| a.0 == b.0) {
            let Some(block) = blocks.find(|block| block.index == group_counts[0].0) else { return };
            let mut of_block: Ids = [0; MAX_KEYS];
            for (slot, key) in of_block.iter_mut().zip(&self.keys) {
                *slot = match key.dimension() {
                    Some(Dimension::Function) => {
                        *functions.entry(module.function_id(block.index)).or_insert_with(|| {
                            self.values.id(&module.function_name(block.index).unwrap_or(UNREADABLE.into()))
                        })
                    }
                    Some(Dimension::Loop) => {
                        let innermost = self.loops.innermost(place, block.index);
                        let outside = if module.is_read() { NO_LOOP } else { UNREADABLE };
                        self.values.id(innermost.map_or(outside, |one| &one.name))
                    }
                    Some(Dimension::Module) => self.values.id(&analysis.modules.get(module.counts.module).path),
                    Some(Dimension::Chosen) => self.values.id(block.count.chosen.as_str()),
                    Some(Dimension::BlockLength) if module.is_read() => {
                        self.values.id(&block.size.instructions.to_string())
                    }
                    Some(Dimension::BlockLength) => self.values.id(UNREADABLE),
                    _ => 0,
                };
            }
            self.kinds_of_instructions(module, block, of_block, &mut kinds, (source, &mut places));
            for (_, group, count, sampled) in group_counts {
                let of_group = self.with_group(analysis, *group);
                for (kind, times) in &kinds {
                    let mut cell = *kind;
                    for (slot, value) in cell.iter_mut().zip(&of_group) {
                        if let Some(value) = value {
                            *slot = *value;
                        }
                    }
                    if self.passes(&cell) {
                        cell[self.shown..].fill(0);
                        let (sum, sampled_sum) = self.sums.entry(cell).or_default();
                        *sum += times * count;
                        sampled_sum.add(sampled, *times);
                    }
                }
            }
        }
    }

    /// The values that depend on the group, in their places.
    fn with_group(&mut self, analysis: &Analysis, group: GroupId) -> [Option<u32>; MAX_KEYS] {
        let group = analysis.group(group);
        let mut places = [None; MAX_KEYS];
        for (place, key) in places.iter_mut().zip(&self.keys) {
            *place = match key.dimension() {
                Some(Dimension::Process) => Some(self.values.id(&group.process)),
                Some(Dimension::Thread) => Some(self.values.id(&group.thread)),
                Some(Dimension::Comm) => Some(self.values.id(&group.comm)),
                Some(Dimension::Phase) => Some(self.values.id(&group.phase)),
                _ => None,
            };
        }
        places
    }

    /// The different kinds of instructions in a block, and how many there are of each.
    fn kinds_of_instructions(
        &mut self,
        module: &CountedModule,
        block: &crate::CountedBlock,
        of_block: Ids,
        kinds: &mut Vec<(Ids, f64)>,
        (source, places): (&SourceOf<'_>, &mut HashMap<Place, u32>),
    ) {
        kinds.clear();
        let asks_instructions = self.keys.iter().any(|key| key.is_of_instruction());
        let Code::Read(code) = &module.counts.code else {
            let mut key = of_block;
            for (slot, dimension) in key.iter_mut().zip(&self.keys) {
                if dimension.is_of_instruction() {
                    *slot = self.values.id(UNREADABLE);
                }
            }
            kinds.push((key, block.size.instructions));
            return;
        };
        if !asks_instructions {
            kinds.push((of_block, block.size.instructions));
            return;
        }
        for instruction in instructions(&code.binary.image, &code.blocks.blocks()[block.index as usize]) {
            let of_kind = self.of_kind(Kind::of(&instruction, self.with_form));
            let mut key = of_block;
            for ((slot, dimension), attribute) in key.iter_mut().zip(&self.keys).zip(of_kind) {
                if dimension.is_attribute() {
                    *slot = attribute;
                } else if let Some(dimension) = dimension.dimension().filter(|dimension| dimension.is_of_source()) {
                    let address = Svma(instruction.ip());
                    let place = source.place(dimension, address);
                    *slot = *places.entry(place).or_insert_with(|| self.values.id(&source.value(place, address)));
                }
            }
            match kinds.iter_mut().find(|(other, _)| *other == key) {
                Some((_, times)) => *times += 1.0,
                None => kinds.push((key, 1.0)),
            }
        }
    }

    /// The values of the attributes, in their places.
    fn of_kind(&mut self, kind: Kind) -> Ids {
        *self.of_kinds.entry(kind).or_insert_with(|| {
            let mut ids = [0; MAX_KEYS];
            for (slot, key) in ids.iter_mut().zip(&self.keys) {
                if let Some(value) = key.value_of(&kind) {
                    *slot = self.values.id(&value);
                }
            }
            ids
        })
    }

    fn passes(&mut self, cell: &Ids) -> bool {
        let Self { keys, filters, values, .. } = self;
        // All keys are looked at: what one of them leaves out has values of the others.
        let all = |all, (key, &id): ((usize, &Key), &u32)| values.pass(filters, key, id) && all;
        filters.is_empty() || keys.iter().enumerate().zip(cell).fold(true, all)
    }

    fn finish(self, design: Design) -> Mix {
        let rows = self.query.rows.len();
        let text = |id: &u32| self.values.texts.get(*id as usize).cloned().unwrap_or_default();
        let mut cells: Vec<Cell> = self
            .sums
            .iter()
            .map(|(key, (count, sampled))| Cell {
                row: key[..rows].iter().map(text).collect(),
                column: key[rows..self.shown].iter().map(text).collect(),
                count: *count,
                sampled: sampled.clone(),
            })
            .collect();
        cells.sort_by(|a, b| (&a.row, &a.column).cmp(&(&b.row, &b.column)));
        // The sum of nothing is -0.
        let instructions = cells.iter().map(|cell| cell.count).sum::<f64>() + 0.0;
        let mut row_totals: HashMap<Vec<String>, f64> = HashMap::new();
        for cell in &cells {
            *row_totals.entry(cell.row.clone()).or_default() += cell.count;
        }
        cells.sort_by(|a, b| {
            let (a_total, b_total) = (row_totals[&a.row], row_totals[&b.row]);
            b_total.total_cmp(&a_total).then_with(|| (&a.row, &a.column).cmp(&(&b.row, &b.column)))
        });
        let mut sampled = Sampled::default();
        cells.iter().for_each(|cell| sampled.add(&cell.sampled, 1.0));
        Mix { cells, instructions, sampled, design, unmatched: Vec::new(), notes: Vec::new() }
    }
}
