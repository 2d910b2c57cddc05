//! What a page shows, as it stands in it: `hbbp-report/1`.

use std::collections::HashMap;

use analyzer::Analysis;
use analyzer::annotate::{Annotation, SourceFiles, SourceTexts};
use perfdata::Features;
use serde::Serialize;

use super::changes::{Changes, Shown};
use super::code::{FunctionCode, Known, Texts, code};
use super::composed::{Blocks, Composed, Functions};
use super::contexts::Contexts;
use super::key::KeyData;
use super::names::Names;
use super::short::Short;
use super::side::FoundContexts;
use super::source::{Source, SourceLines};
use crate::commands::annotate::slowest;
use crate::commands::diff::Report;
use crate::output::{Head, count, head_lines};

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
    /// The function that takes most of the time beyond its share of the instructions, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<String>,
    lacks: &'a [String],
    /// Paths, by module of the analysis.
    modules: Vec<&'a str>,
    keys: Vec<KeyData>,
    /// Keys that are not there, and why, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_keys: Vec<String>,
    /// What modules and functions are called beside another recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Names>,
    functions: Functions,
    blocks: Blocks,
    texts: Texts,
    source: SourceLines,
    /// Of the hottest functions, in their order.
    code: Vec<FunctionCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contexts: Option<Contexts>,
    /// The recording that this one is compared with, and what changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Box<Data<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
    #[serde(skip)]
    pub files: SourceFiles,
}

impl<'a> Data<'a> {
    /// Of an analysis, what it is composed of, and the code of the functions of an annotation.
    pub fn of(
        analysis: &'a Analysis,
        annotation: &'a Annotation,
        head: &'a Head,
        composed: Composed,
        texts: SourceTexts,
    ) -> Self {
        let modules = paths_of_modules(analysis);
        let known =
            Known { composed: &composed, has_both: analysis.sources.ebs.is_some() && analysis.sources.lbr.is_some() };
        let mut source = Source::of(annotation, texts);
        let mut texts = Texts::default();
        let code =
            annotation.functions.iter().map(|function| code(&known, function, &mut texts, &mut source)).collect();
        let (source, files) = source.into_lines();
        Data {
            schema: "hbbp-report/1",
            title: String::new(),
            made_by: concat!("hbbp ", env!("CARGO_PKG_VERSION")),
            recording: Vec::new(),
            instructions: Short(analysis.instructions()),
            head,
            lines: head_lines(head, analysis.instructions()),
            slow: slowest(&annotation.ranked),
            lacks: &annotation.lacks,
            modules,
            keys: composed.keys,
            without_keys: composed.without,
            names: None,
            functions: composed.functions,
            blocks: composed.blocks,
            texts,
            source,
            code,
            contexts: None,
            before: None,
            changes: None,
            files,
        }
    }

    /// With calling contexts of its analysis and how far these reach, in sentences; or why there are none.
    pub fn with_contexts(self, analysis: &Analysis, contexts: FoundContexts) -> Self {
        let contexts = match contexts {
            Ok((calls, notes)) => {
                let mut known = HashMap::new();
                for (index, name) in self.functions.names(&self.modules).enumerate() {
                    known.entry(name).or_insert(index);
                }
                Contexts::of(&calls, &analysis.modules, &known, notes)
            }
            Err(why) => Contexts::none(why),
        };
        Data { contexts: Some(contexts), ..self }
    }

    /// Beside another recording, which was made before.
    pub fn compared(mut self, mut before: Data<'a>, report: &Report<'_>, sides: [Shown<'_>; 2]) -> Self {
        let functions = [&before, &self].map(|data| (&data.functions, &*data.modules));
        let changes = Changes::of(report, sides, functions);
        let missing = [self.keys_without(&before), before.keys_without(&self)];
        for (side, (data, missing)) in [&mut before, &mut self].into_iter().zip(missing).enumerate() {
            data.names = Some(Names::of(report, side, &data.functions, &data.modules));
            if !missing.is_empty() {
                data.without_keys.push(format!("not compared, because the other one alone has them: {missing}"));
            }
        }
        Data { before: Some(Box::new(before)), changes: Some(changes), ..self }
    }

    /// The names of its keys that another side has not.
    fn keys_without(&self, other: &Data<'_>) -> String {
        let is_missing = |key: &&KeyData| other.keys.iter().all(|of| of.name != key.name);
        self.keys.iter().filter(is_missing).map(|key| key.name.as_str()).collect::<Vec<_>>().join(", ")
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

/// The path of each module that was counted.
fn paths_of_modules(analysis: &Analysis) -> Vec<&str> {
    analysis.counted.iter().map(|module| analysis.modules.get(module.counts.module).path.as_str()).collect()
}

/// The time between the first and the last sample.
fn length((first, last): (u64, u64)) -> String {
    let seconds = last.saturating_sub(first) as f64 / 1e9;
    if seconds < 100.0 { format!("{seconds:.2} s") } else { format!("{} s", count(seconds)) }
}
