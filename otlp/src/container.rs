//! The files that messages are in: one message, or many, as collectors write them; packed or not.
//!
//! ```text
//! a message                      the body of a request; `hbbp export --format otlp`
//! u32 (big-endian), message ...  the collector's file exporter, `format: proto`
//! {"resourceProfiles":..} \n ... the same, `format: json`: JSON, one message a line
//! ```
//! Each of these, and each message of the second, may be packed by gzip or zstd.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use prost::Message;
use prost::encoding::decode_varint;

use crate::Error;
use crate::message::ProfilesData;

/// Bytes that are looked at to tell what a file is.
const BEGIN: u64 = 4096;
/// How much data grows at most when it is unpacked, and what it may have beyond that.
const MOST_GROWTH: u64 = 1000;
const ALWAYS: u64 = 1 << 20;

/// Whether a file has such messages, by its beginning. One that cannot be read has none.
pub fn is_otlp(file: &Path) -> bool {
    let mut begin = Vec::new();
    let is_file = file.is_file();
    let read = || File::open(file).and_then(|file| file.take(BEGIN).read_to_end(&mut begin));
    is_file && { read }().is_ok() && begins_like_otlp(&begin)
}

/// Whether what begins so has such messages.
pub fn begins_like_otlp(begin: &[u8]) -> bool {
    let plain = beginning_of(begin);
    let framed = || {
        let (length, rest) = plain.split_first_chunk::<4>()?;
        let message = beginning_of(rest);
        (u32::from_be_bytes(*length) > 0 && (is_json(&message) || is_message(&message))).then_some(())
    };
    is_json(&plain) || is_message(&plain) || framed().is_some()
}

/// The beginning, unpacked.
fn beginning_of(begin: &[u8]) -> Cow<'_, [u8]> {
    let Some(mut unpacking) = Packing::of(begin).and_then(|packing| packing.reader(begin).ok()) else {
        return begin.into();
    };
    let mut plain = vec![0; BEGIN as usize];
    let mut length = 0;
    // What was cut off here ends with an error.
    while let Some(room @ [_, ..]) = plain.get_mut(length..) {
        match unpacking.read(room) {
            Ok(0) | Err(_) => break,
            Ok(more) => length += more,
        }
    }
    plain.truncate(length);
    plain.into()
}

/// Whether it is JSON of such messages. Collectors begin with these names.
fn is_json(begin: &[u8]) -> bool {
    let inside = begin.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let names: [&[u8]; 2] = [b"\"resourceProfiles\"", b"\"dictionary\""];
    inside.is_some_and(|inside| names.iter().any(|name| inside.starts_with(name)))
}

/// Whether it is a message: its first fields, and those in them, have numbers that there are, and lengths that fit into each other.
fn is_message(begin: &[u8]) -> bool {
    let inner = |begin: &[u8], of: u64, keys: &[u8]| -> Option<(u8, u64, usize)> {
        let (&key, mut rest) = begin.split_first()?;
        let before = rest.len();
        let length = if keys.contains(&key) { decode_varint(&mut rest).ok()? } else { return None };
        (length <= of).then_some((key, length, 1 + before - rest.len()))
    };
    let is_one = || {
        let (key, length, at) = inner(begin, u64::MAX, &[0x0a, 0x12])?;
        let rest = begin.get(at..)?;
        if key == 0x12 {
            return inner(rest, length, &[0x0a, 0x12, 0x1a, 0x22, 0x2a, 0x32, 0x3a]).map(drop);
        }
        let (key, length, at) = inner(rest, length, &[0x0a, 0x12, 0x1a])?;
        match key {
            0x0a if length == 0 => Some(()),
            // A resource: attributes, or references; or one profiler's profiles.
            0x0a | 0x12 => inner(rest.get(at..)?, length, &[0x0a, 0x12, 0x1a]).map(drop),
            _ => std::str::from_utf8(rest.get(at..)?.get(..4)?).is_ok_and(|text| text == "http").then_some(()),
        }
    };
    is_one().is_some()
}

#[derive(Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    fn reader<'a>(self, packed: &'a [u8]) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// What was packed, unpacked.
fn unpacked(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, Error> {
    let Some(packing) = Packing::of(&bytes) else { return Ok(bytes) };
    let most = (bytes.len() as u64).saturating_mul(MOST_GROWTH).saturating_add(ALWAYS);
    let mut plain = Vec::new();
    let failed = |source| Error::Unpack { by: packing.name(), source };
    let read = packing.reader(&bytes).and_then(|reader| reader.take(most + 1).read_to_end(&mut plain));
    if read.map_err(failed)? as u64 > most {
        return Err(Error::Grows { what: "what is packed in it", most });
    }
    Ok(plain.into())
}

/// All bytes of a file, unpacked.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Error> {
    let bytes = std::fs::read(file).map_err(Error::Read)?;
    Ok(unpacked(bytes.into())?.into_owned())
}

/// Hands each message of a file to `take`, as a protocol buffer.
pub(crate) fn for_each_message(bytes: &[u8], mut take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    if is_json(bytes) || is_message(bytes) {
        return each_of(bytes, 1, &mut take);
    }
    let (mut rest, mut number) = (bytes, 1);
    while !rest.is_empty() {
        let Some((length, messages)) = rest.split_first_chunk::<4>() else {
            return Err(Error::Cut { number, length: 4, left: rest.len() as u64 });
        };
        let length = u32::from_be_bytes(*length);
        let split = usize::try_from(length).ok().and_then(|length| messages.split_at_checked(length));
        let cut = || Error::Cut { number, length: length.into(), left: messages.len() as u64 };
        let (message, next) = split.ok_or_else(cut)?;
        each_of(&unpacked(message.into())?, number, &mut take)?;
        (rest, number) = (next, number + 1);
    }
    Ok(())
}

/// A message, or all of JSON one after the other, of which the first has this number.
fn each_of(bytes: &[u8], first: usize, take: &mut impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    if !is_json(bytes) {
        return take(bytes);
    }
    for (at, message) in serde_json::Deserializer::from_slice(bytes).into_iter::<ProfilesData>().enumerate() {
        let failed = |error: serde_json::Error| Error::Json { number: first + at, reason: error.to_string() };
        take(&message.map_err(failed)?.encode_to_vec())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_from_other_files() {
        let begins: [&[u8]; 5] = [
            b"\x0a\x10\x0a\x08\x0a\x06\x0a\x04hostx",
            b"\x0a\x04\x0a\x00\x12\x00",
            b"\x12\x02\x0a\x00",
            b" {\n \"resourceProfiles\": []}",
            b"\0\0\0\x04\x12\x02\x0a\x00",
        ];
        for begin in begins {
            assert!(begins_like_otlp(begin), "{begin:?}");
        }
        let others: [&[u8]; 8] = [
            b"",
            b"\x0a",
            b"\n\n\n\n",
            b"\nversion: 1\n",
            b"\x0a\x04\x08\x01\x10\x02",
            b"PERFILE2",
            b"{\"schema\":\"hbbp-flow/1\"}",
            b"\x7fELF\x02\x01\x01",
        ];
        for begin in others {
            assert!(!begins_like_otlp(begin), "{begin:?}");
        }
    }
}
