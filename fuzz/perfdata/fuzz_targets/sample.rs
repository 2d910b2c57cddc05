#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    perfdata_fuzz::read::read_sample_of_any_event(bytes);
});
