//! Writes recordings.

use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};

use crate::chunk::{MAX_RECORD, RecordHeader};
use crate::event_lookup::EventLookup;
use crate::feature_write::feature_sections;
use crate::header::{FILE_HEADER_SIZE, FileHeader, MAGIC, PIPE_HEADER_SIZE, Section};
use crate::record::{MISC_13, MISC_14};
use crate::record_walk::{Step, step};
use crate::{
    Auxtrace, Comm, Error, EventDescription, FeatureBit, Features, Ksymbol, Lost, LostSamples, MappedFile, Mmap,
    RecordType, SampleFields, SampleId, Task, TextPoke,
};

/// Writes a `perf.data` file, or a stream as `perf record -o -` does, that `perf` 6.1 and the tools built on it read.
///
/// Records go straight to `out`, so give it a [`std::io::BufWriter`]. A file whose writer never came to [`Self::finish`] can
/// be read up to its last whole record.
///
/// Records other than samples end with the [`SampleId`] that the first event's sample format asks for, if it sets
/// [`crate::AttrFlags::SAMPLE_ID_ALL`].
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    container: Container<W>,
    events: Vec<EventDescription>,
    attr_size: usize,
    written: u64,
    /// The record being put together; kept for its allocation.
    record: Vec<u8>,
}

/// What is around the records.
enum Container<W> {
    /// A header, which is completed in the end.
    File { header: FileHeader, seek: fn(&mut W, SeekFrom) -> io::Result<u64> },
    /// Nothing that could be completed in the end: pipe mode, for which events and features are records.
    Stream,
}

impl<W> fmt::Debug for Container<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { header, .. } => f.debug_struct("File").field("header", header).finish_non_exhaustive(),
            Self::Stream => f.write_str("Stream"),
        }
    }
}

/// Entry of the attr section: the attr and the section of its ids.
const ID_SECTION_SIZE: usize = 16;

impl<W: Write + Seek> Writer<W> {
    /// Writes the header and the events. All attrs are written 128 bytes long, or longer if one of them sets a later field.
    ///
    /// # Errors
    /// When there is no event, records could not be told apart by their sample ids, or `out` fails.
    pub fn create(mut out: W, events: &[EventDescription]) -> Result<Self, Error> {
        EventLookup::new(events, &mut Vec::new())?;
        let attr_size = events.iter().map(|event| event.attr.needed_size()).max().unwrap_or(0);
        let mut ids = Vec::new();
        let mut attrs = Vec::new();
        for event in events {
            let section = Section { offset: FILE_HEADER_SIZE + ids.len() as u64, size: event.ids.len() as u64 * 8 };
            ids.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
            attrs.extend(event.attr.to_sized_bytes(attr_size));
            attrs.extend(section.offset.to_le_bytes());
            attrs.extend(section.size.to_le_bytes());
        }
        let attrs_offset = FILE_HEADER_SIZE + ids.len() as u64;
        let header = FileHeader {
            attr_size: (attr_size + ID_SECTION_SIZE) as u64,
            attrs: Section { offset: attrs_offset, size: attrs.len() as u64 },
            data: Section { offset: attrs_offset + attrs.len() as u64, size: 0 },
            features: [0; 4],
        };
        for bytes in [header.to_bytes(), ids, attrs] {
            out.write_all(&bytes).map_err(Error::io(WRITING))?;
        }
        let container = Container::File { header, seek: W::seek };
        Ok(Self { out, container, events: events.to_vec(), attr_size, written: 0, record: Vec::new() })
    }
}

impl<W: Write> Writer<W> {
    /// Begins a stream, as pipe mode has it, for what cannot be gone back in: the events are its first records, the features its last.
    ///
    /// # Errors
    /// When there is no event, records could not be told apart by their sample ids, an event has too many ids for a record (some
    /// 8,000), or `out` fails.
    pub fn create_stream(mut out: W, events: &[EventDescription]) -> Result<Self, Error> {
        EventLookup::new(events, &mut Vec::new())?;
        let attr_size = events.iter().map(|event| event.attr.needed_size()).max().unwrap_or(0);
        let header = [MAGIC, PIPE_HEADER_SIZE.to_le_bytes()].concat();
        out.write_all(&header).map_err(Error::io(WRITING))?;
        let container = Container::Stream;
        let mut writer = Self { out, container, events: events.to_vec(), attr_size, written: 0, record: Vec::new() };
        for event in events {
            writer.begin();
            writer.record.extend(event.attr.to_sized_bytes(attr_size));
            writer.u64s(&event.ids);
            writer.end_user(RecordType::HEADER_ATTR, 0)?;
            if let Some(&id) = event.ids.first() {
                writer.begin();
                writer.u64s(&[EVENT_NAME, id]);
                writer.c_string(event.name.as_bytes());
                writer.end_user(RecordType::EVENT_UPDATE, 0)?;
            }
        }
        Ok(writer)
    }

    /// Writes records alone, for others to put them into a recording ([`Self::write_raw`]).
    ///
    /// # Errors
    /// When there is no event, or records could not be told apart by their sample ids.
    pub fn of_records(out: W, events: &[EventDescription]) -> Result<Self, Error> {
        EventLookup::new(events, &mut Vec::new())?;
        let attr_size = events.iter().map(|event| event.attr.needed_size()).max().unwrap_or(0);
        let container = Container::Stream;
        Ok(Self { out, container, events: events.to_vec(), attr_size, written: 0, record: Vec::new() })
    }

    /// What it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The events it was created with.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// Bytes of records written so far.
    pub fn data_size(&self) -> u64 {
        self.written
    }

    /// Hands what has been written to the file, where it is safe if this process dies.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(Error::io(WRITING))
    }

    /// Writes whole records as the kernel put them into the ring.
    ///
    /// # Errors
    /// When `records` is not a sequence of whole records, or `out` fails.
    pub fn write_raw(&mut self, records: &[u8]) -> Result<(), Error> {
        let mut rest = records;
        while !rest.is_empty() {
            let offset = (records.len() - rest.len()) as u64;
            match step(rest, offset) {
                Step::Whole(record) => rest = record.rest,
                Step::Cut(error) | Step::Broken(error) => {
                    return Err(Error::CannotWrite { what: "raw records", reason: error.to_string() });
                }
            }
        }
        self.put(records)
    }

    /// Writes a mapping as MMAP2.
    ///
    /// # Errors
    /// When the record would be too long (65,535 bytes), or `out` fails.
    pub fn write_mmap2(&mut self, mmap: &Mmap<'_>) -> Result<(), Error> {
        let build_id = matches!(mmap.file, MappedFile::BuildId(_));
        let misc = mmap.cpu_mode.to_misc() | bit(mmap.data, MISC_13) | bit(build_id, MISC_14);
        self.begin();
        self.u32s(&[mmap.pid, mmap.tid]);
        self.u64s(&[mmap.start.0, mmap.len, mmap.pgoff]);
        match mmap.file {
            MappedFile::Unknown => self.u64s(&[0, 0, 0]),
            MappedFile::Inode { maj, min, ino, generation } => {
                self.u32s(&[maj, min]);
                self.u64s(&[ino, generation]);
            }
            MappedFile::BuildId(id) => {
                let end = self.record.len() + 24;
                self.record.extend([id.as_bytes().len() as u8, 0, 0, 0]);
                self.record.extend(id.as_bytes());
                self.record.resize(end, 0);
            }
        }
        self.u32s(&[mmap.prot, mmap.flags]);
        self.c_string(mmap.path);
        self.end(RecordType::MMAP2, misc, &mmap.sample_id)
    }

    /// Writes a thread's name.
    ///
    /// # Errors
    /// When the record would be too long (65,535 bytes), or `out` fails.
    pub fn write_comm(&mut self, comm: &Comm<'_>) -> Result<(), Error> {
        self.begin();
        self.u32s(&[comm.pid, comm.tid]);
        self.c_string(comm.name);
        self.end(RecordType::COMM, bit(comm.exec, MISC_13), &comm.sample_id)
    }

    /// Writes a thread's start.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_fork(&mut self, task: &Task) -> Result<(), Error> {
        self.write_task(RecordType::FORK, 0, task)
    }

    /// Writes that a thread was there before the recording (`PERF_RECORD_MISC_FORK_EXEC`): it has nothing of its parent, and what it has is
    /// written, too.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_fork_of_running(&mut self, task: &Task) -> Result<(), Error> {
        self.write_task(RecordType::FORK, MISC_13, task)
    }

    /// Writes a thread's end.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_exit(&mut self, task: &Task) -> Result<(), Error> {
        self.write_task(RecordType::EXIT, 0, task)
    }

    /// Writes that a symbol of the kernel came or went.
    ///
    /// # Errors
    /// When the name is too long, or `out` fails.
    pub fn write_ksymbol(&mut self, symbol: &Ksymbol<'_>) -> Result<(), Error> {
        self.begin();
        self.u64s(&[symbol.addr.0]);
        self.u32s(&[symbol.len, u32::from(symbol.ksym_type) | u32::from(symbol.unregister) << 16]);
        self.c_string(symbol.name);
        self.end(RecordType::KSYMBOL, 0, &symbol.sample_id)
    }

    /// Writes that the kernel changed its code.
    ///
    /// # Errors
    /// When there are too many bytes, or `out` fails.
    pub fn write_text_poke(&mut self, poke: &TextPoke<'_>) -> Result<(), Error> {
        let lengths = [poke.old, poke.new].map(|bytes| u16::try_from(bytes.len()));
        let [Ok(old), Ok(new)] = lengths else {
            let reason = format!("{} bytes became {}: each is 65,535 at most", poke.old.len(), poke.new.len());
            return Err(Error::CannotWrite { what: "a change of code", reason });
        };
        self.begin();
        self.u64s(&[poke.addr.0]);
        self.u32s(&[u32::from(old) | u32::from(new) << 16]);
        self.record.extend(poke.old.iter().chain(poke.new));
        self.record.resize(self.record.len().next_multiple_of(8), 0);
        self.end(RecordType::TEXT_POKE, 0, &poke.sample_id)
    }

    /// Writes how many records were lost.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_lost(&mut self, lost: &Lost) -> Result<(), Error> {
        self.begin();
        self.u64s(&[lost.id, lost.lost]);
        self.end(RecordType::LOST, 0, &lost.sample_id)
    }

    /// Writes how many samples were lost.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_lost_samples(&mut self, lost: &LostSamples) -> Result<(), Error> {
        self.begin();
        self.u64s(&[lost.lost]);
        self.end(RecordType::LOST_SAMPLES, lost.misc, &lost.sample_id)
    }

    /// Writes that all rings were emptied once: later records are not older than those before the last such record.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_finished_round(&mut self) -> Result<(), Error> {
        self.begin();
        self.end_user(RecordType::FINISHED_ROUND, 0)
    }

    /// Writes the names of the events as records, for readers of a file whose features were never written.
    ///
    /// # Errors
    /// When a name is too long, or `out` fails.
    pub fn write_event_names(&mut self) -> Result<(), Error> {
        let names: Vec<(u64, Vec<u8>)> = self
            .events
            .iter()
            .filter_map(|event| Some((*event.ids.first()?, event.name.clone().into_bytes())))
            .collect();
        for (id, name) in names {
            self.begin();
            self.u64s(&[EVENT_NAME, id]);
            self.c_string(&name);
            self.end_user(RecordType::EVENT_UPDATE, 0)?;
        }
        Ok(())
    }

    /// Writes a record of a tool's own, which carries no [`SampleId`]. `body` is what follows the header.
    ///
    /// # Errors
    /// When the type is one of the kernel's, the length of `body` no multiple of 8 (where `perf` stops), the record would be too long
    /// (65,535 bytes), or `out` fails.
    pub fn write_user_record(&mut self, record_type: RecordType, body: &[u8]) -> Result<(), Error> {
        if !record_type.is_user() || !body.len().is_multiple_of(8) {
            let reason =
                format!("{record_type} with {} bytes: expected a type from 64 on, and a multiple of 8", body.len());
            return Err(Error::CannotWrite { what: "a record of a tool", reason });
        }
        self.begin();
        self.record.extend(body);
        self.end_user(record_type, 0)
    }

    /// Writes an AUXTRACE record, with the data that follows it.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_aux_data(&mut self, auxtrace: &Auxtrace, data: &[u8]) -> Result<(), Error> {
        self.begin();
        self.u64s(&[data.len() as u64, auxtrace.offset, auxtrace.reference]);
        self.u32s(&[auxtrace.idx, auxtrace.tid, auxtrace.cpu, 0]);
        self.end_user(RecordType::AUXTRACE, 0)?;
        self.put(data)
    }

    /// Writes a sample record with the fields that its event records.
    ///
    /// # Errors
    /// When its event does not exist or records what only the kernel can fill, when the record would be too long (65,535
    /// bytes: about 2,700 branches), or `out` fails.
    pub fn write_sample(&mut self, sample: &SampleFields<'_>) -> Result<(), Error> {
        self.begin();
        let Some(event) = self.events.get(sample.event) else {
            let reason = format!("it is of event {}, there are {}", sample.event, self.events.len());
            return Err(Error::CannotWrite { what: "a sample", reason });
        };
        let default_id = event.ids.first().copied().unwrap_or(0);
        sample.append(&event.attr, default_id, &mut self.record)?;
        self.end_user(RecordType::SAMPLE, sample.misc())
    }

    /// The features that a stream has no room for: each is one record there, of at most 65,512 bytes beside header and number, and the
    /// format has no way to go on in a second one (`perf record -o -` leaves such features out, too). None for a file.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn too_large(&self, features: &Features) -> Result<Vec<FeatureBit>, Error> {
        let sections = match self.container {
            Container::File { .. } => Vec::new(),
            Container::Stream => feature_sections(features, &self.events, self.attr_size)?,
        };
        Ok(sections.iter().filter(|(bit, section)| !fits_in_stream(*bit, section)).map(|(bit, _)| *bit).collect())
    }

    /// Writes the features, and completes the header of a file; returns `out`, flushed. In a stream, those that are
    /// [too large](Self::too_large) are left out.
    ///
    /// # Errors
    /// When a build id or its path is too long, a section of [`Features::other`] has a number above 255 or that of a field that is
    /// set, a section that `perf` does not know is no text and this is a stream, or `out` fails.
    pub fn finish(mut self, features: &Features) -> Result<W, Error> {
        let sections = feature_sections(features, &self.events, self.attr_size)?;
        match std::mem::replace(&mut self.container, Container::Stream) {
            Container::File { header, seek } => self.finish_file(header, seek, &sections)?,
            Container::Stream => self.finish_stream(&sections)?,
        }
        self.out.flush().map_err(Error::io(WRITING))?;
        Ok(self.out)
    }

    fn finish_file(
        &mut self,
        mut header: FileHeader,
        seek: fn(&mut W, SeekFrom) -> io::Result<u64>,
        sections: &[(FeatureBit, Vec<u8>)],
    ) -> Result<(), Error> {
        header.data.size = self.written;
        let table = header.data.offset + self.written;
        let mut offset = table + sections.len() as u64 * ID_SECTION_SIZE as u64;
        let mut bytes = Vec::new();
        for (bit, section) in sections {
            let Some(word) = header.features.get_mut((bit.0 / u64::BITS) as usize) else {
                let reason = format!("its number is {}, the header has room for 0 to 255", bit.0);
                return Err(Error::CannotWrite { what: "a feature section", reason });
            };
            *word |= 1 << (bit.0 % u64::BITS);
            bytes.extend(offset.to_le_bytes());
            bytes.extend((section.len() as u64).to_le_bytes());
            offset += section.len() as u64;
        }
        for (_, section) in sections {
            bytes.extend(section);
        }
        self.out.write_all(&bytes).map_err(Error::io(WRITING))?;
        seek(&mut self.out, SeekFrom::Start(0)).map_err(Error::io(WRITING))?;
        self.out.write_all(&header.to_bytes()).map_err(Error::io(WRITING))?;
        seek(&mut self.out, SeekFrom::End(0)).map_err(Error::io(WRITING))?;
        Ok(())
    }

    /// Build ids are records of their own already. What `perf` does not know as a feature, `perf report` would stop at: it is in a
    /// record that `perf` has had no use for since 3.10, and passes over; spaces fill it up.
    fn finish_stream(&mut self, sections: &[(FeatureBit, Vec<u8>)]) -> Result<(), Error> {
        for (bit, section) in sections {
            if *bit == FeatureBit::BUILD_ID {
                self.write_build_ids(section)?;
                continue;
            }
            if !fits_in_stream(*bit, section) {
                continue;
            }
            let (record_type, filler) = match bit.name() {
                None if section.last().is_none_or(|last| *last == 0 || last.is_ascii_whitespace()) => {
                    let reason = format!(
                        "a stream holds feature {bit} as a text that is not empty and ends with what can be seen"
                    );
                    return Err(Error::CannotWrite { what: "a feature section", reason });
                }
                None => (RecordType::HEADER_EVENT_TYPE, b' '),
                Some(_) => (RecordType::HEADER_FEATURE, 0),
            };
            self.begin();
            self.u64s(&[u64::from(bit.0)]);
            self.record.extend(section);
            self.record.resize(self.record.len().next_multiple_of(8), filler);
            self.end_user(record_type, 0)?;
        }
        Ok(())
    }

    /// In a file, `perf` leaves their type open.
    fn write_build_ids(&mut self, section: &[u8]) -> Result<(), Error> {
        let mut rest = section;
        while let Some(RecordHeader { misc, size, .. }) = RecordHeader::of(rest) {
            let (record, next) = rest.split_at(usize::from(size).clamp(RecordHeader::SIZE, rest.len()));
            self.begin();
            self.record.extend(record.get(RecordHeader::SIZE..).unwrap_or_default());
            self.end_user(RecordType::HEADER_BUILD_ID, misc)?;
            rest = next;
        }
        Ok(())
    }

    fn write_task(&mut self, record_type: RecordType, misc: u16, task: &Task) -> Result<(), Error> {
        self.begin();
        self.u32s(&[task.pid, task.ppid, task.tid, task.ptid]);
        self.u64s(&[task.time]);
        self.end(record_type, misc, &task.sample_id)
    }

    fn begin(&mut self) {
        self.record.clear();
        self.record.resize(RecordHeader::SIZE, 0);
    }

    fn u32s(&mut self, values: &[u32]) {
        self.record.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn u64s(&mut self, values: &[u64]) {
        self.record.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// A string, a NUL and zeros up to a multiple of 8.
    fn c_string(&mut self, string: &[u8]) {
        self.record.extend(string);
        self.record.push(0);
        self.record.resize(self.record.len().next_multiple_of(8), 0);
    }

    /// Completes a record that carries a [`SampleId`].
    fn end(&mut self, record_type: RecordType, misc: u16, sample_id: &SampleId) -> Result<(), Error> {
        if let Some(event) = self.events.first().filter(|event| event.attr.sample_id_all()) {
            sample_id.append(event.attr.sample_format, &mut self.record);
        }
        self.end_user(record_type, misc)
    }

    fn end_user(&mut self, record_type: RecordType, misc: u16) -> Result<(), Error> {
        let len = self.record.len();
        let Ok(size) = u16::try_from(len) else {
            let reason = format!("the {record_type} record would have {len} bytes, at most {MAX_RECORD} fit");
            return Err(Error::CannotWrite { what: "a record", reason });
        };
        RecordHeader { record_type, misc, size }.write_over(&mut self.record);
        let record = std::mem::take(&mut self.record);
        let result = self.put(&record);
        self.record = record;
        result
    }

    fn put(&mut self, records: &[u8]) -> Result<(), Error> {
        self.out.write_all(records).map_err(Error::io(WRITING))?;
        self.written += records.len() as u64;
        Ok(())
    }
}

/// Build ids have a record each; every other section is one record, with the number of its feature and up to 7 bytes of padding.
fn fits_in_stream(bit: FeatureBit, section: &[u8]) -> bool {
    bit == FeatureBit::BUILD_ID || section.len() <= (MAX_RECORD - RecordHeader::SIZE - 8) / 8 * 8
}

/// What an EVENT_UPDATE record tells: the name (`PERF_EVENT_UPDATE__NAME`).
const EVENT_NAME: u64 = 2;

const WRITING: &str = "writing the recording";

fn bit(set: bool, bit: u16) -> u16 {
    if set { bit } else { 0 }
}
