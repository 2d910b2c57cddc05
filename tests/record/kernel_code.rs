//! The code of the running kernel, kept when a recording ends. This needs root, and a kernel that shows its memory.

use std::process::Command;

use serde_json::Value;

use crate::place::Place;
use crate::{errors, hbbp};

/// Whether `hbbp doctor` says that the kernel's code can be read, from `/proc/kcore` or by BPF.
fn is_shown() -> bool {
    let output = Command::new(hbbp()).args(["doctor", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernel = &report["kernel"];
    kernel["kernel_text"].as_bool().unwrap() && kernel["kernel_symbols"].as_bool().unwrap()
}

#[test]
fn the_kernel_has_instructions() {
    let Some(place) = Place::to_record() else { return };
    if !is_shown() {
        return testing::skip!(Privileges, "the kernel's code cannot be read");
    }
    // Most of it is in the kernel, which makes zeros and throws them away.
    let zeros = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=300000", "status=none"];
    let output = place.run(&[&["--tracer", "none", "--"][..], &zeros].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let said = place.contents().metadata["degradations"].to_string();
    assert!(!said.contains("kernel code is not"), "{said}");

    let mut mix = Command::new(hbbp());
    mix.args(["mix", "--rows", "mnemonic", "--filter", "module=[kernel.kallsyms]", "--format", "csv", "-i"]);
    let output = mix.arg(place.recording()).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    let mnemonics: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(mnemonics.len() > 5 && !mnemonics.contains(&"[unreadable]"), "{csv}");
}
