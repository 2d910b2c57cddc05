//! One file per command.

pub mod again;
pub mod annotate;
pub mod archive;
pub mod blocks;
pub mod calibrate;
pub mod control;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod filtering;
pub mod fleet;
pub mod generate;
#[cfg(feature = "training")]
pub mod label;
pub mod merge;
pub mod mix;
pub mod model;
mod nearest;
pub mod paths;
pub mod pgo;
pub mod record;
pub mod report;
pub mod reporting;
pub mod taxonomy;
#[cfg(feature = "training")]
pub mod train;
pub mod truth;
pub mod tui;
pub mod validate;
pub mod vectorization;
