#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]
// What is read is of others: no place of it is taken for granted.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod attr;
mod branch;
mod chunk;
mod chunk_reader;
mod data_section;
mod error;
mod event_lookup;
mod event_name;
mod feature;
mod feature_read;
mod feature_write;
mod fields;
mod flag_set;
mod format;
mod header;
mod inflate;
mod mapping;
mod pipe;
mod read_values;
mod record;
mod record_parse;
mod record_type;
mod record_walk;
mod recording;
mod recording_bytes;
mod sample;
mod sample_id;
mod sample_layout;
mod sample_tail;
mod sample_write;
mod words;
mod writer;

pub use addresses::Avma;
pub use attr::{EventAttr, EventDescription};
pub use branch::{Branch, BranchFlags, BranchKind, BranchStack};
pub use chunk::{CHUNK_SIZE, Chunk, Records};
pub use chunk_reader::ChunkReader;
pub use error::Error;
pub use feature::{BuildIdEntry, Cache, ClockData, Compression, EventGroup, FeatureBit, Features};
pub use format::{AttrFlags, BranchSampleType, ReadFormat, SampleFormat};
pub use mapping::{BuildId, MappedFile, Mmap, is_memory_without_file};
pub use read_values::{ReadValue, ReadValues};
pub use record::{
    Aux, AuxOutputHwId, Auxtrace, AuxtraceInfo, BpfEvent, CallchainDeferred, Cgroup, Comm, ItraceStart, Ksymbol, Lost,
    LostSamples, Namespaces, RawRecord, Read, Record, Switch, Task, TextPoke, Throttle, TimeConv,
};
pub use record_type::{CpuMode, RecordType};
pub use recording::Recording;
pub use sample::{Registers, Sample, UserStack, Weight};
pub use sample_id::SampleId;
pub use sample_write::SampleFields;
pub use words::U64s;
pub use writer::Writer;
