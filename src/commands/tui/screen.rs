//! What is drawn.

use anstyle::{Ansi256Color, Color as AnyColor, Effects};
use ratatui::Frame;
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::browser::{Browser, Page, View};
use super::code::Code;
use super::sheet::{Row, Sheet};
use crate::output::{Align, Colours, Fit, GAP, Role, cut, head_in_short, printable};

/// How many lines each part of the screen has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the counts are made from, and how right they are.
    about: usize,
    /// What the view is of.
    heading: usize,
    /// The rows, or the code.
    pub body: usize,
    /// A row that stays at the end.
    total: usize,
}

impl Layout {
    /// Small screens have room for less.
    pub fn of(browser: &Browser<'_>) -> Self {
        const TABS_TITLES_AND_STATUS: usize = 3;
        let height = usize::from(browser.size().height);
        let lines = |wanted: usize, least: usize| if height >= least { wanted } else { 0 };
        let about = lines(1, 10) + lines(1, 12);
        let heading = match browser.view() {
            View::Code => lines(1, 7) + lines(1, 14),
            View::Pivot | View::Diff => lines(1, 7),
            View::Functions | View::Blocks => 0,
        };
        let total = usize::from(browser.sheet().is_some_and(|sheet| sheet.total.is_some() && height >= 7));
        let body = height.saturating_sub(TABS_TITLES_AND_STATUS + about + heading + total);
        Layout { about, heading, body, total }
    }
}

/// Lines from above.
struct Pen<'f, 'b> {
    frame: &'f mut Frame<'b>,
    colours: Colours,
    y: u16,
}

impl Pen<'_, '_> {
    fn line(&mut self, line: Line<'_>) {
        let area = Rect { y: self.y, height: 1, ..self.frame.area() }.intersection(self.frame.area());
        self.frame.render_widget(line, area);
        self.y = self.y.saturating_add(1);
    }

    /// A text that is cut at the end of the screen.
    fn text(&mut self, text: &str, style: Style) {
        let mut text = printable(text).into_owned();
        // Paths are cut at their front elsewhere.
        let width = usize::from(self.frame.area().width);
        if text.width() > width && width > 0 {
            text.insert(0, ' ');
            cut(&mut text, width + 1);
            text.remove(0);
        }
        self.line(Line::styled(text, style));
    }

    fn style(&self, role: Role) -> Style {
        style(self.colours, role)
    }
}

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, browser: &Browser<'_>, colours: Colours) {
    let layout = Layout::of(browser);
    let (width, height) = (usize::from(frame.area().width), frame.area().height);
    let mut pen = Pen { frame, colours, y: 0 };
    tabs(&mut pen, browser, width);
    about(&mut pen, browser, layout.about);
    match browser.view() {
        View::Code => {
            if let Some(code) = &browser.recorded().code {
                lines_of_code(&mut pen, code, layout, width);
            }
        }
        _ => {
            if layout.heading > 0 {
                heading(&mut pen, browser);
            }
            if let Some(sheet) = browser.sheet() {
                rows(&mut pen, sheet, layout, width);
            }
        }
    }
    if let Some(page) = &browser.page {
        let lines = page_lines(page, browser.size());
        pen.frame.render_widget(ratatui::widgets::Clear, pen.frame.area());
        pen.y = 0;
        let (bold, plain) = (pen.style(Role::Title), Style::new());
        let seen = usize::from(height).saturating_sub(1);
        for (title, text) in lines.iter().skip(page.top).take(seen) {
            pen.line(Line::from(vec![Span::styled(title.clone(), bold), Span::styled(text.clone(), plain)]));
        }
    }
    status(&mut pen, browser, (width, height));
}

fn tabs(pen: &mut Pen<'_, '_>, browser: &Browser<'_>, width: usize) {
    let tab = |(at, view): (usize, View)| {
        let is_seen = view == browser.view();
        let style = if is_seen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        (is_seen, Span::styled(format!(" {} {} ", at + 1, view.name()), style))
    };
    let views = View::ALL.into_iter().enumerate().filter(|(_, view)| browser.has(*view));
    let mut tabs: Vec<(bool, Span<'_>)> = views.map(tab).collect();
    let side = browser.side().map_or(String::new(), |side| format!(" ({side})"));
    let title = format!("  {}{side}", printable(&browser.recorded().title));
    if tabs.iter().map(|(_, tab)| tab.width()).sum::<usize>() + title.width() > width {
        tabs.retain(|(is_seen, _)| *is_seen);
    }
    let title = Span::styled(title, pen.style(Role::Title));
    pen.line(tabs.into_iter().map(|(_, tab)| tab).chain([title]).collect());
}

/// What the head of a report says in its first lines: the source, and how right the numbers of this view are.
fn about(pen: &mut Pen<'_, '_>, browser: &Browser<'_>, lines: usize) {
    let recorded = browser.recorded();
    let head = head_in_short(&recorded.head, recorded.analysis.instructions());
    let source = head.iter().find(|(title, _)| *title == "source").map(|(_, text)| text.as_str());
    let errors = match browser.view() {
        View::Blocks => recorded.blocks.as_ref().and_then(|(_, errors)| errors.as_deref()),
        View::Pivot => recorded.pivot.errors.as_deref(),
        _ => recorded.head.precision.as_ref().map(|precision| precision.text.as_str()),
    };
    let dim = pen.style(Role::Dim);
    for (title, text) in [("source", source), ("errors", errors)].into_iter().take(lines) {
        pen.text(&text.map_or(String::new(), |text| format!("{title}  {text}")), dim);
    }
}

fn heading(pen: &mut Pen<'_, '_>, browser: &Browser<'_>) {
    let pivot = &browser.recorded().pivot;
    let text = match browser.view() {
        View::Pivot => {
            let left_out = pivot.left_out.as_ref().map_or(String::new(), |more| format!("  {more}"));
            format!("{}{left_out}", pivot.words())
        }
        _ => browser.diff().map_or(String::new(), |diff| format!("overlap  {}", diff.overlap)),
    };
    let style = pen.style(Role::Title);
    pen.text(&text, style);
}

fn lines_of_code(pen: &mut Pen<'_, '_>, code: &Code, layout: Layout, width: usize) {
    let styles = [pen.style(Role::Title), Style::new()];
    for (text, style) in [&code.title, &code.facts].into_iter().zip(styles).take(layout.heading) {
        pen.text(text, style);
    }
    let colours = pen.colours;
    let line = |shown: &[(Role, String)]| -> Line<'_> {
        shown.iter().map(|(role, part)| Span::styled(part.clone(), style(colours, *role))).collect()
    };
    pen.line(line(&code.titles));
    for (at, shown) in code.lines.iter().enumerate().skip(code.cursor.top).take(layout.body) {
        let line = line(&shown.shown);
        pen.line(if at == code.cursor.at { chosen(line, width) } else { line });
    }
}

fn rows(pen: &mut Pen<'_, '_>, sheet: &Sheet, layout: Layout, width: usize) {
    let fit = sheet.fit(width);
    let titles: Vec<String> = sheet.columns.iter().map(|(title, _)| title.clone()).collect();
    let (dim, colours) = (pen.style(Role::Dim), pen.colours);
    pen.line(cells(sheet, &fit, &titles, |_| dim));
    let end = pen.y.saturating_add(u16::try_from(layout.body).unwrap_or(u16::MAX));
    for at in sheet.cursor.top..sheet.cursor.top.saturating_add(layout.body) {
        let Some(Row { cells: of_row, heat, .. }) = sheet.row(at) else { break };
        let hot = style(colours, *heat);
        let line = cells(sheet, &fit, of_row, |align| if align == Align::Right { hot } else { Style::new() });
        pen.line(if at == sheet.cursor.at { chosen(line, width) } else { line });
    }
    if let Some(total) = sheet.total.as_ref().filter(|_| layout.total > 0) {
        pen.y = end;
        let title = pen.style(Role::Title);
        pen.line(cells(sheet, &fit, total, |_| title));
    }
}

fn cells<'a>(sheet: &Sheet, fit: &Fit, cells: &[String], style: impl Fn(Align) -> Style) -> Line<'a> {
    let cell = |(column, width): &(usize, usize)| {
        let align = sheet.columns[*column].1;
        let mut cell = cells.get(*column).cloned().unwrap_or_default();
        if align == Align::Left {
            cut(&mut cell, *width);
        }
        let spaces = " ".repeat(width.saturating_sub(cell.width()));
        let gap = " ".repeat(GAP);
        let text = if align == Align::Left { format!("{cell}{spaces}{gap}") } else { format!("{spaces}{cell}{gap}") };
        Span::styled(text, style(align))
    };
    fit.columns.iter().map(cell).collect()
}

/// A line that was chosen.
fn chosen(mut line: Line<'_>, width: usize) -> Line<'_> {
    line.push_span(" ".repeat(width.saturating_sub(line.width())));
    line.spans.iter_mut().for_each(|span| span.style = span.style.add_modifier(Modifier::REVERSED));
    line
}

/// The last line: what is typed, what there is to say, or what keys do.
fn status(pen: &mut Pen<'_, '_>, browser: &Browser<'_>, (width, height): (usize, u16)) {
    let last = height.saturating_sub(1);
    pen.y = last;
    let title = pen.style(Role::Title);
    let say = |pen: &mut Pen<'_, '_>, text: &str| {
        let mut text = printable(text).into_owned();
        text += &" ".repeat(width.saturating_sub(text.width()));
        pen.text(&text, title);
    };
    if let Some(prompt) = &browser.prompt {
        if let Some(message) = &browser.message {
            pen.y = last.saturating_sub(1);
            say(pen, message);
        }
        let question = prompt.question();
        // What is typed last is seen.
        let before = format!("{question}{}", printable(&prompt.before()));
        let line = format!("{question}{}", printable(&prompt.text()));
        let (hidden, seen) = without_begin(&line, before.width().saturating_sub(width.saturating_sub(1)));
        say(pen, seen);
        let x = u16::try_from(before.width().saturating_sub(hidden)).unwrap_or(u16::MAX);
        pen.frame.set_cursor_position(Position { x: x.min(pen.frame.area().width.saturating_sub(1)), y: last });
        return;
    }
    if let Some(text) = browser.awaited().or(browser.message.as_deref()) {
        return say(pen, text);
    }
    let ([keys, fewer], place) = (hints(browser), place(browser));
    let room = width.saturating_sub(place.width() + GAP);
    let dim = pen.style(Role::Dim);
    let keys = if keys.width() <= room { keys } else { fewer };
    let spaces = if keys.width() <= room { width - keys.width() - place.width() } else { GAP };
    pen.text(&format!("{keys}{}{place}", " ".repeat(spaces)), dim);
}

/// A text without the characters that fill so many columns, and how many columns these really have: one may be wider than what is left.
fn without_begin(text: &str, columns: usize) -> (usize, &str) {
    let mut hidden = 0;
    for (at, c) in text.char_indices() {
        if hidden >= columns {
            return (hidden, &text[at..]);
        }
        hidden += c.width().unwrap_or(0);
    }
    (hidden, "")
}

/// What keys do, and the same in fewer words.
fn hints(browser: &Browser<'_>) -> [String; 2] {
    if browser.page.is_some() {
        return ["arrows more  Esc back", "Esc back"].map(str::to_owned);
    }
    let of_view = match browser.view() {
        View::Functions | View::Blocks => "Enter code  / search  f filter  s sort",
        View::Code => "Enter follow  Esc back  / search",
        View::Pivot => "r rows  c columns  f filter  s sort  / search",
        View::Diff => "Enter code  x other  / search  f filter  s sort",
    };
    let always = "? help  q quit";
    [format!("{of_view}  Tab view  {always}"), always.to_owned()]
}

/// Where in the list the chosen line is, and how it is sorted.
fn place(browser: &Browser<'_>) -> String {
    match (browser.sheet(), &browser.recorded().code) {
        _ if browser.page.is_some() => String::new(),
        (Some(sheet), _) => {
            let at = (sheet.cursor.at + 1).min(sheet.length());
            let of = if sheet.length() < sheet.all() { format!(" (of {})", sheet.all()) } else { String::new() };
            format!("{at}/{}{of} {}", sheet.length(), sheet.sorted_by())
        }
        (None, Some(code)) => format!("{}/{}", code.cursor.at + 1, code.lines.len()),
        (None, None) => String::new(),
    }
}

/// The lines of a page, broken at words: titles and texts.
pub fn page_lines(page: &Page, size: Size) -> Vec<(String, String)> {
    const GAP: usize = 2;
    let titles = page.lines.iter().map(|(title, _)| title.width()).max().unwrap_or(0) + GAP;
    let width = usize::from(size.width).saturating_sub(titles).max(1);
    let wrapped = |(title, text): &(String, String)| {
        let options = textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
        let lines =
            textwrap::wrap(&printable(text), options).into_iter().map(|line| line.into_owned()).collect::<Vec<_>>();
        let title = |at: usize| if at == 0 { title.clone() } else { String::new() };
        let titled = lines.into_iter().enumerate().map(move |(at, line)| {
            let title = title(at);
            let spaces = " ".repeat(titles.saturating_sub(title.width()));
            (format!("{title}{spaces}"), line)
        });
        titled.collect::<Vec<_>>()
    };
    page.lines.iter().flat_map(wrapped).collect()
}

/// The colour of a role, as the reports have it.
fn style(colours: Colours, role: Role) -> Style {
    let style = colours.style(role);
    let mut shown = Style::new();
    if let Some(AnyColor::Ansi(colour)) = style.get_fg_color() {
        shown = shown.fg(Color::Indexed(Ansi256Color::from_ansi(colour).index()));
    }
    let effects = style.get_effects();
    for (effect, modifier) in [(Effects::BOLD, Modifier::BOLD), (Effects::DIMMED, Modifier::DIM)] {
        if effects.contains(effect) {
            shown = shown.add_modifier(modifier);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_hidden_not_characters() {
        assert_eq!(without_begin("abc", 0), (0, "abc"));
        assert_eq!(without_begin("abc", 2), (2, "c"));
        assert_eq!(without_begin("基本块x", 3), (4, "块x"));
        assert_eq!(without_begin("基本", 9), (4, ""));
    }
}
