//! The lines of the source that the code of a page comes from, each once.

use std::collections::HashMap;

use analyzer::address::Svma;
use analyzer::annotate::{AnnotatedFunction, Annotation, SourceFiles, SourcePlace, SourceTexts};
use serde::Serialize;

/// The lines, by column.
#[derive(Default, Serialize)]
pub struct SourceLines {
    /// `loop.c`: as much of the end of a path as tells files apart.
    files: Vec<String>,
    /// Of each line, the index of its file.
    file: Vec<u32>,
    /// Its number, from 1.
    line: Vec<u32>,
    /// Its text; nothing where that could not be read.
    text: Vec<String>,
}

/// What is known of the source of an instruction, where it is not the same as of the one before.
#[derive(Default)]
pub struct Begun {
    /// Inlined functions that begin, outermost first: their names, and where they are called.
    pub inlined: Vec<(Option<String>, Option<u32>)>,
    /// The line.
    pub line: Option<u32>,
}

/// Finds lines, and gives each an index.
pub struct Source<'a> {
    annotation: &'a Annotation,
    texts: SourceTexts,
    lines: SourceLines,
    of_files: HashMap<&'a str, u32>,
    of_places: HashMap<SourcePlace<'a>, u32>,
}

impl<'a> Source<'a> {
    pub fn of(annotation: &'a Annotation, texts: SourceTexts) -> Self {
        let (lines, of_files, of_places) = Default::default();
        Source { annotation, texts, lines, of_files, of_places }
    }

    /// What begins at an instruction of a function, after the one before it.
    pub fn begun(&mut self, function: &AnnotatedFunction, before: Option<Svma>, at: Svma) -> Begun {
        let annotation = self.annotation;
        let inlined = annotation.begun(function, before, at).into_iter();
        let inlined: Vec<_> = inlined.map(|one| (one.function, one.at.map(|at| self.index(at)))).collect();
        let place = annotation.place(function, at);
        let place_before = before.and_then(|before| annotation.place(function, before));
        let line = place.filter(|_| !inlined.is_empty() || place != place_before).map(|place| self.index(place));
        Begun { inlined, line }
    }

    /// The lines, and the files that were looked for.
    pub fn into_lines(self) -> (SourceLines, SourceFiles) {
        (self.lines, self.texts.looked_for())
    }

    fn index(&mut self, place: SourcePlace<'a>) -> u32 {
        if let Some(index) = self.of_places.get(&place) {
            return *index;
        }
        let file = *self.of_files.entry(place.path).or_insert_with(|| {
            self.lines.files.push(self.annotation.short_name(place.path).to_owned());
            (self.lines.files.len() - 1) as u32
        });
        let text = self.texts.line(place.path, place.line).unwrap_or_default();
        self.lines.text.push(text.replace('\t', " "));
        self.lines.file.push(file);
        self.lines.line.push(place.line);
        let index = (self.lines.line.len() - 1) as u32;
        self.of_places.insert(place, index);
        index
    }
}
