//! Pipe mode: the events and features are records of the stream.

use std::collections::HashMap;

use crate::chunk_reader::ChunkReader;
use crate::feature_read::FeatureSections;
use crate::fields::Fields;
use crate::record_parse::build_id;
use crate::{Chunk, Error, EventAttr, EventDescription, FeatureBit, RawRecord, RecordType};

/// Header records that cannot be read are told one by one up to this many.
const MOST_NOTES: usize = 100;

/// What the header records of a stream say.
#[derive(Debug, Default)]
pub(crate) struct StreamHeader {
    pub(crate) events: Vec<EventDescription>,
    pub(crate) sections: FeatureSections,
    /// Names by event id.
    names: Vec<(u64, String)>,
    end: StreamEnd,
}

/// Whether a stream came to its end, as far as the features tell. Those that `perf` writes come first, and tell nothing. [`Writer`]
/// writes them last: a tool's own section before all of them was written by hand, to be there if the features are not.
///
/// [`Writer`]: crate::Writer
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamEnd {
    /// There was no feature.
    #[default]
    Untold,
    /// A tool's own section, and nothing after it.
    Missing,
    /// There were features, and more than such a section.
    Reached,
}

impl StreamHeader {
    /// Whether the stream begins with a tool's own section, and the features that follow in the end are not there.
    pub(crate) fn was_cut_off(&self) -> bool {
        self.end == StreamEnd::Missing
    }

    /// Reads the whole stream for them: an event may be described in its middle.
    pub(crate) fn read(mut reader: ChunkReader<'_>, notes: &mut Vec<String>) -> Result<Self, Error> {
        let mut header = Self::default();
        let mut chunk = Chunk::new();
        let mut more = 0u64;
        while reader.next_into(&mut chunk)? {
            for raw in chunk.records() {
                match header.add(&raw) {
                    Ok(()) => {}
                    // Without its events the stream cannot be read; anything else can be missed.
                    Err(error) if raw.record_type == RecordType::HEADER_ATTR => return Err(error),
                    Err(error) if notes.len() < MOST_NOTES => notes.push(error.to_string()),
                    Err(_) => more += 1,
                }
            }
        }
        if more > 0 {
            notes.push(format!("{more} more header records cannot be read"));
        }
        header.apply_names();
        Ok(header)
    }

    /// Names events of a file as the records at its front say. Features, where there are some, say it anew.
    pub(crate) fn name_events(
        mut reader: ChunkReader<'_>,
        events: Vec<EventDescription>,
    ) -> Result<Vec<EventDescription>, Error> {
        let mut header = Self { events, ..Self::default() };
        let mut chunk = Chunk::new();
        if reader.next_into(&mut chunk)? {
            for raw in chunk.records().take_while(|raw| raw.record_type.is_user()) {
                if raw.record_type == RecordType::EVENT_UPDATE {
                    // One that is too short names nothing.
                    let _ = header.add(&raw);
                }
            }
        }
        header.apply_names();
        Ok(header.events)
    }

    fn apply_names(&mut self) {
        let mut names: HashMap<u64, String> = std::mem::take(&mut self.names).into_iter().collect();
        if names.is_empty() {
            return;
        }
        for event in &mut self.events {
            if let Some(name) = event.ids.iter().find_map(|id| names.remove(id)) {
                event.name = name;
            }
        }
    }

    fn add(&mut self, raw: &RawRecord<'_>) -> Result<(), Error> {
        match raw.record_type {
            RecordType::HEADER_ATTR => {
                let attr = EventAttr::parse_event(self.events.len(), raw.body)?;
                let (ids, _) = raw.body.get(attr.size as usize..).unwrap_or_default().as_chunks();
                let ids = ids.iter().map(|id| u64::from_le_bytes(*id)).collect();
                self.events.push(EventDescription { attr, name: String::new(), ids });
            }
            RecordType::EVENT_UPDATE => {
                const NAME: u64 = 2;
                let mut fields = Fields::new("EVENT_UPDATE", raw.offset, raw.body);
                let (kind, id) = (fields.u64()?, fields.u64()?);
                if kind == NAME {
                    self.names.push((id, String::from_utf8_lossy(fields.c_string()).into_owned()));
                }
            }
            RecordType::HEADER_FEATURE => {
                self.end = StreamEnd::Reached;
                let mut fields = Fields::new("HEADER_FEATURE", raw.offset, raw.body);
                let bit = fields.u64()?;
                match u8::try_from(bit).map(|bit| FeatureBit(bit.into())) {
                    // An empty one that is not known marks the end of the features.
                    Ok(bit) if bit.name().is_none() && fields.rest().is_empty() => {}
                    Ok(bit) => self.sections.add(bit, raw.offset, fields.rest())?,
                    Err(_) if fields.rest().is_empty() => {}
                    Err(_) => return Err(Error::UnknownFeature { offset: raw.offset, bit }),
                }
            }
            // What perf would not pass over as a feature. Those of before Linux 3.10 end with a NUL: the name of an event.
            RecordType::HEADER_EVENT_TYPE => {
                let mut fields = Fields::new("HEADER_EVENT_TYPE", raw.offset, raw.body);
                let bit = u8::try_from(fields.u64()?).map(|bit| FeatureBit(bit.into()));
                if let Ok(bit) = bit
                    && bit.name().is_none()
                    && fields.rest().last().is_some_and(|&last| last != 0)
                {
                    self.end = match self.end {
                        StreamEnd::Untold => StreamEnd::Missing,
                        StreamEnd::Missing | StreamEnd::Reached => StreamEnd::Reached,
                    };
                    self.sections.add(bit, raw.offset, fields.rest().trim_ascii_end())?;
                }
            }
            RecordType::HEADER_BUILD_ID => self.sections.features.build_ids.push(build_id(raw)?),
            _ => {}
        }
        Ok(())
    }
}
