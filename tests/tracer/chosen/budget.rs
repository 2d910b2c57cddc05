//! What tracing costs, by its own account, and what it notes of itself.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::attaching::tasks;
use crate::bursts::Traced;
use crate::{Place, errors, programs, text, wait_for};

#[test]
fn the_budget_is_kept_and_bursts_come_with_it() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let mut bursts_per_second = Vec::new();
    // To start takes a third of what 1 % of six seconds is on a slow machine, and more than half with an agent, beside other tests.
    for (allowed, seconds) in [(1.0, 15), (5.0, 6)] {
        let (work, least) = ((seconds * 1000).to_string(), seconds * 1_000_000_000 / 60 * 59);
        let begun = Instant::now();
        let traced = place.trace(&["--overhead", &allowed.to_string(), "--start-credit", "0"], &[text(&hot), &work]);
        let elapsed = begun.elapsed().as_nanos() as u64;
        let overhead = traced.tracer()["overhead"].as_f64().unwrap();
        assert!(overhead > 0.0 && overhead <= allowed * 1.3, "{allowed} %: {:#}", traced.tracer());
        assert_eq!(traced.tracer()["overhead_allowed"], allowed);
        let application = traced.number("/time/application_ns");
        // One thread's. The clocks of events count what a hypervisor gave to others, too, which CPU time leaves out. What agents take
        // inside is not the program's.
        let inside = ["stops", "lookahead", "decoding"].map(|part| traced.number(&format!("/time/{part}_ns")));
        let inside = if super::tracer() == "agent" { inside.iter().sum() } else { 0 };
        let all = application + inside;
        assert!((least..elapsed).contains(&all), "{seconds} s of CPU time in {elapsed} ns: {application} + {inside}");
        let parts = ["stops", "state", "lookahead", "decoding", "breakpoints", "other", "samples"];
        let spent: u64 = parts.iter().map(|part| traced.number(&format!("/time/{part}_ns"))).sum();
        assert!((spent as f64 / application as f64 * 100.0 - overhead).abs() < 0.01, "{:#}", traced.tracer());
        bursts_per_second.push(traced.number("/bursts") as f64 / seconds as f64);
    }
    let ratio = bursts_per_second[1] / bursts_per_second[0];
    // Less than five where the machine is busy: then the few bursts of the small budget cost more each.
    assert!(ratio > 2.0, "five times the budget: {bursts_per_second:?}");
}

/// By the tracer's own account of CPU time. That depends on chance where a hypervisor lends CPUs out: opening an event of a running thread waits for the
/// thread's CPU, and waiting is CPU time. A budget that is not kept is exceeded every time.
#[test]
fn the_first_seconds_of_a_program_of_many_threads_keep_the_budget() {
    let Some(place) = Place::to_trace() else { return };
    let Some(many) = place.program("many", programs::MANY) else { return };
    // As a process, which events of CPUs may record, and as threads, which have clocks of their own.
    for option in ["-p", "-t"] {
        let over = (0..5).map_while(|_| first_seconds(&place, &many, option).err());
        let over: Vec<String> = over.collect();
        assert!(over.len() < 5, "{option}: {}", over.join("\n"));
    }
}

/// Records the first seconds of a program that runs already. The error says by how much they cost more than they may.
fn first_seconds(place: &Place, many: &Path, option: &str) -> Result<(), String> {
    const ALLOWED: f64 = 2.0;
    let mut target = Command::new(many).arg("40").spawn().unwrap();
    wait_for("its threads", || tasks(target.id()).len() == 31);
    let allowed = ALLOWED.to_string();
    let ids = match option {
        "-t" => tasks(target.id()).iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        _ => target.id().to_string(),
    };
    let output = place.record(&["--tracer", "lookahead", "--overhead", &allowed, "--duration", "4", option, &ids]);
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    let tracer = traced.tracer();
    let milliseconds = |pointer: &str| traced.number(pointer) as f64 / 1e6;
    let (used, starting) = (milliseconds("/time/application_ns"), milliseconds("/starting/took_ns"));
    let spent = tracer["overhead"].as_f64().unwrap() / 100.0 * used;
    assert!(starting > 0.0 && starting < spent, "{tracer:#}");
    let exceeded = starting > used * ALLOWED / 100.0 * 0.1;
    assert_eq!(errors(&output).contains("of that, starting took"), exceeded, "{}", errors(&output));
    let by_cpu = option == "-p" && traced.samples.keys().any(|event| event.starts_with("cpu-clock"));
    let clocks = if by_cpu { 0..=0 } else { 1..=31 };
    assert!(clocks.contains(&traced.number("/starting/threads")) && traced.number("/bursts") > 0, "{tracer:#}");
    let cost = &tracer["stop_cost"];
    assert!(
        cost["calibrated"].is_boolean() && cost["same_cpu_ns"].is_u64() && cost["other_cpu_ns"].is_u64(),
        "{cost:#}"
    );
    // Building tables costs the same for all programs, and is said, as the end is, which comes when tracing is over; what is left over is a
    // burst that began within the budget.
    let (left_over, ending) = (5.0, milliseconds("/ending_ns"));
    let most = used * ALLOWED / 100.0 * 1.2 + left_over;
    let rest = spent - starting - ending;
    if rest < most { Ok(()) } else { Err(format!("{rest} of {used} ms, at most {most}: {tracer:#}")) }
}

fn event_of_bursts(traced: &Traced) -> &Value {
    let events = traced.metadata["events"].as_array().unwrap();
    events.iter().find(|event| event["provenance"] == "software").unwrap()
}

#[test]
fn the_metadata_of_a_recording() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let record = || place.trace(&["--overhead", "20"], &[text(&hot), "300"]);
    let traced = record();
    let tracer = traced.tracer();
    for key in [
        "bursts",
        "lost_bursts",
        "instructions",
        "taken_branches",
        "static_branches",
        "not_taken",
        "pages",
        "pages_missed",
        "sampling_stops",
        "other_stops",
        "breakpoints",
        "breakpoints_missed",
        "threads",
        "processes",
        "burst_instructions",
    ] {
        assert!(tracer[key].is_u64(), "{key}: {tracer:#}");
    }
    assert_eq!(tracer["kind"], super::tracer().as_str());
    assert_eq!((&tracer["threads"], &tracer["processes"], &tracer["lost_bursts"]), (&1.into(), &1.into(), &0.into()));
    let [taken, by_bytes, not_taken] =
        ["/taken_branches", "/static_branches", "/not_taken"].map(|key| traced.number(key) as f64);
    let share = |key: &str| tracer[key].as_f64().unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(close(share("static_fraction"), by_bytes / taken), "{tracer:#}");
    assert!(close(share("taken_fraction"), (taken - by_bytes) / (taken - by_bytes + not_taken)), "{tracer:#}");
    assert!(close(share("usefulness"), share("taken_fraction") / (1.0 - share("static_fraction"))), "{tracer:#}");
    assert!(traced.sum("ends") >= traced.number("/bursts"), "{tracer:#}");
    let event = event_of_bursts(&traced);
    assert_eq!((&event["name"], &event["role"], &event["lost"]), (&"burst:u".into(), &"lbr".into(), &0.into()));
    assert_eq!(event["samples"], traced.samples["burst:u"]);
    // What bursts stand for is what the threads used, where the tracer is not late because others have the CPUs.
    let part = |traced: &Traced| {
        let stood_for: u64 = traced.bursts.iter().flat_map(|burst| &burst.pieces).map(|piece| piece.period).sum();
        stood_for as f64 / event_of_bursts(traced)["counted"].as_u64().unwrap() as f64
    };
    let parts = std::iter::once(part(&traced)).chain(std::iter::repeat_with(|| part(&record()))).take(10);
    let mut seen = Vec::new();
    assert!(parts.inspect(|part| seen.push(*part)).any(|part| (0.5..2.0).contains(&part)), "{seen:?}: {tracer:#}");
}
