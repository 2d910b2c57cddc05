//! What may be asked together, and what it needs of an analysis.

use analyzer::counting::{GroupBy, TaskGroups};
use analyzer::mix::{Dimension, Filter, FilterError, Key, Query, Taxonomies, UnknownKey};

use super::numbers::Number;
use super::order::Order;
use super::{WrongShape, unmatched};
use crate::Argument;
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

impl Shape<'_> {
    /// The numbers that are to be shown, and the one to sort by.
    fn asked(&self) -> impl Iterator<Item = Number> {
        let sort = if let Order::Number(number) = self.sort { Some(*number) } else { None };
        self.numbers.iter().copied().chain(sort)
    }

    /// Whether such a number is to be shown, or to be sorted by.
    pub fn asks(&self, wanted: fn(Number) -> bool) -> bool {
        self.asked().any(wanted)
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
        let of_group = |name: &String| key(name, taxonomies).map_err(WrongShape::NoSuchKey);
        let mut rows: Vec<Key> = self.per.iter().map(of_group).collect::<Result<_, _>>()?;
        rows.extend(query.rows.iter().filter(|key| !rows.contains(key)).cloned().collect::<Vec<_>>());
        let asks = |wanted: fn(Number) -> bool| self.asks(wanted);
        let (calls, taken, operations) =
            (asks(Number::is_per_call), asks(Number::is_of_branches), asks(Number::is_of_operations));
        let (groups, inside) = rows.split_at(self.per.len());
        let asked = [(Argument::Per, groups), (Argument::Rows, inside), (Argument::Columns, &query.columns)];
        let mut seen = Vec::new();
        for (argument, keys) in asked {
            for key in keys {
                if seen.contains(&key) {
                    return Err(WrongShape::KeyTwice { argument, key: key.clone() });
                }
                seen.push(key);
            }
        }
        for (at, number) in self.numbers.iter().enumerate() {
            if self.numbers[..at].contains(number) {
                return Err(WrongShape::NumberTwice(*number));
            }
        }
        let query = Query { rows, calls, taken, operations, cycles: asks(Number::is_of_cycles), ..query };
        let query = Query { time: asks(Number::is_of_time), ..query };
        if !self.per.is_empty() && query.rows.len() == self.per.len() {
            return Err(WrongShape::EmptyGroups);
        }
        let of_calls = self.asked().find(|number| number.is_per_call());
        if let Some(number) = of_calls
            && !query.rows.contains(&Key::from(Dimension::Function))
        {
            return Err(WrongShape::CallsOfNoFunction(number));
        }
        if (query.calls || query.taken) && query.keys().filter_map(Key::dimension).any(Dimension::is_of_task) {
            return Err(WrongShape::CallsOfTasks);
        }
        let columns = query.columns.iter().map(|key| (key, Argument::Columns));
        let mut elsewhere = columns.chain(query.filters.iter().map(|filter| (&filter.key, Argument::Filter)));
        if let Some(number) = of_calls
            && let Some((_, argument)) = elsewhere.find(|(key, _)| **key == Dimension::Module)
        {
            return Err(WrongShape::CallsOfModules { number, argument });
        }
        if self.subtotals && query.rows.len() < self.per.len() + 2 {
            return Err(WrongShape::OneKeyToSum);
        }
        if query.columns.is_empty()
            && let Order::Column(name) = &self.sort
        {
            let numbers: Vec<String> =
                Number::ALL.iter().map(|number| number.as_str().to_owned()).chain(["name".to_owned()]).collect();
            let near = nearest(name, &numbers).first().map(|near| (*near).to_owned());
            return Err(WrongShape::NoSuchNumber { name: name.clone(), near });
        }
        if query.columns.is_empty() && asks(|number| number == Number::RowShare) {
            return Err(WrongShape::NoColumns);
        }
        Ok(query)
    }
}

/// The key of a name.
///
/// # Errors
/// Why there is none, in words.
pub fn key(name: &str, taxonomies: &Taxonomies) -> Result<Key, String> {
    Key::named(name, taxonomies).map_err(|error| no_key(&error, taxonomies))
}

/// The filter that a text is.
///
/// # Errors
/// Why it is none, in words.
pub fn filter(text: &str, taxonomies: &Taxonomies) -> Result<Filter, String> {
    Filter::read(text, taxonomies).map_err(|error| match error {
        FilterError::Key(unknown) => no_key(&unknown, taxonomies),
        error => error.to_string(),
    })
}

/// That there is no such key, and which one may be meant.
fn no_key(unknown: &UnknownKey, taxonomies: &Taxonomies) -> String {
    match unmatched::near_key(unknown.name(), taxonomies) {
        Some(near) => format!("there is no key {:?}: did you mean {near}?", unknown.name()),
        None => unknown.to_string(),
    }
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
