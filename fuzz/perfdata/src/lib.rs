//! What the fuzz targets do, as plain functions, and the recordings they start from.
//!
//! The crate's own tests run both, so that they keep working without a fuzzer.
#![forbid(unsafe_code)]

#[path = "../../../perfdata/tests/by_hand/mod.rs"]
pub mod by_hand;
pub mod read;
pub mod seeds;
