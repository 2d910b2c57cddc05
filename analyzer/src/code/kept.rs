//! Lists whose items are told by how far they are from the one before: most numbers are small then, and take a byte each.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes each item as what `packed` makes of it and of the one before.
pub(super) fn write<T, P: Serialize, S: Serializer>(
    items: &[T],
    packed: impl Fn(&T, Option<&T>) -> P,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let before = |index: usize| index.checked_sub(1).and_then(|before| items.get(before));
    serializer.collect_seq(items.iter().enumerate().map(|(index, item)| packed(item, before(index))))
}

/// Reads what [`write()`] wrote.
///
/// # Errors
/// `unpacked` makes no item of one of them.
pub(super) fn read<'de, T, P: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    unpacked: impl Fn(P, Option<&T>) -> Option<T>,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Items { unpacked, kinds: PhantomData })
}

struct Items<T, P, Unpacked> {
    unpacked: Unpacked,
    kinds: PhantomData<(T, P)>,
}

impl<'de, T, P: Deserialize<'de>, Unpacked: Fn(P, Option<&T>) -> Option<T>> Visitor<'de> for Items<T, P, Unpacked> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of parts of code, by address")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        /// A length may be anything: no more is reserved than this before there are so many.
        const MOST_RESERVED: usize = 1 << 15;
        let mut items = Vec::with_capacity(sequence.size_hint().unwrap_or(0).min(MOST_RESERVED));
        while let Some(next) = sequence.next_element()? {
            let item = (self.unpacked)(next, items.last());
            items.push(item.ok_or_else(|| A::Error::custom("it cannot come after the one before"))?);
        }
        Ok(items)
    }
}
