//! The code of a function.

use analyzer::Analysis;
use analyzer::address::Svma;
use analyzer::annotate::{AnnotatedFunction, Annotation, Place, Ranked, SourceTexts};

use super::cursor::{Cursor, Motion, next};
use super::sheet::Looked;
use crate::commands::annotate::listing::{Listing, Shown};
use crate::commands::annotate::{Annotated, code, heading};
use crate::output::printable;

/// A function that was opened.
pub struct Code {
    /// Its place among those of the recording.
    pub function: usize,
    annotation: Annotation,
    listing: Listing,
    /// Its name and file.
    pub title: String,
    /// Its share, calls and loops.
    pub facts: String,
    /// What there is to say of its debug information.
    pub notes: Vec<String>,
    /// Of how many columns the lines are.
    width: Option<usize>,
    pub titles: Shown,
    pub lines: Vec<CodeLine>,
    pub cursor: Cursor,
}

/// A line as it is shown.
pub struct CodeLine {
    pub shown: Shown,
    /// The instruction that it is of, if it is of one.
    at: Option<Svma>,
}

/// Where a branch leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Led {
    /// To an instruction of the same function.
    Here(Svma),
    /// To code of another one, or of none.
    Elsewhere(Place),
}

impl Code {
    /// Opens a function that was annotated; `None` if it was not.
    pub fn of(
        analysis: &Analysis,
        function: usize,
        annotation: Annotation,
        source: bool,
        texts: &mut SourceTexts,
    ) -> Option<Self> {
        let has_source = source && annotation.has_lines();
        let instructions = analysis.instructions();
        let of = Annotated { analysis, annotation: &annotation, instructions, has_source };
        let annotated = annotation.functions.first()?;
        let (title, facts) = (heading::title(&of, annotated), heading::facts(&of, annotated));
        let listing = code::listing(&of, annotated, texts);
        Some(Code {
            function,
            listing,
            title: printable(&title).into_owned(),
            facts,
            notes: annotation.notes.clone(),
            annotation,
            width: None,
            titles: Shown::new(),
            lines: Vec::new(),
            cursor: Cursor::default(),
        })
    }

    /// Makes the lines as wide as the screen. What was chosen stays chosen.
    pub fn lay_out(&mut self, width: usize) {
        if self.width == Some(width) {
            return;
        }
        let chosen = self.chosen().map(|at| (at, self.cursor.at - self.cursor.top));
        let (titles, lines) = self.listing.shown(Some(width));
        let lines = lines.flat_map(|(line, shown)| shown.into_iter().map(|shown| CodeLine { shown, at: line.address }));
        self.lines = lines.collect();
        self.titles = titles;
        self.width = Some(width);
        if let Some((at, below)) = chosen {
            self.choose(at);
            self.cursor.top = self.cursor.at.saturating_sub(below);
        }
    }

    /// The address of the instruction that was chosen.
    pub fn chosen(&self) -> Option<Svma> {
        self.lines.get(self.cursor.at)?.at
    }

    /// Chooses the line of an instruction, if there is one.
    pub fn choose(&mut self, at: Svma) {
        let line = self.lines.iter().position(|line| line.at == Some(at));
        // With some of what is before it.
        const BEFORE: usize = 8;
        line.into_iter().for_each(|at| self.cursor = Cursor { at, top: at.saturating_sub(BEFORE) });
    }

    /// Chooses the hottest block.
    pub fn choose_hottest(&mut self) {
        let blocks = self.annotated().map(|function| function.blocks.as_slice()).unwrap_or_default();
        let hottest = blocks
            .iter()
            .max_by(|one, other| one.executed().total_cmp(&other.executed()).then(other.start.cmp(&one.start)));
        hottest.map(|block| block.start).into_iter().for_each(|start| self.choose(start));
    }

    pub fn go(&mut self, motion: Motion, height: usize) {
        self.cursor.go(motion, self.lines.len(), height);
    }

    /// Goes to the next line that has a text. Returns whether there is one.
    pub fn search(&mut self, text: &str, backwards: bool) -> bool {
        let looked_for = Looked::of(text);
        let found = next(self.lines.len(), self.cursor.at, backwards, |line| {
            looked_for.is_in(&self.lines[line].shown.iter().map(|(_, part)| part.as_str()).collect::<String>())
        });
        found.into_iter().for_each(|found| self.cursor.at = found);
        found.is_some()
    }

    /// Where the chosen instruction leads, if it is a branch that states it or was seen to go somewhere: there most often.
    pub fn led(&self) -> Option<Led> {
        let (at, function) = (self.chosen()?, self.annotated()?);
        let block =
            function.blocks.iter().find(|block| block.instructions.last().is_some_and(|last| last.address == at))?;
        let branch = block.branch.as_ref()?;
        let place = branch.target.as_ref().or_else(|| branch.targets.first().map(|target| &target.place))?;
        let is_here =
            function.blocks.iter().any(|block| block.instructions.iter().any(|one| one.address == place.address))
                && place.symbol() == Some(function.start);
        Some(if is_here { Led::Here(place.address) } else { Led::Elsewhere(place.clone()) })
    }

    fn annotated(&self) -> Option<&AnnotatedFunction> {
        self.annotation.functions.first()
    }
}

/// The function that a place is in, among those that ran.
pub fn function_of(analysis: &Analysis, functions: &[Ranked], place: &Place) -> Option<usize> {
    let symbol = place.symbol()?;
    let path = |of: &Ranked| {
        analysis.counted.get(of.module).map(|module| analysis.modules.get(module.counts.module).path.as_str())
    };
    functions.iter().position(|of| of.symbol == symbol && path(of) == Some(&*place.module))
}
