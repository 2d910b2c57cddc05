//! `hbbp doctor` as a process.

use std::process::Command;

use serde_json::Value;

fn doctor(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hbbp")).arg("doctor").args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn words_fit_a_terminal() {
    let text = doctor(&[]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["CPU ", "PMU ", "Branch records ", "Branch tracing ", "hbbp record would use", "What would give more"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_has_its_fixed_shape() {
    let report: Value = serde_json::from_str(&doctor(&["--format", "json"])).unwrap();
    assert_eq!(report["schema"], "hbbp-doctor/1");
    assert!(report["cpu"]["vendor"].is_string() && report["pmu"].is_array(), "{report}");
    assert!(report["branch_records"]["available"].is_boolean());
    let tracing = &report["software_tracing"];
    assert!(tracing["available"].is_boolean() && tracing["running_processes"].is_boolean(), "{tracing}");
    assert!(tracing["agents"].is_boolean() && tracing["timers"].is_boolean(), "{tracing}");
    assert!(report["would_use"]["events"].is_array() && report["advice"].is_array());
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    assert!(cpuinfo.contains(report["cpu"]["vendor"].as_str().unwrap()));
}

#[test]
fn a_bug_report_has_the_version_and_all_that_doctor_says() {
    let report = doctor(&["--report"]);
    assert!(report.starts_with(&format!("`hbbp` {}, ", env!("CARGO_PKG_VERSION"))), "{report}");
    assert!(report.contains(&format!("\n\n```\n{}```\n", doctor(&[]))), "{report}");
}
