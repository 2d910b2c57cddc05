//! Profiles for compilers: counts that are known by hand, real branch stacks beside AutoFDO's own tools, and what compilers make of
//! profiles of programs that were recorded.

mod compilers;
mod gcov;
#[path = "../support/place.rs"]
mod place;
mod real;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata::Features;
use serde_json::Value;
use support::{has, run, stdout};
use synthetic::{Recorder, assemble};
use tempfile::TempDir;

/// A loop in `f` (which starts on line 10) that calls `h` (line 20) or runs `g` (line 4), which was inlined.
const PROGRAM: &str = r#"
.file 1 "program.c"
.globl _start
.type _start, @function
_start:
    .loc 1 12
    nop
    jne 1f
    .loc 1 13 0 discriminator 2     # LLVM: the second block
    call h
    .loc 1 13 0
    nop
    jmp 2f
1:  .loc 1 5
.Linlined:
    nop
2:  .loc 1 15
    jmp _start
.size _start, .-_start
.type h, @function
h:
    .loc 1 21
    ret
.size h, .-h
.Lend:
.section .note.GNU-stack,"",@progbits

.section .debug_line,"",@progbits
.Llines:
.section .debug_abbrev,"",@progbits
.Labbreviations:
    .byte 1, 0x11, 1,  0x25, 8, 0x13, 0xb, 0x11, 1, 0x12, 7, 0x10, 0x17,  0, 0   # unit: producer, language, code, lines
    .byte 2, 0x2e, 0,  3, 8, 0x3b, 0xb, 0x20, 0xb,  0, 0                         # inline function: name, line
    .byte 3, 0x2e, 1,  3, 8, 0x3b, 0xb, 0x11, 1, 0x12, 7,  0, 0                  # function: name, line, code
    .byte 4, 0x1d, 0,  0x31, 0x13, 0x11, 1, 0x12, 7, 0x59, 0xb,  0, 0            # inlined: which, code, line of the call
    .byte 0
.section .debug_info,"",@progbits
.Lunit:
    .long .Lunit_end - .Lversion
.Lversion:
    .value 4
    .long .Labbreviations
    .byte 8
    .byte 1
    .asciz "clang version 19"
    .byte 0xc
    .quad _start, .Lend - _start
    .long .Llines
.Lg:
    .byte 2
    .asciz "g"
    .byte 4, 1
    .byte 3
    .asciz "f"
    .byte 10
    .quad _start, h - _start
    .byte 4
    .long .Lg - .Lunit
    .quad .Linlined, 1
    .byte 14
    .byte 0
    .byte 3
    .asciz "h"
    .byte 20
    .quad h, 1
    .byte 0
    .byte 0
.Lunit_end:
"#;

/// Once with the call and once with what was inlined.
const AROUND: [(u64, u64); 7] = [
    (0x40_100c, 0x40_1000),
    (0x40_1003, 0x40_100e),
    (0x40_100e, 0x40_1008),
    (0x40_1009, 0x40_100c),
    (0x40_100c, 0x40_1000),
    (0x40_1001, 0x40_100b),
    (0x40_100c, 0x40_1000),
];

/// Of the loop the sums are bytes: 3 x 200 on line 12, 5 + 3 x 100 on line 13, 2 x 200 on line 15, 1 x 100 inlined.
const TEXT: &str = "\
f:1900:200
 2: 200
 3: 100
 3.1: 100 h:100
 5: 200
 4: g:100
  1: 100
h:100:100
 1: 100
";

/// The program, and a recording in which it went around 200 times.
fn recorded() -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = assemble(folder.path(), "program", PROGRAM, &[])?;
    let mut recorder = Recorder::new(&binary);
    // Six streams of a stack weigh 100 together.
    (0..6).for_each(|_| recorder.stack(&AROUND));
    let recording = folder.path().join("hbbp.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    Some((folder, recording))
}

fn export(format: &[&str], recording: &Path) -> Vec<u8> {
    let output = run(&[&["export", "-i", recording.to_str().unwrap(), "--format"], format].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn counts_by_function_and_position() {
    let Some((_folder, recording)) = recorded() else { return };
    assert_eq!(String::from_utf8(export(&["llvm-text"], &recording)).unwrap(), TEXT);
    let threads = String::from_utf8(export(&["llvm-text", "--threads", "1"], &recording)).unwrap();
    assert_eq!(threads, TEXT);
}

/// The same code as a kernel that was moved when it started, beside a program.
#[test]
fn a_kernel_has_the_profile_of_a_program_of_the_same_code() {
    let (linked, text) = (0xffff_ffff_8100_0000_u64, 0xffff_ffff_9f00_0000_u64);
    let Some((folder, _)) = recorded() else { return };
    let source = PROGRAM.replace("_start:\n", ".globl _text\n_text:\n_start:\n");
    let vmlinux = assemble(folder.path(), "vmlinux", &source, &[&format!("-Wl,-Ttext={linked:#x}")]).unwrap();
    let mut recorder = Recorder::new(&folder.path().join("program"));
    recorder.map(&Recorder::kernel_mapping(text, b"[kernel.kallsyms]_text"));
    (0..3).for_each(|_| recorder.stack(&AROUND));
    let moved = AROUND.map(|(from, to)| (from - 0x40_1000 + text, to - 0x40_1000 + text));
    (0..6).for_each(|_| recorder.kernel_stack(&moved));
    let recording = folder.path().join("kernel.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let given = format!("[kernel.kallsyms]={}", vmlinux.display());
    assert_eq!(String::from_utf8(export(&["llvm-text", "--binary", &given], &recording)).unwrap(), TEXT);
    // That of the program, which ran half as often.
    let of_program = String::from_utf8(export(&["llvm-text"], &recording)).unwrap();
    assert!(of_program.starts_with("f:950:100\n"), "{of_program}");
}

/// LLVM keeps 32 bits of how often a call runs: 4,500,000,000 times would be 205,032,704 to it. So all are divided; GCC gets
/// them as they are.
#[test]
fn counts_of_llvm_fit_into_32_bits() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "program", PROGRAM, &[]) else { return };
    let lines = [
        (0x40_1000, 6_000_000_000_u64),
        (0x40_1001, 6_000_000_000),
        (0x40_1003, 4_500_000_000),
        (0x40_1008, 4_500_000_000),
        (0x40_1009, 4_500_000_000),
        (0x40_100b, 1_500_000_000),
        (0x40_100c, 6_000_000_000),
        (0x40_100e, 4_500_000_000),
    ];
    let counted: String = lines.iter().map(|(address, count)| format!("0x{address:x} {count}\n")).collect();
    let head = "version: 1\ncreator: callgrind-3.19.0\npositions: instr\nevents: Ir\n\n";
    let truth = folder.path().join("callgrind.out");
    std::fs::write(
        &truth,
        format!("{head}ob={}\nfl=program.c\nfn=_start\n{counted}totals: 37500000000\n", binary.display()),
    )
    .unwrap();
    let export = |format: &str| run(&["export", "--format", format, "--truth", truth.to_str().unwrap()]);
    let expected = "\
f:24159191040:2147483648
 2: 2147483648
 3: 1610612736
 3.1: 1610612736 h:1610612736
 5: 2147483648
 4: g:536870912
  1: 536870912
h:1610612736:1610612736
 1: 1610612736
";
    let output = export("llvm-text");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{said}");
    assert!(said.contains("all counts are divided by 2.8"), "{said}");
    assert!(gcov::print(&export("gcov").stdout).contains("4500000000"));
}

/// Without branches, a position has the mean of its instructions. A sample stands for 1,000 executions: on line 12 one instruction was
/// sampled twice and the other one three times.
#[test]
fn samples_alone_are_averaged_over_the_instructions_of_a_position() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "program", PROGRAM, &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    for (address, times) in [(0x40_1000, 2), (0x40_1001, 3), (0x40_100b, 1)] {
        (0..times).for_each(|_| recorder.sample(address));
    }
    let recording = folder.path().join("hbbp.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let expected = "\
f:9000:2500
 2: 2500
 3: 0
 3.1: 0
 5: 0
 4: g:1000
  1: 1000
";
    assert_eq!(String::from_utf8(export(&["llvm-text"], &recording)).unwrap(), expected);
}

#[test]
fn the_binary_profile_is_the_same() {
    let Some((folder, recording)) = recorded() else { return };
    let binary = export(&["llvm-extbin"], &recording);
    let magic = [0x84, 0xe4, 0xd0, 0xb1, 0xf4, 0xc9, 0x94, 0xa8, 0x53, 103];
    assert_eq!(binary[..10], magic);
    if !has("llvm-profdata-19") {
        return;
    }
    let file = folder.path().join("profile");
    std::fs::write(&file, binary).unwrap();
    assert_eq!(merged(&file), TEXT);
}

/// A profile as LLVM reads it and writes it again as text.
fn merged(file: &Path) -> String {
    let output = Command::new("llvm-profdata-19")
        .args(["merge", "--sample", "--text", "-o", "-"])
        .arg(file)
        .output()
        .expect("it was found");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gcc_gets_the_same_counts() {
    let Some((_folder, recording)) = recorded() else { return };
    for version in ["1", "2", "3"] {
        let bytes = export(&["gcov", "--gcov-version", version], &recording);
        // GCC adds counts up to sums itself. It has no sums of what was inlined either.
        let expected = "\
f calls 200
 2: 200
 3: 100
 3.1: 100 h:100
 5: 200
 4: g
  1: 100
h calls 100
 1: 100
";
        assert_eq!(gcov::print(&bytes), expected, "version {version}");
    }
    let second = export(&["gcov"], &recording);
    assert_eq!(second, export(&["gcov", "--gcov-version", "2"], &recording));
}

/// Of 11 instructions of both ways around, 4 are on line 12, 3 on line 13, 2 on line 15, 1 was inlined and 1 is in `h`; of the 4 of the second way
/// alone 2, 0, 1, 1 and 0.
#[test]
fn lines_are_compared_from_the_start_of_their_function() {
    const INLINED: [(u64, u64); 3] = [AROUND[0], (0x40_1001, 0x40_100b), AROUND[0]];
    let Some((folder, before)) = recorded() else { return };
    let mut recorder = Recorder::new(&folder.path().join("program"));
    recorder.stack(&INLINED);
    let after = folder.path().join("after.data");
    std::fs::write(&after, recorder.finish(&Features::default())).unwrap();
    let [before, after] = [&before, &after].map(|path| path.to_str().unwrap());
    let document: Value = serde_json::from_str(&stdout(&["diff", before, after, "--format", "json"])).unwrap();
    let near = |value: &Value, expected: f64| assert!((value.as_f64().unwrap() - expected).abs() < 1e-6, "{value}");
    near(&document["before"]["with_lines"], 1.0);
    near(&document["overlap"]["lines"], 7.0 / 11.0);
    let lines = document["lines"].as_array().unwrap();
    let shown: Vec<(&str, i64)> =
        lines.iter().map(|line| (line["function"].as_str().unwrap(), line["line"].as_i64().unwrap())).collect();
    assert_eq!(shown, [("f", 3), ("g", 1), ("f", 2), ("h", 1), ("f", 5)]);
    near(&lines[0]["change"], -3.0 / 11.0);
}

/// What is said of a file with the debug information or the symbols stripped off; `edit` makes that file of the program.
fn said_of_stripped(edit: &[&str]) -> Option<String> {
    let (folder, recording) = recorded()?;
    let binary = folder.path().join("program");
    if !has("strip") {
        return None;
    }
    let (command, arguments) = edit.split_first().unwrap();
    assert!(Command::new(command).args(arguments).arg(&binary).status().unwrap().success(), "{edit:?}");
    let profile = folder.path().join("profile");
    let [recording, profile_name] = [&recording, &profile].map(|path| path.to_str().unwrap());
    let output = run(&["export", "-i", recording, "--format", "gcov", "-o", profile_name]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!profile.exists());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("not in the profile: code without debug information"), "{errors}");
    assert!(errors.contains("100.00 % of what ran"), "{errors}");
    assert!(errors.contains("no function of it that ran can be placed in the source"), "{errors}");
    Some(errors)
}

#[test]
fn what_cannot_be_placed_is_said() {
    let Some(errors) = said_of_stripped(&["strip", "-g"]) else { return };
    let expected = "built without debug information or stripped of it: compile it with -g";
    assert_eq!(errors.matches(expected).count(), 2, "{errors}");
    let help = stdout(&["export", "--help"]);
    assert!(help.contains("llvm-extbin") && help.contains("--gcov-version"), "{help}");
}

#[test]
fn a_stripped_file_is_called_so() {
    let Some(errors) = said_of_stripped(&["strip", "-s"]) else { return };
    assert_eq!(
        errors.matches("the file is stripped, of its symbols and of any debug information").count(),
        2,
        "{errors}"
    );
}

/// Rust's standard library has debug information in every program; cargo strips all where a profile says nothing of it.
#[test]
fn a_rust_program_stripped_by_cargo_is_told_how_to_keep_its_debug_information() {
    let folder = tempfile::tempdir().unwrap();
    let comment = folder.path().join("comment");
    std::fs::write(&comment, b"GCC: (Debian 12.2.0) 12.2.0\0rustc version 1.95.0 (59807616e 2026-04-14)\0").unwrap();
    let section = format!(".comment={}", comment.display());
    let Some(errors) = said_of_stripped(&["objcopy", "-g", "--remove-section", ".comment", "--add-section", &section])
    else {
        return;
    };
    assert_eq!(errors.matches("build with CARGO_PROFILE_RELEASE_DEBUG=1").count(), 2, "{errors}");
}
