//! Pipe mode: the events and features are records of the stream.

use crate::chunk_reader::ChunkReader;
use crate::feature_read::FeatureSections;
use crate::fields::{Fields, until_nul};
use crate::record_parse::build_id;
use crate::{Chunk, Error, EventAttr, EventDescription, FeatureBit, RawRecord, RecordType};

/// What the header records of a stream say.
#[derive(Debug, Default)]
pub(crate) struct StreamHeader {
    pub(crate) events: Vec<EventDescription>,
    pub(crate) sections: FeatureSections,
    /// Names by event id.
    names: Vec<(u64, String)>,
}

impl StreamHeader {
    /// Reads the whole stream for them: an event may be described in its middle.
    pub(crate) fn read(mut reader: ChunkReader<'_>, notes: &mut Vec<String>) -> Result<Self, Error> {
        let mut header = Self::default();
        let mut chunk = Chunk::new();
        while reader.next_into(&mut chunk)? {
            for raw in chunk.records() {
                if let Err(error) = header.add(&raw, notes) {
                    // Without its events the stream cannot be read; anything else can be missed.
                    if raw.record_type == RecordType::HEADER_ATTR {
                        return Err(error);
                    }
                    notes.push(error.to_string());
                }
            }
        }
        for (id, name) in std::mem::take(&mut header.names) {
            if let Some(event) = header.events.iter_mut().find(|event| event.ids.contains(&id)) {
                event.name = name;
            }
        }
        Ok(header)
    }

    fn add(&mut self, raw: &RawRecord<'_>, notes: &mut Vec<String>) -> Result<(), Error> {
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
                let mut fields = Fields::new("HEADER_FEATURE", raw.offset, raw.body);
                let bit = fields.u64()?;
                let known = match u32::try_from(bit) {
                    Ok(bit) => self.sections.add(FeatureBit(bit), raw.offset, fields.rest())?,
                    Err(_) => false,
                };
                if !known && !until_nul(fields.rest()).is_empty() {
                    notes.push(format!("feature {bit} is not known to this version"));
                }
            }
            RecordType::HEADER_BUILD_ID => self.sections.features.build_ids.push(build_id(raw)?),
            _ => {}
        }
        Ok(())
    }
}
