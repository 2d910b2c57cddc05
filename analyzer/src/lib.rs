//! From recordings to basic-block counts and instruction mixes.
#![forbid(unsafe_code)]

pub mod address;
pub mod code;
