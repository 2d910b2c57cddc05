//! What may be asked together, and what it needs of an analysis.

use std::fmt;

use analyzer::counting::{GroupBy, TaskGroups};
use analyzer::mix::{Dimension, Key, Query, Taxonomies};

use super::numbers::Number;
use super::order::Order;
use super::unmatched;
use crate::nearest::nearest;

/// The form of a table: groups, numbers, order.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// Names of keys that make groups, whose shares rows have.
    pub per: &'a [String],
    /// The numbers of each row.
    pub numbers: &'a [Number],
    /// The order of rows.
    pub sort: &'a Order,
    /// Whether there is a sum for each value of all keys but the last.
    pub subtotals: bool,
}

/// What does not go together, by the option that asks for it.
#[derive(Debug, PartialEq, Eq)]
pub struct WrongShape {
    /// The option: `--per`.
    pub option: &'static str,
    /// Why not.
    pub why: String,
}

impl std::error::Error for WrongShape {}

impl fmt::Display for WrongShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.option, self.why)
    }
}

impl Shape<'_> {
    /// Whether such a number is to be shown, or to be sorted by.
    pub fn asks(&self, wanted: fn(Number) -> bool) -> bool {
        let sorts = if let Order::Number(number) = self.sort { wanted(*number) } else { false };
        sorts || self.numbers.iter().copied().any(wanted)
    }

    /// After how many keys there is a sum: of groups, and of rows.
    pub fn levels(&self, keys: usize) -> Vec<usize> {
        let groups = self.per.len();
        let inner = if self.subtotals { groups + 1..keys } else { 0..0 };
        (groups > 0).then_some(groups).into_iter().chain(inner).chain([keys]).collect()
    }

    /// A query with the groups that are asked for, and what its numbers and its order need.
    ///
    /// # Errors
    /// What does not go together.
    pub fn shape(&self, query: Query, taxonomies: &Taxonomies) -> Result<Query, WrongShape> {
        let wrong = |option: &'static str, why: &str| WrongShape { option, why: why.to_owned() };
        let of_group = |name: &String| key(name, taxonomies).map_err(|why| wrong("--per", &why));
        let mut rows: Vec<Key> = self.per.iter().map(of_group).collect::<Result<_, _>>()?;
        rows.extend(query.rows.iter().filter(|key| !rows.contains(key)).cloned().collect::<Vec<_>>());
        let asks = |wanted: fn(Number) -> bool| self.asks(wanted);
        let (calls, taken, operations) =
            (asks(Number::is_per_call), asks(Number::is_of_branches), asks(Number::is_of_operations));
        let mut seen = Vec::new();
        let columns = query.columns.iter().map(|key| ("--columns", key));
        let (groups, inside) = rows.split_at(self.per.len());
        let [groups, inside] =
            [("--per", groups), ("--rows", inside)].map(|(option, keys)| keys.iter().map(move |key| (option, key)));
        for (option, key) in groups.chain(inside).chain(columns) {
            if seen.contains(&key) {
                return Err(wrong(option, &format!("{key} is asked for twice: each key has one column")));
            }
            seen.push(key);
        }
        for (at, number) in self.numbers.iter().enumerate() {
            if self.numbers[..at].contains(number) {
                return Err(wrong(
                    "--values",
                    &format!("{} is asked for twice: each number has one column", number.as_str()),
                ));
            }
        }
        let query = Query { rows, calls, taken, operations, cycles: asks(Number::is_of_cycles), ..query };
        if !self.per.is_empty() && query.rows.len() == self.per.len() {
            return Err(wrong("--per", "--rows names nothing else, so there is nothing in the groups"));
        }
        if query.calls && !query.rows.contains(&Key::from(Dimension::Function)) {
            let numbers = [
                ("flops-per-call", asks(|number| number == Number::FlopsPerCall)),
                ("bytes-per-call", asks(|number| number == Number::BytesPerCall)),
            ];
            let asked = numbers.iter().find(|(_, is_asked)| *is_asked).map_or("per-call", |(name, _)| name);
            return Err(wrong(asked, "it needs `function` among the keys of --rows or --per"));
        }
        if (query.calls || query.taken) && query.keys().filter_map(Key::dimension).any(Dimension::is_of_task) {
            let what = "calls and branches are not told apart by processes, threads and phases: leave out such keys";
            return Err(wrong("--values or --sort", what));
        }
        let elsewhere = query.columns.iter().chain(query.filters.iter().map(|filter| &filter.key));
        if query.calls && elsewhere.into_iter().any(|key| *key == Dimension::Module) {
            return Err(wrong(
                "--values per-call",
                "calls are known by function and module: name `module` among the keys of --rows",
            ));
        }
        if self.subtotals && query.rows.len() < self.per.len() + 2 {
            return Err(wrong("--subtotals", "sums are of all keys of --rows but the last, and there is one only"));
        }
        if query.columns.is_empty()
            && let Order::Column(name) = &self.sort
        {
            let numbers: Vec<String> =
                Number::ALL.iter().map(|number| number.as_str().to_owned()).chain(["name".to_owned()]).collect();
            let mean = nearest(name, &numbers).first().map_or(String::new(), |near| format!(": did you mean {near}?"));
            return Err(wrong("--sort", &format!("there is no number {name:?}, and there are no columns{mean}")));
        }
        if query.columns.is_empty() && asks(|number| number == Number::RowShare) {
            return Err(wrong("row-share", "it is the share that a column has of its row, and there is no --columns"));
        }
        Ok(query)
    }
}

/// The key of a name.
///
/// # Errors
/// Why there is none, in words.
pub fn key(name: &str, taxonomies: &Taxonomies) -> Result<Key, String> {
    Key::named(name, taxonomies).map_err(|error| match unmatched::near_key(name, taxonomies) {
        Some(near) => format!("there is no key {name:?}: did you mean {near}?"),
        None => error.to_string(),
    })
}

/// What must be told apart when the samples are counted.
pub fn group_by(query: &Query) -> GroupBy {
    query.keys().filter_map(Key::dimension).fold(GroupBy::default(), |by, key| match key {
        Dimension::Thread => GroupBy { tasks: TaskGroups::Thread, ..by },
        Dimension::Process | Dimension::Comm => GroupBy { tasks: by.tasks.max(TaskGroups::Process), ..by },
        Dimension::Phase => GroupBy { phases: true, ..by },
        Dimension::Cgroup => GroupBy { cgroups: true, ..by },
        _ => by,
    })
}
