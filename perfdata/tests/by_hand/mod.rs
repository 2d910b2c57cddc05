//! Recordings put together byte by byte, without the crate's own writer.
#![allow(dead_code)] // each test binary uses a part

use perfdata::{Chunk, RawRecord, Recording};

/// What of `perf_event_attr` matters here. All attrs are 128 bytes long.
#[derive(Clone, Debug, Default)]
pub struct Attr {
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub branch_sample_type: u64,
    pub regs_user: u64,
    pub regs_intr: u64,
    pub ids: Vec<u64>,
    /// `type`, `config`, `bp_type`, `config1`; where `None`, task-clock.
    pub event: Option<(u32, u64, u32, u64)>,
}

pub const SAMPLE_ID_ALL: u64 = 1 << 18;

pub const ATTR_SIZE: usize = 128;

pub fn attr(attr: &Attr) -> Vec<u8> {
    let mut bytes = vec![0; ATTR_SIZE];
    let mut put = |offset: usize, value: u64| bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    let (kind, config, bp_type, config1) = attr.event.unwrap_or((1, 1, 0, 0));
    put(0, u64::from(kind) | (ATTR_SIZE as u64) << 32);
    put(8, config);
    put(48, u64::from(bp_type) << 32);
    put(56, config1);
    put(16, 1000);
    put(24, attr.sample_type);
    put(32, attr.read_format);
    put(40, attr.flags);
    put(72, attr.branch_sample_type);
    put(80, attr.regs_user);
    put(96, attr.regs_intr);
    bytes
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub fn record(record_type: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).unwrap();
    [&record_type.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// The NUL-terminated string padded to whole words.
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}

/// A file: header, attrs, ids, data, features. `data_size` may lie.
pub fn file_with(attrs: &[Attr], data: &[u8], data_size: u64, features: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let entry = ATTR_SIZE as u64 + 16;
    let attrs_at = 104;
    let ids_at = attrs_at + entry * attrs.len() as u64;
    let id_count: usize = attrs.iter().map(|attr| attr.ids.len()).sum();
    let data_at = ids_at + id_count as u64 * 8;
    let mut bits = [0u64; 4];
    for (bit, _) in features {
        bits[*bit as usize / 64] |= 1 << (bit % 64);
    }
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[104, entry, attrs_at, entry * attrs.len() as u64, data_at, data_size, 0, 0]));
    bytes.extend(words(&bits));
    let mut next_ids = ids_at;
    for each in attrs {
        bytes.extend(attr(each));
        bytes.extend(words(&[next_ids, each.ids.len() as u64 * 8]));
        next_ids += each.ids.len() as u64 * 8;
    }
    attrs.iter().for_each(|attr| bytes.extend(words(&attr.ids)));
    bytes.extend(data);
    let mut at = bytes.len() as u64 + 16 * features.len() as u64;
    for (_, section) in features {
        bytes.extend(words(&[at, section.len() as u64]));
        at += section.len() as u64;
    }
    features.iter().for_each(|(_, section)| bytes.extend(section));
    bytes
}

pub fn file(attrs: &[Attr], records: &[Vec<u8>]) -> Vec<u8> {
    let data = records.concat();
    file_with(attrs, &data, data.len() as u64, &[])
}

pub fn open(attrs: &[Attr], records: &[Vec<u8>]) -> Recording {
    Recording::from_bytes(file(attrs, records)).unwrap()
}

/// A stream: the attrs as records, then the records.
pub fn stream(attrs: &[Attr], records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[16]));
    for each in attrs {
        bytes.extend(record(64, 0, &[attr(each), words(&each.ids)].concat()));
    }
    bytes.extend(records.concat());
    bytes
}

/// All records, and what stopped the reading, if not the end.
pub fn read_all(recording: &Recording, mut each: impl FnMut(&RawRecord<'_>)) -> Option<String> {
    let mut chunk = Chunk::new();
    let mut reader = recording.chunks();
    while reader.next_into(&mut chunk).unwrap() {
        chunk.records().for_each(|raw| each(&raw));
    }
    reader.damage().map(|error| error.to_string())
}

/// The type and body of every record.
pub fn bodies(recording: &Recording) -> Vec<(u32, Vec<u8>)> {
    let mut bodies = Vec::new();
    assert_eq!(read_all(recording, |raw| bodies.push((raw.record_type.0, raw.body.to_vec()))), None);
    bodies
}

/// Applies `check` to the only record.
pub fn with_only_record<T>(recording: &Recording, check: impl FnOnce(&RawRecord<'_>) -> T) -> T {
    let mut chunk = Chunk::new();
    let mut reader = recording.chunks();
    assert!(reader.next_into(&mut chunk).unwrap());
    assert_eq!(chunk.records().count(), 1);
    check(&chunk.records().next().unwrap())
}
