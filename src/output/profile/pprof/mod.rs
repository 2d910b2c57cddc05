//! What `pprof` reads: a compressed protocol buffer of all code that ran, one sample per block.
//!
//! A block is a location, its values are executions and executed instructions (or what its samples stand for). There are no callers: the
//! recordings have no call stacks. Addresses are those of the files, so that `pprof` finds lines in them.

mod message;

use std::collections::HashMap;
use std::io::Write;

use analyzer::address::Svma;
use analyzer::code::{FunctionId, demangle};
use analyzer::flow::{ExecutedCode, ExecutedModule, Flow, executed_modules, whole};
use analyzer::{BinarySearch, hex};
use flate2::Compression;
use flate2::write::GzEncoder;
use message::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use prost::Message;

/// Writes the profile. Returns what is not in it because it does not fit its file, in sentences.
pub fn pprof(flow: &Flow, search: &BinarySearch, out: &mut dyn Write) -> std::io::Result<Vec<String>> {
    let mut maker = Maker::new(flow);
    let mut misfits = Vec::new();
    for module in executed_modules(flow, search) {
        match &module.code {
            Ok(code) => {
                maker.add_code(&module, code);
                misfits.extend(code.misfit.clone());
            }
            Err(_) => maker.add_unread(&module),
        }
    }
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&maker.profile.encode_to_vec())?;
    compressed.finish()?;
    Ok(misfits)
}

struct Maker {
    has_ranges: bool,
    profile: Profile,
    texts: HashMap<String, i64>,
}

impl Maker {
    fn new(flow: &Flow) -> Self {
        let has_ranges = flow.range_total() > 0.0;
        let mut maker = Maker { has_ranges, profile: Profile::default(), texts: HashMap::new() };
        maker.text("");
        let kinds: &[&str] = match (has_ranges, flow.executions) {
            (true, _) => &["executions", "instructions"],
            (false, true) => &["instructions"],
            (false, false) => &["time"],
        };
        for kind in kinds {
            let value_type = ValueType { kind: maker.text(kind), unit: maker.text("count") };
            maker.profile.sample_type.push(value_type);
        }
        if !flow.executions {
            let comment = maker.text("counts are relative: to be compared only with each other");
            maker.profile.comment.push(comment);
        }
        maker.profile.default_sample_type = maker.profile.sample_type.last().map_or(0, |last| last.kind);
        maker
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
        let ExecutedCode { binary, code, counts, .. } = executed;
        let first_mapping = self.profile.mapping.len();
        let segments: Vec<_> = binary.image.segments().iter().filter(|segment| segment.executable).collect();
        for segment in &segments {
            self.add_mapping(module, segment.start.0, segment.end().0, segment.file_offset, true);
        }
        let mapping_of = |at: Svma| {
            let index = segments.partition_point(|segment| segment.start <= at).checked_sub(1);
            index.map_or(0, |index| (first_mapping + index + 1) as u64)
        };
        let mut functions: HashMap<FunctionId, u64> = HashMap::new();
        for (block, &count) in code.blocks.blocks().iter().zip(counts).filter(|(_, count)| **count > 0.0) {
            let function = match functions.get(&block.function) {
                Some(&known) => known,
                None => {
                    let name = code.functions.name(block.function);
                    let id = self.add_function(&demangle(&name), &name, &module.of.module.path);
                    functions.insert(block.function, id);
                    id
                }
            };
            let instructions = if self.has_ranges { count * f64::from(block.instructions) } else { count };
            self.add_sample(mapping_of(block.start), block.start.0, function, [count, instructions]);
        }
    }

    /// All of a module whose code is not known is one place.
    fn add_unread(&mut self, module: &ExecutedModule<'_>) {
        let path = &module.of.module.path;
        self.add_mapping(module, 0, u64::MAX, 0, false);
        let mapping = self.profile.mapping.len() as u64;
        let name = format!("[unread code of {path}]");
        let function = self.add_function(&name, &name, path);
        let instructions = if self.has_ranges { module.of.guessed_instructions() } else { module.of.sample_total() };
        self.add_sample(mapping, 0, function, [module.of.range_total(), instructions]);
    }

    fn add_mapping(&mut self, module: &ExecutedModule<'_>, start: u64, limit: u64, file_offset: u64, read: bool) {
        let of = &module.of.module;
        let mapping = Mapping {
            id: self.profile.mapping.len() as u64 + 1,
            memory_start: start,
            memory_limit: limit,
            file_offset,
            filename: self.text(&of.path),
            build_id: self.text(&of.build_id.as_deref().map(hex).unwrap_or_default()),
            has_functions: read,
        };
        self.profile.mapping.push(mapping);
    }

    fn add_function(&mut self, name: &str, system_name: &str, file: &str) -> u64 {
        let id = self.profile.function.len() as u64 + 1;
        let (name, system_name, filename) = (self.text(name), self.text(system_name), self.text(file));
        self.profile.function.push(Function { id, name, system_name, filename });
        id
    }

    /// `counts`: executions, instructions.
    fn add_sample(&mut self, mapping_id: u64, address: u64, function_id: u64, counts: [f64; 2]) {
        let id = self.profile.location.len() as u64 + 1;
        let line = vec![Line { function_id, line: 0 }];
        self.profile.location.push(Location { id, mapping_id, address, line });
        let values = counts.map(|count| i64::try_from(whole(count)).unwrap_or(i64::MAX));
        let value = if self.has_ranges { values.to_vec() } else { vec![values[1]] };
        self.profile.sample.push(Sample { location_id: vec![id], value });
    }
}
