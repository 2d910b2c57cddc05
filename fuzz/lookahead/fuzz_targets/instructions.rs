//! Any instructions on any state: the interpreter against single steps of the CPU.
//!
//! `mkdir -p fuzz/lookahead/corpus/instructions`, then
//! `cargo +nightly fuzz run --fuzz-dir fuzz/lookahead instructions fuzz/lookahead/corpus/instructions fuzz/lookahead/seeds/instructions`
#![no_main]

#[path = "../../../collector/lookahead/tests/support/mod.rs"]
mod support;

use std::cell::RefCell;

use support::fuzz::Bench;

thread_local! {
    // Only the thread that started a process may trace it.
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    BENCH.with_borrow_mut(|bench| {
        bench.input(input);
        assert!(bench.report.divergences.is_empty(), "{}", bench.report.examples.join("\n"));
    });
});
