//! Tables for people: as wide as the terminal, or as wide as they need to be where there is none.

use std::borrow::Cow;
use std::io::Write;

use comfy_table::{CellAlignment, ContentArrangement, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
    colours: Colours,
}

/// Spaces between one column and the next.
pub const GAP: usize = 2;
/// No name is cut to less.
const LEAST_NAME: usize = 8;

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

    /// Adds a row: a cell for each column, in their order.
    pub fn row(&mut self, cells: Vec<String>) {
        self.row_in(Role::Plain, cells);
    }

    /// The same of a role.
    pub fn row_in(&mut self, role: Role, cells: Vec<String>) {
        self.roles.push(role);
        self.rows.push(cells.iter().map(|cell| printable(cell).into_owned()).collect());
    }

    /// Prints it, cutting names to make it fit into the columns where there is a limit.
    pub fn print(mut self, out: &mut dyn Write, layout: impl Into<Layout>) -> std::io::Result<()> {
        match layout.into() {
            Layout::Markdown => return self.print_markdown(out),
            Layout::Columns(width) => self.fit(width),
            Layout::Text => {}
        }
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.add_rows(self.rows);
        for (index, align) in self.aligns.iter().enumerate() {
            let Some(column) = table.column_mut(index) else { continue };
            column.set_padding((0, GAP as u16));
            if *align == Align::Right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (line, role) in table.lines().zip(self.roles) {
            writeln!(out, "{}", self.colours.paint(role, line.trim_end()))?;
        }
        Ok(())
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

    fn fit(&mut self, width: usize) {
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let fit = Fit::of(&self.aligns, widths, (&self.dispensable, self.readable_name), width);
        let aligns: Vec<Align> = fit.columns.iter().map(|(column, _)| self.aligns[*column]).collect();
        self.rows.iter_mut().for_each(|row| *row = fit.cells(row, &aligns));
        self.aligns = aligns;
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
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(columns.into())
}

/// Cuts a text to that many columns: a path at its front, anything else at its end.
pub fn cut(text: &mut String, width: usize) {
    if text.width() <= width {
        return;
    }
    let mut left = width.saturating_sub(1);
    let mut fits = |c: &char| {
        let columns = c.width().unwrap_or(0);
        let fits = columns <= left;
        left = if fits { left - columns } else { 0 };
        fits
    };
    *text = if text.starts_with('/') {
        let kept: Vec<char> = text.chars().rev().take_while(&mut fits).collect();
        format!("…{}", kept.iter().rev().collect::<String>())
    } else {
        format!("{}…", text.chars().take_while(fits).collect::<String>())
    };
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
        assert!(printed(Some(10)).contains(" 12 %  a.out"));
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
    fn names_cannot_command_the_terminal() {
        let mut table = Table::new(vec![("module".into(), Align::Left)]);
        table.row(vec!["/tmp/\x1b[31mred\n# lost 0".into()]);
        let mut out = Vec::new();
        table.print(&mut out, None).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "module\n/tmp/\\u{1b}[31mred\\n# lost 0\n");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        assert!(printed(None).contains("/usr/lib/x86_64-linux-gnu/libc.so.6  malloc"));
    }
}
