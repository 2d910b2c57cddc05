//! Debug information that states much in few bytes, made by hand: it is read in a time and memory of its size, or not at all, and said.

use std::path::Path;
use std::process::Command;

use analyzer::address::Svma;
use analyzer::lines::SourceIndex;
use analyzer::recording::Module;
use analyzer::{Binary, BinarySearch};

/// Assembles 64 instructions at 0x401000 with this debug information; `None` (said loudly) without a C compiler.
fn assemble(folder: &Path, debug_information: &str) -> Option<Binary> {
    let code = "
.globl _start
.type _start, @function
_start:
.rept 64
.loc 1 7
nop
.endr
.Lend:
.size _start, .-_start
.section .note.GNU-stack,\"\",@progbits
.section .debug_line,\"\",@progbits
.Llines:
";
    let (source, program) = (folder.join("program.s"), folder.join("program"));
    std::fs::write(&source, format!(".file 1 \"program.c\"\n{code}{debug_information}\n")).unwrap();
    let link = ["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000", "-o"];
    let Ok(status) = Command::new("gcc").args(link).args([&program, &source]).status() else {
        testing::skip!(Tool, "gcc is not installed");
        return None;
    };
    assert!(status.success(), "gcc cannot assemble the test program");
    let module = Module::file(program.to_str().unwrap().into(), None);
    Some(BinarySearch::default().open(&module).unwrap())
}

fn read(debug_information: &str) -> Option<SourceIndex> {
    let folder = tempfile::tempdir().unwrap();
    let binary = assemble(folder.path(), debug_information)?;
    Some(SourceIndex::read(&binary, &[Svma(0x40_1000)..Svma(0x40_1040)], 2))
}

/// Abbreviations: 1 a unit, 2 a function with its code, 3 one with a list of ranges, 4 an inlined one with others inside.
const ABBREVIATIONS: &str = "
.section .debug_abbrev,\"\",@progbits
.Labbreviations:
    .byte 1, 0x11, 1,  0x13, 0xb, 0x11, 1, 0x12, 7, 0x10, 0x17,  0, 0
    .byte 2, 0x2e, 1,  3, 8, 0x3b, 0xb, 0x11, 1, 0x12, 7,  0, 0
    .byte 3, 0x2e, 0,  3, 8, 0x3b, 0xb, 0x55, 0x17,  0, 0
    .byte 4, 0x1d, 1,  0x31, 0x13, 0x11, 1, 0x12, 7, 0x59, 0xb,  0, 0
    .byte 5, 0x2e, 0,  0x31, 0x13,  0, 0
    .byte 6, 0x11, 0,  0x13, 0xb, 0x55, 0x17, 0x10, 0x17,  0, 0
    .byte 0
";

/// A unit of a split file: `DW_AT_GNU_dwo_name`, `DW_AT_GNU_dwo_id`.
const SKELETON: &str = "    .byte 7, 0x11, 0,  0xb0, 0x42, 8, 0xb1, 0x42, 7, 0x11, 1, 0x12, 7,  0, 0\n    .byte 0\n";

/// [`ABBREVIATIONS`] and more of them, with the end of the table.
fn abbreviations_and(more: &str) -> String {
    format!("{}{more}", ABBREVIATIONS.trim_end().trim_end_matches(".byte 0"))
}

/// A unit of C code with the code of `_start`, and these entries.
fn unit(entries: &str) -> String {
    format!(
        "
.section .debug_info,\"\",@progbits
    .long 2f - 1f
1:  .value 4
    .long .Labbreviations
    .byte 8
    .byte 1, 0xc
    .quad _start, .Lend - _start
    .long .Llines
{entries}
    .byte 0
2:
"
    )
}

const FUNCTION: &str = "
    .byte 2
    .asciz \"f\"
    .byte 5
    .quad _start, .Lend - _start
";

#[test]
fn a_plain_unit_is_read() {
    let Some(index) = read(&format!("{ABBREVIATIONS}{}", unit(&format!("{FUNCTION} .byte 0")))) else { return };
    assert_eq!(index.notes(), &[] as &[String]);
    let [span] = index.spans() else { panic!("{:?}", index.spans()) };
    assert_eq!((span.start, span.end, span.position.line), (Svma(0x40_1000), Svma(0x40_1040), 7));
    let function = index.function(index.scope(span.scope));
    assert_eq!((function.linkage_name.as_deref(), function.start_line), (Some("f"), Some(5)));
}

#[test]
fn units_that_share_a_line_program_are_read_once() {
    let units = format!(".rept 5000\n{}\n.endr", unit(&format!("{FUNCTION} .byte 0")));
    let Some(index) = read(&format!("{ABBREVIATIONS}{units}")) else { return };
    assert_eq!(index.notes(), ["4999 units share the line program of another one and are not read"]);
    assert_eq!(index.spans().len(), 1);
}

#[test]
fn functions_that_share_a_list_of_ranges_run_out() {
    let list = "
.section .debug_ranges,\"\",@progbits
.Lranges:
.rept 5000
.quad _start, .Lend
.endr
.quad 0, 0
";
    let functions = ".rept 5000\n .byte 3\n .asciz \"f\"\n .byte 5\n .long .Lranges\n.endr";
    let Some(index) = read(&format!("{ABBREVIATIONS}{list}{}", unit(functions))) else { return };
    assert!(index.notes()[0].contains("more address ranges than its bytes could hold"), "{:?}", index.notes());
    let units = "
.rept 5000
.section .debug_info,\"\",@progbits
    .long 2f - 1f
1:  .value 4
    .long .Labbreviations
    .byte 8
    .byte 6, 0xc
    .long .Lranges
    .long .Llines
2:
.endr
";
    let Some(index) = read(&format!("{ABBREVIATIONS}{list}{units}")) else { return };
    assert!(index.notes()[0].contains("cannot be opened: its entries state more"), "{:?}", index.notes());
}

#[test]
fn inlining_is_followed_500_deep() {
    let depth = 100_000;
    let inlined = "
.rept 100000
    .byte 4
    .long 11
    .quad _start, .Lend - _start
    .byte 6
.endr
.rept 100000
    .byte 0
.endr
";
    let Some(index) = read(&format!("{ABBREVIATIONS}{}", unit(&format!("{FUNCTION}{inlined} .byte 0")))) else {
        return;
    };
    assert!(index.scopes().len() <= depth / 100, "{}", index.scopes().len());
    let [span] = index.spans() else { panic!("{:?}", index.spans().len()) };
    let mut frames = 1;
    let mut scope = span.scope;
    while let Some((caller, _)) = index.scope(scope).caller {
        scope = caller;
        frames += 1;
    }
    assert_eq!(frames, 501);
}

#[test]
fn entries_that_refer_to_each_other_have_no_name() {
    let entries = "
    .byte 4
    .long 3f - .Lunit
    .quad _start, .Lend - _start
    .byte 6
    .byte 0
    .byte 0
3:  .byte 5
    .long 4f - .Lunit
4:  .byte 5
    .long 3b - .Lunit
";
    let unit = unit(&format!("{FUNCTION}{entries}"));
    let label = ".section .debug_info,\"\",@progbits\n.Lunit:\n";
    let Some(index) = read(&format!("{ABBREVIATIONS}{label}{unit}")) else { return };
    let [span] = index.spans() else { panic!("{:?}", index.spans()) };
    let scope = index.scope(span.scope);
    assert!(scope.caller.is_some());
    assert_eq!(index.function(scope).linkage_name, None);
}

#[test]
fn attributes_without_bytes_are_not_believed() {
    let many = abbreviations_and(" .byte 7, 0x34, 0\n.rept 100000\n.byte 0x3f, 0x19\n.endr\n.byte 0, 0, 0\n");
    let Some(index) = read(&format!("{many}{}", unit(".rept 100000\n.byte 7\n.endr"))) else { return };
    let expected = "an entry has 100000 attributes, at most 256 are believed";
    assert!(index.notes()[0].contains(expected), "{:?}", index.notes());
}

/// 5000 functions that refer to one string of that many bytes, and what is behind it.
fn functions_that_share_a_name(bytes: usize, behind: &str) -> Option<SourceIndex> {
    let by_reference = "    .byte 7, 0x2e, 0,  3, 0xe, 0x11, 1, 0x12, 7,  0, 0\n    .byte 0\n";
    let names = format!(".section .debug_str,\"\",@progbits\n.Lname:\n.fill {bytes}, 1, 'a'\n{behind}\n");
    let functions = ".rept 5000\n .byte 7\n .long .Lname\n .quad _start, .Lend - _start\n.endr";
    read(&format!("{}{names}{}", abbreviations_and(by_reference), unit(functions)))
}

#[test]
fn functions_that_share_a_long_name_run_out() {
    let Some(index) = functions_that_share_a_name(7, ".byte 0") else { return };
    assert_eq!(index.notes(), &[] as &[String]);
    assert_eq!(index.scopes().len(), 5000);
    let Some(index) = functions_that_share_a_name(16_000, ".byte 0") else { return };
    assert!(index.notes()[0].contains("longer names than its bytes could hold"), "{:?}", index.notes());
    assert!((1..500).contains(&index.scopes().len()), "{}", index.scopes().len());
}

#[test]
fn names_without_an_end_run_out() {
    let Some(index) = functions_that_share_a_name(100_000, "") else { return };
    assert!(index.notes()[0].contains("longer names than its bytes could hold"), "{:?}", index.notes());
}

#[test]
fn skeletons_that_share_a_split_file_run_out() {
    // The program itself stands for the file.
    let units = "
.section .debug_info,\"\",@progbits
.rept 200
    .long 2f - 1f
1:  .value 4
    .long .Labbreviations
    .byte 8
    .byte 7
    .asciz \"program\"
    .quad 0x1234
    .quad _start, .Lend - _start
2:
.endr
";
    let Some(index) = read(&format!("{}{units}", abbreviations_and(SKELETON))) else { return };
    let expected = [
        "136 units share their split debug information with too many others and are not read",
        "split debug information is missing: program is of another build, or damaged (64 times)",
    ];
    assert_eq!(index.notes(), expected);
}

/// A function of 6,000 instructions, each of a file of its own; all of these are in one folder, whose name is that long.
fn files_in_one_folder(folder: usize) -> Option<SourceIndex> {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("program.s"), directory.path().join("program"));
    let name = "d".repeat(folder);
    let lines: String =
        (1..=6_000).map(|file| format!(".file {file} \"/{name}/f{file}\"\n.loc {file} 7\nnop\n")).collect();
    let code = format!(".globl _start\n.type _start, @function\n_start:\n{lines}.size _start, .-_start\n");
    std::fs::write(&source, code).unwrap();
    let gcc = ["-g", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000", "-o"];
    let Ok(status) = Command::new("gcc").args(gcc).args([&program, &source]).status() else {
        testing::skip!(Tool, "gcc is not installed");
        return None;
    };
    assert!(status.success(), "gcc cannot assemble the test program");
    let module = Module::file(program.to_str().unwrap().into(), None);
    let binary = BinarySearch::default().open(&module).unwrap();
    Some(SourceIndex::read(&binary, &[Svma(0x40_1000)..Svma(0x40_1000 + 6_000)], 2))
}

#[test]
fn files_that_share_a_long_folder_run_out() {
    let named = |index: &SourceIndex| {
        index.spans().iter().filter(|span| index.file(span.position.file).is_some_and(|file| file.len() > 100)).count()
    };
    let Some(index) = files_in_one_folder(100) else { return };
    assert_eq!((index.notes(), named(&index)), (&[] as &[String], 6_000));
    let Some(index) = files_in_one_folder(3_000) else { return };
    assert_eq!(index.notes(), ["a line program states longer paths than its bytes could hold"]);
    assert!((100..2_000).contains(&named(&index)), "{}", named(&index));
}

/// Assembles a package beside the program: an index in which so many units have the same contributions.
fn assemble_package(folder: &Path, units: u32) {
    const SLOTS: u32 = 512;
    let numbers = |rows: &mut dyn Iterator<Item = String>| rows.collect::<Vec<_>>().join("\n");
    // A signature is its place in the table, and its row.
    let signatures = numbers(&mut (0..SLOTS).map(|slot| format!(".quad {}", if slot <= units { slot } else { 0 })));
    let rows = numbers(&mut (0..SLOTS).map(|slot| format!(".long {}", if slot <= units { slot } else { 0 })));
    let source = format!(
        "
.section .debug_info.dwo,\"e\",@progbits
.fill 100, 1, 0
.section .debug_abbrev.dwo,\"e\",@progbits
.fill 100, 1, 0
.section .debug_cu_index,\"\",@progbits
.long 2, 2, {units}, {SLOTS}
{signatures}
{rows}
.long 1, 3
.rept {units}
.long 0, 0
.endr
.rept {units}
.long 100, 100
.endr
"
    );
    std::fs::write(folder.join("package.s"), source).unwrap();
    let (source, package) = (folder.join("package.s"), folder.join("program.dwp"));
    let status = Command::new("gcc").args(["-c", "-o"]).args([&package, &source]).status();
    assert!(status.unwrap().success(), "gcc cannot assemble the package");
}

#[test]
fn skeletons_that_share_a_package_run_out() {
    let units = "
.section .debug_info,\"\",@progbits
.set id, 0
.rept 200
.set id, id + 1
    .long 2f - 1f
1:  .value 4
    .long .Labbreviations
    .byte 8
    .byte 7
    .asciz \"program.dwo\"
    .quad id
    .quad _start, .Lend - _start
2:
.endr
";
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), &format!("{}{units}", abbreviations_and(SKELETON))) else { return };
    assemble_package(folder.path(), 200);
    let index = SourceIndex::read(&binary, &[Svma(0x40_1000)..Svma(0x40_1040)], 2);
    let expected = [
        "136 units share their split debug information with too many others and are not read",
        "split debug information is missing: program.dwo in the .dwp file is damaged (64 times)",
    ];
    assert_eq!(index.notes(), expected);
}
