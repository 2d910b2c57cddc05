//! What `pprof` reads: a compressed protocol buffer of all code that ran, one sample per place of the source in a block.
//!
//! A location is the part of a block that comes from one line, with the functions that were inlined there; its values are executions of
//! the block (where the block starts, so that sums count it once) and executed instructions. Where there are only samples, each sampled
//! instruction is one. There are no callers: a flow does not have them. Addresses are those of the files.

pub(super) mod message;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Write;

use analyzer::BinarySearch;
use analyzer::address::Svma;
use analyzer::code::{FunctionId, demangle};
use analyzer::flow::{AnalysedFlow, ExecutedCode, ExecutedModule, executed_modules, whole};
use analyzer::lines::Span;
use flate2::Compression;
use flate2::write::GzEncoder;
use message::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use prost::Message;

/// Writes the profile; `threads` read the debug information. Returns what is not in it, in sentences.
pub fn pprof(
    flow: &AnalysedFlow,
    search: &BinarySearch,
    threads: usize,
    out: &mut dyn Write,
) -> std::io::Result<Vec<String>> {
    let (profile, notes) = places(flow, search, threads);
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&profile.encode_to_vec())?;
    compressed.finish()?;
    Ok(notes)
}

/// What is in the profile, and what is not, in sentences.
pub(super) fn places(flow: &AnalysedFlow, search: &BinarySearch, threads: usize) -> (Profile, Vec<String>) {
    let mut maker = Maker::new(flow);
    let mut notes = Vec::new();
    for module in executed_modules(flow, search, threads) {
        match &module.code {
            Ok(code) => {
                maker.add_code(&module, code);
                notes.extend_from_slice(&code.notes);
            }
            Err(_) => maker.add_unread(&module),
        }
    }
    (maker.finish(), notes)
}

struct Maker {
    by_executions: bool,
    profile: Profile,
    texts: HashMap<String, i64>,
    /// By name and file.
    functions: HashMap<(i64, i64), u64>,
}

impl Maker {
    fn new(flow: &AnalysedFlow) -> Self {
        let (by_executions, are_executions) = (flow.counts_executions(), flow.flow().executions);
        let (texts, functions) = Default::default();
        let mut maker = Maker { by_executions, profile: Profile::default(), texts, functions };
        maker.text("");
        let kinds: &[&str] = match (by_executions, are_executions) {
            (true, _) => &["executions", "instructions"],
            (false, true) => &["instructions"],
            (false, false) => &["time"],
        };
        for kind in kinds {
            let value_type = ValueType { kind: maker.text(kind), unit: maker.text("count") };
            maker.profile.sample_type.push(value_type);
        }
        if !are_executions {
            let comment = maker.text("counts are relative: to be compared only with each other");
            maker.profile.comment.push(comment);
        }
        maker.profile.default_sample_type = maker.profile.sample_type.last().map_or(0, |last| last.kind);
        maker
    }

    /// The profile. `pprof` takes the first mapping for that of the program: it is the one in which most ran.
    fn finish(mut self) -> Profile {
        let mut ran: HashMap<u64, i64> = HashMap::new();
        for (sample, location) in self.profile.sample.iter().zip(&self.profile.location) {
            let sum = ran.entry(location.mapping_id).or_default();
            *sum = sum.saturating_add(sample.value.last().copied().unwrap_or(0));
        }
        self.profile.mapping.sort_by_key(|mapping| Reverse(ran.get(&mapping.id).copied()));
        self.profile
    }

    /// The index of a text.
    fn text(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.texts.get(text) {
            return known;
        }
        let index = self.texts.len() as i64;
        self.texts.insert(text.to_string(), index);
        self.profile.string_table.push(text.to_string());
        index
    }

    fn add_code(&mut self, module: &ExecutedModule<'_>, executed: &ExecutedCode) {
        let ExecutedCode { code, counts, source, .. } = executed;
        let first_mapping = self.profile.mapping.len();
        let segments: Vec<_> = code.binary.image.segments().iter().filter(|segment| segment.executable).collect();
        for segment in &segments {
            let mut mapping = self.mapping(module, segment.start.0, segment.end().0, segment.file_offset);
            let has_lines = !source.spans().is_empty();
            (mapping.has_functions, mapping.has_filenames) = (true, has_lines);
            (mapping.has_line_numbers, mapping.has_inline_frames) = (has_lines, has_lines);
            self.profile.mapping.push(mapping);
        }
        let mapping_of = |at: Svma| {
            let index = segments.partition_point(|segment| segment.start <= at).checked_sub(1);
            index.map_or(0, |index| (first_mapping + index + 1) as u64)
        };
        for (index, block) in code.blocks.blocks().iter().enumerate() {
            let costs = module.costs(executed, index).into_iter().map(|(at, cost)| (at, cost, source.at(at)));
            let costs: Vec<(Svma, f64, Option<&Span>)> = costs.collect();
            let place = |span: Option<&Span>| span.map(|span| (span.scope, span.position));
            let mut executions = counts[index];
            for piece in costs.chunk_by(|a, b| module.by_executions && place(a.2) == place(b.2)) {
                let (at, _, span) = piece[0];
                let cost = piece.iter().map(|(_, cost, _)| cost).sum();
                let lines = self.lines(executed, block.function, span);
                self.add_sample(mapping_of(at), at.0, lines, [std::mem::take(&mut executions), cost]);
            }
        }
    }

    /// The functions of a span, the innermost first. The outermost has the name of its symbol, as elsewhere.
    fn lines(&mut self, executed: &ExecutedCode, symbol: FunctionId, span: Option<&Span>) -> Vec<Line> {
        let ExecutedCode { code, source, .. } = executed;
        let symbol = code.functions.name(symbol);
        let mut frames = span.into_iter().flat_map(|span| source.frames(span)).peekable();
        let mut lines = Vec::new();
        while let Some((function, position)) = frames.next() {
            let inlined = function.linkage_name.as_deref().or(function.name.as_deref()).unwrap_or_default();
            let name = if frames.peek().is_some() { inlined } else { &*symbol };
            let function = self.function(name, source.file(position.file), function.start_line);
            lines.push(Line { function_id: function, line: position.line.into() });
        }
        if lines.is_empty() {
            lines.push(Line { function_id: self.function(&symbol, None, None), line: 0 });
        }
        lines
    }

    /// All of a module whose code is not known is one place.
    fn add_unread(&mut self, module: &ExecutedModule<'_>) {
        let path = &module.of.module.path;
        let mapping = self.mapping(module, 0, u64::MAX, 0);
        let id = mapping.id;
        self.profile.mapping.push(mapping);
        let function = self.function(&format!("[unread code of {path}]"), None, None);
        let line = Line { function_id: function, line: 0 };
        self.add_sample(id, 0, vec![line], [module.of.range_total(), module.unread_count]);
    }

    /// A mapping with the next free id.
    fn mapping(&mut self, module: &ExecutedModule<'_>, start: u64, limit: u64, file_offset: u64) -> Mapping {
        let of = &module.of.module;
        Mapping {
            id: self.profile.mapping.len() as u64 + 1,
            memory_start: start,
            memory_limit: limit,
            file_offset,
            filename: self.text(&of.path),
            build_id: self.text(&of.build_id.as_ref().map(ToString::to_string).unwrap_or_default()),
            ..Mapping::default()
        }
    }

    /// The id of a function, or of the part of it that is in one file.
    fn function(&mut self, system_name: &str, file: Option<&str>, start_line: Option<u32>) -> u64 {
        let ends = (self.text(system_name), self.text(file.unwrap_or_default()));
        let next = self.functions.len() as u64 + 1;
        let id = *self.functions.entry(ends).or_insert(next);
        if id == next {
            let name = self.text(&demangle(system_name));
            let ((system_name, filename), start_line) = (ends, start_line.unwrap_or(0).into());
            self.profile.function.push(Function { id, name, system_name, filename, start_line });
        }
        id
    }

    /// `counts`: executions, instructions.
    fn add_sample(&mut self, mapping_id: u64, address: u64, line: Vec<Line>, counts: [f64; 2]) {
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, mapping_id, address, line });
        let values = counts.map(|count| if count > 0.0 { i64::try_from(whole(count)).unwrap_or(i64::MAX) } else { 0 });
        let value = if self.by_executions { values.to_vec() } else { vec![values[1]] };
        self.profile.sample.push(Sample { location_id: vec![id], value });
    }
}
