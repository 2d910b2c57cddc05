//! Lines of code under titles, as wide as the terminal.

use std::io::Write;

use analyzer::address::Svma;
use unicode_width::UnicodeWidthStr;

use crate::output::{self, Colours, Role, cut, printable};

/// Spaces between one column and the next.
const GAP: &str = "  ";
/// Columns that one can do without go where less is left for the code.
const LEAST_CODE: usize = 34;
const LOOPS: &str = "loops";

/// A line of a listing.
#[derive(Default)]
pub struct Line {
    /// Numbers: one for each column, or none at all.
    pub cells: Vec<String>,
    /// How much they are.
    pub heat: Role,
    /// Bars of the loops that the line is in.
    pub bars: String,
    /// What the numbers are of.
    pub body: String,
    /// What the body is.
    pub role: Role,
    /// What is said of it: after it, or below where there is no room.
    pub note: String,
    /// Where the instruction is, if the line is one.
    pub address: Option<Svma>,
}

/// A line as it is shown: its parts, from the left, and what they are.
pub type Shown = Vec<(Role, String)>;

/// Lines under titles. The body may be of any width, and is cut where it does not fit.
pub struct Listing {
    pub titles: Vec<&'static str>,
    /// Columns that are left out, the first of them first, where the body would be too narrow.
    pub dispensable: Vec<&'static str>,
    /// How wide bars are; 0 without loops.
    pub bars: usize,
    pub lines: Vec<Line>,
}

/// Which columns are shown, and how wide everything is.
struct Layout {
    shown: Vec<usize>,
    widths: Vec<usize>,
    bars: usize,
    body: Option<usize>,
}

impl Listing {
    /// Prints it, cut to the columns that there are; in Markdown as code.
    pub fn print(&self, out: &mut dyn Write, layout: output::Layout, colours: Colours) -> std::io::Result<()> {
        let fence =
            |out: &mut dyn Write| if layout == output::Layout::Markdown { writeln!(out, "```") } else { Ok(()) };
        let (titles, lines) = self.shown(layout.width());
        fence(out)?;
        for line in std::iter::once(titles).chain(lines.flat_map(|(_, shown)| shown)) {
            let painted: String = line.iter().map(|(role, part)| colours.paint(*role, part)).collect();
            writeln!(out, "{painted}")?;
        }
        fence(out)
    }

    /// The titles, and each line with what is shown of it: one line, or two where its note has no room beside it. Nothing is wider than `width`
    /// columns where there is a limit.
    pub fn shown(&self, width: Option<usize>) -> (Shown, impl Iterator<Item = (&Line, Vec<Shown>)>) {
        let layout = self.layout(width);
        let titles = Line {
            cells: self.titles.iter().map(|title| (*title).to_owned()).collect(),
            bars: if self.bars > 0 { LOOPS.into() } else { String::new() },
            heat: Role::Dim,
            ..Line::default()
        };
        let titles = layout.shown(&titles).into_iter().next().unwrap_or_default();
        (titles, self.lines.iter().map(move |line| (line, layout.shown(line))))
    }

    fn layout(&self, width: Option<usize>) -> Layout {
        let width_of = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.cells.get(column)).map(|cell| cell.width());
            cells.chain([self.titles[column].width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.titles.len()).map(width_of).collect();
        let bars = if self.bars > 0 { self.bars.max(LOOPS.len()) + GAP.len() } else { 0 };
        let before = |shown: &[usize]| shown.iter().map(|column| widths[*column] + GAP.len()).sum::<usize>() + bars;
        let mut shown: Vec<usize> = (0..widths.len()).collect();
        for dispensable in &self.dispensable {
            if width.is_some_and(|width| before(&shown) + LEAST_CODE > width) {
                shown.retain(|column| self.titles[*column] != *dispensable);
            }
        }
        let body = width.map(|width| width.saturating_sub(before(&shown)).max(1));
        Layout { shown, widths, bars, body }
    }
}

impl Layout {
    fn shown(&self, line: &Line) -> Vec<Shown> {
        let mut before = String::new();
        for column in &self.shown {
            let cell = line.cells.get(*column).map_or("", String::as_str);
            before += &" ".repeat(self.widths[*column].saturating_sub(cell.width()));
            before += cell;
            before += GAP;
        }
        let (body, note) = (printable(&line.body), printable(&line.note));
        let is_beside = note.is_empty() || self.body.is_none_or(|most| body.width() + GAP.len() + note.width() <= most);
        let parts = |before: String, body: &str, note: &str| {
            let bars = format!("{}{}", line.bars, " ".repeat(self.bars.saturating_sub(line.bars.width())));
            let note = if note.is_empty() { String::new() } else { self.cut(note) };
            // Below the body, it begins where that does.
            let gap = if body.is_empty() || note.is_empty() { "" } else { GAP };
            let body = format!("{}{gap}", self.cut(body));
            let mut parts = vec![(line.heat, before), (Role::Drawn, bars), (line.role, body), (Role::Dim, note)];
            while parts.pop_if(|(_, part)| part.trim().is_empty()).is_some() {}
            parts.last_mut().into_iter().for_each(|(_, part)| part.truncate(part.trim_end().len()));
            parts
        };
        if is_beside {
            return vec![parts(before, &body, &note)];
        }
        let indent = &body[..body.len() - body.trim_start().len()];
        let spaces = " ".repeat(before.width());
        vec![parts(before, &body, ""), parts(spaces, "", &format!("{indent}{note}"))]
    }

    fn cut(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.body.into_iter().for_each(|width| cut(&mut text, width));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let line = |cells: [&str; 3], body: &str, note: &str| Line {
            cells: cells.map(str::to_owned).to_vec(),
            bars: "│".into(),
            body: body.into(),
            note: note.into(),
            ..Line::default()
        };
        Listing {
            titles: vec!["share", "±", "count"],
            dispensable: vec!["±"],
            bars: 1,
            lines: vec![
                line(["12 %", "1.5", "1,234"], "  401000  jne 0x401020", "; taken 12 % of the time"),
                Line::default(),
            ],
        }
    }

    fn printed(width: Option<usize>) -> String {
        let mut out = Vec::new();
        listing().print(&mut out, width.into(), Colours::NONE).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn notes_go_below_where_there_is_no_room_beside() {
        let wide =
            "share    ±  count  loops\n 12 %  1.5  1,234  │        401000  jne 0x401020  ; taken 12 % of the time\n\n";
        assert_eq!(printed(None), wide);
        assert_eq!(printed(Some(80)), wide);
        let narrow = "share  count  loops\n 12 %  1,234  │        401000  jne 0x401020\n              │        ; taken 12 % of the time\n\n";
        assert_eq!(printed(Some(50)), narrow);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 30..100 {
            let text = printed(Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
        }
    }
}
