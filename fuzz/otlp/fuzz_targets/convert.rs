//! Profiles of OpenTelemetry: no panic, no more than a multiple of their bytes, and recordings that can be read.
//!
//! `cargo +nightly fuzz run --fuzz-dir fuzz/otlp convert`
#![no_main]

use std::io::Cursor;

use otlp::{Files, Unpacked, convert_apart, convert_unpacked};
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
    let profiles = Unpacked::from(bytes.to_vec());
    let one = convert_unpacked(&profiles, &Nowhere, Cursor::new(Vec::new()));
    if let Ok(recording) = &one {
        Recording::from_bytes(recording.get_ref().clone()).expect("what was written can be read");
    }
    if let Ok(owners) = convert_apart(&profiles, &Nowhere) {
        let recordings = owners.into_iter().filter_map(|of| of.recording.ok());
        let read = recordings.map(|bytes| Recording::from_bytes(bytes).expect("what was written can be read"));
        assert_eq!(read.count() > 0, one.is_ok(), "what counts counts apart, too");
    }
});
