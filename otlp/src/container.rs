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
/// How much data grows at most when it is unpacked, once or twice, and what it may have beyond that.
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
        let length = u32::from_be_bytes(*length);
        let message = beginning_of(rest);
        // Of what is packed, the length is not known.
        let unpacked = if Packing::of(rest).is_none() { length.into() } else { u64::MAX };
        (length > 0 && (is_json(&message) || is_message_of(&message, unpacked))).then_some(())
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

/// Whether it is a message of any length.
fn is_message(begin: &[u8]) -> bool {
    is_message_of(begin, u64::MAX)
}

/// Whether it is a message of this length: its first fields, those in them, and those that follow them have numbers that there are, and lengths
/// that fit into each other. Text does not get so far, though a line feed is the key of field 1.
fn is_message_of(begin: &[u8], length: u64) -> bool {
    let all = Begun { begin, length };
    let is_one = || {
        let (key, first) = all.field(&[0x0a, 0x12])?;
        if key == 0x12 {
            return first.field(&[0x0a, 0x12, 0x1a, 0x22, 0x2a, 0x32, 0x3a]).map(drop);
        }
        let (key, inner) = first.field(&[0x0a, 0x12, 0x1a])?;
        match key {
            // A resource: attributes, or references; or one profiler's profiles.
            0x0a if inner.length == 0 => Some(()),
            0x0a => match inner.field(&[0x0a, 0x1a])? {
                // An attribute: its key, its value, or a reference to its key, which is a number.
                (0x0a, attribute) => {
                    (attribute.begin.first() == Some(&0x18) || attribute.field(&[0x0a, 0x12]).is_some()).then_some(())
                }
                _ => Some(()),
            },
            0x12 => inner.field(&[0x0a, 0x12, 0x1a]).map(drop),
            _ => std::str::from_utf8(inner.begin.get(..4)?).is_ok_and(|text| text == "http").then_some(()),
        }
    };
    is_one().is_some()
}

/// A message of which the beginning is there.
#[derive(Clone, Copy)]
struct Begun<'a> {
    begin: &'a [u8],
    length: u64,
}

impl<'a> Begun<'a> {
    /// The key and the message of its first field; `None` if its key or that of the field after it is none of these, or it is longer than its
    /// message.
    fn field(self, keys: &[u8]) -> Option<(u8, Begun<'a>)> {
        let (key, mut rest) = self.begin.split_first()?;
        let length = if keys.contains(key) { decode_varint(&mut rest).ok()? } else { return None };
        let after = self.length.checked_sub((self.begin.len() - rest.len()) as u64)?.checked_sub(length)?;
        let next = usize::try_from(length).ok().and_then(|length| rest.get(length)).filter(|_| after > 0);
        // Numbers: how many attributes a resource has not, and which key an attribute has.
        next.is_none_or(|next| keys.contains(next) || matches!(next, 0x10 | 0x18))
            .then_some((*key, Begun { begin: rest, length }))
    }
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

/// How many bytes such data may have, unpacked.
fn most_unpacked(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).saturating_mul(MOST_GROWTH).saturating_add(ALWAYS)
}

/// What was packed, unpacked, if that has so many bytes at most.
fn unpacked(bytes: Cow<'_, [u8]>, most: u64) -> Result<Cow<'_, [u8]>, Error> {
    let Some(packing) = Packing::of(&bytes) else { return Ok(bytes) };
    let mut plain = Vec::new();
    let failed = |source| Error::Unpack { by: packing.name(), source };
    let read = packing.reader(&bytes).and_then(|reader| reader.take(most + 1).read_to_end(&mut plain));
    if read.map_err(failed)? as u64 > most {
        return Err(Error::Grows { what: "what is packed in it", most });
    }
    Ok(plain.into())
}

/// What a file of profiles has, unpacked.
#[derive(Debug)]
pub struct Unpacked {
    bytes: Vec<u8>,
    /// Bytes that such a file may have, and so what is packed within.
    most: u64,
}

impl Unpacked {
    /// What a file has.
    ///
    /// # Errors
    /// It cannot be read or unpacked, or grows out of proportion.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(file).map_err(Error::Read)?;
        let most = most_unpacked(&bytes);
        Ok(Unpacked { bytes: unpacked(bytes.into(), most)?.into_owned(), most })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that are not packed as a whole.
impl From<Vec<u8>> for Unpacked {
    fn from(bytes: Vec<u8>) -> Self {
        Unpacked { most: most_unpacked(&bytes), bytes }
    }
}

/// Hands each message of a file to `take`, as a protocol buffer, with the number of bytes that it has there.
pub(crate) fn for_each_message(
    profiles: &Unpacked,
    mut take: impl FnMut(&[u8], u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let (bytes, most) = (profiles.bytes(), profiles.most);
    if is_json(bytes) || is_message(bytes) {
        return each_of(bytes, 1, &mut |message| take(message, message.len() as u64));
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
        each_of(&unpacked(message.into(), most.min(most_unpacked(message)))?, number, &mut |plain| {
            take(plain, message.len() as u64)
        })?;
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
        let begins: [&[u8]; 6] = [
            b"\x0a\x10\x0a\x08\x0a\x06\x0a\x04host\x12\x04\x0a\x02",
            b"\x0a\x04\x0a\x00\x12\x00",
            b"\x0a\x08\x0a\x06\x0a\x02\x18\x05\x10\x01\x12\x00",
            b"\x12\x02\x0a\x00",
            b" {\n \"resourceProfiles\": []}",
            b"\0\0\0\x04\x12\x02\x0a\x00",
        ];
        for begin in begins {
            assert!(begins_like_otlp(begin), "{begin:?}");
        }
        for text in ["", "{", "{\"schema\":\"hbbp-flow/1\"}", "version: 1", "\n{\"dictionaries\":[]}"] {
            for space in ["\n", " ", "\t", "\r\n", "\n ", "\n \n\r\n\t"] {
                for times in 0..40 {
                    let text = space.repeat(times) + text;
                    assert!(!begins_like_otlp(text.as_bytes()), "{text:?}");
                }
            }
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
