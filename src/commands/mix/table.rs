//! The mix as a table for people.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use analyzer::mix::{Cell, Dimension, Key, Mix, Sum};
use model::Source;
use reports::mix::nested::{Line, Node};
use reports::mix::numbers::{Number, bound, bound_of_cycles, part, per_call, ratio, uncertain_ratio};
use reports::mix::order::title_of;
use unicode_width::UnicodeWidthStr;

use super::Report;
use crate::output::{
    Align, MARKED, Role, Table, Unit, count, cut_inside, more, print_below, print_head, rounded, share, share_cells,
    times,
};

/// Prints the mix under its head.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    print_head(report.head, report.mix.instructions, out, report.layout)?;
    let columns = Columns::of(report);
    let mut table = Table::new(columns.titles()).in_colours(report.colours).with_bars_after(columns.bars_after());
    let (mut left_out, mut marked) = (None, false);
    report.for_each_line(|line| {
        if line.others && line.group.is_none() && !report.has_columns() {
            left_out = Some((line.nodes.len(), line.sum().count));
        } else {
            let (cells, rests_on_little) = columns.line(&line);
            marked |= rests_on_little;
            match line.row() {
                Some(row) => table.row_with_bar(Role::Plain, part(row.sum.count, line.whole.count), cells),
                None => table.row(cells),
            }
        }
    });
    columns.all().into_iter().for_each(|cells| table.row(cells));
    table.print(out, report.layout)?;
    if let Some((rows, sum)) = left_out {
        let rest = share(sum, report.mix.instructions);
        let what = if report.is_nested() { ["group", "groups"] } else { ["row", "rows"] };
        let is_shown = report.numbers().any(|number| matches!(number, Number::Share | Number::Executions));
        let of = if is_shown { "" } else { " of the instructions" };
        print_below(&more(rows, what, &format!("{rest}{of}")), out, report.layout)?;
    }
    if let Some(left_out) = columns.left_out() {
        print_below(&format!("{left_out} (--format csv has them)"), out, report.layout)?;
    }
    if marked {
        print_below(MARKED, out, report.layout)?;
    }
    Ok(())
}

/// The columns of a table of a mix: the keys of its rows, as many of the values of its columns as fit, and numbers.
pub struct Columns<'r, 'a> {
    report: &'r Report<'a>,
    unit: Unit,
    /// Values of the column keys, the largest first, with their sums.
    across: Vec<(&'a Vec<String>, f64)>,
    left_out: Vec<(&'a Vec<String>, f64)>,
}

impl<'r, 'a> Columns<'r, 'a> {
    /// Those that fit into the width of a report.
    pub fn of(report: &'r Report<'a>) -> Self {
        let mut across = columns_by_size(report);
        let unit = if across.len() > 1 { Unit::for_counts_up_to(report.mix.instructions) } else { Unit::ONE };
        let left_out = across.split_off(columns_that_fit(report, &across, unit, report.layout.width()));
        Columns { report, unit, across, left_out }
    }

    /// What they are called.
    pub fn titles(&self) -> Vec<(String, Align)> {
        let report = self.report;
        let mut titles: Vec<(String, Align)> =
            report.query.rows.iter().map(|key| (key.to_string(), Align::Left)).collect();
        if report.has_columns() {
            titles.extend(self.across.iter().map(|(column, _)| (title_in(column, report), Align::Right)));
        }
        titles.extend(report.numbers().map(|number| (self.title(number), Align::Right)));
        titles
    }

    /// The column of the shares, or of their uncertainty if it is the next one: bars stand after it.
    fn bars_after(&self) -> Option<usize> {
        let numbers: Vec<Number> = self.report.numbers().collect();
        let share = numbers.iter().position(|number| *number == Number::Share)?;
        let error = numbers.get(share + 1).is_some_and(|number| *number == Number::Error);
        Some(self.titles().len() - numbers.len() + share + usize::from(error))
    }

    /// How many columns do not fit, in words.
    pub fn left_out(&self) -> Option<String> {
        let rest = share(self.left_out.iter().map(|(_, sum)| sum).sum(), self.report.mix.instructions);
        match self.left_out.len() {
            0 => None,
            1 => Some(format!("... 1 more column with {rest} does not fit")),
            more => Some(format!("... {more} more columns with {rest} do not fit")),
        }
    }

    /// The cells of a row.
    pub fn row(&self, row: &Node<'_>) -> Vec<String> {
        self.numbers(row.values.to_vec(), row.cells.clone(), (&row.sum, &self.report.mix.all), row.values).0
    }

    /// Those of all rows together, where there are columns to be added up.
    pub fn all(&self) -> Option<Vec<String>> {
        let (all, cells) = (&self.report.mix.all, || self.report.mix.cells.iter().collect());
        let named = || self.named("[all]".into(), 0);
        self.report.has_columns().then(|| self.numbers(named(), cells(), (all, all), &[]).0)
    }

    fn title(&self, number: Number) -> String {
        match number {
            Number::Executions => format!("{}{}", number.title(), self.unit.suffix),
            _ => number.title().to_owned(),
        }
    }

    /// The cells of a line, and whether it rests on little. Values of keys that its group has are not repeated.
    fn line(&self, line: &Line<'_, '_>) -> (Vec<String>, bool) {
        let known = line.group.map_or(0, |group| group.values.len());
        let (names, row) = match line.nodes {
            [node] if !line.others => {
                let mut names = vec![String::new(); self.report.query.rows.len()];
                let new = node.values.iter().enumerate().skip(known);
                new.for_each(|(at, value)| names[at].clone_from(value));
                (names, node.values)
            }
            [_] => (self.named("[1 other]".into(), known), Default::default()),
            many => (self.named(format!("[{} others]", many.len()), known), Default::default()),
        };
        self.numbers(names, line.cells().collect(), (&line.sum(), line.whole), row)
    }

    /// The name of a line in the column of a key.
    fn named(&self, name: String, key: usize) -> Vec<String> {
        let mut cells = vec![String::new(); self.report.query.rows.len()];
        cells[key] = name;
        cells
    }

    fn numbers(
        &self,
        mut line: Vec<String>,
        cells: Vec<&Cell>,
        (sum, whole): (&Sum, &Sum),
        row: &[String],
    ) -> (Vec<String>, bool) {
        let report = self.report;
        line.iter_mut().zip(&report.query.rows).for_each(|(value, key)| call_as_people_do(value, key, report));
        if report.has_columns() {
            let mut by_column: HashMap<&Vec<String>, Vec<&Cell>> = HashMap::new();
            cells.into_iter().for_each(|cell| by_column.entry(&cell.column).or_default().push(cell));
            for (column, _) in &self.across {
                let of_column = by_column.remove(column).map(Sum::of);
                line.push(of_column.map_or(String::new(), |part| self.in_column(&part, (sum, whole), row)));
            }
        }
        let share = report.mix.share_within(sum, whole);
        let [of_whole, mut error] = share_cells(sum.count, whole.count, share);
        if std::ptr::eq(sum, whole) {
            error.clear();
        }
        line.extend(report.numbers().map(|number| match number {
            Number::Executions => self.unit.show(rounded(sum.count, report.mix.uncertainty_of(sum).count)),
            Number::Share | Number::RowShare => of_whole.clone(),
            Number::Error => error.clone(),
            Number::Samples => self.samples(sum),
            number if number.is_per_call() => self.per_call(number, sum, row),
            number if number.is_of_operations() => self.of_operations(number, sum),
            number if number.is_of_cycles() => of_cycles(number, sum),
            number if number.is_of_time() => self.of_time(number, sum, whole),
            number => of_branches(number, self.report.mix, sum),
        }));
        let shows_error = report.numbers().any(|number| number == Number::Error) && !error.is_empty();
        (line, share.rests_on_little && shows_error)
    }

    /// What a line has in a column.
    fn in_column(&self, part: &Sum, (row_sum, whole): (&Sum, &Sum), row: &[String]) -> String {
        let share_of = |whole: &Sum| {
            let [share, _] = share_cells(part.count, whole.count, self.report.mix.share_within(part, whole));
            share
        };
        match self.report.number_of_columns() {
            Number::Share => share_of(whole),
            Number::RowShare => share_of(row_sum),
            Number::Samples => self.samples(part),
            number if number.is_per_call() => self.per_call(number, part, row),
            number if number.is_of_operations() => self.of_operations(number, part),
            number if number.is_of_cycles() => of_cycles(number, part),
            number if number.is_of_time() => self.of_time(number, part, whole),
            number if number.is_of_branches() => of_branches(number, self.report.mix, part),
            _ => self.unit.show(rounded(part.count, self.report.mix.uncertainty_of(part).count)),
        }
    }

    fn samples(&self, sum: &Sum) -> String {
        if self.report.knows_samples() { count(sum.samples) } else { "-".into() }
    }

    /// A part of the time, or how long an instruction took; `-` where it is not known.
    fn of_time(&self, number: Number, sum: &Sum, whole: &Sum) -> String {
        let mix = self.report.mix;
        let Some(time) = mix.time_within(sum, whole) else { return "-".into() };
        let [share, error] = share_cells(time.share, 1.0, time.interval());
        match number {
            Number::Time => share,
            Number::TimeError => error,
            _ => mix.time_per_instruction(sum).map_or("-".into(), times),
        }
    }

    fn per_call(&self, number: Number, sum: &Sum, row: &[String]) -> String {
        let value = per_call(number, self.report.mix, self.report.query, row, sum);
        value.map_or("-".into(), |value| bounded(number, sum) + &ratio(value))
    }

    /// Floating-point operations, bytes, or the ratio; `-` where they are not known.
    fn of_operations(&self, number: Number, sum: &Sum) -> String {
        let Some((value, of)) = number.of_operations(sum).zip(sum.operations.as_ref()) else { return "-".into() };
        let design = &self.report.mix.design;
        let shown = match number {
            Number::Intensity => uncertain_ratio(value, of.intensity_interval(design)),
            Number::Flops => count(rounded(value, of.flops_interval(design))),
            _ => count(rounded(value, of.bytes_interval(design))),
        };
        bounded(number, sum) + &shown
    }
}

/// What goes before a number of operations or cycles: `≤ ` where it is at most so much.
fn bounded(number: Number, sum: &Sum) -> String {
    if number.is_of_cycles() {
        return bound_of_cycles(number, sum).to_owned();
    }
    sum.operations.as_ref().map_or("", |of| bound(number, sum.count, &of.sum)).to_owned()
}

/// Cycles, or instructions for each; `-` where none are known.
fn of_cycles(number: Number, sum: &Sum) -> String {
    let Some(value) = number.of_cycles(sum) else { return "-".into() };
    bounded(number, sum) + &if number == Number::Ipc { ratio(value) } else { count(value) }
}

/// A number of taken branches; `-` where it is none.
fn of_branches(number: Number, mix: &Mix, sum: &Sum) -> String {
    let Some(value) = number.of_branches(mix, sum) else { return "-".into() };
    match number {
        Number::MispredictRate => share(value, 1.0),
        Number::PerTaken => ratio(value),
        _ => count(value),
    }
}

/// Of the source of branches, people have another name where they were traced.
fn call_as_people_do(value: &mut String, key: &Key, report: &Report<'_>) {
    if *key == Dimension::Chosen && *value == Source::Lbr.as_str() {
        report.branches.clone_into(value);
    }
}

/// What a column is called: on a terminal, long names of functions would be all that there is.
fn title_in(column: &[String], report: &Report<'_>) -> String {
    const LONGEST: usize = 24;
    let mut values = column.to_vec();
    values.iter_mut().zip(&report.query.columns).for_each(|(value, key)| call_as_people_do(value, key, report));
    let mut title = title_of(&values);
    if report.layout.width().is_some() {
        cut_inside(&mut title, LONGEST);
    }
    title
}

/// How many of the columns, largest first, fit beside the row keys; one always has a place.
fn columns_that_fit(report: &Report<'_>, columns: &[(&Vec<String>, f64)], unit: Unit, width: Option<usize>) -> usize {
    const ROW_KEY: usize = 14;
    const A_NUMBER: usize = 10;
    /// So many there are where nothing limits them.
    const MOST: usize = 200;
    let Some(width) = width.filter(|_| report.has_columns()) else { return columns.len().min(MOST) };
    let beside = ROW_KEY * report.query.rows.len() + A_NUMBER * report.numbers().count();
    let mut left = width.saturating_sub(beside);
    let as_shown = |sum: f64| match report.number_of_columns() {
        Number::Executions => unit.show(sum).len(),
        _ => A_NUMBER - 2,
    };
    let needed = |(column, sum): &(&Vec<String>, f64)| title_in(column, report).width().max(as_shown(*sum)) + 2;
    let fitting = columns.iter().take_while(|column| {
        let needed = needed(column);
        let fits = left >= needed;
        left = left.saturating_sub(needed);
        fits
    });
    fitting.count().max(1).min(columns.len())
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
