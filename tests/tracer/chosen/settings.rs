//! Options of `hbbp record` that bear on tracing, and what it says.

use std::process::Command;

use crate::bursts::Traced;
use crate::{Place, errors, programs, text};

#[test]
fn bursts_are_as_long_as_asked_for() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    for depth in [1, 16, 300] {
        let traced = place.trace(&["--overhead", "30", "--depth", &depth.to_string()], &[text(&hot), "150"]);
        assert_eq!(traced.tracer()["depth"], depth);
        let depths: Vec<usize> = traced.bursts.iter().map(|burst| burst.depth()).collect();
        assert!(!depths.is_empty() && depths.iter().all(|&found| found <= depth), "{depth}: {depths:?}");
        assert_eq!(depths.iter().max(), Some(&depth), "{depths:?}");
    }
    for size in [1, 100, 50_000] {
        let traced = place.trace(&["--overhead", "30", "--burst", &size.to_string()], &[text(&hot), "150"]);
        assert_eq!(traced.tracer()["burst_instructions"], size);
        let sizes: Vec<u64> = traced.bursts.iter().map(|burst| burst.instructions()).collect();
        assert!(!sizes.is_empty() && sizes.iter().all(|&found| found <= size), "{size}: {sizes:?}");
        assert_eq!(sizes.iter().max(), Some(&size), "{sizes:?}");
    }
    let output = place.record(&["--tracer", "breakpoint", "--overhead", "50", "--", text(&hot), "300"]);
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert_eq!((&traced.tracer()["kind"], &traced.tracer()["depth"]), (&"breakpoint".into(), &16.into()));
    assert!(traced.bursts.iter().any(|burst| burst.depth() == 16), "{:#}", traced.tracer());
    assert!(traced.bursts.iter().all(|burst| burst.depth() <= 16));
    assert!(traced.number("/breakpoints") > 16, "{:#}", traced.tracer());
}

#[test]
fn with_other_events_beside_and_none() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let record = |options: &[&str]| {
        let output = place.record(&[&["--overhead", "20"], options, &["--", text(&hot), "200"]].concat());
        assert!(output.status.success(), "{options:?}: {}", errors(&output));
        (Traced::read(&place.recording()), errors(&output))
    };
    let others = |traced: &Traced| -> u64 {
        traced.samples.iter().filter(|(event, _)| !event.starts_with("burst")).map(|(_, samples)| samples).sum()
    };
    for options in [&[][..], &["--ebs-event", "cpu-clock:u"], &["--ebs-event", "task-clock", "-F", "500"], &["-u"]] {
        let (traced, _) = record(options);
        assert!(!traced.bursts.is_empty() && others(&traced) > 0, "{options:?}: {:?}", traced.samples);
    }
    let (traced, _) = record(&["--ebs-event", "none"]);
    assert!(!traced.bursts.is_empty() && others(&traced) == 0, "{:?}", traced.samples);
    assert!(!traced.mappings.is_empty(), "without event samples, too");
    assert_eq!(place.json(&["mix", "--format", "json"])["source"], "lbr");
    let (traced, _) = record(&["--lbr-event", "none", "--tracer", "lookahead"]);
    assert!(!traced.bursts.is_empty());
    for options in [&["--tracer", "none"][..], &["--lbr-event", "none"], &["--tracer", "none", "-F", "500"]] {
        let (traced, said) = record(options);
        assert!(traced.bursts.is_empty() && others(&traced) > 0, "{options:?}: {:?}", traced.samples);
        assert!(traced.tracer().is_null() && !said.contains("traced"), "{options:?}: {said}");
    }
}

#[test]
fn of_the_whole_machine_branches_are_traced_if_asked_for() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let output = place.record(&["-a", "--", "sleep", "0.2"]);
    if errors(&output).contains("recording all processes needs") {
        testing::skip!(Privileges, "{}", errors(&output));
        return;
    }
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("--tracer lookahead traces branches of everything"), "{}", errors(&output));
    assert!(Traced::read(&place.recording()).bursts.is_empty());

    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let mut both = [0; 2].map(|_| Command::new(&hot).arg("60000").spawn().unwrap());
    let output = place.record(&["-a", "--tracer", "lookahead", "--overhead", "20", "--", "sleep", "2"]);
    let traced = Traced::read(&place.recording());
    for program in &mut both {
        assert_eq!(program.try_wait().unwrap(), None, "it goes on");
        assert!(traced.bursts.iter().filter(|burst| burst.pid == program.id()).count() > 5, "{}", errors(&output));
        program.kill().unwrap();
        program.wait().unwrap();
    }
    // The command is stopped like all others, and waited for by the recorder.
    let ends = format!("{} 1000; exit 7", text(&hot));
    let output = place.record(&["-a", "--tracer", "lookahead", "--overhead", "50", "--", "sh", "-c", &ends]);
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(traced.bursts_in("hot").count() > 5, "{}", errors(&output));
    let output = place.record(&["-a", "--tracer", "lookahead", "--overhead", "50", "--", text(&hot), "1000"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let output = place.record(&["-a", "--tracer", "breakpoint", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("--tracer breakpoint cannot follow everything"), "{}", errors(&output));
}

#[test]
fn wrong_values_are_wrong_usage() {
    let Some(place) = Place::to_trace() else { return };
    for options in [
        &["--overhead", "0"][..],
        &["--overhead=-1"],
        &["--overhead", "nan"],
        &["--overhead", "inf"],
        &["--overhead", "much"],
        &["--burst", "0"],
        &["--burst=-5"],
        &["--depth", "0"],
        &["--depth", "16", "--burst", "100"],
        &["--tracer", "magic"],
        &["-a", "--tracer", "agent"],
        &["-a", "--tracer", "lookahead", "-C", "0"],
    ] {
        let output = place.record(&[options, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", errors(&output));
        assert!(!place.recording().exists(), "{options:?}");
    }
}

#[test]
fn what_was_traced_is_said() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let output = place.record(&["-v", "--", text(&hot), "400"]);
    let said = errors(&output);
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part:?}: {said}"));
    let way = match place.default_tracer().as_str() {
        "agent" => "branches traced in software by agents inside the program: ",
        _ => "branches traced in software by looking ahead: ",
    };
    let in_order = [
        "branches are traced in software, at most 1 % of CPU time and up to 200",
        "samples in ",
        way,
        "of CPU time (1 % allowed and up to 200 ms at the",
        "t/(1-s) = ",
        "bursts ended: ",
    ];
    assert!(in_order.map(at).is_sorted(), "{said}");
    let after = said.lines().skip_while(|line| !line.contains("traced in software by"));
    assert!(after.clone().count() >= 4 && after.clone().all(|line| line.chars().count() <= 80), "{said}");
    assert!(!said.contains("lost") && !said.contains("wrong"), "only if there are any: {said}");
    let brief = errors(&place.record(&["--", text(&hot), "100"]));
    assert!(brief.contains(way) && !brief.contains("t/(1-s)") && !brief.contains("bursts ended"), "{brief}");
    let quiet = place.record(&["-q", "--", text(&hot), "100"]);
    assert_eq!(errors(&quiet), "");
    let explicit = place.record(&["--tracer", "lookahead", "--", text(&hot), "100"]);
    assert!(!errors(&explicit).contains("branches are traced"), "it was asked for: {}", errors(&explicit));
}
