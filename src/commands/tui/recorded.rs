//! A recording with its views.

use std::collections::HashMap;

use analyzer::Analysis;
use analyzer::address::Svma;
use analyzer::annotate::{Ranked, Ranking, SourceTexts};
use analyzer::counting::GroupBy;
use analyzer::mix::{Query, mix};
use reports::mix::group_by;

use super::code::Code;
use super::pivot::Pivot;
use super::sheet::Sheet;
use super::{blocks, functions};
use crate::output::{Head, Precision};

/// How to analyse the recording once more, with executions told apart in another way.
pub type Again<'a> = Box<dyn Fn(GroupBy) -> anyhow::Result<Analysis> + 'a>;

/// A recording, what was made of it so far, and what more is made of when somebody looks.
pub struct Recorded<'a> {
    /// What it is called.
    pub title: String,
    pub analysis: &'a Analysis,
    pub head: Head,
    ranking: Ranking<'a>,
    again: Again<'a>,
    /// The analysis in which executions are told apart as the pivot asks.
    grouped: Option<(GroupBy, Analysis)>,
    texts: SourceTexts,
    /// Whether lines of the source are wanted.
    source: bool,
    threads: usize,
    pub functions: Sheet,
    pub blocks: Option<Blocks>,
    pub code: Option<Code>,
    pub pivot: Pivot,
}

/// Blocks, and how right the largest are, in words.
pub type Blocks = (Sheet, Option<String>);

/// What a recording is made ready with.
pub struct Settings<'a> {
    pub title: String,
    pub query: Query,
    pub texts: SourceTexts,
    pub source: bool,
    pub again: Again<'a>,
}

impl<'a> Recorded<'a> {
    /// Its functions; all else is made when somebody looks. `recording` is its place among those that are shown.
    pub fn new(recording: usize, analysis: &'a Analysis, settings: Settings<'a>) -> Self {
        let Settings { title, query, texts, source, again } = settings;
        let ranking = Ranking::of(analysis);
        let ranked = ranking.functions();
        let mut head = Head::of(analysis);
        head.precision = Precision::of(analysis, ranked.iter().map(|of| (of.share, of.share_interval)));
        let functions = functions::sheet(recording, analysis, ranked);
        Recorded {
            title,
            analysis,
            head,
            ranking,
            again,
            grouped: None,
            texts,
            source,
            threads: query.threads,
            functions,
            blocks: None,
            code: None,
            pivot: Pivot::new(query),
        }
    }

    /// The functions, hottest first.
    pub fn functions(&self) -> &[Ranked] {
        self.ranking.functions()
    }

    /// The name of a function of the recording, and the base name of its module before it: recordings of one program may have it in different folders.
    pub fn name_of<'b>(&'b self, function: &'b Ranked) -> (&'b str, &'b str) {
        let path = functions::path_of(self.analysis, function);
        (path.rsplit('/').next().unwrap_or(path), &function.name)
    }

    /// Makes the rows of blocks.
    pub fn make_blocks(&mut self, recording: usize) {
        let place = |(place, of): (usize, &Ranked)| ((of.module, of.symbol), place);
        let places: HashMap<(usize, Svma), usize> = self.functions().iter().enumerate().map(place).collect();
        self.blocks = Some(blocks::sheet(recording, self.analysis, &places));
    }

    /// Opens a function. Returns what there is to say of it.
    pub fn open(&mut self, function: usize) -> Option<String> {
        let annotation = self.ranking.annotate(function, self.source, self.threads);
        self.code = Code::of(self.analysis, function, annotation, self.source, &mut self.texts);
        let notes = self.code.as_ref().map(|code| code.notes.join("; "))?;
        (!notes.is_empty()).then_some(notes)
    }

    /// Computes the mix that the pivot asks for. Returns what there is to say of it.
    ///
    /// # Errors
    /// It cannot be computed.
    pub fn compute(&mut self) -> anyhow::Result<Option<String>> {
        let wanted = group_by(&self.pivot.query);
        let analysis = match &self.grouped {
            _ if wanted == GroupBy::default() => self.analysis,
            Some((groups, analysis)) if *groups == wanted => analysis,
            _ => {
                self.grouped = None;
                &self.grouped.insert((wanted, (self.again)(wanted)?)).1
            }
        };
        let mix = mix(analysis, &self.pivot.query)?;
        Ok(self.pivot.answer(analysis, mix))
    }

    /// Makes the rows of the pivot as wide as the screen.
    pub fn lay_out_pivot(&mut self, recording: usize, width: usize) {
        let Recorded { pivot, head, analysis, ranking, .. } = self;
        pivot.lay_out(width, head, (recording, analysis, ranking.functions()));
    }
}
