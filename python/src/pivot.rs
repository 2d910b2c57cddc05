//! The instruction mix as a table.

use analyzer::mix::{Filter, Key, Mix, Query, Sum, Taxonomies};
use analyzer::{Analysis, Origin};
use arrow_schema::ArrowError;
use reports::mix::nested::{for_each_line, nested};
use reports::mix::numbers::{Number, part};
use reports::mix::order::Order;
use reports::mix::{Asked, Numbered, Shape, key};

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
    let read = |text: &String| Filter::read(text, taxonomies).map_err(|why| Meaningless::argument("filter", why));
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
        let rows = Rows::of(&asked, &shape).columns(&asked)?;
        Ok(Table::new(rows.batch()?).with(mix.instructions, quality, notes))
    }
}

/// The rows of a mix, in their order.
#[derive(Default)]
struct Rows<'a> {
    /// The values of the keys of each.
    values: Vec<(&'a [String], &'a [String])>,
    sums: Vec<Sum>,
    /// What else is asked for of each.
    more: Vec<Vec<(String, Option<f64>)>>,
}

impl<'a> Rows<'a> {
    fn of(asked: &Asked<'a>, shape: &Shape<'_>) -> Self {
        let levels = shape.levels(asked.query.rows.len());
        let nodes = nested(asked.mix, asked.query, (&levels, asked.per), shape.sort);
        let mut rows = Rows::default();
        for_each_line(&nodes, &asked.mix.all, (asked.per, usize::MAX), &mut |line| {
            let Some(row) = line.row() else { return };
            for &cell in &row.cells {
                let sum = Sum::of([cell]);
                let of = Numbered { sum: &sum, whole: line.whole, values: Some(&cell.row), row: Some(&row.sum) };
                rows.more.push(asked.more_numbers(&of));
                rows.values.push((&cell.row, &cell.column));
                rows.sums.push(sum);
            }
        });
        rows
    }

    fn columns(&self, asked: &Asked<'_>) -> Result<Columns, ArrowError> {
        let mut columns = Columns::default();
        let value = |at: usize| self.values.iter().map(move |(row, column)| row.iter().chain(*column).nth(at));
        for (at, key) in asked.query.rows.iter().chain(&asked.query.columns).enumerate() {
            columns.texts(key.as_str(), value(at));
        }
        let mix = asked.mix;
        let uncertain: Vec<_> = self.sums.iter().map(|sum| mix.uncertainty_of(sum)).collect();
        columns.numbers("count", self.sums.iter().map(|sum| Some(sum.count)));
        columns.numbers("share", self.sums.iter().map(|sum| Some(part(sum.count, mix.instructions))));
        columns.numbers("count_error", uncertain.iter().map(|of| of.count.half_width));
        columns.numbers("share_error", uncertain.iter().map(|of| of.share.half_width));
        columns.flags("rests_on_little", uncertain.iter().map(|of| Some(of.share.rests_on_little)));
        let nothing = Sum::default();
        let named = Numbered { sum: &nothing, whole: &nothing, values: Some(&[]), row: Some(&nothing) };
        for (at, (name, _)) in asked.more_numbers(&named).into_iter().enumerate() {
            columns.numbers(name, self.more.iter().map(|of| of.get(at).and_then(|(_, number)| *number)));
        }
        Ok(columns)
    }
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
