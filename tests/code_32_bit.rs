//! Code of 32 bits, on made-up recordings whose counts are known by hand: it is decoded as what it is, and what bursts do not follow the
//! clock counts.

#[path = "support/archived.rs"]
mod archived;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use formats::made_code::MadeCode;
use perfdata::{Avma, Features, Mmap};
use serde_json::Value;
use synthetic::{A, A_JNE, AROUND, Burst, C, D, D_JMP, Recorder, burst_metadata};

/// The four blocks of the other program, as code of 32 bits. Nearly all of it is something else in 64-bit mode: another instruction, another
/// length, or none at all.
const SOURCE: &str = "
.globl _start
.type _start, @function
_start:
    inc %eax                    # 40: a prefix (REX)
    dec %ecx                    # 49
    arpl %ax, (%ebx)            # 63: movslq
    pusha                       # 60: none
    popa                        # 61
    bound %eax, (%esp)          # 62: a prefix (EVEX)
    les (%esp), %eax            # c4: a prefix (VEX)
    lds (%esp), %eax            # c5
    mov 0x12345678, %eax        # a1: an address of 8 bytes
    mov 0x12345678, %ebx        # 8b 1d: relative to the next instruction
    aaa                         # 37: none
    daa
    aam
    into
    push %cs
    pop %ds
    push $5
    movsl
a_jne:
    jne c
b:  inc %edx
    lock incl (%ebx)
b_jmp:
    jmp d
c:  dec %edi
    inc %esi
d:  pushf
d_jmp:
    jmp _start
.size _start, .-_start
.section .note.GNU-stack,\"\",@progbits
";

struct Program {
    binary: PathBuf,
    at: BTreeMap<String, u64>,
}

impl Program {
    fn assemble(folder: &Path, name: &str, flags: &[&str]) -> Option<Self> {
        let binary = synthetic::assemble(folder, name, SOURCE, flags)?;
        let output = Command::new("nm").arg(&binary).output().unwrap();
        let symbols = String::from_utf8(output.stdout).unwrap();
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let at = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((words.nth(1)?.to_owned(), at))
        };
        Some(Self { binary, at: symbols.lines().filter_map(symbol).collect() })
    }

    fn of_32_bits(folder: &Path) -> Option<Self> {
        Self::assemble(folder, "short", &["-m32"])
    }

    fn at(&self, name: &str) -> u64 {
        self.at[name]
    }

    /// [`AROUND`], of this program.
    fn around(&self) -> [(u64, u64); 5] {
        let [a, c, d] = ["_start", "c", "d"].map(|name| self.at(name));
        let [a_jne, b_jmp, d_jmp] = ["a_jne", "b_jmp", "d_jmp"].map(|name| self.at(name));
        [(d_jmp, a), (b_jmp, d), (d_jmp, a), (a_jne, c), (d_jmp, a)]
    }
}

fn write(folder: &Path, recorder: Recorder, features: &Features) -> String {
    let file = folder.join("run.data");
    std::fs::write(&file, recorder.finish(features)).unwrap();
    file.to_str().unwrap().to_owned()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&support::stdout(arguments)).unwrap()
}

/// Start, instructions, and count of each block of the module that ends in this name.
fn blocks(document: &Value, module: &str) -> Vec<(u64, u64, f64)> {
    let is_it = |module_: &Value| module_["path"].as_str().unwrap().ends_with(module);
    let index = document["modules"].as_array().unwrap().iter().position(is_it).unwrap();
    let of_module = document["blocks"].as_array().unwrap().iter().filter(|block| block["module"] == index);
    let row = |block: &Value| {
        let number = |key: &str| block[key].as_u64().unwrap();
        (number("start"), number("instructions"), block["count"].as_f64().unwrap())
    };
    let mut rows: Vec<_> = of_module.map(row).collect();
    rows.sort_by_key(|row| row.0);
    rows
}

#[test]
fn stacks_of_the_hardware_count_it_as_any_other_code() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = Program::of_32_bits(folder.path()) else { return };
    let mut recorder = Recorder::new(&program.binary);
    recorder.stack(&program.around());
    let file = write(folder.path(), recorder, &Features::default());
    let found = blocks(&json(&["blocks", "-i", &file, "--format", "json"]), "short");
    let [a, b, c, d] = ["_start", "b", "c", "d"].map(|name| program.at(name));
    assert_eq!(found, [(a, 19, 50.0), (b, 3, 25.0), (c, 2, 25.0), (d, 2, 50.0)]);
}

/// Beside one of 64 bits.
#[test]
fn archives_have_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some(program) = Program::of_32_bits(folder) else { return };
    let Some(file) = beside_bursts(folder, &program) else { return };
    assert!(file.ends_with("run.data"));
    let remove = || ["short", "four"].iter().for_each(|name| std::fs::remove_file(folder.join(name)).unwrap());
    let archive = archived::reports_are_the_same(folder, &[], folder, &[], remove);
    let document = json(&["blocks", "-i", archive.to_str().unwrap(), "--format", "json"]);
    let found = blocks(&document, "short");
    assert_eq!(found, [(program.at("b"), 3, 12.5 / 3.0), (program.at("c"), 2, 12.5 / 2.0)]);
}

#[test]
fn a_mix_names_its_instructions_as_an_assembler_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = Program::of_32_bits(folder.path()) else { return };
    let mut recorder = Recorder::new(&program.binary);
    recorder.stack(&program.around());
    let file = write(folder.path(), recorder, &Features::default());
    let csv = support::stdout(&["mix", "-i", &file, "--rows", "mnemonic,width", "--format", "csv"]);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[..2].join(" "), fields[2].parse::<f64>().unwrap().round() as u64)
    };
    let found: BTreeMap<String, u64> = csv.lines().skip(1).map(row).collect();
    let expect = |name: &str, count: u64| assert_eq!(found.get(name), Some(&count), "{name}: {found:?}");
    // 50 in A, 25 in B, 25 in C; that with `lock` is in B.
    expect("inc 32", 50 + 25 + 25 + 25);
    expect("dec 32", 50 + 25);
    expect("mov 32", 50 + 50);
    expect("push 32", 50);
    expect("movsd 32", 50);
    for name in ["arpl", "pushad", "popad", "bound", "les", "lds", "aaa", "daa", "aam", "into"] {
        let all: u64 =
            found.iter().filter(|(row, _)| row.split(' ').next() == Some(name)).map(|(_, count)| count).sum();
        assert_eq!(all, 50, "{name}: {found:?}");
    }
    let all: u64 = found.values().sum();
    assert_eq!(all, 50 * 19 + 25 * 3 + 25 * 2 + 50 * 2);
}

#[test]
fn addresses_without_a_base_are_no_distances() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = Program::of_32_bits(folder.path()) else { return };
    let mut recorder = Recorder::new(&program.binary);
    recorder.stack(&program.around());
    let file = write(folder.path(), recorder, &Features::default());
    let annotated = support::stdout(&["annotate", "-i", &file]);
    assert!(annotated.contains("12345678"), "{annotated}");
    assert!(!annotated.contains("rip"), "{annotated}");
}

/// The other program at its place, with this one beside it: two samples of the clock in that, one in two blocks of this.
fn beside_bursts(folder: &Path, program: &Program) -> Option<String> {
    const ELSEWHERE: u64 = 0x0800_0000;
    let four = synthetic::program(folder, "four", &[])?;
    let mut recorder = Recorder::traced(&four);
    let path = program.binary.to_str().unwrap().as_bytes();
    recorder.map(&Mmap { start: Avma(ELSEWHERE), path, ..Recorder::mapping() });
    recorder.burst(&Burst { ip: A, branches: &[(A_JNE, C), (D_JMP, A)], instructions: 25, period: 25 });
    recorder.sample(A);
    recorder.sample(D);
    ["b", "c"].iter().for_each(|name| recorder.sample(program.at(name) - A + ELSEWHERE));
    Some(write(folder, recorder, &burst_metadata("instructions")))
}

/// 2,000 ns of the other program are 25 instructions, so a sample of 1,000 ns is 12.5 of them.
#[test]
fn beside_bursts_the_clock_counts_it_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = Program::of_32_bits(folder.path()) else { return };
    let Some(file) = beside_bursts(folder.path(), &program) else { return };
    let document = json(&["blocks", "-i", &file, "--format", "json"]);
    let found = blocks(&document, "short");
    assert_eq!(found, [(program.at("b"), 3, 12.5 / 3.0), (program.at("c"), 2, 12.5 / 2.0)]);
    assert_eq!(blocks(&document, "four"), [(A, 21, 1.0), (C, 2, 1.0), (D, 2, 1.0)]);
    let mixed = support::stdout(&["mix", "-v", "-i", &file]);
    assert!(mixed.contains("lbr outside the kernel and 32-bit code"), "{mixed}");
    let words: Vec<&str> = mixed.split_whitespace().collect();
    let said = "50.00 % of the instructions (estimated) are 32-bit code, which bursts do not follow: samples of task-clock count it";
    assert!(words.join(" ").contains(said), "{mixed}");
}

/// Nothing says which code it is but its process, whose vDSO is that of 32 bits.
#[test]
fn the_process_says_what_unread_code_is() {
    const ELSEWHERE: u64 = 0x0800_0000;
    let folder = tempfile::tempdir().unwrap();
    let Some(four) = synthetic::program(folder.path(), "four", &[]) else { return };
    let recorded = |vdso: u64| {
        let mut recorder = Recorder::traced(&four);
        recorder.map(&Mmap { start: Avma(ELSEWHERE), path: b"/gone", ..Recorder::mapping() });
        recorder.map(&Mmap { start: Avma(vdso), len: 0x3000, path: b"[vdso]", ..Recorder::mapping() });
        recorder.burst(&Burst { ip: A, branches: &[(A_JNE, C), (D_JMP, A)], instructions: 25, period: 25 });
        [A, D, ELSEWHERE + 1, ELSEWHERE + 9].iter().for_each(|ip| recorder.sample(*ip));
        let file = write(folder.path(), recorder, &burst_metadata("instructions"));
        let document = json(&["blocks", "-i", &file, "--format", "json"]);
        let count: f64 =
            blocks(&document, "gone").iter().map(|(_, instructions, count)| *instructions as f64 * count).sum();
        (count, document["head"].to_string())
    };
    let (short, said) = recorded(0xf7f0_0000);
    assert!((short - 25.0).abs() < 0.5, "{short}: {said}");
    assert!(said.contains("50.00 % of the instructions (estimated) are 32-bit code"), "{said}");
    // Bursts would have come there.
    let (long, said) = recorded(0x7ffc_1234_0000);
    assert!(long == 0.0, "{long}");
    assert!(said.contains("50.0 % of the samples are in unread code of /gone, which has no branch records"), "{said}");
}

/// Samples of what bursts do not follow say nothing of where bursts should have started.
#[test]
fn its_time_is_not_that_of_code_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = Program::of_32_bits(folder.path()) else { return };
    let Some(four) = synthetic::program(folder.path(), "four", &[]) else { return };
    let counts = |others: u64| {
        let mut recorder = Recorder::traced(&four);
        let path = program.binary.to_str().unwrap().as_bytes();
        recorder.map(&Mmap { start: Avma(0x0800_0000), path, ..Recorder::mapping() });
        for _ in 0..8 {
            recorder.burst(&Burst { ip: A, branches: &AROUND[2..], instructions: 25, period: 1000 });
            recorder.burst(&Burst { ip: D, branches: &[(D_JMP, A), (A_JNE, C)], instructions: 23, period: 1000 });
        }
        (0..3).for_each(|_| recorder.sample(A));
        (0..others).for_each(|_| recorder.sample(program.at("b") - A + 0x0800_0000));
        let file = write(folder.path(), recorder, &burst_metadata("nanoseconds"));
        blocks(&json(&["blocks", "-i", &file, "--format", "json"]), "four")
    };
    assert_eq!(counts(0), counts(50));
}

#[test]
fn code_for_x32_is_decoded_as_that_of_64_bits() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = synthetic::program(folder.path(), "four", &["-mx32"]) else { return };
    let header = std::fs::read(&program).unwrap();
    assert_eq!((header[4], header[18]), (1, 62), "a file of class 32 for x86-64");
    let mut recorder = Recorder::new(&program);
    recorder.stack(&AROUND);
    let file = write(folder.path(), recorder, &Features::default());
    let found = blocks(&json(&["blocks", "-i", &file, "--format", "json"]), "four");
    assert_eq!(found.iter().map(|row| row.1).collect::<Vec<_>>(), [21, 4, 2, 2]);
    assert_eq!(found.iter().map(|row| row.2).collect::<Vec<_>>(), [50.0, 25.0, 25.0, 50.0]);
}

/// `[vdso]` is another file in processes of 32 bits.
#[test]
fn the_vdso_is_that_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = Program::of_32_bits(folder.path()) else { return };
    let Some(four) = synthetic::program(folder.path(), "four", &[]) else { return };
    let (short, long) = (std::fs::read(&program.binary).unwrap(), std::fs::read(&four).unwrap());
    let mapped = |recorded: &[&[u8]], start: u64| {
        let mut recorder = Recorder::new(&four);
        recorded.iter().for_each(|file| recorder.code(&MadeCode::Vdso(file)));
        recorder.map(&Mmap { start: Avma(start), len: 0x3000, pgoff: start, path: b"[vdso]", ..Recorder::mapping() });
        // The code is a page after the start of the file.
        recorder.sample(start + 0x1000);
        let file = write(folder.path(), recorder, &Features::default());
        json(&["blocks", "-i", &file, "--format", "json"])
    };
    let low = mapped(&[&long, &short], 0xf7f0_0000);
    assert_eq!(blocks(&low, "[vdso32]"), [(A, 19, 1000.0 / 19.0)]);
    let high = mapped(&[&long, &short], 0x7ffc_1234_0000);
    assert_eq!(blocks(&high, "[vdso]"), [(A, 21, 1000.0 / 21.0)]);
    // That of the others is not taken for it.
    let unknown = mapped(&[&long], 0xf7f0_0000);
    assert!(unknown["blocks"].as_array().unwrap().iter().all(|block| block["decoded"] == false), "{unknown}");
}
