//! Numbers of 64 bits in JSON of protocol buffers: texts, or numbers.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Number<'a> {
    Signed(i64),
    Unsigned(u64),
    #[serde(borrow)]
    Text(std::borrow::Cow<'a, str>),
}

impl Number<'_> {
    fn to<T: FromStr + TryFrom<i64> + TryFrom<u64>, E: Error>(&self) -> Result<T, E> {
        let number = match self {
            Self::Signed(number) => T::try_from(*number).ok(),
            Self::Unsigned(number) => T::try_from(*number).ok(),
            Self::Text(text) => text.parse().ok(),
        };
        number.ok_or_else(|| E::custom("expected a whole number of 64 bits, or a text that is one"))
    }
}

pub(crate) fn one_unsigned<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Number::deserialize(from)?.to()
}

pub(crate) fn one_integer<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Number::deserialize(from)?.to()
}

pub(crate) fn maybe_integer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    one_integer(from).map(Some)
}

pub(crate) fn unsigned<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    Vec::<Number<'_>>::deserialize(from)?.iter().map(Number::to).collect()
}

pub(crate) fn integers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
    Vec::<Number<'_>>::deserialize(from)?.iter().map(Number::to).collect()
}
