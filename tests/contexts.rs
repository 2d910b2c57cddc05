//! `hbbp export` of calling contexts: counts that are known by hand, sums that are those of a mix, and what other tools read.

#[path = "support/otlp.rs"]
mod otlp;
#[path = "support/report.rs"]
mod report;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perfdata::{BranchSampleType, Features};
use report::Page;
use serde_json::Value;
use support::{Fixture, run, stdout, stdout_of};
use synthetic::calls::{AROUND, CALLS, ONCE, START, TWICE};
use synthetic::{Burst, Recorder, assemble, burst_metadata};
use tempfile::TempDir;

/// What 100 times around is.
const FOLDED: &str = "\
[unknown callers];_start 300
[unknown callers];_start;once 400
[unknown callers];_start;twice 300
[unknown callers];_start;twice;once 400
";

/// A recording of a program, as `record` makes it.
fn recording(
    source: &str,
    start: fn(&Path) -> Recorder,
    features: &Features,
    record: impl FnOnce(&mut Recorder),
) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = assemble(folder.path(), "calls", source, &[])?;
    let mut recorder = start(&binary);
    record(&mut recorder);
    let file = folder.path().join("calls.data");
    std::fs::write(&file, recorder.finish(features)).unwrap();
    Some((folder, file))
}

/// A recording of 100 times around in one burst.
fn once_around(source: &str) -> Option<(TempDir, PathBuf)> {
    recording(source, Recorder::traced, &burst_metadata("instructions"), |recorder| {
        recorder.burst(&Burst { ip: START, branches: &AROUND, instructions: 14, period: 1400 });
    })
}

fn export(format: &str, file: &Path) -> String {
    stdout(&["export", "--format", format, file.to_str().unwrap()])
}

#[test]
fn hardware_stacks_show_calls() {
    // Seven streams of a stack weigh 100 / 7 each: all of it ran 100 times.
    let around = [&[(START + 10, START)], &AROUND[..]].concat();
    let made = recording(CALLS, Recorder::new, &Features::default(), |recorder| {
        (0..7).for_each(|_| recorder.stack(&around));
    });
    let Some((_folder, file)) = made else { return };
    assert_eq!(export("folded", &file), FOLDED);
}

#[test]
fn otlp_has_contexts_and_places() {
    let Some((folder, file)) = once_around(CALLS) else { return };
    let out = folder.path().join("calls.otlp");
    let write = |args: &[&str]| {
        let words = ["export", "--format", "otlp", "-o", out.to_str().unwrap()];
        assert_eq!(stdout(&[&words[..], args].concat()), "");
        otlp::profiles(&out)
    };
    let profiles = write(&[file.to_str().unwrap()]);
    assert_eq!(profiles.keys().collect::<Vec<_>>(), ["executions", "instructions", "instructions_by_address"]);
    let folded = |samples: &otlp::Samples| {
        let mut lines: Vec<String> = samples.iter().map(|(frames, .., count)| format!("{frames} {count}\n")).collect();
        lines.sort();
        lines.concat()
    };
    assert_eq!(folded(&profiles["instructions"]), FOLDED);
    let binary = folder.path().join("calls").to_str().unwrap().to_owned();
    let all = profiles.values().flatten();
    assert!(all.filter(|(frames, ..)| frames != "[unknown callers]").all(|(.., module, _)| *module == binary));
    let at = |address: u64| {
        let of = profiles["executions"].iter().filter(|(_, at, ..)| *at == address);
        of.map(|(frames, .., count)| (frames.clone(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(at(START), [("_start".to_owned(), 100)]);
    assert_eq!(at(ONCE), [("once".to_owned(), 200)]);
    assert_eq!(at(TWICE), [("twice".to_owned(), 100)]);
    // A flow does not have callers: its instructions are by place.
    let flow = folder.path().join("calls.flow");
    stdout(&["merge", "-o", flow.to_str().unwrap(), file.to_str().unwrap()]);
    let of_flow = write(&[flow.to_str().unwrap()]);
    assert_eq!(of_flow["executions"], profiles["executions"]);
    let sum = |samples: &otlp::Samples| samples.iter().map(|(.., count)| count).sum::<i64>();
    assert_eq!((sum(&of_flow["instructions"]), sum(&profiles["instructions"])), (1400, 1400));
    assert!(of_flow["instructions"].iter().all(|(frames, address, ..)| !frames.contains("unknown") && *address > 0));
}

#[test]
fn bursts_show_calls_and_the_callers_they_return_to() {
    let Some((_folder, file)) = once_around(CALLS) else { return };
    assert_eq!(export("folded", &file), FOLDED);
    let made = recording(CALLS, Recorder::traced, &burst_metadata("instructions"), |recorder| {
        recorder.burst(&Burst { ip: START, branches: &AROUND, instructions: 14, period: 1400 });
        recorder.burst(&Burst { ip: ONCE, branches: &AROUND[2..4], instructions: 5, period: 500 });
        // Who called this one is not known.
        recorder.burst(&Burst { ip: TWICE, branches: &AROUND[1..2], instructions: 2, period: 200 });
    });
    let Some((_folder, file)) = made else { return };
    let expected = "\
[unknown callers];_start 300
[unknown callers];_start;once 400
[unknown callers];_start;twice 400
[unknown callers];_start;twice;once 800
[unknown callers];twice 200
";
    assert_eq!(export("folded", &file), expected);
    let output = run(&["export", "--format", "folded", file.to_str().unwrap()]);
    let told = String::from_utf8(output.stderr).unwrap();
    // 1600 of 2100: `_start` has no caller, either.
    assert!(told.contains("the caller is known for 76.19 % of the instructions"), "{told}");
}

/// What each function executed, by the frame at the end of its stacks; how many stacks it has.
fn by_function(folded: &str) -> BTreeMap<String, (f64, f64)> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let function = stack.rsplit(';').next().unwrap();
        let function = if function.starts_with("[unread code of ") { "[unreadable]" } else { function };
        let sum = sums.entry(function.to_owned()).or_default();
        sum.0 += count.parse::<f64>().unwrap();
        sum.1 += 1.0;
    }
    sums
}

/// A name as formats of contexts have it.
fn cut(name: &str) -> String {
    let length = name.chars().count();
    if length <= 256 {
        return name.to_owned();
    }
    name.chars().take(191).chain(['…']).chain(name.chars().skip(length - 64)).collect()
}

/// Compares the sums of the functions with those of the mix.
fn compare_with_mix(name: &str, folded: &str, mix: &str) {
    let sums = by_function(folded);
    let mix: Value = serde_json::from_str(mix).unwrap();
    let rows: Vec<(&str, f64)> = mix["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["function"].as_str().unwrap(), row["count"].as_f64().unwrap()))
        .filter(|(_, count)| *count > 0.0)
        .collect();
    assert!(!rows.is_empty());
    assert_eq!(sums.len(), rows.len(), "{name}: {sums:?}, {rows:?}");
    for (function, count) in rows {
        let (sum, stacks) = sums[&cut(function)];
        // Each stack is rounded, those below one half up to 1.
        assert!((sum - count).abs() <= stacks, "{name}: {function}: {sum} in {stacks} stacks, and {count} in the mix");
    }
}

#[test]
fn what_a_function_executed_is_what_the_mix_says() {
    let bursts = testing::BURSTS.into_iter().map(Fixture::bursts);
    let simulated = testing::SIMULATED.into_iter().map(Fixture::simulated);
    for fixture in bursts.chain(simulated).chain(Fixture::all_stacks()) {
        let folded = stdout_of(&["export", "--format", "folded", "--no-inline"], &fixture);
        compare_with_mix(
            fixture.name,
            &folded,
            &stdout_of(&["mix", "--rows", "function", "--format", "json"], &fixture),
        );
        assert!(folded.lines().all(|line| line.starts_with("[unknown callers];")), "{folded}");
    }
}

/// Frames of what was inlined have what a mix says of the functions of the source, and take it from those that it was inlined into.
#[test]
fn inlined_functions_are_frames_after_those_they_were_inlined_into() {
    let fixture = Fixture::bursts("objects");
    let folded = stdout_of(&["export", "--format", "folded"], &fixture);
    let sums = by_function(&folded);
    let filter =
        ["--rows", "source-function", "--filter", "inlined-at!=none,[no source],[unreadable]", "--format", "json"];
    let mix: Value = serde_json::from_str(&stdout_of(&[&["mix"], &filter[..]].concat(), &fixture)).unwrap();
    let (all, mut compared) = (mix["instructions"].as_f64().unwrap(), 0);
    for row in mix["rows"].as_array().unwrap() {
        let (name, count) = (row["source-function"].as_str().unwrap(), row["count"].as_f64().unwrap());
        // What is less than a millionth is not divided.
        let Some(&(sum, stacks)) = sums.get(&cut(&format!("{name} (inlined)"))) else {
            assert!(count < 1e-4 * all, "{name}: {count} of {all}");
            continue;
        };
        assert!((sum - count).abs() <= stacks + 1e-4 * all, "{name}: {sum} in {stacks} stacks, {count} in the mix");
        compared += 1;
    }
    assert!(compared > 3, "{mix}");
    // All together it is the same.
    let without = by_function(&stdout_of(&["export", "--format", "folded", "--no-inline"], &fixture));
    let total = |sums: &BTreeMap<String, (f64, f64)>| {
        sums.values().fold((0.0, 0.0), |(sum, stacks), (more, of)| (sum + more, stacks + of))
    };
    let ((one, stacks), (other, fewer)) = (total(&sums), total(&without));
    assert!((one - other).abs() <= stacks + fewer, "{one} and {other}");
    assert!(without.keys().all(|name| !name.ends_with("(inlined)")), "{without:?}");
    let refused = run(&["export", "--format", "bolt", "--no-inline", "x.data"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--no-inline is for"), "{refused:?}");
}

/// Bursts of a clock are weighed by the code that they start in.
#[test]
fn bursts_of_a_clock_weigh_what_they_weigh_in_the_mix() {
    let made = recording(CALLS, Recorder::traced, &burst_metadata("nanoseconds"), |recorder| {
        for round in 0..20 {
            recorder.burst(&Burst { ip: START, branches: &AROUND, instructions: 14, period: 10_000 });
            recorder.burst(&Burst { ip: ONCE, branches: &AROUND[2..4], instructions: 5, period: 9_000 + round });
            recorder.sample([START, TWICE, ONCE, ONCE][round as usize % 4]);
        }
    });
    let Some((_folder, file)) = made else { return };
    let mix = stdout(&["mix", "--rows", "function", "--format", "json", file.to_str().unwrap()]);
    let folded = export("folded", &file);
    compare_with_mix("clock", &folded, &mix);
    assert_eq!(folded.lines().count(), 4, "{folded}");
}

/// Real programs call what their source says.
#[test]
fn callers_are_those_of_the_source() {
    let parse = stdout_of(&["export", "--format", "folded"], &Fixture::bursts("parse"));
    let known = |stack: &str| parse.lines().any(|line| line.contains(stack));
    assert!(known(";main;write_expression;write_expression;"), "{parse}");
    assert!(known(";sprintf;vsnprintf;vfprintf;printf_core "), "{parse}");
    for (callee, callers) in [
        ("vfprintf", &["vsnprintf", "[unknown callers]"][..]),
        ("vsnprintf", &["sprintf", "[unknown callers]"]),
        ("write_expression", &["main", "write_expression", "[unknown callers]"]),
    ] {
        for line in parse.lines() {
            let frames: Vec<&str> = line.rsplit_once(' ').unwrap().0.split(';').collect();
            for pair in frames.windows(2).filter(|pair| pair[1] == callee) {
                assert!(callers.contains(&pair[0]), "{line}");
            }
        }
    }
}

const STRANGE: &str = "\"a;b <&> 'c' d\"";

/// The program with a name that means something to every format, and a line break in it.
fn strange_names() -> Option<(TempDir, PathBuf)> {
    let made = once_around(&CALLS.replace("once", STRANGE))?;
    let binary = made.0.path().join("calls");
    let mut bytes = std::fs::read(&binary).unwrap();
    let name = b"a;b <&> 'c' d";
    let at = bytes.windows(name.len()).rposition(|window| window == name).expect("the name is in the file");
    bytes[at + name.len() - 2] = b'\n';
    std::fs::write(&binary, bytes).unwrap();
    Some(made)
}

#[test]
fn names_break_no_format() {
    let Some((_folder, file)) = strange_names() else { return };
    let folded = export("folded", &file);
    assert_eq!(folded.lines().count(), 4, "{folded}");
    assert!(folded.contains("\n[unknown callers];_start;twice;a:b <&> 'c'\\nd"), "{folded}");
    let svg = export("flamegraph", &file);
    assert!(svg.contains("a;b &lt;&amp;&gt; &apos;c&apos;\\nd") && !svg.contains("<&>"), "{svg}");
    for format in ["speedscope", "firefox"] {
        let text = export(format, &file);
        assert!(serde_json::from_str::<Value>(&text).is_ok() && text.contains("a;b <&> 'c'"), "{text}");
    }
}

/// Names are written for each context: long ones would make files without end. Members of one class differ only after a long beginning.
#[test]
fn long_names_are_cut_inside() {
    let class = "n".repeat(10_000);
    let source = CALLS.replace("once", &format!("{class}_once")).replace("twice", &format!("{class}_twice"));
    let Some((_folder, file)) = once_around(&source) else { return };
    for format in ["folded", "flamegraph", "speedscope", "firefox"] {
        let text = export(format, &file);
        for end in ["_once", "_twice"] {
            let kept = format!("{}…{}{end}", "n".repeat(191), "n".repeat(64 - end.len()));
            assert!(text.contains(&kept), "{format}: {end}");
        }
        assert!(!text.contains(&"n".repeat(192)), "{format}");
    }
}

#[test]
fn a_flame_graph_has_every_frame_with_its_share() {
    let Some((_folder, file)) = once_around(CALLS) else { return };
    let svg = export("flamegraph", &file);
    let titles: Vec<&str> = svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap()).collect();
    let frames: Vec<String> = titles
        .iter()
        .map(|title| {
            let (name, numbers) = title.rsplit_once(": ").unwrap();
            format!("{} {}", name.split(" (").next().unwrap(), numbers)
        })
        .collect();
    let expected = [
        "[unknown callers] 1,400 instructions, 100.00 %",
        "_start 1,400 instructions, 100.00 %",
        "once 400 instructions, 28.57 %",
        "once 400 instructions, 28.57 %",
        "twice 700 instructions, 50.00 %",
    ];
    let mut sorted = frames.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    // `_start` lies on the frame of its callers and begins where it does; `once` begins after what `_start` executes itself.
    let place = |name: &str| {
        let line = svg.lines().find(|line| line.contains(&format!("<title>{name}"))).unwrap();
        let number = |field: &str| -> f64 {
            line.split(&format!(" {field}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        (number("x"), number("y"), number("width"))
    };
    let (x, y, width) = place("_start");
    assert_eq!((x, width), (0.0, 1200.0));
    assert!(y < place("[unknown callers]").1);
    assert!(svg.trim_end().ends_with("</svg>"));
}

#[test]
fn speedscope_gets_a_sample_for_each_context() {
    let Some((folder, file)) = once_around(CALLS) else { return };
    let profile: Value = serde_json::from_str(&export("speedscope", &file)).unwrap();
    assert_eq!(profile["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames: Vec<&str> =
        profile["shared"]["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    let of = &profile["profiles"][0];
    assert_eq!((&of["type"], &of["unit"], &of["name"]), (&"sampled".into(), &"none".into(), &"instructions".into()));
    assert_eq!((of["startValue"].as_u64(), of["endValue"].as_u64()), (Some(0), Some(1400)));
    let samples = of["samples"].as_array().unwrap().iter().zip(of["weights"].as_array().unwrap());
    let lines: Vec<String> = samples
        .map(|(sample, weight)| {
            let stack = sample.as_array().unwrap().iter().map(|frame| frames[frame.as_u64().unwrap() as usize]);
            format!("{} {weight}\n", stack.collect::<Vec<_>>().join(";"))
        })
        .collect();
    assert_eq!(lines.concat(), FOLDED);
    assert_eq!(profile["shared"]["frames"][1]["file"], folder.path().join("calls").to_str().unwrap());
}

/// The stacks of a profile for the Firefox Profiler, folded.
fn folded_of_firefox(profile: &Value) -> String {
    let thread = &profile["threads"][0];
    let strings = profile["shared"]["stringArray"].as_array().or(thread["stringArray"].as_array()).unwrap();
    let at = |table: &str, column: &str, index: &Value| thread[table][column][index.as_u64().unwrap() as usize].clone();
    let name = |stack: &Value| {
        let function = at("frameTable", "func", &at("stackTable", "frame", stack));
        strings[at("funcTable", "name", &function).as_u64().unwrap() as usize].as_str().unwrap().to_owned()
    };
    let samples = &thread["samples"];
    let weights = samples["weight"].as_array().unwrap();
    let lines = samples["stack"].as_array().unwrap().iter().zip(weights).map(|(stack, weight)| {
        let prefix = |stack: &Value| Some(at("stackTable", "prefix", stack)).filter(|prefix| !prefix.is_null());
        let mut names: Vec<String> =
            std::iter::successors(Some(stack.clone()), prefix).map(|stack| name(&stack)).collect();
        names.reverse();
        format!("{} {weight}\n", names.join(";"))
    });
    lines.collect()
}

#[test]
fn the_firefox_profiler_gets_a_sample_for_each_context() {
    let Some((_folder, file)) = once_around(CALLS) else { return };
    let profile: Value = serde_json::from_str(&export("firefox", &file)).unwrap();
    assert_eq!(folded_of_firefox(&profile), FOLDED);
    assert_eq!(profile["threads"][0]["name"], "instructions");
    assert_eq!(profile["threads"][0]["samples"]["weightType"], "samples");
    assert_eq!(profile["meta"]["symbolicated"], true);
    let categories: Vec<&str> =
        profile["meta"]["categories"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert!(categories.contains(&"Programs and libraries"), "{categories:?}");
}

/// Its weights have 32 bits.
#[test]
fn large_weights_for_firefox_are_divided() {
    let made = recording(CALLS, Recorder::traced, &burst_metadata("instructions"), |recorder| {
        recorder.burst(&Burst { ip: START, branches: &AROUND, instructions: 14, period: 1_400_000_000_000 });
    });
    let Some((_folder, file)) = made else { return };
    let output = run(&["export", "--format", "firefox", file.to_str().unwrap()]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("weights are in units of 1000 instructions"), "{told}");
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(profile["threads"][0]["name"], "instructions / 1000");
    // As many thousands as there are billions.
    assert_eq!(folded_of_firefox(&profile), FOLDED.replace("00\n", "00000000\n"));
}

/// Callers at samples, by periods.
#[test]
fn lbr_call_stacks_are_contexts() {
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    let made = recording(CALLS, Recorder::call_stacks, &Features::default(), |recorder| {
        recorder.sample(START + 5);
        (0..3).for_each(|_| recorder.sample_with_stack(ONCE + 1, &[(START, TWICE), (TWICE + 1, ONCE)]));
        recorder.sample_with_stack(ONCE + 2, &[(START + 5, ONCE)]);
        // The hardware knows no more callers.
        recorder.sample_with_stack(TWICE, &[]);
        // In the kernel, which `once` entered.
        recorder.sample_with_stack(KERNEL, &[(START, TWICE), (TWICE + 1, ONCE)]);
    });
    let Some((_folder, file)) = made else { return };
    let expected = "\
[unknown callers];_start 1000
[unknown callers];_start;once 1000
[unknown callers];_start;twice;once 3000
[unknown callers];_start;twice;once;[unread code of [kernel.kallsyms]] 1000
[unknown callers];twice 1000
";
    let output = run(&["export", "--format", "folded", file.to_str().unwrap()]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && told.contains("LBR call stacks of cycles"), "{told}");
    assert!(told.contains("71.43 % of them have a caller"), "{told}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let firefox: Value = serde_json::from_str(&export("firefox", &file)).unwrap();
    assert_eq!(firefox["threads"][0]["name"], "cycles");
    assert_eq!(folded_of_firefox(&firefox), expected);
    let speedscope: Value = serde_json::from_str(&export("speedscope", &file)).unwrap();
    assert_eq!(speedscope["profiles"][0]["name"], "cycles");
    assert!(export("flamegraph", &file).contains("4,000 cycles, 57.14 %"));
    // The page draws them, too.
    let page = Page::of(&[file.to_str().unwrap()]);
    assert_eq!(page.data["contexts"]["unit"], "cycles");
    assert_eq!(page.data["contexts"]["executed"][0], 7000, "{}", page.data["contexts"]);
    // No call is counted by them.
    assert!(!export("callgrind", &file).contains("calls="));
}

#[test]
fn what_has_no_branch_records_is_refused_with_what_to_do() {
    let refused = |file: &Path, more: &[&str], expected: &str| {
        let output = run(&[&["export", "--format", "folded"], more, &[file.to_str().unwrap()]].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty() && told.contains(expected), "{told}");
    };
    let made = recording(CALLS, Recorder::new, &Features::default(), |recorder| recorder.sample(START));
    let Some((folder, file)) = made else { return };
    refused(&file, &[], "no stacks of taken branches, which would show who called whom: record with `hbbp record`");
    let merged = folder.path().join("merged");
    stdout(&["merge", "-o", merged.to_str().unwrap(), file.to_str().unwrap()]);
    refused(&merged, &[], "made from the branch records of a recording");
    let call_stacks =
        |binary: &Path| Recorder::traced_with(binary, BranchSampleType::CALL_STACK | BranchSampleType::USER);
    let made = recording(CALLS, call_stacks, &Features::default(), |recorder| recorder.sample(START));
    let Some((_folder, file)) = made else { return };
    refused(&file, &[], "its LBR call stacks are of events whose samples count nothing here");
    let output = run(&["export", "--format", "folded", "--truth", merged.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("exact counts do not say who called whom"));
}
