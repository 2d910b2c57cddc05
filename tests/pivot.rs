//! Pivots of a mix: groups and their shares, numbers of rows, order, loops, calls, inlined code.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::{BTreeMap, BTreeSet};

use formats::cgroup_mark::CgroupMark;
use perfdata::{Features, Mmap};
use serde_json::Value;
use support::Fixture;
use synthetic::{AROUND, Recorder};
use unicode_width::UnicodeWidthStr;

fn json(command: &[&str], fixture: &Fixture) -> Value {
    serde_json::from_str(&support::stdout_of(&[command, &["--format", "json"]].concat(), fixture)).unwrap()
}

fn mix(options: &[&str], fixture: &Fixture) -> Value {
    json(&[&["mix"], options].concat(), fixture)
}

fn rows(mix: &Value) -> &[Value] {
    mix["rows"].as_array().unwrap()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

fn near(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-9 * one.abs().max(other.abs()), "{one} and {other}");
}

/// The lines of a table under its head, without those below it.
fn lines(options: &[&str], fixture: &Fixture) -> Vec<Vec<String>> {
    let table = support::stdout_of(&[&["mix"], options].concat(), fixture);
    let (_, body) = table.split_once("\n\n").unwrap();
    let cells =
        |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
    body.lines().filter(|line| !line.starts_with("...") && !line.starts_with('?')).map(cells).collect()
}

fn refused(options: &[&str], expected: &str) {
    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let output = support::run(&[&["mix"], options, &input.each_ref().map(String::as_str)].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "{options:?}: {said}");
}

/// A group has the groups in it, as it has where `record --cgroup` names one.
#[test]
fn filters_name_control_groups_with_those_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::new(&program);
    for (path, stacks) in [("/a", 1), ("/a/b", 2), ("/ab", 4)] {
        let mark = CgroupMark { time: recorder.next_time(), pid: 7, path: path.to_owned() };
        recorder.user_record(&mark.to_record_body());
        (0..stacks).for_each(|_| recorder.stack(&AROUND));
    }
    let file = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
    let counts = |filter: &[&str]| -> BTreeMap<String, f64> {
        let file = file.to_str().unwrap();
        let csv = support::stdout(&[&["mix", file, "--rows", "cgroup", "--format", "csv"], filter].concat());
        let row = |line: &str| {
            let mut fields = line.split(',');
            (fields.next().unwrap().to_owned(), fields.next().unwrap().parse().unwrap())
        };
        csv.lines().skip(1).map(row).collect()
    };
    let all = counts(&[]);
    let one = all["/a"];
    let has = |groups: &[(&str, f64)]| groups.iter().map(|(name, times)| ((*name).to_owned(), times * one)).collect();
    assert_eq!(all, has(&[("/a", 1.0), ("/a/b", 2.0), ("/ab", 4.0)]));
    for (filter, expected) in [
        ("cgroup=/a", &[("/a", 1.0), ("/a/b", 2.0)][..]),
        ("cgroup=/a/", &[("/a", 1.0), ("/a/b", 2.0)]),
        ("cgroup!=/a", &[("/ab", 4.0)]),
        ("cgroup=/a/*", &[("/a/b", 2.0)]),
        ("cgroup~^/a$", &[("/a", 1.0)]),
        ("cgroup=/", &[("/a", 1.0), ("/a/b", 2.0), ("/ab", 4.0)]),
    ] {
        assert_eq!(counts(&["--filter", filter]), has(expected), "{filter}");
    }
    let nothing = support::run(&["mix", file.to_str().unwrap(), "--filter", "cgroup=/b"]);
    let said = String::from_utf8_lossy(&nothing.stderr);
    assert!(!nothing.status.success() && said.contains("nothing has the cgroup \"/b\""), "{said}");
}

#[test]
fn shares_of_groups_are_of_their_groups() {
    for fixture in [Fixture::simulated("ivy-bridge"), Fixture::bursts("threads")] {
        let flat = mix(&["--rows", "function,mnemonic"], &fixture);
        let grouped = mix(&["--per", "function", "--rows", "mnemonic"], &fixture);
        let counts = |mix: &Value| -> BTreeMap<(String, String), u64> {
            let key = |row: &Value| (text(row, "function").to_owned(), text(row, "mnemonic").to_owned());
            rows(mix).iter().map(|row| (key(row), number(row, "count").to_bits())).collect()
        };
        assert_eq!(counts(&flat), counts(&grouped));
        let groups = grouped["subtotals"].as_array().unwrap();
        let by_function = mix(&["--rows", "function"], &fixture);
        assert_eq!(groups.len(), rows(&by_function).len());
        let mut rest = rows(&grouped).iter().peekable();
        for (group, function) in groups.iter().zip(rows(&by_function)) {
            assert_eq!(group["function"], function["function"]);
            near(number(group, "count"), number(function, "count"));
            near(number(group, "share"), number(function, "share"));
            near(number(group, "share_error"), number(function, "share_error"));
            near(number(group, "share_of_group"), number(function, "share"));
            // The rows of a group come together, the largest first.
            let mut of_group = Vec::new();
            while let Some(row) = rest.next_if(|row| row["function"] == group["function"]) {
                near(number(row, "share_of_group"), number(row, "count") / number(group, "count"));
                of_group.push(number(row, "count"));
            }
            assert_eq!(of_group.len() as u64, group["rows"].as_u64().unwrap());
            assert!(of_group.is_sorted_by(|one, other| one >= other), "{of_group:?}");
            near(of_group.iter().sum(), number(group, "count"));
        }
        assert!(rest.next().is_none());
    }
}

/// What is less certain as a share of all can be certain as a share of its function.
#[test]
fn shares_of_groups_have_intervals_of_their_own() {
    let fixture = Fixture::bursts("compress");
    let grouped = mix(&["--per", "function", "--rows", "mnemonic"], &fixture);
    let of = |row: &&Value| text(row, "function") == "get_bit" && text(row, "mnemonic") == "mov";
    let row = rows(&grouped).iter().find(of).unwrap();
    // What is the rest of a group is as uncertain as the other part of it.
    let packing = mix(&["--per", "function", "--rows", "packing"], &fixture);
    let of_function = |name: &str| -> Vec<f64> {
        let of = rows(&packing).iter().filter(|row| text(row, "function") == name);
        of.map(|row| number(row, "share_of_group_error")).collect()
    };
    let [none, packed] = of_function("vfprintf")[..] else { panic!("{packing}") };
    near(none, packed);
    let [whole] = of_function("strlen")[..] else { panic!("{packing}") };
    // It was seen in most slices, and rests on the bursts that saw it.
    assert!(whole < 0.1, "{whole}");
    let relative = |share: &str, error: &str| number(row, error) / number(row, share);
    assert!(10.0 * relative("share_of_group", "share_of_group_error") < relative("share", "share_error"), "{row}");
}

#[test]
fn the_largest_rows_of_each_group_are_kept() {
    let fixture = Fixture::simulated("ivy-bridge");
    let options = ["--per", "function", "--rows", "mnemonic"];
    let all = mix(&options, &fixture);
    let kept = mix(&[&options[..], &["--top", "2"]].concat(), &fixture);
    assert_eq!(kept["subtotals"].as_array().unwrap(), &all["subtotals"].as_array().unwrap()[..2]);
    assert_eq!(rows(&kept).len(), 4);
    let sum: f64 = rows(&kept).iter().map(|row| number(row, "count")).sum();
    near(sum + number(&kept["others"], "count"), number(&all, "instructions"));
    assert_eq!(number(&kept["others"], "rows") as usize + 4, rows(&all).len());
    let lines = lines(&[&options[..], &["--top", "2"]].concat(), &fixture);
    let names: Vec<&str> = lines.iter().map(|line| line[0].as_str()).collect();
    let [_, main, mov, _, others, get_bit, mov_again, ..] = names[..] else { panic!("{names:?}") };
    assert_eq!((main, mov, get_bit, mov_again), ("main", "mov", "get_bit", "mov"));
    assert!(others.ends_with(" others]"), "{names:?}");
}

#[test]
fn sums_of_all_keys_but_the_last() {
    let fixture = Fixture::simulated("ivy-bridge");
    let nested = mix(&["--rows", "isa,category,mnemonic", "--subtotals"], &fixture);
    let subtotals = nested["subtotals"].as_array().unwrap();
    for (keys, options) in [(1, "isa"), (2, "isa,category")] {
        let expected = mix(&["--rows", options], &fixture);
        let found: BTreeMap<String, f64> = subtotals
            .iter()
            .filter(|row| row.get("category").is_some() == (keys == 2))
            .map(|row| (format!("{}{}", row["isa"], row["category"]), number(row, "count")))
            .collect();
        assert_eq!(found.len(), rows(&expected).len());
        for row in rows(&expected) {
            near(found[&format!("{}{}", row["isa"], row["category"])], number(row, "count"));
        }
    }
    assert!(rows(&nested).iter().all(|row| row.get("share_of_group").is_none()));
}

#[test]
fn instructions_for_each_call() {
    let mut called = 0;
    for name in ["compress", "interpret", "objects"] {
        let fixture = Fixture::bursts(name);
        let annotated = json(&["annotate", "--top", "0"], &fixture);
        let mut calls: BTreeMap<&str, f64> = BTreeMap::new();
        for function in annotated["functions"].as_array().unwrap() {
            *calls.entry(text(function, "name")).or_default() += number(function, "calls");
        }
        let mix = mix(&["--rows", "function,category", "--values", "per-call"], &fixture);
        for row in rows(&mix) {
            match calls.get(text(row, "function")) {
                Some(calls) if *calls > 0.0 => near(number(row, "per_call"), number(row, "count") / calls),
                _ => assert!(row["per_call"].is_null(), "{row}"),
            }
            called += usize::from(row["per_call"].is_number());
        }
    }
    assert!(called > 50, "{called}");
}

/// One file that ran at two paths: the flow does not tell their branches apart, and they are not counted twice.
#[test]
fn branches_of_a_file_at_two_paths_are_not_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &["-Wl,--build-id=0x0102030405060708"]) else {
        return;
    };
    let copy = folder.path().join("copy");
    std::fs::copy(&binary, &copy).unwrap();
    let mut recorder = Recorder::new(&binary);
    (0..20).for_each(|_| recorder.stack(&AROUND));
    let alone = folder.path().join("alone.data");
    let numbers = ["--rows", "module", "--values", "taken", "--format", "json"];
    let mix_of = |file: &std::path::Path, bytes: Vec<u8>| {
        std::fs::write(file, bytes).unwrap();
        let output = support::run(&[&["mix", file.to_str().unwrap()], &numbers[..]].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let taken: f64 = rows(&document).iter().map(|row| number(row, "taken")).sum();
        (rows(&document).len(), taken, String::from_utf8(output.stderr).unwrap())
    };
    let (modules, taken, said) = mix_of(&alone, recorder.finish(&Features::default()));
    assert!(modules == 1 && taken > 0.0 && !said.contains("not known"), "{taken}: {said}");
    let mut recorder = Recorder::new(&binary);
    (0..20).for_each(|_| recorder.stack(&AROUND));
    recorder.map(&Mmap { path: copy.to_str().unwrap().as_bytes(), ..Recorder::mapping() });
    (0..20).for_each(|_| recorder.stack(&AROUND));
    let (modules, of_both, said) = mix_of(&folder.path().join("both.data"), recorder.finish(&Features::default()));
    assert!(modules == 2 && of_both <= 2.0 * taken, "{of_both} and {taken}: {said}");
    assert!(said.contains("which branches and calls are of which is not known"), "{said}");
}

/// Taken and mispredicted branches are those of `annotate`, by branch and by function.
#[test]
fn branches_that_were_taken() {
    for fixture in [Fixture::bursts("compress"), Fixture::simulated("ivy-bridge")] {
        let is_marked = fixture.name == "ivy-bridge";
        let annotated = json(&["annotate", "--top", "0"], &fixture);
        let mut expected: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for function in annotated["functions"].as_array().unwrap() {
            for block in function["blocks"].as_array().unwrap() {
                let Some(taken) = block["branch"]["taken"].as_f64().filter(|taken| *taken > 0.0) else { continue };
                let rate = block["branch"]["mispredict_rate"].as_f64().unwrap_or(0.0);
                let last = block["instructions"].as_array().unwrap().last().unwrap()["address"].as_u64().unwrap();
                let place = last - function["start"].as_u64().unwrap();
                let sum = expected.entry(format!("{}+{place:#x}", text(function, "name"))).or_default();
                *sum = (sum.0 + taken, sum.1 + taken * rate);
            }
        }
        assert!(expected.len() > 50);
        let numbers =
            ["--values", "taken,mispredicted,mispredict-rate,per-taken", "--filter", "mnemonic!=[unreadable]"];
        let by_site = mix(&[&["--rows", "function,branch-site"], &numbers[..]].concat(), &fixture);
        let mut of_functions: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for row in rows(&by_site) {
            let taken = number(row, "taken");
            // Nobody says it of bursts.
            assert_eq!(row["mispredicted"].is_number(), is_marked, "{row}");
            let mispredicted = row["mispredicted"].as_f64().unwrap_or(0.0);
            let sum = of_functions.entry(text(row, "function")).or_default();
            *sum = (sum.0 + taken, sum.1 + mispredicted);
            if taken > 0.0 {
                let site = expected.remove(text(row, "branch-site")).unwrap_or_else(|| panic!("{row}"));
                near(taken, site.0);
                assert!((mispredicted - site.1).abs() <= 1e-9 * taken, "{row}");
                near(number(row, "per_taken"), number(row, "count") / taken);
                assert_eq!(row["mispredict_rate"].is_number(), is_marked, "{row}");
                let rate = row["mispredict_rate"].as_f64().unwrap_or(0.0);
                assert!((rate - mispredicted / taken).abs() < 1e-9, "{row}");
            } else {
                assert!(row["per_taken"].is_null() && row["mispredict_rate"].is_null(), "{row}");
            }
        }
        assert!(expected.is_empty(), "{expected:?}");
        assert_eq!(of_functions.values().any(|(_, mispredicted)| *mispredicted > 0.0), is_marked);
        for row in rows(&mix(&[&["--rows", "function"], &numbers[..]].concat(), &fixture)) {
            let of = of_functions[text(row, "function")];
            assert_eq!(row["mispredicted"].is_number(), is_marked, "{row}");
            assert!(
                (number(row, "taken") - of.0).abs() <= 1e-9 * of.0
                    && (row["mispredicted"].as_f64().unwrap_or(0.0) - of.1).abs() <= 1e-9 * of.0
            );
        }
    }
}

/// Loops and their depths are those of `annotate`.
#[test]
fn instructions_of_loops() {
    for name in ["compress", "objects"] {
        let fixture = Fixture::bursts(name);
        let annotated = json(&["annotate", "--top", "0"], &fixture);
        // By function and depth, since names of loops have the line of the header.
        let mut expected: BTreeMap<(String, u64, Option<u64>), f64> = BTreeMap::new();
        for function in annotated["functions"].as_array().unwrap() {
            let blocks = function["blocks"].as_array().unwrap();
            for block in blocks.iter().filter(|block| block["count"].as_f64() > Some(0.0)) {
                let executed = number(block, "count") * block["instructions"].as_array().unwrap().len() as f64;
                let place = match block["loop"].as_u64() {
                    None => (String::new(), 0, None),
                    Some(index) => {
                        let depth = function["loops"][index as usize]["depth"].as_u64().unwrap();
                        (text(function, "name").to_owned(), depth, Some(index))
                    }
                };
                *expected.entry(place).or_default() += executed;
            }
        }
        assert!(expected.len() > 5 && expected.keys().any(|(_, depth, _)| *depth > 1), "{expected:?}");
        let mix = mix(&["--rows", "loop,loop-depth", "--filter", "mnemonic!=[unreadable]"], &fixture);
        assert_eq!(rows(&mix).len(), expected.len());
        for row in rows(&mix) {
            let name = text(row, "loop");
            // `main:80`, `main@4015a0`, or `main:80@4015a0` where two have the same line.
            let name = name.rsplit_once('@').map_or(name, |(name, _)| name);
            let has_line = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
            let function = match name.rsplit_once(':') {
                _ if name == "[no loop]" => "",
                Some((function, line)) if has_line(line) => function,
                _ => name,
            };
            let depth: u64 = text(row, "loop-depth").parse().unwrap();
            let is_it = |(place, count): (&(String, u64, Option<u64>), &f64)| {
                place.0 == function && place.1 == depth && (number(row, "count") / count - 1.0).abs() < 1e-9
            };
            assert!(expected.iter().any(is_it), "{row}: {expected:?}");
        }
        let inner = self::mix(&["--rows", "loop", "--filter", "loop-depth>=2"], &fixture);
        let of_inner: f64 = expected.iter().filter(|((_, depth, _), _)| *depth >= 2).map(|(_, sum)| sum).sum();
        near(number(&inner, "instructions"), of_inner);
    }
}

#[test]
fn samples_are_those_of_the_chosen_source() {
    for fixture in [Fixture::simulated("ivy-bridge"), Fixture::bursts("threads")] {
        let blocks = json(&["blocks", "--top", "0"], &fixture);
        let mut expected: BTreeMap<&str, f64> = BTreeMap::new();
        for block in blocks["blocks"].as_array().unwrap().iter().filter(|block| number(block, "count") > 0.0) {
            let samples = number(
                block,
                &[text(block, "chosen"), if block["chosen"] == "ebs" { "_samples" } else { "_streams" }].concat(),
            );
            *expected.entry(block["function"].as_str().unwrap_or("[unreadable]")).or_default() += samples;
        }
        for options in [&["--rows", "function"][..], &["--rows", "function", "--columns", "category"]] {
            let mix = mix(&[options, &["--values", "samples"]].concat(), &fixture);
            let mut found: BTreeMap<&str, f64> = BTreeMap::new();
            rows(&mix)
                .iter()
                .for_each(|row| *found.entry(text(row, "function")).or_default() += number(row, "samples"));
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            found
                .iter()
                .for_each(|(function, samples)| assert!((samples - expected[function]).abs() < 1e-6, "{function}"));
        }
    }
}

/// Code that was not inlined is of the function of the source that it is in; code that was inlined has a line where.
#[test]
fn where_code_was_inlined() {
    let fixture = Fixture::bursts("objects");
    let mix = mix(&["--rows", "inlined-at,source-function,function,line"], &fixture);
    let mut inlined = BTreeSet::new();
    for row in rows(&mix) {
        let (function, of_source) = (text(row, "function"), text(row, "source-function"));
        match text(row, "inlined-at") {
            "none" => {
                let bare = of_source.split(['<', '(']).next().unwrap();
                assert!(function.contains(bare), "{row}");
            }
            "[no source]" | "[unreadable]" => {}
            at => {
                let (_, line) = at.rsplit_once(':').unwrap();
                assert!(line.parse::<u32>().is_ok(), "{row}");
                inlined.insert((of_source, at));
            }
        }
    }
    // `below` of objects.cpp is called in these lines only, and never as a function.
    let lines: BTreeSet<&str> = inlined.iter().filter(|(of, _)| *of == "below").map(|(_, at)| *at).collect();
    let source = include_str!("fixtures/programs/objects.cpp");
    assert!(!lines.is_empty());
    for at in lines {
        let line: usize = at.strip_prefix("objects.cpp:").unwrap().parse().unwrap();
        assert!(source.lines().nth(line - 1).unwrap().contains("below("), "{at}");
    }
}

/// Samples of the clock say where time went, and bursts what was executed.
#[test]
fn time_stands_beside_instructions() {
    let fixture = Fixture::bursts("objects");
    let numbers = ["--values", "share,time,time-error,time-per-instruction"];
    let of = |rows: &str| mix(&[&["--rows", rows, "--sort", "time"], &numbers[..]].concat(), &fixture);
    let by_function = of("module,function");
    let annotated = json(&["annotate", "--top", "0"], &fixture);
    let mut slower = 0;
    for function in annotated["functions"].as_array().unwrap() {
        let is_it = |row: &&Value| row["function"] == function["name"] && row["module"] == function["module"];
        let Some(row) = rows(&by_function).iter().find(is_it) else { continue };
        near(number(row, "time_share"), number(function, "time_share"));
        near(number(row, "time_share_error"), number(function, "time_share_error"));
        if let Some(times) = row["time_per_instruction"].as_f64() {
            near(times, number(row, "time_share") / number(row, "share"));
            slower += 1;
        }
    }
    assert!(slower > 0, "{by_function}");
    let times: Vec<f64> = rows(&by_function).iter().map(|row| number(row, "time_share")).collect();
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    for rows_by in ["function,mnemonic", "isa", "function,block"] {
        let sum: f64 = rows(&of(rows_by)).iter().map(|row| number(row, "time_share")).sum();
        near(sum, 1.0);
    }
    let table = support::stdout_of(&[&["mix", "--rows", "function"], &numbers[..]].concat(), &fixture);
    assert!(table.contains("time ±") && table.contains("time/instr") && table.contains('x'), "{table}");

    let of_hardware = Fixture::simulated("ivy-bridge");
    let without = mix(&[&["--rows", "function"], &numbers[..]].concat(), &of_hardware);
    assert!(rows(&without).iter().all(|row| row["time_share"].is_null()), "{without}");
    let input = of_hardware.input();
    let asked = [&["mix", "--rows", "function"], &numbers[..], &input.each_ref().map(String::as_str)].concat();
    let said = String::from_utf8(support::run(&asked).stderr).unwrap();
    assert!(said.contains("nothing is known of time"), "{said}");
}

/// A block is named as a place in its function.
#[test]
fn blocks_are_rows() {
    let fixture = Fixture::bursts("objects");
    let by_block = mix(&["--rows", "module,function,block"], &fixture);
    let mut counts: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows(&by_block).iter().filter(|row| row["function"] != "[unreadable]") {
        assert!(text(row, "block").starts_with(text(row, "function")), "{row}");
        *counts.entry((text(row, "module").into(), text(row, "function").into())).or_default() += number(row, "count");
    }
    for row in rows(&mix(&["--rows", "module,function"], &fixture)) {
        let Some(count) = counts.get(&(text(row, "module").into(), text(row, "function").into())) else { continue };
        near(*count, number(row, "count"));
    }
    assert!(rows(&by_block).len() > counts.len() && counts.len() > 3);
}

#[test]
fn rows_are_sorted_as_asked() {
    let fixture = Fixture::simulated("ivy-bridge");
    let in_order = |options: &[&str], key: &str| -> Vec<String> {
        let mix = mix(options, &fixture);
        rows(&mix).iter().map(|row| row[key].as_str().map_or_else(|| row[key].to_string(), str::to_owned)).collect()
    };
    let lengths = in_order(&["--rows", "length", "--sort", "name"], "length");
    let numbers: Vec<u32> = lengths.iter().filter_map(|length| length.parse().ok()).collect();
    assert!(numbers.is_sorted() && numbers.contains(&2) && numbers.contains(&10), "{lengths:?}");
    let descending = |options: &[&str], key: &str| {
        let values: Vec<f64> = in_order(options, key).iter().filter_map(|value| value.parse().ok()).collect();
        assert!(values.len() > 5 && values.is_sorted_by(|one, other| one >= other), "{key}: {values:?}");
    };
    descending(&["--rows", "function", "--values", "per-call", "--sort", "per-call"], "per_call");
    descending(&["--rows", "function", "--values", "samples", "--sort", "samples"], "samples");
    descending(&["--rows", "function", "--sort", "±"], "share_error");
    let by_column = lines(&["--rows", "function", "--columns", "category", "--sort", "call"], &fixture);
    let column = by_column[0].iter().position(|title| title == "call").unwrap();
    assert!(column > 1);
    let first = in_order(&["--rows", "function", "--filter", "category=call"], "function");
    assert_eq!(by_column[1][0], first[0]);
}

#[test]
fn columns_have_the_first_number() {
    let fixture = Fixture::simulated("ivy-bridge");
    let all = mix(&["--rows", "function", "--columns", "packing"], &fixture);
    let lines =
        lines(&["--rows", "function", "--columns", "packing", "--values", "row-share,share", "--top", "3"], &fixture);
    assert_eq!(lines[0].last().unwrap(), "share");
    assert!(!lines[0].iter().any(|title| title.starts_with("count")), "{lines:?}");
    for line in &lines[1..4] {
        let of_row: Vec<&Value> = rows(&all).iter().filter(|row| text(row, "function") == line[0]).collect();
        let sum: f64 = of_row.iter().map(|row| number(row, "count")).sum();
        let none = of_row.iter().find(|row| row["packing"] == "none").unwrap();
        let shown: f64 = line[1].trim_end_matches(" %").parse().unwrap();
        assert!((shown - 100.0 * number(none, "count") / sum).abs() < 0.1, "{line:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused(&["--per", "mnemonic"], "--rows names nothing else");
    refused(&["--values", "per-call"], "needs `function`");
    refused(&["--rows", "function", "--columns", "process", "--values", "per-call"], "not told apart by processes");
    refused(&["--rows", "thread", "--values", "taken"], "not told apart by processes");
    refused(&["--rows", "function", "--filter", "comm=x", "--sort", "per-call"], "not told apart by processes");
    refused(&["--values", "row-share"], "there is no --columns");
    refused(&["--sort", "row-share"], "there is no --columns");
    refused(&["--sort", "shares"], "there are no columns: did you mean share?");
    refused(&["--subtotals"], "there is one only");
    refused(
        &["--rows", "function", "--filter", "module=x", "--values", "per-call"],
        "`module` may be among the keys of --rows, not in --filter",
    );
    refused(&["--values", "executions,shares"], "share");
    refused(&["--rows", "function", "--columns", "isa", "--sort", "sse22"], "did you mean --sort 'sse2'?");
    refused(&["--per", "functoin"], "did you mean function?");
}

/// The numbers that were asked for are in the CSV as well.
#[test]
fn numbers_as_csv() {
    let fixture = Fixture::simulated("ivy-bridge");
    let options = ["mix", "--format", "csv", "--per", "function", "--rows", "mnemonic"];
    let csv = support::stdout_of(&[&options[..], &["--values", "per-call,samples"]].concat(), &fixture);
    let mut lines = csv.lines();
    let titles = "function,mnemonic,count,share,count_error,share_error,rests_on_little,share_of_group,share_of_group_error,per_call,samples";
    assert_eq!(lines.next(), Some(titles));
    let mix = mix(&["--per", "function", "--rows", "mnemonic", "--values", "per-call,samples"], &fixture);
    for (line, row) in lines.zip(rows(&mix)) {
        let fields: Vec<&str> = line.rsplitn(5, ',').collect();
        for (field, key) in fields.into_iter().zip(["samples", "per_call", "share_of_group_error", "share_of_group"]) {
            assert_eq!(field.parse::<f64>().ok(), row[key].as_f64(), "{key} of {row}");
        }
    }
}

/// Rows of a table in Markdown have the cells of the table for terminals; code is fenced, and nothing is a heading.
#[test]
fn tables_in_markdown() {
    let fixture = Fixture::simulated("ivy-bridge");
    let options = ["--per", "function", "--rows", "mnemonic", "--top", "3"];
    let markdown = support::stdout_of(&[&["mix", "--format", "markdown"], &options[..]].concat(), &fixture);
    let rows: Vec<Vec<String>> = markdown
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.replace('\\', "").trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())
        .map(|row: Vec<String>| row.into_iter().filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(rows, lines(&options, &fixture));
    assert!(markdown.starts_with("- source: ") && markdown.contains("\n|:--|:--|--:|--:|--:|\n"), "{markdown}");
    let input = fixture.input();
    let [kind, file, option, binary] = input.each_ref().map(String::as_str);
    for command in [&["annotate", "-f", "get_bit"][..], &["blocks"]] {
        let report = support::stdout(&[command, &[kind, file, option, binary, "--format", "markdown"]].concat());
        let mut is_code = false;
        for line in report.lines() {
            is_code ^= line == "```";
            assert!(is_code || !line.starts_with('#'), "{line}");
        }
        assert!(
            !is_code
                && report.lines().any(|line| line == "```" || line.starts_with("|--:") || line.starts_with("|:--"))
        );
    }
}

/// They are cut; a file has them whole.
#[test]
fn long_names_above_columns_fit_the_terminal() {
    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let text = support::stdout_of(&["mix", "--rows", "mnemonic", "--columns", "function"], &fixture);
    assert!(
        text.lines()
            .any(|line| line.starts_with("mnemonic ") && line.contains("(anonymous namespace)::Polygon::area() const")),
        "{text}"
    );
    for shape in
        [&["--rows", "mnemonic", "--columns", "function"][..], &["--rows", "loop", "--columns", "isa,function"]]
    {
        let command = [&["mix"], shape, &input.each_ref().map(String::as_str)].concat();
        for columns in [60, 80, 100, 200] {
            let Some(text) = support::on_terminal(columns, "HBBP_PAGER= NO_COLOR=1 LC_ALL=C.UTF-8", &command) else {
                return;
            };
            let widest = text.lines().max_by_key(|line| line.width()).unwrap();
            assert!(widest.width() <= columns, "{shape:?} {columns}: {widest}");
        }
    }
}

/// Bars stand on terminals only, where they fit, and no line wraps.
#[test]
fn bars_stand_beside_shares_on_terminals() {
    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let on = |columns: usize, variables: &str, command: &[&str]| {
        let arguments = [command, &input.each_ref().map(String::as_str)].concat();
        support::on_terminal(columns, &format!("HBBP_PAGER= {variables}"), &arguments)
    };
    let commands: [&[&str]; 6] = [
        &["mix"],
        &["mix", "--rows", "function,mnemonic"],
        &["mix", "--per", "function", "--rows", "isa"],
        &["blocks"],
        &["vectorization"],
        &["annotate", "--summary"],
    ];
    for command in commands {
        for columns in [60, 80, 120, 200] {
            let Some(text) = on(columns, "LC_ALL=C.UTF-8", command) else { return };
            let table = text.split("\n\n").nth(1).unwrap();
            let rows = table.lines().take_while(|line| !line.starts_with("..."));
            let widest = rows.max_by_key(|line| line.width()).unwrap();
            // Numbers are not cut: blocks have many.
            let least = if command[0] == "blocks" { 80 } else { 60 };
            assert!(widest.width() <= columns.max(least), "{command:?} {columns}: {widest}");
            // Blocks and functions with vectors have many numbers, which are worth more.
            let room = if ["blocks", "vectorization"].contains(&command[0]) { 200 } else { 120 };
            assert!(text.contains('█') || columns < room, "{command:?} {columns}: {text}");
        }
        let Some(ascii) = on(200, "LC_ALL=C", command) else { return };
        assert!(ascii.contains("##########") && !ascii.contains('█'), "{command:?}: {ascii}");
        let Some(none) = on(200, "NO_COLOR=1 LC_ALL=C.UTF-8", command) else { return };
        assert!(!none.contains(['█', '▏']) && !none.contains("##"), "{none}");
        let piped = support::stdout_of(command, &fixture);
        assert!(!piped.contains('█') && !piped.contains("##"), "{command:?}: {piped}");
        let always = support::stdout_of(&[command, &["--colour", "always"]].concat(), &fixture);
        assert!(always.contains('█') || always.contains("##"), "{command:?}: {always}");
        let never = on(200, "LC_ALL=C.UTF-8", &[command, &["--colour", "never"]].concat()).unwrap();
        assert!(!never.contains('█'), "{command:?}: {never}");
    }
    let markdown = support::stdout_of(&["mix", "--colour", "always", "--format", "markdown"], &fixture);
    assert!(!markdown.contains('█') && !markdown.contains("##"), "{markdown}");
}

#[test]
fn the_bytes_of_code_are_those_of_the_file() {
    let fixture = Fixture::bursts("objects");
    let mix = mix(&["--rows", "code-bytes,length,mnemonic"], &fixture);
    let file = std::fs::read(&fixture.binary).unwrap();
    let is_there = |code: &[u8]| file.windows(code.len()).any(|bytes| bytes == code);
    for row in rows(&mix).iter().filter(|row| text(row, "code-bytes") != "[unreadable]") {
        let bytes: Vec<&str> = text(row, "code-bytes").split(' ').collect();
        assert_eq!(bytes.len().to_string(), text(row, "length"), "{row}");
        assert!(bytes.iter().all(|byte| byte.len() == 2), "{row}");
        let code: Vec<u8> = bytes.iter().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert!(is_there(&code), "{row}");
        if text(row, "mnemonic") == "ret" {
            assert!(["c3", "f3"].contains(&bytes[0]), "{row}");
        }
    }
}

/// A key and a number of one name are both there.
#[test]
fn numbers_do_not_hide_keys() {
    let fixture = Fixture::bursts("objects");
    let mix = mix(&["--rows", "flops", "--values", "flops"], &fixture);
    for row in rows(&mix) {
        let is_read = row["flops"] != "[unreadable]";
        assert!(row["flops"].is_string() && row["executed_flops"].is_number() == is_read, "{row}");
        assert_eq!(number(row, "unread_instructions"), if is_read { 0.0 } else { number(row, "count") }, "{row}");
    }
    let csv = support::stdout_of(&["mix", "--rows", "flops", "--values", "flops", "--format", "csv"], &fixture);
    let titles: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(titles.iter().filter(|title| **title == "flops").count(), 1, "{titles:?}");
}

/// What changes nothing is said, and what is sorted by but not known.
#[test]
fn options_without_effect_are_said() {
    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let said = |options: &[&str]| {
        let output = support::run(&[options, &input.each_ref().map(String::as_str)].concat());
        assert!(output.status.success(), "{options:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let by_mispredicted = said(&["mix", "--sort", "mispredicted"]);
    assert!(by_mispredicted.contains("nothing is known of mispredictions"), "{by_mispredicted}");
    assert!(!said(&["mix"]).contains("mispredictions"));
    let of_csv = said(&["mix", "--rows", "isa,mnemonic", "--top", "2", "--subtotals", "--format", "csv"]);
    assert!(of_csv.contains(" are left out (--top 0 writes them)") && of_csv.contains("--subtotals changes nothing"));
    let whole = said(&["mix", "--rows", "isa,mnemonic", "--format", "csv"]);
    assert!(!whole.contains("left out") && !whole.contains("--subtotals"), "{whole}");
    let truth = fixture.truth();
    let truth = truth.to_str().unwrap();
    let binary = ["--binary", &input[3]];
    let output = support::run(&[&["mix", truth, "--core", "zen-3", "--model", "published"][..], &binary].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    for option in ["--core", "--model"] {
        assert!(said.contains(&format!("{option} changes nothing here")), "{said}");
    }
    assert!(output.status.success(), "{said}");
    let output = support::run(&[&["diff", truth, truth, "--core", "zen-3"][..], &binary].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--core changes nothing here"), "{said}");
}
