//! Rows under titles that are sorted, filtered and searched.

use std::collections::BTreeSet;

use analyzer::address::Svma;
use analyzer::mix::{Dimension, Filter};
use unicode_width::UnicodeWidthStr;

use super::cursor::{Cursor, Motion, next};
use super::narrowed::is_any_case;
use crate::output::{Align, Fit, Role, printable};

/// A row.
pub struct Row {
    /// A cell for each column. Nothing in them commands the terminal.
    pub cells: Vec<String>,
    /// What it is sorted by where cells are only texts.
    pub numbers: Vec<f64>,
    /// How hot it is.
    pub heat: Role,
    /// The code that it is of.
    pub link: Option<Link>,
    /// Values of keys as they are, where it is of any: what filters compare, as cells may have only a part of them.
    pub keys: Vec<String>,
}

/// A function of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Which of the recordings.
    pub recording: usize,
    /// The function's place among those of the recording.
    pub function: usize,
    /// The instruction that is meant; none for all of the function.
    pub at: Option<Svma>,
}

impl Row {
    /// A row with these cells.
    pub fn new(cells: Vec<String>, numbers: Vec<f64>) -> Self {
        let cells = cells.iter().map(|cell| printable(cell).into_owned()).collect();
        Row { cells, numbers, heat: Role::Plain, link: None, keys: Vec::new() }
    }
}

/// Names have room for so much before all columns are shown.
const NAME: usize = 24;

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Numbers of this index, the largest first.
    Number(usize),
    /// Cells of this column.
    Cell(usize),
}

/// Rows under titles.
pub struct Sheet {
    pub columns: Vec<(String, Align)>,
    /// Columns that are left out where not all fit, the first of them first.
    dispensable: Vec<usize>,
    /// Ways to sort: what they are called.
    orders: Vec<(String, By)>,
    /// What can be filtered by: each row has a value of each.
    keys: Vec<Dimension>,
    rows: Vec<Row>,
    /// Which rows are shown, in order.
    shown: Vec<usize>,
    /// A last row that stays where it is.
    pub total: Option<Vec<String>>,
    /// How wide the columns are.
    widths: Vec<usize>,
    order: usize,
    is_reversed: bool,
    pub cursor: Cursor,
    /// What was typed to keep these rows.
    pub filter: String,
}

impl Sheet {
    /// Rows as they are sorted by the first of `orders`.
    pub fn new(columns: Vec<(String, Align)>, orders: Vec<(String, By)>, rows: Vec<Row>) -> Self {
        let mut widths: Vec<usize> = columns.iter().map(|(title, _)| title.width()).collect();
        for row in &rows {
            widths.iter_mut().zip(&row.cells).for_each(|(width, cell)| *width = cell.width().max(*width));
        }
        Sheet {
            columns,
            dispensable: Vec::new(),
            orders,
            keys: Vec::new(),
            shown: (0..rows.len()).collect(),
            rows,
            total: None,
            widths,
            order: 0,
            is_reversed: false,
            cursor: Cursor::default(),
            filter: String::new(),
        }
    }

    /// Names columns that are left out where not all fit, the first of them first.
    pub fn dispense_with(self, dispensable: Vec<usize>) -> Self {
        Sheet { dispensable, ..self }
    }

    /// Says which keys of filters the values in the rows are of.
    pub fn with_keys(self, keys: Vec<Dimension>) -> Self {
        Sheet { keys, ..self }
    }

    /// Puts a row at the end that stays there.
    pub fn with_total(mut self, cells: Option<Vec<String>>) -> Self {
        if let Some(cells) = &cells {
            self.widths.iter_mut().zip(cells).for_each(|(width, cell)| *width = cell.width().max(*width));
        }
        Sheet { total: cells, ..self }
    }

    /// How many rows are shown.
    pub fn length(&self) -> usize {
        self.shown.len()
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.rows.len()
    }

    /// A row by its place among those that are shown.
    pub fn row(&self, place: usize) -> Option<&Row> {
        self.rows.get(*self.shown.get(place)?)
    }

    /// The row that was chosen.
    pub fn chosen(&self) -> Option<&Row> {
        self.row(self.cursor.at)
    }

    pub fn go(&mut self, motion: Motion, height: usize) {
        self.cursor.go(motion, self.shown.len(), height);
    }

    /// Which columns fit into so many.
    pub fn fit(&self, width: usize) -> Fit {
        let aligns: Vec<Align> = self.columns.iter().map(|(_, align)| *align).collect();
        Fit::of(&aligns, self.widths.clone(), (&self.dispensable, NAME), width)
    }

    /// What it is sorted by, in words.
    pub fn sorted_by(&self) -> String {
        let name = self.orders.get(self.order).map_or("", |(name, _)| name);
        format!("by {name}{}", if self.is_reversed { ", reversed" } else { "" })
    }

    /// Sorts in the next way, or the other way round, and goes to the first row.
    pub fn sort(&mut self, reverse: bool) {
        if reverse {
            self.is_reversed = !self.is_reversed;
        } else {
            self.order = (self.order + 1) % self.orders.len().max(1);
            self.is_reversed = false;
        }
        self.arrange();
        self.cursor = Cursor::default();
    }

    /// Sorts as another sheet of the same rows, and chooses what is chosen there.
    pub fn sort_as(&mut self, other: &Sheet) {
        (self.order, self.is_reversed, self.cursor) = (other.order, other.is_reversed, other.cursor);
        self.arrange();
    }

    fn arrange(&mut self) {
        let Some((_, by)) = self.orders.get(self.order) else { return };
        let rows = &self.rows;
        let number = |row: usize, index: usize| rows[row].numbers.get(index).copied().unwrap_or(0.0);
        self.shown.sort_by(|&one, &other| {
            let order = match by {
                By::Number(index) => number(other, *index).total_cmp(&number(one, *index)),
                By::Cell(column) => rows[one].cells.get(*column).cmp(&rows[other].cells.get(*column)),
            };
            if self.is_reversed { order.reverse() } else { order }.then(one.cmp(&other))
        });
    }

    /// Keeps rows that pass; their keys must be those of the sheet.
    ///
    /// # Errors
    /// A filter is on another key.
    pub fn narrow(&mut self, mut filters: Vec<Filter>, text: &str) -> Result<(), String> {
        let mut places = Vec::new();
        for filter in &mut filters {
            let Some(place) = self.keys.iter().position(|key| filter.key == *key) else {
                let keys: Vec<&str> = self.keys.iter().map(|key| key.as_str()).collect();
                let (key, keys) = (&filter.key, keys.join(" and "));
                return Err(format!(
                    "these rows have no {key}: filter them by {keys}, and those of the pivot (4) by any key"
                ));
            };
            let values: BTreeSet<String> = self.rows.iter().map(|row| row.keys[place].clone()).collect();
            filter.resolve(&values);
            places.push(place);
        }
        let passes = |row: &Row| places.iter().zip(&filters).all(|(place, filter)| filter.keeps(&row.keys[*place]));
        self.shown = (0..self.rows.len()).filter(|row| passes(&self.rows[*row])).collect();
        self.arrange();
        self.cursor = Cursor::default();
        self.filter = text.to_owned();
        Ok(())
    }

    /// Goes to the next row that has a text. Returns whether there is one.
    pub fn search(&mut self, text: &str, backwards: bool) -> bool {
        let looked_for = Looked::of(text);
        let found = next(self.shown.len(), self.cursor.at, backwards, |place| {
            self.row(place).is_some_and(|row| row.cells.iter().any(|cell| looked_for.is_in(cell)))
        });
        found.into_iter().for_each(|found| self.cursor.at = found);
        found.is_some()
    }
}

/// A text that is looked for.
pub struct Looked {
    text: String,
    is_any_case: bool,
}

impl Looked {
    pub fn of(text: &str) -> Self {
        Looked { text: text.to_owned(), is_any_case: is_any_case(text) }
    }

    pub fn is_in(&self, text: &str) -> bool {
        if self.is_any_case { text.to_lowercase().contains(&self.text) } else { text.contains(&self.text) }
    }
}

#[cfg(test)]
mod tests {
    use analyzer::mix::Taxonomies;

    use super::super::narrowed::filters;
    use super::*;

    fn sheet() -> Sheet {
        let columns = [("share", Align::Right), ("function", Align::Left), ("module", Align::Left)];
        let columns = columns.map(|(title, align)| (title.to_owned(), align)).to_vec();
        let row = |share: f64, function: &str, module: &str| {
            let file = module.rsplit('/').next().unwrap();
            let cells = [format!("{share} %"), function.into(), file.into()].to_vec();
            Row { keys: vec![function.into(), module.into()], ..Row::new(cells, vec![share]) }
        };
        let rows =
            vec![row(50.0, "main", "a"), row(30.0, "Sort\u{1b}[2H", "a"), row(20.0, "merge(int)", "/lib/libb.so")];
        let orders = vec![("share".to_owned(), By::Number(0)), ("function".to_owned(), By::Cell(1))];
        Sheet::new(columns, orders, rows).with_keys(vec![Dimension::Function, Dimension::Module])
    }

    fn names(sheet: &Sheet) -> Vec<&str> {
        (0..sheet.length()).map(|place| sheet.row(place).unwrap().cells[1].as_str()).collect()
    }

    #[test]
    fn rows_are_sorted_by_numbers_and_by_names() {
        let mut sheet = sheet();
        assert_eq!(names(&sheet), ["main", "Sort\\u{1b}[2H", "merge(int)"]);
        sheet.cursor.at = 1;
        sheet.sort(false);
        assert_eq!(names(&sheet), ["Sort\\u{1b}[2H", "main", "merge(int)"]);
        assert_eq!((sheet.cursor.at, sheet.sorted_by().as_str()), (0, "by function"));
        sheet.sort(true);
        assert_eq!(names(&sheet), ["merge(int)", "main", "Sort\\u{1b}[2H"]);
        assert_eq!((sheet.cursor.at, sheet.sorted_by().as_str()), (0, "by function, reversed"));
        sheet.sort(false);
        assert_eq!(names(&sheet), ["main", "Sort\\u{1b}[2H", "merge(int)"]);
    }

    #[test]
    fn rows_are_filtered_and_searched() {
        let mut sheet = sheet();
        let mut narrowed = |text: &str| {
            let filters = filters(text, &Taxonomies::default()).unwrap();
            sheet.narrow(filters, text).map(|()| names(&sheet).into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(narrowed("m").unwrap(), ["main", "merge(int)"]);
        assert_eq!(narrowed("function=merge").unwrap(), ["merge(int)"]);
        assert_eq!(narrowed("module=/lib/*; r").unwrap(), ["merge(int)"]);
        assert_eq!(narrowed("module=libb.so").unwrap(), [""; 0], "it is a path, as in the pivot");
        assert_eq!(narrowed("nothing").unwrap(), [""; 0]);
        assert!(narrowed("mnemonic=mov").unwrap_err().contains("filter them by function and module"));
        assert_eq!(narrowed("").unwrap().len(), 3);
        assert!(sheet.search("sort", false) && sheet.cursor.at == 1);
        assert!(!sheet.search("A", true) && sheet.cursor.at == 1);
        assert!(sheet.search("m", false) && sheet.cursor.at == 2);
        assert!(sheet.search("m", false) && sheet.cursor.at == 0);
    }
}
