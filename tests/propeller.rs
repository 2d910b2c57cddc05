//! `hbbp export --format propeller`: layouts that are known by hand, and what clang and lld make of them.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use perfdata::Features;
use serde_json::Value;
use support::{hbbp, run, stdout};
use synthetic::{Recorder, assemble};
use tempfile::TempDir;
use testing::Alone;

/// `_start` goes around: from its first block to C mostly, seldom to B, which calls `f`; X never runs. The second block of `f` never
/// runs. The numbers of the blocks are not their places.
const CODE: &str = r#"
.globl _start
.type _start, @function
.type f, @function
_start:
.LA: nop; nop
    jne .LC
.LB: nop
    call f
    nop
    jmp .LD
.LX: nop
    jmp .LD
.LC: nop
.LD: nop
    jmp .LA
.size _start, .-_start
f:
.LF0: nop
    jne .LF2
.LF1: nop
.LF2: ret
.size f, .-f
.Lend:
.section .note.GNU-stack,"",@progbits
"#;

const A: u64 = 0x40_1000;
const A_JNE: u64 = 0x40_1002;
const B_CALL: u64 = 0x40_1005;
const AFTER_CALL: u64 = 0x40_100a;
const B_JMP: u64 = 0x40_100b;
const C: u64 = 0x40_1010;
const D: u64 = 0x40_1011;
const D_JMP: u64 = 0x40_1012;
const F: u64 = 0x40_1014;
const F_JNE: u64 = 0x40_1015;
const F_RET: u64 = 0x40_1018;

/// A map of functions, as a section of the type.
fn map(kind: &str, functions: &[String]) -> String {
    format!(".section .llvm_bb_addr_map,\"\",@{kind}\n{}\n", functions.join("\n"))
}

const VERSIONED: &str = "0x6fff4c0a";

/// Two functions of version 2.
fn second_version() -> String {
    let start = "\
.byte 2, 0
.quad _start
.byte 5
.byte 0, 0, .LB - .LA, 8
.byte 5, 0, .LX - .LB, 0
.byte 2, 0, .LC - .LX, 0
.byte 3, 0, .LD - .LC, 8
.byte 4, 0, f - .LD, 0";
    let f = "\
.byte 2, 0
.quad f
.byte 3
.byte 0, 0, .LF1 - .LF0, 8
.byte 1, 0, .LF2 - .LF1, 8
.byte 2, 0, .Lend - .LF2, 1";
    map(VERSIONED, &[start.into(), f.into()])
}

/// A program of this code, and a recording in which it went around three times: twice by C, once by B and `f`.
fn recorded(code: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = assemble(folder.path(), "layout", code, &[])?;
    let mut recorder = Recorder::new(&binary);
    let by_c = [(A_JNE, C), (D_JMP, A)];
    let by_b = [(B_CALL, F), (F_JNE, F_RET), (F_RET, AFTER_CALL), (B_JMP, D), (D_JMP, A)];
    recorder.stack(&[&[(D_JMP, A)][..], &by_c, &by_c, &by_b].concat());
    let recording = folder.path().join("layout.data");
    fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    Some((folder, recording))
}

/// Both profiles, and what was said.
fn export(folder: &Path, input: &[&str]) -> (String, String, String) {
    let [blocks, functions] = ["cc_profile.txt", "ld_profile.txt"].map(|name| folder.join(name));
    let mut export = hbbp();
    export.args(["export", "--format", "propeller"]).args(input);
    export.arg("-o").arg(&blocks).arg("--ld-profile").arg(&functions);
    let output = export.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    (fs::read_to_string(blocks).unwrap(), fs::read_to_string(functions).unwrap(), told)
}

/// The blocks that ran, so that what runs most falls through; the entry first, what did not run in none.
const BLOCKS: &str = "v1\nf _start\nc 0 3 4 5\nf f\nc 0 2\n";

#[test]
fn blocks_that_ran_are_laid_out_as_is_known_by_hand() {
    let Some((folder, recording)) = recorded(&(CODE.to_owned() + &second_version())) else { return };
    let (blocks, functions, told) = export(folder.path(), &["-i", recording.to_str().unwrap()]);
    assert_eq!(blocks, BLOCKS);
    assert_eq!(functions, "_start\nf\n_start.cold\nf.cold\n");
    assert!(!told.contains("basic block address map"), "{told}");
    // Without a file for it, the order of the functions is not written.
    assert_eq!(stdout(&["export", "--format", "propeller", "-i", recording.to_str().unwrap()]), BLOCKS);
}

/// The same blocks as other versions and features state them; blocks of old versions have no numbers but their places.
#[test]
fn all_versions_of_the_map_say_the_same() {
    let old_blocks = "v1\nf _start\nc 0 3 4 1\nf f\nc 0 2\n";
    // Offsets from the function in version 0, from the block before in version 1.
    let old = |head: &str, offset: fn(&str, &str) -> String| {
        let blocks = |labels: &[&str]| -> String {
            let block = |two: &[&str]| format!(".byte {}, {} - {}, 8\n", offset(labels[0], two[0]), two[1], two[0]);
            labels.windows(2).map(block).collect()
        };
        let start = blocks(&[".LA", ".LB", ".LX", ".LC", ".LD", "f"]);
        let f = blocks(&[".LF0", ".LF1", ".LF2", ".Lend"]);
        [format!("{head}.quad _start\n.byte 5\n{start}"), format!("{head}.quad f\n.byte 3\n{f}")]
    };
    let from_function = |function: &str, block: &str| format!("{block} - {function}");
    // The second half of `_start` is a range of its own, and what the compiler knew of a profile comes after the blocks.
    let several = "\
.byte 2, 15, 2
.quad _start
.byte 2
.byte 0, 0, .LB - .LA, 8
.byte 5, 0, .LX - .LB, 0
.quad .LX
.byte 3
.byte 2, 0, .LC - .LX, 0
.byte 3, 0, .LD - .LC, 8
.byte 4, 0, f - .LD, 0
.uleb128 1000
.rept 5
.uleb128 200
.byte 1, 2
.uleb128 0x80000000
.endr";
    let (_, f) = second_version().split_once("f - .LD, 0\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let maps = [
        (map("0x6fff4c08", &old("", from_function)), old_blocks),
        (map(VERSIONED, &old(".byte 0, 0\n", from_function)), old_blocks),
        (map(VERSIONED, &old(".byte 1, 0\n", |_, _| "0".into())), old_blocks),
        (map(VERSIONED, &[several.into(), f]), BLOCKS),
    ];
    for (map, expected) in maps {
        let Some((folder, recording)) = recorded(&(CODE.to_owned() + &map)) else { return };
        let (blocks, _, told) = export(folder.path(), &["-i", recording.to_str().unwrap()]);
        assert_eq!(blocks, expected, "{map}");
        assert_eq!(told.contains("its compiler may be too old"), expected == old_blocks, "{told}");
    }
}

#[test]
fn all_names_of_a_function_are_written_and_what_has_none_is_told() {
    let alias = ".globl again\n.type again, @function\n.set again, _start\n";
    let code = CODE.replace(".type f, @function\n", alias) + &second_version();
    let Some((folder, recording)) = recorded(&code) else { return };
    let (blocks, functions, told) = export(folder.path(), &["-i", recording.to_str().unwrap()]);
    let line = blocks.lines().nth(1).unwrap();
    assert_eq!(line.split(' ').collect::<BTreeSet<_>>(), ["f", "_start", "again"].into());
    assert_eq!(blocks.lines().count(), 3, "{blocks}");
    assert_eq!(functions.lines().count(), 4, "{functions}");
    assert!(told.contains("not in the profile: 1 function that ran, without a symbol"), "{told}");
}

/// `f` goes to the third block in place of its caller, as the unwinder does: the second did not run, whether it ends with a jump or with the
/// call that never comes back.
#[test]
fn landing_pads_are_not_run_into() {
    for (second, metadata) in [("nop; jmp .LA", 0), ("call .Lthrow", 4)] {
        let code = format!(
            "\
.globl _start
.type _start, @function
.type f, @function
_start:
.LA: nop
    call f
    jmp .LA
.LB: {second}
.LP: nop
    jmp .LA
.size _start, .-_start
f: nop
    ret
.size f, .-f
.Lthrow: nop
    jmp .LA
.section .note.GNU-stack,\"\",@progbits
"
        );
        let start = format!(
            "\
.byte 2, 0
.quad _start
.byte 3
.byte 0, 0, .LB - .LA, 8
.byte 1, 0, .LP - .LB, 0
.byte 2, 0, f - .LP, {metadata}"
        );
        let f = ".byte 2, 0\n.quad f\n.byte 1\n.byte 0, 0, .Lthrow - f, 1";
        let folder = tempfile::tempdir().unwrap();
        let text = code + &map(VERSIONED, &[start, f.into()]);
        let Some(binary) = assemble(folder.path(), "thrown", &text, &[]) else { return };
        let pad = 0x40_1008 + if metadata == 0 { 3 } else { 5 };
        let f = pad + 3;
        let mut recorder = Recorder::new(&binary);
        recorder.stack(&[(pad + 1, 0x40_1000), (0x40_1001, f), (f + 1, pad), (pad + 1, 0x40_1000)]);
        let recording = folder.path().join("thrown.data");
        fs::write(&recording, recorder.finish(&Features::default())).unwrap();
        let (blocks, ..) = export(folder.path(), &["-i", recording.to_str().unwrap()]);
        assert_eq!(blocks, "v1\nf _start\nc 0 2\nf f\nc 0\n");
    }
}

/// `_start` calls `f` through a stub of the procedure linkage table, and so `f` comes right after it, before `g`, which runs more.
#[test]
fn calls_through_stubs_are_calls() {
    let code = "\
.globl _start
.type _start, @function
.type f, @function
.type g, @function
.type chosen, @gnu_indirect_function
_start:
    call chosen
    jmp _start
.size _start, .-_start
g: nop
    jmp g
.size g, .-g
f: nop
    ret
.size f, .-f
chosen:
.Lchosen:
    lea f(%rip), %rax
    ret
.size chosen, .-chosen
.Lend:
.section .note.GNU-stack,\"\",@progbits
";
    let of =
        |function: &str, end: &str| format!(".byte 2, 0\n.quad {function}\n.byte 1\n.byte 0, 0, {end} - {function}, 0");
    let text = code.to_owned() + &map(VERSIONED, &[of("_start", "g"), of("g", "f"), of("f", ".Lchosen")]);
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "stubs", &text, &["-Wl,--section-start=.plt=0x401800"]) else { return };
    let bytes = fs::read(&binary).unwrap();
    // The call is the first of the instructions: five bytes, and the address is relative to what comes next.
    let start = bytes.windows(7).position(|bytes| bytes[0] == 0xe8 && bytes[5..] == [0xeb, 0xf9]).unwrap();
    let relative = i32::from_le_bytes(bytes[start + 1..start + 5].try_into().unwrap());
    let [a, g] = [0x40_1000_u64, 0x40_1007];
    let (jump, f, stub) = (a + 5, g + 3, (a + 5).wrapping_add_signed(relative.into()));
    let stub_jump = if bytes.windows(4).any(|bytes| bytes == [0xf3, 0x0f, 0x1e, 0xfa]) { stub + 4 } else { stub };
    let mut recorder = Recorder::new(&binary);
    for _ in 0..10 {
        recorder.stack(&[(jump, a), (a, stub), (stub_jump, f), (f + 1, a + 5), (jump, a)]);
        recorder.stack(&[(g + 1, g); 16]);
    }
    let recording = folder.path().join("stubs.data");
    fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let (_, functions, told) = export(folder.path(), &["-i", recording.to_str().unwrap()]);
    let order: Vec<&str> = functions.lines().collect();
    let place = |name: &str| order.iter().position(|line| *line == name).unwrap_or_else(|| panic!("{functions}{told}"));
    assert_eq!(place("f"), place("_start") + 1, "{functions}");
}

#[test]
fn maps_that_cannot_be_used_are_told() {
    let unknown = second_version().replace(".byte 2, 0\n.quad _start", ".byte 6, 0\n.quad _start");
    let other = second_version().replace(".byte 0, 0, .LB - .LA", ".byte 0, 1, .LB - .LA");
    let cut = second_version().replace(".byte 2, 0, .Lend - .LF2, 1", ".byte 2, 0");
    let cases = [
        ("", "has no basic block address map (.llvm_bb_addr_map): build it with clang's -fbasic-block-address-map"),
        (&unknown, "has version 6 at byte 0: versions 0 to 5 can be read"),
        (&other, "is of another build, or the code was changed after linking: "),
        (&cut, "is damaged at byte 52: the size of a block"),
    ];
    for (map, expected) in cases {
        let Some((_folder, recording)) = recorded(&(CODE.to_owned() + map)) else { return };
        let output = run(&["export", "--format", "propeller", "-i", recording.to_str().unwrap()]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(expected), "{told}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{told}");
    }
}

const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
long work(long n, long seed);
static __attribute__((noinline)) long helper(long x) {
    if (x % 1000003 == 1000002) { puts("rare"); return 7; }
    return x * 3 + 1;
}
int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000, sum = 0;
    for (long i = 0; i < n; i++) sum += helper(work(i, sum & 15));
    printf("%ld\n", sum);
    return 0;
}
"#;

const WORK: &str = r#"
#include <stdio.h>
static __attribute__((noinline)) long helper(long x) {
    if (__builtin_expect(x < 0, 0)) { fprintf(stderr, "negative\n"); return -x; }
    return x ^ 0x55;
}
long work(long n, long seed) {
    long r = 0;
    for (int k = 0; k < 8; k++) {
        if ((n + k) % 97 == 96 && seed == 77) { printf("never %ld\n", n); r -= 5; }
        else if ((n ^ k) & 1) r += helper(n + k);
        else r ^= seed;
    }
    return r;
}
"#;

/// Compiles and links both files with an option for blocks; `None` where the tools are not there.
fn build(folder: &Path, option: &str, link: &[&str]) -> Option<()> {
    let tool = |name: &str| testing::tool(&Path::new("/usr/lib/llvm-19/bin").join(name));
    let (mut clang, Some(_)) = (tool("clang")?, tool("ld.lld")) else { return None };
    // valgrind does not read all of DWARF 5.
    clang.current_dir(folder).args(["-O2", "-gdwarf-4", "-fuse-ld=lld", option, "main.c", "work.c"]).args(link);
    let output = clang.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// The program in a folder, with the map of its blocks.
fn with_map() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("main.c"), MAIN).unwrap();
    fs::write(folder.path().join("work.c"), WORK).unwrap();
    build(folder.path(), "-fbasic-block-sections=labels", &["-o", "program"])?;
    Some(folder)
}

/// Start and size of the symbols of code, by name: those of one name in the order of their addresses.
fn symbols(binary: &Path) -> BTreeMap<String, Vec<(u64, u64)>> {
    let output = Command::new("nm").args(["-n", "-S"]).arg(binary).output().unwrap();
    let mut symbols: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let [start, size, "t" | "T", name] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            symbols.entry(name.into()).or_default().push((number(start), number(size)));
        }
    }
    symbols
}

fn output_of(binary: &Path) -> Vec<u8> {
    Command::new(binary).arg("20000").output().unwrap().stdout
}

/// A program is recorded, laid out anew, and does what it did: what ran lies together, what did not lies elsewhere.
#[test]
fn clang_and_lld_lay_out_a_program_that_was_recorded() {
    let _alone = Alone::wait();
    let Some(folder) = with_map() else { return };
    let file = |name: &str| folder.path().join(name);
    let mut record = hbbp();
    record.args(["record", "--overhead", "20", "-o"]).arg(file("data")).arg("--").arg(file("program")).arg("3000000");
    assert!(record.output().unwrap().status.success());
    let (blocks, functions, told) = export(folder.path(), &["-i", file("data").to_str().unwrap()]);
    assert!(blocks.contains("m main.c\nf helper\nc 0 2\n"), "{blocks}{told}");
    assert!(blocks.contains("m work.c\nf helper\nc 0 2\n"), "{blocks}{told}");
    build(
        folder.path(),
        "-fbasic-block-sections=list=cc_profile.txt",
        &["-Wl,--symbol-ordering-file=ld_profile.txt,--no-warn-symbol-ordering", "-o", "faster"],
    );
    assert_eq!(output_of(&file("faster")), output_of(&file("program")));
    let symbols = symbols(&file("faster"));
    let hot: Vec<(u64, u64)> = ["main", "work", "helper"].iter().flat_map(|name| symbols[*name].clone()).collect();
    let cold = ["main.cold", "work.cold", "helper.cold"].iter().flat_map(|name| symbols[*name].clone());
    let start = hot.iter().map(|(start, _)| *start).min().unwrap();
    let end = hot.iter().map(|(start, size)| start + size).max().unwrap();
    // Two functions are called `helper`. Functions begin at multiples of 16 bytes.
    assert_eq!(hot.len(), 4, "{symbols:?}");
    assert!(end - start <= hot.iter().map(|(_, size)| size.next_multiple_of(16)).sum(), "{symbols:?}");
    let cold: Vec<u64> = cold.map(|(at, _)| at).collect();
    assert_eq!(cold.len(), 4, "{symbols:?}");
    assert!(cold.iter().all(|at| !(start..end).contains(at)), "{symbols:?}");
    let order: Vec<&str> = functions.lines().take(3).collect();
    let place = |name: &str| order.iter().position(|line| *line == name).unwrap_or_else(|| panic!("{functions}"));
    assert_eq!(symbols["main"] < symbols["work"], place("main") < place("work"), "{functions}{symbols:?}");
}

/// Debug information calls two files the same that were compiled in two folders, and clang would give both functions the layout of the one.
#[test]
fn static_functions_of_files_of_one_name_are_left_out_though_only_one_ran() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    for (name, function) in [("d1", "one"), ("d2", "two")] {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        let work = WORK.replace("long work", &format!("long {function}"));
        fs::write(place.join("util.c"), work).unwrap();
        let Some(mut clang) = testing::tool(Path::new("/usr/lib/llvm-19/bin/clang")) else { return };
        clang.current_dir(&place).args(["-O2", "-gdwarf-4", "-fbasic-block-sections=labels", "-c", "util.c"]);
        assert!(clang.status().unwrap().success());
    }
    let main = MAIN
        .replace("long work(long n, long seed);", "long one(long n, long seed);\nlong two(long n, long seed);")
        .replace("helper(work(i, sum & 15))", "helper(argc > 9 ? two(i, sum) : one(i, sum & 15))");
    fs::write(folder.path().join("main.c"), main).unwrap();
    fs::write(folder.path().join("work.c"), "").unwrap();
    let objects = ["d1/util.o", "d2/util.o", "-o", "program"];
    let Some(()) = build(folder.path(), "-fbasic-block-sections=labels", &objects) else { return };
    let file = |name: &str| folder.path().join(name);
    let mut record = hbbp();
    record.args(["record", "--overhead", "20", "-o"]).arg(file("data")).arg("--").arg(file("program")).arg("1000000");
    assert!(record.output().unwrap().status.success());
    let (blocks, _, told) = export(folder.path(), &["-i", file("data").to_str().unwrap()]);
    assert!(blocks.contains("m main.c\nf helper\n"), "{blocks}{told}");
    assert!(blocks.contains("f one\n") && !blocks.contains("util.c"), "{blocks}{told}");
    assert!(told.contains("not in the profile: 1 function that ran, with a name that others have"), "{told}");
}

/// Of exact counts, exactly the blocks are hot that were executed, as LLVM reads the map and valgrind counts.
#[test]
fn what_llvm_and_valgrind_say_is_hot() {
    let _alone = Alone::wait();
    let Some(mut reader) = testing::tool(Path::new("/usr/lib/llvm-19/bin/llvm-readobj")) else { return };
    if !support::has("valgrind") {
        return;
    }
    let Some(folder) = with_map() else { return };
    let file = |name: &str| folder.path().join(name);
    let output = hbbp().args(["truth", "-o"]).arg(file("truth")).arg("--").arg(file("program")).arg("1000").output();
    assert!(output.unwrap().status.success());
    let truth: Value = serde_json::from_slice(&fs::read(file("truth")).unwrap()).unwrap();
    let (blocks, ..) = export(folder.path(), &["--truth", file("truth").to_str().unwrap()]);

    let modules = truth["modules"].as_array().unwrap();
    let module = modules.iter().position(|module| module["path"].as_str().unwrap().ends_with("/program")).unwrap();
    let executed: BTreeSet<u64> = truth["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["module"] == module && block["count"].as_f64().unwrap() > 0.0)
        .map(|block| block["start"].as_u64().unwrap())
        .collect();
    let printed = reader.arg("--bb-addr-map").arg(file("program")).output().unwrap().stdout;
    let mut expected: Vec<(String, BTreeSet<u32>)> = Vec::new();
    let (mut base, mut id, mut start) = (0, 0, 0);
    for line in String::from_utf8(printed).unwrap().lines() {
        let Some((key, value)) = line.trim().split_once(": ") else { continue };
        let number = value.strip_prefix("0x").map_or_else(|| value.parse(), |hex| u64::from_str_radix(hex, 16));
        match (key, number) {
            ("Name", _) if value != "<Not found>" => expected.push((value.to_owned(), BTreeSet::new())),
            ("Base Address", Ok(number)) => base = number,
            ("ID", Ok(number)) => id = number as u32,
            ("Offset", Ok(number)) => start = base + number,
            ("Size", Ok(size)) if executed.range(start..start + size).next().is_some() => {
                expected.last_mut().unwrap().1.insert(id);
            }
            _ => {}
        }
    }
    let mut found: Vec<(String, BTreeSet<u32>)> = Vec::new();
    for line in blocks.lines() {
        match line.split_once(' ') {
            Some(("f", name)) => found.push((name.to_owned(), BTreeSet::new())),
            Some(("c", ids)) => found.last_mut().unwrap().1 = ids.split(' ').map(|id| id.parse().unwrap()).collect(),
            _ => {}
        }
    }
    assert_eq!(found.len(), 4, "{blocks}");
    assert_eq!(found, expected);
}

/// One program by clang 16 to 22, as `tests/fixtures/make` built it, says the same of the same blocks, whatever the version of its map and
/// what else the compiler wrote there.
#[test]
fn maps_of_all_compilers_say_the_same() {
    let _alone = Alone::wait();
    if !support::has("valgrind") {
        return;
    }
    const NUMBERED: &str = "v1\nf _start\nc 0 2 1\nf work\nc 0 2 1\nf seldom\nc 0\n";
    // Blocks have no numbers there, but places. clang 13 made six blocks of `work`.
    const PLACED: &str = "v1\nf _start\nc 0 1 2\nf work\nc 0 2 1\nf seldom\nc 0\n";
    const OTHER: &str = "v1\nf _start\nc 0 1 2\nf work\nc 0 2 4 5 1\nf seldom\nc 0\n";
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/propeller");
    let folder = tempfile::tempdir().unwrap();
    // Version 0 is not stated. Features: 7 is what the compiler knew of a profile, 8 several ranges, 0x20 calls.
    for (name, head, expected) in [
        ("llvm-13", &[][..], OTHER),
        ("llvm-16", &[1, 0], PLACED),
        ("llvm-17", &[2, 0], NUMBERED),
        ("llvm-18", &[2, 0], NUMBERED),
        ("llvm-18-profile", &[2, 7], NUMBERED),
        ("llvm-19", &[2, 0], NUMBERED),
        ("llvm-19-sections", &[2, 15], NUMBERED),
        ("llvm-20", &[2, 0], NUMBERED),
        ("llvm-20-sections", &[2, 15], NUMBERED),
        ("llvm-21", &[3, 0x20], NUMBERED),
        ("llvm-22", &[5, 0x20, 0], NUMBERED),
        ("llvm-22-sections", &[5, 0x2f, 0], NUMBERED),
    ] {
        let program = fixtures.join(name);
        let bytes = fs::read(&program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let map = file.section_by_name(".llvm_bb_addr_map").unwrap().data().unwrap();
        assert!(map.starts_with(head), "{name}: {map:x?}");
        let truth = folder.path().join(name);
        let counted = hbbp().args(["truth", "-o"]).arg(&truth).arg("--").arg(&program).output().unwrap();
        assert!(counted.status.success(), "{name}: {}", String::from_utf8_lossy(&counted.stderr));
        let (blocks, functions, told) = export(folder.path(), &["--truth", truth.to_str().unwrap()]);
        assert_eq!(blocks, expected, "{name}: {told}");
        assert!(functions.starts_with("_start\nwork\nseldom\n"), "{name}: {functions}");
        assert_eq!(told.contains("its compiler may be too old"), expected != NUMBERED, "{name}: {told}");
    }
}
