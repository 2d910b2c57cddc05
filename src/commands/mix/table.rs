//! The mix as a table for people.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use analyzer::mix::{Cell, Uncertainty};

use super::Report;
use crate::output::{Align, MARKED, Table, Unit, rounded, share, share_cells};

/// Prints the mix under its head.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let width = report.width;
    report.head.print(report.mix.instructions, out, width)?;
    let columns = Columns::of(report);
    let mut table = Table::new(columns.titles());
    let mut marked = false;
    let mut line = |keys: Vec<String>, row: &[Cell]| {
        marked |= !row.is_empty() && report.mix.uncertainty(row.iter()).share.rests_on_little;
        columns.cells(keys, row).into_iter().for_each(|cells| table.row(cells));
    };
    report.rows().take(report.top).for_each(|row| line(row[0].row.clone(), row));
    let (rows, others) = report.others();
    if !report.query.columns.is_empty() {
        line(columns.named(if rows == 1 { "[1 other]".into() } else { format!("[{rows} others]") }), others);
        line(columns.named("[all]".into()), &report.mix.cells);
    }
    table.print(out, width)?;
    if rows > 0 && report.query.columns.is_empty() {
        let rest = share(others.iter().map(|cell| cell.count).sum(), report.mix.instructions);
        writeln!(out, "... {rows} more rows with {rest} (--top 0 shows them)")?;
    }
    if let Some(more) = columns.left_out() {
        writeln!(out, "{more} (--format csv has them)")?;
    }
    if marked {
        writeln!(out, "{MARKED}")?;
    }
    Ok(())
}

/// The columns of a table of a mix: the keys of its rows, as many of the values of its columns as fit, count and share.
pub struct Columns<'a> {
    report: &'a Report<'a>,
    unit: Unit,
    /// Values of the column keys, the largest first, with their sums.
    across: Vec<(&'a Vec<String>, f64)>,
    left_out: Vec<(&'a Vec<String>, f64)>,
}

impl<'a> Columns<'a> {
    /// Those that fit into the width of a report.
    pub fn of(report: &'a Report<'a>) -> Self {
        let mut across = columns_by_size(report);
        let unit = if across.len() > 1 { Unit::for_counts_up_to(report.mix.instructions) } else { Unit::ONE };
        let left_out = across.split_off(columns_that_fit(report, &across, unit, report.width));
        Columns { report, unit, across, left_out }
    }

    /// What they are called.
    pub fn titles(&self) -> Vec<(String, Align)> {
        let query = self.report.query;
        let mut titles: Vec<(String, Align)> = query.rows.iter().map(|key| (key.to_string(), Align::Left)).collect();
        if !query.columns.is_empty() {
            titles.extend(self.across.iter().map(|(column, _)| (title_of(column), Align::Right)));
        }
        titles.push((format!("count{}", self.unit.suffix), Align::Right));
        titles.extend(["share", "±"].map(|title| (title.into(), Align::Right)));
        titles
    }

    /// The cells of a row: its keys, and what is added up of these cells of the mix; `None` of no cells.
    pub fn cells(&self, keys: Vec<String>, row: &[Cell]) -> Option<Vec<String>> {
        let Columns { report, unit, .. } = self;
        let shown = |sum: &Sum| unit.show(rounded(sum.count, sum.uncertainty.count));
        let mut cells = keys;
        if !report.query.columns.is_empty() {
            let mut by_column: HashMap<&Vec<String>, Vec<&Cell>> = HashMap::new();
            row.iter().for_each(|cell| by_column.entry(&cell.column).or_default().push(cell));
            let in_column = |column| Sum::of(report, by_column.get(column)?.iter().copied());
            let across = self.across.iter();
            cells.extend(across.map(|(column, _)| in_column(*column).as_ref().map_or(String::new(), shown)));
        }
        let sum = Sum::of(report, row.iter())?;
        cells.push(shown(&sum));
        cells.extend(share_cells(sum.count, report.mix.instructions, sum.uncertainty.share));
        Some(cells)
    }

    /// The keys of a row that has a name instead.
    pub fn named(&self, name: String) -> Vec<String> {
        let mut cells = vec![String::new(); self.report.query.rows.len()];
        cells[0] = name;
        cells
    }

    /// How many columns do not fit, in words.
    pub fn left_out(&self) -> Option<String> {
        let rest = share(self.left_out.iter().map(|(_, sum)| sum).sum(), self.report.mix.instructions);
        let more = self.left_out.len();
        (more > 0).then(|| format!("... {more} more columns with {rest} do not fit"))
    }
}

/// The sum of some cells.
struct Sum {
    count: f64,
    uncertainty: Uncertainty,
}

impl Sum {
    /// `None` of no cells.
    fn of<'a>(report: &Report<'_>, cells: impl Iterator<Item = &'a Cell> + Clone) -> Option<Self> {
        let count = cells.clone().map(|cell| cell.count).reduce(|sum, count| sum + count)?;
        Some(Sum { count, uncertainty: report.mix.uncertainty(cells) })
    }
}

/// How many of the columns, largest first, fit beside the row keys.
fn columns_that_fit(report: &Report<'_>, columns: &[(&Vec<String>, f64)], unit: Unit, width: Option<usize>) -> usize {
    const ROW_KEY: usize = 14;
    const COUNT_AND_SHARE: usize = 29;
    let Some(width) = width else { return columns.len() };
    let mut left = width.saturating_sub(ROW_KEY * report.query.rows.len() + COUNT_AND_SHARE);
    let needed = |(column, sum): &(&Vec<String>, f64)| title_of(column).len().max(unit.show(*sum).len()) + 2;
    let fitting = columns.iter().take_while(|column| {
        let fits = left >= needed(column);
        left = left.saturating_sub(needed(column));
        fits
    });
    fitting.count()
}

fn columns_by_size<'a>(report: &Report<'a>) -> Vec<(&'a Vec<String>, f64)> {
    let mut sums: BTreeMap<&'a Vec<String>, f64> = BTreeMap::new();
    for cell in &report.mix.cells {
        *sums.entry(&cell.column).or_default() += cell.count;
    }
    let mut columns: Vec<(&'a Vec<String>, f64)> = sums.into_iter().collect();
    columns.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    columns
}

fn title_of(column: &[String]) -> String {
    column.join("/")
}
