//! The messages of OpenTelemetry's profiles (opentelemetry-proto 1.10.0, `opentelemetry/proto/profiles/v1development/profiles.proto`, a
//! signal in development), as far as they are read or written. Texts, mappings and so on are indexes into the tables of the dictionary, in
//! which the first of each is empty. Where nothing is said here, a field is what it is called there.
#![allow(missing_docs, reason = "the fields are those of the specification, under its names")]

use prost::Message;
use serde::Deserialize;

use crate::json::{integers, maybe_integer, one_integer, one_unsigned, unsigned};

/// Also the message of an OTLP request, `ExportProfilesServiceRequest`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<ProfilesDictionary>,
}

/// What all profiles of a message share.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<Function>,
    #[serde(skip)]
    #[prost(message, repeated, tag = "4")]
    pub link_table: Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: Vec<KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

/// What was profiled: of the eBPF profiler a process.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

/// What is known of it.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// An attribute of a resource.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// The key, where it is in the table of texts.
    #[prost(int32, tag = "3")]
    pub key_strindex: i32,
}

/// A value of an attribute: one of these, or of a kind that nothing here has use for.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub string_value: Option<String>,
    #[serde(deserialize_with = "maybe_integer")]
    #[prost(int64, optional, tag = "3")]
    pub int_value: Option<i64>,
    /// The text, where it is in the table of texts.
    #[prost(int32, optional, tag = "8")]
    pub string_value_strindex: Option<i32>,
}

/// What one profiler wrote.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

/// The profiler.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

/// Samples whose values are of one type.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[serde(deserialize_with = "one_unsigned")]
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[serde(deserialize_with = "one_unsigned")]
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    #[serde(deserialize_with = "one_integer")]
    #[prost(int64, tag = "6")]
    pub period: i64,
    #[prost(int32, repeated, tag = "11")]
    pub attribute_indices: Vec<i32>,
}

/// A profile without its samples, which are passed over when it is read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProfileHead {
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub period: i64,
    #[prost(int32, repeated, tag = "11")]
    pub attribute_indices: Vec<i32>,
}

/// A span of a trace, of which only the empty first one is written.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Link {}

/// What values are: `cpu`, `nanoseconds`.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueType {
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}

/// What was seen of one stack: a value for each time, values alone, or times alone, each of which counts one.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sample {
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    /// Versions before 1.10.0 have the attributes here: that it is a number tells them apart.
    #[prost(int32, tag = "3")]
    pub link_index: i32,
    #[serde(deserialize_with = "integers")]
    #[prost(int64, repeated, tag = "4")]
    pub values: Vec<i64>,
    #[serde(deserialize_with = "unsigned")]
    #[prost(fixed64, repeated, tag = "5")]
    pub timestamps_unix_nano: Vec<u64>,
}

/// A part of a file that was mapped.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mapping {
    #[serde(deserialize_with = "one_unsigned")]
    #[prost(uint64, tag = "1")]
    pub memory_start: u64,
    #[serde(deserialize_with = "one_unsigned")]
    #[prost(uint64, tag = "2")]
    pub memory_limit: u64,
    #[serde(deserialize_with = "one_unsigned")]
    #[prost(uint64, tag = "3")]
    pub file_offset: u64,
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub attribute_indices: Vec<i32>,
}

/// The innermost frame first.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// Code: an address in a mapping, lines of a source, or both.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Location {
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    #[serde(deserialize_with = "one_unsigned")]
    #[prost(uint64, tag = "2")]
    pub address: u64,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub attribute_indices: Vec<i32>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Line {
    #[prost(int32, tag = "1")]
    pub function_index: i32,
    #[serde(deserialize_with = "one_integer")]
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function, by its names.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Function {
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub filename_strindex: i32,
    #[serde(deserialize_with = "one_integer")]
    #[prost(int64, tag = "4")]
    pub start_line: i64,
}

/// An attribute of anything but a resource.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyValueAndUnit {
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    #[prost(int32, tag = "3")]
    pub unit_strindex: i32,
}
