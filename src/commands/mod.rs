//! One file per command.

pub mod blocks;
pub mod doctor;
pub mod mix;
pub mod record;
pub mod truth;
pub mod validate;
