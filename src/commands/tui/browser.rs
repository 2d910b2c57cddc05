//! What is looked at, and what keys do to it.

use analyzer::address::Svma;
use analyzer::mix::{Dimension, Taxonomies};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Size;

use super::code::{Led, function_of};
use super::cursor::Motion;
use super::diff::Diff;
use super::help;
use super::narrowed::filters;
use super::pivot::{Asked, joined};
use super::prompt::{Prompt, Purpose, Typed};
use super::recorded::Recorded;
use super::screen::Layout;
use super::sheet::{Link, Sheet};
use crate::input::WITHOUT_CODE;
use crate::output::head_lines;

/// What is seen of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Functions,
    Blocks,
    Code,
    Pivot,
    Diff,
}

impl View {
    /// All, in the order of their numbers.
    pub const ALL: [View; 5] = [View::Functions, View::Blocks, View::Code, View::Pivot, View::Diff];

    pub fn name(self) -> &'static str {
        match self {
            View::Functions => "functions",
            View::Blocks => "blocks",
            View::Code => "code",
            View::Pivot => "pivot",
            View::Diff => "diff",
        }
    }
}

/// What takes so long that the screen says it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// The rows of blocks.
    Blocks,
    /// The code of a function, and which instruction to choose in it.
    Open(usize, Option<Svma>),
    /// The mix that the pivot asks for.
    Mix,
}

/// Where somebody was.
struct Place {
    recording: usize,
    view: View,
    /// The function that was open, and the chosen instruction.
    code: Option<(usize, Option<Svma>)>,
    /// What the pivot was of, if it is of something else now.
    pivot: Option<Asked>,
}

/// Text over the views.
pub struct Page {
    /// Titles and texts.
    pub lines: Vec<(String, String)>,
    /// The first line that is seen.
    pub top: usize,
}

/// All that is looked at.
pub struct Browser<'a> {
    recorded: Vec<Recorded<'a>>,
    diff: Option<Diff>,
    taxonomies: Taxonomies,
    size: Size,
    /// Which recording is looked at.
    of: usize,
    view: View,
    back: Vec<Place>,
    search: String,
    pub prompt: Option<Prompt>,
    pub page: Option<Page>,
    pub message: Option<String>,
    work: Option<Work>,
    quits: bool,
}

impl<'a> Browser<'a> {
    /// The functions of the first of one or two recordings. How large the screen is, an event says.
    pub fn new(recorded: Vec<Recorded<'a>>, diff: Option<Diff>, taxonomies: Taxonomies) -> Self {
        let mut browser = Browser {
            recorded,
            diff,
            taxonomies,
            size: Size::default(),
            of: 0,
            view: View::Functions,
            back: Vec::new(),
            search: String::new(),
            prompt: None,
            page: None,
            message: None,
            work: None,
            quits: false,
        };
        if browser.recorded().functions.all() == 0 {
            browser.message = Some(WITHOUT_CODE.into());
        }
        browser
    }

    /// The recording that is looked at.
    pub fn recorded(&self) -> &Recorded<'a> {
        &self.recorded[self.of]
    }

    /// Which of two it is; `None` if there is only one.
    pub fn side(&self) -> Option<&'static str> {
        (self.recorded.len() > 1).then_some(if self.of == 0 { "before" } else { "after" })
    }

    pub fn view(&self) -> View {
        self.view
    }

    pub fn size(&self) -> Size {
        self.size
    }

    pub fn diff(&self) -> Option<&Diff> {
        self.diff.as_ref()
    }

    pub fn quits(&self) -> bool {
        self.quits
    }

    /// Whether there is a view: that of differences needs two recordings.
    pub fn has(&self, view: View) -> bool {
        view != View::Diff || self.diff.is_some()
    }

    /// The rows of the view, if it has any.
    pub fn sheet(&self) -> Option<&Sheet> {
        let recorded = self.recorded();
        match self.view {
            View::Functions => Some(&recorded.functions),
            View::Blocks => recorded.blocks.as_ref().map(|(sheet, _)| sheet),
            View::Code => None,
            View::Pivot => recorded.pivot.sheet(),
            View::Diff => self.diff.as_ref().map(|diff| &diff.sheet),
        }
    }

    fn sheet_mut(&mut self) -> Option<&mut Sheet> {
        let recorded = &mut self.recorded[self.of];
        match self.view {
            View::Functions => Some(&mut recorded.functions),
            View::Blocks => recorded.blocks.as_mut().map(|(sheet, _)| sheet),
            View::Code => None,
            View::Pivot => recorded.pivot.sheet_mut(),
            View::Diff => self.diff.as_mut().map(|diff| &mut diff.sheet),
        }
    }

    /// What is to be done before anything else, in words.
    pub fn awaited(&self) -> Option<&'static str> {
        self.work.map(|work| match work {
            Work::Blocks => "counting blocks ...",
            Work::Open(..) => "annotating the function ...",
            Work::Mix => "computing the pivot ...",
        })
    }

    /// Does what is to be done.
    pub fn work(&mut self) {
        let Some(work) = self.work.take() else { return };
        let recorded = &mut self.recorded[self.of];
        let said = match work {
            Work::Blocks => {
                recorded.make_blocks(self.of);
                None
            }
            Work::Open(function, at) => {
                let said = recorded.open(function);
                self.choose(at);
                said
            }
            Work::Mix => recorded.compute().unwrap_or_else(|error| Some(format!("{error:#}"))),
        };
        self.message = said.or(self.message.take());
        self.settle();
    }

    /// Something happened.
    pub fn update(&mut self, event: &Event) {
        match event {
            Event::Resize(width, height) => self.size = Size::new(*width, *height),
            Event::Key(key) if key.kind != KeyEventKind::Release => self.press(*key),
            _ => {}
        }
        self.settle();
    }

    /// What is seen fits the screen.
    fn settle(&mut self) {
        let width = usize::from(self.size.width);
        let of = self.of;
        match self.view {
            View::Code => self.recorded[of].code.iter_mut().for_each(|code| code.lay_out(width)),
            View::Pivot => self.recorded[of].lay_out_pivot(of, width),
            _ => {}
        }
        let height = Layout::of(self).body;
        if let Some(sheet) = self.sheet_mut() {
            let length = sheet.length();
            sheet.cursor.show(length, height);
        }
        if self.view == View::Code
            && let Some(code) = &mut self.recorded[of].code
        {
            code.cursor.show(code.lines.len(), height);
        }
    }

    fn press(&mut self, key: KeyEvent) {
        self.message = None;
        if self.prompt.is_some() {
            return self.type_into_prompt(key);
        }
        if self.page.is_some() {
            return self.turn_page(key);
        }
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(motion) = motion(key.code, with_control) {
            return self.go(motion);
        }
        match key.code {
            KeyCode::Char('c') if with_control => self.quits = true,
            KeyCode::Char(_) if with_control => {}
            KeyCode::Char('q') => self.quits = true,
            KeyCode::Char(digit @ '1'..='5') => self.look_at(View::ALL[digit as usize - '1' as usize]),
            KeyCode::Tab => self.next_view(1),
            KeyCode::BackTab => self.next_view(View::ALL.len() - 1),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc | KeyCode::Backspace => self.go_back(),
            KeyCode::Char('/') => self.ask(Purpose::Search, String::new()),
            KeyCode::Char('n') => self.find(false),
            KeyCode::Char('N') => self.find(true),
            KeyCode::Char('f') => self.ask_filter(),
            KeyCode::Char('r') if self.view == View::Pivot => {
                self.ask(Purpose::Rows, joined(&self.recorded().pivot.query.rows))
            }
            KeyCode::Char('c') if self.view == View::Pivot => {
                self.ask(Purpose::Columns, joined(&self.recorded().pivot.query.columns))
            }
            KeyCode::Char(s @ ('s' | 'S')) => self.sort(s == 'S'),
            KeyCode::Char('x') => self.look_at_other(),
            KeyCode::Char('i') => self.page = Some(Page { lines: self.known(), top: 0 }),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.page = Some(Page { lines: help::keys(), top: 0 }),
            _ => {}
        }
    }

    fn go(&mut self, motion: Motion) {
        let height = Layout::of(self).body;
        match self.view {
            View::Code => self.recorded[self.of].code.iter_mut().for_each(|code| code.go(motion, height)),
            _ => self.sheet_mut().into_iter().for_each(|sheet| sheet.go(motion, height)),
        }
    }

    /// All that is known of the recording, or of the comparison.
    fn known(&self) -> Vec<(String, String)> {
        if let Some(diff) = self.diff.as_ref().filter(|_| self.view == View::Diff) {
            return diff.head.clone();
        }
        let recorded = self.recorded();
        let lines = head_lines(&recorded.head, recorded.analysis.instructions()).into_iter();
        lines.map(|(title, text)| (title.to_owned(), text)).collect()
    }

    fn turn_page(&mut self, key: KeyEvent) {
        let Some(page) = &mut self.page else { return };
        let height = usize::from(self.size.height).saturating_sub(2).max(1);
        match motion(key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            Some(Motion::Up) => page.top = page.top.saturating_sub(1),
            Some(Motion::Down) => page.top = page.top.saturating_add(1),
            Some(Motion::PageUp) => page.top = page.top.saturating_sub(height),
            Some(Motion::PageDown) => page.top = page.top.saturating_add(height),
            Some(Motion::First) => page.top = 0,
            Some(Motion::Last) => page.top = usize::MAX,
            None => self.page = None,
        }
        let lines = self.page.as_ref().map_or(0, |page| super::screen::page_lines(page, self.size).len());
        self.page.iter_mut().for_each(|page| page.top = page.top.min(lines.saturating_sub(height)));
    }

    fn next_view(&mut self, step: usize) {
        let at = View::ALL.iter().position(|view| *view == self.view).unwrap_or(0);
        let others = (1..View::ALL.len()).map(|steps| View::ALL[(at + steps * step) % View::ALL.len()]);
        let next = others.into_iter().find(|view| self.has(*view));
        next.into_iter().for_each(|next| self.look_at(next));
    }

    fn look_at(&mut self, view: View) {
        if !self.has(view) {
            self.message = Some("two recordings can be compared: hbbp tui BEFORE AFTER".into());
            return;
        }
        self.back.clear();
        self.show(view);
    }

    /// Makes a view the one that is seen, and asks for what it needs.
    fn show(&mut self, view: View) {
        let recorded = self.recorded();
        self.work = match view {
            View::Blocks if recorded.blocks.is_none() => Some(Work::Blocks),
            View::Code if recorded.code.is_none() => match recorded.functions.chosen().and_then(|row| row.link) {
                Some(link) => Some(Work::Open(link.function, None)),
                None => {
                    self.message = Some("there is no function whose code could be shown".into());
                    return;
                }
            },
            View::Pivot if recorded.pivot.is_asked_for() => Some(Work::Mix),
            _ => None,
        };
        self.view = view;
    }

    /// The same in the other recording.
    fn look_at_other(&mut self) {
        if self.recorded.len() < 2 {
            self.message = Some("there is one recording only: hbbp tui BEFORE AFTER has two".into());
            return;
        }
        let open = self.recorded().code.as_ref().filter(|_| self.view == View::Code).map(|code| code.function);
        let other = open.and_then(|function| self.other(function));
        let name = open.and_then(|function| self.recorded().functions().get(function)).map(|of| of.name.clone());
        self.of = 1 - self.of;
        self.back.clear();
        match name {
            None => self.show(self.view),
            Some(name) => match other {
                Some(function) => self.open(Link { recording: self.of, function, at: None }),
                None => {
                    self.message = Some(format!("{name} was not seen in this recording"));
                    self.show(View::Functions);
                }
            },
        }
    }

    /// The function of the other recording that one of this was compared with, or that is called the same in a module that is called the same.
    fn other(&self, function: usize) -> Option<usize> {
        let compared = self.diff.as_ref().and_then(|diff| diff.other(self.of, function));
        let (recorded, other) = (self.recorded(), self.recorded.get(1 - self.of)?);
        let name = recorded.name_of(recorded.functions().get(function)?);
        compared.or_else(|| other.functions().iter().position(|of| other.name_of(of) == name))
    }

    fn place(&self) -> Place {
        let code = self.recorded().code.as_ref().filter(|_| self.view == View::Code);
        let code = code.map(|code| (code.function, code.chosen()));
        Place { recording: self.of, view: self.view, code, pivot: None }
    }

    /// Goes into what was chosen.
    fn enter(&mut self) {
        if self.view == View::Code {
            return self.follow();
        }
        let link = self.sheet().and_then(Sheet::chosen).map(|row| row.link);
        match link {
            None => {}
            Some(Some(link)) => {
                self.back.push(self.place());
                self.open(link);
            }
            Some(None) if self.view == View::Pivot => self.ask_functions(),
            Some(None) => self.message = Some("its code could not be read".into()),
        }
    }

    /// Goes to the functions that a row of the pivot is of.
    fn ask_functions(&mut self) {
        let values = self.sheet().and_then(Sheet::chosen).map(|row| row.keys.clone()).unwrap_or_default();
        let before = self.recorded[self.of].pivot.ask_functions(&values, &self.taxonomies);
        match before {
            Some(before) => {
                self.back.push(Place { pivot: Some(before), ..self.place() });
                self.work = Some(Work::Mix);
            }
            None => self.message = Some("its code could not be read".into()),
        }
    }

    /// Goes where the chosen branch leads.
    fn follow(&mut self) {
        let recorded = self.recorded();
        let led = recorded.code.as_ref().and_then(|code| code.led());
        match led {
            None => self.message = Some("this is no branch with a known target".into()),
            Some(Led::Here(at)) => {
                self.back.push(self.place());
                self.choose(Some(at));
            }
            Some(Led::Elsewhere(place)) => match function_of(recorded.analysis, recorded.functions(), &place) {
                Some(function) => {
                    let at = (place.offset > 0).then_some(place.address);
                    let link = Link { recording: self.of, function, at };
                    self.back.push(self.place());
                    self.open(link);
                }
                None => self.message = Some(format!("{} was not seen running", place.name())),
            },
        }
    }

    /// Opens a function.
    fn open(&mut self, link: Link) {
        self.of = link.recording;
        self.view = View::Code;
        match &self.recorded().code {
            Some(code) if code.function == link.function => self.choose(link.at),
            _ => self.work = Some(Work::Open(link.function, link.at)),
        }
    }

    /// Chooses an instruction of the open function: the hottest where none is meant.
    fn choose(&mut self, at: Option<Svma>) {
        let width = usize::from(self.size.width);
        let Some(code) = &mut self.recorded[self.of].code else { return };
        code.lay_out(width);
        match at {
            Some(at) => code.choose(at),
            None => code.choose_hottest(),
        }
    }

    fn go_back(&mut self) {
        match self.back.pop() {
            Some(Place { recording, view: View::Code, code: Some((function, at)), .. }) => {
                self.open(Link { recording, function, at });
            }
            Some(place) => {
                self.of = place.recording;
                place.pivot.into_iter().for_each(|asked| self.recorded[self.of].pivot.ask_again(asked));
                self.show(place.view);
            }
            None if self.view != View::Functions => self.show(View::Functions),
            None => self.message = Some("q ends it".into()),
        }
    }

    fn sort(&mut self, reverse: bool) {
        match self.sheet_mut() {
            Some(sheet) => sheet.sort(reverse),
            None => self.message = Some("code is in the order of addresses".into()),
        }
    }

    fn ask(&mut self, purpose: Purpose, text: String) {
        self.prompt = Some(Prompt::new(purpose, &text));
    }

    fn ask_filter(&mut self) {
        let text = match self.view {
            View::Code => {
                self.message = Some("code is not filtered; / searches it".into());
                return;
            }
            View::Pivot => self.recorded().pivot.filter.clone(),
            _ => self.sheet().map_or(String::new(), |sheet| sheet.filter.clone()),
        };
        self.ask(Purpose::Filter, text);
    }

    fn type_into_prompt(&mut self, key: KeyEvent) {
        let keys = Dimension::ALL.iter().map(|key| key.as_str().to_owned());
        let taxonomies = self.taxonomies.iter().map(|taxonomy| taxonomy.name.clone());
        let words: Vec<String> = keys.chain(taxonomies).collect();
        let Some(prompt) = &mut self.prompt else { return };
        match prompt.press(key, &words) {
            Typed::More => {}
            Typed::Cancelled => self.prompt = None,
            Typed::Done => {
                let (purpose, text) = (prompt.purpose, prompt.text());
                match self.take(purpose, &text) {
                    Ok(()) => self.prompt = None,
                    // It can be corrected.
                    Err(why) => self.message = Some(why),
                }
            }
        }
    }

    /// A line was typed.
    fn take(&mut self, purpose: Purpose, text: &str) -> Result<(), String> {
        let Browser { recorded, taxonomies, of, view, .. } = self;
        let pivot = &mut recorded[*of].pivot;
        match purpose {
            Purpose::Search => {
                if !text.is_empty() {
                    self.search = text.to_owned();
                }
                self.find(false);
                return Ok(());
            }
            Purpose::Filter if *view != View::Pivot => {
                let filters = filters(text, taxonomies)?;
                if let Some(sheet) = self.sheet_mut() {
                    sheet.narrow(filters, text)?;
                    if sheet.length() == 0 {
                        self.message = Some("nothing passes the filter; f changes it".into());
                    }
                }
                return Ok(());
            }
            Purpose::Filter => pivot.ask_filters(text, taxonomies)?,
            Purpose::Rows => pivot.ask_rows(text, taxonomies)?,
            Purpose::Columns => pivot.ask_columns(text, taxonomies)?,
        }
        self.work = Some(Work::Mix);
        Ok(())
    }

    fn find(&mut self, backwards: bool) {
        if self.search.is_empty() {
            self.message = Some("nothing was searched for yet: / does".into());
            return;
        }
        let search = self.search.clone();
        let found = match self.view {
            View::Code => self.recorded[self.of].code.as_mut().is_some_and(|code| code.search(&search, backwards)),
            _ => self.sheet_mut().is_some_and(|sheet| sheet.search(&search, backwards)),
        };
        if !found {
            self.message = Some(format!("nothing here has {search:?}"));
        }
    }
}

/// Where a key goes in a list.
fn motion(key: KeyCode, with_control: bool) -> Option<Motion> {
    Some(match key {
        KeyCode::Char('f') if with_control => Motion::PageDown,
        KeyCode::Char('b') if with_control => Motion::PageUp,
        KeyCode::Char(_) if with_control => return None,
        KeyCode::Up | KeyCode::Char('k') => Motion::Up,
        KeyCode::Down | KeyCode::Char('j') => Motion::Down,
        KeyCode::PageUp => Motion::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Motion::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Motion::First,
        KeyCode::End | KeyCode::Char('G') => Motion::Last,
        _ => return None,
    })
}
