//! Reports of what is no recording: exact counts, and merged recordings.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use support::Fixture;

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&support::stdout(&[arguments, &["--format", "json"]].concat())).unwrap()
}

fn options<'a>(file: &'a Path, fixture: &'a Fixture) -> [&'a str; 3] {
    [file.to_str().unwrap(), "--binary", fixture.binary.to_str().unwrap()]
}

fn by_key(rows: &Value, key: &str, number: &str) -> BTreeMap<String, f64> {
    let row = |row: &Value| (row[key].as_str().unwrap().to_owned(), row[number].as_f64().unwrap());
    rows.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn exact_counts_are_shown_as_they_are() {
    for name in ["compress", "objects"] {
        let fixture = Fixture::bursts(name);
        let file = fixture.truth();
        let truth: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mut blocks: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for block in truth["blocks"].as_array().unwrap() {
            let [start, instructions, count] =
                ["start", "instructions", "count"].map(|field| block[field].as_u64().unwrap());
            blocks.insert(start, (instructions as f64, count as f64));
        }
        let all: f64 = blocks.values().map(|(instructions, count)| instructions * count).sum();

        let mix = json(&[&["mix"], &options(&file, &fixture)[..]].concat());
        assert_eq!(mix["instructions"].as_f64().unwrap(), all);
        assert_eq!(mix["source"], "exact");
        assert!(
            mix["rows"].as_array().unwrap().iter().all(|row| row["share_error"] == 0.0 && row["count_error"] == 0.0)
        );
        let exact = json(
            &[&["validate"], &fixture.input().each_ref().map(String::as_str)[..], &["--truth", file.to_str().unwrap()]]
                .concat(),
        );
        let (found, expected) =
            (by_key(&mix["rows"], "mnemonic", "count"), by_key(&exact["mnemonics"], "mnemonic", "truth"));
        for (mnemonic, count) in expected {
            let share = found.get(&mnemonic).copied().unwrap_or(0.0) / all;
            assert!((share - count).abs() < 1e-9, "{mnemonic}: {share} and {count}");
        }

        // Blocks that are cut in the same way ran as often, and none is lost.
        let shown = json(&[&["blocks"], &options(&file, &fixture)[..]].concat());
        let shown = shown["blocks"].as_array().unwrap();
        let same = shown.iter().filter(|block| {
            blocks.get(&block["start"].as_u64().unwrap()).is_some_and(|(instructions, count)| {
                block["instructions"].as_f64() == Some(*instructions) && block["count"].as_f64() == Some(*count)
            })
        });
        assert!(10 * same.count() > 9 * shown.len());
        let sum: f64 =
            shown.iter().map(|block| block["instructions"].as_f64().unwrap() * block["count"].as_f64().unwrap()).sum();
        assert_eq!(sum, all);
    }
}

/// How often code was called and how often loops ran follows from exact counts.
#[test]
fn exact_counts_are_annotated() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::bursts("compress");
    let file = fixture.truth();
    let annotated = json(&[&["annotate", "--function", "get_bit"], &options(&file, &fixture)[..]].concat());
    let function = &annotated["functions"][0];
    let first = &function["blocks"][0];
    assert_eq!(first["count"], function["calls"]);
    assert_eq!(first["count_error"], 0.0);
    assert!(function["loops"].as_array().unwrap().iter().any(|one| one["trips"].as_f64() > Some(1.0)), "{function}");
    let page = folder.path().join("page.html");
    support::stdout(&[&["report", "-o", page.to_str().unwrap()], &options(&file, &fixture)[..]].concat());
    assert!(std::fs::metadata(page).unwrap().len() > 10_000);
}

/// Of one recording alone, a merged file has the counts of the recording; how uncertain they are, it does not say.
#[test]
fn a_merged_recording_has_its_counts() {
    for name in ["compress", "threads"] {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Fixture::bursts(name);
        let [recording, binary] = [&fixture.recording, &fixture.binary].map(|path| path.to_str().unwrap());
        let flow = folder.path().join("all.flow");
        support::stdout(&["merge", "-o", flow.to_str().unwrap(), "--binary", binary, recording]);
        let shape = ["mix", "--rows", "function,mnemonic", "--filter", "mnemonic!=[unreadable]"];
        let merged = json(&[&shape[..], &options(&flow, &fixture)].concat());
        let alone = json(&[&shape[..], &options(&fixture.recording, &fixture)].concat());
        assert_eq!(merged["source"], "flow");
        let counts = |mix: &Value| -> BTreeMap<(String, String), f64> {
            let key = |row: &Value| ["function", "mnemonic"].map(|key| row[key].as_str().unwrap().to_owned()).into();
            mix["rows"].as_array().unwrap().iter().map(|row| (key(row), row["count"].as_f64().unwrap())).collect()
        };
        let (merged_counts, alone_counts) = (counts(&merged), counts(&alone));
        assert_eq!(merged_counts.keys().collect::<Vec<_>>(), alone_counts.keys().collect::<Vec<_>>());
        for (key, count) in &alone_counts {
            assert!((merged_counts[key] / count - 1.0).abs() < 1e-6, "{key:?}: {} and {count}", merged_counts[key]);
        }
        let rows = merged["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["share_error"].is_null() && row["rests_on_little"] == false));
        let table = support::stdout(&[&["mix"], &options(&flow, &fixture)[..]].concat());
        assert!(table.starts_with("# source   counts of one input; counts are relative\n"), "{table}");
        assert!(!table.contains("seen in too little") && !table.contains("# errors"), "{table}");
    }
}

/// What `hbbp blocks` printed has the counts that it was made from, but for what cannot be placed or was not printed.
#[test]
fn lists_of_blocks_are_read_by_other_reports() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::bursts("compress");
    let file = folder.path().join("blocks.json");
    let write = |blocks: &Value| std::fs::write(&file, blocks.to_string()).unwrap();
    let recorded = options(&fixture.recording, &fixture);
    let blocks = json(&[&["blocks"], &recorded[..]].concat());
    write(&blocks);
    let code = ["--filter", "mnemonic!=[unreadable]"];
    let [listed, alone] = [&options(&file, &fixture), &recorded]
        .map(|of| json(&[&["mix", "--rows", "function,mnemonic"], &code[..], of].concat()));
    assert_eq!(listed["source"], "flow");
    let counts = |mix: &Value| -> BTreeMap<String, f64> {
        let key = |row: &Value| format!("{} {}", row["function"], row["mnemonic"]);
        mix["rows"].as_array().unwrap().iter().map(|row| (key(row), row["count"].as_f64().unwrap())).collect()
    };
    let (listed_counts, alone_counts) = (counts(&listed), counts(&alone));
    let all: f64 = alone_counts.values().sum();
    assert_eq!(listed_counts.keys().collect::<Vec<_>>(), alone_counts.keys().collect::<Vec<_>>());
    for (key, count) in &alone_counts {
        // Blocks that others fall into ran as often as these: estimates need not agree.
        assert!((listed_counts[key] - count).abs() < 1e-4 * all, "{key}: {} and {count}", listed_counts[key]);
    }
    let said = listed["head"]["degraded"].to_string();
    assert!(said.contains("nothing is known of their ±") && said.contains("in code that was not read"), "{said}");
    assert!(!said.contains("not in the list"), "{said}");
    // What was weaker in the recording is so in the list.
    assert_eq!(listed["head"]["unit"], "relative");
    for sentence in blocks["head"]["degraded"].as_array().unwrap() {
        assert!(listed["head"]["degraded"].as_array().unwrap().contains(sentence), "{sentence}: {said}");
    }

    // The hottest two alone: what is missing is said.
    let hottest = json(&[&["blocks", "--top", "2"], &recorded[..]].concat());
    write(&hottest);
    let again = json(&[&["blocks"], &options(&file, &fixture)[..]].concat());
    assert_eq!(again["blocks"].as_array().unwrap().len(), 2);
    for (block, expected) in again["blocks"].as_array().unwrap().iter().zip(hottest["blocks"].as_array().unwrap()) {
        assert_eq!((&block["start"], &block["function"]), (&expected["start"], &expected["function"]));
        let [count, expected] = [block, expected].map(|block| block["count"].as_f64().unwrap());
        assert!((count - expected).abs() <= 0.5, "{count} {expected}");
    }
    let said = again["head"]["degraded"].to_string();
    assert!(said.contains("of the instructions are not in the list"), "{said}");

    let table = support::stdout(&[&["mix"], &options(&file, &fixture)[..]].concat());
    assert!(table.lines().any(|line| line.starts_with("# weaker   blocks with ")), "what is missing is seen: {table}");

    // Of exact counts, it has exact counts.
    let truth = fixture.truth();
    write(&json(&[&["blocks"], &options(&truth, &fixture)[..]].concat()));
    let [listed, exact] =
        [&file, &truth].map(|of| json(&[&["mix", "--rows", "function"], &options(of, &fixture)[..]].concat()));
    assert_eq!((&listed["source"], &listed["rows"]), (&exact["source"], &exact["rows"]));

    // What cannot be is refused.
    let impossible = [("count", Value::from(-1.0)), ("count", 1e300.into()), ("instructions", (1_u64 << 40).into())];
    for (field, value) in impossible.into_iter().chain([("module", 99.into()), ("end", 0.into())]) {
        let mut wrong = hottest.clone();
        wrong["blocks"][1][field] = value;
        write(&wrong);
        let output = support::run(&["mix", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("block 1 "), "{field}");
    }
}

/// On standard input as in a file.
#[test]
fn documents_come_from_standard_input_too() {
    let fixture = Fixture::bursts("compress");
    let file = fixture.truth();
    let [name, option, binary] = options(&file, &fixture);
    let arguments = ["mix", "--format", "csv", option, binary];
    let input = std::fs::File::open(&file).unwrap();
    let output = support::hbbp().args(arguments).arg("-").stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let named = support::stdout(&[&arguments[..], &[name]].concat());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), named);
}

/// What exact counts and merged files do not say is not 0.
#[test]
fn what_documents_do_not_say_is_not_known() {
    let fixture = Fixture::bursts("compress");
    let file = fixture.truth();
    let arguments =
        [&["mix", "--rows", "function", "--values", "samples,taken"], &options(&file, &fixture)[..]].concat();
    let mix = json(&arguments);
    assert!(mix["rows"].as_array().unwrap().iter().all(|row| row["samples"].is_null()));
    let said = support::run(&arguments);
    assert!(
        String::from_utf8_lossy(&said.stderr)
            .contains("exact counts do not say where returns and indirect branches went")
    );
}

#[test]
fn nothing_is_known_of_processes() {
    let fixture = Fixture::bursts("compress");
    let file = fixture.truth();
    let mix = json(&[&["mix", "--rows", "process,thread,comm,phase"], &options(&file, &fixture)[..]].concat());
    let row = &mix["rows"][0];
    assert!(["process", "thread", "comm", "phase"].iter().all(|key| row[*key] == "[unknown]"), "{row}");
    assert_eq!(mix["rows"].as_array().unwrap().len(), 1);
}

/// What was merged without its code is counted by module.
#[test]
fn code_that_is_not_there_is_said_to_be_unread() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::bursts("objects");
    let flow = folder.path().join("all.flow");
    let flow = flow.to_str().unwrap();
    support::stdout(&["merge", "-o", flow, "--symfs", "/nonexistent", fixture.recording.to_str().unwrap()]);
    let mix = json(&["mix", "--symfs", "/nonexistent", "--rows", "module,function", flow]);
    let rows = mix["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["function"] == "[unreadable]"), "{mix}");
    let said = mix["head"]["degraded"].to_string();
    assert!(said.contains("are in unread code of /tmp/hbbp-fixtures/objects: there is no "), "{said}");
}
