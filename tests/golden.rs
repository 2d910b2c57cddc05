//! What people see, byte by byte. `INSTA_UPDATE=always cargo test --test golden` takes a wanted change over.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use support::Fixture;
use synthetic::{A, AROUND, Burst, C, Recorder, burst_metadata};

/// Of the committed recordings, and of real branch stacks where those are.
fn check(name: &str, command: &[&str]) {
    let burst = Fixture::bursts("objects");
    let simulated = Fixture::simulated("ivy-bridge");
    for fixture in [burst, simulated] {
        insta::assert_snapshot!(format!("{name}_{}", fixture.name), support::stdout_of(command, &fixture));
    }
    if let Some(fixture) = Fixture::westmere() {
        insta::assert_snapshot!(name, support::stdout_of(command, &fixture));
    }
}

#[test]
fn mix_by_mnemonic() {
    check("mix_by_mnemonic", &["mix"]);
}

#[test]
fn mix_as_a_pivot() {
    check("mix_as_a_pivot", &["mix", "-v", "--rows", "isa,category", "--columns", "memory"]);
}

#[test]
fn mix_by_form() {
    check("mix_by_form", &["mix", "--rows", "operands,address-mode", "--columns", "bytes-read", "--top", "12"]);
}

#[test]
fn mix_with_comparisons() {
    let filters = ["--filter", "mnemonic~^(mov|j)", "--filter", "mnemonic!~zx$", "--filter", "length>=3"];
    check("mix_with_comparisons", &[&["mix", "--rows", "mnemonic,length", "--format", "csv"][..], &filters].concat());
}

#[test]
fn mix_by_function_csv() {
    check("mix_by_function_csv", &["mix", "--rows", "module,function", "--format", "csv", "--top", "20"]);
}

#[test]
fn blocks_table() {
    check("blocks_table", &["blocks", "--top", "25"]);
}

/// With their code, and the lines that it comes from.
#[test]
fn blocks_with_code() {
    let objects = ["blocks", "--asm", "--source", "--top", "3", "--symfs", "/nonexistent"];
    insta::assert_snapshot!("blocks_with_code", support::stdout_of(&objects, &Fixture::bursts("objects")));
    let json = ["blocks", "--asm", "--source", "--top", "2", "--symfs", "/nonexistent", "--format", "json"];
    insta::assert_snapshot!("blocks_with_code_json", support::stdout_of(&json, &Fixture::bursts("objects")));
}

#[test]
fn blocks_json() {
    check("blocks_json", &["blocks", "--top", "3", "--format", "json"]);
}

/// Functions of optimized code with lines, loops, inlined functions and padding.
#[test]
fn annotate() {
    // The text of the lines is not that of the library on this machine.
    let sort = ["annotate", "-f", "*__insertion_sort<*", "--source", "--symfs", "/nonexistent"];
    insta::assert_snapshot!("annotate_source", support::stdout_of(&sort, &Fixture::bursts("objects")));
    let simulated = Fixture::simulated("ivy-bridge");
    insta::assert_snapshot!("annotate_table", support::stdout_of(&["annotate", "-f", "get_bit"], &simulated));
    let json = ["annotate", "-f", "put_bit", "--format", "json"];
    insta::assert_snapshot!("annotate_json", support::stdout_of(&json, &simulated));
}

/// Profiles by function and line, and what a linker-level optimizer reads, of a program with lines.
#[test]
fn profiles() {
    for format in ["bolt", "llvm-text", "callgrind"] {
        let profile = support::stdout_of(&["export", "--format", format], &Fixture::bursts("compress"));
        insta::assert_snapshot!(format!("export_{format}"), profile);
    }
}

/// Two bursts around the program of four blocks, and samples of a clock.
fn check_bursts(name: &str, command: &str, unit: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    for instructions in [9_995, 10_005] {
        recorder.burst(&Burst { ip: C, branches: &AROUND, instructions, period: 2_000_000 });
    }
    (0..30).for_each(|_| recorder.sample(A));
    let file = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(&burst_metadata(unit))).unwrap();
    insta::assert_snapshot!(name, support::stdout(&[command, "-i", file.to_str().unwrap()]));
}

#[test]
fn mix_of_bursts() {
    check_bursts("mix_of_bursts", "mix", "nanoseconds");
}

#[test]
fn blocks_of_bursts() {
    check_bursts("blocks_of_bursts", "blocks", "instructions");
}
