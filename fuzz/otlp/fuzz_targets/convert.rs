//! Profiles of OpenTelemetry: no panic, no more than a multiple of their bytes, and recordings that can be read.
//!
//! `cargo +nightly fuzz run --fuzz-dir fuzz/otlp convert`
#![no_main]

use std::io::Cursor;

use otlp::{Files, convert_bytes};
use perfdata::{BuildId, Recording};

struct Nowhere;

impl Files for Nowhere {
    fn offset(&self, _: &str, _: Option<&BuildId>, address: u64) -> Option<u64> {
        address.is_multiple_of(2).then_some(address)
    }

    fn id_of(&self, _: &str, htlhash: &str) -> Option<[u8; 20]> {
        htlhash.is_empty().then_some([1; 20])
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    otlp::begins_like_otlp(bytes);
    if let Ok(recording) = convert_bytes(bytes, &Nowhere, Cursor::new(Vec::new())) {
        Recording::from_bytes(recording.into_inner()).expect("what was written can be read");
    }
});
