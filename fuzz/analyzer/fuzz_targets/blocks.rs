//! An ELF file and what was seen to run of it: no panic, and every promise about functions and blocks kept.
//!
//! `cargo +nightly fuzz run --fuzz-dir fuzz/analyzer blocks fuzz/analyzer/corpus/blocks fuzz/analyzer/seeds/blocks`
#![no_main]

#[path = "../../../analyzer/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::check_input(input));
