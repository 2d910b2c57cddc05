//! The instruction mix as a table.

use analyzer::mix::{Filter, Key, Mix, Query, Taxonomies};
use analyzer::{Analysis, Origin};
use reports::mix::nested::{for_each_line, nested};
use reports::mix::numbers::Number;
use reports::mix::order::Order;
use reports::mix::{Asked, Described, Shape, filter, key};

use crate::columns::Columns;
use crate::table::Table;
use crate::words::{Keywords, Meaningless};

/// What is asked for, in words.
pub struct Words {
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    pub filters: Vec<String>,
    pub per: Vec<String>,
    pub values: Vec<String>,
    pub sort: String,
}

/// What is asked for.
pub struct Question {
    pub query: Query,
    per: Vec<String>,
    numbers: Vec<Number>,
    sort: Order,
}

impl Words {
    /// What they ask for.
    ///
    /// # Errors
    /// An argument means nothing, or it does not go with another.
    pub fn understood(self, taxonomies: &Taxonomies, threads: usize) -> Result<Question, Meaningless> {
        let numbers = self.values.iter().map(|name| name.parse()).collect::<Result<Vec<Number>, _>>();
        let query = Query {
            rows: keys("rows", &self.rows, taxonomies)?,
            columns: keys("columns", &self.columns, taxonomies)?,
            filters: filters(&self.filters, taxonomies)?,
            threads,
            ..Query::default()
        };
        let Ok(sort) = self.sort.parse();
        let numbers = numbers.map_err(|why| Meaningless::argument("values", why))?;
        let shape = Shape { per: &self.per, numbers: &numbers, sort: &sort, subtotals: false };
        if query.rows.is_empty() && self.per.is_empty() {
            return Err(Meaningless::argument("rows", "a mix needs at least one row key"));
        }
        let query = shape.shape(query, taxonomies).map_err(|wrong| Meaningless(wrong.sentence(&Keywords)))?;
        Ok(Question { query, per: self.per, numbers, sort })
    }
}

/// Keys by their names, of an argument.
///
/// # Errors
/// There is no such key.
pub fn keys(argument: &str, names: &[String], taxonomies: &Taxonomies) -> Result<Vec<Key>, Meaningless> {
    names.iter().map(|name| key(name, taxonomies).map_err(|why| Meaningless::argument(argument, why))).collect()
}

/// Filters by their texts.
///
/// # Errors
/// One cannot be read.
pub fn filters(texts: &[String], taxonomies: &Taxonomies) -> Result<Vec<Filter>, Meaningless> {
    let read = |text: &String| filter(text, taxonomies).map_err(|why| Meaningless::argument("filter", why));
    texts.iter().map(read).collect()
}

impl Question {
    /// The answer, as `hbbp mix --format csv` has it.
    ///
    /// # Errors
    /// There is nothing to show.
    pub fn table(&self, analysis: &Analysis, mix: &Mix) -> anyhow::Result<Table> {
        let Question { query, per, numbers, sort } = self;
        let shape = Shape { per, numbers, sort, subtotals: false };
        let notes = reports::mix::said((query, &shape), analysis, mix, &Keywords)?;
        anyhow::ensure!(
            !reports::mix::lacks_code(query, analysis),
            "the code of no module could be read, so there is no mix by {}: name the binaries with binaries or symfs of \
             hbbp.open, or ask for rows=\"module\"",
            query.rows.iter().map(Key::to_string).collect::<Vec<_>>().join(",")
        );
        sort.check(mix).map_err(|why| Meaningless(why.sentence(&Keywords)))?;
        let quality = reports::mix::precision(analysis, mix).map(|precision| precision.text);
        let asked = Asked { query, mix, origin: analysis.origin, per: per.len(), numbers };
        Ok(Table::new(columns(&asked, &shape).batch()?).with(mix.instructions, quality, notes))
    }
}

/// The columns of a mix: its keys, and the numbers of its rows.
fn columns(asked: &Asked<'_>, shape: &Shape<'_>) -> Columns {
    let levels = shape.levels(asked.query.rows.len());
    let nodes = nested(asked.mix, asked.query, (&levels, asked.per), shape.sort);
    let mut rows = Vec::new();
    for_each_line(&nodes, &asked.mix.all, (asked.per, usize::MAX), &mut |line| rows.extend(asked.pairs(&line)));
    let mut columns = Columns::default();
    for (at, key) in asked.query.rows.iter().chain(&asked.query.columns).enumerate() {
        columns.texts(key.as_str(), rows.iter().map(|(cell, _)| cell.row.iter().chain(&cell.column).nth(at)));
    }
    let rows = || rows.iter().map(|(_, row)| row);
    let [count, share, count_error, share_error, rests_on_little] = Described::NAMES;
    columns.numbers(count, rows().map(|row| Some(row.count)));
    columns.numbers(share, rows().map(|row| Some(row.share)));
    columns.numbers(count_error, rows().map(|row| row.count_error));
    columns.numbers(share_error, rows().map(|row| row.share_error));
    columns.flags(rests_on_little, rows().map(|row| Some(row.rests_on_little)));
    for (at, name) in asked.more_names().into_iter().enumerate() {
        columns.numbers(name, rows().map(|row| row.more.get(at).and_then(|(_, number)| *number)));
    }
    columns
}

/// The numbers that a table of functions has beside the usual ones.
pub fn of_functions(filters: Vec<String>, origin: Origin) -> Words {
    let samples = (origin == Origin::Recording).then(|| Number::Samples.to_string());
    let values = [Number::PerCall.to_string()].into_iter().chain(samples);
    Words {
        rows: vec!["function".into(), "module".into()],
        columns: Vec::new(),
        filters,
        per: Vec::new(),
        values: values.collect(),
        sort: "executions".into(),
    }
}
