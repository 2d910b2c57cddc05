//! `hbbp export --format bolt-yaml`: what `llvm-bolt` makes of a profile, and what it finds by it in other builds.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use perfdata::Features;
use support::hbbp;
use synthetic::{AROUND, Recorder, program};
use tempfile::TempDir;
use testing::Alone;

/// A program whose one function went around, and its recording.
fn recorded() -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(folder.path(), "four", &[])?;
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&AROUND);
    let recording = folder.path().join("four.data");
    fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    Some((folder, recording))
}

/// What comes of a recording where only this script is in PATH, as `llvm-bolt-19`; without a script nothing is.
fn export_with(folder: &Path, recording: &Path, script: Option<&str>) -> (Output, Option<String>, String) {
    let path = folder.join("path");
    fs::create_dir_all(&path).unwrap();
    let bolt = path.join("llvm-bolt-19");
    if let Some(script) = script {
        fs::write(
            &bolt,
            format!("#!/bin/sh\n[ \"$1\" != --version ] || {{ echo 'LLVM version 19.9'; exit; }}\n{script}"),
        )
        .unwrap();
        fs::set_permissions(&bolt, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let made = folder.join("made.yaml");
    let mut export = hbbp();
    export.args(["export", "--format", "bolt-yaml", "-i"]).arg(recording).arg("-o").arg(&made);
    // Relative to where `hbbp` is.
    export.current_dir(folder).env("PATH", "path");
    let output = export.output().unwrap();
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    (output, fs::read_to_string(made).ok(), told)
}

/// What `llvm-bolt` writes of the program, if each edge ran so often.
fn yaml(count: u32) -> String {
    format!(
        "---
header:
  profile-version: 1
functions:
  - name:            _start
    fid:             1
    hash:            0x9BE6CD65A7DB1E09
    blocks:
      - bid:             0
        hash:            0x50005EBC97050000
        succ:            [ {{ bid: 1, cnt: {count} }}, {{ bid: 2, cnt: {count} }}, {{ bid: 3, cnt: {count} }} ]
      - bid:             3
        succ:            [ {{ bid: 0, cnt: {count} }}, {{ bid: 1, cnt: {count} }}, {{ bid: 2, cnt: {count} }} ]
...
"
    )
}

/// A script that writes that to where it is told to.
fn writes(text: &str) -> String {
    format!("while [ \"$1\" != -w ]; do shift; done\n/bin/cat > \"$2\" <<'END'\n{text}END\n")
}

#[test]
fn without_bolt_nothing_is_recorded() {
    let Some((folder, recording)) = recorded() else { return };
    let (output, made, told) = export_with(folder.path(), &recording, None);
    assert_eq!((output.status.code(), made), (Some(1), None), "{told}");
    assert!(
        told.contains("llvm-bolt makes, which is not in PATH: install BOLT 17 or later (Debian: bolt-19)"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    let mut command = hbbp();
    let left = folder.path().join("left");
    command.args(["export", "--format", "bolt-yaml", "--", "/bin/sh", "-c"]).arg(format!("> {}", left.display()));
    assert_eq!(command.env("PATH", "/nowhere").status().unwrap().code(), Some(1));
    assert!(!left.exists());
}

#[test]
fn what_bolt_cannot_do_is_an_error_with_its_words() {
    let Some((folder, recording)) = recorded() else { return };
    let without_hashes: String =
        yaml(100).lines().filter(|line| !line.contains("   hash:")).map(|line| line.to_owned() + "\n").collect();
    for (script, expected) in [
        ("echo BOLT-INFO: begins; echo 'BOLT-ERROR: not so' >&2; exit 1", "(LLVM version 19.9) makes no profile of"),
        (
            "echo BOLT-INFO: begins; echo 'BOLT-ERROR: not so' >&2; exit 1",
            "(exit status: 1):\nhbbp: BOLT-ERROR: not so\n",
        ),
        ("echo the last word; kill -SEGV $$", "(signal: 11 (SIGSEGV)"),
        ("echo the last word; kill -SEGV $$", "the last word\n"),
        ("exit 0", "makes no profile of"),
        (&writes(""), "finds none of the blocks of"),
        (&writes("\u{1}\u{fffd}\n"), "that ran: those of _start"),
        (&writes(&without_hashes), "makes no hashes of blocks, as BOLT does since version 17"),
    ] {
        let (output, made, told) = export_with(folder.path(), &recording, Some(script));
        assert_eq!((output.status.code(), made), (Some(1), None), "{script}: {told}");
        assert!(told.contains(expected), "{script}: {told}");
    }
}

#[test]
fn counts_that_are_not_those_of_the_profile_are_told() {
    let Some((folder, recording)) = recorded() else { return };
    let fdata = support::stdout(&["export", "--format", "bolt", "-i", recording.to_str().unwrap()]);
    let given: u32 = fdata.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()).sum();
    assert_eq!(given, 6 * 25, "{fdata}");
    for (count, expected) in [
        (25, None),
        (
            20,
            Some(
                "not in the profile: 20.00 % of the executions, in functions that llvm-bolt cannot read or sees other blocks in: _start",
            ),
        ),
        (30, Some("llvm-bolt counts 20.00 % more executions: in _start")),
    ] {
        let (output, made, told) = export_with(folder.path(), &recording, Some(&writes(&yaml(count))));
        assert_eq!((output.status.code(), made), (Some(0), Some(yaml(count))), "{told}");
        assert_eq!(told.contains("executions"), expected.is_some(), "{told}");
        assert!(expected.is_none_or(|expected| told.contains(expected)), "{told}");
        assert!(
            told.contains("path/llvm-bolt-19 (LLVM version 19.9): a BOLT that is older may not read the profile"),
            "{told}"
        );
    }
}

/// What has no branches, or no names of functions, has nothing that hashes could find.
#[test]
fn what_no_other_build_could_take_is_refused() {
    let Some((folder, recording)) = recorded() else { return };
    let binary = folder.path().join("four");
    let script = writes(&yaml(1));
    let mut recorder = Recorder::new(&binary);
    recorder.sample(AROUND[0].0);
    let samples = folder.path().join("samples.data");
    fs::write(&samples, recorder.finish(&Features::default())).unwrap();
    let (output, made, told) = export_with(folder.path(), &samples, Some(&script));
    assert_eq!((output.status.code(), made), (Some(1), None), "{told}");
    assert!(told.contains("there are no branches of"), "{told}");
    if !support::has("strip") {
        return;
    }
    assert!(Command::new("strip").arg(&binary).status().unwrap().success());
    let (output, made, told) = export_with(folder.path(), &recording, Some(&script));
    assert_eq!((output.status.code(), made), (Some(1), None), "{told}");
    assert!(told.contains("has no symbols, and BOLT knows functions of other builds by their names"), "{told}");
}

/// It is said before BOLT is asked, which would say that the target is unknown.
#[test]
fn programs_of_32_bits_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "small", &["-m32"]) else { return };
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&AROUND);
    let recording = folder.path().join("small.data");
    fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let (output, made, told) = export_with(folder.path(), &recording, Some(&writes(&yaml(1))));
    assert_eq!((output.status.code(), made), (Some(1), None), "{told}");
    assert!(told.contains("is an ELF file of 32 bits, and BOLT takes those of 64 bits only"), "{told}");
}

/// What runs most is where the compiler was told that it hardly ever runs: BOLT has something to gain.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
typedef unsigned long number;
number sink[8];
/* EDIT ONE */
__attribute__((noinline)) number scramble(number x) {
    if (__builtin_expect(x % 16 != 0, 0)) { sink[0] += x; x ^= x >> 7; x *= 0x9E3779B97F4A7C15ul; }
    else { sink[1]++; x += 3; }
    return x;
}
__attribute__((noinline)) number sift(number seed, number times) {
    number kept = 0;
    for (number i = 0; i < times; i++) {
        seed = scramble(seed + i);
        /* EDIT TWO */
        if (__builtin_expect((seed >> 20) % 32 != 0, 0)) {
            sink[2] += seed;
            if (__builtin_expect((seed >> 30) % 8 != 0, 0)) { sink[3] ^= seed; kept++; }
            else sink[4] += 5;
        } else sink[5] += 7;
    }
    return kept;
}
static __attribute__((noinline)) number choose(number x) {
    switch (x % 7) {
    case 0: return x + 3; case 1: return x * 2 + sink[6]; case 2: return x ^ 5; case 3: return sink[7] + x / 3;
    case 4: return x & 77; case 5: return -x; default: return 0;
    }
}
int main(int argc, char **argv) {
    number rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 100, sum = 0;
    for (number i = 0; i < rounds; i++) sum += sift(i, 50) + choose(i);
    printf("%lu %lu\n", sum, sink[3]);
    return 0;
}
"#;

/// The program a few weeks later: a function more before the hot ones, and a rare case in the hottest.
fn edited() -> String {
    let one = "__attribute__((noinline)) void note(number x) { if (x > 10) { sink[6] += x; puts(\"many\"); } else sink[7] += x; }";
    let two = "if (seed == 77) { note(seed); continue; }\n        if (seed % 1024 == 5) sink[7] += i;";
    PROGRAM.replace("/* EDIT ONE */", one).replace("/* EDIT TWO */", two)
}

/// The tools that lay out a program; `None` (said loudly) where one is not there.
struct Tools(TempDir);

impl Tools {
    fn find() -> Option<Self> {
        let all = ["clang-19", "ld.lld-19", "llvm-bolt-19", "valgrind"].map(support::has);
        all.iter().all(|has| *has).then(|| Tools(tempfile::tempdir().unwrap()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, name: &str, source: &str, flags: &[&str]) {
        let written = self.file(name).with_extension("c");
        fs::write(&written, source).unwrap();
        let mut clang = Command::new("clang-19");
        clang
            .args(["-O2", "-fuse-ld=lld", "-Wl,--build-id,-z,now", "-o"])
            .arg(self.file(name))
            .arg(written)
            .args(flags);
        output_of(clang);
    }

    /// Exact counts of a run, and both profiles of them: `old.fdata`, `old.yaml`.
    fn count(&self, name: &str) {
        let mut truth = hbbp();
        truth.args(["truth", "-o"]).arg(self.file("truth.json")).arg("--").arg(self.file(name)).arg("300");
        output_of(truth);
        for (format, extension) in [("bolt", "fdata"), ("bolt-yaml", "yaml")] {
            let mut export = hbbp();
            export.args(["export", "--format", format, "--truth"]).arg(self.file("truth.json"));
            export.arg("--binary").arg(self.file(name)).arg("-o").arg(self.file(name).with_extension(extension));
            let told = output_of(export);
            assert!(!told.contains("llvm-bolt counts") && !told.contains("not in the profile"), "{told}");
        }
    }

    /// What BOLT says while it lays out a program by a profile.
    fn lay_out(&self, name: &str, profile: &str, options: &[&str]) -> String {
        let mut bolt = Command::new("llvm-bolt-19");
        bolt.arg(self.file(name)).arg("-o").arg(self.file("laid-out")).arg("-data").arg(self.file(profile));
        bolt.args(["-reorder-blocks=ext-tsp", "-dyno-stats"]).args(options);
        output_of(bolt)
    }

    /// Jumps that a run takes, as valgrind counts them.
    fn jumps(&self, name: &str) -> u64 {
        let counts = self.file("callgrind.out");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--collect-jumps=yes", "--dump-instr=yes"]);
        valgrind.arg(format!("--callgrind-out-file={}", counts.display())).arg(self.file(name)).arg("300");
        output_of(valgrind);
        let taken = |line: &str| {
            let count = line.strip_prefix("jump=").or_else(|| line.strip_prefix("jcnd="))?;
            count.split([' ', '/']).next()?.parse::<u64>().ok()
        };
        fs::read_to_string(counts).unwrap().lines().filter_map(taken).sum()
    }
}

fn output_of(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// The number after `before` in what BOLT says; of none nothing.
fn number(told: &str, before: &str) -> Option<f64> {
    let rest = told.split_once(before)?.1.trim_start_matches(['(', ' ']);
    rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
}

/// What BOLT says that its layout does to the branches that are taken, and of how many functions it is.
fn figures(told: &str) -> (Vec<&str>, f64) {
    let taken = told.lines().filter(|line| line.contains(" : ")).collect();
    (taken, number(told, "reordering modified layout of ").unwrap())
}

/// By both profiles BOLT does the same to the program that they are of, whatever it is linked as.
#[test]
fn of_the_same_build_it_says_what_fdata_says() {
    let _alone = Alone::wait();
    let Some(tools) = Tools::find() else { return };
    for flags in [&["-Wl,--emit-relocs"][..], &["-Wl,--emit-relocs", "-no-pie"], &[], &["-static", "-Wl,--emit-relocs"]]
    {
        tools.build("program", PROGRAM, flags);
        tools.count("program");
        let expected = tools.lay_out("program", "program.fdata", &[]);
        let yaml = fs::read_to_string(tools.file("program.yaml")).unwrap();
        assert!(yaml.contains("  binary-name:     program\n"), "{yaml}");
        for function in ["scramble", "sift", "main", "'choose/1'"] {
            assert!(yaml.contains(&format!("  - name:            {function}\n")), "{yaml}");
        }
        for options in [&[][..], &["-infer-stale-profile"]] {
            let told = tools.lay_out("program", "program.yaml", options);
            assert!(!told.contains("stale") && !told.contains("invalid"), "{flags:?}: {told}");
            assert_eq!(figures(&told), figures(&expected), "{flags:?}");
            assert!(figures(&told).1 >= 2.0, "{told}");
        }
    }
}

/// Most of what runs is in a function that was edited: its old offsets fit nowhere, and its blocks are found by their hashes.
#[test]
fn the_blocks_of_an_older_build_are_found_in_a_newer_one() {
    let _alone = Alone::wait();
    let Some(tools) = Tools::find() else { return };
    let flags = ["-Wl,--emit-relocs"];
    tools.build("old", PROGRAM, &flags);
    tools.build("new", &edited(), &flags);
    tools.count("old");
    tools.count("new");
    let plain = tools.jumps("new");

    let told = tools.lay_out("new", "old.fdata", &[]);
    assert!(told.contains("invalid (possibly stale) profile"), "{told}");
    let stale = number(told.split_once("samples in the binary").unwrap().1, "").unwrap();
    assert!(stale > 50.0, "{told}");
    let by_offsets = tools.jumps("laid-out");

    let told = tools.lay_out("new", "old.yaml", &["-infer-stale-profile"]);
    let inferred = number(&told, "responsible for ").unwrap();
    assert!((inferred - stale).abs() < 10.0, "{told}");
    assert!(told.contains("of profiled, 100.00% of stale) functions"), "{told}");
    let by_hashes = tools.jumps("laid-out");

    // Without hashes of blocks, inference knows nothing of them.
    let yaml = fs::read_to_string(tools.file("old.yaml")).unwrap();
    let without: String =
        yaml.lines().filter(|line| !line.starts_with("        hash:")).map(|line| line.to_owned() + "\n").collect();
    assert!(without.len() < yaml.len());
    fs::write(tools.file("without.yaml"), without).unwrap();
    tools.lay_out("new", "without.yaml", &["-infer-stale-profile"]);
    let without = tools.jumps("laid-out");

    tools.lay_out("new", "new.yaml", &[]);
    let fresh = tools.jumps("laid-out");
    eprintln!(
        "jumps: {plain} plain, {by_offsets} old fdata, {without} old yaml without hashes, {by_hashes} old yaml, {fresh} fresh"
    );
    assert!(fresh < by_offsets && by_offsets < plain, "{fresh} {by_offsets} {plain}");
    assert!(by_offsets - by_hashes > (by_offsets - fresh) / 2, "{fresh} {by_hashes} {by_offsets}");
    assert!(without > by_offsets, "{without} {by_offsets}");
}

const THROWS: &str = include_str!("support/throws.cpp");

/// What catches exceptions is in a part of its own, which no branch leads to: that is in the profile, too.
#[test]
fn functions_in_parts_are_whole() {
    let _alone = Alone::wait();
    let Some(tools) = Tools::find().filter(|_| support::has("g++")) else { return };
    let written = tools.file("throws.cpp");
    fs::write(&written, THROWS).unwrap();
    let mut compile = Command::new("g++");
    compile.args(["-O2", "-Wl,--emit-relocs,--build-id,-z,now", "-o"]).arg(tools.file("throws")).arg(written);
    output_of(compile);
    tools.count("throws");
    let [fdata, yaml] = ["throws.fdata", "throws.yaml"].map(|name| fs::read_to_string(tools.file(name)).unwrap());
    assert!(fdata.contains(".cold/1 "), "{fdata}");
    assert!(yaml.contains("name:            '_ZL7guarded"), "{yaml}");
    let expected = tools.lay_out("throws", "throws.fdata", &[]);
    assert_eq!(figures(&tools.lay_out("throws", "throws.yaml", &[])), figures(&expected));
}

/// Of several modules it is of the one that is named, and is called as that one is, wherever it comes from.
#[test]
fn a_library_in_an_archive_has_its_own() {
    let _alone = Alone::wait();
    let Some(tools) = Tools::find() else { return };
    let (library, main) = PROGRAM.split_once("int main").unwrap();
    tools.build("libhot.so", &library.replace("static ", ""), &["-shared", "-fPIC", "-Wl,--emit-relocs"]);
    let declared = "#include <stdio.h>\n#include <stdlib.h>\ntypedef unsigned long number;\nextern number sink[8];\n\
                    number sift(number, number); number choose(number);\nint main";
    let libraries = tools.file("libhot.so");
    let place = format!("-Wl,-rpath,{}", tools.0.path().display());
    tools.build("program", &(declared.to_owned() + main), &[libraries.to_str().unwrap(), &place]);
    let mut record = hbbp();
    record.args(["record", "-q", "--overhead", "20", "-o"]).arg(tools.file("data")).arg("--");
    record.arg(tools.file("program")).arg("200000");
    output_of(record);
    let mut pack = hbbp();
    pack.arg("archive").arg(tools.file("data")).arg("-o").arg(tools.file("data.tar.zst"));
    output_of(pack);
    let [kept, moved] = ["libhot.so", "elsewhere"].map(|name| tools.file(name));
    let profile = |recording: &str, output: &str, binary: &str| {
        let mut export = hbbp();
        export.args(["export", "--format", "bolt-yaml", "--binary", binary]).arg(tools.file(recording));
        export.arg("-o").arg(tools.file(output));
        let told = output_of(export);
        assert!(!told.contains("llvm-bolt counts") && !told.contains("not in the profile"), "{told}");
        fs::read_to_string(tools.file(output)).unwrap()
    };
    let expected = profile("data", "library.yaml", kept.to_str().unwrap());
    assert!(expected.contains("  binary-name:     libhot.so\n"), "{expected}");
    assert!(
        expected.contains("name:            sift\n") && !expected.contains("name:            main\n"),
        "{expected}"
    );
    fs::rename(&kept, &moved).unwrap();
    fs::remove_file(tools.file("program")).unwrap();
    // Without --binary it is of what ran most, which comes from the archive.
    let mut export = hbbp();
    export
        .args(["export", "--format", "bolt-yaml"])
        .arg(tools.file("data.tar.zst"))
        .arg("-o")
        .arg(tools.file("packed.yaml"));
    output_of(export);
    assert_eq!(fs::read_to_string(tools.file("packed.yaml")).unwrap(), expected);
}
