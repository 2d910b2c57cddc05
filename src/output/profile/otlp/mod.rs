//! OpenTelemetry's profiles: a protocol buffer of all code that ran, and of who called it.
//!
//! ```text
//! executions                 places of the source in blocks, as in `pprof`: how often each block was executed
//! instructions               calling contexts, as in flame graphs, where branch records show them; else the same places
//! instructions_by_address    where there are contexts, which are of functions as a whole: the same instructions of the places
//! ```
//! They are not added up by readers, for their types differ. Addresses are those of the files, which mappings of their own say.

use std::collections::HashMap;
use std::io::{self, Write};

use analyzer::BinarySearch;
use analyzer::calls::Calls;
use analyzer::flow::{AnalysedFlow, whole};
use analyzer::recording::ModuleTable;
use prost::Message;

use crate::output::printable;
use crate::output::profile::contexts::UNKNOWN_CALLERS;
use crate::output::profile::pprof::{self, message::Profile as Places};
use otlp::BY_ADDRESS;
use otlp::message::{
    AnyValue, Function, InstrumentationScope, KeyValue, KeyValueAndUnit, Line, Link, Location, Mapping, Profile,
    ProfilesData, ProfilesDictionary, Resource, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};

/// The attribute of a mapping that has a build id.
const BUILD_ID: &str = "process.executable.build_id.gnu";

/// When and where was recorded, as far as a recording says it.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// ns since 1970.
    pub began_unix_ns: u64,
    /// How long, ns.
    pub duration_ns: u64,
    /// The name of the machine.
    pub host: Option<String>,
}

/// Writes the profiles; `threads` read the debug information. `contexts`: who called whom, with the modules of the functions. Returns what is not in them, in sentences.
pub fn otlp(
    flow: &AnalysedFlow,
    contexts: Option<&(Calls, ModuleTable)>,
    recorded: &Recorded,
    (search, threads): (&BinarySearch, usize),
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let (places, notes) = pprof::places(flow, search, threads);
    let mut maker = Maker::of(&places, flow.flow().executions);
    let stacks = maker.stacks_of(&places);
    let contexts = contexts.filter(|(calls, _)| calls.walks > 0 && calls.instructions > 0.0 && calls.events.is_none());
    let last = places.sample_type.len().saturating_sub(1);
    let mut profiles = Vec::new();
    let mut add = |kind: i32, unit: i64, samples: Vec<Sample>, comments: &[i32]| {
        profiles.push(Profile {
            sample_type: Some(ValueType { type_strindex: kind, unit_strindex: small(unit) }),
            samples,
            time_unix_nano: recorded.began_unix_ns,
            duration_nano: recorded.duration_ns,
            attribute_indices: comments.to_vec(),
            ..Profile::default()
        });
    };
    for (value, kind) in places.sample_type.iter().enumerate() {
        let sample = |(sample, &stack): (&pprof::message::Sample, &i32)| {
            let count = sample.value.get(value).copied().filter(|&count| count > 0)?;
            Some(Sample { stack_index: stack, values: vec![count], ..Sample::default() })
        };
        let of_places = places.sample.iter().zip(&stacks).filter_map(sample).collect();
        let of_contexts = contexts.filter(|_| value == last);
        let by_address = of_contexts.map(|_| maker.text(BY_ADDRESS));
        if let Some((calls, modules)) = of_contexts {
            add(small(kind.kind), kind.unit, maker.contexts(calls, modules), &maker.comments);
        }
        add(by_address.unwrap_or(small(kind.kind)), kind.unit, of_places, &maker.comments);
    }
    let text = |text: &str| Some(AnyValue { string_value: Some(text.to_owned()), ..AnyValue::default() });
    let host = recorded.host.as_ref().map(|host| KeyValue {
        key: "host.name".to_owned(),
        value: text(host),
        ..KeyValue::default()
    });
    let scope = InstrumentationScope { name: "hbbp".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let resource = ResourceProfiles {
        resource: Some(Resource { attributes: host.into_iter().collect() }),
        scope_profiles: vec![ScopeProfiles { scope: Some(scope), profiles }],
    };
    let data = ProfilesData { resource_profiles: vec![resource], dictionary: Some(maker.dictionary) };
    out.write_all(&data.encode_to_vec())?;
    Ok(notes)
}

/// The tables, which grow.
struct Maker {
    dictionary: ProfilesDictionary,
    texts: HashMap<String, i32>,
    /// By name of the file and build id.
    mappings: HashMap<(i32, String), i32>,
    /// What is to be said of each profile.
    comments: Vec<i32>,
}

/// An index of a table of `pprof`, whose tables have their first entry in common with these.
fn small(index: i64) -> i32 {
    i32::try_from(index).unwrap_or(0)
}

fn index(length: usize) -> i32 {
    // More than two thousand million would be no file that anybody reads.
    i32::try_from(length).unwrap_or(i32::MAX)
}

impl Maker {
    /// The same texts, functions, mappings and places. `are_executions`: counts are no shares.
    fn of(places: &Places, are_executions: bool) -> Self {
        let texts = places.string_table.iter().enumerate().map(|(at, text)| (text.clone(), index(at))).collect();
        let dictionary = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            string_table: places.string_table.clone(),
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        };
        let mut maker = Self { dictionary, texts, mappings: HashMap::new(), comments: Vec::new() };
        if !are_executions {
            let comment = maker.attribute("hbbp.counts", "relative");
            maker.comments.push(comment);
        }
        let mut by_id = HashMap::new();
        for mapping in &places.mapping {
            let build_id = places.string_table.get(mapping.build_id as usize).cloned().unwrap_or_default();
            let filename_strindex = small(mapping.filename);
            let (memory_start, memory_limit) = (mapping.memory_start, mapping.memory_limit);
            let file_offset = mapping.file_offset;
            let range = Mapping { memory_start, memory_limit, file_offset, filename_strindex, ..Mapping::default() };
            by_id.insert(mapping.id, maker.mapping(range, &build_id));
        }
        let functions = places.function.iter().map(|function| Function {
            name_strindex: small(function.name),
            system_name_strindex: small(function.system_name),
            filename_strindex: small(function.filename),
            start_line: function.start_line,
        });
        maker.dictionary.function_table.extend(functions);
        // Ids of functions count from 1, as the table of `pprof` does without its first entry.
        let lines = |lines: &[pprof::message::Line]| {
            lines.iter().map(|line| Line { function_index: small(line.function_id as i64), line: line.line }).collect()
        };
        let locations = places.location.iter().map(|location| Location {
            mapping_index: by_id.get(&location.mapping_id).copied().unwrap_or(0),
            address: location.address,
            lines: lines(&location.line),
            ..Location::default()
        });
        maker.dictionary.location_table.extend(locations);
        maker
    }

    /// A stack of one frame for each sample of `pprof`.
    fn stacks_of(&mut self, places: &Places) -> Vec<i32> {
        let frames = places.sample.iter().map(|sample| sample.location_id.iter().map(|&id| small(id as i64)).collect());
        frames.map(|frames| self.stack(frames)).collect()
    }

    fn stack(&mut self, location_indices: Vec<i32>) -> i32 {
        self.dictionary.stack_table.push(Stack { location_indices });
        index(self.dictionary.stack_table.len() - 1)
    }

    fn text(&mut self, text: &str) -> i32 {
        if let Some(&known) = self.texts.get(text) {
            return known;
        }
        let at = index(self.dictionary.string_table.len());
        self.dictionary.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), at);
        at
    }

    fn attribute(&mut self, key: &str, value: &str) -> i32 {
        let key_strindex = self.text(key);
        let value = Some(AnyValue { string_value: Some(value.to_owned()), ..AnyValue::default() });
        self.dictionary.attribute_table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
        index(self.dictionary.attribute_table.len() - 1)
    }

    /// A mapping of this range. Its file is found by its first one.
    fn mapping(&mut self, range: Mapping, build_id: &str) -> i32 {
        let attribute_indices = match build_id {
            "" => Vec::new(),
            id => vec![self.attribute(BUILD_ID, id)],
        };
        let at = index(self.dictionary.mapping_table.len());
        self.mappings.entry((range.filename_strindex, build_id.to_owned())).or_insert(at);
        self.dictionary.mapping_table.push(Mapping { attribute_indices, ..range });
        at
    }

    /// A sample for each calling context.
    fn contexts(&mut self, calls: &Calls, modules: &ModuleTable) -> Vec<Sample> {
        let unknown = self.frame(UNKNOWN_CALLERS, 0);
        let frames: Vec<i32> = calls
            .functions
            .iter()
            .map(|function| {
                let module = modules.get(function.module);
                let build_id = module.build_id.as_ref().map(ToString::to_string).unwrap_or_default();
                let filename_strindex = self.text(&module.path);
                let mapping = match self.mappings.get(&(filename_strindex, build_id.clone())) {
                    Some(&mapping) => mapping,
                    None => self.mapping(Mapping { filename_strindex, ..Mapping::default() }, &build_id),
                };
                self.frame(&printable(&function.name), mapping)
            })
            .collect();
        let sample = |context: analyzer::calls::CallContext<'_>| {
            let inner = context.frames.iter().rev().filter_map(|&function| frames.get(function).copied());
            let stack_index = self.stack(inner.chain([unknown]).collect());
            let count = i64::try_from(whole(context.instructions)).unwrap_or(i64::MAX);
            Sample { stack_index, values: vec![count], ..Sample::default() }
        };
        calls.contexts().map(sample).collect()
    }

    /// A function of which no more is known than its name and its file.
    fn frame(&mut self, name: &str, mapping_index: i32) -> i32 {
        let function = Function { name_strindex: self.text(name), ..Function::default() };
        self.dictionary.function_table.push(function);
        let function_index = index(self.dictionary.function_table.len() - 1);
        let lines = vec![Line { function_index, line: 0 }];
        self.dictionary.location_table.push(Location { mapping_index, lines, ..Location::default() });
        index(self.dictionary.location_table.len() - 1)
    }
}
