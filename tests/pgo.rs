//! `hbbp pgo`: small programs become other programs, and everything that can go wrong on the way is said.

mod support;

use std::fs::{self, read, read_to_string, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::has;
use tempfile::TempDir;
use testing::Alone;

/// The loop of `even` is hot; `rare` is not.
const PROGRAM: &str = "\
#include <stdio.h>
#include <stdlib.h>
static long rare(long x) {
    return x * 3 + 1;
}
static long even(long x) {
    long sum = 0;
    for (long i = 0; i < x; i++) {
        if (i % 1000 == 999) sum += rare(i); else sum ^= i;
    }
    return sum;
}
int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 4000; i++) sum += even(atol(argv[1]) + i);
    printf(\"%ld\\n\", sum);
    return sum == 42;
}
";

/// A make that names its compiler and its options itself.
const MAKEFILE: &str = "\
CC = clang-19
CFLAGS = -O2
loop: loop.c
\t$(CC) $(CFLAGS) -o $@ loop.c
clean:
\trm -f loop
";

fn pgo(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = support::hbbp();
    command.current_dir(folder).arg("pgo").args(arguments);
    // What cargo says to tests is not for the cargo that they start.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTC_WRAPPER").env_remove("RUSTFLAGS");
    command.output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn done(output: &Output) -> Value {
    assert!(output.status.success(), "{}", errors(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn c_project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path().join("loop.c"), PROGRAM).unwrap();
    write(folder.path().join("Makefile"), MAKEFILE).unwrap();
    folder
}

/// What makes a test short, and its result one for programs.
const SHORT: [&str; 5] = ["--precision=99%", "--rounds=2", "--overhead=2", "--format", "json"];
const MAKE: [&str; 4] = ["--build", "make", "--run", "./loop 20000"];

#[test]
fn a_program_of_make_is_built_with_its_profile_and_checked_against_it() {
    let _alone = Alone::wait();
    if !has("clang-19") || !has("make") {
        return;
    }
    let project = c_project();
    let at = |file: &str| project.path().join(file);
    // What is built already is built again.
    assert!(Command::new("make").current_dir(project.path()).output().unwrap().status.success());
    let plain = read(at("loop")).unwrap();
    let output = pgo(project.path(), &[&SHORT[..], &MAKE].concat());
    let result = done(&output);
    assert_eq!(result["schema"], "hbbp-pgo/1");
    let programs = result["programs"].as_array().unwrap();
    assert_eq!(
        programs.iter().map(|program| program["program"].as_str().unwrap()).collect::<Vec<_>>(),
        ["before", "profile"]
    );
    assert!(programs.iter().all(|program| program["runs"].as_array().unwrap().len() == 2
        && program["cpu_seconds"]["median"].as_f64().unwrap() > 0.0));
    let said = errors(&output);
    assert!(
        said.contains("make clean")
            && said.contains("the profile was used")
            && said.contains("fprofile-sample-use=hbbp-pgo/"),
        "{said}"
    );
    // The second profile is of the program that the first one made.
    let steps = said.lines().filter_map(|line| line.strip_prefix("hbbp: ")?.split_once("/8 ").map(|(_, step)| step));
    let steps: Vec<&str> = steps.map(|step| step.split(" until").next().unwrap()).collect();
    let of_pass = |record| [record, "write the profile", "build again, with the profile"];
    let passes = [of_pass("record"), of_pass("record the new program")].concat();
    assert_eq!(steps, [&["build with debug information"], &passes[..], &["compare: 2 times each, in turn"]].concat());
    assert!(at("hbbp-pgo/run.data").exists() && at("hbbp-pgo/run-2.data").exists());
    // The new one is in its place, and the old one is kept.
    let new = read(at("loop")).unwrap();
    assert_eq!(new, read(at("hbbp-pgo/after/loop")).unwrap());
    assert!(new != plain && new != read(at("hbbp-pgo/before/loop")).unwrap());
    let profile = read_to_string(at("hbbp-pgo/profile.txt")).unwrap();
    assert!(profile.contains("even") && profile.contains("main:"), "{profile}");

    let check = [&SHORT[..], &["--check"], &MAKE].concat();
    let output = pgo(project.path(), &check);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(errors(&output).contains("up to date: "), "{}", errors(&output));
    assert_eq!(profile, read_to_string(at("hbbp-pgo/profile.txt")).unwrap(), "a check changes nothing");

    // Another function is hot now.
    let other = PROGRAM
        .replace("i % 1000 == 999", "i % 1000 != 999")
        .replace("return x * 3 + 1;", "while (x > 1) x /= 3;\n    return x;");
    write(at("loop.c"), other).unwrap();
    let output = pgo(project.path(), &check);
    assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
    assert!(errors(&output).contains("stale: "), "{}", errors(&output));
}

#[test]
fn bolt_lays_out_what_the_profile_made() {
    let _alone = Alone::wait();
    if !has("clang-19") || !has("make") || !has("llvm-bolt-19") {
        return;
    }
    let project = c_project();
    let output = pgo(project.path(), &[&SHORT[..], &["--passes=1", "--bolt"], &MAKE].concat());
    assert!(errors(&output).contains("6/6 compare"), "{}", errors(&output));
    let result = done(&output);
    assert_eq!(result["programs"][2]["program"], "profile + BOLT");
    let new = read(project.path().join("loop")).unwrap();
    assert_eq!(new, read(project.path().join("hbbp-pgo/bolt/loop")).unwrap());
    let bolted = Command::new("readelf").args(["-SW", "loop"]).current_dir(project.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&bolted.stdout).contains(".bolt"), "BOLT leaves a section of its own");
}

#[test]
fn gcc_gets_a_profile_of_its_format() {
    let _alone = Alone::wait();
    let project = c_project();
    let build = ["--build", "gcc -O2 -o loop loop.c", "--run", "./loop 20000"];
    let output = pgo(project.path(), &[&SHORT[..], &build].concat());
    done(&output);
    assert!(errors(&output).contains("gcc -g1 -fauto-profile=hbbp-pgo/profile.gcov"), "{}", errors(&output));
    assert!(project.path().join("hbbp-pgo/profile.gcov").exists());
}

#[test]
fn a_rust_program_needs_no_option() {
    let _alone = Alone::wait();
    let project = tempfile::tempdir().unwrap();
    let at = |file: &str| project.path().join(file);
    fs::create_dir(at("src")).unwrap();
    write(at("Cargo.toml"), "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n")
        .unwrap();
    // A build script, which the profile is not for.
    write(at("build.rs"), "fn main() { println!(\"cargo::rustc-env=ROUNDS=300000\"); }\n").unwrap();
    let main = "\
fn main() {
    let mut words = std::collections::BTreeMap::new();
    let mut seed = std::env::args().count() as u64;
    for _ in 0..env!(\"ROUNDS\").parse::<u64>().unwrap() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *words.entry(format!(\"w{}\", seed >> 55)).or_insert(0) += 1;
    }
    println!(\"{}\", words.len());
}
";
    write(at("src/main.rs"), main).unwrap();
    let output = pgo(project.path(), &[&SHORT[..], &["--", "cargo", "run", "--offline", "--", "input"]].concat());
    let result = done(&output);
    let new = result["programs"][1]["file"].as_str().unwrap();
    assert!(new.ends_with("hbbp-pgo/after/words") && Path::new(new).exists());
    assert!(
        read_to_string(at("hbbp-pgo/profile.txt")).unwrap().contains("words"),
        "functions of the program are in it"
    );
    // The project's own folder of cargo is not touched.
    assert!(!at("target").exists());
}

/// `cargo hbbp pgo -- run` is `hbbp pgo -- cargo run`, and everything else `hbbp` itself.
#[test]
fn cargo_has_a_command_for_it() {
    let cargo =
        |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_cargo-hbbp")).arg("hbbp").args(words).output().unwrap();
    let version = cargo(&["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("hbbp "), "{version:?}");
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().to_str().unwrap();
    let output = cargo(&["pgo", "--folder", kept, "--", "build"]);
    assert!(errors(&output).contains("cargo build: expected `cargo run`"), "{}", errors(&output));
    let output = cargo(&["pgo", "--folder", kept, "--", "cargo", "build"]);
    assert!(errors(&output).contains("hbbp: cargo build: expected"), "{}", errors(&output));
}

#[test]
fn what_goes_wrong_is_said_with_what_to_do() {
    let _alone = Alone::wait();
    let project = c_project();
    let refused = |arguments: &[&str], status, expected: &str| {
        let output = pgo(project.path(), arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(expected), "{arguments:?}: {}", errors(&output));
    };
    let gcc = "gcc -O2 -o loop loop.c";
    refused(&["--build", gcc], 2, "--run");
    refused(&[], 2, "required");
    refused(&["--build", gcc, "--run", "./loop 1", "--overhead", "0"], 2, "more than 0");
    refused(&["--build", gcc, "--run", "loop 1"], 1, "--binary");
    write(project.path().join("script"), "#!/bin/sh\nexec ./loop \"$@\"\n").unwrap();
    refused(&["--", "make", "run"], 1, "--build");
    refused(&["--check", "--build", gcc, "--run", "./loop 1"], 1, "without --check");
    refused(&["--build", "gcc -O2 -o loop no.c", "--run", "./loop 1"], 1, "no.c");
    refused(&["--build", gcc, "--run", "./other 1"], 1, "there is no ");
    refused(&["--build", "/usr/bin/gcc -O2 -o loop loop.c", "--run", "./loop 1"], 1, "compiled nothing");
    refused(&["--build", &format!("{gcc} -s"), "--run", "./loop 1"], 1, "no names of functions");
    refused(&["--build", gcc, "--run", "./script 1"], 1, "--binary");
    refused(&["--", "cargo", "run", "--target-dir", "x"], 1, "--folder");
    refused(&["--build", gcc, "--run", "./loop 1; echo what it says; exit 7", "--binary", "loop"], 1, "what it says");
    refused(
        &["--build", gcc, "--run", "./loop 1 nothing >&2 && false", "--binary", "loop"],
        1,
        "record did not succeed",
    );
    // A folder that cannot be made.
    refused(&["--folder", "loop.c/x", "--build", gcc, "--run", "./loop 1"], 1, "cannot make the folder loop.c/x");
}

/// Options of the project stay: debug information of its own, names with spaces, and a wrapper of compilers before ours in PATH.
#[test]
fn scripts_hand_on_what_they_are_given() {
    let _alone = Alone::wait();
    let project = c_project();
    let at = |file: &str| project.path().join(file);
    write(at("my loop.c"), PROGRAM).unwrap();
    fs::create_dir(at("bin")).unwrap();
    // As ccache does: it calls the next of its name in PATH.
    write(at("bin/gcc"), "#!/bin/sh\nPATH=${PATH#*bin:}\necho cached >>cached\nexec gcc \"$@\"\n").unwrap();
    fs::set_permissions(at("bin/gcc"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", at("bin").display(), std::env::var("PATH").unwrap());
    let mut command = support::hbbp();
    command.current_dir(project.path()).env("PATH", path).arg("pgo").args(SHORT);
    command.args(["--build", "gcc -g3 -O2 -DX='a b' -o loop 'my loop.c'", "--run", "./loop 20000"]);
    let output = command.output().unwrap();
    done(&output);
    // It is asked for its version twice, and compiles twice.
    assert!(read_to_string(at("cached")).unwrap().lines().filter(|line| *line == "cached").count() >= 4);
    let debug =
        Command::new("readelf").args(["--debug-dump=macro", "loop"]).current_dir(project.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&debug.stdout).contains("DW_MACRO"), "the project's -g3 is not replaced");
}
