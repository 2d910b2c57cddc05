//! An open recording.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::chunk_reader::ChunkReader;
use crate::event_lookup::EventLookup;
use crate::event_name::event_name;
use crate::feature_read::FeatureSections;
use crate::fields::Fields;
use crate::header::{FileHeader, Header, PIPE_HEADER_SIZE, Section};
use crate::pipe::StreamHeader;
use crate::record_parse::{kernel_record, user_record, what};
use crate::recording_bytes::RecordingBytes;
use crate::sample_id::TRAILER;
use crate::sample_layout::SampleLayout;
use crate::{
    Error, EventAttr, EventDescription, FeatureBit, Features, RawRecord, Record, Sample, SampleFormat, SampleId,
};

/// A `perf.data` recording, open for reading.
#[derive(Debug)]
pub struct Recording {
    source: RecordingBytes,
    data_start: u64,
    data_end: u64,
    events: Vec<EventDescription>,
    layouts: Vec<SampleLayout>,
    lookup: EventLookup,
    /// The trailer of records other than samples, if it is the same for all events.
    trailer: Option<SampleFormat>,
    features: Features,
    notes: Vec<String>,
    was_cut_off: bool,
    directory: Option<PathBuf>,
}

impl Recording {
    /// Opens a recording in a file, or in the directory that `perf record --kcore` makes: the file `data` in it. What is not a regular file is
    /// copied to an unnamed temporary file first.
    ///
    /// # Errors
    /// When it cannot be read, is no recording, or its header or events cannot be understood. Broken feature sections and
    /// broken records are no errors here: see [`Self::notes`] and [`ChunkReader::damage`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.is_dir() {
            return Self::load(RecordingBytes::open(path)?);
        }
        let data = path.join("data");
        if !data.is_file() {
            return Err(Error::Directory);
        }
        // What its header says is written last.
        if path.join("data.0").exists() {
            return Err(Error::SeveralFiles);
        }
        let recording = Self::load(RecordingBytes::open(&data)?)?;
        Ok(Self { directory: Some(path.to_owned()), ..recording })
    }

    /// Takes a recording that is in memory.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::load(RecordingBytes::Bytes(bytes))
    }

    /// Takes a recording from a stream (in pipe mode or not), which is copied to an unnamed temporary file: it is read more
    /// than once.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_stream(stream: impl Read) -> Result<Self, Error> {
        Self::load(RecordingBytes::spool(stream)?)
    }

    /// The events, in the order the recording lists them.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// What the recording says about the machine, the command and itself.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// What was odd about the recording's container but survivable.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether its recorder never came to complete it, because it was killed: what it recorded last is missing, and so are the features.
    /// A file tells it by its header. A stream tells it only if a tool's own section (of a number that `perf` does not know) stands in
    /// front of its records: no feature follows it then.
    pub fn was_cut_off(&self) -> bool {
        self.was_cut_off
    }

    /// Bytes in the data section.
    pub fn data_size(&self) -> u64 {
        self.data_end - self.data_start
    }

    /// The regular file that it is read from, and what the file system said of it before anything was read; `None` for what was copied from a
    /// stream, or is in memory.
    pub fn file(&self) -> Option<(&File, &Metadata)> {
        self.source.file()
    }

    /// The directory that was opened: beside the recording it may have `kcore_dir`, a copy of the kernel that ran. `None` of a file.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Starts reading the records, from the first on. May be called many times.
    pub fn chunks(&self) -> ChunkReader<'_> {
        ChunkReader::new(&self.source, self.data_start, self.data_end)
    }

    /// Bytes of the data that follow an AUXTRACE record: `at` is how far they are from the beginning of the recording. They are not where
    /// records are compressed, which hold none of them.
    ///
    /// # Errors
    /// The recording has not so many there, or they cannot be read.
    pub fn aux_data(&self, at: u64, size: u64) -> Result<Vec<u8>, Error> {
        self.source.section("AUX data", at, size)
    }

    /// Index in [`Self::events`] of the event of a sample, without reading the rest of it.
    ///
    /// # Errors
    /// When it is too short for its event id, or has one that no event has.
    #[inline]
    pub fn event_of_sample(&self, raw: &RawRecord<'_>) -> Result<usize, Error> {
        self.lookup.of_sample(raw.offset, raw.body)
    }

    /// Reads the fields of a sample record, as its event recorded them.
    ///
    /// # Errors
    /// When it is no sample, has an event id that no event has, or is too short for the fields its event records.
    #[inline]
    pub fn sample<'a>(&self, raw: &RawRecord<'a>) -> Result<Sample<'a>, Error> {
        let (offset, found) = (raw.offset, raw.record_type);
        if !raw.is_sample() {
            return Err(Error::RecordKind { offset, found, expected: "PERF_RECORD_SAMPLE" });
        }
        let event = self.lookup.of_sample(offset, raw.body)?;
        self.layouts.get(event).ok_or(Error::NoEvents)?.parse(event, offset, raw.body)
    }

    /// Reads any record but a sample.
    ///
    /// # Errors
    /// When it is a sample, has an event id that no event has, or is too short for its fields.
    pub fn parse<'a>(&self, raw: &RawRecord<'a>) -> Result<Record<'a>, Error> {
        let (offset, found) = (raw.offset, raw.record_type);
        if raw.is_sample() {
            return Err(Error::RecordKind { offset, found, expected: "record other than a sample" });
        }
        if found.is_user() {
            return user_record(raw);
        }
        let what = what(found);
        let (mut own, mut sample_id, mut event) = (raw.body, SampleId::default(), 0);
        if self.attr(0)?.sample_id_all() {
            let lookup = self.lookup.of_trailer(what, offset, raw.body);
            let format = match (self.trailer, lookup) {
                (Some(format), Ok(found)) => {
                    event = found;
                    format
                }
                // All events have the same trailer, so this can be read even without knowing which it is.
                (Some(format), Err(_)) => format,
                (None, Ok(found)) => {
                    event = found;
                    self.attr(found)?.sample_format
                }
                (None, Err(error)) => return Err(error),
            };
            (own, sample_id) = SampleId::split(format, what, offset, raw.body)?;
        }
        kernel_record(raw, own, sample_id, self.attr(event)?.read_format)
    }

    fn attr(&self, event: usize) -> Result<&EventAttr, Error> {
        self.events.get(event).map(|event| &event.attr).ok_or(Error::NoEvents)
    }

    fn load(source: RecordingBytes) -> Result<Self, Error> {
        let mut notes = Vec::new();
        let parts = match Header::read(&source)? {
            Header::File(header) => Parts::of_file(&source, &header, &mut notes)?,
            Header::Pipe => Parts::of_stream(&source, &mut notes)?,
        };
        let Parts { data_start, data_end, mut events, sections, was_cut_off } = parts;
        let FeatureSections { mut features, event_desc } = sections;
        features.event_names = event_desc.iter().map(|event| event.name.clone()).collect();
        for (index, event) in events.iter_mut().enumerate() {
            let described = event_desc.get(index).map(|described| described.name.as_str()).unwrap_or_default();
            if !described.is_empty() {
                described.clone_into(&mut event.name);
            } else if event.name.is_empty() {
                event.name = event_name(&event.attr);
            }
            note_unknown(index, &event.attr, &mut notes);
        }
        let lookup = EventLookup::new(&events, &mut notes)?;
        let layouts = events.iter().map(|event| SampleLayout::new(&event.attr)).collect();
        let trailer = common_trailer(&events);
        // The version of a directory: 0 is a single file (`PERF_DIR_SINGLE_FILE`); of any other, samples are in files of their own.
        if features.other.get(&FeatureBit::DIR_FORMAT).is_some_and(|version| version.iter().any(|&byte| byte != 0)) {
            return Err(Error::SeveralFiles);
        }
        let directory = None;
        Ok(Self {
            source,
            data_start,
            data_end,
            events,
            layouts,
            lookup,
            trailer,
            features,
            notes,
            was_cut_off,
            directory,
        })
    }
}

/// What the container holds, however it is laid out.
struct Parts {
    data_start: u64,
    data_end: u64,
    events: Vec<EventDescription>,
    sections: FeatureSections,
    was_cut_off: bool,
}

impl Parts {
    fn of_file(source: &RecordingBytes, header: &FileHeader, notes: &mut Vec<String>) -> Result<Self, Error> {
        let events = read_events(source, header)?;
        let Section { offset: data_start, size } = header.data;
        let mut sections = FeatureSections::default();
        if data_start > source.len() {
            return Err(Error::Short { what: "data section", offset: data_start, needs: size, left: 0 });
        }
        let left = source.len() - data_start;
        let data_end = if size == 0 {
            if left > 0 {
                notes.push(format!(
                    "the header says there are 0 bytes of data, as after a recorder that was killed or could not write on: \
                     reading the {left} bytes there are"
                ));
            }
            source.len()
        } else if size > left {
            notes
                .push(format!("the header says there are {size} bytes of data, the file has {left}: it was cut short"));
            source.len()
        } else {
            read_features(source, header, data_start + size, &mut sections, notes);
            data_start + size
        };
        let front = ChunkReader::new(source, data_start, data_end).without_inflating();
        let events = StreamHeader::name_events(front, events)?;
        Ok(Self { data_start, data_end, events, sections, was_cut_off: size == 0 })
    }

    fn of_stream(source: &RecordingBytes, notes: &mut Vec<String>) -> Result<Self, Error> {
        let (data_start, data_end) = (PIPE_HEADER_SIZE, source.len());
        let reader = ChunkReader::new(source, data_start, data_end).without_inflating();
        let header = StreamHeader::read(reader, notes)?;
        let was_cut_off = header.was_cut_off();
        let StreamHeader { events, sections, .. } = header;
        Ok(Self { data_start, data_end, events, sections, was_cut_off })
    }
}

/// Reads the array of attrs, each followed by the section of its ids.
fn read_events(source: &RecordingBytes, header: &FileHeader) -> Result<Vec<EventDescription>, Error> {
    const SECTION_SIZE: u64 = 16;
    let entry_size = header.attr_size;
    let room = entry_size.saturating_sub(SECTION_SIZE);
    if room < 64 {
        return Err(Error::AttrSize { index: 0, size: room, room });
    }
    let bytes = source.section("attr section", header.attrs.offset, header.attrs.size)?;
    let count = bytes.len() as u64 / entry_size;
    let mut fields = Fields::new("attr section", header.attrs.offset, &bytes);
    let mut events = Vec::new();
    // Sections of ids do not overlap in a sound file, so that together they are no longer than it.
    let mut ids_left = source.len();
    for index in 0..count as usize {
        let attr = EventAttr::parse_entry(&mut fields.clone(), index, room)?;
        let _attr = fields.items(1, room, "event")?;
        let ids = Section::parse(&mut fields)?;
        if ids.size > ids_left {
            return Err(Error::Short { what: "ids section", offset: ids.offset, needs: ids.size, left: ids_left });
        }
        ids_left -= ids.size;
        let id_bytes = source.section("ids section", ids.offset, ids.size)?;
        let ids = id_bytes.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
        events.push(EventDescription { attr, name: String::new(), ids });
    }
    Ok(events)
}

/// Reads the table of feature sections, which follows the data, and the sections. What cannot be read is noted.
fn read_features(
    source: &RecordingBytes,
    header: &FileHeader,
    table: u64,
    sections: &mut FeatureSections,
    notes: &mut Vec<String>,
) {
    let in_word = |(&word, first): (&u64, u32)| {
        (0..u64::BITS).filter(move |bit| word >> bit & 1 != 0).map(move |bit| FeatureBit(first + bit))
    };
    let bits: Vec<FeatureBit> = header.features.iter().zip((0..).step_by(64)).flat_map(in_word).collect();
    let table_bytes = match source.section("feature table", table, bits.len() as u64 * 16) {
        Ok(bytes) => bytes,
        Err(error) => return notes.push(error.to_string()),
    };
    let mut fields = Fields::new("feature table", table, &table_bytes);
    let mut bytes_left = source.len();
    for bit in bits {
        let Ok(section) = Section::parse(&mut fields) else { return };
        let result = if section.size > bytes_left {
            let what = "feature section";
            Err(Error::Short { what, offset: section.offset, needs: section.size, left: bytes_left })
        } else {
            bytes_left -= section.size;
            let bytes = source.section("feature section", section.offset, section.size);
            bytes.and_then(|bytes| sections.add(bit, section.offset, &bytes))
        };
        if let Err(error) = result {
            notes.push(format!("feature {bit}: {error}"));
        }
    }
}

fn note_unknown(index: usize, attr: &EventAttr, notes: &mut Vec<String>) {
    let unknown = attr.sample_format.unknown();
    if !unknown.is_empty() {
        notes.push(format!("event {index} records sample fields that are not known to this version: {unknown}"));
    }
    let unknown = attr.branch_sample_type.unknown();
    if attr.has_branch_stack() && !unknown.is_empty() {
        notes.push(format!("event {index} records branch details that are not known to this version: {unknown}"));
    }
}

fn common_trailer(events: &[EventDescription]) -> Option<SampleFormat> {
    let trailer = |event: &EventDescription| SampleFormat(event.attr.sample_format.0 & TRAILER.0);
    let first = events.first().map(trailer)?;
    events.iter().all(|event| trailer(event) == first).then_some(first)
}
