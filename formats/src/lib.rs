//! The formats of hbbp's own, each defined once for those who write it and those who read it.
//!
//! | format | where | types |
//! |---|---|---|
//! | `hbbp-recording/1` | in a recording: its metadata | [`metadata`] |
//! | data of a burst | in a recording: raw data of a burst's first sample | [`burst_data`] |
//! | weight of a burst | in a recording: of each of its samples | [`burst_weight`] |
//! | mark of a phase | in a recording: a record | [`phase_mark`] |
//! | control group of a process | in a recording: a record | [`cgroup_mark`] |
//! | code that is in no file | in a recording: records | [`made_code`] |
//! | ids of mapped files | in a recording: records of mappings, and metadata | [`mapped_files`] |
//! | `hbbp-calibration/1` | a file of `hbbp calibrate`, and in metadata | [`calibration`] |
//! | `hbbp-flow/1` | a file of `hbbp merge` | [`flow`] |
//! | `hbbp-archive/1` | the first file of an archive of `hbbp archive` | [`archive`] |
//! | `hbbp-executions/1` | a file of `hbbp record --pmu simulated --truth` | [`executions`] |
//! | state of a file | in what is kept of files | [`file_identity`] |
//!
//! Any bytes give a value or a typed error. What is written reads back the same. Fields that a reader does not know are ignored;
//! metadata is read so that an odd value costs no more than itself.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod archive;
pub mod burst_data;
pub mod burst_weight;
pub mod calibration;
pub mod cgroup_mark;
pub mod executions;
pub mod file_identity;
pub mod flow;
pub mod kernel_entries;
pub mod made_code;
pub mod mapped_files;
mod mark;
pub mod metadata;
pub mod phase_mark;
mod simulation;
mod tolerant;
mod tracer;
