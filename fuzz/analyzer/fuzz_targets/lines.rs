//! Sections of debug information: no panic, no long reading, and every promise about the index kept.
//!
//! `cargo +nightly fuzz run --fuzz-dir fuzz/analyzer lines fuzz/analyzer/corpus/lines fuzz/analyzer/seeds/lines -- -max_len=30000 -timeout=5`
#![no_main]

#[path = "../../../analyzer/tests/debug_sections/mod.rs"]
mod debug_sections;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    debug_sections::check_input(input);
});
