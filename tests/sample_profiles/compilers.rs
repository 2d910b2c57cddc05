//! Programs compiled, recorded, and compiled again with their profile. These tests need perf events, ptrace and compilers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::place::Place;
use super::support::{has, hbbp};

/// One in 16 calls of `decide` goes the rare way; of its calls through the pointer one in 32.
const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
typedef unsigned (*step_t)(unsigned);
static unsigned rare(unsigned x)
{
    return x * 7 + 3;
}
static unsigned often(unsigned x)
{
    return x ^ (x >> 3);
}
#ifdef __cplusplus
extern "C"
#endif
__attribute__((noinline)) unsigned decide(unsigned i, unsigned x, step_t step)
{
    if (i % 16 == 0) {
        x = x / 3 + 5;
    } else {
        x = x * 3 + 1;
    }
    return step(x);
}
static inline unsigned mix(unsigned a, unsigned b)
{
    for (int i = 0; i < 8; i++)
        a = (a << 5) + (a >> 2) + b;
    return a;
}
int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? strtoul(argv[1], 0, 10) : 1000, x = 12345;
    for (unsigned i = 0; i < n; i++) {
        x = decide(i, x + i, i % 32 ? often : rare);
        x = mix(x, i);
    }
    printf("%u\n", x);
    return 0;
}
"#;

const RUST: &str = r#"
#[unsafe(no_mangle)]
#[inline(never)]
pub fn decide(i: u32, x: u32) -> u32 {
    if i % 16 == 0 {
        (x / 3 + 5).rotate_left(x % 7)
    } else {
        x.wrapping_mul(3) ^ x.leading_zeros()
    }
}
fn main() {
    let n: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let x = (0..n).fold(12345_u32, |x, i| decide(i, x.wrapping_add(i)) ^ i);
    println!("{x}");
}
"#;

impl Place {
    /// `None`, said loudly, without a compiler or where branches cannot be recorded.
    fn with(compiler: &str) -> Option<Self> {
        has(compiler).then(Self::to_trace).flatten()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        Command::new(program).args(arguments).current_dir(self.folder()).env("RUSTC_BOOTSTRAP", "1").output().unwrap()
    }

    /// A compiler that must succeed and have nothing to say.
    fn compile(&self, compiler: &str, arguments: &[&str]) {
        let output = self.run(compiler, arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler} {arguments:?}: {errors}");
        assert_eq!(errors, "", "{compiler} {arguments:?}");
    }

    /// Records `program` and writes its profiles.
    fn record(&self, formats: &[&str]) {
        let record = ["record", "--tracer", "lookahead", "--overhead", "30", "--", "./program", "40000000"];
        let recorded = hbbp().args(record).current_dir(self.folder()).output().unwrap();
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        for format in formats {
            let export = ["export", "--format", format, "-o", format, "--binary", "program"];
            let exported = hbbp().args(export).current_dir(self.folder()).output().unwrap();
            assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
        }
    }
}

/// Branch weights of the first conditional branch of a function in LLVM's text.
fn weights(ir: &Path, function: &str) -> Option<(f64, f64)> {
    let text = fs::read_to_string(ir).unwrap();
    let definition = |line: &&str| line.starts_with("define ") && line.contains(&format!(" @{function}("));
    let body = text.lines().skip_while(|line| !definition(line)).take_while(|line| *line != "}");
    let branch = { body }.find(|line| line.contains("br i1 ") || line.contains("select i1 "))?;
    let node = branch.split("!prof ").nth(1)?.split([',', ' ']).next()?;
    let definition = text.lines().find(|line| line.starts_with(&format!("{node} = ")))?;
    let mut numbers = definition.split("i32 ").skip(1).map(|rest| rest.trim_end_matches(['}', ',', ' ']));
    let mut next = || numbers.next()?.parse::<f64>().ok();
    Some((next()?, next()?))
}

/// The rare way is taken once in 16 times.
fn is_one_in_sixteen(share: f64, of: &str) {
    eprintln!("{of}: {share}");
    assert!((0.03..0.12).contains(&share), "{of}: {share}");
}

#[test]
fn clang_lays_branches_out_by_their_counts() {
    for (compiler, source) in [("clang-19", "program.c"), ("clang++-19", "program.cc")] {
        let Some(place) = Place::with(compiler) else { continue };
        fs::write(place.path(source), C).unwrap();
        let options =
            ["-O2", "-gline-tables-only", "-fdebug-info-for-profiling", "-funique-internal-linkage-names", source];
        place.compile(compiler, &[&options[..], &["-o", "program"]].concat());
        place.record(&["llvm-text", "llvm-extbin"]);
        place.compile(compiler, &[&options[..], &["-S", "-emit-llvm", "-o", "without"]].concat());
        assert_eq!(weights(&place.path("without"), "decide"), None);
        for format in ["llvm-text", "llvm-extbin"] {
            let using = format!("-fprofile-sample-use={format}");
            place.compile(compiler, &[&options[..], &[&using, "-S", "-emit-llvm", "-o", "with"]].concat());
            let (rare, common) = weights(&place.path("with"), "decide").unwrap();
            is_one_in_sixteen(rare / (rare + common), compiler);
            // The call through the pointer was looked at, too: most go to `often`, whose name is unique to its file.
            let ir = fs::read_to_string(place.path("with")).unwrap();
            let promoted = ir.lines().any(|line| line.contains("icmp eq ptr") && line.contains("often"));
            assert!(promoted && ir.contains(".__uniq."), "{compiler} {format}");
        }
    }
}

#[test]
fn gcc_lays_branches_out_by_their_counts() {
    for (compiler, source) in [("gcc", "program.c"), ("g++", "program.cc")] {
        let Some(place) = Place::with(compiler) else { continue };
        let version = place.run(compiler, &["-dumpversion"]);
        let major: u32 = String::from_utf8(version.stdout).unwrap().trim().split('.').next().unwrap().parse().unwrap();
        if !(12..16).contains(&major) {
            testing::skip!(ToolVersion, "{compiler} {major} does not read version 2 of the format");
            continue;
        }
        fs::write(place.path(source), C).unwrap();
        let options = ["-O2", "-g", source];
        place.compile(compiler, &[&options[..], &["-o", "program"]].concat());
        place.record(&["gcov"]);
        let share = |using: &[&str]| {
            let dump = ["-S", "-o", "with.s", "-fdump-tree-optimized=dump"];
            place.compile(compiler, &[&options[..], using, &dump].concat());
            let dump = fs::read_to_string(place.path("dump")).unwrap();
            let body = &dump[dump.find(";; Function decide").unwrap()..];
            // `goto <bb 3>; [6.29%]`, of the first condition, which is the one of the source.
            let percent = body.split("; [").nth(1).unwrap().split('%').next().unwrap();
            (percent.parse::<f64>().unwrap() / 100.0, body.contains("often"))
        };
        let (guessed, _) = share(&[]);
        assert!(!(0.03..0.12).contains(&guessed), "{guessed}: the test cannot fail");
        let (counted, names_callee) = share(&["-fauto-profile=gcov"]);
        is_one_in_sixteen(counted, compiler);
        assert!(names_callee, "the call through the pointer was not looked at");
    }
}

#[test]
fn rustc_lays_branches_out_by_their_counts() {
    let Some(place) = Place::with("rustc") else { return };
    fs::write(place.path("program.rs"), RUST).unwrap();
    let help = |letter: &str| String::from_utf8(place.run("rustc", &[letter, "help"]).stdout).unwrap();
    let [stable, unstable] = ["-C", "-Z"].map(help);
    let for_profiling = rustc_option(&stable, &unstable, &FOR_PROFILING);
    let options = ["-Copt-level=2", "-Cdebuginfo=1", &for_profiling, "-Ccodegen-units=1", "program.rs"];
    place.compile("rustc", &[&options[..], &["-o", "program"]].concat());
    place.record(&["llvm-extbin"]);
    place.compile("rustc", &[&options[..], &["--emit=llvm-ir", "-o", "without"]].concat());
    assert_eq!(weights(&place.path("without"), "decide"), None);
    let using = rustc_option(&stable, &unstable, &SAMPLE_USE) + "=llvm-extbin";
    place.compile("rustc", &[&options[..], &[&using, "--emit=llvm-ir", "-o", "with"]].concat());
    let (rare, common) = weights(&place.path("with"), "decide").unwrap();
    is_one_in_sixteen(rare / (rare + common), "rustc");
    // What cargo does where a profile says nothing of debug information: the flags were given in vain.
    place.compile("rustc", &[&options[..], &["-Cstrip=debuginfo", "-o", "stripped"]].concat());
    let export = ["export", "--format", "llvm-text", "-o", "none", "--binary", "program=stripped"];
    let exported = hbbp().args(export).current_dir(place.folder()).output().unwrap();
    let errors = String::from_utf8_lossy(&exported.stderr);
    assert!(!exported.status.success() && errors.contains("CARGO_PROFILE_RELEASE_DEBUG=1"), "{errors}");
}

/// Names of the two options of rustc, newest first. Both were options of nightly compilers (`-Z`) before they were stable (`-C`).
const FOR_PROFILING: [&str; 2] = ["debuginfo-for-profiling", "debug-info-for-profiling"];
const SAMPLE_USE: [&str; 1] = ["profile-sample-use"];

/// How a rustc spells one of its options, by what it says with `-C help` and `-Z help`.
fn rustc_option(stable: &str, unstable: &str, names: &[&str]) -> String {
    let is_listed = |help: &str, name: &str| {
        help.split_whitespace().any(|word| word.split('=').next().unwrap().trim_start_matches('-') == name)
    };
    let found = names.iter().find_map(|name| {
        let letter = [("-C", stable), ("-Z", unstable)].into_iter().find(|(_, help)| is_listed(help, name))?.0;
        Some(format!("{letter}{name}"))
    });
    found.unwrap_or_else(|| panic!("this rustc knows no option {names:?}: look in its release notes for the new name"))
}

#[test]
fn options_of_rustc_are_found_by_their_old_and_new_names() {
    let check = |stable: &str, unstable: &str, expected: [&str; 2]| {
        assert_eq!([&FOR_PROFILING[..], &SAMPLE_USE].map(|names| rustc_option(stable, unstable, names)), expected);
    };
    // Of 1.95, of a nightly after the renaming, and of one where both are stable.
    let plain =
        "    -C               profile-use=val -- use the given `.profdata` file for profile-guided optimization\n";
    let sample_use =
        "-Z   profile-sample-use=val -- use the given `.prof` file for sampled profile-guided optimization\n";
    let old = "    -Z   debug-info-for-profiling=val -- emit discriminators and other data necessary for AutoFDO\n";
    let new = "    -Z    debuginfo-for-profiling=val -- emit discriminators and other data necessary for AutoFDO\n";
    check(plain, &format!("{old}{sample_use}"), ["-Zdebug-info-for-profiling", "-Zprofile-sample-use"]);
    check(plain, &format!("{new}{sample_use}"), ["-Zdebuginfo-for-profiling", "-Zprofile-sample-use"]);
    let stable = format!("{new}{sample_use}").replace("-Z ", "-C ");
    check(&format!("{plain}{stable}"), "", ["-Cdebuginfo-for-profiling", "-Cprofile-sample-use"]);
    check(
        &format!("{plain}{}", sample_use.replace("-Z", "-C")),
        new,
        ["-Zdebuginfo-for-profiling", "-Cprofile-sample-use"],
    );
}

/// Counts by function and position in it, with the calls around what was inlined, and calls of each function.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut around: Vec<String> = Vec::new();
    for line in text.lines() {
        let place = line.trim_start_matches(' ');
        around.truncate(line.len() - place.len());
        if around.is_empty() {
            let (name, calls) = place.rsplit_once(':').unwrap();
            around.push(name.rsplit_once(':').unwrap().0.to_owned());
            counts.insert(format!("calls of {}", around[0]), calls.parse().unwrap());
            continue;
        }
        let (place, rest) = place.split_once(": ").unwrap();
        match rest.split(' ').next().unwrap().parse() {
            Ok(count) => {
                counts.insert(format!("{} {place}", around.join(" ")), count);
            }
            Err(_) => around.push(format!("{place} {}", rest.rsplit_once(':').unwrap().0)),
        }
    }
    counts
}

/// Of the same ranges and branches. What the debug information says to be of no line (0), llvm-profgen puts on a line that far before
/// the function; hbbp leaves it out.
#[test]
fn counts_are_those_of_llvm_profgen() {
    let Some(place) = Place::with("clang++-19") else { return };
    if !has("llvm-profgen-19") {
        return;
    }
    fs::write(place.path("program.cc"), C).unwrap();
    let options = ["-O2", "-gline-tables-only", "-fdebug-info-for-profiling", "-funique-internal-linkage-names"];
    place.compile("clang++-19", &[&options[..], &["program.cc", "-o", "program"]].concat());
    place.record(&["llvm-profgen", "llvm-text"]);
    let arguments = ["--unsymbolized-profile=llvm-profgen", "--binary=program", "--format=text", "--output=reference"];
    let made = place.run("llvm-profgen-19", &arguments);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let read = |name: &str| counts(&fs::read_to_string(place.path(name)).unwrap());
    let (found, mut expected) = (read("llvm-text"), read("reference"));
    let no_line =
        |position: &str| position.split(' ').any(|word| word.parse::<f64>().is_ok_and(|line| line > 60_000.0));
    expected.retain(|position, _| !no_line(position));
    assert!(found.len() > 15, "{found:?}");
    assert!(found.keys().eq(expected.keys()), "{found:#?}\n{expected:#?}");
    // The C library calls main; its branches are not in that tool's input.
    for (position, count) in expected.iter().filter(|(position, _)| *position != "calls of main") {
        // Each range is rounded there, here the sum.
        assert!(found[position].abs_diff(*count) <= 20 + count / 1000, "{position}: {} for {count}", found[position]);
    }
}

#[test]
fn the_profile_of_traced_branches_is_like_the_exact_one() {
    let Some(place) = Place::with("clang-19") else { return };
    if !has("valgrind") || !has("llvm-profdata-19") {
        return;
    }
    fs::write(place.path("program.c"), C).unwrap();
    place.compile("clang-19", &["-O2", "-g", "-gdwarf-4", "-fdebug-info-for-profiling", "program.c", "-o", "program"]);
    place.record(&["llvm-extbin"]);
    let hbbp = env!("CARGO_BIN_EXE_hbbp");
    for command in [
        &["truth", "-o", "exact.json", "--", "./program", "300000"][..],
        &["export", "--format", "llvm-text", "--truth", "exact.json", "--binary", "program", "-o", "exact"],
    ] {
        let output = place.run(hbbp, command);
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Exact counts are as exact as a profile: the rare way is taken every 16th time.
    let exact = counts(&fs::read_to_string(place.path("exact")).unwrap());
    let of_decide =
        ["calls of decide", "decide 2", "decide 3", "decide 5"].map(|position| exact.get(position).copied());
    assert_eq!(of_decide, [300_000, 300_000, 18_750, 281_250].map(Some), "{exact:#?}");
    let overlap = place.run("llvm-profdata-19", &["overlap", "--sample", "exact", "llvm-extbin"]);
    let report = String::from_utf8(overlap.stdout).unwrap();
    let similarity = report.split("Whole program profile similarity:").nth(1).unwrap();
    let percent: f64 = similarity.split('%').next().unwrap().trim().parse().unwrap();
    eprintln!("{percent} % similar");
    assert!(percent > 95.0, "{report}");
}
