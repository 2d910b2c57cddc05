//! From a mix to the work of functions or loops.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Analysis;
use crate::annotate::{LoopPlace, LoopTable};
use crate::mix::{self, Dimension, Filter, Key, MixError, NO_LOOP, Taxonomies, UNREADABLE, Unmatched, mix_with_loops};
use crate::uncertainty::{Design, Interval};
use crate::vectorization::{Domain, Form, Part, Work};

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// A row for each loop, and for what of a function is in none, instead of one for each function. Loops are found best with
    /// [`Detail::Branches`](crate::counting::Detail::Branches).
    pub by_loop: bool,
    /// What to keep, as of a mix; all must hold.
    pub filters: Vec<Filter>,
    /// Threads that read debug information; the result does not depend on them.
    pub threads: usize,
}

/// A function, or a loop of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Path of its module, as recorded.
    pub module: String,
    /// Its function, demangled.
    pub function: String,
    /// The loop; `None` of rows of functions, and of what is in no loop.
    pub place: Option<LoopPlace>,
    /// What was executed in it: of a loop, without the loops inside.
    pub work: Work,
}

/// Which part of the work of a program is scalar, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectorization {
    /// Those with work, the one with the most scalar floating-point operations first, then by all floating-point operations, then by vectors of
    /// integers.
    pub rows: Vec<Row>,
    /// How many rows have no such work.
    pub without: usize,
    /// All that passes the filters.
    pub all: Work,
    /// What the replicates mean.
    pub design: Design,
    /// Values of filters that nothing has.
    pub unmatched: Vec<Unmatched>,
}

/// The floating-point and vector work of an analysis.
///
/// # Errors
/// Filters name more keys than a mix can have.
pub fn vectorization(analysis: &Analysis, query: &Query) -> Result<Vectorization, MixError> {
    let taxonomies = Taxonomies::default();
    let taxonomy = |name: &str| taxonomies.get(name).cloned().map(Key::Taxonomy);
    let said = ["vector-work", "vectorization", "flops"].into_iter().filter_map(taxonomy);
    let of_rows = [Dimension::Module, Dimension::Function].into_iter().chain(query.by_loop.then_some(Dimension::Loop));
    let of_mix = mix::Query {
        rows: of_rows.map(Key::from).collect(),
        columns: said.chain([Dimension::Element, Dimension::Width].map(Key::from)).collect(),
        filters: query.filters.clone(),
        operations: true,
        threads: query.threads,
        ..mix::Query::default()
    };
    let loops = if of_mix.asks_loops() { LoopTable::of(analysis, query.threads) } else { LoopTable::default() };
    let path = |one: &LoopPlace| &analysis.modules.get(analysis.counted[one.module].counts.module).path;
    let places: HashMap<(&str, &str), &LoopPlace> =
        loops.iter().map(|one| ((path(one).as_str(), one.name.as_str()), one)).collect();
    let mix = mix_with_loops(analysis, &of_mix, &loops)?;
    let mut works: BTreeMap<&[String], Work> = BTreeMap::new();
    for cell in &mix.cells {
        let work = works.entry(&cell.row).or_default();
        work.add((cell.count, &cell.sampled), Part::of(cell));
        cell.operations.iter().for_each(|operations| work.operations.add(operations));
    }
    let mut all = Work::default();
    works.values().for_each(|work| all.add_work(work));
    all.sort();
    // Nothing is known of the work of code that was not read.
    let is_unread = |cell: &&mix::Cell| cell.column.iter().all(|value| value == UNREADABLE);
    let unread = mix.cells.iter().filter(is_unread).map(|cell| &cell.row).collect::<BTreeSet<_>>().len();
    let existing = works.len() - unread;
    let mut rows: Vec<Row> = works
        .into_iter()
        .filter(|(_, work)| work.is_any())
        .map(|(keys, mut work)| {
            work.sort();
            let key = |at: usize| keys.get(at).map_or("", String::as_str);
            let place = (key(2) != NO_LOOP).then(|| places.get(&(key(0), key(2)))).flatten();
            Row { module: key(0).into(), function: key(1).into(), place: place.copied().cloned(), work }
        })
        .collect();
    rows.sort_by(|one, other| {
        let sums = |row: &Row| [row.work.scalar().0, row.work.flops(), row.work.integer()];
        let [one, other] = [one, other].map(sums);
        let orders = other.iter().zip(one).map(|(other, one)| other.total_cmp(&one));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    Ok(Vectorization { without: existing - rows.len(), rows, all, design: mix.design, unmatched: mix.unmatched })
}

impl Row {
    /// The name of the loop, or that of the function.
    pub fn name(&self) -> &str {
        self.place.as_ref().map_or(&self.function, |place| &place.name)
    }
}

impl Vectorization {
    /// The part of the floating-point operations that is scalar and could be packed, 0 to 1, and how uncertain it is; `None` without any.
    pub fn scalar(&self) -> Option<(f64, Interval)> {
        Some((self.all.float_share(Form::Scalar)?, self.all.scalar_interval(&self.design)))
    }

    /// The share that a row has of all scalar floating-point operations, 0 to 1; `None` without any.
    pub fn share_of_scalar(&self, row: &Row) -> Option<f64> {
        let all = self.all.scalar().0;
        (all > 0.0).then(|| row.work.scalar().0 / all)
    }

    /// The share that a row has of the work of a domain, 0 to 1, and how uncertain it is; `None` without any.
    pub fn share(&self, row: &Work, domain: Domain) -> Option<(f64, Interval)> {
        let of = |work: &Work| match domain {
            Domain::Float => work.flops(),
            Domain::Integer => work.integer(),
            Domain::Move => work.moves(),
        };
        let all = of(&self.all);
        (all > 0.0).then(|| (of(row) / all, row.interval(domain, &self.all, &self.design)))
    }

    /// The rows from that one on, added up.
    pub fn rest(&self, from: usize) -> Work {
        let mut rest = Work::default();
        self.rows.iter().skip(from).for_each(|row| rest.add_work(&row.work));
        rest.sort();
        rest
    }
}
