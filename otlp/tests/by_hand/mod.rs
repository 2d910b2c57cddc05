//! Profiles written field by field, with numbers taken from opentelemetry-proto 1.10.0 (`profiles/v1development/profiles.proto`): not by the
//! messages that are read with, so that a wrong number there shows. Tables are in the order and the shape in which the OpenTelemetry eBPF
//! profiler has them.
#![allow(dead_code)]

use std::collections::HashMap;

/// A field of a protocol buffer.
#[derive(Clone, Debug)]
pub enum Field {
    Number(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Text(&'a str),
    Number(u64),
}

use Field::{Bytes, Fixed, Number};

/// A message of these fields. Numbers that are 0 and bytes that are empty are left out, unless they are entries of a table.
pub fn message(fields: &[(u32, Field)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, field) in fields {
        match field {
            Number(0) | Fixed(0) => {}
            Number(value) => {
                varint(u64::from(*number) << 3, &mut out);
                varint(*value, &mut out);
            }
            Fixed(value) => {
                varint(u64::from(*number) << 3 | 1, &mut out);
                out.extend(value.to_le_bytes());
            }
            Bytes(bytes) => {
                varint(u64::from(*number) << 3 | 2, &mut out);
                varint(bytes.len() as u64, &mut out);
                out.extend(bytes);
            }
        }
    }
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Numbers, packed.
pub fn packed(values: &[u64]) -> Field {
    let mut out = Vec::new();
    values.iter().for_each(|value| varint(*value, &mut out));
    Bytes(out)
}

/// Times, packed.
pub fn times(times: &[u64]) -> Field {
    Bytes(times.iter().flat_map(|time| time.to_le_bytes()).collect())
}

/// The dictionary. Entries are added once.
pub struct Tables {
    tables: [Vec<Vec<u8>>; 8],
    known: [HashMap<Vec<u8>, u64>; 8],
}

impl Tables {
    pub fn new() -> Self {
        let mut tables = Tables { tables: Default::default(), known: Default::default() };
        (1..8).for_each(|table| assert_eq!(tables.add(table, Vec::new()), 0));
        tables
    }

    fn add(&mut self, table: usize, entry: Vec<u8>) -> u64 {
        let next = self.tables[table].len() as u64;
        let index = *self.known[table].entry(entry.clone()).or_insert(next);
        if index == next {
            self.tables[table].push(entry);
        }
        index
    }

    pub fn text(&mut self, text: &str) -> u64 {
        self.add(5, text.as_bytes().to_vec())
    }

    pub fn attribute(&mut self, key: &str, value: Value<'_>) -> u64 {
        let key = self.text(key);
        self.add(6, message(&[(1, Number(key)), (2, Bytes(any(value)))]))
    }

    fn attributes(&mut self, attributes: &[(&str, Value<'_>)]) -> Field {
        let indices: Vec<u64> = attributes.iter().map(|(key, value)| self.attribute(key, *value)).collect();
        packed(&indices)
    }

    /// A mapping of this range of addresses, from this offset on.
    pub fn mapping(&mut self, [start, limit, offset]: [u64; 3], name: &str, attributes: &[(&str, Value<'_>)]) -> u64 {
        let name = self.text(name);
        let attributes = self.attributes(attributes);
        let range = [(1, Number(start)), (2, Number(limit)), (3, Number(offset)), (4, Number(name))];
        self.add(1, message(&[&range[..], &[(5, attributes)]].concat()))
    }

    /// A frame of this type; `function`: its name.
    pub fn location(&mut self, mapping: u64, address: u64, frame: &str, function: &str) -> u64 {
        let attributes =
            if frame.is_empty() { packed(&[]) } else { self.attributes(&[("profile.frame.type", Value::Text(frame))]) };
        let mut fields = vec![(1, Number(mapping)), (2, Number(address))];
        if !function.is_empty() {
            let name = self.text(function);
            let function = self.add(3, message(&[(1, Number(name))]));
            fields.push((3, Bytes(message(&[(1, Number(function)), (2, Number(7))]))));
        }
        fields.push((4, attributes));
        self.add(2, message(&fields))
    }

    pub fn stack(&mut self, locations: &[u64]) -> u64 {
        self.add(7, message(&[(1, packed(locations))]))
    }

    /// A sample with these attributes: values, times, or both.
    pub fn sample(&mut self, stack: u64, attributes: &[(&str, Value<'_>)], values: &[u64], at: &[u64]) -> Vec<u8> {
        let attributes = self.attributes(attributes);
        message(&[(1, Number(stack)), (2, attributes), (4, packed(values)), (5, times(at))])
    }

    fn value_type(&mut self, [kind, unit]: [&str; 2]) -> Field {
        let (kind, unit) = (self.text(kind), self.text(unit));
        Bytes(message(&[(1, Number(kind)), (2, Number(unit))]))
    }

    /// A profile of values of this type and unit, of which one was taken each `period` of that type and unit.
    pub fn profile(&mut self, values: [&str; 2], period: ([&str; 2], u64), samples: &[Vec<u8>]) -> Vec<u8> {
        let mut fields = vec![(1, self.value_type(values))];
        fields.extend(samples.iter().map(|sample| (2, Bytes(sample.clone()))));
        fields.extend([(3, Fixed(BEGAN)), (4, Number(5_000_000_000))]);
        fields.extend([(5, self.value_type(period.0)), (6, Number(period.1))]);
        message(&fields)
    }

    /// The message of these resources.
    pub fn request(&self, resources: &[Vec<u8>]) -> Vec<u8> {
        let mut dictionary = Vec::new();
        for (number, table) in self.tables.iter().enumerate().skip(1) {
            dictionary.extend(table.iter().map(|entry| (number as u32, Bytes(entry.clone()))));
        }
        let mut fields: Vec<(u32, Field)> = resources.iter().map(|resource| (1, Bytes(resource.clone()))).collect();
        fields.push((2, Bytes(message(&dictionary))));
        message(&fields)
    }
}

/// When profiles began, ns since 1970.
pub const BEGAN: u64 = 1_790_000_000_000_000_000;
/// What a sample of the eBPF profiler stands for at 19 Hz, ns.
pub const PERIOD: u64 = 1_000_000_000 / 19;
/// What its samples are, and what they are taken by.
pub const SAMPLES: [&str; 2] = ["samples", "count"];
pub const CPU: [&str; 2] = ["cpu", "nanoseconds"];

fn any(value: Value<'_>) -> Vec<u8> {
    match value {
        Value::Text(text) => message(&[(1, Bytes(text.as_bytes().to_vec()))]),
        Value::Number(number) => message(&[(3, Number(number))]),
    }
}

/// The profiles of a resource with these attributes.
pub fn resource(attributes: &[(&str, Value<'_>)], profiles: &[Vec<u8>]) -> Vec<u8> {
    let of = |(key, value): &(&str, Value<'_>)| {
        (1, Bytes(message(&[(1, Bytes(key.as_bytes().to_vec())), (2, Bytes(any(*value)))])))
    };
    let attributes: Vec<(u32, Field)> = attributes.iter().map(of).collect();
    let scope = message(&[(1, Bytes(b"go.opentelemetry.io/ebpf-profiler".to_vec())), (2, Bytes(b"v0.0.1".to_vec()))]);
    let mut scoped = vec![(1, Bytes(scope))];
    scoped.extend(profiles.iter().map(|profile| (2, Bytes(profile.clone()))));
    message(&[(1, Bytes(message(&attributes))), (2, Bytes(message(&scoped)))])
}
