//! Code of the kernel, on made-up recordings whose counts are known by hand: from a file, and from what the recording has of it.

#[path = "support/archived.rs"]
mod archived;
#[path = "support/debuginfod.rs"]
mod debuginfod;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};

use debuginfod::Server;
use formats::made_code::{KERNEL_PID, MadeCode};
use perfdata::{Avma, BuildId, BuildIdEntry, Features, MappedFile, Mmap};
use synthetic::{A, A_JNE, B, Burst, C, D, D_JMP, Recorder, SOURCE, burst_metadata};

/// Where the kernel is linked, and how far it was moved.
const LINKED: u64 = 0xffff_ffff_8100_0000;
const SLIDE: u64 = 0x1e00_0000;
const TEXT: u64 = LINKED + SLIDE;
const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";
const KERNEL: &str = "[kernel.kallsyms]";

/// The mapping of the kernel.
fn mapping(path: &[u8]) -> Mmap<'_> {
    Recorder::kernel_mapping(TEXT, path)
}

/// The four blocks as a kernel: `entry` from where its code begins, and `work` at C.
fn vmlinux(folder: &Path, name: &str, build_id: &str) -> Option<PathBuf> {
    let source = SOURCE
        .replace(".type _start, @function\n", "")
        .replace("_start:\n", "_start: .globl _text; _text: .type entry, @function; entry:\n")
        .replace(
            "    nop; nop; nop\n    jmp 2f\n1:",
            "    nop; nop; nop\n    jmp 2f\n.size entry, .-entry\n.type work, @function\nwork:\n1:",
        )
        .replace(".size _start, .-_start", ".size work, .-work");
    let text = format!("-Wl,-Ttext={LINKED:#x}");
    synthetic::assemble(folder, name, &source, &[&text, &format!("-Wl,--build-id=0x{build_id}")])
}

/// An address of the kernel's code as it ran, from that of the program.
fn moved(address: u64) -> u64 {
    address - A + TEXT
}

/// Two samples of the clock in the program, which executes 25 instructions in bursts; one in each of three blocks of the kernel.
fn recorder(folder: &Path, path: &[u8]) -> Option<Recorder> {
    let binary = synthetic::program(folder, "four", &[])?;
    let mut recorder = Recorder::traced(&binary);
    recorder.map(&mapping(path));
    let around = [(A_JNE, C), (D_JMP, A)];
    recorder.burst(&Burst { ip: A, branches: &around, instructions: 25, period: 25 });
    recorder.sample(A);
    recorder.sample(D);
    [A, A + 7, B, D].map(moved).iter().for_each(|ip| recorder.kernel_sample(*ip));
    Some(recorder)
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..20).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn features(build_id: Option<&str>) -> Features {
    let entry = |hex| BuildIdEntry { misc: 1, pid: -1, build_id: bytes(hex), path: KERNEL.into() };
    let build_ids = build_id.map(entry).into_iter().collect();
    Features { build_ids, os_release: Some("6.1.0-28-amd64".into()), ..burst_metadata("instructions") }
}

fn write(folder: &Path, recorder: Recorder, build_id: Option<&str>) -> String {
    let file = folder.join("run.data");
    std::fs::write(&file, recorder.finish(&features(build_id))).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Rows of a mix of the kernel's code: its keys and its count, in hundredths.
fn rows(file: &str, keys: &str, more: &[&str]) -> Vec<(String, u64)> {
    rows_of(&support::stdout(&[&["mix", "-i", file, "--rows", keys, "--format", "csv"], more].concat()), keys)
}

fn rows_of(csv: &str, keys: &str) -> Vec<(String, u64)> {
    let width = keys.split(',').count();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[..width].join(" "), (fields[width].parse::<f64>().unwrap() * 100.0).round() as u64)
    };
    let mut rows: Vec<_> = csv.lines().skip(1).map(row).filter(|(keys, _)| keys.starts_with(KERNEL)).collect();
    rows.sort();
    rows
}

fn is(expected: &[(&str, f64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(keys, count)| (format!("{KERNEL} {keys}"), (count * 100.0).round() as u64)).collect()
}

/// 2,000 ns of the program are 25 instructions, so a sample of 1,000 ns is 12.5 of them.
fn counted() -> Vec<(String, u64)> {
    let (in_a, in_b, in_d) = (25.0 / 21.0, 12.5 / 4.0, 12.5 / 2.0);
    is(&[
        ("entry jmp", in_b),
        ("entry jne", in_a),
        ("entry nop", 20.0 * in_a + 3.0 * in_b),
        ("work jmp", in_d),
        ("work nop", in_d),
    ])
}

const KEYS: &str = "module,function,mnemonic";

#[test]
fn a_kernel_that_was_moved_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let vmlinux = vmlinux.to_str().unwrap();
    for given in [format!("{KERNEL}={vmlinux}"), format!("{KERNEL}_text={vmlinux}"), vmlinux.to_owned()] {
        assert_eq!(rows(&file, KEYS, &["--binary", &given]), counted(), "{given}");
    }
    let annotated = support::stdout(&["annotate", "-i", &file, "--binary", vmlinux]);
    assert!(annotated.contains("ffffffff81000014  jne"), "addresses are those of the file: {annotated}");
}

#[test]
fn samples_count_alone_where_none_is_in_the_code_of_bursts() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    // Of a few samples none may be in the program by chance.
    for (samples, said, modules) in
        [(11, "all counts are of samples", KERNEL), (10, "are of branches", binary.to_str().unwrap())]
    {
        let mut recorder = Recorder::traced(&binary);
        recorder.map(&mapping(b"[kernel.kallsyms]_text"));
        recorder.burst(&Burst { ip: A, branches: &[(A_JNE, C), (D_JMP, A)], instructions: 25, period: 25 });
        (0..samples).for_each(|number| recorder.kernel_sample(moved(if number % 2 == 0 { A } else { D })));
        let file = write(folder.path(), recorder, Some(BUILD_ID));
        let arguments = ["mix", "-i", &file, "--rows", "module", "--binary", vmlinux.to_str().unwrap()];
        let mixed = support::stdout(&arguments);
        assert!(mixed.contains("no sample is in code whose branches were seen") && mixed.contains(said), "{mixed}");
        let csv = support::stdout(&[&arguments[..], &["--format", "csv"]].concat());
        let rows: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        assert_eq!(rows, [modules], "{csv}");
    }
}

/// What is said of unread code.
fn why(file: &str, more: &[&str]) -> String {
    let mixed = support::stdout(&[&["mix", "-v", "-i", file], more].concat());
    let line = mixed.lines().find(|line| line.contains("unread code of [kernel.kallsyms]"));
    line.unwrap_or_else(|| panic!("{mixed}")).to_owned()
}

#[test]
fn it_is_found_where_distributions_put_it_if_it_is_the_recorded_build() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let places = folder.path().join("root/usr/lib/debug/boot");
    std::fs::create_dir_all(&places).unwrap();
    let Some(right) = vmlinux(&places, "vmlinux-6.1.0-28-amd64", BUILD_ID) else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let root = folder.path().join("root");
    std::fs::copy(folder.path().join("four"), root.join("four")).unwrap();
    let symfs = ["--symfs", root.to_str().unwrap()];
    assert_eq!(rows(&file, KEYS, &symfs), counted());
    assert!(why(&file, &[]).contains("say --binary '[kernel.kallsyms]=VMLINUX'"));
    let Some(other) = vmlinux(&places, "other", &BUILD_ID.replace('0', "f")) else { return };
    std::fs::rename(&other, &right).unwrap();
    let refused = why(&file, &symfs);
    assert!(refused.contains("has build id f123456789abcdeff") && refused.contains("recorded was 0123"), "{refused}");
}

/// A mix where this server is asked: its rows, and what is said.
fn asking(folder: &Path, file: &str, keys: &str, server: &str) -> (Vec<(String, u64)>, String) {
    let cache = folder.join("cache");
    let variables = [("DEBUGINFOD_URLS", server), ("DEBUGINFOD_CACHE_PATH", cache.to_str().unwrap())];
    let mut mix = archived::command(folder, &folder.join("home"), &variables);
    let output = mix.args(["mix", "-i", file, "--rows", keys, "--format", "csv"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (rows_of(&String::from_utf8(output.stdout).unwrap(), keys), said)
}

#[test]
fn it_comes_from_a_server_where_it_is_not_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(kernel) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let server = Server::of(&kernel);
    let asked = |way: &str, wanted: &str| server.asked().contains(&format!("/{way}/buildid/{BUILD_ID}/{wanted}"));
    // What distributions build as its debug file has the code, too.
    let (counts, said) = asking(folder.path(), &file, KEYS, &server.address("found"));
    assert_eq!(counts, counted(), "{said}");
    assert!(asked("found", "debuginfo") && !asked("found", "executable"), "{:?}", server.asked());
    // What was got is kept: an archive has it.
    let cache = folder.path().join("cache");
    let absent = server.address("absent");
    let variables = [("DEBUGINFOD_URLS", &*absent), ("DEBUGINFOD_CACHE_PATH", cache.to_str().unwrap())];
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(&file, copy.join("run.data")).unwrap();
    let remove = || std::fs::remove_dir_all(&cache).unwrap();
    let archive = archived::reports_are_the_same(&copy, &[], folder.path(), &variables, remove);
    assert_eq!(rows(archive.to_str().unwrap(), KEYS, &[]), counted());
    let (counts, said) = asking(folder.path(), &file, KEYS, &server.address("executable"));
    assert_eq!(counts, counted(), "{said}");
    assert!(asked("executable", "debuginfo") && asked("executable", "executable"), "{:?}", server.asked());
    // Another build, and one that is cut, are not taken.
    for (way, why) in [("other", "is of build"), ("half", "its sections after")] {
        std::fs::remove_dir_all(&cache).unwrap();
        let (counts, said) = asking(folder.path(), &file, "module,function", &server.address(way));
        assert!(counts.iter().all(|(name, _)| !name.contains("entry")), "{counts:?}");
        assert!(said.contains(why) && said.contains(BUILD_ID), "{said}");
    }
    // For one that is named nobody is asked, but for its debug information.
    std::fs::remove_dir_all(&cache).unwrap();
    let given = format!("{KERNEL}={}", kernel.display());
    let mut mix = archived::command(folder.path(), folder.path(), &[]);
    mix.env("DEBUGINFOD_URLS", &absent).env("DEBUGINFOD_CACHE_PATH", &cache);
    assert!(mix.args(["mix", "-i", &file, "--binary", &given]).output().unwrap().status.success());
    assert!(asked("absent", "debuginfo") && !asked("absent", "executable"), "{:?}", server.asked());
}

/// A debug file as `objcopy --only-keep-debug` makes them, and the kernel without symbols.
#[test]
fn names_and_code_of_a_kernel_may_be_two_files_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let kept = folder.path().join("cache").join(BUILD_ID);
    std::fs::create_dir_all(&kept).unwrap();
    let Some(kernel) = vmlinux(&kept, "executable", BUILD_ID) else { return };
    let run = |tool: &str, arguments: &[&str]| {
        let status = std::process::Command::new(tool).args(arguments).current_dir(&kept).status();
        assert!(status.unwrap().success(), "{tool}");
    };
    if !testing::has("objcopy") || !testing::has("strip") {
        return;
    }
    run("objcopy", &["--only-keep-debug", "executable", "debuginfo"]);
    run("strip", &["executable"]);
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    // It has nothing: all comes from what was got before.
    let server = Server::of(&kernel);
    let (counts, said) = asking(folder.path(), &file, KEYS, &server.address("absent"));
    assert_eq!(counts, counted(), "{said}");
}

#[test]
fn a_file_that_is_not_this_kernel_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(other) = vmlinux(folder.path(), "vmlinux", &BUILD_ID.replace('0', "f")) else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let check = |path: &Path, expected: &str| {
        let given = format!("{KERNEL}={}", path.display());
        let why = why(&file, &["--binary", &given]);
        assert!(why.contains(expected), "{why}");
    };
    check(&other, "has build id f123456789abcdeff123456789abcdeff1234567, recorded was 0123456789abcdef");
    let boot = folder.path().join("vmlinuz");
    std::fs::write(&boot, b"MZ\xea\x07\x00\xc0\x07").unwrap();
    check(
        &boot,
        "vmlinuz is packed in a way that is not read (gzip, xz, LZ4 and Zstandard are): unpack it with scripts/extract-vmlinux",
    );
    check(&folder.path().join("none"), "there is no ");
}

#[test]
fn without_a_place_of_the_kernel_nothing_is_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    let given = format!("{KERNEL}={}", vmlinux.display());
    let binary = ["--binary", given.as_str()];
    let hidden = Mmap { start: Avma(0), pgoff: 0, ..mapping(b"[kernel.kallsyms]_text") };
    let unaligned = Mmap { pgoff: TEXT + 0x123, ..mapping(b"[kernel.kallsyms]_text") };
    for (mapping, expected) in
        [(hidden, "kernel.kptr_restrict=0"), (unaligned, "is another kernel: its code begins at 0xf")]
    {
        let Some(program) = synthetic::program(folder.path(), "four", &[]) else { return };
        let mut recorder = Recorder::traced(&program);
        recorder.map(&mapping);
        recorder.sample(A);
        recorder.kernel_sample(TEXT);
        let file = write(folder.path(), recorder, Some(BUILD_ID));
        let why = why(&file, &binary);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_mapping_without_a_symbol_begins_with_the_code() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), KERNEL.as_bytes()) else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    let stripped = std::process::Command::new("strip").arg(&vmlinux).status();
    if !stripped.is_ok_and(|status| status.success()) {
        return testing::skip!(Tool, "strip does not strip");
    }
    let file = write(folder.path(), recorder, None);
    let given = format!("{KERNEL}={}", vmlinux.display());
    let of_mnemonics = rows(&file, "module,mnemonic", &["--binary", &given]);
    let named: Vec<&str> = of_mnemonics.iter().map(|(keys, _)| keys.as_str()).collect();
    assert_eq!(named, ["jmp", "jne", "nop"].map(|name| format!("{KERNEL} {name}")));
}

/// The bytes of the four blocks: 20 nops, `jne`, 3 nops, `jmp`, 3 nops, `jmp`.
fn text() -> Vec<u8> {
    [&[0x90; 20][..], &[0x75, 0x05], &[0x90; 3], &[0xeb, 0x02], &[0x90; 3], &[0xeb, 0xe0]].concat()
}

/// What a recording keeps of the kernel: all of it, in two pieces.
fn keep(recorder: &mut Recorder, text: &[u8]) {
    let (first, rest) = text.split_at(16);
    let pieces = vec![(TEXT + 16, rest), (TEXT, first)];
    recorder.code(&MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces });
    let work = C - A;
    let names: Vec<(u64, u64, &[u8])> = vec![(TEXT, work, b"entry"), (TEXT + work, 5, b"work")];
    recorder.code(&MadeCode::Named { since: 0, pid: KERNEL_PID, names });
}

/// A recording that has the kernel's code, and the folder that it is in.
fn kept() -> Option<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = recorder(folder.path(), b"[kernel.kallsyms]_text")?;
    keep(&mut recorder, &text());
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    Some((folder, file))
}

#[test]
fn what_the_recording_has_of_the_kernel_is_read() {
    let Some((_folder, file)) = kept() else { return };
    assert_eq!(rows(&file, KEYS, &[]), counted());
    let annotated = support::stdout(&["annotate", "-i", &file]);
    assert!(annotated.contains("ffffffff9f000014  jne"), "addresses are those where it ran: {annotated}");
}

/// Samples of the kernel are 50 of 75 instructions, and 4 of 6 samples: reports of branches say what they are of.
#[test]
fn what_only_samples_count_is_said_to_be_left_out_of_branches() {
    let Some((_folder, file)) = kept() else { return };
    let paths = support::stdout(&["paths", &file]);
    let part = "# left out 66.67 % of all instructions (estimated) are in code that only samples count, and in no path";
    assert!(paths.lines().any(|line| line.starts_with(part)), "{paths}");
    let differences = support::stdout(&["diff", &file, &file]);
    let part = "# weaker   both: left out: code of which samples were seen, but no branches (66.67 % of all samples)";
    assert!(differences.lines().any(|line| line.starts_with(part)), "{differences}");
    assert!(differences.contains("100.00 % after of what is compared are in files"), "{differences}");
    let by_function = support::stdout(&["diff", &file, &file, "--rows", "function"]);
    assert!(by_function.contains("(66.67 % of all samples); the rows have it"), "{by_function}");
}

/// The recording has the kernel's code and no lines of it: its file is asked for, and nobody is told to compile it.
#[test]
fn a_profile_by_line_asks_for_the_kernels_file() {
    let Some((_folder, file)) = kept() else { return };
    let output = support::run(&["export", "--format", "llvm-text", "-i", &file, "--binary", KERNEL]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("profile of [kernel.kallsyms]: 66.67 % of all samples"), "{said}");
    assert!(said.contains("name its file, with debug information: --binary '[kernel.kallsyms]=VMLINUX'"), "{said}");
    assert!(!said.contains("compile it with -g"), "{said}");
}

#[test]
fn the_code_that_ran_goes_before_a_file_unless_the_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    // A static key: the running kernel has a jump where the file has nops.
    let mut patched = text();
    patched[..2].copy_from_slice(&[0xeb, 0x00]);
    keep(&mut recorder, &patched);
    let root = folder.path().join("root/boot");
    std::fs::create_dir_all(&root).unwrap();
    let Some(vmlinux) = vmlinux(&root, "vmlinux-6.1.0-28-amd64", BUILD_ID) else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let jumps = |more: &[&str]| {
        let rows = rows(&file, KEYS, more);
        rows.iter().find(|(keys, _)| keys.ends_with("entry jmp")).unwrap().1
    };
    let symfs = folder.path().join("root");
    std::fs::copy(folder.path().join("four"), symfs.join("four")).unwrap();
    let of_file = jumps(&["--binary", &format!("{KERNEL}={}", vmlinux.display())]);
    let of_copy = jumps(&["--symfs", symfs.to_str().unwrap()]);
    assert_eq!(of_file, counted()[0].1);
    assert!(of_copy > of_file, "{of_copy}: one block more that ends with a jump");
}

/// The program's bursts and samples, and a kernel at its place: a sample of the clock is 12.5 instructions.
fn program_and_kernel(folder: &Path) -> Option<Recorder> {
    let mut recorder = Recorder::traced(&synthetic::program(folder, "four", &[])?);
    recorder.map(&mapping(b"[kernel.kallsyms]_text"));
    recorder.burst(&Burst { ip: A, branches: &[(A_JNE, C), (D_JMP, A)], instructions: 25, period: 25 });
    recorder.sample(A);
    recorder.sample(D);
    Some(recorder)
}

/// A static key was switched on and off again: the copy of the end has nops, and what ran between had a jump.
#[test]
fn samples_count_in_the_code_that_the_kernel_had_then() {
    let folder = tempfile::tempdir().unwrap();
    let (nops, jump) = ([0x90; 2], [0xeb, 0x00]);
    let record = |switched: bool| {
        let mut recorder = program_and_kernel(folder.path())?;
        recorder.kernel_sample(TEXT);
        if switched {
            recorder.poke(TEXT, &nops, &jump);
        }
        (0..2).for_each(|_| recorder.kernel_sample(TEXT));
        if switched {
            recorder.poke(TEXT, &jump, &nops);
        }
        recorder.kernel_sample(TEXT);
        recorder.kernel_sample(moved(D));
        keep(&mut recorder, &text());
        Some(write(folder.path(), recorder, Some(BUILD_ID)))
    };
    let of_d = 12.5 / 2.0;
    let Some(file) = record(false) else { return };
    let in_a = 4.0 * 12.5 / 21.0;
    let unswitched = [("entry jne", in_a), ("entry nop", 20.0 * in_a), ("work jmp", of_d), ("work nop", of_d)];
    assert_eq!(rows(&file, KEYS, &[]), is(&unswitched));
    let Some(file) = record(true) else { return };
    let in_a = 2.0 * 12.5 / 21.0;
    let switched = [
        ("entry jmp", 2.0 * 12.5),
        ("entry jne", in_a),
        ("entry nop", 20.0 * in_a),
        ("work jmp", of_d),
        ("work nop", of_d),
    ];
    assert_eq!(rows(&file, KEYS, &[]), is(&switched));
    let blocks = support::stdout(&["blocks", "-i", &file, "--format", "csv", "--filter", "function=entry"]);
    let starts: Vec<&str> = blocks.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert!(
        starts.iter().all(|start| start.starts_with("0xffffffff9f0000")),
        "addresses are those it ran at: {blocks}"
    );
}

/// Where the copy is another than the last patch made it, the records are believed: the copy came after.
#[test]
fn patches_tell_what_ran_though_the_copy_is_older_or_newer() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = program_and_kernel(folder.path()) else { return };
    recorder.poke(TEXT, &[0xcc, 0xcc], &[0xeb, 0x00]);
    recorder.kernel_sample(TEXT);
    keep(&mut recorder, &text());
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    assert_eq!(rows(&file, KEYS, &[]), is(&[("entry jmp", 12.5)]));
}

/// Where programs of BPF are.
const JITED: u64 = 0xffff_ffff_c010_0000;

/// The rows of code that the kernel has made.
fn made_rows(file: &str) -> Vec<(String, f64)> {
    let csv =
        support::stdout(&["mix", "-i", file, "--rows", KEYS, "--format", "csv", "--filter", "module=[kernel.jit]"]);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[1..3].join(" "), fields[3].parse().unwrap())
    };
    let mut rows: Vec<(String, f64)> = csv.lines().skip(1).map(row).collect();
    rows.sort_by(|one, next| one.0.cmp(&next.0));
    rows
}

/// One program is unloaded, and another one comes to its addresses; a third one was there before the recording, and stays.
#[test]
fn programs_of_bpf_at_the_same_addresses_are_told_apart_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = program_and_kernel(folder.path()) else { return };
    let code = |recorder: &mut Recorder, time, at, bytes: &[u8]| {
        recorder.code(&MadeCode::Executed { time, pid: KERNEL_PID, pieces: vec![(at, bytes)] });
    };
    let (first, second) = (b"bpf_prog_0123456789abcdef_first", b"bpf_prog_fedcba9876543210_second");
    let held = JITED + 0x1000;
    let loaded = |recorder: &mut Recorder, name: &[u8], bytes: &[u8]| {
        let time = recorder.next_time();
        recorder.ksymbol(JITED, 4, name, false);
        code(recorder, time, JITED, bytes);
    };
    loaded(&mut recorder, first, &[0x90, 0x90, 0x90, 0xc3]);
    recorder.kernel_sample(JITED);
    recorder.kernel_sample(held);
    recorder.ksymbol(JITED, 4, first, true);
    loaded(&mut recorder, second, &[0xf8, 0xf9, 0xf5, 0xc3]);
    (0..2).for_each(|_| recorder.kernel_sample(JITED));
    recorder.ksymbol(JITED, 4, second, true);
    code(&mut recorder, 1, held, &[0x99, 0xc3]);
    recorder.ksymbol(held, 2, b"bpf_prog_0011223344556677_held", false);
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let (of_first, of_second, of_held) = (12.5 / 4.0, 2.0 * 12.5 / 4.0, 12.5 / 2.0);
    let expected = [
        ("bpf_prog_0011223344556677_held cdq", of_held),
        ("bpf_prog_0011223344556677_held ret", of_held),
        ("bpf_prog_0123456789abcdef_first nop", 3.0 * of_first),
        ("bpf_prog_0123456789abcdef_first ret", of_first),
        ("bpf_prog_fedcba9876543210_second clc", of_second),
        ("bpf_prog_fedcba9876543210_second cmc", of_second),
        ("bpf_prog_fedcba9876543210_second ret", of_second),
        ("bpf_prog_fedcba9876543210_second stc", of_second),
    ];
    let rows = made_rows(&file);
    let keys: Vec<&str> = rows.iter().map(|(keys, _)| keys.as_str()).collect();
    assert_eq!(keys, expected.map(|(keys, _)| keys));
    for ((keys, count), (_, wanted)) in rows.iter().zip(expected) {
        assert!((count - wanted).abs() < 0.01, "{keys}: {count}, expected {wanted}");
    }
    let annotated = support::stdout(&["annotate", "-i", &file, "-f", "bpf_prog_fedcba9876543210_second"]);
    assert!(annotated.contains("ffffffffc0100002  cmc"), "{annotated}");
}

/// A call in a program is patched while it runs: what is patched goes on from what it was.
#[test]
fn made_code_that_is_patched_is_other_code_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = program_and_kernel(folder.path()) else { return };
    recorder.ksymbol(JITED, 4, b"bpf_prog_0123456789abcdef", false);
    let pieces = vec![(JITED, &[0x90, 0x90, 0x90, 0xc3][..])];
    recorder.code(&MadeCode::Executed { time: 1, pid: KERNEL_PID, pieces });
    recorder.kernel_sample(JITED);
    recorder.poke(JITED, &[0x90], &[0xc3]);
    recorder.kernel_sample(JITED);
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let rows = made_rows(&file);
    let count = |mnemonic: &str| rows.iter().find(|(keys, _)| keys.ends_with(mnemonic)).unwrap().1;
    assert!(
        (count("nop") - 3.0 * 12.5 / 4.0).abs() < 0.01 && (count("ret") - 12.5 / 4.0 - 12.5).abs() < 0.01,
        "{rows:?}"
    );
}

/// What no kernel writes is passed over, or left out and counted.
#[test]
fn absurd_changes_of_the_kernels_code_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = program_and_kernel(folder.path()) else { return };
    let long = vec![0x90; 20_000];
    for at in [0, 0x40_1000, 1 << 63, TEXT - 1, TEXT + 30, u64::MAX - 1, u64::MAX, JITED] {
        for (old, new) in [(&[][..], &[][..]), (&[], &[0x90]), (&[1, 2, 3], &[]), (&long, &long)] {
            recorder.poke(at, old, new);
        }
        for unregister in [true, false, false, true] {
            recorder.ksymbol(at, u32::MAX, b"bpf_prog_", unregister);
        }
        for time in [0, 1050] {
            let pieces = vec![(at, &[0x90; 8][..]), (at.wrapping_add(4), &[0xc3; 8])];
            recorder.code(&MadeCode::Executed { time, pid: KERNEL_PID, pieces });
        }
        recorder.kernel_sample(at);
    }
    recorder.kernel_sample(TEXT);
    keep(&mut recorder, &text());
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    assert!(!rows(&file, KEYS, &[]).is_empty());
}

/// Each recording has the functions that were hit, where that boot put them.
#[test]
fn kernels_of_two_boots_are_compared_by_function() {
    let folder = tempfile::tempdir().unwrap();
    let side = |name: &str, moved_by: u64, work: bool| {
        let binary = synthetic::program(folder.path(), "four", &[])?;
        let mut recorder = Recorder::traced(&binary);
        let text_at = TEXT + moved_by;
        recorder.map(&Mmap { start: Avma(text_at), pgoff: text_at, ..mapping(b"[kernel.kallsyms]_text") });
        recorder.burst(&Burst { ip: A, branches: &[(A_JNE, C), (D_JMP, A)], instructions: 25, period: 25 });
        recorder.sample(A);
        let (code, entry_size) = (text(), C - A);
        let (entry, of_work) = code.split_at(entry_size as usize);
        let mut pieces = vec![(text_at, entry)];
        let mut names: Vec<(u64, u64, &[u8])> = vec![(text_at, entry_size, b"entry")];
        (0..3).for_each(|_| recorder.kernel_sample(text_at));
        if work {
            pieces.push((text_at + entry_size, of_work));
            names.push((text_at + entry_size, of_work.len() as u64, b"work"));
            recorder.kernel_sample(text_at + entry_size);
        }
        recorder.code(&MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces });
        recorder.code(&MadeCode::Named { since: 0, pid: KERNEL_PID, names });
        let file = folder.path().join(name);
        std::fs::write(&file, recorder.finish(&features(Some(BUILD_ID)))).unwrap();
        Some(file.to_str().unwrap().to_owned())
    };
    let (Some(first), Some(other_boot)) = (side("first", 0, false), side("other", 0x20_0000, true)) else { return };
    let Some(same_boot) = side("same", 0, true) else { return };
    for other in [&other_boot, &same_boot] {
        for [before, after] in [[&first, other], [other, &first]] {
            let csv = support::stdout(&["diff", before, after, "--rows", "function", "--format", "csv"]);
            let row = |name: &str| csv.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{csv}"));
            let shares: Vec<f64> = row("entry").split(',').filter_map(|field| field.parse().ok()).collect();
            assert!(shares[0] > 0.1 && shares[1] > 0.1, "{csv}");
            row("work");
            let said = support::stdout(&["diff", before, after]);
            assert!(!said.contains("does not fit"), "{said}");
        }
    }
}

/// Code of modules is told apart by what is mapped there: from the beginning, or known in the end, if it was loaded meanwhile.
#[test]
fn code_of_a_kernel_module_is_its_own() {
    for is_known_in_the_end in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
        let path = b"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz";
        let mapping = Mmap { start: Avma(MODULE), len: 0x1000, pgoff: 0, ..mapping(path) };
        if is_known_in_the_end {
            recorder.kernel_sample(MODULE + 0x100);
            recorder.map(&mapping);
        } else {
            recorder.map(&mapping);
            recorder.kernel_sample(MODULE + 0x100);
        }
        let text = text();
        recorder.code(&MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces: vec![(MODULE + 0x100, &text)] });
        recorder.code(&MadeCode::Named { since: 0, pid: KERNEL_PID, names: vec![(MODULE + 0x100, 31, b"ext4_read")] });
        let file = write(folder.path(), recorder, Some(BUILD_ID));
        let csv = support::stdout(&["mix", "-i", &file, "--rows", "module,function,mnemonic", "--format", "csv"]);
        assert!(csv.lines().any(|line| line.contains("ext4.ko.xz,ext4_read,jne,")), "{csv}");
        let blocks = support::stdout(&["blocks", "-i", &file, "--format", "json"]);
        assert!(blocks.contains(r#""start":256"#), "addresses are those in the module: {blocks}");
    }
}

/// Where a module of the kernel ran.
const MODULE: u64 = 0xffff_ffff_c040_0000;

/// `write` jumps to `slow`, and that to `read`, which calls the kernel. Loaded, `read` is at 6, `slow` at 0x30, and the start-up is elsewhere.
const MODULE_SOURCE: &str = "
.text
.type write, @function
write: nop
    jmp slow
.size write, .-write
.globl read
.type read, @function
read:
    call __fentry__
    .rept 20
    nop
    .endr
    call printk
    ret
.size read, .-read
.section .init.text, \"ax\"
.type init_module, @function
init_module:
    .rept 100
    ud2
    .endr
.size init_module, .-init_module
.section .text.unlikely, \"ax\"
.balign 16
.type slow, @function
slow: nop
    jmp read
.size slow, .-slow
.data
    .quad read
.section .note.GNU-stack,\"\",@progbits
";

/// The file of a module of the kernel, which is not linked.
fn kernel_module(folder: &Path) -> Option<PathBuf> {
    synthetic::assemble(folder, "ext4.ko", MODULE_SOURCE, &["-c"])
}

/// The same with a build id.
fn kernel_module_with_id(folder: &Path) -> Option<PathBuf> {
    let id = bytes(BUILD_ID).iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let note = format!(".section .note.gnu.build-id,\"a\",@note\n.long 4,20,3\n.asciz \"GNU\"\n.byte {id}\n");
    synthetic::assemble(folder, "ext4.ko", &format!("{MODULE_SOURCE}{note}"), &["-c"])
}

/// Samples in each function of the module, and the way through it twice, by branches of the hardware.
fn record_module(folder: &Path, path: &[u8], file: MappedFile) -> Option<String> {
    let program = synthetic::program(folder, "four", &[])?;
    let mut recorder = Recorder::new(&program);
    recorder.map(&mapping(b"[kernel.kallsyms]_text"));
    recorder.map(&Mmap { start: Avma(MODULE), len: 0x2000, pgoff: 0, file, ..mapping(path) });
    recorder.stack(&synthetic::AROUND);
    let [enter, read, slow] = [0, 6, 0x30].map(|at| MODULE + at);
    let through = [(enter + 1, slow), (slow + 1, read), (read + 25, TEXT)];
    let twice = [&[(TEXT + 9, enter)][..], &through, &[(TEXT + 9, enter)], &through].concat();
    recorder.kernel_stack(&twice);
    [enter, slow, read, read + 30].iter().for_each(|ip| recorder.kernel_sample(*ip));
    Some(write(folder, recorder, None))
}

#[test]
fn modules_are_read_from_their_files_as_the_kernel_loads_them() {
    let folder = tempfile::tempdir().unwrap();
    let places = folder.path().join("root/usr/lib/modules/6.1.0/kernel/fs/ext4");
    std::fs::create_dir_all(&places).unwrap();
    let path = b"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz";
    let Some(file) = record_module(folder.path(), path, MappedFile::Unknown) else { return };
    let Some(module) = kernel_module(folder.path()) else { return };
    let symfs = folder.path().join("root");
    let symfs = ["--symfs", symfs.to_str().unwrap()];
    let blocks = |more: &[&str]| {
        support::stdout(&[&["blocks", "-i", &file, "--format", "csv", "--filter", "module~ext4"], more].concat())
    };
    assert!(!blocks(&symfs).contains(",read,"), "the file is not there: {}", blocks(&symfs));
    // It is packed otherwise than it was recorded.
    let packed = zstd::encode_all(std::fs::File::open(&module).unwrap(), 3).unwrap();
    std::fs::write(places.join("ext4.ko.zst"), packed).unwrap();
    let found = blocks(&symfs);
    let row = |function: &str| -> Vec<&str> {
        let row = found.lines().find(|line| line.contains(&format!(",{function},")));
        row.unwrap_or_else(|| panic!("{found}")).split(',').collect()
    };
    for (function, start) in [("write", "0x0"), ("read", "0x6"), ("slow", "0x30")] {
        assert_eq!(row(function)[1], start, "{found}");
        assert_eq!(row(function)[6], row("write")[6], "each ran as often, by the branches: {found}");
    }
    let named = ["--binary", &format!("ext4.ko.xz={}", module.display())].map(str::to_owned);
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(blocks(&named), found, "as it is when it is not packed");
    let annotated = support::stdout(&[&["annotate", "-i", &file, "-f", "read"], &named[..]].concat());
    assert!(annotated.contains("printk"), "what is called elsewhere has its name: {annotated}");
    assert!(!annotated.contains("__fentry__"), "{annotated}");
}

/// Where it is not installed, it is found by its build id alone, and so is one that was recorded without a path.
#[test]
fn modules_come_from_a_server_and_from_archives() {
    for path in [&b"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz"[..], b"[ext4]"] {
        let folder = tempfile::tempdir().unwrap();
        let places = folder.path().join("server");
        std::fs::create_dir(&places).unwrap();
        let Some(module) = kernel_module_with_id(&places) else { return };
        let id = MappedFile::BuildId(BuildId::new(&bytes(BUILD_ID)).unwrap());
        let Some(file) = record_module(folder.path(), path, id) else { return };
        let server = Server::of(&module);
        let cache = folder.path().join("cache");
        let address = server.address("executable");
        let variables = [("DEBUGINFOD_URLS", &*address), ("DEBUGINFOD_CACHE_PATH", cache.to_str().unwrap())];
        let blocks = |file: &str, variables: &[(&str, &str)]| {
            let mut blocks = archived::command(folder.path(), folder.path(), variables);
            let output = blocks.args(["blocks", "-i", file, "--format", "csv"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(!blocks(&file, &[]).contains(",slow,"));
        let found = blocks(&file, &variables);
        assert!(["write", "read", "slow"].iter().all(|name| found.contains(&format!(",{name},"))), "{found}");
        let asked = server.asked().into_iter().filter(|asked| asked.contains(BUILD_ID)).collect::<Vec<_>>();
        assert_eq!(asked, ["executable", "debuginfo"].map(|file| format!("/executable/buildid/{BUILD_ID}/{file}")));
        let remove = || {
            std::fs::remove_dir_all(&cache).unwrap();
            std::fs::remove_file(folder.path().join("four")).unwrap();
        };
        let archive = archived::reports_are_the_same(folder.path(), &[], folder.path(), &variables, remove);
        assert!(blocks(archive.to_str().unwrap(), &[]).contains(",slow,"));
    }
}

/// As it is installed: packed, below `/usr`.
#[test]
fn an_archive_has_files_of_modules() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let places = root.join("usr/lib/modules/6.1.0/kernel/fs/ext4");
    std::fs::create_dir_all(&places).unwrap();
    let path = b"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz";
    if record_module(folder.path(), path, MappedFile::Unknown).is_none() {
        return;
    }
    let Some(module) = kernel_module(folder.path()) else { return };
    let packed = zstd::encode_all(std::fs::File::open(&module).unwrap(), 3).unwrap();
    std::fs::write(places.join("ext4.ko.zst"), packed).unwrap();
    std::fs::rename(folder.path().join("four"), root.join("four")).unwrap();
    std::fs::remove_file(module).unwrap();
    let remove = || std::fs::remove_dir_all(&root).unwrap();
    let archive = archived::reports_are_the_same(folder.path(), &["--symfs", "root"], folder.path(), &[], remove);
    let blocks = support::stdout(&["blocks", "-i", archive.to_str().unwrap(), "--format", "csv"]);
    assert!(["write", "read", "slow"].iter().all(|name| blocks.contains(&format!(",{name},"))), "{blocks}");
}

/// A boot image of one sector of setup, with the kernel packed in it.
fn boot_image(kernel: &Path) -> Vec<u8> {
    let payload = zstd::encode_all(std::fs::File::open(kernel).unwrap(), 3).unwrap();
    let mut image = vec![0; 0x400];
    image[..2].copy_from_slice(b"MZ");
    image[0x1f1] = 1;
    image[0x202..0x208].copy_from_slice(b"HdrS\x0f\x02");
    image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    [image, payload].concat()
}

/// Distributions install the kernel without its symbols, and a list of them beside it.
#[test]
fn boot_images_are_unpacked_and_named_by_the_map_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    if !std::process::Command::new("strip").arg(&vmlinux).status().is_ok_and(|status| status.success()) {
        return testing::skip!(Tool, "strip does not strip");
    }
    let boot = folder.path().join("root/boot");
    std::fs::create_dir_all(&boot).unwrap();
    std::fs::copy(folder.path().join("four"), folder.path().join("root/four")).unwrap();
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let symfs = folder.path().join("root");
    let symfs = ["--symfs", symfs.to_str().unwrap()];
    std::fs::write(boot.join("vmlinuz-6.1.0-28-amd64"), boot_image(&vmlinux)).unwrap();
    let functions = |more: &[&str]| rows(&file, "module,function", more);
    assert_eq!(functions(&symfs).len(), 1, "it has no names");
    let work = LINKED + C - A;
    let map = format!("{LINKED:016x} T _text\n{LINKED:016x} t entry\n{work:016x} t work\n");
    std::fs::write(boot.join("System.map-6.1.0-28-amd64"), &map).unwrap();
    assert_eq!(rows(&file, KEYS, &symfs), counted());
    // The list goes into an archive with the kernel.
    let archive = folder.path().join("run.tar.zst");
    let archive = archive.to_str().unwrap();
    support::stdout(&[&["archive", &file, "-o", archive], &symfs[..]].concat());
    assert_eq!(rows(archive, KEYS, &[]), counted());
    std::fs::write(boot.join("System.map-6.1.0-28-amd64"), "ffffffffffffffff B The real System.map is in a package\n")
        .unwrap();
    assert_eq!(functions(&symfs).len(), 1, "a list without a place names nothing");
}

/// `perf record --kcore` makes a folder with the kernel's memory, where it ran, and its names.
#[test]
fn the_copy_that_perf_keeps_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let at = format!("-Wl,-Ttext={TEXT:#x}");
    let Some(kcore) = synthetic::assemble(folder.path(), "kcore", SOURCE, &[&at, "-Wl,--build-id=none"]) else {
        return;
    };
    let mut core = std::fs::read(&kcore).unwrap();
    core[16] = 4; // ET_CORE
    std::fs::write(&kcore, core).unwrap();
    let names = |text: u64| {
        let work = text + C - A;
        let names =
            format!("{text:016x} T _text\n{text:016x} t entry\nodd\n{work:016x} t work\n0000000000000000 A zero\n");
        std::fs::write(folder.path().join("kallsyms"), names).unwrap();
    };
    let given = format!("{KERNEL}={}", kcore.display());
    assert!(why(&file, &["--binary", &given]).contains("kallsyms"), "it has no names");
    names(TEXT);
    assert_eq!(rows(&file, KEYS, &["--binary", &given]), counted());
    // The kernel's code and names are packed, and not all of the copy, which here ends in something else.
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for name in ["kcore", "kallsyms", "run.data"] {
        std::fs::copy(folder.path().join(name), copy.join(name)).unwrap();
    }
    let more = [std::fs::read(&kcore).unwrap(), vec![1; 1 << 20]].concat();
    std::fs::write(copy.join("kcore"), more).unwrap();
    let remove = || ["kcore", "kallsyms"].iter().for_each(|name| std::fs::remove_file(copy.join(name)).unwrap());
    let report = |arguments: &[&str]| {
        let output = archived::command(&copy, &copy, &[]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        (output.stdout, output.stderr)
    };
    let named = ["--binary", "[kernel.kallsyms]=kcore"];
    let reports = [&["mix", "-v"][..], &["annotate", "--format", "json"], &["blocks", "--format", "json"]];
    let before = reports.map(|of| report(&[of, &["run.data"], &named].concat()));
    report(&[&["archive", "run.data", "-o", "run.tar.zst"], &named[..]].concat());
    remove();
    assert!(before == reports.map(|of| report(&[of, &["run.tar.zst"]].concat())));
    let archive = copy.join("run.tar.zst");
    assert_eq!(rows(archive.to_str().unwrap(), KEYS, &[]), counted());
    let tar = zstd::decode_all(std::fs::File::open(&archive).unwrap()).unwrap();
    assert!(tar.len() < 1 << 20, "{}", tar.len());
    std::fs::write(folder.path().join("kallsyms"), "0000000000000000 T _text\n").unwrap();
    assert!(why(&file, &["--binary", &given]).contains("nothing tells that it is the recorded kernel"));
    names(TEXT + 0x20_0000);
    assert!(why(&file, &["--binary", &given]).contains("is another kernel"));
}

/// With the code of the recording, and with a file.
#[test]
fn it_is_kept_with_the_analysis() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    keep(&mut recorder, &text());
    // What is small is not kept; what was written just now is not either.
    (0..30_000).for_each(|_| recorder.kernel_sample(moved(D)));
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let cache = folder.path().join("cache");
    let given = format!("{KERNEL}={}", vmlinux.display());
    for more in [&[][..], &["--binary", &given]] {
        let mix = || {
            let mut hbbp = support::hbbp();
            hbbp.args(["mix", "-v", "-i", &file, "--rows", KEYS]).args(more);
            let output = hbbp.env("XDG_CACHE_HOME", &cache).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let made = mix();
        let again = mix();
        assert!(made.contains("entry") && again.contains("# cache"), "{again}");
        let rows =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows(&again), rows(&made));
    }
}

#[test]
fn an_archive_has_the_kernels_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let archive = folder.path().join("run.tar.zst");
    let archive = archive.to_str().unwrap();
    support::stdout(&["archive", &file, "--binary", vmlinux.to_str().unwrap(), "-o", archive]);
    std::fs::remove_file(&vmlinux).unwrap();
    assert_eq!(rows(archive, KEYS, &[]), counted());
    // Unpacked by hand it is where `--symfs` finds it.
    let by_hand = folder.path().join("by-hand");
    let tar = zstd::decode_all(std::fs::File::open(archive).unwrap()).unwrap();
    tar::Archive::new(&*tar).unpack(&by_hand).unwrap();
    assert_eq!(rows(&file, KEYS, &["--symfs", by_hand.join("root").to_str().unwrap()]), counted());
}

/// The recorded code has no names but those of the recording.
#[test]
fn an_archive_has_the_kernels_file_beside_recorded_code() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let Some(vmlinux) = vmlinux(folder.path(), "vmlinux", BUILD_ID) else { return };
    keep(&mut recorder, &text());
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let archive = folder.path().join("run.tar.zst");
    let archive = archive.to_str().unwrap();
    let given = format!("{KERNEL}={}", vmlinux.display());
    let before = support::stdout(&["annotate", "-i", &file, "--binary", &given, "--format", "json"]);
    support::stdout(&["archive", &file, "--binary", &given, "-o", archive]);
    std::fs::remove_file(&vmlinux).unwrap();
    let tar = zstd::decode_all(std::fs::File::open(archive).unwrap()).unwrap();
    let mut tar = tar::Archive::new(&*tar);
    let mut names = tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
    assert!(names.any(|name| name.starts_with("root/usr/lib/debug/.build-id/") && name.ends_with(".debug")));
    assert_eq!(support::stdout(&["annotate", "-i", archive, "--format", "json"]), before);
}

/// Profiles are of the kernel where its file is given, and no program's.
#[test]
fn the_kernel_has_a_profile_where_its_file_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let vmlinux = vmlinux(folder.path(), "vmlinux", BUILD_ID).unwrap();
    let record = |is_patched: bool| {
        let mut recorder = Recorder::new(&binary);
        recorder.map(&mapping(b"[kernel.kallsyms]_text"));
        recorder.stack(&synthetic::AROUND);
        if is_patched {
            recorder.kernel_sample(TEXT);
            recorder.poke(TEXT, &[0xeb, 0x00], &text()[..2]);
            keep(&mut recorder, &text());
        }
        (0..2).for_each(|_| recorder.kernel_stack(&synthetic::AROUND.map(|(from, to)| (moved(from), moved(to)))));
        write(folder.path(), recorder, None)
    };
    let file = record(false);
    let profile = |given: &[&str]| support::stdout(&[&["export", "--format", "bolt", "-i", &file], given].concat());
    let of_program = "\
1 _start 14 1 _start 16 0 25
1 _start 14 1 _start 1b 0 25
1 _start 19 1 _start 1d 0 25
1 _start 1c 1 _start 1d 0 25
1 _start 1e 1 _start 0 0 50
";
    let of_kernel = "\
1 entry/1 14 1 entry/1 16 0 50
1 entry/1 14 1 work/1 0 0 50
1 entry/1 19 1 work/1 2 0 50
1 work/1 1 1 work/1 2 0 50
1 work/1 3 1 entry/1 0 0 100
";
    let (program, kernel) = (binary.to_str().unwrap(), format!("{KERNEL}={}", vmlinux.display()));
    assert_eq!(profile(&[]), of_program);
    assert_eq!(profile(&["--binary", &kernel]), of_kernel);
    assert_eq!(profile(&["--binary", &kernel, "--binary", program]), of_program);
    // What a function was before it was patched is not the kernel.
    record(true);
    assert_eq!(profile(&["--binary", &kernel]), of_kernel);
}

/// Names alone, of a recording where nobody may read the kernel's memory.
fn name_alone(recorder: &mut Recorder) {
    let work = C - A;
    let names: Vec<(u64, u64, &[u8])> = vec![(TEXT, work, b"entry"), (TEXT + work, 5, b"work"), (MODULE, 16, b"read")];
    recorder.code(&MadeCode::Named { since: 0, pid: KERNEL_PID, names });
}

/// A sample of 1,000 ns is 12.5 instructions, as of the kernel without names.
#[test]
fn functions_have_their_names_without_their_code() {
    let folder = tempfile::tempdir().unwrap();
    let sides = [false, true].map(|named| {
        let mut recorder = recorder(folder.path(), b"[kernel.kallsyms]_text")?;
        recorder.map(&Mmap { start: Avma(MODULE), len: 0x1000, pgoff: 0, ..mapping(b"[ext4]") });
        recorder.kernel_sample(MODULE + 4);
        recorder.kernel_sample(moved(D) + 0x1000);
        if named {
            name_alone(&mut recorder);
        }
        Some(write(folder.path(), recorder, Some(BUILD_ID)))
    });
    let [Some(_), Some(file)] = sides else { return };
    let expected = [("[unreadable] [unreadable]", 12.5), ("entry [unreadable]", 37.5), ("work [unreadable]", 12.5)];
    assert_eq!(rows(&file, KEYS, &[]), is(&expected));
    assert_eq!(rows(&file, "module", &[]), [(KERNEL.to_owned(), 6250)], "all of it, as without names");
    let csv = support::stdout(&["mix", "-i", &file, "--rows", "module,function", "--format", "csv"]);
    assert!(csv.lines().any(|line| line.starts_with("[ext4],read,12.5,")), "{csv}");
    let folded = support::stdout(&["export", "--format", "folded", "-i", &file]);
    for function in ["entry", "work", "read", "[unread code of [kernel.kallsyms]]"] {
        assert!(folded.lines().any(|line| line.contains(&format!(";{function} "))), "{function}: {folded}");
    }
    let summary = support::stdout(&["annotate", "-i", &file, "--summary"]);
    let row = |function: &str| {
        summary.lines().find(|line| line.contains(&format!(" {function}  "))).unwrap_or_else(|| panic!("{summary}"))
    };
    assert!(row("entry").contains('%') && row("work").contains('%') && row("read").contains("[ext4]"), "{summary}");
    let annotated = support::stdout(&["annotate", "-i", &file, "-f", "entry"]);
    assert!(annotated.contains("entry ([kernel.kallsyms])") && annotated.contains("not read"), "{annotated}");
    let without_code = "its code is not known: the recording does not have it, and the kernel's file was not found";
    assert!(annotated.contains(without_code), "{annotated}");
    for of_code in ["blocks seen", "no instructions"] {
        assert!(!annotated.contains(of_code), "{of_code}: {annotated}");
    }
    let page = folder.path().join("page.html");
    support::stdout(&["report", "-i", &file, "-o", page.to_str().unwrap()]);
    let by_function = support::stdout(&["diff", &file, &file, "--rows", "function", "--format", "csv"]);
    assert!(by_function.lines().any(|line| line.starts_with("entry,")), "{by_function}");
}

/// `perf record` keeps the list of the kernel's symbols by build id: of this boot, or of another one.
#[test]
fn the_list_that_perf_keeps_names_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let kept = folder.path().join(format!(".debug/.build-id/{}/{}", &BUILD_ID[..2], &BUILD_ID[2..]));
    std::fs::create_dir_all(&kept).unwrap();
    let functions = |text: u64| {
        let work = text + C - A;
        let list =
            format!("{text:016x} T _text\n{text:016x} t entry\n{work:016x} t work\n{:016x} T _etext\n", work + 16);
        std::fs::write(kept.join("kallsyms"), list).unwrap();
        let mut hbbp = support::hbbp();
        hbbp.env("HOME", folder.path()).args(["mix", "-i", &file, "--rows", "module,function", "--format", "csv"]);
        let csv = String::from_utf8(hbbp.output().unwrap().stdout).unwrap();
        let rows = csv.lines().filter_map(|line| line.strip_prefix(&format!("{KERNEL},")));
        let mut rows: Vec<String> = rows.map(|row| row.split(',').take(2).collect::<Vec<_>>().join(" ")).collect();
        rows.sort();
        rows
    };
    assert_eq!(functions(TEXT), ["entry 37.5", "work 12.5"]);
    assert_eq!(functions(LINKED), ["entry 37.5", "work 12.5"], "of another boot");
    assert_eq!(functions(LINKED + 0x123), ["[unreadable] 50"], "it cannot be of this kernel");
}

/// Debug information of a module is relocatable, as its code is: in its own file, packed by the compiler, and in a separate file.
#[test]
fn modules_have_lines_of_their_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = b"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko";
    let Some(file) = record_module(folder.path(), path, MappedFile::Unknown) else { return };
    let line_of = |text: &str| 1 + MODULE_SOURCE.lines().position(|line| line == text).unwrap();
    let lines = |module: &Path| {
        let given = format!("ext4.ko={}", module.display());
        let keys = "function,file,line";
        let csv = support::stdout(&[
            "mix",
            "-i",
            &file,
            "--binary",
            &given,
            "--rows",
            keys,
            "--filter",
            "module~ext4",
            "--format",
            "csv",
        ]);
        let row = |function: &str, text: &str| {
            let wanted = format!("ext4.s:{}", line_of(text));
            csv.lines()
                .any(|row| row.starts_with(&format!("{function},")) && row.contains("ext4.s,") && row.contains(&wanted))
        };
        (row("write", "write: nop") && row("read", "    call printk") && row("slow", "slow: nop"), csv)
    };
    for how in ["-g", "-gdwarf-4", "-gz"] {
        let Some(module) = synthetic::assemble(folder.path(), "ext4.ko", MODULE_SOURCE, &["-c", "-g", how]) else {
            return;
        };
        let (are_there, csv) = lines(&module);
        assert!(are_there, "{how}: {csv}");
    }
    let Some(module) = synthetic::assemble(folder.path(), "ext4.ko", MODULE_SOURCE, &["-c", "-g"]) else { return };
    let apart = folder.path().join("ext4.ko.debug");
    let [module_text, apart_text] = [&module, &apart].map(|path| path.to_str().unwrap());
    let objcopy = |arguments: &[&str]| {
        std::process::Command::new("objcopy").args(arguments).status().is_ok_and(|status| status.success())
    };
    let link = format!("--add-gnu-debuglink={apart_text}");
    if !objcopy(&["--only-keep-debug", module_text, apart_text]) || !objcopy(&["--strip-debug", &link, module_text]) {
        return testing::skip!(Tool, "objcopy does not split debug information");
    }
    let (are_there, csv) = lines(&module);
    assert!(are_there, "apart: {csv}");
    std::fs::remove_file(&apart).unwrap();
    assert!(!lines(&module).0, "nothing else has them");
}

/// A module has the profile of a program of the same code.
#[test]
fn a_module_has_a_profile_where_its_file_is_given() {
    const CODE: &str = "
__attribute__((noinline)) int work(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i ^ n; return sum; }
int enter(int n) {
    if (n > 3)
        return work(n) + work(n + 1);
    return n;
}
void _start(void) { for (;;) enter(5); }
";
    let folder = tempfile::tempdir().unwrap();
    let [source, module, program] = ["ext4.c", "ext4.ko", "linked"].map(|name| folder.path().join(name));
    std::fs::write(&source, CODE).unwrap();
    let gcc = |arguments: &[&str], output: &Path, input: &Path| {
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(arguments).arg("-o").arg(output).arg(input).status().is_ok_and(|status| status.success())
    };
    let compile = ["-c", "-g", "-O1", "-ffreestanding", "-fno-pic", "-fcf-protection=none"];
    if !gcc(&compile, &module, &source)
        || !gcc(&["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000"], &program, &module)
    {
        return testing::skip!(Tool, "gcc does not compile");
    }
    let profile = |name: &str, at: u64, file: &Path| {
        let mut recorder = Recorder::new(&program);
        recorder.map(&Mmap { start: Avma(MODULE), len: 0x2000, pgoff: 0, ..mapping(b"/lib/modules/6.1.0/ext4.ko") });
        for offset in 0..0x30 {
            let times = 1 + offset % 7;
            (0..times).for_each(|_| match at {
                MODULE => recorder.kernel_sample(at + offset),
                _ => recorder.sample(at + offset),
            });
        }
        let data = folder.path().join(name);
        std::fs::write(&data, recorder.finish(&features(None))).unwrap();
        let file = file.to_str().unwrap();
        support::stdout(&["export", "--format", "llvm-text", "-i", data.to_str().unwrap(), "--binary", file])
    };
    let of_program = profile("program.data", 0x40_1000, &program);
    assert!(of_program.contains("work:") && of_program.contains("enter:"), "{of_program}");
    assert_eq!(profile("module.data", MODULE, &module), of_program);
}

/// A clock counts the kernel as if its instructions took as long as those of the program: nobody knows how long they take.
#[test]
fn counts_of_the_kernel_are_less_certain_than_chance_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[]).unwrap();
    let mut recorder = Recorder::traced(&binary);
    recorder.map(&mapping(b"[kernel.kallsyms]_text"));
    for _ in 0..2000 {
        recorder.burst(&Burst { ip: A, branches: &[(A_JNE, C), (D_JMP, A)], instructions: 25, period: 1000 });
        recorder.sample(A);
        recorder.kernel_sample(TEXT);
    }
    name_alone(&mut recorder);
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let csv = support::stdout(&["mix", "-i", &file, "--rows", "module", "--format", "csv"]);
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let at = |name: &str| csv.lines().next().unwrap().split(',').position(|title| title == name).unwrap();
    let (share, error) = (at("share"), at("share_error"));
    let row = rows.records().map(Result::unwrap).find(|row| &row[0] == KERNEL).unwrap();
    let [share, error] = [share, error].map(|at| row[at].parse::<f64>().unwrap());
    assert!((share - 0.5).abs() < 1e-9, "{csv}");
    // Chance alone makes it some 2 % of half of all.
    assert!((0.15..0.4).contains(&error), "{csv}");
}

/// Branch stacks of the hardware have the way into the kernel: what it does for a program stands below the function that asked for it.
#[test]
fn system_calls_tie_the_kernel_to_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let source = ".globl _start\n.type _start, @function\n_start: nop\nsyscall\njmp _start\n.size _start, .-_start\n";
    let Some(binary) = synthetic::assemble(folder.path(), "four", source, &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    recorder.map(&mapping(b"[kernel.kallsyms]_text"));
    let work = TEXT + C - A;
    let around = [(A + 3, A), (A + 1, TEXT), (TEXT + 9, work), (work + 2, TEXT + 14), (TEXT + 18, A + 3)];
    (0..20).for_each(|_| recorder.stack(&[around, around, around].concat()));
    name_alone(&mut recorder);
    let file = write(folder.path(), recorder, None);
    let folded = support::stdout(&["export", "--format", "folded", "-i", &file]);
    assert!(folded.lines().any(|line| line.contains("_start;entry")), "{folded}");
    assert!(folded.contains("work"), "{folded}");
}

/// A program that calls the kernel and jumps back: 10 bursts of 4 rounds, 2 of a round that begin in another function, and samples of the clock
/// in the kernel. Streams run through the calls.
fn calling(folder: &Path, entry: Option<&[u8]>, has_code: bool) -> Option<String> {
    let source = ".globl _start\n.type _start, @function\n_start: nop\nsyscall\njmp _start\n.size _start, .-_start\n\
                  .globl other\n.type other, @function\nother: nop\nint $0x80\nnop\nsyscall\njmp _start\n.size other, .-other\n";
    let binary = synthetic::assemble(folder, "four", source, &[])?;
    let mut recorder = Recorder::traced(&binary);
    recorder.map(&mapping(b"[kernel.kallsyms]_text"));
    let around = [(A + 3, A); 4];
    (0..10).for_each(|_| recorder.burst(&Burst { ip: A, branches: &around, instructions: 12, period: 120 }));
    let from_other = [(OTHER + 6, A), (A + 3, A)];
    (0..2).for_each(|_| recorder.burst(&Burst { ip: OTHER, branches: &from_other, instructions: 8, period: 80 }));
    (0..4).for_each(|_| recorder.sample(A));
    [TEXT + 4, TEXT + 8, TEXT + C - A].iter().for_each(|ip| recorder.kernel_sample(*ip));
    if has_code {
        recorder.code(&MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces: vec![(TEXT, &text()[..])] });
    }
    if let Some(entry) = entry {
        let work = C - A;
        let names: Vec<(u64, u64, &[u8])> = vec![(TEXT, work, entry), (TEXT + work, 5, b"work")];
        recorder.code(&MadeCode::Named { since: 0, pid: KERNEL_PID, names });
    }
    let file = folder.join("calls.data");
    std::fs::write(&file, recorder.finish(&burst_metadata("instructions"))).unwrap();
    Some(file.to_str().unwrap().to_owned())
}

/// The second function of that program.
const OTHER: u64 = A + 5;

/// Branches of the program's flow into the kernel: from where, how often.
fn into_kernel(folder: &Path, file: &str) -> Vec<(u64, f64)> {
    let merged = folder.join("merged.json");
    support::stdout(&["merge", file, "-o", merged.to_str().unwrap()]);
    let flow: serde_json::Value = serde_json::from_slice(&std::fs::read(merged).unwrap()).unwrap();
    let modules = flow["modules"].as_array().unwrap();
    let is_kernel = |branch: &&serde_json::Value| modules[branch[1].as_u64().unwrap() as usize]["path"] == KERNEL;
    let branches = modules.iter().flat_map(|module| module["branches"].as_array().unwrap());
    let ends = |branch: &serde_json::Value| (branch[0].as_u64().unwrap(), branch[3].as_f64().unwrap());
    branches.filter(is_kernel).map(ends).collect()
}

/// Streams of bursts that run through a system call lead into the kernel as branch stacks do: as often as they stand for, where the entry is known.
#[test]
fn system_calls_of_bursts_lead_to_the_entry_of_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    for has_code in [false, true] {
        let Some(file) = calling(folder.path(), Some(b"entry_SYSCALL_64"), has_code) else { return };
        // 40 streams and 2 more from A, and 2 from `other`, 10 executions each. Where `int $0x80` leads has no name.
        assert_eq!(into_kernel(folder.path(), &file), [(A + 1, 420.0), (OTHER + 4, 20.0)]);
        let csv = support::stdout(&["annotate", "-i", &file, "--format", "csv"]);
        let led =
            |at: u64| csv.lines().find(|line| line.contains(&format!(",{at:#x},"))).unwrap_or_else(|| panic!("{csv}"));
        assert!(led(A + 1).contains("entry_SYSCALL_64 1"), "{csv}");
        assert!(!led(OTHER + 1).contains("entry"), "{csv}");
        let text = support::stdout(&["annotate", "-i", &file, "--color", "never"]);
        assert!(text.contains("seen only to entry_SYSCALL_64"), "{text}");
        // What samples count of the entry is shared by the calls: 42 to 2.
        let folded = support::stdout(&["export", "--format", "folded", "-i", &file]);
        let of = |stack: &str| {
            let of_line = |line: &str| line.split_once(stack)?.1.strip_prefix(' ')?.parse::<f64>().ok();
            folded.lines().find_map(of_line).unwrap_or_else(|| panic!("{stack}: {folded}"))
        };
        let [by_start, by_other] = ["_start;entry_SYSCALL_64", "other;entry_SYSCALL_64"].map(of);
        assert!(by_other > 0.0 && (by_start / by_other - 21.0).abs() < 0.5, "{folded}");
        assert!(folded.contains("work") && !folded.contains("entry_SYSCALL_64;"), "{folded}");
        if has_code {
            let paths = support::stdout(&["paths", "--to", "entry_SYSCALL_64", "-i", &file]);
            let words = paths.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("# to entry_SYSCALL_64: 440 arrivals"), "{paths}");
            assert!(words.contains("200 _start+0x3 _start _start+0x1 entry_SYSCALL_64 _start+0x3"), "{paths}");
        }
        let annotated = support::stdout(&["annotate", "-f", "entry_SYSCALL_64", "--format", "json", "-i", &file]);
        let annotated: serde_json::Value = serde_json::from_str(&annotated).unwrap();
        assert_eq!(annotated["functions"][0]["calls"], 440.0, "{annotated:#}");
    }
}

#[test]
fn each_way_into_the_kernel_has_its_entry() {
    let folder = tempfile::tempdir().unwrap();
    let [by_start, by_interrupt, by_other] = [(A + 1, 420.0), (OTHER + 1, 20.0), (OTHER + 4, 20.0)];
    let expected: [(&[u8], &[_]); 3] = [
        (b"asm_int80_emulation", &[by_interrupt]),
        (b"entry_INT80_compat", &[by_interrupt]),
        (b"asm_fred_entrypoint_user", &[by_start, by_interrupt, by_other]),
    ];
    for (entry, expected) in expected {
        let Some(file) = calling(folder.path(), Some(entry), false) else { return };
        assert_eq!(into_kernel(folder.path(), &file), expected, "{}", String::from_utf8_lossy(entry));
    }
}

#[test]
fn where_a_system_call_leads_is_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let module = format!("module={}", folder.path().join("four").display());
    // Blocks with their counts. How sure shares are depends on what is known of the kernel's functions.
    let counts = |file: &str| -> Vec<String> {
        let csv = support::stdout(&["blocks", "-i", file, "--format", "csv", "--filter", &module]);
        csv.lines().map(|line| line.split(',').take(10).collect::<Vec<_>>().join(",")).collect()
    };
    let Some(named) = calling(folder.path(), Some(b"entry_SYSCALL_64"), false).map(|file| counts(&file)) else {
        return;
    };
    for entry in [None, Some(&b"entry"[..])] {
        let Some(file) = calling(folder.path(), entry, false) else { return };
        assert_eq!(into_kernel(folder.path(), &file), []);
        assert_eq!(counts(&file), named, "blocks count the same");
        let folded = support::stdout(&["export", "--format", "folded", "-i", &file]);
        assert!(folded.contains("_start ") && !folded.contains("_start;"), "{folded}");
    }
}

/// The list is in the archive, if samples are in functions of it.
#[test]
fn an_archive_has_the_list_that_perf_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let kept = folder.path().join(format!("home/.debug/.build-id/{}/{}", &BUILD_ID[..2], &BUILD_ID[2..]));
    std::fs::create_dir_all(&kept).unwrap();
    let run = |home: &str, arguments: &[&str]| {
        let output = support::hbbp().env("HOME", folder.path().join(home)).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let archive = folder.path().join("run.tar.zst");
    let archive = archive.to_str().unwrap();
    let rows = ["--rows", "module,function"];
    let packed = |file: &str, list: String| {
        std::fs::write(kept.join("kallsyms"), list).unwrap();
        run("home", &["archive", file, "-o", archive]);
        zstd::decode_all(std::fs::File::open(archive).unwrap()).unwrap()
    };
    let list = |work: u64| format!("{LINKED:016x} T _text\n{LINKED:016x} t entry\n{:016x} t work\n", LINKED + work);
    let tar = packed(&file, list(C - A));
    assert!(tar.windows(7).any(|text| text == b" t work"));
    let of_recording = run("home", &[&["mix", &file][..], &rows].concat());
    for home in ["home", "empty"] {
        assert_eq!(run(home, &[&["mix", archive][..], &rows].concat()), of_recording);
    }
    assert!(of_recording.contains("entry") && of_recording.contains("work"), "{of_recording}");
    // Nothing that ran is in a function of the list.
    let mut recorder = Recorder::traced(&folder.path().join("four"));
    recorder.map(&mapping(b"[kernel.kallsyms]_text"));
    recorder.kernel_sample(moved(D));
    let file = write(folder.path(), recorder, Some(BUILD_ID));
    let list = format!("{LINKED:016x} T _text\n{:016x} d data\n{:016x} t far\n", LINKED + 1, LINKED + 0x10_0000);
    assert!(!packed(&file, list).windows(6).any(|text| text == b" t far"));
}

#[test]
fn a_file_that_is_none_is_named_with_its_module() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = recorder(folder.path(), b"[kernel.kallsyms]_text") else { return };
    let code = text();
    recorder.code(&MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces: vec![(TEXT, &code)] });
    let file = write(folder.path(), recorder, None);
    let other = folder.path().join("other");
    std::fs::write(&other, "root:x:0:0").unwrap();
    let named = format!("{KERNEL}={}", other.display());
    let said = support::stdout(&["mix", "-v", &file, "--binary", &named]);
    let expected = format!("{KERNEL}: {}: not an ELF file", other.display());
    let line = said.lines().find(|line| line.contains("its code is taken from the recording"));
    assert!(line.is_some_and(|line| line.contains(&expected)), "{said}");
}
