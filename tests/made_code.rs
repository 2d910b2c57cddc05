//! Code without a file whose bytes the recording has, on made-up recordings whose counts are known by hand.

#[path = "support/archived.rs"]
mod archived;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::PathBuf;

use formats::made_code::MadeCode;
use perfdata::Mmap;
use synthetic::{Burst, Recorder, burst_metadata};

/// Where the code is.
const AT: u64 = 0x7f00_0000_1000;
/// `add rax,rcx; dec rdi; jne AT`.
const ADD: [u8; 8] = [0x48, 0x01, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8];
/// `sub rax,rcx; dec rdi; jne AT`.
const SUB: [u8; 8] = [0x48, 0x29, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8];
const JNE: u64 = AT + 6;
/// Four times around.
const LOOP: Burst<'_> = Burst { ip: AT, branches: &[(JNE, AT); 4], instructions: 12, period: 12 };

struct Setup {
    folder: tempfile::TempDir,
    recorder: Recorder,
}

fn setup() -> Option<Setup> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[])?;
    let mut recorder = Recorder::traced(&binary);
    recorder.map(&Mmap { start: perfdata::Avma(AT), path: b"//anon", pgoff: AT, ..Recorder::mapping() });
    Some(Setup { folder, recorder })
}

impl Setup {
    /// The next burst executes these pieces.
    fn code(&mut self, pieces: &[(u64, &[u8])]) {
        let time = self.recorder.next_time();
        self.recorder.code(&MadeCode::Executed { time, pid: 7, pieces: pieces.to_vec() });
    }

    fn write(self) -> (tempfile::TempDir, PathBuf) {
        let file = self.folder.path().join("run.data");
        std::fs::write(&file, self.recorder.finish(&burst_metadata("instructions"))).unwrap();
        (self.folder, file)
    }
}

/// Rows of a mix: its keys and its count.
fn rows(file: &std::path::Path, keys: &str) -> Vec<(String, f64)> {
    let csv = support::stdout(&["mix", "-i", file.to_str().unwrap(), "--rows", keys, "--format", "csv"]);
    let width = keys.split(',').count();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[..width].join(" "), fields[width].parse().unwrap())
    };
    let mut rows: Vec<_> = csv.lines().skip(1).map(row).collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    rows
}

#[test]
fn each_burst_counts_in_the_code_that_ran() {
    let Some(mut setup) = setup() else { return };
    setup.code(&[(AT, &ADD)]);
    (0..3).for_each(|_| setup.recorder.burst(&LOOP));
    setup.code(&[(AT, &SUB)]);
    setup.recorder.burst(&LOOP);
    setup.code(&[(AT, &ADD)]);
    setup.recorder.burst(&LOOP);
    setup.recorder.code(&MadeCode::Named { since: 0, pid: 7, names: vec![(AT, 16, b"made")] });
    let (_folder, file) = setup.write();
    let counted = rows(&file, "module,function,mnemonic");
    let expected = [("add", 16.0), ("dec", 20.0), ("jne", 20.0), ("sub", 4.0)];
    let expected: Vec<_> = expected.iter().map(|(name, count)| (format!("[jit] made {name}"), *count)).collect();
    assert_eq!(counted, expected);
}

/// One of 16 pages is patched before each burst: `add` or `sub`, and an operand that is another one each time.
fn patched(patches: u32) -> Option<(tempfile::TempDir, PathBuf)> {
    let mut setup = setup()?;
    let pages: Vec<(u64, &[u8])> = (0..15).map(|page| (AT + page * 0x1000, &ADD[..])).collect();
    setup.code(&pages);
    setup.recorder.burst(&LOOP);
    for patch in 0..patches {
        // `add rax, patch`, or `sub`, and then as in the others.
        let code = [
            &[0x48, 0x81, if patch % 4 == 0 { 0xe8 } else { 0xc0 }][..],
            &patch.to_le_bytes(),
            &[0x48, 0xff, 0xcf, 0x75, 0xf4],
        ]
        .concat();
        setup.code(&[(AT + 0x1000, &code)]);
        let around = [(JNE + 0x1004, AT + 0x1000); 4];
        setup.recorder.burst(&Burst { ip: AT + 0x1000, branches: &around, instructions: 12, period: 12 });
        setup.recorder.burst(&LOOP);
    }
    Some(setup.write())
}

#[test]
fn code_that_is_patched_again_and_again_is_read() {
    let Some((_folder, file)) = patched(3000) else { return };
    let expected = [("add", 21_004.0), ("dec", 24_004.0), ("jne", 24_004.0), ("sub", 3000.0)];
    let expected: Vec<_> = expected.iter().map(|(name, count)| (format!("[jit] {name}"), *count)).collect();
    assert_eq!(rows(&file, "module,mnemonic"), expected);
}

/// What a burst saw change, and streams through it, are unread; all else near it is read.
#[test]
fn only_what_is_rewritten_in_the_middle_of_a_burst_is_unread() {
    let Some(mut setup) = setup() else { return };
    // The same, and `jmp AT` after it: in the same page.
    let other = AT + 0x78;
    let add_and_jump = [&ADD[..], &[0xeb, 0x7e]].concat();
    setup.code(&[(other, &add_and_jump), (AT, &ADD), (AT, &SUB)]);
    let around = [(other + 6, other), (other + 6, other), (other + 8, AT), (JNE, AT), (JNE, AT)];
    setup.recorder.burst(&Burst { ip: other, branches: &around, instructions: 16, period: 16 });
    // `nop`, then `add` or `sub`, then `dec` and `jne`: one stream begins before what changes and ends after it, the next one is read.
    setup.code(&[(AT - 1, &[0x90]), (AT, &ADD[..3]), (AT, &SUB[..3]), (AT + 3, &ADD[3..])]);
    let through = [(JNE, AT + 3), (JNE, AT + 3)];
    setup.recorder.burst(&Burst { ip: AT - 1, branches: &through, instructions: 6, period: 6 });
    setup.recorder.burst(&LOOP);
    let (_folder, file) = setup.write();
    let (read, unread): (Vec<_>, Vec<_>) =
        rows(&file, "module,mnemonic").into_iter().partition(|(name, _)| name.starts_with("[jit] "));
    let expected = [("add", 3.0), ("dec", 3.0 + 1.0 + 4.0), ("jmp", 1.0), ("jne", 3.0 + 1.0 + 4.0), ("sub", 4.0)];
    let expected: Vec<_> = expected.iter().map(|(name, count)| (format!("[jit] {name}"), *count)).collect();
    assert_eq!(read, expected);
    let [(name, count)] = &unread[..] else { panic!("{unread:?}") };
    // Ten instructions of three streams, of which only the bytes are known.
    assert!(name.starts_with("//anon ") && (6.0..=12.0).contains(count), "{unread:?}");
}

/// Code of a program and code that was made: the one is in the archive, the other in the recording.
#[test]
fn archives_have_it_beside_the_program() {
    let Some(mut setup) = setup() else { return };
    setup.code(&[(AT, &ADD)]);
    (0..3).for_each(|_| setup.recorder.burst(&LOOP));
    let around = [(synthetic::D_JMP, synthetic::A), (synthetic::A_JNE, synthetic::C)];
    setup.recorder.burst(&Burst { ip: synthetic::D, branches: &around, instructions: 23, period: 23 });
    setup.recorder.code(&MadeCode::Named { since: 0, pid: 7, names: vec![(AT, 16, b"made")] });
    let (folder, file) = setup.write();
    let expected = rows(&file, "module,function,mnemonic");
    assert!(expected.iter().any(|(name, _)| name == "[jit] made add"), "{expected:?}");
    let folder = folder.path();
    let remove = || std::fs::remove_file(folder.join("four")).unwrap();
    let archive = archived::reports_are_the_same(folder, &[], folder, &[], remove);
    let counted = rows(&archive, "module,function,mnemonic");
    let has = |name: &str| counted.iter().any(|(row, _)| row.ends_with(name));
    assert!(has("[jit] made add") && has("four _start nop"), "{counted:?}");
}

#[test]
fn without_a_name_functions_are_called_by_their_addresses() {
    let Some(mut setup) = setup() else { return };
    setup.code(&[(AT, &ADD)]);
    setup.recorder.burst(&LOOP);
    let (_folder, file) = setup.write();
    assert_eq!(rows(&file, "function"), [(format!("[jit {AT:#x}]"), 12.0)]);
    let annotated = support::stdout(&["annotate", "-i", file.to_str().unwrap()]);
    assert!(annotated.contains("7f0000001000  add rax, rcx"), "{annotated}");
}

#[test]
fn code_of_another_process_or_page_is_unread() {
    let Some(mut setup) = setup() else { return };
    let time = setup.recorder.next_time();
    setup.recorder.code(&MadeCode::Executed { time, pid: 8, pieces: vec![(AT, &ADD)] });
    setup.code(&[(AT + 0x2000, &ADD)]);
    setup.recorder.burst(&LOOP);
    let (_folder, file) = setup.write();
    let modules = rows(&file, "module");
    assert_eq!(modules.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["//anon"]);
}

#[test]
fn the_vdso_is_read_from_the_recording() {
    let Some(Setup { folder, mut recorder }) = setup() else { return };
    let Some(vdso) = synthetic::program(folder.path(), "vdso", &[]) else { return };
    let vdso = std::fs::read(vdso).unwrap();
    // The program's code is at offset 0x1000 of the file.
    recorder.map(&Mmap {
        start: perfdata::Avma(0x7ffe_0000_0000),
        len: 0x2000,
        path: b"[vdso]",
        pgoff: 0x7ffe_0000_0000,
        ..Recorder::mapping()
    });
    recorder.code(&MadeCode::Vdso(&vdso));
    let at = |address: u64| 0x7ffe_0000_0000 + address - 0x40_0000;
    let around = [(at(synthetic::D_JMP), at(synthetic::A)), (at(synthetic::A_JNE), at(synthetic::C))];
    recorder.burst(&Burst { ip: at(synthetic::D), branches: &around, instructions: 23, period: 23 });
    let (_folder, file) = Setup { folder, recorder }.write();
    assert_eq!(
        rows(&file, "module,function,mnemonic"),
        [
            ("[vdso] _start jmp".to_owned(), 1.0),
            ("[vdso] _start jne".to_owned(), 1.0),
            ("[vdso] _start nop".to_owned(), 21.0),
        ]
    );
}

/// Names of a time, at the time of the next burst.
impl Setup {
    fn named(&mut self, names: &[(u64, u64, &str)]) {
        let since = self.recorder.next_time();
        let names = names.iter().map(|(at, size, name)| (*at, *size, name.as_bytes())).collect();
        self.recorder.code(&MadeCode::Named { since, pid: 7, names });
    }
}

#[test]
fn each_burst_counts_for_the_name_of_its_time() {
    let Some(mut setup) = setup() else { return };
    // Compiled, compiled anew at the same address, and the same bytes under another name.
    setup.named(&[(AT, 16, "first")]);
    setup.code(&[(AT, &ADD)]);
    setup.recorder.burst(&LOOP);
    setup.named(&[(AT, 8, "second")]);
    setup.code(&[(AT, &SUB)]);
    (0..2).for_each(|_| setup.recorder.burst(&LOOP));
    setup.named(&[(AT, 12, "third")]);
    (0..3).for_each(|_| setup.recorder.burst(&LOOP));
    setup.named(&[(AT, 16, "first")]);
    setup.code(&[(AT, &ADD)]);
    (0..4).for_each(|_| setup.recorder.burst(&LOOP));
    let (_folder, file) = setup.write();
    let named = |name: &str, of: &str, turns: f64| {
        [(of, 4.0), ("dec", 4.0), ("jne", 4.0)].map(|(mnemonic, count)| (format!("{name} {mnemonic}"), turns * count))
    };
    let mut expected = [named("first", "add", 5.0), named("second", "sub", 2.0), named("third", "sub", 3.0)].concat();
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(rows(&file, "function,mnemonic"), expected);
}

#[test]
fn a_name_that_comes_late_is_that_of_all_time_before() {
    let Some(mut setup) = setup() else { return };
    setup.code(&[(AT, &ADD)]);
    setup.recorder.burst(&LOOP);
    setup.code(&[(AT, &SUB)]);
    setup.recorder.burst(&LOOP);
    setup.named(&[(AT, 16, "late")]);
    let (_folder, file) = setup.write();
    assert_eq!(rows(&file, "function"), [("late".to_owned(), 24.0)]);
}

/// The address of `time` in the page of the vsyscalls.
const VSYSCALL_TIME: u64 = 0xffff_ffff_ff60_0400;
/// `mov rax,201; syscall; ret`.
const TIME: [u8; 10] = [0x48, 0xc7, 0xc0, 0xc9, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xc3];

/// One sample in the page of the vsyscalls, of which the recording may have the bytes.
fn vsyscall(bytes: Option<&[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[]).expect("a program");
    let mut recorder = Recorder::new(&binary);
    if let Some(bytes) = bytes {
        let pieces = vec![(VSYSCALL_TIME - 0x400, bytes)];
        recorder.code(&MadeCode::Executed { time: 0, pid: formats::made_code::KERNEL_PID, pieces });
    }
    (0..5).for_each(|_| recorder.sample(VSYSCALL_TIME));
    let file = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(&perfdata::Features::default())).unwrap();
    (folder, file)
}

#[test]
fn the_page_of_the_vsyscalls_has_its_name_and_its_code_where_it_was_read() {
    if synthetic::program(tempfile::tempdir().unwrap().path(), "four", &[]).is_none() {
        return;
    }
    let (_folder, file) = vsyscall(None);
    let unread = rows(&file, "module,function");
    assert_eq!(unread.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["[vsyscall] [unreadable]"]);
    let mix = support::stdout(&["mix", "-v", "-i", file.to_str().unwrap(), "--rows", "module"]);
    assert!(mix.contains("unread code of [vsyscall]"), "{mix}");

    let mut page = vec![0xcc; 4096];
    page[0x400..0x40a].copy_from_slice(&TIME);
    let (_folder, file) = vsyscall(Some(&page));
    let read = rows(&file, "module,function,mnemonic");
    let names: Vec<_> = read.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["[vsyscall] time mov", "[vsyscall] time syscall"], "{read:?}");

    // What is no page of them is nothing.
    let (_folder, file) = vsyscall(Some(&page[..16]));
    assert_eq!(rows(&file, "module,function"), unread);
}

/// Analyses that were kept are as those that are made.
#[test]
fn it_is_kept_with_the_analysis() {
    let Some(mut setup) = setup() else { return };
    setup.code(&[(AT, &ADD)]);
    // What is small is not kept.
    (0..20_000).for_each(|_| setup.recorder.burst(&LOOP));
    let (folder, file) = setup.write();
    let cache = folder.path().join("cache");
    let mix = || {
        let mut hbbp = support::hbbp();
        hbbp.args(["mix", "-i", file.to_str().unwrap(), "--rows", "function,mnemonic", "--format", "csv"]);
        let output = hbbp.env("XDG_CACHE_HOME", &cache).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let made = mix();
    assert!(made.contains("add"), "{made}");
    assert_eq!(mix(), made);
}

/// A page as a sample brings it: what is before `code`, at `AT + 2`, is no code, and would swallow the first bytes of it.
fn page(code: &[u8]) -> Vec<u8> {
    // movabs rax, imm64.
    let mut page = [&[0x48, 0xb8], code].concat();
    page.resize(0x1000, 0x06);
    page
}

/// A recording of samples alone.
fn sampled() -> Option<Setup> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[])?;
    let mut recorder = Recorder::new(&binary);
    recorder.map(&Mmap { start: perfdata::Avma(AT), len: 0x4000, path: b"//anon", pgoff: AT, ..Recorder::mapping() });
    Some(Setup { folder, recorder })
}

/// Rows of a mix of samples by these keys.
fn rows_of_samples(setup: Setup, keys: &str) -> Vec<(String, f64)> {
    let file = setup.folder.path().join("run.data");
    std::fs::write(&file, setup.recorder.finish(&perfdata::Features::default())).unwrap();
    rows(&file, keys)
}

/// `xor eax,eax`, the loop of [`ADD`] two bytes after it, `ret`.
fn function() -> Vec<u8> {
    [&[0x31, 0xc0], &ADD[..], &[0xc3]].concat()
}

#[test]
fn code_without_a_name_is_decoded_from_where_samples_fell() {
    let Some(mut setup) = sampled() else { return };
    setup.code(&[(AT, &page(&function()))]);
    (0..6).for_each(|_| setup.recorder.sample(AT + 4));
    let expected = ["add", "dec", "jne"].map(|name| (format!("[jit] [jit {AT:#x}] {name}"), 2000.0));
    assert_eq!(rows_of_samples(setup, "module,function,mnemonic"), expected);
}

#[test]
fn code_with_a_name_is_decoded_from_its_beginning() {
    let Some(mut setup) = sampled() else { return };
    setup.code(&[(AT, &page(&function()))]);
    setup.recorder.sample(AT + 2);
    (0..6).for_each(|_| setup.recorder.sample(AT + 7));
    setup.recorder.code(&MadeCode::Named { since: 0, pid: 7, names: vec![(AT + 2, 11, b"made")] });
    let counts = [("add", 2000.0), ("dec", 2000.0), ("jne", 2000.0), ("xor", 1000.0)];
    assert_eq!(
        rows_of_samples(setup, "module,function,mnemonic"),
        counts.map(|(name, count)| (format!("[jit] made {name}"), count))
    );
}

/// The first byte that is known of a function may be amid an instruction.
#[test]
fn of_a_function_that_begins_before_what_is_known_only_what_samples_reach_is_decoded() {
    let Some(mut setup) = sampled() else { return };
    let at = AT + 0x1000;
    setup.code(&[(at, &page(&function()))]);
    (0..6).for_each(|_| setup.recorder.sample(at + 4));
    setup.recorder.code(&MadeCode::Named { since: 0, pid: 7, names: vec![(AT + 0x800, 0x900, b"long")] });
    let expected = ["add", "dec", "jne"].map(|name| (format!("[jit] long {name}"), 2000.0));
    assert_eq!(rows_of_samples(setup, "module,function,mnemonic"), expected);
}

#[test]
fn samples_count_in_the_page_of_their_time() {
    let Some(mut setup) = sampled() else { return };
    for (code, samples) in [(ADD, 3), (SUB, 6), (ADD, 9)] {
        setup.code(&[(AT, &page(&code))]);
        (0..samples).for_each(|_| setup.recorder.sample(AT + 2));
    }
    let counts = [("add", 4000.0), ("dec", 6000.0), ("jne", 6000.0), ("sub", 2000.0)];
    assert_eq!(rows_of_samples(setup, "mnemonic"), counts.map(|(name, count)| (name.to_owned(), count)));
}

/// Branch stacks of the hardware lead through it like through a file.
#[test]
fn stacks_count_in_pages() {
    let Some(mut setup) = sampled() else { return };
    setup.code(&[(AT, &page(&function()))]);
    let (top, jump) = (AT + 4, AT + 10);
    (0..4).for_each(|_| setup.recorder.stack(&[(jump, top); 5]));
    let rows = rows_of_samples(setup, "module,mnemonic");
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["[jit] add", "[jit] dec", "[jit] jne"]);
    assert!(rows.iter().all(|(_, count)| *count == rows[0].1 && *count > 0.0), "{rows:?}");
}
