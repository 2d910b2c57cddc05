//! Tools that want branch records open what was traced in software.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bursts::Traced;
use crate::{Place, programs, text};

/// Runs a tool that must succeed; what it printed, errors included. `None`, loudly, when it is not there.
fn must_succeed(tool: &str, args: &[&str]) -> Option<(String, String)> {
    let output = match Command::new(tool).args(args).envs(testing::LITTLE_LOG).output() {
        Ok(output) => output,
        Err(error) => {
            testing::skip!(Tool, "{tool}: {error}");
            return None;
        }
    };
    let [out, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{tool} {args:?}: {out}{errors}");
    Some((out, errors))
}

fn prints_the_same(traced: &Traced, script: &str) {
    let lines: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let pieces: Vec<_> = traced.bursts.iter().flat_map(|burst| &burst.pieces).collect();
    assert_eq!(lines.len(), pieces.len());
    for (line, piece) in lines.iter().zip(pieces) {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some(format!("{:x}", piece.ip).as_str()));
        let entries: Vec<(u64, u64)> = words
            .map(|entry| {
                let mut numbers =
                    entry.split('/').map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
                (numbers.next().flatten().unwrap(), numbers.next().flatten().unwrap())
            })
            .collect();
        let newest_first: Vec<(u64, u64)> = piece.branches.iter().rev().copied().collect();
        assert_eq!(entries, newest_first);
    }
}

/// A profile names these functions.
fn names_hot_functions(profile: &Path) {
    // autofdo writes any bytes for the name of a function that was inlined from a header.
    let text = String::from_utf8_lossy(&fs::read(profile).unwrap()).into_owned();
    for function in ["hot_loop", "hot_calls", "leaf", "hot_indirect"] {
        assert!(text.contains(function), "{function} is not in {}: {text}", profile.display());
    }
}

/// `llvm-profgen` takes a sample without a stack for a call stack if none with a stack came before.
fn llvm_profiles(place: &Place, program: &Path) {
    let (data, profile) = (place.recording(), place.path("profile"));
    let [of, to] = [format!("--binary={}", program.display()), format!("--output={}", profile.display())];
    let args = ["--format=text", &format!("--perfdata={}", data.display()), &of, &to];
    if must_succeed("llvm-profgen-19", &args).is_some() {
        names_hot_functions(&profile);
        fs::remove_file(&profile).unwrap();
    }
    // As its manual says how a perf script is made.
    let script = ["script", "--show-mmap-events", "-F", "ip,brstack", "-i", text(&data)];
    if let Some((script, _)) = must_succeed("perf", &script) {
        let file = place.path("script");
        fs::write(&file, script).unwrap();
        let args = ["--format=text", &format!("--perfscript={}", file.display()), &of, &to];
        if must_succeed("llvm-profgen-19", &args).is_some() {
            names_hot_functions(&profile);
            fs::remove_file(&profile).unwrap();
        }
    }
}

fn other_profiles(place: &Place, program: &Path) {
    let (data, profile) = (place.recording(), place.path("profile"));
    // The link in /usr/bin behaves as llvm-bolt.
    let args = ["-p", text(&data), "-o", text(&profile), text(program)];
    if must_succeed("/usr/lib/llvm-19/bin/perf2bolt", &args).is_some() {
        names_hot_functions(&profile);
        fs::remove_file(&profile).unwrap();
    }
    let from = format!("--profile={}", data.display());
    let of = format!("--binary={}", program.display());
    let args = ["--format=text", &from, &of, &format!("--out={}", profile.display())];
    if must_succeed("create_llvm_prof", &args).is_some() {
        names_hot_functions(&profile);
    }
}

#[test]
fn branches_traced_in_software_are_a_profile_for_compilers() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    for options in [&["--burst", "10000"][..], &["--depth", "10000"], &["--depth", "10000", "--ebs-event", "none"]] {
        let traced = place.trace(&[&["--overhead", "30"], options].concat(), &[text(&hot), "200"]);
        assert!(traced.bursts.len() >= 5, "{:#}", traced.tracer());
        let split = traced.bursts.iter().any(|burst| burst.pieces.len() > 1);
        assert_eq!(split, options[0] == "--depth", "bursts of several samples");
        let event = traced.samples.keys().find(|event| event.starts_with("burst")).unwrap();
        let data = place.recording();
        let script = ["script", "-F", "event,ip,brstack", "-i", text(&data)];
        if let Some((script, _)) = must_succeed("perf", &script) {
            let of_bursts = script.lines().filter_map(|line| line.trim().strip_prefix(&format!("{event}:")));
            prints_the_same(&traced, &of_bursts.collect::<Vec<_>>().join("\n"));
        }
        if let Some((report, errors)) = must_succeed("perf", &["report", "--stdio", "-i", text(&data)]) {
            assert!(report.contains(event) && report.contains("hot_"), "{report}");
            assert_eq!(errors.trim(), "");
        }
        other_profiles(&place, &hot);
        if options.contains(&"none") {
            llvm_profiles(&place, &hot);
        }
    }
}
