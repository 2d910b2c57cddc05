//! Kinds of programs: where they are loaded, how they call each other, what repeats.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::{Workshop, executions, symbol};

/// Offsets from `main`, and how often what starts there runs.
const MAIN: &str = "
.globl main
.type main, @function
main:
    push %rbx               # 0: 1
    mov $100, %ebx
1:  mov %ebx, %edi          # 6: 100
    call times3@PLT
    call tail@PLT           # 13: 100
    dec %ebx                # 18: 100
    jnz 1b
    xor %eax, %eax          # 22: 1
    pop %rbx
    ret
.size main, .-main
.section .note.GNU-stack,\"\",@progbits
";

const MAIN_COUNTS: [(u64, u64); 5] = [(0, 1), (6, 100), (13, 100), (18, 100), (22, 1)];

/// `tail` jumps through a stub of the library's own.
const LIBRARY: &str = "
.globl times3, tail, other
.type times3, @function
.type tail, @function
.type other, @function
times3:
    lea (%rdi,%rdi,2), %eax     # 0: 100
    ret
tail:
    mov $2, %ecx                # 4: 100
1:  dec %ecx                    # 9: 200
    jnz 1b
    jmp other@PLT               # 13: 100
other:
    ret                         # 18: 100
.size times3, 4
.size tail, 14
.size other, 1
.section .note.GNU-stack,\"\",@progbits
";

const LIBRARY_COUNTS: [(u64, u64); 5] = [(0, 100), (4, 100), (9, 200), (13, 100), (18, 100)];

fn library(workshop: &Workshop) -> std::path::PathBuf {
    workshop.compile("calls.s", LIBRARY, "libcalls.so", &["-shared", "-nostdlib"])
}

fn main_with(workshop: &Workshop, name: &str, arguments: &[&str]) -> std::path::PathBuf {
    let here = format!("-Wl,-rpath,{}", workshop.path("").display());
    let mut all = vec!["-L.", "-lcalls", &here, "-Wl,-z,lazy"];
    all.extend(arguments);
    workshop.compile("main.s", MAIN, name, &all)
}

/// Counts at offsets from an address are these.
fn assert_counts(counts: &BTreeMap<u64, u64>, from: u64, expected: &[(u64, u64)]) {
    let found: Vec<_> = expected.iter().map(|(offset, _)| (*offset, counts.get(&(from + offset)).copied())).collect();
    let expected: Vec<_> = expected.iter().map(|(offset, count)| (*offset, Some(*count))).collect();
    assert_eq!(found, expected);
}

fn check(workshop: &Workshop, program: &Path, main: u64) {
    let document = workshop.truth(&["--", program.to_str().unwrap()]);
    assert_eq!(document["schema"], "hbbp-blocks/1");
    assert_eq!(document["source"], "truth");
    assert_counts(&executions(&document, program), main, &MAIN_COUNTS);
    let library = workshop.path("libcalls.so");
    let start = symbol(&library, "times3");
    assert_counts(&executions(&document, &library), start, &LIBRARY_COUNTS);
    // Stubs of both: `jmp *slot`, and behind it the two instructions that bind.
    for (file, names) in [(program, &["times3", "tail"][..]), (&library, &["other"])] {
        for name in names {
            let stub = format!("{name}@plt");
            let blocks = document["blocks"].as_array().unwrap();
            let of_file = |block: &&serde_json::Value| {
                let module = &document["modules"][block["module"].as_u64().unwrap() as usize]["path"];
                module == file.canonicalize().unwrap().to_str().unwrap() && block["function"] == *stub
            };
            let counts: Vec<_> = blocks.iter().filter(of_file).map(|block| block["count"].as_u64().unwrap()).collect();
            // One that is stripped has its stubs' names all the same: they come from relocations.
            assert_eq!(counts, [100, 1], "{stub} of {}", file.display());
        }
    }
}

#[test]
fn at_any_address() {
    let Some(workshop) = Workshop::new() else { return };
    library(&workshop);
    for (name, arguments) in [("pie", &["-pie"][..]), ("fixed", &["-no-pie"])] {
        let program = main_with(&workshop, name, arguments);
        check(&workshop, &program, symbol(&program, "main"));
    }
}

#[test]
fn without_symbols() {
    let Some(workshop) = Workshop::new() else { return };
    library(&workshop);
    let program = main_with(&workshop, "stripped", &["-pie"]);
    let main = symbol(&program, "main");
    assert!(Command::new("strip").arg(&program).status().unwrap().success());
    check(&workshop, &program, main);
}

#[test]
fn an_execution_of_a_repeated_instruction_counts_once() {
    let Some(workshop) = Workshop::new() else { return };
    let text = "
.globl _start
.type _start, @function
_start:
    lea buffer(%rip), %rdi      # 0: 1
    mov $64, %ecx
    rep stosb
    mov $0, %ecx
    rep stosb
    mov $10, %ebx
1:  mov $7, %ecx                # 26: 10
    lea buffer(%rip), %rdi
    jmp 2f
2:  rep stosb                   # 40: 10, a block of its own
    jmp 3f                      # 42: 10
3:  dec %ebx                    # 44: 10
    jnz 1b
    mov $60, %eax               # 48: what ends with the exit callgrind does not count
    xor %edi, %edi
    syscall
.size _start, .-_start
.data                           # valgrind knows no object without data
buffer: .fill 4096, 1, 1
.section .note.GNU-stack,\"\",@progbits
";
    let program = workshop.compile("rep.s", text, "rep", &["-nostdlib", "-static"]);
    let document = workshop.truth(&["--", program.to_str().unwrap()]);
    let start = symbol(&program, "_start");
    let counts: Vec<(u64, u64)> =
        executions(&document, &program).into_iter().map(|(at, count)| (at - start, count)).collect();
    assert_eq!(counts, [(0, 1), (26, 10), (40, 10), (42, 10), (44, 10)]);
    // 64 + 0 + 10 x 7 iterations.
    assert_eq!(document["head"]["left_out"][0]["instructions"], 134);
    assert_eq!(document["instructions"], 6 + 10 * 3 + 10 + 10 + 10 * 2);
}

/// The defaults of callgrind: stubs are skipped, names and addresses shortened.
#[test]
fn files_of_callgrind_with_any_options_give_the_same_counts() {
    let Some(workshop) = Workshop::new() else { return };
    library(&workshop);
    let program = main_with(&workshop, "pie", &["-pie"]);
    let options: [&[&str]; 4] = [
        &[],
        &["--skip-plt=no"],
        &["--compress-pos=no", "--compress-strings=no", "--collect-jumps=yes"],
        &["--skip-plt=no", "--collect-jumps=yes", "--cache-sim=yes", "--separate-callers=2"],
    ];
    for options in options {
        let file = workshop.path("out");
        let status = Command::new("valgrind")
            .args(["-q", "--tool=callgrind", "--dump-instr=yes", "--log-file=/dev/null"])
            .arg(format!("--callgrind-out-file={}", file.display()))
            .args(options)
            .arg(&program)
            .status();
        assert!(status.unwrap().success());
        let document = workshop.truth(&["--from", file.to_str().unwrap()]);
        assert_counts(&executions(&document, &program), symbol(&program, "main"), &MAIN_COUNTS);
        let library = workshop.path("libcalls.so");
        assert_counts(&executions(&document, &library), symbol(&library, "times3"), &LIBRARY_COUNTS);
        let blocks = document["blocks"].as_array().unwrap();
        let stub = blocks.iter().find(|block| block["function"] == "times3@plt").unwrap();
        assert_eq!((stub["instructions"].as_u64(), stub["count"].as_u64()), (Some(1), Some(100)), "{options:?}");
    }
}
