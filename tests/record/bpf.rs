//! Programs of BPF, loaded and unloaded while they are recorded, and before. This needs root.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::place::Place;
use crate::{errors, hbbp, wait_for};

/// `filter NAME MS [NAME MS]...`: filters packets with a program of that name for so long, and unloads it. `filter hold NAME FILE`: loads the
/// program, makes the file and filters packets while it is there.
const FILTER: &str = r#"
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So many instructions: each of the two programs has its own number, as their tags tell. */
static int load(const char *name, int turns) {
    static struct bpf_insn code[4000];
    int n = 0;
    code[n++] = (struct bpf_insn){BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 7};
    for (int i = 0; i < turns; i++) {
        code[n++] = (struct bpf_insn){BPF_ALU64 | BPF_MUL | BPF_K, 0, 0, 0, 3 + i};
        code[n++] = (struct bpf_insn){BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 11};
    }
    code[n++] = (struct bpf_insn){BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 1};
    code[n++] = (struct bpf_insn){BPF_JMP | BPF_EXIT, 0, 0, 0, 0};
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insns = (unsigned long)code;
    attr.insn_cnt = n;
    attr.license = (unsigned long)"GPL";
    strncpy(attr.prog_name, name, 15);
    int program = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    if (program < 0)
        exit(77);
    return program;
}

static void filter(int program, long ms, const char *file) {
    int pair[2];
    char byte;
    struct timespec begin, now;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || setsockopt(pair[1], SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof program))
        exit(77);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 100; i++) {
            send(pair[0], "x", 1, MSG_DONTWAIT);
            recv(pair[1], &byte, 1, MSG_DONTWAIT);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (file ? !access(file, F_OK) : (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
    close(pair[0]);
    close(pair[1]);
    close(program);
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "hold")) {
        int program = load(argv[2], 1500);
        fclose(fopen(argv[3], "w"));
        filter(program, 0, argv[3]);
        return 0;
    }
    for (int i = 1; i + 1 < argc; i += 2)
        filter(load(argv[i], 1500 + i), atol(argv[i + 1]), 0);
    return 0;
}
"#;

/// The program in a place, if this machine lets it load programs of BPF.
fn filter(place: &Place) -> Option<PathBuf> {
    let (source, program) = (place.path("filter.c"), place.path("filter"));
    fs::write(&source, FILTER).unwrap();
    let compiled = Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(&source).status();
    if !compiled.as_ref().is_ok_and(|status| status.success()) {
        testing::skip!(Tool, "cannot compile with gcc: {compiled:?}");
        return None;
    }
    if !rustix::process::geteuid().is_root() || !Command::new(&program).args(["try", "1"]).status().unwrap().success() {
        testing::skip!(Privileges, "no program of BPF can be loaded");
        return None;
    }
    Some(program)
}

/// The functions of code that the kernel made, with the multiplications that they executed.
fn multiplied(place: &Place) -> Vec<(String, f64)> {
    let mut mix = Command::new(hbbp());
    mix.args(["mix", "--rows", "function,mnemonic", "--format", "csv", "--filter", "module=[kernel.jit]", "-i"]);
    let output = mix.arg(place.recording()).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[1] == "imul").then(|| (fields[0].to_owned(), fields[2].parse().unwrap()))
    };
    let mut rows: Vec<(String, f64)> = csv.lines().skip(1).filter_map(row).collect();
    rows.sort_by(|one, next| one.0.cmp(&next.0));
    rows
}

/// Whether what was recorded has code of a function with this name after its tag, and nothing is said to be missing of it.
fn has_code_of(place: &Place, name: &str) -> bool {
    let said = place.contents().metadata["degradations"].to_string();
    assert!(!said.contains("BPF"), "{said}");
    let rows = multiplied(place);
    rows.iter().any(|(function, count)| {
        let tag = function.strip_prefix("bpf_prog_").and_then(|rest| rest.strip_suffix(name)).unwrap_or_default();
        tag.len() == 17 && *count > 100.0
    })
}

#[test]
fn programs_that_are_unloaded_before_the_end_are_read() {
    let Some(place) = Place::to_record() else { return };
    let Some(program) = filter(&place) else { return };
    let output = place.run(&["--", program.to_str().unwrap(), "first", "400", "second", "400"]);
    assert!(output.status.success(), "{}", errors(&output));
    for name in ["first", "second"] {
        assert!(has_code_of(&place, name), "{name}: {:?}", multiplied(&place));
    }
    let symbols = place.contents().symbols;
    let told = |name: &str, went: bool| symbols.iter().any(|(symbol, gone)| symbol.ends_with(name) && *gone == went);
    // The kernel frees the second one when the program has ended, a little later.
    for (name, went) in [("first", false), ("first", true), ("second", false)] {
        assert!(told(name, went), "{symbols:?}");
    }
}

#[test]
fn a_program_from_before_the_recording_is_read() {
    let Some(place) = Place::to_record() else { return };
    let Some(program) = filter(&place) else { return };
    let started = place.path("started");
    let mut held = Command::new(program);
    let mut held = held.arg("hold").arg("held").arg(&started).stdin(Stdio::null()).spawn().unwrap();
    wait_for("the program to be loaded", || started.exists());
    // In half a second there are ten samples at times, which do not say yet that no code but the kernel's ran.
    let output = place.run(&["-p", &held.id().to_string(), "--duration", "2"]);
    fs::remove_file(&started).unwrap();
    held.wait().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(has_code_of(&place, "held"), "{:?}", multiplied(&place));
}

#[test]
fn without_samples_of_the_kernel_nothing_is_recorded_of_its_changes() {
    let Some(place) = Place::to_record() else { return };
    let Some(program) = filter(&place) else { return };
    let output = place.run(&["--user", "--", program.to_str().unwrap(), "first", "100"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(place.contents().symbols.is_empty());
}
