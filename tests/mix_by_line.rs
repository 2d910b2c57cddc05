//! Mixes by line of the source, beside what binutils say of every instruction.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::Fixture;

/// Programs of the fixtures that have debug information.
const WITH_LINES: [&str; 2] = ["compress", "objects"];

fn json(command: &[&str], fixture: &Fixture) -> Value {
    serde_json::from_str(&support::stdout_of(&[command, &["--format", "json"]].concat(), fixture)).unwrap()
}

fn printed(program: &str, arguments: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Addresses of all instructions, as `objdump` finds them.
fn addresses(binary: &Path) -> Vec<u64> {
    let text = printed("objdump", &["-d", "--no-show-raw-insn", binary.to_str().unwrap()], "");
    let of_line = |line: &str| u64::from_str_radix(line.split_once(":\t")?.0.trim(), 16).ok();
    text.lines().filter_map(of_line).collect()
}

/// The line of each address, `file:line`, without the file's folder; as `addr2line` says.
fn lines(binary: &Path, addresses: &[u64]) -> Vec<String> {
    let input: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let text = printed("addr2line", &["-e", binary.to_str().unwrap()], &input);
    let of_line = |line: &str| {
        let place = line.split(" (discriminator").next().unwrap_or(line);
        let (file, number) = place.rsplit_once(':').unwrap();
        match number {
            "?" | "0" => "[no source]".to_owned(),
            _ => format!("{}:{number}", file.rsplit('/').next().unwrap()),
        }
    };
    text.lines().map(of_line).collect()
}

fn by_row(mix: &Value, key: &str) -> BTreeMap<String, f64> {
    let rows = mix["rows"].as_array().unwrap();
    rows.iter().map(|row| (row[key].as_str().unwrap().to_owned(), row["count"].as_f64().unwrap())).collect()
}

#[test]
fn each_instruction_is_counted_at_its_line() {
    if !support::has("objdump") || !support::has("addr2line") {
        return;
    }
    for name in WITH_LINES {
        let fixture = Fixture::bursts(name);
        let blocks = json(&["blocks"], &fixture);
        let is_program = |module: &&Value| module["path"].as_str().unwrap().ends_with(&format!("/{name}"));
        let modules = blocks["modules"].as_array().unwrap();
        let of_program = modules.iter().position(|module| is_program(&module)).unwrap();
        let path = modules[of_program]["path"].as_str().unwrap();
        let instructions = addresses(&fixture.binary);
        let mut ran: Vec<(u64, f64)> = Vec::new();
        let blocks = blocks["blocks"].as_array().unwrap();
        for block in blocks.iter().filter(|block| block["module"] == of_program && block["count"] != 0.0) {
            let (start, end) = (block["start"].as_u64().unwrap(), block["end"].as_u64().unwrap());
            let from = instructions.partition_point(|address| *address < start);
            let inside = instructions[from..].iter().take_while(|address| **address < end);
            ran.extend(inside.map(|address| (*address, block["count"].as_f64().unwrap())));
        }
        let of_ran = lines(&fixture.binary, &ran.iter().map(|(address, _)| *address).collect::<Vec<_>>());
        let mut expected: BTreeMap<String, f64> = BTreeMap::new();
        for (line, (_, count)) in of_ran.into_iter().zip(&ran) {
            *expected.entry(line).or_default() += count;
        }
        let filter = format!("module={path}");
        let mix = json(&["mix", "--rows", "line", "--filter", &filter], &fixture);
        let found = by_row(&mix, "line");
        assert!(found.len() > 20, "{found:?}");
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
        for (line, count) in &expected {
            assert!((found[line] / count - 1.0).abs() < 1e-9, "{name}: {line} {} {count}", found[line]);
        }

        let mut of_files: BTreeMap<String, f64> = BTreeMap::new();
        for (line, count) in &expected {
            *of_files.entry(line.rsplit_once(':').map_or(line.as_str(), |(file, _)| file).to_owned()).or_default() +=
                count;
        }
        let files = by_row(&json(&["mix", "--rows", "file", "--filter", &filter], &fixture), "file");
        assert_eq!(files.keys().collect::<Vec<_>>(), of_files.keys().collect::<Vec<_>>(), "{name}");
        assert!(
            of_files.iter().all(|(file, count)| (files[file] / count - 1.0).abs() < 1e-9),
            "{files:?} {of_files:?}"
        );

        let functions =
            by_row(&json(&["mix", "--rows", "source-function", "--filter", &filter], &fixture), "source-function");
        assert!(functions.len() > 3 && functions.keys().any(|function| function != "[no source]"), "{functions:?}");
    }
}

#[test]
fn programs_without_lines_are_said_to_have_none() {
    let fixture = Fixture::bursts("parse");
    let input = fixture.input();
    let arguments = [&["mix", "--rows", "line"][..], &input.each_ref().map(String::as_str)].concat();
    let output = support::run(&arguments);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no line of the source is known: build with debug information"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("[no source]"));
}
