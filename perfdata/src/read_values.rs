//! Counter values (`struct read_format`), in samples and in READ records.

use crate::words::{U64s, Words};
use crate::{Error, ReadFormat};

/// Values of one counter, or of all counters of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadValues<'a> {
    /// Time the event was enabled, ns.
    pub time_enabled: Option<u64>,
    /// Time the event was counting, ns.
    pub time_running: Option<u64>,
    format: ReadFormat,
    values: U64s<'a>,
    single: ReadValue,
}

/// The value of one counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]

pub struct ReadValue {
    /// What the counter counted, in units of the event; not scaled where it counted a part of the time only.
    pub value: u64,
    /// Id of its event, with [`ReadFormat::ID`].
    pub id: Option<u64>,
    /// Samples of it that were lost, with [`ReadFormat::LOST`].
    pub lost: Option<u64>,
}

impl<'a> ReadValues<'a> {
    /// Takes the values off the front of `words`; returns what is left with them.
    ///
    /// ```text
    /// single: value [time_enabled] [time_running] [id] [lost]
    /// group:  nr [time_enabled] [time_running] nr x { value [id] [lost] }
    /// ```
    pub(crate) fn take(
        format: ReadFormat,
        mut words: Words<'a>,
        what: &'static str,
        offset: u64,
    ) -> Result<(Self, Words<'a>), Error> {
        let per_value =
            1 + usize::from(format.contains(ReadFormat::ID)) + usize::from(format.contains(ReadFormat::LOST));
        let times = usize::from(format.contains(ReadFormat::TOTAL_TIME_ENABLED))
            + usize::from(format.contains(ReadFormat::TOTAL_TIME_RUNNING));
        let left = words.bytes_left();
        let needs = ((per_value + times) * 8) as u64;
        let short = || Error::Short { what, offset, needs, left };

        let first = words.take().ok_or_else(short)?;
        let mut read = Self { format, ..Self::default() };
        if format.contains(ReadFormat::TOTAL_TIME_ENABLED) {
            read.time_enabled = Some(words.take().ok_or_else(short)?);
        }
        if format.contains(ReadFormat::TOTAL_TIME_RUNNING) {
            read.time_running = Some(words.take().ok_or_else(short)?);
        }
        if format.contains(ReadFormat::GROUP) {
            let left = words.bytes_left();
            let needs = first.saturating_mul(per_value as u64 * 8);
            let count = || Error::Count { what, offset, count: first, things: "counter values", needs, left };
            if needs > left {
                return Err(count());
            }
            read.values = U64s(words.take_many(first as usize * per_value).ok_or_else(count)?);
        } else {
            read.single.value = first;
            if format.contains(ReadFormat::ID) {
                read.single.id = Some(words.take().ok_or_else(short)?);
            }
            if format.contains(ReadFormat::LOST) {
                read.single.lost = Some(words.take().ok_or_else(short)?);
            }
        }
        Ok((read, words))
    }

    /// How many counters have a value: 1 without [`ReadFormat::GROUP`].
    pub fn len(&self) -> usize {
        if self.format.contains(ReadFormat::GROUP) { self.values.len() / self.words_per_value() } else { 1 }
    }

    /// Whether there is none: an empty group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The counter at `index`; the group's leader is first.
    pub fn get(&self, index: usize) -> Option<ReadValue> {
        if index >= self.len() {
            return None;
        }
        if !self.format.contains(ReadFormat::GROUP) {
            return Some(self.single);
        }
        let start = index * self.words_per_value();
        let value = self.values.get(start)?;
        let mut next = start;
        let mut optional = |flag| {
            self.format.contains(flag).then(|| {
                next += 1;
                self.values.get(next)
            })
        };
        let id = optional(ReadFormat::ID).flatten();
        let lost = optional(ReadFormat::LOST).flatten();
        Some(ReadValue { value, id, lost })
    }

    /// The values of all counters, the group's leader first.
    pub fn iter(&self) -> impl Iterator<Item = ReadValue> + use<'a> {
        let values = *self;
        (0..values.len()).filter_map(move |index| values.get(index))
    }

    fn words_per_value(&self) -> usize {
        1 + usize::from(self.format.contains(ReadFormat::ID)) + usize::from(self.format.contains(ReadFormat::LOST))
    }
}
