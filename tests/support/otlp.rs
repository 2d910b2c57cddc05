//! Profiles of OpenTelemetry, as far as they are looked at: opentelemetry-proto 1.10.0, `profiles/v1development/profiles.proto`. Not the messages
//! that are written with: a wrong tag there has to show.

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<Dictionary>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<Function>,
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceProfiles {
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeProfiles {
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    #[prost(int64, repeated, tag = "4")]
    pub values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub memory_start: u64,
    #[prost(uint64, tag = "2")]
    pub memory_limit: u64,
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub address: u64,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    #[prost(int32, tag = "1")]
    pub function_index: i32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// A profile with its samples in words: frames as in folded stacks, the address of the innermost one and its file, and the value.
pub type Samples = Vec<(String, u64, String, i64)>;

/// The profiles of a file by what they count.
pub fn profiles(file: &Path) -> BTreeMap<String, Samples> {
    let data = ProfilesData::decode(std::fs::read(file).unwrap().as_slice()).unwrap();
    let tables = data.dictionary.unwrap();
    let text = |index: i32| tables.string_table[index as usize].clone();
    assert_eq!((text(0).as_str(), tables.stack_table[0].location_indices.len()), ("", 0));
    assert_eq!(tables.mapping_table[0], Mapping::default());
    let location = |index: &i32| &tables.location_table[*index as usize];
    let name = |index: &i32| {
        let lines = location(index).lines.iter().rev();
        let names = lines.map(|line| text(tables.function_table[line.function_index as usize].name_strindex));
        names.collect::<Vec<String>>().join(";")
    };
    let profiles = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    let words = |sample: &Sample| {
        assert_eq!(sample.values.len(), 1);
        let stack = &tables.stack_table[sample.stack_index as usize].location_indices;
        let (at, frames) = (location(&stack[0]), stack.iter().rev().map(name).collect::<Vec<String>>().join(";"));
        let mapping = &tables.mapping_table[at.mapping_index as usize];
        assert!(at.address == 0 || (mapping.memory_start..mapping.memory_limit).contains(&at.address));
        (frames, at.address, text(mapping.filename_strindex), sample.values[0])
    };
    profiles
        .flat_map(|scope| &scope.profiles)
        .map(|profile| (text(profile.sample_type.unwrap().type_strindex), profile.samples.iter().map(words).collect()))
        .collect()
}
