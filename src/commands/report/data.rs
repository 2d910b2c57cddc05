//! What a page shows, as it stands in it: `hbbp-report/1`.

use analyzer::Analysis;
use analyzer::annotate::{Annotation, SourceTexts};
use analyzer::mix::Taxonomies;
use perfdata::Features;
use serde::Serialize;

use super::code::{FunctionCode, Known, Texts, code};
use super::composed::{Blocks, Composed, Functions, KeyData};
use super::short::Short;
use super::source::{Source, SourceLines};
use crate::output::{Head, count};

/// All of it. Tables are objects of columns.
#[derive(Serialize)]
pub struct Data<'a> {
    schema: &'static str,
    title: String,
    made_by: &'static str,
    /// What the recording says of itself: a title and a text each.
    recording: Vec<(&'static str, String)>,
    instructions: Short,
    head: &'a Head,
    /// The head for people: a title and a text each.
    lines: Vec<(&'static str, String)>,
    lacks: &'a [String],
    /// Paths, by module of the analysis.
    modules: Vec<&'a str>,
    keys: Vec<KeyData>,
    functions: Functions,
    blocks: Blocks,
    texts: Texts,
    source: SourceLines,
    /// Of the hottest functions, in their order.
    code: Vec<FunctionCode>,
}

impl<'a> Data<'a> {
    /// Of an analysis, with the code of the functions of an annotation.
    pub fn of(
        analysis: &'a Analysis,
        annotation: &'a Annotation,
        head: &'a Head,
        taxonomies: &Taxonomies,
        texts: SourceTexts,
    ) -> Self {
        let composed = Composed::of(analysis, &annotation.ranked, taxonomies);
        let modules: Vec<&str> =
            analysis.counted.iter().map(|module| analysis.modules.get(module.counts.module).path.as_str()).collect();
        let known =
            Known { composed: &composed, has_both: analysis.sources.ebs.is_some() && analysis.sources.lbr.is_some() };
        let mut source = Source::of(annotation, texts);
        let mut texts = Texts::default();
        let code =
            annotation.functions.iter().map(|function| code(&known, function, &mut texts, &mut source)).collect();
        Data {
            schema: "hbbp-report/1",
            title: String::new(),
            made_by: concat!("hbbp ", env!("CARGO_PKG_VERSION")),
            recording: Vec::new(),
            instructions: Short(analysis.instructions()),
            head,
            lines: head.lines(analysis.instructions()),
            lacks: &annotation.lacks,
            modules,
            keys: composed.keys,
            functions: composed.functions,
            blocks: composed.blocks,
            texts,
            source: source.into_lines(),
            code,
        }
    }

    /// With what it is called, and what the recording says of itself, if it is one.
    pub fn named(self, title: String, features: Option<&Features>) -> Self {
        let Some(features) = features else { return Data { title, ..self } };
        let machine = [&features.cpu_desc, &features.hostname].into_iter().flatten();
        let machine = machine.cloned().chain(features.nr_cpus.map(|(_, online)| format!("{online} CPUs")));
        let recording = [
            ("command", features.cmdline.join(" ")),
            ("machine", machine.collect::<Vec<_>>().join(", ")),
            ("kernel", features.os_release.clone().unwrap_or_default()),
            ("recorder", features.version.clone().unwrap_or_default()),
            ("length", features.sample_time.map_or(String::new(), length)),
        ];
        Data { title, recording: recording.into_iter().filter(|(_, text)| !text.is_empty()).collect(), ..self }
    }
}

/// The time between the first and the last sample.
fn length((first, last): (u64, u64)) -> String {
    let seconds = last.saturating_sub(first) as f64 / 1e9;
    if seconds < 100.0 { format!("{seconds:.2} s") } else { format!("{} s", count(seconds)) }
}
