//! Tables for people: as wide as the terminal, or as wide as they need to be where there is none.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsFd;

use comfy_table::{CellAlignment, ContentArrangement, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::bar::Bars;
use crate::output::{Colours, Layout, Role, in_markdown};

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names: cut where they do not fit.
    Left,
    /// Numbers: never cut.
    Right,
}

/// A table of strings under a header.
pub struct Table {
    aligns: Vec<Align>,
    dispensable: Vec<usize>,
    /// Columns are left out before names are cut to less.
    readable_name: usize,
    rows: Vec<Vec<String>>,
    /// Of each row.
    roles: Vec<Role>,
    /// Of each row: what its bar stands for, if it has one.
    parts: Vec<Option<f64>>,
    /// The column that bars stand after, where there are any.
    bars_after: Option<usize>,
    colours: Colours,
}

/// Spaces between one column and the next.
pub const GAP: usize = 2;
/// Spaces before each line of a row but the first.
const INDENT: usize = 4;
/// No name is cut to less.
const LEAST_NAME: usize = 8;
/// Where rows take several lines, they are cut to this.
const NAME_IN_LINES: usize = 20;
/// No name is cut to less than this to make room for bars.
const NAME_BESIDE_BARS: usize = 24;

impl Table {
    /// A table with these columns.
    pub fn new(columns: Vec<(String, Align)>) -> Self {
        let (titles, aligns): (Vec<String>, Vec<Align>) = columns.into_iter().unzip();
        let titles = titles.iter().map(|title| printable(title).into_owned()).collect();
        Table {
            aligns,
            dispensable: Vec::new(),
            readable_name: LEAST_NAME,
            rows: vec![titles],
            roles: vec![Role::Plain],
            parts: vec![None],
            bars_after: None,
            colours: Colours::NONE,
        }
    }

    /// Names columns that are left out, the first of them first, where not even cut names make the table fit.
    pub fn dispense_with(mut self, columns: Vec<usize>) -> Self {
        self.dispensable = columns;
        self
    }

    /// Leaves dispensable columns out before names are cut to less than so many columns.
    pub fn with_names_of(mut self, readable: usize) -> Self {
        self.readable_name = readable;
        self
    }

    /// Shows rows in the colours of their roles.
    pub fn in_colours(mut self, colours: Colours) -> Self {
        self.colours = colours;
        self
    }

    /// Shows bars after a column, where there are colours, too, and room: the longest is that of the row with the largest part.
    pub fn with_bars_after(mut self, column: Option<usize>) -> Self {
        self.bars_after = column;
        self
    }

    /// Adds a row that has a bar: `part` is what the bar stands for, in the unit of the others.
    pub fn row_with_bar(&mut self, role: Role, part: f64, cells: Vec<String>) {
        self.row_in(role, cells);
        self.parts.pop();
        self.parts.push(Some(part));
    }

    /// Adds a row: a cell for each column, in their order.
    pub fn row(&mut self, cells: Vec<String>) {
        self.row_in(Role::Plain, cells);
    }

    /// The same of a role.
    pub fn row_in(&mut self, role: Role, cells: Vec<String>) {
        self.roles.push(role);
        self.parts.push(None);
        self.rows.push(cells.iter().map(|cell| printable(cell).into_owned()).collect());
    }

    /// Prints it, cutting names to make it fit into the columns where there is a limit, and with more than one line for each row where that is
    /// not enough.
    pub fn print(mut self, out: &mut dyn Write, layout: impl Into<Layout>) -> std::io::Result<()> {
        let ends = match layout.into() {
            Layout::Markdown => return self.print_markdown(out),
            Layout::Columns(width) => self.fit(width),
            Layout::Text => {
                self.draw_bars(self.bars_after);
                vec![self.aligns.len()]
            }
        };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let drawn: Vec<Vec<String>> = starts.zip(&ends).map(|(start, end)| self.drawn(start..*end)).collect();
        for (row, role) in self.roles.iter().enumerate() {
            for (number, line) in drawn.iter().filter_map(|lines| lines.get(row)).enumerate() {
                let (indent, line) = (if number == 0 { 0 } else { INDENT }, line.trim_end());
                if number == 0 || !line.is_empty() {
                    writeln!(out, "{}", self.colours.paint(*role, &format!("{:indent$}{line}", "")))?;
                }
            }
        }
        Ok(())
    }

    /// These columns of each row, beside each other.
    fn drawn(&self, columns: Range<usize>) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.add_rows(self.rows.iter().map(|row| &row[columns.clone()]));
        for (index, align) in self.aligns[columns].iter().enumerate() {
            let Some(column) = table.column_mut(index) else { continue };
            column.set_padding((0, GAP as u16));
            if *align == Align::Right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().collect()
    }

    /// With an empty line after it, which ends it.
    fn print_markdown(self, out: &mut dyn Write) -> std::io::Result<()> {
        let line = |cells: &[String]| cells.iter().map(|cell| format!("| {} ", in_markdown(cell))).collect::<String>();
        let rule = self.aligns.iter().map(|align| if *align == Align::Right { "|--:" } else { "|:--" });
        let mut lines: Vec<String> = self.rows.iter().map(|row| line(row)).collect();
        lines.insert(1.min(lines.len()), rule.collect());
        lines.iter().try_for_each(|line| writeln!(out, "{line}|"))?;
        writeln!(out)
    }

    /// Makes it fit. A row takes one line or more: returns after which columns they end.
    fn fit(&mut self, width: usize) -> Vec<usize> {
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let fit_into = |width| Fit::of(&self.aligns, widths.clone(), (&self.dispensable, self.readable_name), width);
        let (mut fit, room) = (fit_into(width), Bars::WIDTH + GAP);
        let beside_bars = fit_into(width.saturating_sub(room));
        let is_readable = |(column, cut): &(usize, usize)| *cut >= widths[*column].min(NAME_BESIDE_BARS);
        let has_bars = self.has_bars()
            && beside_bars.columns.len() == fit.columns.len()
            && beside_bars.width() + room <= width
            && beside_bars.columns.iter().all(is_readable);
        if has_bars {
            fit = beside_bars;
        } else if fit.width() > width {
            // Where rows take several lines, names have more room.
            for (column, cut) in fit.columns.iter_mut().filter(|(column, _)| self.aligns[*column] == Align::Left) {
                *cut = widths[*column].min(NAME_IN_LINES).min(width.saturating_sub(INDENT));
            }
        }
        let aligns: Vec<Align> = fit.columns.iter().map(|(column, _)| self.aligns[*column]).collect();
        self.rows.iter_mut().for_each(|row| *row = fit.cells(row, &aligns));
        self.aligns = aligns;
        let place = |after: usize| fit.columns.iter().position(|(column, _)| *column == after);
        self.draw_bars(self.bars_after.filter(|_| has_bars).and_then(place));
        if has_bars { vec![self.aligns.len()] } else { fit.lines(width) }
    }

    /// Whether bars are wanted, and any row has one.
    fn has_bars(&self) -> bool {
        self.bars_after.is_some()
            && self.colours != Colours::NONE
            && self.parts.iter().flatten().any(|part| *part > 0.0)
    }

    /// Puts the column of bars after that one.
    fn draw_bars(&mut self, after: Option<usize>) {
        let Some(after) = after.filter(|_| self.has_bars()) else { return };
        let (bars, longest) = (Bars::of_locale(), self.parts.iter().flatten().copied().fold(0.0, f64::max));
        for (row, part) in self.rows.iter_mut().zip(&self.parts) {
            row.insert(after + 1, part.map_or(String::new(), |part| bars.draw(part / longest)));
        }
        self.aligns.insert(after + 1, Align::Left);
    }
}

/// Which columns of a table are shown, and how wide they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Their places in the table, and what they have room for.
    pub columns: Vec<(usize, usize)>,
}

impl Fit {
    /// The columns of these widths that fit into `width` columns of a terminal, with names cut where that is needed. The first of `dispensable`
    /// are left out first, as long as names have room for less than `name` columns. Numbers are not cut: they may be wider all together.
    pub fn of(aligns: &[Align], mut widths: Vec<usize>, (dispensable, name): (&[usize], usize), width: usize) -> Self {
        let mut shown: Vec<usize> = (0..widths.len()).collect();
        let least = |column: &usize| match aligns[*column] {
            Align::Left => widths[*column].min(name) + GAP,
            Align::Right => widths[*column] + GAP,
        };
        for leave_out in dispensable {
            if shown.iter().map(least).sum::<usize>() > width + GAP {
                shown.retain(|column| column != leave_out);
            }
        }
        let all: usize = shown.iter().map(|column| widths[*column] + GAP).sum();
        for _ in 0..all.saturating_sub(width + GAP) {
            let names = shown.iter().filter(|column| aligns[**column] == Align::Left);
            match names.max_by_key(|column| widths[**column]) {
                Some(&widest) if widths[widest] > LEAST_NAME => widths[widest] -= 1,
                _ => break,
            }
        }
        Fit { columns: shown.into_iter().map(|column| (column, widths[column])).collect() }
    }

    /// After which columns the lines of a row end, of which there is more than one where all columns do not fit beside each other: those after
    /// the first are indented.
    fn lines(&self, width: usize) -> Vec<usize> {
        let (mut ends, mut first, mut used) = (Vec::new(), 0, 0);
        for (column, (_, needed)) in self.columns.iter().enumerate() {
            if column > first && used + needed > width {
                ends.push(column);
                (first, used) = (column, INDENT);
            }
            used += needed + GAP;
        }
        ends.push(self.columns.len());
        ends
    }

    /// Columns that all of it takes, with the gaps.
    fn width(&self) -> usize {
        let widths: usize = self.columns.iter().map(|(_, width)| width + GAP).sum();
        widths.saturating_sub(GAP)
    }

    /// The cells of a row that are shown, names cut. `aligns` are those of the columns that are shown.
    fn cells(&self, row: &[String], aligns: &[Align]) -> Vec<String> {
        let cell = |((column, width), align): (&(usize, usize), &Align)| {
            let mut cell = row[*column].clone();
            if *align == Align::Left {
                cut(&mut cell, *width);
            }
            cell
        };
        self.columns.iter().zip(aligns).map(cell).collect()
    }
}

/// The text with its control characters escaped: names come from recordings and files, and must not command the terminal or
/// break lines.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Columns of the terminal that standard output is, if it is one.
pub fn terminal_width() -> Option<usize> {
    columns_of(std::io::stdout())
}

/// Columns of the terminal that a stream is, if it is one.
pub fn columns_of(stream: impl AsFd) -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(stream)?;
    Some(columns.into())
}

/// The characters that fit into that many columns, up to the first that does not.
fn fitting(text: impl Iterator<Item = char>, mut left: usize) -> impl Iterator<Item = char> {
    text.take_while(move |c| {
        let columns = c.width().unwrap_or(0);
        let fits = columns <= left;
        left = left.saturating_sub(columns);
        fits
    })
}

/// What of the end of a text fits into that many columns.
fn end(text: &str, columns: usize) -> String {
    let kept: Vec<char> = fitting(text.chars().rev(), columns).collect();
    kept.iter().rev().collect()
}

/// Cuts a text to that many columns: a path at its front, anything else at its end.
pub fn cut(text: &mut String, width: usize) {
    if text.width() <= width {
        return;
    }
    let left = width.saturating_sub(1);
    *text = if text.starts_with('/') {
        format!("…{}", end(text, left))
    } else {
        format!("{}…", fitting(text.chars(), left).collect::<String>())
    };
}

/// Cuts the name of a function to that many columns inside it: a quarter of them is the end, which tells the members of a class apart.
pub fn cut_inside(name: &mut String, width: usize) {
    if name.width() <= width {
        return;
    }
    let of_end = width / 4;
    let begin: String = fitting(name.chars(), (width - of_end).saturating_sub(1)).collect();
    *name = format!("{begin}…{}", end(name, of_end));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(width: Option<usize>) -> String {
        let columns = vec![("share", Align::Right), ("module", Align::Left), ("function", Align::Left)];
        let mut table = Table::new(columns.into_iter().map(|(title, align)| (title.to_string(), align)).collect());
        let row = |cells: [&str; 3]| cells.map(ToString::to_string).to_vec();
        table.row(row(["7 %", "/usr/lib/x86_64-linux-gnu/libc.so.6", "malloc"]));
        table.row(row(["12 %", "a.out", "core::fmt::Formatter::pad_integral"]));
        let mut out = Vec::new();
        table.print(&mut out, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_cut_to_the_terminal_and_numbers_are_not() {
        let expected = "\
share  module           function
  7 %  …-gnu/libc.so.6  malloc
 12 %  a.out            core::fmt::Fo…
";
        assert_eq!(printed(Some(38)), expected);
        assert!(printed(Some(38)).lines().all(|line| line.chars().count() <= 38));
    }

    #[test]
    fn what_does_not_fit_comes_in_lines_of_its_own() {
        let expected = "\
share
    module
    function
  7 %
    …linux-gnu/libc.so.6
    malloc
 12 %
    a.out
    core::fmt::Formatte…
";
        assert_eq!(printed(Some(24)), expected);
        for width in 12..120 {
            assert!(printed(Some(width)).lines().all(|line| line.width() <= width), "{width}");
        }
        let mut table = Table::new(["one", "two"].map(|title| (title.into(), Align::Left)).to_vec());
        table.row(vec!["abc".into(), String::new()]);
        let mut out = Vec::new();
        table.print(&mut out, Some(7)).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "one\n    two\nabc\n", "nothing has no line");
    }

    #[test]
    fn columns_one_can_do_without_go_first_to_last() {
        let columns = ["count", "ebs", "lbr"].map(|title| (title.to_string(), Align::Right)).to_vec();
        let printed = |width| {
            let mut table = Table::new(columns.clone()).dispense_with(vec![2, 1]);
            table.row(["1234567", "1234", "7654321"].map(ToString::to_string).to_vec());
            let mut out = Vec::new();
            table.print(&mut out, Some(width)).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(printed(22), "  count   ebs      lbr\n1234567  1234  7654321\n");
        assert_eq!(printed(21), "  count   ebs\n1234567  1234\n");
        assert_eq!(printed(12), "  count\n1234567\n");
    }

    /// A character of Chinese takes two columns, a combining accent none.
    #[test]
    fn names_are_cut_by_the_columns_that_they_take() {
        let check = |text: &str, width, expected: &str| {
            let mut name = text.to_string();
            cut(&mut name, width);
            assert_eq!(name, expected);
            assert!(name.width() <= width.max(1));
        };
        check("基本块计数", 10, "基本块计数");
        check("基本块计数", 8, "基本块…");
        check("/usr/lib/基本块", 8, "…/基本块");
        check("/usr/lib/基本块", 7, "…基本块");
        check("e\u{301}te\u{301}", 3, "e\u{301}te\u{301}");
        check("main", 0, "…");
    }

    #[test]
    fn long_names_of_functions_keep_their_end() {
        let check = |text: &str, width, expected: &str| {
            let mut name = text.to_string();
            cut_inside(&mut name, width);
            assert_eq!(name, expected);
            assert!(name.width() <= width.max(1));
        };
        check("Map<Key, Value>::insert", 23, "Map<Key, Value>::insert");
        check("Map<Key, Value>::insert", 20, "Map<Key, Value…nsert");
        check("基本块计数基本块计数", 13, "基本块计…数");
        check("main", 0, "…");
    }

    #[test]
    fn names_cannot_command_the_terminal() {
        let mut table = Table::new(vec![("module".into(), Align::Left)]);
        table.row(vec!["/tmp/\x1b[31mred\n# lost 0".into()]);
        let mut out = Vec::new();
        table.print(&mut out, None).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "module\n/tmp/\\u{1b}[31mred\\n# lost 0\n");
    }

    /// What is printed of a table with bars, in so many columns.
    fn with_bars(width: Option<usize>, colours: Colours, name: &str) -> String {
        let columns = [("share", Align::Right), ("function", Align::Left)].map(|(title, align)| (title.into(), align));
        let mut table = Table::new(columns.to_vec()).with_bars_after(Some(0)).in_colours(colours);
        table.row_with_bar(Role::Plain, 0.5, vec!["50 %".into(), name.into()]);
        table.row_with_bar(Role::Plain, 0.25, vec!["25 %".into(), "f".into()]);
        table.row(vec!["75 %".into(), "[all]".into()]);
        let mut out = Vec::new();
        table.print(&mut out, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bars_stand_where_there_is_room_and_colour() {
        let bars = |text: &str| -> Vec<usize> {
            text.lines().map(|line| line.chars().filter(|c| ['█', '#'].contains(c)).count()).collect()
        };
        assert_eq!(bars(&with_bars(Some(80), Colours::ALL, "main")), [0, 10, 5, 0]);
        assert_eq!(bars(&with_bars(None, Colours::ALL, "main")), [0, 10, 5, 0]);
        assert_eq!(bars(&with_bars(Some(80), Colours::NONE, "main")), [0; 4]);
        let long = "core::fmt::Formatter::pad_integral::very::long::name::of::a::function";
        // 5 for the share, 10 and 24, two gaps.
        assert_eq!(bars(&with_bars(Some(43), Colours::ALL, long)), [0, 10, 5, 0]);
        assert_eq!(bars(&with_bars(Some(42), Colours::ALL, long)), [0; 4]);
        for width in 20..120 {
            let text = with_bars(Some(width), Colours::ALL, long);
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        assert!(printed(None).contains("/usr/lib/x86_64-linux-gnu/libc.so.6  malloc"));
    }
}
