//! Counts from traced branches.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Place, errors, programs, text};

#[test]
fn a_known_mix_is_found() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let Some(known) = place.program("known", programs::KNOWN) else { return };
    let args = ["mix", "--rows", "function,mnemonic", "--format", "json", "--", text(&known), "1500"];
    let mix: Value = place.json(&args);
    assert_eq!(mix["source"], "lbr");
    let lbr = &mix["head"]["lbr_source"];
    assert_eq!(lbr["provenance"], "software");
    assert!(lbr["broken"].as_object().unwrap().values().all(|count| count == 0), "{lbr}");
    let counts: BTreeMap<&str, f64> = mix["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["function"] == "known")
        .map(|row| (row["mnemonic"].as_str().unwrap(), row["count"].as_f64().unwrap()))
        .collect();
    let total: f64 = counts.values().sum();
    assert!(total > 0.9 * mix["instructions"].as_f64().unwrap() * (1.0 - unread(&mix)), "{counts:?} {mix}");
    for (mnemonic, expected) in [("mov", 1.0), ("add", 10.0), ("lea", 10.0), ("dec", 11.0), ("jne", 11.0)] {
        let share = counts[mnemonic] / total;
        assert!((share - expected / 43.0).abs() < 0.01, "{mnemonic} has {share}: {counts:?}");
    }
}

#[test]
fn slow_code_does_not_count_for_more() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let Some(speeds) = place.program("speeds", programs::SPEEDS) else { return };
    let recording = place.recording();
    let args = ["record", "--overhead", "10", "-o", text(&recording), "--", text(&speeds), "3000"];
    let output = place.hbbp(&args).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let mix: Value = place.json(&["mix", "-i", text(&recording), "--rows", "function", "--format", "json"]);
    let count = |name: &str| {
        let row = mix["rows"].as_array().unwrap().iter().find(|row| row["function"] == name);
        row.map_or(0.0, |row| row["count"].as_f64().unwrap())
    };
    // Millions of instructions. Of the time each has about as much as the others.
    let known = [("chained", 6.0), ("independent", 30.0), ("coin", 6.0), ("far", 1.5)];
    let (all, counted) = known.iter().fold((0.0, 0.0), |sum, (name, known)| (sum.0 + known, sum.1 + count(name)));
    let ratios = known.map(|(name, known)| (name, count(name) / counted / (known / all)));
    for (_, ratio) in ratios {
        assert!((0.5..2.0).contains(&ratio), "{ratios:?}");
    }
}

/// Share of the instructions in code that could not be read: the kernel's.
fn unread(mix: &Value) -> f64 {
    let of_row = |row: &Value| row["share"].as_f64().unwrap();
    mix["rows"].as_array().unwrap().iter().filter(|row| row["mnemonic"] == "[unreadable]").map(of_row).sum()
}

#[test]
fn a_report_says_that_its_counts_are_from_bursts() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let output =
        place.hbbp(&["mix", "-v", "--top", "3", "--start-credit", "50", "--", text(&hot), "600"]).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let report = String::from_utf8_lossy(&output.stdout);
    let tracer = format!("# tracer   {}, overhead ", place.default_tracer());
    for part in ["# ebs      task-clock", "traced in software", "# bursts   ", &tracer, "# counts   "] {
        assert!(report.contains(part), "{part:?}: {report}");
    }
    let percent = report.split("overhead ").nth(1).unwrap().split(' ').next().unwrap();
    let percent: f64 = percent.parse().unwrap();
    assert!(percent > 0.0 && percent < 20.0, "in per cent: {report}");
}
