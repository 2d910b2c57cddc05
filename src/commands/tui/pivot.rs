//! The mix of a recording by any keys.

use std::collections::HashMap;

use analyzer::Analysis;
use analyzer::annotate::Ranked;
use analyzer::mix::{Dimension, Key, Mix, Query, Taxonomies};
use model::Source;
use reports::mix::key;
use reports::mix::nested::nested;
use reports::mix::numbers::Number;
use reports::mix::order::Order;
use reports::mix::unmatched;

use super::narrowed::{filters, only};
use super::sheet::{By, Link, Row, Sheet};
use crate::commands::annotate::code::heat_of_share;
use crate::commands::mix;
use crate::commands::mix::table::Columns;
use crate::output::{Colours, Head, Layout, printable};
use crate::usage::CommandLine;

/// A mix, and what was asked for.
pub struct Pivot {
    pub query: Query,
    /// The filters of the query, as they were typed.
    pub filter: String,
    mix: Option<Mix>,
    /// Its rows as they are shown, in so many columns.
    sheet: Option<(usize, Sheet)>,
    /// How right the largest rows are, in words.
    pub errors: Option<String>,
    /// Columns that do not fit.
    pub left_out: Option<String>,
}

/// A query, and its filters as they were typed.
pub type Asked = (Query, String);

impl Pivot {
    /// What is asked for first. Nothing is computed.
    pub fn new(query: Query) -> Self {
        let filter = query.filters.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Pivot { query, filter, mix: None, sheet: None, errors: None, left_out: None }
    }

    /// Asks for other rows; they are to be computed.
    ///
    /// # Errors
    /// There are no such keys.
    pub fn ask_rows(&mut self, text: &str, taxonomies: &Taxonomies) -> Result<(), String> {
        let rows = keys(text, taxonomies)?;
        if rows.is_empty() {
            return Err("a pivot needs a key for its rows, such as function or mnemonic".into());
        }
        self.query.rows = rows;
        self.forget();
        Ok(())
    }

    /// Asks for other columns; without a key there is one.
    ///
    /// # Errors
    /// There are no such keys.
    pub fn ask_columns(&mut self, text: &str, taxonomies: &Taxonomies) -> Result<(), String> {
        self.query.columns = keys(text, taxonomies)?;
        self.forget();
        Ok(())
    }

    /// Asks for what passes other filters.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn ask_filters(&mut self, text: &str, taxonomies: &Taxonomies) -> Result<(), String> {
        self.query.filters = filters(text, taxonomies)?;
        self.filter = text.trim().to_owned();
        self.forget();
        Ok(())
    }

    /// Asks for the functions of a row, whose keys have these values. `None` where functions are told apart already.
    pub fn ask_functions(&mut self, values: &[String], taxonomies: &Taxonomies) -> Option<Asked> {
        if self.query.rows.iter().any(|key| *key == Dimension::Function) {
            return None;
        }
        let before = (self.query.clone(), self.filter.clone());
        let of_row = self.query.rows.iter().zip(values).map(|(key, value)| only(key, value));
        let filter = std::iter::once(self.filter.clone()).filter(|filter| !filter.is_empty()).chain(of_row);
        self.ask_filters(&filter.collect::<Vec<_>>().join("; "), taxonomies).ok()?;
        self.query.rows = vec![Dimension::Function.into()];
        Some(before)
    }

    /// Asks for what was asked for before.
    pub fn ask_again(&mut self, (query, filter): Asked) {
        (self.query, self.filter) = (query, filter);
        self.forget();
    }

    fn forget(&mut self) {
        (self.mix, self.sheet, self.errors, self.left_out) = (None, None, None, None);
    }

    /// Whether it is to be computed.
    pub fn is_asked_for(&self) -> bool {
        self.mix.is_none()
    }

    /// The mix of the query was computed. Returns what there is to say of it.
    pub fn answer(&mut self, analysis: &Analysis, mix: Mix) -> Option<String> {
        self.errors = reports::mix::precision(analysis, &mix).map(|precision| precision.text);
        let said = mix.unmatched.iter().map(|of| unmatched::sentence(of, &CommandLine));
        let without_source = reports::mix::without_source(&self.query.rows, &mix, &CommandLine);
        let said: Vec<String> = said.chain(without_source).chain(mix.notes.iter().cloned()).collect();
        self.mix = Some(mix);
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// Makes the rows of a mix that was computed, as wide as the screen.
    pub fn lay_out(&mut self, width: usize, head: &Head, recorded: (usize, &Analysis, &[Ranked])) {
        let Some(mix) = &self.mix else { return };
        if self.sheet.as_ref().is_some_and(|(of, _)| *of == width) {
            return;
        }
        let rows = nested(mix, &self.query, (&[self.query.rows.len()], 0), &Order::Number(Number::Executions));
        let (numbers, layout) = (&Number::DEFAULT[..], Layout::Columns(width));
        let report = mix::Report {
            query: &self.query,
            mix,
            head,
            origin: recorded.1.origin,
            branches: recorded.1.title_of(Source::Lbr),
            rows,
            per: 0,
            numbers,
            top: usize::MAX,
            layout,
            colours: Colours::NONE,
        };
        let columns = Columns::of(&report);
        let functions = Functions::of(&self.query, recorded);
        let rows = report.rows.iter().map(|row| {
            let link = functions.link(row.values);
            let shown = Row::new(columns.row(row), vec![row.sum.count]);
            Row { heat: heat_of_share(row.sum.count / mix.instructions), link, keys: row.values.to_vec(), ..shown }
        });
        let rows = rows.collect();
        let total = columns.all();
        let by_key = self.query.rows.iter().enumerate().map(|(column, key)| (key.to_string(), By::Cell(column)));
        let orders = [("count".to_owned(), By::Number(0))].into_iter().chain(by_key).collect();
        let titles = columns.titles().into_iter().map(|(title, align)| (printable(&title).into_owned(), align));
        let mut sheet = Sheet::new(titles.collect(), orders, rows).with_total(total);
        self.left_out = columns.left_out();
        if let Some((_, before)) = &self.sheet {
            sheet.sort_as(before);
        }
        self.sheet = Some((width, sheet));
    }

    /// The rows, if they were made.
    pub fn sheet(&self) -> Option<&Sheet> {
        self.sheet.as_ref().map(|(_, sheet)| sheet)
    }

    /// The rows, if they were made.
    pub fn sheet_mut(&mut self) -> Option<&mut Sheet> {
        self.sheet.as_mut().map(|(_, sheet)| sheet)
    }

    /// What it is of, in words.
    pub fn words(&self) -> String {
        let columns = if self.query.columns.is_empty() { "-".to_owned() } else { joined(&self.query.columns) };
        let filter = if self.filter.is_empty() { "-" } else { &self.filter };
        format!("rows {}; columns {columns}; filter {filter}", joined(&self.query.rows))
    }
}

/// Keys as they are typed.
pub fn joined(keys: &[Key]) -> String {
    keys.iter().map(Key::to_string).collect::<Vec<_>>().join(",")
}

fn keys(text: &str, taxonomies: &Taxonomies) -> Result<Vec<Key>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| key(name, taxonomies)).collect()
}

/// The functions that rows are of, where a key says it: the hottest of a name.
struct Functions<'a> {
    recording: usize,
    /// By name, and path of the module where that is a key.
    places: HashMap<(&'a str, Option<&'a str>), usize>,
    /// Where name and path are among the keys.
    name: Option<usize>,
    path: Option<usize>,
}

impl<'a> Functions<'a> {
    fn of(query: &Query, (recording, analysis, functions): (usize, &'a Analysis, &'a [Ranked])) -> Self {
        let place = |key: Dimension| query.rows.iter().position(|of| *of == key);
        let (name, path) = (place(Dimension::Function), place(Dimension::Module));
        let mut places = HashMap::new();
        for (function, of) in functions.iter().enumerate().filter(|_| name.is_some()) {
            let module = path.and_then(|_| analysis.counted.get(of.module));
            let path = module.map(|module| analysis.modules.get(module.counts.module).path.as_str());
            places.entry((of.name.as_str(), path)).or_insert(function);
        }
        Functions { recording, places, name, path }
    }

    fn link(&self, keys: &[String]) -> Option<Link> {
        let value = |at: usize| keys.get(at).map(String::as_str);
        let function = *self.places.get(&(value(self.name?)?, self.path.and_then(value)))?;
        Some(Link { recording: self.recording, function, at: None })
    }
}
