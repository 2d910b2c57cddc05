//! One message, read where it lies: an entry of a table is decoded when something names it, so that memory stays a small multiple of the
//! message.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

use crate::Error;
use crate::message::ValueType;

/// The fields of a message that are bytes (messages, texts), in their order; numbers are passed over.
pub(crate) struct Fields<'a> {
    what: &'static str,
    length: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(what: &'static str, message: &'a [u8]) -> Self {
        Fields { what, length: message.len(), rest: message }
    }

    /// Those with this number.
    pub(crate) fn numbered(self, number: u32) -> impl Iterator<Item = Result<&'a [u8], Error>> {
        self.filter_map(move |field| match field {
            Ok((found, bytes)) => (found == number).then_some(Ok(bytes)),
            Err(error) => Some(Err(error)),
        })
    }

    fn read(&mut self) -> Result<Option<(u32, &'a [u8])>, String> {
        while !self.rest.is_empty() {
            let (number, kind) = decode_key(&mut self.rest).map_err(|error| error.to_string())?;
            let length = match kind {
                WireType::Varint => {
                    decode_varint(&mut self.rest).map_err(|error| error.to_string())?;
                    continue;
                }
                WireType::SixtyFourBit => 8,
                WireType::ThirtyTwoBit => 4,
                WireType::LengthDelimited => decode_varint(&mut self.rest).map_err(|error| error.to_string())?,
                WireType::StartGroup | WireType::EndGroup => return Err(format!("field {number} is a group")),
            };
            let left = self.rest.len();
            let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
            let (bytes, rest) =
                split.ok_or_else(|| format!("field {number} has {length} bytes, and {left} are left"))?;
            self.rest = rest;
            if kind == WireType::LengthDelimited {
                return Ok(Some((number, bytes)));
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.length - self.rest.len();
        self.read()
            .map_err(|reason| {
                self.rest = &[];
                Error::Malformed { what: format!("{}, {at} bytes from its beginning,", self.what), reason }
            })
            .transpose()
    }
}

/// Decodes a message.
pub(crate) fn decode<M: Message + Default>(what: &str, bytes: &[u8]) -> Result<M, Error> {
    M::decode(bytes).map_err(|error| Error::Malformed { what: what.to_owned(), reason: error.to_string() })
}

/// A table of the dictionary, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Mappings = 1,
    Locations = 2,
    Functions = 3,
    Texts = 5,
    Attributes = 6,
    Stacks = 7,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Self::Mappings => "mapping_table",
            Self::Locations => "location_table",
            Self::Functions => "function_table",
            Self::Texts => "string_table",
            Self::Attributes => "attribute_table",
            Self::Stacks => "stack_table",
        }
    }
}

/// Bytes of a text that are read (`PATH_MAX`).
const MOST_TEXT: usize = 4096;

/// Tables by their numbers: 1 to 7.
const NUMBERS: usize = 8;

/// The dictionary of a message.
#[derive(Default)]
pub(crate) struct Tables<'a> {
    entries: [Vec<&'a [u8]>; NUMBERS],
    /// Texts that are kept beyond the message, by their index: a few bytes can name a long one.
    shared: RefCell<HashMap<i32, Rc<str>>>,
}

impl<'a> Tables<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Result<Self, Error> {
        let mut tables = Tables::default();
        for dictionary in Fields::of("the message", message).numbered(2) {
            for field in Fields::of("the dictionary", dictionary?) {
                let (number, bytes) = field?;
                if let Some(table) = tables.entries.get_mut(number as usize) {
                    table.push(bytes);
                }
            }
        }
        Ok(tables)
    }

    pub(crate) fn is_empty(&self, table: Table) -> bool {
        self.table(table).is_empty()
    }

    fn table(&self, table: Table) -> &[&'a [u8]] {
        self.entries.get(table as usize).map_or(&[], Vec::as_slice)
    }

    /// The bytes of an entry, which `what` names.
    fn bytes(&self, table: Table, index: i32, what: &'static str) -> Result<&'a [u8], Error> {
        let entries = self.table(table);
        let found = usize::try_from(index).ok().and_then(|index| entries.get(index));
        let none = || Error::Index { what, index: index.into(), table: table.name(), length: entries.len() };
        found.copied().ok_or_else(none)
    }

    /// An entry, which `what` names; the empty one for 0, whether it is there or not.
    pub(crate) fn entry<M: Message + Default>(&self, table: Table, index: i32, what: &'static str) -> Result<M, Error> {
        if index == 0 {
            return Ok(M::default());
        }
        let bytes = self.bytes(table, index, what)?;
        decode(&format!("entry {index} of {}", table.name()), bytes)
    }

    /// A text, which `what` names; of a longer one than any path, its beginning.
    pub(crate) fn text(&self, index: i32, what: &'static str) -> Result<Cow<'a, str>, Error> {
        if index == 0 {
            return Ok("".into());
        }
        let text = self.bytes(Table::Texts, index, what)?;
        Ok(String::from_utf8_lossy(text.get(..MOST_TEXT).unwrap_or(text)))
    }

    /// A text that is kept, which `what` names: the same one however often it is named.
    pub(crate) fn shared_text(&self, index: i32, what: &'static str) -> Result<Rc<str>, Error> {
        if let Some(known) = self.shared.borrow().get(&index) {
            return Ok(known.clone());
        }
        let text: Rc<str> = self.text(index, what)?.into();
        self.shared.borrow_mut().insert(index, text.clone());
        Ok(text)
    }

    /// The type and the unit of values.
    pub(crate) fn value_type(&self, of: Option<ValueType>) -> Result<(String, String), Error> {
        let of = of.unwrap_or_default();
        let kind = self.text(of.type_strindex, "a type of values")?.to_ascii_lowercase();
        Ok((kind, self.text(of.unit_strindex, "a unit of values")?.to_ascii_lowercase()))
    }
}
