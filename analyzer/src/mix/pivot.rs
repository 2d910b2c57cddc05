//! Counts added up by key.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use foldhash::HashMap as FastMap;
use iced_x86::{FlowControl, Instruction};

use crate::address::Svma;
use crate::annotate::{LoopTable, in_function};
use crate::code::instructions;
use crate::counting::{Code, GroupId};
use crate::mix::branches::{Branches, Taken};
use crate::mix::calls::Calls;
use crate::mix::kind::Kind;
use crate::mix::operations::{ExecutedOperations, Operations, OperationsOf};
use crate::mix::pieces::{Executed, Piece, pieces};
use crate::mix::source::{Place, SourceOf, Sources};
use crate::mix::timed::{Timed, cycles_of_each};
use crate::mix::values::NONE;
use crate::mix::{Dimension, Filter, Key, Unmatched};
use crate::parallel::in_parallel;
use crate::uncertainty::{Design, Interval, SLICES, Sampled, Slice, SliceSet};
use crate::{Analysis, CountedBlock, CountedModule, GroupCount};

/// What to break a mix down by.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Keys of the rows.
    pub rows: Vec<Key>,
    /// Keys of the columns; without any there is one column.
    pub columns: Vec<Key>,
    /// What to keep; all must hold.
    pub filters: Vec<Filter>,
    /// Whether it is asked how often functions were called. It is known where branches were counted.
    pub calls: bool,
    /// Whether it is asked how often branches were taken. It is known where branches were counted, and not by process, thread or phase.
    pub taken: bool,
    /// Whether it is asked how many floating-point operations and bytes of memory instructions are.
    pub operations: bool,
    /// Whether it is asked how many cycles instructions took. It is known where branches were timed, and an analysis was made with
    /// [`PathQuery::cycles`](crate::paths::PathQuery::cycles).
    pub cycles: bool,
    /// Whether it is asked which part of the time code took. It is known where the analysis [tells time](Analysis::tells_time).
    pub time: bool,
    /// Whether it is asked how many of the instructions of each block pass the filters.
    pub blocks: bool,
    /// Threads that add up, and read debug information where a key needs it; the result does not depend on them.
    pub threads: usize,
}

impl Query {
    /// All keys of rows, columns and filters.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.rows.iter().chain(&self.columns).chain(self.filters.iter().map(|filter| &filter.key))
    }

    /// Whether any key is of loops, which are found best with [`Detail::Branches`](crate::counting::Detail::Branches).
    pub fn asks_loops(&self) -> bool {
        self.keys().filter_map(Key::dimension).any(Dimension::is_of_loops)
    }

    /// Whether it matters where branches went.
    pub fn needs_branches(&self) -> bool {
        self.calls || self.taken || self.asks_loops()
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
    /// The samples and streams that it was made from. Those of a block are shared out evenly among its instructions.
    pub samples: f64,
    /// The branches among them that were taken, if the query asks for it.
    pub taken: Taken,
    /// Floating-point operations and bytes of memory, if the query asks for them.
    pub operations: Option<Box<ExecutedOperations>>,
    /// Cycles and time, as far as they are known, if the query asks for them.
    pub timed: Timed,
}

/// The sum of some cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// Executed instructions.
    pub count: f64,
    /// What that would be in the replicates.
    pub sampled: Sampled,
    /// The samples and streams that it was made from.
    pub samples: f64,
    /// The branches among them that were taken, if the query asks for it.
    pub taken: Taken,
    /// Floating-point operations and bytes of memory, if the query asks for them.
    pub operations: Option<Box<ExecutedOperations>>,
    /// Cycles and time, as far as they are known, if the query asks for them.
    pub timed: Timed,
    /// By slice: how many of the cells it has seen.
    seen: [u32; SLICES],
}

/// A mix: who executed how many instructions of which kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    /// Sorted by the row's total, largest first, then by row and column values.
    pub cells: Vec<Cell>,
    /// Executed instructions that passed the filters.
    pub instructions: f64,
    /// All cells together.
    pub all: Sum,
    /// What the replicates mean.
    pub design: Design,
    /// Whether there were filters, so that all of this may be a part of what ran.
    pub is_filtered: bool,
    /// Whether the branches say which were mispredicted, if the query asks for those that were taken.
    pub knows_mispredictions: bool,
    /// How often functions were called, if the query asks for it.
    pub calls: Calls,
    /// If the query asks for it: executed instructions that pass the filters, by module of the analysis and block of its code
    /// ([`CountedBlock::index`]); blocks without any are left out.
    pub by_block: HashMap<(usize, u32), f64>,
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
    /// The functions that have instructions which pass the filters, by module of the analysis and address of their symbol, if the query asks
    /// for blocks.
    pub fn functions(&self, analysis: &Analysis) -> BTreeSet<(usize, Svma)> {
        let symbol =
            |&(module, block): &(usize, u32)| Some((module, analysis.counted.get(module)?.function_symbol(block)?));
        self.by_block.keys().filter_map(symbol).collect()
    }

    /// The blocks that have such instructions, by path of their module and first address, if the query asks for blocks.
    pub fn blocks<'a>(&self, analysis: &'a Analysis) -> HashSet<(&'a str, Svma)> {
        let blocks = analysis.counted.iter().enumerate().flat_map(|(at, module)| {
            let path = &*analysis.modules.get(module.counts.module).path;
            let passes = move |block: &&CountedBlock| self.by_block.contains_key(&(at, block.index));
            module.blocks.iter().filter(passes).map(move |block| (path, block.start))
        });
        blocks.collect()
    }

    /// How uncertain the sum of these cells is.
    pub fn uncertainty<'a>(&self, cells: impl IntoIterator<Item = &'a Cell>) -> Uncertainty {
        self.uncertainty_of(&Sum::of(cells))
    }

    /// How uncertain a sum and its share of all are.
    pub fn uncertainty_of(&self, sum: &Sum) -> Uncertainty {
        Uncertainty { count: self.design.interval(sum.count, &sum.sampled), share: self.share_within(sum, &self.all) }
    }

    /// How uncertain the share is that a sum has of another one, of which it is a part: of all, or of a group or row.
    pub fn share_within(&self, part: &Sum, whole: &Sum) -> Interval {
        // All that filters keep may be all that they can keep: that it was seen seldom does not matter.
        let is_all_that_is_kept = self.is_filtered && part.count >= whole.count;
        if std::ptr::eq(whole, &self.all) && !is_all_that_is_kept {
            return self.design.share((part.count, &part.sampled), (whole.count, &whole.sampled));
        }
        let rest = whole.without(part);
        self.design.part((part.count, &part.sampled), (rest.0, &rest.1))
    }
}

impl Sum {
    /// Of these cells.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let mut sum = Sum::default();
        for cell in cells {
            let Cell { count, sampled, samples, taken, operations, timed, .. } = cell;
            sum.add((*count, sampled, *samples), (*taken, *timed), operations.as_deref());
            for (cells, slice) in sum.seen.iter_mut().zip(Slice::all()) {
                *cells += u32::from(cell.sampled.seen.has(slice));
            }
        }
        sum
    }

    /// Adds cells together. How many cells a slice has seen is for who has these.
    fn add(
        &mut self,
        (count, sampled, samples): (f64, &Sampled, f64),
        (taken, timed): (Taken, Timed),
        operations: Option<&ExecutedOperations>,
    ) {
        self.count += count;
        self.sampled.add(sampled, 1.0);
        self.samples += samples;
        self.taken.add(taken);
        self.timed.add(timed);
        if let Some(operations) = operations {
            self.operations.get_or_insert_default().add(operations);
        }
    }

    /// What it has more than one of its parts: count and replicates.
    fn without(&self, part: &Sum) -> (f64, Sampled) {
        let replicates = self.sampled.replicates.zip(&part.sampled.replicates, |whole, part| whole - part);
        let seen = Slice::all().zip(self.seen.iter().zip(&part.seen)).filter(|(_, (all, part))| all > part);
        (self.count - part.count, Sampled { replicates, seen: SliceSet::of(seen.map(|(slice, _)| slice)) })
    }
}

/// Bytes as a disassembler shows them: `48 89 e5`.
fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
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
    /// Fewer counts (of a compiler a quarter, of most programs all) are added up before a thread would be there.
    const LEAST: usize = 1 << 14;
    /// More pieces would take more memory, and more time to be put together.
    const MOST_PIECES: usize = 8;
    let counts: usize = analysis.counted.iter().map(|module| module.counts.sums.len()).sum();
    mix_by_pieces(analysis, query, loops, counts.div_ceil(MOST_PIECES).max(LEAST))
}

fn mix_by_pieces(analysis: &Analysis, query: &Query, loops: &LoopTable, counts: usize) -> Result<Mix, MixError> {
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
    let needs_source = keys.iter().any(|key| key.is_of_source());
    let sources = if needs_source { Sources::read(analysis, query.threads) } else { Sources::default() };
    let tells_time = query.time && analysis.tells_time();
    let executed = Executed::all(analysis, query.taken, tells_time);
    let empty = || Pivot {
        with_form: keys.iter().any(Key::needs_form),
        keys: &keys,
        shown,
        query,
        tells_time,
        loops,
        filters: filters.clone(),
        values: Values::default(),
        of_kinds: FastMap::default(),
        operations: query.operations.then(OperationsOf::new),
        by_block: HashMap::new(),
        sums: FastMap::default(),
    };
    let of_piece = |piece: Piece<'_>| {
        let mut pivot = empty();
        for (of, counts) in piece {
            pivot.add_blocks(analysis, of, counts, &sources.of(of.module));
        }
        pivot
    };
    let mut pivot = None;
    let mut pieces = pieces(&executed, counts).into_iter().peekable();
    while pieces.peek().is_some() {
        // Not all at once: of each, there may be as many cells as in the end.
        let some = pieces.by_ref().take(query.threads.max(1)).collect();
        let made = in_parallel(some, query.threads, of_piece);
        pivot = pivot.into_iter().chain(made).reduce(Pivot::with);
    }
    let mut pivot = pivot.unwrap_or_else(empty);
    for filter in pivot.filters.iter_mut().filter(|filter| filter.key != Dimension::Function) {
        unmatched.extend(filter.resolve(&pivot.values.seen(&filter.key, pivot.keys)));
    }
    let calls = if query.calls { Calls::of(analysis) } else { Calls::default() };
    let mut notes = sources.notes();
    if query.calls || query.taken {
        notes.extend(Branches::not_known(analysis));
    }
    let flow = analysis.flow.as_ref().filter(|_| query.taken);
    let knows_mispredictions = flow.is_some_and(|of| of.flow().knows_mispredictions());
    let is_filtered = !query.filters.is_empty();
    Ok(Mix { unmatched, notes, calls, is_filtered, knows_mispredictions, ..pivot.finish(analysis.design) })
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
    keys: &'a [Key],
    shown: usize,
    /// Whether a key is of the form of instructions.
    with_form: bool,
    query: &'a Query,
    /// Whether it asks for time, and that is known.
    tells_time: bool,
    /// Empty where no key is of them.
    loops: &'a LoopTable,
    /// Those of the query, whose functions have been looked for.
    filters: Vec<Filter>,
    values: Values,
    /// The values of attributes, by kind of instruction.
    of_kinds: FastMap<Kind, Ids>,
    /// What single instructions do, if the query asks for it.
    operations: Option<OperationsOf>,
    by_block: HashMap<(usize, u32), f64>,
    sums: FastMap<Ids, Sum>,
}

/// What places in a block are called by, and what is known of them.
struct Sites<'a> {
    /// The name of the function, as a value.
    function: u32,
    branches: Branches<'a>,
}

/// Instructions of a block that have the same values of all keys.
struct Part {
    values: Ids,
    /// How many they are.
    instructions: f64,
    /// The branches among them that were taken.
    taken: Taken,
    /// What they do, each executed once, if the query asks for it and their code was read.
    operations: Option<Operations>,
}

/// Interned values and, per place of a key, whether a value passes the filters on that key: of all values that there are.
#[derive(Default)]
struct Values {
    ids: FastMap<String, u32>,
    texts: Vec<String>,
    passes: FastMap<(usize, u32), bool>,
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
    /// Adds what was executed of some blocks of a module.
    fn add_blocks(
        &mut self,
        analysis: &Analysis,
        &Executed { at, module, branches, .. }: &Executed<'_>,
        counts: &[GroupCount<'_>],
        source: &SourceOf<'_>,
    ) {
        let of_function = |key: &Key| {
            use Dimension::{Block, BranchSite, Function};
            matches!(key.dimension(), Some(Function | BranchSite | Block))
        };
        let names_functions = self.keys.iter().any(of_function);
        let mut functions: HashMap<u32, u32> = HashMap::new();
        let mut parts: Vec<Part> = Vec::new();
        let mut places: FastMap<Place, u32> = FastMap::default();
        for group_counts in counts.chunk_by(|a, b| a.block.index == b.block.index) {
            let block = group_counts[0].block;
            let function = names_functions.then(|| {
                *functions
                    .entry(module.function_id(block.index))
                    .or_insert_with(|| self.values.id(&module.function_name(block.index).unwrap_or(UNREADABLE.into())))
            });
            let mut of_block: Ids = [0; MAX_KEYS];
            for (slot, key) in of_block.iter_mut().zip(self.keys) {
                *slot = match key.dimension() {
                    Some(Dimension::Function) => function.unwrap_or_default(),
                    Some(Dimension::Module) => self.values.id(&analysis.modules.get(module.counts.module).path),
                    Some(Dimension::Chosen) => self.values.id(block.count.chosen.as_str()),
                    Some(Dimension::Block) => match module.function_symbol(block.index) {
                        Some(symbol) => {
                            let name = self.place(function.unwrap_or_default(), symbol.0, block.start.0);
                            self.values.id(&name)
                        }
                        None => self.values.id(UNREADABLE),
                    },
                    Some(Dimension::BlockLength) if module.is_read() => {
                        self.values.id(&block.size.instructions.to_string())
                    }
                    Some(Dimension::BlockLength) => self.values.id(UNREADABLE),
                    Some(Dimension::Loop | Dimension::LoopDepth) if !module.is_read() => self.values.id(UNREADABLE),
                    Some(Dimension::Loop) => {
                        let innermost = self.loops.innermost(at, block.index);
                        self.values.id(innermost.map_or(NO_LOOP, |one| &one.name))
                    }
                    Some(Dimension::LoopDepth) => {
                        let depth = self.loops.innermost(at, block.index).map_or(0, |one| one.depth);
                        self.values.id(&depth.to_string())
                    }
                    _ => 0,
                };
            }
            let cycles = if self.query.cycles { cycles_of_each(analysis, at, block) } else { None };
            let sites = Sites { function: function.unwrap_or_default(), branches };
            self.parts_of_block(module, block, (of_block, &sites), &mut parts, (source, &mut places));
            for GroupCount { group, count, samples, sampled, ebs, .. } in group_counts {
                let of_group = self.with_group(analysis, *group);
                let length = block.size.instructions.max(1.0);
                let samples_of_each = *samples as f64 / length;
                for Part { values, instructions, taken, operations } in &parts {
                    let mut cell = *values;
                    for (slot, value) in cell.iter_mut().zip(&of_group) {
                        if let Some(value) = value {
                            *slot = *value;
                        }
                    }
                    if self.passes(&cell) {
                        cell[self.shown..].fill(0);
                        if self.query.blocks {
                            *self.by_block.entry((at, block.index)).or_default() += instructions * count;
                        }
                        let sum = self.sums.entry(cell).or_default();
                        sum.count += instructions * count;
                        sum.sampled.add(sampled, *instructions);
                        sum.samples += instructions * samples_of_each;
                        sum.taken.add(*taken);
                        sum.timed.add(Timed::executed(instructions * count, cycles));
                        if self.tells_time {
                            sum.timed.add(Timed::part_of(*ebs, instructions / length));
                        }
                        if let Some(operations) = operations {
                            sum.operations.get_or_insert_default().execute(operations, (*count, sampled));
                        }
                    }
                }
            }
        }
    }

    /// The values that depend on the group, in their places.
    fn with_group(&mut self, analysis: &Analysis, group: GroupId) -> [Option<u32>; MAX_KEYS] {
        let group = analysis.group(group);
        let mut places = [None; MAX_KEYS];
        for (place, key) in places.iter_mut().zip(self.keys) {
            *place = match key.dimension() {
                Some(Dimension::Process) => Some(self.values.id(&group.process)),
                Some(Dimension::Thread) => Some(self.values.id(&group.thread)),
                Some(Dimension::Comm) => Some(self.values.id(&group.comm)),
                Some(Dimension::Phase) => Some(self.values.id(&group.phase)),
                Some(Dimension::Cgroup) => Some(self.values.id(&group.cgroup)),
                _ => None,
            };
        }
        places
    }

    /// The instructions of a block, those with the same values together.
    fn parts_of_block(
        &mut self,
        module: &CountedModule,
        block: &CountedBlock,
        (of_block, sites): (Ids, &Sites<'_>),
        parts: &mut Vec<Part>,
        (source, places): (&SourceOf<'_>, &mut FastMap<Place, u32>),
    ) {
        parts.clear();
        let mut whole = Part {
            values: of_block,
            instructions: block.size.instructions,
            taken: sites.branches.within(block.start..block.end),
            operations: None,
        };
        let asks_instructions = self.operations.is_some() || self.keys.iter().any(Key::is_of_instruction);
        let Code::Read(code) = &module.counts.code else {
            for (slot, dimension) in whole.values.iter_mut().zip(self.keys) {
                if dimension.is_of_instruction() {
                    *slot = self.values.id(UNREADABLE);
                }
            }
            parts.push(whole);
            return;
        };
        if !asks_instructions {
            parts.push(whole);
            return;
        }
        for instruction in instructions(&code.binary.image, &code.blocks.blocks()[block.index as usize]) {
            let of_kind = self.of_kind(Kind::of(&instruction, self.with_form));
            let mut values = of_block;
            let address = Svma(instruction.ip());
            for ((slot, key), attribute) in values.iter_mut().zip(self.keys).zip(of_kind) {
                match key.dimension() {
                    _ if key.is_attribute() => *slot = attribute,
                    Some(Dimension::BranchSite) => {
                        let site = self.site(&instruction, module.function_symbol(block.index), sites.function);
                        *slot = self.values.id(&site);
                    }
                    Some(Dimension::CodeBytes) => {
                        let bytes = code.binary.image.bytes_up_to(address, instruction.len() as u64);
                        *slot = self.values.id(&in_hex(bytes));
                    }
                    Some(dimension) if dimension.is_of_source() => {
                        let place = source.place(dimension, address);
                        *slot = *places.entry(place).or_insert_with(|| self.values.id(&source.value(place, address)));
                    }
                    _ => {}
                }
            }
            let taken = sites.branches.within(address..Svma(instruction.next_ip()));
            let operations = self.operations.as_mut().map(|of| of.one(&instruction));
            parts.push(Part { values, instructions: 1.0, taken, operations });
        }
        parts.sort_by_key(|part| part.values);
        parts.dedup_by(|next, kept| {
            let same = next.values == kept.values;
            if same {
                kept.instructions += next.instructions;
                kept.taken.add(next.taken);
                let sums = kept.operations.as_mut().zip(next.operations.as_ref());
                sums.into_iter().for_each(|(sum, more)| sum.add(more, 1.0));
            }
            same
        });
    }

    /// Where a branch is: `main+0x2a`; `none` of what is no branch.
    fn site(&self, instruction: &Instruction, symbol: Option<Svma>, function: u32) -> String {
        if instruction.flow_control() == FlowControl::Next {
            return NONE.to_owned();
        }
        self.place(function, symbol.map_or(instruction.ip(), |symbol| symbol.0), instruction.ip())
    }

    /// An address by the function with that symbol: `main+0x2a`.
    fn place(&self, function: u32, symbol: u64, at: u64) -> String {
        in_function(&self.values.texts[function as usize], at.wrapping_sub(symbol).cast_signed())
    }

    /// The values of the attributes, in their places.
    fn of_kind(&mut self, kind: Kind) -> Ids {
        *self.of_kinds.entry(kind).or_insert_with(|| {
            let mut ids = [0; MAX_KEYS];
            for (slot, key) in ids.iter_mut().zip(self.keys) {
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

    /// With the sums of blocks that come after its own.
    fn with(mut self, other: Self) -> Self {
        let ids: Vec<u32> = other.values.texts.iter().map(|text| self.values.id(text)).collect();
        let id = |other: u32| ids[other as usize];
        self.values.passes.extend(other.values.passes.into_iter().map(|((place, of), pass)| ((place, id(of)), pass)));
        self.by_block.extend(other.by_block);
        for (mut cell, sum) in other.sums {
            cell[..self.shown].iter_mut().for_each(|value| *value = id(*value));
            let Sum { count, sampled, samples, taken, operations, timed, .. } = sum;
            let all = self.sums.entry(cell).or_default();
            all.add((count, &sampled, samples), (taken, timed), operations.as_deref());
        }
        self
    }

    fn finish(self, design: Design) -> Mix {
        let rows = self.query.rows.len();
        let text = |id: &u32| self.values.texts.get(*id as usize).cloned().unwrap_or_default();
        let mut cells: Vec<Cell> = self
            .sums
            .iter()
            .map(|(key, sum)| Cell {
                row: key[..rows].iter().map(text).collect(),
                column: key[rows..self.shown].iter().map(text).collect(),
                count: sum.count,
                sampled: sum.sampled.clone(),
                samples: sum.samples,
                taken: sum.taken,
                timed: sum.timed,
                operations: sum.operations.clone(),
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
        let all = Sum { count: instructions, ..Sum::of(&cells) };
        Mix { cells, instructions, all, design, by_block: self.by_block, ..Mix::default() }
    }
}

#[cfg(test)]
mod tests {
    use model::Rules;
    use perfdata::Recording;
    use testing::Fixture;

    use super::*;
    use crate::binaries::{BinaryOverride, BinarySearch};
    use crate::counting::{Detail, GroupBy, TaskGroups};
    use crate::recording::Subset;
    use crate::{Options, analyze};

    #[test]
    fn pieces_and_threads_change_nothing() {
        let fixture = Fixture::bursts("threads");
        let recording = Recording::open(&fixture.recording).unwrap();
        let named = BinaryOverride::new(Some(fixture.recorded_as.into()), fixture.binary.clone());
        let options = Options {
            search: BinarySearch { overrides: vec![named], ..BinarySearch::default() },
            subset: Subset::Whole,
            group_by: GroupBy { tasks: TaskGroups::Thread, ..GroupBy::default() },
            detail: Detail::Branches,
            core: None,
            threads: 1,
            rules: &Rules::default(),
        };
        let analysis = analyze(&recording, &options, &|_| ()).unwrap();
        let query = |threads: usize, rows: &[Dimension]| Query {
            rows: rows.iter().copied().map(Key::from).collect(),
            columns: vec![Dimension::Thread.into()],
            filters: vec![Filter::read("mnemonic!=nop,nothing", &Default::default()).unwrap()],
            taken: true,
            operations: true,
            blocks: true,
            threads,
            ..Query::default()
        };
        for rows in [&[Dimension::Mnemonic][..], &[Dimension::Function, Dimension::BranchSite], &[Dimension::Module]] {
            let mix = |threads, counts| {
                mix_by_pieces(&analysis, &query(threads, rows), &LoopTable::default(), counts).unwrap()
            };
            let whole = mix(1, usize::MAX);
            assert!(whole.cells.len() > 1 && whole.by_block.len() > 20);
            for counts in [1, 7, 100] {
                let one = mix(1, counts);
                assert_eq!(one, mix(3, counts), "{counts}");
                assert!((one.instructions / whole.instructions - 1.0).abs() < 1e-12);
                assert_eq!((&one.unmatched, one.by_block.len()), (&whole.unmatched, whole.by_block.len()));
                let names = |mix: &Mix| -> BTreeMap<Vec<String>, [f64; 4]> {
                    let numbers = |cell: &Cell| {
                        let bytes = cell.operations.as_ref().map_or(0.0, |operations| operations.sum.bytes());
                        [cell.count, cell.samples, cell.taken.count, bytes]
                    };
                    mix.cells.iter().map(|cell| ([&cell.row[..], &cell.column].concat(), numbers(cell))).collect()
                };
                let (one, whole) = (names(&one), names(&whole));
                assert!(one.keys().eq(whole.keys()));
                for (one, whole) in one.values().flatten().zip(whole.values().flatten()) {
                    assert!((one - whole).abs() <= 1e-9 * whole.abs(), "{one} {whole}");
                }
            }
        }
    }
}
