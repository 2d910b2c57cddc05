//! Which event a record belongs to.

use crate::sample_id::id_from_end;
use crate::sample_layout::SampleLayout;
use crate::{Error, EventDescription, SampleFormat};

/// Finds a record's event by the event id in it, as `perf` does.
#[derive(Debug)]
pub(crate) struct EventLookup {
    /// `None`: all records belong to the first event.
    places: Option<Places>,
    index: IdIndex,
}

/// Where the id is: in samples from the front, in other records from the end, in words.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Places {
    from_start: usize,
    from_end: usize,
}

impl EventLookup {
    /// # Errors
    /// [`Error::SampleIdPlaces`] when the events differ so that their records cannot be told apart.
    pub(crate) fn new(events: &[EventDescription], notes: &mut Vec<String>) -> Result<Self, Error> {
        let index = IdIndex::new(events);
        let Some(first) = events.first() else { return Err(Error::NoEvents) };
        if events.len() == 1 {
            return Ok(Self { places: None, index });
        }
        let places = Places::of(first.attr.sample_format);
        for (second, event) in events.iter().enumerate() {
            let same = match places {
                Some(_) => Places::of(event.attr.sample_format) == places,
                None => SampleLayout::new(&event.attr) == SampleLayout::new(&first.attr),
            };
            if !same {
                return Err(Error::SampleIdPlaces { first: 0, second });
            }
        }
        if places.is_none() {
            let count = events.len();
            notes
                .push(format!("none of the {count} events records its id: all samples are taken as the first event's"));
        }
        Ok(Self { places, index })
    }

    /// The event of a sample.
    #[inline]
    pub(crate) fn of_sample(&self, offset: u64, body: &[u8]) -> Result<usize, Error> {
        let Some(places) = self.places else { return Ok(0) };
        let (words, _) = body.as_chunks::<8>();
        let what = "sample record";
        match words.get(places.from_start) {
            Some(&word) => self.of_id(what, offset, u64::from_le_bytes(word)),
            None => {
                let needs = (places.from_start as u64 + 1) * 8;
                Err(Error::Short { what, offset, needs, left: body.len() as u64 })
            }
        }
    }

    /// The event of a record with a [`crate::SampleId`] at its end.
    pub(crate) fn of_trailer(&self, what: &'static str, offset: u64, body: &[u8]) -> Result<usize, Error> {
        let Some(places) = self.places else { return Ok(0) };
        let needs = places.from_end * 8;
        let word = body.len().checked_sub(needs).and_then(|start| body.get(start..)?.first_chunk());
        match word {
            Some(&word) => self.of_id(what, offset, u64::from_le_bytes(word)),
            None => Err(Error::Short { what, offset, needs: needs as u64, left: body.len() as u64 }),
        }
    }

    #[inline]
    fn of_id(&self, what: &'static str, offset: u64, id: u64) -> Result<usize, Error> {
        match self.index.get(id) {
            Some(event) => Ok(event),
            // perf writes 0 into the records it makes up for what existed before the recording.
            None if id == 0 => Ok(0),
            None => Err(Error::UnknownId { what, offset, id }),
        }
    }
}

impl Places {
    fn of(format: SampleFormat) -> Option<Self> {
        Some(Self { from_start: SampleLayout::id_from_start(format)?, from_end: id_from_end(format)? })
    }
}

/// From event id to event. The kernel counts ids up, so a table over their range is mostly full.
#[derive(Debug)]
enum IdIndex {
    /// Entry i is the event + 1 of id `lowest + i`; 0 where no event has that id.
    Table { lowest: u64, events: Vec<u32> },
    /// Pairs of an id and its event, sorted by id: for ids so far apart that a table would be mostly empty.
    Sorted(Vec<(u64, u32)>),
}

impl IdIndex {
    fn new(events: &[EventDescription]) -> Self {
        let mut pairs: Vec<(u64, u32)> = Vec::new();
        for (event, number) in events.iter().zip(0u32..) {
            pairs.extend(event.ids.iter().map(|&id| (id, number)));
        }
        pairs.sort_unstable();
        pairs.dedup_by_key(|pair| pair.0);
        let (Some(&(lowest, _)), Some(&(highest, _))) = (pairs.first(), pairs.last()) else {
            return Self::Sorted(pairs);
        };
        if highest - lowest >= pairs.len() as u64 * 8 {
            return Self::Sorted(pairs);
        }
        let mut events = vec![0; (highest - lowest) as usize + 1];
        for (id, event) in pairs {
            if let Some(entry) = events.get_mut((id - lowest) as usize) {
                *entry = event + 1;
            }
        }
        Self::Table { lowest, events }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<usize> {
        match self {
            Self::Table { lowest, events } => {
                let entry = *events.get(usize::try_from(id.checked_sub(*lowest)?).ok()?)?;
                (entry as usize).checked_sub(1)
            }
            Self::Sorted(pairs) => {
                let at = pairs.binary_search_by_key(&id, |pair| pair.0).ok()?;
                pairs.get(at).map(|&(_, event)| event as usize)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(ids: &[&[u64]]) -> Vec<EventDescription> {
        ids.iter().map(|ids| EventDescription { ids: ids.to_vec(), ..Default::default() }).collect()
    }

    #[test]
    fn dense_and_sparse_ids_are_found() {
        for ids in [[&[7, 9][..], &[8, 12]], [&[7, u64::MAX][..], &[1 << 40, 0]]] {
            let index = IdIndex::new(&events(&ids));
            for (event, ids) in ids.iter().enumerate() {
                for &id in *ids {
                    assert_eq!(index.get(id), Some(event), "id {id}");
                }
            }
            for absent in [6, 10, 11, 13, u64::MAX - 1] {
                assert_eq!(index.get(absent), None, "id {absent}");
            }
        }
    }
}
