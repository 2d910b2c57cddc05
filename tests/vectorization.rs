//! `hbbp vectorization`: on code whose operations are known by hand, and beside what `hbbp mix` counts.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perfdata::Features;
use serde_json::Value;
use support::{Fixture, run, stdout};
use synthetic::{Recorder, assemble};
use unicode_width::UnicodeWidthStr;

/// Two loops: of `single`, one multiplication and one addition of one double each (2 operations); of `packed`, a multiply and add of four
/// doubles (8), a multiplication of eight floats (8), an addition of four integers, and a move.
const SOURCE: &str = "
.globl _start
.type _start, @function
_start:
    jmp single
.size _start, .-_start
.org 0x10
.type single, @function
single:
1:  mulsd %xmm1, %xmm0
    addsd %xmm2, %xmm1
    decl %ecx
    jne 1b
    jmp packed
.size single, .-single
.org 0x20
.type packed, @function
packed:
1:  vfmadd231pd %ymm2, %ymm1, %ymm0
    vmulps %ymm2, %ymm1, %ymm0
    paddd %xmm1, %xmm0
    movaps %xmm1, %xmm0
    decl %ecx
    jne 1b
    jmp single
.size packed, .-packed
.section .note.GNU-stack,\"\",@progbits
";

const SINGLE: u64 = 0x40_1010;
const SINGLE_JNE: u64 = 0x40_101a;
const SINGLE_JMP: u64 = 0x40_101c;
const PACKED: u64 = 0x40_1020;
const PACKED_JNE: u64 = 0x40_1032;
const PACKED_JMP: u64 = 0x40_1034;

/// Three rounds of the loop of `single`, two of that of `packed`: five streams, each of weight 20.
const ROUND: [(u64, u64); 6] = [
    (PACKED_JMP, SINGLE),
    (SINGLE_JNE, SINGLE),
    (SINGLE_JNE, SINGLE),
    (SINGLE_JMP, PACKED),
    (PACKED_JNE, PACKED),
    (PACKED_JMP, SINGLE),
];

fn recording(folder: &Path, options: &[&str]) -> Option<String> {
    let binary: PathBuf = assemble(folder, "loops", SOURCE, options)?;
    let mut recorder = Recorder::new(&binary);
    // In all slices of the recording.
    (0..40).for_each(|_| recorder.stack(&ROUND));
    let file = folder.join("run.data");
    std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
    Some(file.to_str().unwrap().to_owned())
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--format", "json"]].concat())).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(value: &Value, expected: f64) {
    assert!((number(value) - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{value}, expected {expected}");
}

#[test]
fn operations_are_those_counted_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = recording(folder.path(), &[]) else { return };
    let document = json(&["vectorization", &file]);
    let rows = document["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["function"].as_str().unwrap()).collect();
    assert_eq!(names, ["single", "packed"], "the one with scalar operations comes first");
    let (scalar, packed) = (40.0 * 3.0 * 20.0 * 2.0, 40.0 * 2.0 * 20.0 * 16.0);
    near(&document["all"]["flops"]["count"], scalar + packed);
    near(&document["all"]["flops"]["scalar"], scalar / (scalar + packed));

    let single = &rows[0]["flops"];
    near(&single["count"], scalar);
    near(&single["share"], scalar / (scalar + packed));
    near(&single["scalar"], 1.0);
    near(&single["fma"], 0.0);
    assert!(rows[0]["integer"]["packed_128"].is_null());
    let row = &rows[1];
    near(&row["flops"]["scalar"], 0.0);
    near(&row["flops"]["packed_256"], 1.0);
    near(&row["flops"]["fma"], 0.5);
    // One of its seven instructions each, and a jump from outside of the loop.
    let rounds = 40.0 * 2.0 * 20.0;
    near(&row["instructions"], 6.0 * rounds + 40.0 * 20.0);
    near(&row["moves"], rounds);
    near(&row["integer"]["count"], rounds);
    near(&row["integer"]["packed_128"], 1.0);
    let part = |work: &str, element: &str| {
        let parts = row["parts"].as_array().unwrap();
        parts.iter().find(|part| part["work"] == work && part["element"] == element).cloned().unwrap()
    };
    near(&part("integer", "i32")["operations"], 4.0 * rounds);
    near(&part("float", "f32")["operations"], 8.0 * rounds);
    near(&part("float", "f64")["operations"], 8.0 * rounds);
    assert_eq!(part("float", "f64")["fma"], true);
    assert_eq!(part("float", "f64")["width"], 256);
    assert!(part("move", "f32")["operations"].is_null());

    let table = stdout(&["vectorization", &file]);
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(!line("function").contains("i8"), "{table}");
    let titles = line("function");
    let end = titles[..titles.find("i32").unwrap()].chars().count() + "i32".len();
    let until: String = line("packed").chars().take(end).collect();
    assert!(until.ends_with(" 100 %"), "{table}");
}

/// A loop that reads 16 bytes and writes 8 for two operations; and one with a mask, of eight operations at most, whose move of a string is of
/// any length.
const MEMORY: &str = "
.globl _start
.type _start, @function
_start:
    jmp sums
.size _start, .-_start
.org 0x10
.type sums, @function
sums:
1:  mulsd (%rsi), %xmm0
    addsd (%rdi), %xmm0
    movsd %xmm0, (%rdi)
    decl %ecx
    jne 1b
    jmp masked
.size sums, .-sums
.org 0x30
.type masked, @function
masked:
    vaddpd (%rsi), %zmm1, %zmm0{%k1}
    rep movsb
    jmp sums
.size masked, .-masked
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn operations_and_bytes_are_those_counted_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "memory", MEMORY, &[]) else { return };
    let code = std::fs::read(&binary).unwrap();
    // The offsets of the jumps, by the code before them: `dec ecx` is ff c9, `rep movsb` f3 a4.
    let at = |bytes: &[u8]| code.windows(bytes.len()).position(|window| window == bytes).unwrap() as u64;
    let start = at(&[0xf2, 0x0f, 0x59, 0x06]) - 0x10;
    let address = |offset: u64| 0x40_1000 + offset - start;
    let (jne, masked_jmp) = (address(at(&[0xff, 0xc9]) + 2), address(at(&[0xf3, 0xa4]) + 2));
    let round = [(masked_jmp, 0x40_1010), (jne, 0x40_1010), (jne + 2, 0x40_1030), (masked_jmp, 0x40_1010)];
    let mut recorder = Recorder::new(&binary);
    (0..40).for_each(|_| recorder.stack(&round));
    let file = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
    let file = file.to_str().unwrap();

    let all = ["--values", "executions,flops,bytes,intensity"];
    let mix = json(&[&["mix", file, "--rows", "function"][..], &all].concat());
    let of = |name: &str| mix["rows"].as_array().unwrap().iter().find(|row| row["function"] == name).unwrap().clone();
    let (sums, masked) = (of("sums"), of("masked"));
    // Six instructions in the last of its rounds, five in the others.
    let rounds = number(&sums["flops"]) / 2.0;
    near(&sums["bytes_read"], 16.0 * rounds);
    near(&sums["bytes_written"], 8.0 * rounds);
    near(&sums["bytes"], 24.0 * rounds);
    near(&sums["intensity"], 2.0 / 24.0);
    near(&sums["flops_masked"], 0.0);
    near(&sums["bytes_unknown"], 0.0);
    near(&sums["unread_instructions"], 0.0);
    assert!(number(&sums["flops_error"]) < number(&sums["flops"]) && sums["intensity_error"].is_number(), "{sums}");
    let times = number(&masked["count"]) / 3.0;
    near(&masked["flops"], 8.0 * times);
    near(&masked["flops_masked"], 8.0 * times);
    near(&masked["bytes_read"], 64.0 * times);
    near(&masked["bytes_masked"], 64.0 * times);
    near(&masked["bytes_unknown"], times);

    let document = json(&["vectorization", file]);
    let row = document["rows"].as_array().unwrap().iter().find(|row| row["function"] == "sums").unwrap();
    near(&row["memory"]["bytes_read"], 16.0 * rounds);
    near(&row["memory"]["intensity"], 2.0 / 24.0);

    let output = run(&[&["mix", file, "--rows", "function"][..], &all].concat());
    let (table, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("sums").ends_with("0.0833") && !line("sums").contains(['≤', '≥', '~']), "{table}");
    assert!(line("masked").contains("≤ ") && line("masked").contains("~ "), "{table}");
    assert!(said.contains("have a mask") && said.contains("move as many bytes as registers say"), "{said}");
    // The columns of CSV are the fields of JSON.
    let csv = stdout(&[&["mix", file, "--rows", "function", "--format", "csv"][..], &all].concat());
    let titles: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let fields: Vec<&str> = sums.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(fields.iter().all(|field| titles.contains(field)) && fields.len() == titles.len(), "{titles:?} {fields:?}");
}

#[test]
fn loops_are_named_by_line_or_by_address() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = recording(folder.path(), &[]) else { return };
    let document = json(&["vectorization", &file, "--loops"]);
    let of =
        |name: &str| &document["rows"].as_array().unwrap().iter().find(|row| row["function"] == name).unwrap()["loop"];
    assert_eq!((&of("single")["name"], &of("single")["header"]), (&"single@401010".into(), &SINGLE.into()));
    assert_eq!((&of("packed")["name"], &of("packed")["depth"]), (&"packed@401020".into(), &1.into()));
    let Some(file) = recording(folder.path(), &["-g"]) else { return };
    let document = json(&["vectorization", &file, "--loops"]);
    let first = &document["rows"][0]["loop"];
    let line = SOURCE.lines().position(|line| line.contains("mulsd")).unwrap() + 1;
    assert_eq!((&first["name"], &first["line"]), (&format!("single:{line}").into(), &line.into()));
    assert_eq!(first["file"], "loops.s");
    // The same loops are a key of mixes.
    let mix = json(&["mix", &file, "--rows", "loop", "--columns", "flops"]);
    let count = |name: String, flops: &str| {
        let rows = mix["rows"].as_array().unwrap();
        rows.iter().find(|row| row["loop"] == *name && row["flops"] == flops).unwrap()["count"].clone()
    };
    near(&count(format!("single:{line}"), "1"), 2.0 * 40.0 * 60.0);
    near(&count("[no loop]".into(), "0"), 40.0 * 2.0 * 20.0);
}

#[test]
fn the_answer_comes_first_and_stays_on_narrow_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = recording(folder.path(), &[]) else { return };
    let text = stdout(&["vectorization", &file]);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("# answer   15.8 % (± "), "{first}");
    assert!(first.contains("of the floating-point operations are scalar; most of them in single (100 %)"), "{first}");
    let table = text.split("\n\n").nth(1).unwrap();
    let titles: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(titles[..8], ["function", "FLOPs", "±", "scalar", "±", "128", "256", "512"]);
    let by_loop = stdout(&["vectorization", &file, "--loops"]);
    assert!(by_loop.contains("most of them in the loop single@401010 (100 %)"), "{by_loop}");

    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let arguments: Vec<&str> = ["vectorization"].into_iter().chain(input.iter().map(String::as_str)).collect();
    for columns in [60, 80, 120, 200] {
        let Some(text) = support::on_terminal(columns, "", &arguments) else { return };
        let shown = text.lines().take_while(|line| !line.starts_with("..."));
        let widest = shown.max_by_key(|line| line.width()).unwrap();
        assert!(widest.width() <= columns, "{columns}: {widest}");
        let titles = text.lines().find(|line| line.starts_with("function")).unwrap();
        for title in ["FLOPs", "scalar", "128", "256", "512"] {
            assert!(titles.contains(title), "{columns}: {titles}");
        }
        assert_eq!(titles.contains("moves"), columns > 80, "{columns}: {titles}");
    }
}

/// Functions with these sums, from rows of a mix whose column is a number of operations or a group.
fn sums(mix: &Value, value: impl Fn(&Value) -> f64) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for row in mix["rows"].as_array().unwrap() {
        *sums.entry(row["function"].as_str().unwrap().to_owned()).or_default() += value(row) * number(&row["count"]);
    }
    sums.retain(|_, sum| *sum > 0.0);
    sums
}

#[test]
fn numbers_are_those_of_mixes() {
    let mut compared = 0;
    for fixture in ["objects", "threads"].map(Fixture::bursts) {
        let of = |command: &[&str]| -> Value {
            serde_json::from_str(&support::stdout_of(&[command, &["--format", "json"]].concat(), &fixture)).unwrap()
        };
        let document = of(&["vectorization"]);
        let flops = of(&["mix", "--rows", "function", "--columns", "flops"]);
        let flops = sums(&flops, |row| row["flops"].as_str().unwrap().parse().unwrap_or(0.0));
        let groups = of(&["mix", "--rows", "function", "--columns", "vectorization,flops"]);
        let scalar = sums(&groups, |row| {
            let flops = row["flops"].as_str().unwrap().parse().unwrap_or(0.0);
            if row["vectorization"] == "scalar fp arithmetic" { flops } else { 0.0 }
        });
        let work = of(&["mix", "--rows", "function", "--columns", "vector-work"]);
        let integer = sums(&work, |row| f64::from(u8::from(row["vector-work"] == "integer")));
        for row in document["rows"].as_array().unwrap() {
            let function = row["function"].as_str().unwrap();
            let sum = |sums: &BTreeMap<String, f64>| sums.get(function).copied().unwrap_or(0.0);
            near(&row["flops"]["count"], sum(&flops));
            if sum(&flops) > 0.0 {
                near(&row["flops"]["scalar"], sum(&scalar) / sum(&flops));
            }
            near(&row["integer"]["count"], sum(&integer));
            compared += 1;
        }
        let names = document["rows"].as_array().unwrap().iter().map(|row| row["function"].as_str().unwrap().to_owned());
        let names: Vec<String> = names.collect();
        assert!(flops.keys().chain(integer.keys()).all(|name| names.contains(name)), "{}", fixture.name);
        near(&document["instructions"], number(&work["instructions"]));
    }
    assert!(compared > 4, "{compared}");
}

#[test]
fn rows_can_be_filtered_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = recording(folder.path(), &[]) else { return };
    let only = json(&["vectorization", &file, "--filter", "function=single"]);
    assert_eq!(only["rows"].as_array().unwrap().len(), 1);
    near(&only["all"]["flops"]["scalar"], 1.0);
    let first = json(&["vectorization", &file, "--top", "1"]);
    assert_eq!(first["others"]["rows"], 1);
    near(&first["others"]["flops"]["packed_256"], 1.0);
    let csv = stdout(&["vectorization", &file, "--format", "csv"]);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = lines[0].iter().position(|title| *title == "scalar").unwrap();
    assert_eq!((lines.len(), lines[1][column], lines[2][column]), (3, "1", "0"));
    let nothing = run(&["vectorization", &file, "--filter", "function=nobody"]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no instruction passes the filters"));
    let wrong = run(&["vectorization", &file, "--filter", "colour=red"]);
    assert_eq!(wrong.status.code(), Some(2));
}
