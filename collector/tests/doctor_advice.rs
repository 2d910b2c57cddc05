//! What `hbbp doctor` would say on machines this is not run on.

mod simulated;

use collector::doctor::examine;
use collector::errno::Errno;
use collector::machine::{Machine, Probe};
use serde_json::{Value, json};
use simulated::{SimulatedKernel, hybrid, intel, machine, pmu};

fn check(machine: &Machine, source: &str, records: Option<&str>, advice: &[&str]) {
    let mut kernel = SimulatedKernel { machine, refuses: &[], log: Vec::new() };
    let report = serde_json::to_value(examine(machine, &mut kernel)).unwrap();
    assert_eq!(report["schema"], "hbbp-doctor/1");
    assert_eq!(report["would_use"]["source"].as_str().unwrap_or("nothing"), source, "{report:#}");
    assert_eq!(report["branch_records"]["kind"].as_str(), records);
    check_tracing(machine, &report);
    let given: Vec<&str> =
        report["advice"].as_array().unwrap().iter().map(|sentence| sentence.as_str().unwrap()).collect();
    assert_eq!(given.len(), advice.len(), "{given:#?}");
    for (given, expected) in given.iter().zip(advice) {
        assert!(given.contains(expected), "{given} should speak of {expected}");
    }
}

/// Branches are traced in software where the hardware records none, there is something to record, and ptrace is allowed.
fn check_tracing(machine: &Machine, report: &Value) {
    let (used, tracing) = (&report["would_use"], &report["software_tracing"]);
    let wanted = used["source"].is_string() && used["source"] != "branch-records";
    if wanted && tracing["ptrace"] == "works" {
        assert_eq!(tracing["available"], true, "{tracing}");
        let by_agents = tracing["agents"] == true && !machine.counts_instructions();
        let kind = if by_agents { "agent" } else { "lookahead" };
        let expected = json!({"kind": kind, "burst_instructions": 10_000, "overhead": 1.0});
        assert_eq!(used["tracer"], expected, "{report:#}");
    } else {
        assert_eq!(used["tracer"], Value::Null, "{report:#}");
    }
    let clock = used["events"].as_array().unwrap().iter().find(|event| event["unit"] == "nanoseconds");
    if let Some(clock) = clock {
        // A fifth of the budget, and a tenth beside agents.
        let rare = if used["tracer"]["kind"] == "agent" { "20000003" } else { "10000019" };
        let is_rare = clock["period"].as_str().unwrap().contains(rare);
        assert_eq!(is_rare, used["tracer"].is_object(), "bursts leave a part of the budget to clock samples: {clock}");
    }
}

#[test]
fn advice_by_machine() {
    let mut complete = machine("GenuineIntel", 6, 0x55, intel("skylake", "32", "3"));
    complete.kernel.kernel_symbols = true;
    complete.kernel.kernel_text = true;
    check(&complete, "branch-records", Some("lbr"), &[]);

    let mut alder = machine("GenuineIntel", 6, 0x97, hybrid());
    alder.kernel.kernel_symbols = true;
    alder.kernel.kernel_text = true;
    alder.kernel.nmi_watchdog = Some(true);
    check(&alder, "branch-records", Some("lbr"), &["nmi_watchdog=0"]);

    let mut unprivileged = complete.clone();
    unprivileged.privileges = Default::default();
    unprivileged.kernel.ptrace_scope = Some(1);
    unprivileged.kernel.mlock_kb = Some(64);
    check(
        &unprivileged,
        "branch-records",
        Some("lbr"),
        &["perf_event_paranoid to 1", "perf_event_paranoid to 0", "ptrace_scope to 0", "perf_event_mlock_kb"],
    );

    let mut of_kernel = complete.clone();
    of_kernel.privileges = Default::default();
    of_kernel.kernel.perf_event_paranoid = Some(1);
    let advice = ["what the kernel changes of its code", "CAP_SYS_ADMIN", "record all processes"];
    check(&of_kernel, "branch-records", Some("lbr"), &advice);

    let mut guest = machine("GenuineIntel", 6, 0x55, intel("skylake", "0", "0"));
    guest.cpu.hypervisor = true;
    guest.kernel.kernel_symbols = true;
    guest.kernel.kernel_text = true;
    check(&guest, "counter", None, &["passes branch records on"]);

    let mut without_pmu = machine("AuthenticAMD", 26, 2, Vec::new());
    without_pmu.cpu.hypervisor = true;
    check(&without_pmu, "clock", None, &["virtual PMU", "kptr_restrict"]);

    let mut hidden = without_pmu.clone();
    hidden.kernel.kernel_symbols = true;
    hidden.kernel.kernel_text = true;
    hidden.kernel.ptrace_scope = Some(3);
    check(&hidden, "clock", None, &["virtual PMU", "ptrace_scope to 1"]);
    hidden.kernel.ptrace_scope = Some(1);
    check(&hidden, "clock", None, &["virtual PMU", "ptrace_scope to 0"]);
    hidden.kernel.ptrace_scope = None;
    hidden.probes.breakpoint = Probe::Fails(Errno::ENODEV);
    check(&hidden, "clock", None, &["virtual PMU", "breakpoints"]);

    let mut zen3 = machine("AuthenticAMD", 25, 1, vec![pmu("cpu", 4, &[("branches", "0")])]);
    zen3.kernel.kernel_symbols = true;
    zen3.kernel.kernel_text = true;
    check(&zen3, "counter", None, &["5.19"]);

    let mut sandbox = without_pmu.clone();
    sandbox.probes.dummy = Probe::Fails(Errno::EPERM);
    sandbox.container = Some("docker".into());
    sandbox.kernel.kernel_symbols = true;
    sandbox.kernel.kernel_text = true;
    check(&sandbox, "nothing", None, &["seccomp"]);

    let mut old = machine("GenuineIntel", 6, 0x55, Vec::new());
    old.probes.dummy = Probe::Fails(Errno::ENOSYS);
    old.kernel.kernel_symbols = true;
    old.kernel.kernel_text = true;
    check(&old, "nothing", None, &["CONFIG_PERF_EVENTS"]);
}
