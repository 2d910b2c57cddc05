#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// What is read is of others: no place of it is taken for granted.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod attributes;
mod container;
mod convert;
mod error;
mod events;
mod frames;
mod json;
mod made;
pub mod message;
mod modules;
mod notes;
mod owners;
mod processes;
mod tables;

pub use container::{Unpacked, begins_like_otlp, is_otlp};
pub use convert::{convert, convert_apart, convert_unpacked};
pub use error::Error;
pub use events::BY_ADDRESS;
pub use made::Files;
pub use owners::OfOwner;
