//! In which order rows are printed.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::str::FromStr;

use analyzer::mix::{Mix, Query, Sum};

use super::nested::Node;
use super::numbers::{Number, per_call};
use crate::nearest::nearest;
use crate::{Argument, Arguments};

/// What rows are sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A number, the largest first.
    Number(Number),
    /// The values of their keys: numbers as numbers, all else as text.
    Name,
    /// The count in a column, the largest first.
    Column(String),
}

/// An order by a column that is not there.
#[derive(Debug, PartialEq, Eq)]
pub struct NoSuchColumn {
    /// What was asked for.
    pub title: String,
    /// The column that is called nearly so, if one is.
    pub near: Option<String>,
}

impl NoSuchColumn {
    /// What is wrong, and what to ask instead.
    pub fn sentence(&self, arguments: &dyn Arguments) -> String {
        let (Self { title, near }, sort) = (self, arguments.name(Argument::Sort));
        let mean = near.as_ref().map_or(String::new(), |near| format!(": did you mean {sort} '{near}'?"));
        format!("{sort} {title}: there is neither such a number nor such a column{mean}")
    }
}

impl FromStr for Order {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let order = || match text {
            "name" => Order::Name,
            column => Order::Column(column.to_owned()),
        };
        Ok(text.parse().map_or_else(|_| order(), Order::Number))
    }
}

impl Order {
    /// Sorts rows, or groups of rows, whose shares are of a whole.
    pub fn sort(&self, nodes: &mut Vec<Node<'_>>, mix: &Mix, query: &Query, whole: &Sum) {
        let by_name = |one: &Node<'_>, other: &Node<'_>| {
            let pairs = one.values.iter().zip(other.values);
            pairs.map(|(one, other)| natural(one, other)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let number = |node: &Node<'_>| match self {
            Order::Number(Number::Samples) => node.sum.samples,
            Order::Number(number) if number.is_of_branches() => number.of_branches(mix, &node.sum).unwrap_or(-1.0),
            Order::Number(number) if number.is_per_call() => {
                per_call(*number, mix, query, node.values, &node.sum).unwrap_or(-1.0)
            }
            Order::Number(number) if number.is_of_cycles() => number.of_cycles(&node.sum).unwrap_or(-1.0),
            Order::Number(number) if number.is_of_time() => number.of_time(mix, &node.sum, whole).unwrap_or(-1.0),
            Order::Number(number) if number.is_of_operations() => number.of_operations(&node.sum).unwrap_or(-1.0),
            Order::Number(Number::Error) => mix.share_within(&node.sum, whole).half_width.unwrap_or(f64::INFINITY),
            Order::Number(_) | Order::Name => node.sum.count,
            Order::Column(title) => {
                let cells = node.cells.iter().copied().filter(|cell| title_of(&cell.column) == *title);
                Sum::of(cells).count
            }
        };
        let mut keyed: Vec<(f64, Node<'_>)> = nodes.drain(..).map(|node| (number(&node), node)).collect();
        keyed.sort_by(|(number, one), (other_number, other)| {
            let order = if *self == Order::Name { by_name(one, other) } else { other_number.total_cmp(number) };
            order
                .then_with(|| {
                    if *self == Order::Name { Ordering::Equal } else { other.sum.count.total_cmp(&one.sum.count) }
                })
                .then_with(|| one.values.cmp(other.values))
        });
        nodes.extend(keyed.into_iter().map(|(_, node)| node));
    }

    /// Refuses an order by a column that is not there.
    ///
    /// # Errors
    /// It is one.
    pub fn check(&self, mix: &Mix) -> Result<(), NoSuchColumn> {
        let Order::Column(title) = self else { return Ok(()) };
        if mix.cells.is_empty() {
            return Ok(());
        }
        let titles: BTreeSet<String> = mix.cells.iter().map(|cell| title_of(&cell.column)).collect();
        if titles.contains(title) {
            return Ok(());
        }
        let titles: Vec<String> = titles.into_iter().filter(|title| !title.is_empty()).collect();
        let near = nearest(title, &titles).first().map(|near| (*near).to_owned());
        Err(NoSuchColumn { title: title.clone(), near })
    }
}

/// The title of a column with these values.
pub fn title_of(column: &[String]) -> String {
    column.join("/")
}

/// Numbers by their value, before all else, which is in the order of texts.
fn natural(one: &str, other: &str) -> Ordering {
    let number = |text: &str| text.parse::<u64>().ok();
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_first_and_in_their_order() {
        let mut values = ["none", "16", "8", "a.c:9", "128", "a.c:10"];
        values.sort_by(|one, other| natural(one, other));
        assert_eq!(values, ["8", "16", "128", "a.c:10", "a.c:9", "none"]);
    }

    #[test]
    fn what_is_no_number_is_a_column() {
        let order = |text: &str| text.parse::<Order>().unwrap();
        assert_eq!(order("±"), Order::Number(Number::Error));
        assert_eq!(order("count"), Order::Number(Number::Executions));
        assert_eq!(order("name"), Order::Name);
        assert_eq!(order("sse2/packed"), Order::Column("sse2/packed".into()));
    }
}
