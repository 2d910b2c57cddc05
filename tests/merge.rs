//! `hbbp merge` and `hbbp diff` on recordings whose counts are known by hand.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};

use perfdata::Features;
use serde_json::{Value, json};
use support::{Fixture, run, stdout};
use synthetic::*;
use tempfile::TempDir;

/// Twice past C: A 50, C 50, D 50.
const PAST_C: [(u64, u64); 5] = [(D_JMP, A), (A_JNE, C), (D_JMP, A), (A_JNE, C), (D_JMP, A)];

struct Setup {
    folder: TempDir,
    binary: PathBuf,
}

impl Setup {
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let binary = program(folder.path(), "four", &["-Wl,--build-id=0x0123456789abcdef"])?;
        Some(Setup { folder, binary })
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }

    fn record(&self, name: &str, binary: &Path, stacks: &[&[(u64, u64)]]) -> String {
        let mut recorder = Recorder::new(binary);
        stacks.iter().for_each(|stack| recorder.stack(stack));
        std::fs::write(self.file(name), recorder.finish(&Features::default())).unwrap();
        self.file(name)
    }

    fn merge(&self, name: &str, inputs: &[&str]) -> String {
        let output = run(&[&["merge", "-o", &self.file(name)], inputs].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.file(name)
    }
}

fn preagg(file: &str) -> String {
    stdout(&["export", "--format", "bolt-preagg", "-i", file])
}

#[test]
fn counts_of_merged_recordings_are_sums_by_weight() {
    let Some(setup) = Setup::new() else { return };
    let around = setup.record("around", &setup.binary, &[&AROUND]);
    let past_c = setup.record("past_c", &setup.binary, &[&PAST_C]);
    let merged = setup.merge("merged", &[&format!("{around}:3"), &past_c]);
    let expected = "\
B 401014 40101b 125 0
B 401019 40101d 75 0
B 40101e 401000 200 0
F 401000 401014 125
F 401000 401019 75
F 40101b 40101e 125
F 40101d 40101e 75
";
    assert_eq!(preagg(&merged), expected);
    // A merged file is an input like any other, and so is what it is the sum of.
    let thrice = setup.merge("thrice", &[&around, &around, &around]);
    assert_eq!(preagg(&setup.merge("again", &[&thrice, &past_c])), expected);
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&thrice).unwrap()).unwrap();
    assert_eq!((&document["schema"], &document["inputs"]), (&"hbbp-flow/1".into(), &3.into()));
}

#[test]
fn the_same_build_is_one_module_wherever_it_was() {
    let Some(setup) = Setup::new() else { return };
    for name in ["elsewhere", "copied"] {
        std::fs::create_dir(setup.folder.path().join(name)).unwrap();
    }
    let elsewhere = setup.folder.path().join("copied/four");
    std::fs::copy(&setup.binary, &elsewhere).unwrap();
    let other =
        program(&setup.folder.path().join("elsewhere"), "four", &["-Wl,--build-id=0xfedcba9876543210"]).unwrap();
    let one = setup.record("one", &setup.binary, &[&AROUND]);
    let two = setup.record("two", &elsewhere, &[&AROUND]);
    let three = setup.record("three", &other, &[&AROUND, &AROUND, &AROUND]);
    let merged = setup.merge("merged", &[&one, &two, &three]);
    let twice = preagg(&setup.merge("twice", &[&one, &one]));
    let of_first = ["export", "--format", "bolt-preagg", "-i", &merged, "--binary", setup.binary.to_str().unwrap()];
    assert_eq!(stdout(&of_first), twice);
    let told = String::from_utf8(run(&of_first).stderr).unwrap();
    assert!(told.contains("left out: 1 other builds of that name, 60.00 % of what ran of it"), "{told}");
    // Without a word it is the one that ran most.
    assert_eq!(preagg(&merged), preagg(&three));
}

/// Merged where the binaries are not, used where they are.
#[test]
fn code_that_was_not_read_is_placed_when_its_file_is_given() {
    let Some(setup) = Setup::new() else { return };
    let recording = setup.record("around", &setup.binary, &[&AROUND]);
    let expected = preagg(&recording);
    let moved = setup.file("moved");
    std::fs::rename(&setup.binary, &moved).unwrap();
    let merged = setup.merge("merged", &[&recording]);
    let given = format!("four={moved}");
    assert_eq!(stdout(&["export", "--format", "bolt-preagg", "-i", &merged, "--binary", &given]), expected);
}

#[test]
fn what_cannot_be_read_stops_a_merge_or_is_left_out() {
    let Some(setup) = Setup::new() else { return };
    let good = setup.record("good", &setup.binary, &[&AROUND]);
    let text = std::fs::read_to_string(setup.merge("whole", &[&good])).unwrap();
    std::fs::write(setup.file("cut"), &text[..text.len() / 2]).unwrap();
    let (cut, out) = (setup.file("cut"), setup.file("out"));
    let output = run(&["merge", "-o", &out, &good, &cut]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("cut: it is no flow"), "{error}");
    assert!(!Path::new(&out).exists());
    let output = run(&["merge", "--keep-going", "-o", &out, &good, &cut]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && error.contains("left out: ") && error.contains("1 of 2 files"), "{error}");
    assert_eq!(preagg(&out), preagg(&good));
    let error = String::from_utf8(run(&["merge", "--keep-going", "-o", &out, &cut]).stderr).unwrap();
    assert!(error.contains("none of the files could be read"), "{error}");
}

/// Sums that no reader would take are not written.
#[test]
fn standard_input_and_output_are_files() {
    let Some(setup) = Setup::new() else { return };
    let first = setup.record("first", &setup.binary, &[&AROUND]);
    let piped = |args: &[&str], from: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hbbp"));
        let output = command.args(args).stdin(std::fs::File::open(from).unwrap()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let merged = setup.merge("merged", &[&first]);
    let expected = std::fs::read(&merged).unwrap();
    assert_eq!(piped(&["merge", "-o", "-", "-"], &first), expected);
    assert_eq!(piped(&["merge", "-o", "-", "-"], &merged), expected, "a merged file, too");
    let compared = piped(&["diff", "-", &first, "--format", "json", "-o", "-"], &merged);
    near(&serde_json::from_slice::<Value>(&compared).unwrap()["overlap"]["blocks"], 1.0);
    assert!(!Path::new("-").exists());
}

#[test]
fn weights_that_cannot_be_are_told() {
    let Some(setup) = Setup::new() else { return };
    let around = setup.record("around", &setup.binary, &[&AROUND]);
    let merge = |weight: &str| {
        let output = run(&["merge", "-o", &setup.file("out"), &format!("{around}:{weight}"), &around]);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    for weight in ["1e19", "1e308"] {
        let (done, said) = merge(weight);
        assert!(!done && said.contains("use smaller weights") && said.contains("expected 0 to 3e20"), "{said}");
        assert!(!Path::new(&setup.file("out")).exists());
    }
    let (done, said) = merge("0.5");
    assert!(done && said.contains("weigh the other files more instead"), "{said}");
    let (done, said) = merge("2");
    assert!(done && !said.contains("weigh"), "{said}");
}

#[test]
fn inputs_are_taken_for_what_they_are() {
    let Some(setup) = Setup::new() else { return };
    let around = setup.record("around", &setup.binary, &[&AROUND]);
    // The members of a document have no order.
    let document: std::collections::BTreeMap<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(setup.merge("merged", &[&around])).unwrap()).unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap();
    assert!(text.find("hbbp-flow/").unwrap() > 256, "{text}");
    std::fs::write(setup.file("sorted"), text).unwrap();
    assert_eq!(preagg(&setup.file("sorted")), preagg(&around));

    let error = |input: &str| {
        let output = run(&["merge", "-o", &setup.file("out"), input]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error("host:1.data").contains("host:1.data: there is no such file"), "{}", error("host:1.data"));
    let no_number = format!("{around}:many");
    assert!(error(&no_number).contains("the weight is no number: \"many\""), "{}", error(&no_number));
}

#[test]
fn a_flow_that_cannot_be_is_told() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("flow");
    let check = |modules: &str, expected: &str| {
        let text = format!(
            r#"{{"schema":"hbbp-flow/1","executions":true,"inputs":1,"left_out":{{"streams":0.0,"branches":0.0,"samples":0.0}},"modules":{modules}}}"#
        );
        std::fs::write(&file, text).unwrap();
        let output = run(&["export", "--format", "bolt", "-i", file.to_str().unwrap()]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{modules}: {error}");
    };
    let module =
        |build_id: &str, lists: &str| format!(r#"[{{"path":"/x","build_id":{build_id},"read":true,{lists}}}]"#);
    check("[]", "nothing that has a file was seen running");
    check(&module("null", r#""ranges":[[9,8,1.0]],"branches":[],"samples":[]"#), "a range from 0x9 to 0x8");
    check(&module("null", r#""ranges":[[8,9,-1.0]],"branches":[],"samples":[]"#), "a count of -1e0");
    check(
        &module("null", r#""ranges":[[8,9,1e300]],"branches":[],"samples":[]"#),
        "a count of 1e300, expected 0 to 3e20",
    );
    check(
        &module("null", r#""ranges":[],"branches":[[1,7,1,1.0,0.0]],"samples":[]"#),
        "leads to module 7, but there are 1",
    );
    check(
        &module(r#""0x1""#, r#""ranges":[],"branches":[],"samples":[]"#),
        "expected an even number of hexadecimal digits",
    );
    check(&module("null", r#""ranges":[[1]],"branches":[],"samples":[]"#), "invalid length 1");
    let of_slice =
        |slice: &str| module("null", &format!(r#""ranges":[],"branches":[],"samples":[],"slices":[{{{slice}}}]"#));
    check(&of_slice(r#""slice":20,"ranges":[],"samples":[]"#), "/x has counts of slice 20, expected less than 20");
    check(&of_slice(r#""slice":0,"ranges":[[9,8,1.0]],"samples":[]"#), "a range from 0x9 to 0x8");
    check(&of_slice(r#""slice":0,"ranges":[],"samples":[[8,-1.0]]"#), "a count of -1e0");
    // No file like that: it can be merged, but is no profile of a binary.
    check(&module("null", r#""ranges":[[0,18446744073709551615,1.0]],"branches":[],"samples":[]"#), "there is no /x");
}

/// How far what three slices have is apart says by the jackknife how uncertain counts are, and changes none of them.
#[test]
fn what_slices_have_says_how_uncertain_sums_are() {
    let Some(setup) = Setup::new() else { return };
    let file = setup.file("sliced");
    // Two ranges, at addresses, or at offsets in the file where these are so much less.
    let ranges = |less: u64, counts: [u64; 2]| {
        let [a, a_jne, c, d_jmp] = [A, A_JNE, C, D_JMP].map(|address| address - less);
        format!("[[{a},{a_jne},{}],[{c},{d_jmp},{}]]", counts[0], counts[1])
    };
    let report = |path: &Path, executions: bool, less: u64, slices: &[(u64, u64)]| -> Vec<Value> {
        let slice = |(slice, count): &(u64, u64)| {
            format!(r#"{{"slice":{slice},"ranges":{},"samples":[]}}"#, ranges(less, [*count, 20]))
        };
        let slices: Vec<String> = slices.iter().map(slice).collect();
        let text = format!(
            r#"{{"schema":"hbbp-flow/1","executions":{executions},"inputs":3,"left_out":{{"streams":0.0,"branches":0.0,"samples":0.0}},
            "modules":[{{"path":"{}","build_id":null,"read":{},"ranges":{},"branches":[],"samples":[],"slices":[{}]}}]}}"#,
            path.display(),
            less == 0,
            ranges(less, [30, 60]),
            slices.join(",")
        );
        std::fs::write(&file, text).unwrap();
        let report: Value = serde_json::from_str(&stdout(&["blocks", &file, "--format", "json"])).unwrap();
        report["blocks"].as_array().unwrap().clone()
    };
    let slices = [(3, 10), (0, 12), (19, 8)];
    let counts = |blocks: &[Value]| -> Vec<Value> { blocks.iter().map(|block| block["count"].clone()).collect() };
    let plain = report(&setup.binary, true, 0, &[]);
    let [sliced, relative] = [true, false].map(|executions| report(&setup.binary, executions, 0, &slices));
    assert_eq!(counts(&plain), [30.0, 60.0, 60.0]);
    assert_eq!((counts(&sliced), counts(&relative)), (counts(&plain), counts(&plain)));
    assert!(plain.iter().all(|block| block["count_error"].is_null()), "{plain:?}");
    // Without each of them 20 of 100 that ran, 18 of 98 and 22 of 102, times 150: 2/3 of the squares' sum, and Student's t of 2 degrees.
    let error = |blocks: &[Value]| blocks[0]["count_error"].as_f64().unwrap();
    assert!((error(&sliced) - 11.932).abs() < 0.002, "{sliced:?}");
    // Costs of code can be wrong, too.
    assert!(error(&relative) > error(&sliced) + 0.1, "{relative:?}");
    // Code that could not be read, and can be now, and code that cannot.
    const BEFORE_TEXT: u64 = 0x40_0000;
    assert_eq!(report(&setup.binary, true, BEFORE_TEXT, &slices), sliced);
    let unread = report(Path::new("/nowhere"), true, BEFORE_TEXT, &slices);
    let all_have_it = unread.iter().all(|block| block["count_error"].as_f64().unwrap() > 0.0);
    assert!(unread.len() > 1 && all_have_it, "{unread:?}");
    // Sums of such files have none.
    let merged = std::fs::read_to_string(setup.merge("merged", &[&file])).unwrap();
    assert!(!merged.contains("slices"), "{merged}");
}

/// Sums of a fleet can be very large: they are as uncertain as the same of small ones.
#[test]
fn large_sums_are_as_uncertain_as_small_ones() {
    let Some(setup) = Setup::new() else { return };
    let error = |factor: f64| -> f64 {
        let slice = |(slice, count): (u64, f64)| {
            let (few, rest) = (count * factor, 20.0 * factor);
            format!(r#"{{"slice":{slice},"ranges":[[{A},{A_JNE},{few}],[{C},{D_JMP},{rest}]],"samples":[]}}"#)
        };
        let slices = [(0, 10.0), (1, 12.0), (2, 8.0)].map(slice).join(",");
        let text = format!(
            r#"{{"schema":"hbbp-flow/1","executions":true,"inputs":3,"left_out":{{"streams":0.0,"branches":0.0,"samples":0.0}},
            "modules":[{{"path":"{}","build_id":null,"read":true,"ranges":[[{A},{A_JNE},{}],[{C},{D_JMP},{}]],"branches":[],"samples":[],
            "slices":[{slices}]}}]}}"#,
            setup.binary.display(),
            30.0 * factor,
            60.0 * factor
        );
        let file = setup.file("large");
        std::fs::write(&file, text).unwrap();
        let report: Value = serde_json::from_str(&stdout(&["blocks", &file, "--format", "json"])).unwrap();
        let block = report["blocks"].as_array().unwrap().iter().find(|block| block["start"] == A).unwrap();
        block["count_error"].as_f64().unwrap() / factor
    };
    let small = error(1.0);
    assert!(small > 1.0, "{small}");
    for factor in [1e-6, 1e6, 1e14, 1e18] {
        assert!((error(factor) / small - 1.0).abs() < 1e-3, "{factor}: {} {small}", error(factor));
    }
}

fn diff(before: &str, after: &str) -> Value {
    serde_json::from_str(&stdout(&["diff", before, after, "--format", "json"])).unwrap()
}

fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value}, expected {expected}");
}

#[test]
fn the_overlap_is_the_sum_of_the_smaller_shares() {
    let Some(setup) = Setup::new() else { return };
    let around = setup.record("around", &setup.binary, &[&AROUND]);
    let past_c = setup.record("past_c", &setup.binary, &[&PAST_C]);
    let same = diff(&around, &around);
    near(&same["overlap"]["blocks"], 1.0);
    near(&same["overlap"]["functions"], 1.0);
    near(&same["before"]["same_code"], 1.0);

    // Instructions before: A 1050, B 100, C 50, D 100. After: A 1050, C 100, D 100.
    let moved = diff(&around, &past_c);
    near(&moved["before"]["instructions"], 1300.0);
    near(&moved["after"]["instructions"], 1250.0);
    near(&moved["overlap"]["blocks"], 1050.0 / 1300.0 + 50.0 / 1300.0 + 100.0 / 1300.0);
    near(&moved["overlap"]["functions"], 1.0);
    let blocks = moved["blocks"].as_array().unwrap();
    let starts: Vec<u64> = blocks.iter().map(|block| block["start"].as_u64().unwrap()).collect();
    assert_eq!(starts, [B, C, A, D]);
    near(&blocks[0]["change"], -100.0 / 1300.0);
    near(&blocks[1]["change"], 100.0 / 1250.0 - 50.0 / 1300.0);
    assert_eq!(moved["mix"][0]["isa"], "base");
    near(&moved["mix"][0]["after"], 1.0);
}

#[test]
fn functions_of_other_builds_are_compared_by_name() {
    let Some(setup) = Setup::new() else { return };
    let other = program(setup.folder.path(), "five", &["-Wl,--build-id=0xfedcba9876543210"]).unwrap();
    let before = setup.record("before", &setup.binary, &[&AROUND]);
    let after = setup.record("after", &other, &[&AROUND]);
    let moved = diff(&before, &after);
    assert_eq!(moved["overlap"]["blocks"], Value::Null);
    near(&moved["overlap"]["functions"], 1.0);
    near(&moved["before"]["same_code"], 1.0);
    near(&moved["after"]["same_code"], 1.0);
    assert_eq!(moved["functions"][0]["module"], "four|five");
}

#[test]
fn functions_are_compared_across_suffixes_of_compilers() {
    let Some(setup) = Setup::new() else { return };
    let compared = |before: [&str; 2], after: [&str; 2]| {
        let built = |name, symbols| with_symbols(setup.folder.path(), name, symbols).unwrap();
        let before = setup.record("before", &built("one", before), &[&AROUND]);
        let after = setup.record("after", &built("three", after), &[&AROUND]);
        diff(&before, &after)
    };
    let names = |document: &Value| -> Vec<String> {
        let functions = document["functions"].as_array().unwrap().iter();
        let mut names: Vec<String> = functions.map(|of| of["function"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let notes = |document: &Value| document["degraded"].to_string();

    // A copy on one side, two parts on the other: B and C are 150 of 1,300 instructions.
    let document = compared(["work.constprop.0", "other"], ["work", "work.cold"]);
    assert_eq!(names(&document), ["_start", "other", "work"]);
    // Functions that are one have the code of all their parts; C is 50, and is another function on the other side.
    near(&document["before"]["same_code"], 1250.0 / 1300.0);
    near(&document["after"]["same_code"], 1250.0 / 1300.0);
    let functions = document["functions"].as_array().unwrap();
    let work = functions.iter().find(|of| of["function"] == "work").unwrap();
    near(&work["before"], 100.0 / 1300.0);
    near(&work["after"], 150.0 / 1300.0);
    assert_eq!(work["names"], json!({"before": ["work.constprop.0"], "after": ["work", "work.cold"]}));
    assert!(notes(&document).contains("work (work.constprop.0 before, work + work.cold after)"), "{document}");
    for keys in ["function", "module,function", "function,mnemonic"] {
        let words = ["diff", &setup.file("before"), &setup.file("after"), "--rows", keys, "--format", "json"];
        let document: Value = serde_json::from_str(&stdout(&words)).unwrap();
        let rows = document["rows"].as_array().unwrap().iter();
        let work = rows.filter(|row| row["function"] == "work");
        let sums = work.fold([0.0; 2], |[before, after], row| {
            [before + row["before"].as_f64().unwrap(), after + row["after"].as_f64().unwrap()]
        });
        near(&json!(sums[0]), 100.0 / 1300.0);
        near(&json!(sums[1]), 150.0 / 1300.0);
    }

    // The same names on both sides, and names that only a number tells apart.
    let document = compared(["work", "work.cold"], ["work", "work.cold"]);
    assert_eq!(names(&document), ["_start", "work", "work.cold"]);
    near(&document["overlap"]["functions"], 1.0);
    let document = compared(["work.lto_priv.0", "work.lto_priv.1"], ["work.lto_priv.0", "work"]);
    assert_eq!(names(&document), ["_start", "work", "work.lto_priv.0", "work.lto_priv.1"]);
    assert!(
        notes(&document).contains("there may be several functions of the name without suffixes: work"),
        "{document}"
    );
    // One each that moved to another number; the hash of Rust.
    let document = compared(
        ["work.llvm.12", "_ZN4main4spin17h0123456789abcdefE"],
        ["work.llvm.34", "_ZN4main4spin17hfedcba9876543210E"],
    );
    assert_eq!(names(&document), ["_start", "main::spin", "work"]);
    near(&document["overlap"]["functions"], 1.0);
}

/// An event that counts instructions says how many there were; 100 samples, or 81, are too few to tell them apart.
#[test]
fn fewer_instructions_are_told_where_they_are_known() {
    let Some(setup) = Setup::new() else { return };
    let record = |name: &str, samples: usize| {
        let mut recorder = Recorder::new(&setup.binary);
        recorder.stack(&AROUND);
        (0..samples).for_each(|_| recorder.sample(A));
        std::fs::write(setup.file(name), recorder.finish(&Features::default())).unwrap();
        setup.file(name)
    };
    let document = diff(&record("before", 10_000), &record("after", 8_000));
    assert_eq!(document["work"]["executed"], json!([1e7, 8e6]));
    near(&document["work"]["change"], -0.2);
    let text = document["work"]["text"].as_str().unwrap();
    assert!(text.starts_with("20.00 % (± 2.4 %) fewer instructions, if both sides did the same work"), "{text}");
    assert!(text.ends_with(": 10,000,000 before (the event in user code), 8,000,000 after (the event in user code)"));
    // Within an interval there is no change, or it is not known.
    let same = diff(&record("before", 10_000), &record("after", 10_010));
    let text = same["work"]["text"].as_str().unwrap();
    assert!(text.starts_with("no change beyond ± 2.8 %: 10,000,000 before ("), "{text}");
    let few = diff(&record("before", 100), &record("after", 81));
    let text = few["work"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("no change beyond ± 24 %, so whether it changed is not known: 100,000 before ("),
        "{text}"
    );
    // Exact counts have no width; bursts of a clock and merged files do not say it.
    let fixture = Fixture::simulated("ivy-bridge");
    let (truth, [_, file, option, binary]) = (fixture.truth(), fixture.input());
    let (truth, before) = (truth.to_str().unwrap(), file.as_str());
    let of = |before: &str, after: &str| -> Value {
        serde_json::from_str(&stdout(&["diff", before, after, &option, &binary, "--format", "json"])).unwrap()
    };
    let exact = of(before, truth);
    assert!(exact["work"]["text"].as_str().unwrap().starts_with("no change beyond ± "), "{}", exact["work"]);
    let both = of(truth, truth);
    assert_eq!(both["work"]["change_error"], 0.0);
    assert!(both["work"]["text"].as_str().unwrap().starts_with("as many instructions on both sides: "), "{both}");
    // Only where there is chance are changes counted that are beyond it.
    let table = |before: &str| stdout(&["diff", before, truth, &option, &binary]);
    assert!(
        !table(truth).contains("changed by more than chance") && table(before).contains("changed by more than chance")
    );
    let merged = setup.merge("merged", &[&setup.record("around", &setup.binary, &[&AROUND])]);
    let unknown = diff(&merged, &setup.file("around"));
    assert_eq!(unknown["work"]["change"], Value::Null);
    assert!(unknown["work"]["text"].as_str().unwrap().contains("is not known"), "{unknown}");
}

/// Without a build id nothing but the code itself tells another build at the same path.
#[test]
fn code_that_does_not_fit_what_ran_is_told() {
    let folder = TempDir::new().unwrap();
    let Some(binary) = program(folder.path(), "four", &["-Wl,--build-id=none"]) else { return };
    let setup = Setup { folder, binary };
    let merged = setup.merge("merged", &[&setup.record("around", &setup.binary, &[&AROUND])]);
    let told = |arguments: &[&str]| String::from_utf8(run(arguments).stderr).unwrap();
    let formats = ["pprof", "callgrind", "bolt", "bolt-preagg", "llvm-profgen"];
    let said_of = |format: &str| told(&["export", "--format", format, "-i", &merged, "-o", &setup.file("out")]);
    for format in formats {
        assert!(!said_of(format).contains("does not fit the file"), "{format}: {}", said_of(format));
    }
    // One more nop in C: what ends with D's jump ends with none.
    let other = SOURCE.replace("1:  nop; nop\n", "1:  nop; nop; nop\n");
    assert_ne!(other, SOURCE);
    assemble(setup.folder.path(), "four", &other, &["-Wl,--build-id=none"]).unwrap();
    let expected = "50.00 % of what ran of it does not fit the file";
    for format in formats {
        assert!(said_of(format).contains(expected), "{format}: {}", said_of(format));
    }
    let said = stdout(&["diff", &merged, &merged]);
    assert!(said.contains(expected), "{said}");
}

/// Branches of one program, samples of another: what is counted by branches says what it lacks.
#[test]
fn code_without_branches_beside_code_with_branches_is_told() {
    let Some(setup) = Setup::new() else { return };
    let other = program(setup.folder.path(), "five", &["-Wl,--build-id=0xfedcba9876543210"]).unwrap();
    let mut recorder = Recorder::new(&setup.binary);
    recorder.stack(&AROUND);
    recorder.sample(A);
    let moved = 0x1_0000_0000;
    recorder.map(&perfdata::Mmap {
        start: perfdata::Avma(A + moved),
        path: other.to_str().unwrap().as_bytes(),
        ..Recorder::mapping()
    });
    (0..3).for_each(|_| recorder.sample(A + moved));
    std::fs::write(setup.file("both"), recorder.finish(&Features::default())).unwrap();
    let both = setup.file("both");
    let told = |arguments: &[&str]| String::from_utf8(run(arguments).stderr).unwrap();
    let expected = "code of which samples were seen, but no branches (75.00 % of all samples)";
    for format in ["pprof", "callgrind"] {
        let said = told(&["export", "--format", format, "-i", &both, "-o", &setup.file("out")]);
        assert!(said.contains(expected), "{said}");
    }
    // What both sides lack is said once: in the head of a table, else on standard error.
    let head = String::from_utf8(run(&["diff", &both, &both]).stdout).unwrap();
    assert!(head.contains("# weaker   both: ") && head.matches(expected).count() == 1, "{head}");
    assert_eq!(told(&["diff", &both, &both]), "");
    assert_eq!(told(&["diff", &both, &both, "--format", "csv"]).matches(expected).count(), 1);
    let around = setup.record("around", &setup.binary, &[&AROUND]);
    let said = told(&["export", "--format", "pprof", "-i", &around, "-o", &setup.file("out")]);
    assert!(!said.contains("no branches"), "{said}");

    let mut recorder = Recorder::new(&setup.binary);
    recorder.sample(A);
    std::fs::write(setup.file("samples"), recorder.finish(&Features::default())).unwrap();
    let said = told(&["merge", "-o", &setup.file("merged"), &around, &setup.file("samples")]);
    assert!(said.contains("1 files have branches, 1 only samples"), "{said}");
}

/// Recordings of real programs, each beside a merged file of itself.
#[test]
fn a_recording_and_what_it_was_merged_to_are_the_same() {
    let bursts = [Fixture::bursts("objects")];
    for fixture in Fixture::all_stacks().into_iter().chain(bursts) {
        let folder = TempDir::new().unwrap();
        let (recording, merged) = (fixture.recording.to_str().unwrap(), folder.path().join("merged"));
        let merged = merged.to_str().unwrap();
        let binary = fixture.binary_option();
        stdout(&["merge", "-o", merged, "--binary", &binary, recording, recording]);
        let text = stdout(&["diff", recording, merged, "--binary", &binary, "--format", "json"]);
        let document: Value = serde_json::from_str(&text).unwrap();
        for of in ["blocks", "lines"] {
            let overlap = &document["overlap"][of];
            assert!(overlap.is_null() || overlap.as_f64().unwrap() > 0.999_999, "{}: {document:#}", fixture.name);
        }
        let read = |side: &str| {
            document[side]["instructions"].as_f64().unwrap() * (1.0 - document[side]["unread"].as_f64().unwrap())
        };
        // The kernel's code is in the recording only.
        assert!((read("after") / read("before") - 2.0).abs() < 1e-9, "{}", fixture.name);
    }
}

#[test]
fn mixes_are_compared_by_keys() {
    let [before, after] = ["compress", "interpret"].map(support::Fixture::bursts);
    let (before_input, after_input) = (before.input(), after.input());
    let diff = |options: &[&str]| {
        let binaries = [&before_input[3], &after_input[3]];
        let files = [&before_input[1], &after_input[1]];
        let arguments: Vec<&str> = ["diff"]
            .into_iter()
            .chain(files.map(String::as_str))
            .chain(binaries.into_iter().flat_map(|binary| ["--binary", binary.as_str()]))
            .chain(options.iter().copied())
            .collect();
        stdout(&arguments)
    };
    let document: Value = serde_json::from_str(&diff(&["--rows", "isa,packing", "--format", "json"])).unwrap();
    let rows = document["rows"].as_array().unwrap();
    for (side, fixture) in [("before", &before), ("after", &after)] {
        let mix = support::stdout_of(&["mix", "--rows", "isa,packing", "--format", "json"], fixture);
        let mix: Value = serde_json::from_str(&mix).unwrap();
        for row in mix["rows"].as_array().unwrap() {
            let is_it = |other: &&Value| other["isa"] == row["isa"] && other["packing"] == row["packing"];
            let found = rows.iter().find(is_it).unwrap();
            near(&found[side], row["share"].as_f64().unwrap());
            near(&found[&format!("count_{side}")], row["count"].as_f64().unwrap());
        }
    }
    for row in rows {
        near(&row["change"], row["after"].as_f64().unwrap() - row["before"].as_f64().unwrap());
        let (change, error) = (row["change"].as_f64().unwrap(), row["change_error"].as_f64().unwrap());
        assert_eq!(row["within_error"], change.abs() <= error, "{row}");
    }
    // A line for each instruction set, and those of its packings after it.
    let table = diff(&["--rows", "isa,packing"]);
    let titles = table.lines().find(|line| line.trim_start().starts_with("before")).unwrap();
    assert_eq!(
        titles.split_whitespace().collect::<Vec<_>>()[..6],
        ["before", "after", "change", "±", "isa", "packing"]
    );
    let base = table.lines().position(|line| line.ends_with("  base")).unwrap();
    assert!(table.lines().nth(base + 1).unwrap().ends_with("  none"), "{table}");
    // Shares are those of what passes.
    let filtered = diff(&["--rows", "mnemonic", "--filter", "control-flow=jump*,conditional*", "--format", "csv"]);
    let mut lines = filtered.lines();
    assert_eq!(lines.next().unwrap().split(',').next(), Some("mnemonic"));
    let sum: f64 = lines.map(|line| line.split(',').nth(1).unwrap().parse::<f64>().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{filtered}");
    let refused = support::run(&["diff", &before_input[1], &after_input[1], "--filter", "isa=avx"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--rows"), "{refused:?}");
}

/// The exact counts of a fixture, as they would be if a function went around its blocks that many times as often.
fn changed(truth: &Path, function: &str, times: f64, folder: &Path) -> PathBuf {
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string(truth).unwrap()).unwrap();
    let blocks = document["blocks"].as_array_mut().unwrap();
    let mut of_function = blocks.iter_mut().filter(|block| block["function"] == function).peekable();
    assert!(of_function.peek().is_some(), "{function}");
    for block in of_function {
        block["count"] = ((block["count"].as_f64().unwrap() * times).round() as u64).into();
    }
    let path = folder.join(format!("{function}.{times}.json"));
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

#[test]
fn changes_past_a_limit_fail() {
    let folder = TempDir::new().unwrap();
    let fixture = Fixture::bursts("compress");
    let (truth, [_, file, option, binary]) = (fixture.truth(), fixture.input());
    let largest: Value = serde_json::from_str(&stdout(&[
        "mix",
        truth.to_str().unwrap(),
        &option,
        &binary,
        "--rows",
        "function",
        "--format",
        "json",
    ]))
    .unwrap();
    let (hot, share) =
        (largest["rows"][0]["function"].as_str().unwrap(), largest["rows"][0]["share"].as_f64().unwrap());
    let more = changed(&truth, hot, 1.04, folder.path());
    let truth_path = truth.clone();
    let (truth, more) = (truth.to_str().unwrap(), more.to_str().unwrap());
    let diff = |before: &str, after: &str, limits: &[&str]| {
        let options = limits.iter().flat_map(|limit| ["--fail-if", limit]);
        let arguments: Vec<&str> =
            ["diff", before, after, &option, &binary, "--format", "json"].into_iter().chain(options).collect();
        let output = support::run(&arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null), errors)
    };
    let of_function = format!("instructions:{hot}>+3%");
    let (status, document, errors) = diff(truth, more, &["instructions>+10%", &of_function]);
    assert_eq!(status, Some(3), "{errors}");
    let limits = &document["limits"];
    assert_eq!((&limits[0]["broken"], &limits[1]["broken"]), (&false.into(), &true.into()), "{limits}");
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-4;
    assert!(near(&limits[0]["change"], 0.04 * share) && near(&limits[1]["change"], 0.04), "{limits} {share}");
    assert_eq!(limits[1]["change_error"], 0.0);
    assert!(errors.contains("1 of 2 limits of --fail-if broken"), "{errors}");
    assert_eq!(diff(more, truth, &["instructions>+0%", &of_function]).0, Some(0));
    assert_eq!(diff(more, truth, &["instructions<-0.01%"]).0, Some(3));
    // Another function has the same counts, whatever rounding does to its share.
    let other = largest["rows"].as_array().unwrap().iter().skip(1).map(|row| row["function"].as_str().unwrap());
    let others: Vec<String> =
        other.flat_map(|name| ['>', '<'].map(|sign| format!("instructions:{name}{sign}0%"))).collect();
    let (status, _, errors) = diff(truth, more, &others.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(status == Some(0) && !errors.contains("-0.00"), "{errors}");
    // From nothing to something is past all limits.
    let none = changed(&truth_path, hot, 0.0, folder.path());
    let (status, _, errors) = diff(none.to_str().unwrap(), truth, &[&format!("instructions:{hot}>+900%")]);
    assert!(status == Some(3) && errors.contains("were none before"), "{errors}");
    // A recording has chance: of the same program no limit is broken, and what it cannot tell is said.
    let share_of = format!("share:{hot}>+0.5%");
    let (status, document, errors) = diff(truth, &file, &[&share_of]);
    assert!(document["limits"][0]["change_error"].as_f64().unwrap() > 0.0, "{document}");
    assert_eq!(status, Some(0), "{errors}");
    let (status, _, errors) = diff(&file, &file, &["instructions>+2%"]);
    assert!(status == Some(1) && errors.contains("whether it took fewer instructions is not known"), "{errors}");
    let (status, _, errors) = diff(&file, &file, &[&of_function]);
    assert!(status == Some(1) && errors.contains(&format!("'share:{hot}' asks for its share")), "{errors}");
    // What is not there, and what is no limit.
    let (status, report, errors) = diff(truth, truth, &[&format!("share:{hot}x>+1%")]);
    assert!(status == Some(1) && errors.contains("did you mean") && errors.contains(hot), "{errors}");
    assert!(report["overlap"].is_object(), "the report is printed before what is wrong with a limit: {report}");
    let (status, _, errors) = diff(truth, truth, &["time>+2%"]);
    assert!(status == Some(2) && errors.contains("expected instructions>+2%"), "{errors}");
}
