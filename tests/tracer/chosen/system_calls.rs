//! Paths with system calls in them.

use crate::{Place, programs, text};

#[test]
fn bursts_go_on_after_system_calls() {
    let Some(place) = Place::to_trace() else { return };
    let Some(calls) = place.program("calls", programs::CALLS) else { return };
    for kind in ["read", "write", "getpid", "clock"] {
        let traced = place.trace(&["--overhead", "30"], &[text(&calls), kind, "300"]);
        let tracer = traced.tracer();
        let after = tracer["continued"]["system call"].as_u64().unwrap_or(0);
        let bursts = traced.number("/bursts");
        assert!(bursts >= 3 && after > bursts, "{kind}: {tracer:#}");
        assert!(traced.number("/predictions/checked") >= after / 2, "{kind}: {tracer:#}");
        assert_eq!(traced.number("/predictions/diverged"), 0, "{kind}: {tracer:#}");
        let calls = traced.bursts.iter().filter(|burst| burst.instructions() > 300).count();
        assert!(calls * 10 >= traced.bursts.len() * 8, "{kind}: bursts of several calls: {tracer:#}");
    }
}

#[test]
fn the_clock_of_the_vdso_is_followed() {
    let Some(place) = Place::to_trace() else { return };
    let Some(calls) = place.program("calls", programs::CALLS) else { return };
    let traced = place.trace(&["--overhead", "20", "--burst", "5000"], &[text(&calls), "vdso", "300"]);
    let mean = traced.number("/instructions") as f64 / traced.number("/bursts") as f64;
    assert!(traced.number("/bursts") >= 5 && mean > 4500.0, "{mean}: {:#}", traced.tracer());
}

#[test]
fn a_thread_that_blocks_is_not_waited_for() {
    let Some(place) = Place::to_trace() else { return };
    let Some(calls) = place.program("calls", programs::CALLS) else { return };
    let traced = place.trace(&["--overhead", "20"], &[text(&calls), "sleep", "900"]);
    assert!(traced.number("/bursts") >= 3, "{:#}", traced.tracer());
    assert_eq!(traced.number("/predictions/diverged"), 0, "{:#}", traced.tracer());
}
