//! What the fuzz targets do, as plain functions, and the recordings they start from.
//!
//! The crate's own tests run both, so that they keep working without a fuzzer. With one, in this folder:
//! `cargo run --bin write-seeds`, then `cargo +nightly fuzz run --fuzz-dir . read` (or `sample`).
#![forbid(unsafe_code)]

#[path = "../../../perfdata/tests/by_hand/mod.rs"]
pub mod by_hand;
pub mod read;
pub mod seeds;
