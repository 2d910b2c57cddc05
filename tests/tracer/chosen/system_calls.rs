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

/// The kernel's entry needs no sample: with interrupts off, none falls there.
#[test]
fn system_calls_lead_to_the_entry_of_the_kernel() {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let has_fred = std::fs::read_to_string("/proc/cpuinfo").unwrap().contains(" fred ");
    let entry = if has_fred { "asm_fred_entrypoint_user" } else { "entry_SYSCALL_64" };
    let is_entry = |line: &str| line.split(' ').nth(2) == Some(entry) && !line.starts_with("0000000000000000");
    if !symbols.lines().any(is_entry) {
        return testing::skip!(Privileges, "/proc/kallsyms does not say where the kernel is entered");
    }
    let Some(place) = Place::to_trace() else { return };
    let Some(calls) = place.program("calls", programs::CALLS) else { return };
    place.trace(&["--overhead", "30"], &[text(&calls), "getpid", "300"]);
    let annotated = |function: &str| place.json(&["annotate", "-f", function, "--format", "json", "-i", "hbbp.data"]);
    let blocks = annotated("syscall")["functions"][0]["blocks"].as_array().unwrap().clone();
    let led: Vec<_> = blocks.iter().filter(|block| block["branch"]["kind"] == "system-call").collect();
    let [block] = led[..] else { panic!("{blocks:#?}") };
    let [target] = &block["branch"]["targets"].as_array().unwrap()[..] else { panic!("{block:#}") };
    assert_eq!((&target["function"], &target["offset"]), (&entry.into(), &0.into()), "{block:#}");
    // One call of the kernel for each of `between`. The one that a burst ends at is not seen.
    let count = target["count"].as_f64().unwrap();
    let between = annotated("between")["functions"][0]["calls"].as_f64().unwrap();
    assert!((0.75..1.05).contains(&(count / between)), "{count} of {between}");
}
