//! What is recorded on which machine, as one table: `tests/snapshots/plan_table__events_by_machine.snap`.

mod simulated;

use std::fmt::Write as _;

use collector::machine::{Machine, Probe};
use collector::plan::branch_filter::parse_branch_filter;
use collector::plan::choice::choose;
use collector::plan::event_spec::{Levels, SessionAttrs};
use collector::plan::periods::RunTime;
use collector::plan::{EventOption, Options};
use simulated::{SimulatedKernel, hybrid, ibs, intel, machine, pmu};

const INTEL: &str = "GenuineIntel";
const AMD: &str = "AuthenticAMD";

/// The chosen events and what is said about them, or the error.
fn outcome(machine: &Machine, options: &Options, refuses: &[u64]) -> String {
    let mut kernel = SimulatedKernel { machine, refuses, log: Vec::new() };
    let mut text = String::new();
    match choose(machine, options, &mut kernel) {
        Err(error) => writeln!(text, "  error: {error}").unwrap(),
        Ok(choice) => {
            writeln!(text, "  source: {}", serde_json::to_value(choice.source).unwrap().as_str().unwrap()).unwrap();
            for event in &choice.events {
                let attr = event.attr(&SessionAttrs::default(), false);
                write!(
                    text,
                    "  {:?} {}: type {} config {:#x} {} precise {}",
                    event.role,
                    event.name(),
                    attr.kind,
                    attr.config,
                    event.period,
                    attr.precise_ip()
                )
                .unwrap();
                if attr.has_branch_stack() {
                    write!(text, " branches {}", attr.branch_sample_type).unwrap();
                }
                if let Some(cpus) = &event.cpus {
                    write!(text, " cpus {cpus}").unwrap();
                }
                writeln!(text, " of {}", event.unit).unwrap();
            }
            for sentence in &choice.degradations {
                writeln!(text, "  - {sentence}").unwrap();
            }
        }
    }
    text
}

#[test]
fn events_by_machine() {
    let amd = |family, branches: &str| {
        machine(AMD, family, 1, vec![pmu("cpu", 4, &[("branches", branches), ("max_precise", "0")])])
    };
    let mut zen3 = amd(25, "16");
    zen3.cpu.brs = true;
    zen3.pmus[0].events.insert("branch-brs".into(), "event=0xc4".into());
    let mut zen4 = amd(25, "16");
    zen4.cpu.lbr_v2 = true;
    zen4.pmus.push(ibs(true));
    let mut zen2 = amd(23, "0");
    zen2.pmus.push(ibs(false));
    let unprivileged = |mut machine: Machine| {
        machine.privileges = Default::default();
        machine
    };
    let guest = |mut machine: Machine| {
        machine.cpu.hypervisor = true;
        machine
    };
    let mut old_kernel = machine(INTEL, 6, 0x2d, vec![pmu("cpu", 4, &[])]);
    old_kernel.probes.branch_stack = Probe::Works;
    old_kernel.pmus[0].caps.insert("max_precise".into(), "2".into());
    let table = [
        ("Intel Nehalem EP", machine(INTEL, 6, 0x1a, intel("nehalem", "16", "2"))),
        ("Intel Westmere EP", machine(INTEL, 6, 0x2c, intel("westmere", "16", "2"))),
        ("Intel Sandy Bridge EP, Linux 3.10, no caps/branches", old_kernel),
        ("Intel Ivy Bridge EP (the paper's)", machine(INTEL, 6, 0x3e, intel("ivybridge", "16", "2"))),
        ("Intel Haswell", machine(INTEL, 6, 0x3c, intel("haswell", "16", "2"))),
        ("Intel Skylake server", machine(INTEL, 6, 0x55, intel("skylake", "32", "3"))),
        ("Intel Ice Lake server", machine(INTEL, 6, 0x6a, intel("icelake", "32", "3"))),
        ("Intel Sapphire Rapids", machine(INTEL, 6, 0x8f, intel("sapphire_rapids", "32", "3"))),
        ("Intel Alder Lake, hybrid", machine(INTEL, 6, 0x97, hybrid())),
        ("Intel Sierra Forest", machine(INTEL, 6, 0xaf, intel("crestmont", "32", "3"))),
        ("Intel Silvermont", machine(INTEL, 6, 0x4d, intel("silvermont", "8", "2"))),
        ("Intel Knights Landing", machine(INTEL, 6, 0x57, intel("knights-landing", "8", "2"))),
        ("Intel Goldmont", machine(INTEL, 6, 0x5c, intel("goldmont", "32", "2"))),
        ("Intel Goldmont Plus", machine(INTEL, 6, 0x7a, intel("goldmont_plus", "32", "3"))),
        ("Intel Tremont", machine(INTEL, 6, 0x86, intel("Tremont", "32", "3"))),
        ("Intel Bonnell", machine(INTEL, 6, 0x1c, intel("bonnell", "8", "2"))),
        ("Intel Core 2", machine(INTEL, 6, 0x17, intel("core", "4", "1"))),
        ("Intel, family 19, unknown to this version", machine(INTEL, 19, 1, intel("diamond_rapids", "32", "3"))),
        (
            "Intel Skylake guest with a vPMU, no LBR, no PEBS",
            guest(machine(INTEL, 6, 0x55, intel("skylake", "0", "0"))),
        ),
        (
            "Intel Ice Lake guest with LBR and PEBS passed on",
            guest(machine(INTEL, 6, 0x6a, intel("icelake", "32", "3"))),
        ),
        ("Intel Skylake, unprivileged", unprivileged(machine(INTEL, 6, 0x55, intel("skylake", "32", "3")))),
        ("AMD Zen 2, IBS", zen2.clone()),
        ("AMD Zen 2, IBS, unprivileged: its IBS cannot leave out the kernel", unprivileged(zen2)),
        ("AMD Zen 3 with BRS", zen3),
        ("AMD Zen 4 with LBRv2", zen4.clone()),
        ("AMD Zen 5 guest with a vPMU", guest(amd(26, "0"))),
        ("AMD guest without a PMU", guest(machine(AMD, 26, 2, Vec::new()))),
        ("Zhaoxin", machine("CentaurHauls", 7, 0x3b, vec![pmu("cpu", 4, &[("max_precise", "0")])])),
        ("bare metal without a PMU", unprivileged(machine(INTEL, 6, 0x9e, Vec::new()))),
    ];
    let mut text = String::new();
    for (name, machine) in &table {
        write!(text, "{name}\n{}\n", outcome(machine, &Options::default(), &[])).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn options_and_refusals() {
    let skylake = machine(INTEL, 6, 0x55, intel("skylake", "32", "3"));
    let icelake = machine(INTEL, 6, 0x6a, intel("icelake", "32", "3"));
    let mut zen3 = machine(AMD, 25, 1, vec![pmu("cpu", 4, &[("branches", "16"), ("max_precise", "0")])]);
    zen3.cpu.brs = true;
    let mut zen4 = machine(AMD, 25, 17, vec![pmu("cpu", 4, &[("branches", "16"), ("max_precise", "0")]), ibs(true)]);
    zen4.cpu.lbr_v2 = true;
    let bare = machine(INTEL, 6, 0x9e, Vec::new());
    let without_lbr = machine(INTEL, 6, 0x55, intel("skylake", "0", "3"));
    let alder = machine(INTEL, 6, 0x97, hybrid());
    let mut plain_user = skylake.clone();
    plain_user.privileges = Default::default();
    let mut sandbox = bare.clone();
    sandbox.probes.dummy = Probe::Fails(collector::errno::Errno::EPERM);
    sandbox.container = Some("docker".into());
    let named = |name: &str| EventOption::Named(name.into());
    let ebs = |name: &str| Options { ebs: named(name), lbr: EventOption::None, ..Options::default() };
    let lbr = |name: &str| Options { ebs: EventOption::None, lbr: named(name), ..Options::default() };
    let filter = |text: &str| Options { filter: parse_branch_filter(text).ok(), ..Options::default() };
    let levels = |levels| Options { levels: Some(levels), ..Options::default() };
    let cases: Vec<(&str, &Machine, Options, &[u64])> = vec![
        ("a kernel that does not know 00/01", &icelake, Options::default(), &[0x0100]),
        ("a kernel that knows neither PREC_DIST", &icelake, Options::default(), &[0x0100, 0x01c0]),
        ("near_taken refused", &skylake, Options::default(), &[0x20c4]),
        ("no branch event opens", &skylake, Options::default(), &[0x20c4, 4]),
        ("no instruction event opens: never a clock instead", &skylake, Options::default(), &[0x01c0, 1]),
        ("-u", &skylake, levels(Levels::User), &[]),
        ("-k", &skylake, levels(Levels::Kernel), &[]),
        ("-k unprivileged", &plain_user, levels(Levels::Kernel), &[]),
        ("-a", &alder, Options { system_wide: true, ..Options::default() }, &[]),
        ("-a unprivileged", &plain_user, Options { system_wide: true, ..Options::default() }, &[]),
        ("-a without a PMU", &bare, Options { system_wide: true, ..Options::default() }, &[]),
        ("--expect seconds", &skylake, Options { run_time: RunTime::Seconds, ..Options::default() }, &[]),
        ("--expect long, clock", &bare, Options { run_time: RunTime::Long, ..Options::default() }, &[]),
        ("both periods", &skylake, Options { ebs_period: Some(9), lbr_period: Some(8), ..Options::default() }, &[]),
        ("--freq 4000", &skylake, Options { frequency: Some(4000), ..Options::default() }, &[]),
        (
            "--freq above the kernel's limit",
            &skylake,
            Options { frequency: Some(1_000_000), ..Options::default() },
            &[],
        ),
        ("--freq 1000, clock", &bare, Options { frequency: Some(1000), ..Options::default() }, &[]),
        ("--freq 1000, BRS", &zen3, Options { frequency: Some(1000), ..Options::default() }, &[]),
        ("--lbr-period 16, BRS", &zen3, Options { lbr_period: Some(16), ..Options::default() }, &[]),
        ("--ebs-period 0", &skylake, Options { ebs_period: Some(0), ..Options::default() }, &[]),
        ("--ebs-period 100, clock", &bare, Options { ebs_period: Some(100), ..Options::default() }, &[]),
        ("-j any_call,u", &skylake, filter("any_call,u"), &[]),
        ("-j stack,u", &skylake, filter("stack,u"), &[]),
        ("-j cond, BRS", &zen3, filter("cond"), &[]),
        ("-j in_tx, LBRv2", &zen4, filter("in_tx"), &[]),
        ("-j stack, LBRv2: another meaning, so nothing in its place", &zen4, filter("stack"), &[]),
        ("-j cond without branch records", &bare, filter("cond"), &[]),
        ("--ebs-event cycles:pp", &skylake, ebs("cycles:pp"), &[]),
        ("--ebs-event cycles:P", &skylake, ebs("cycles:P"), &[]),
        ("--ebs-event instructions:u, hybrid", &alder, ebs("instructions:u"), &[]),
        ("--ebs-event r01c0:upp", &skylake, ebs("r01c0:upp"), &[]),
        ("--ebs-event ibs_op/cnt_ctl=1/", &zen4, ebs("ibs_op/cnt_ctl=1/"), &[]),
        ("--ebs-event task-clock", &skylake, ebs("task-clock"), &[]),
        ("--ebs-event page-faults", &bare, ebs("page-faults"), &[]),
        ("--ebs-event cycles without a PMU: never a clock instead", &bare, ebs("cycles"), &[]),
        ("--ebs-event nonsense", &skylake, ebs("nonsense"), &[]),
        (
            "--lbr-event cpu/event=0xc4,umask=0x20,period=5000/upp",
            &skylake,
            lbr("cpu/event=0xc4,umask=0x20,period=5000/upp"),
            &[],
        ),
        ("--lbr-event cpu/branch-instructions/", &skylake, lbr("cpu/branch-instructions/"), &[]),
        ("--lbr-event BR_INST_RETIRED:NEAR_TAKEN:k, hybrid", &alder, lbr("BR_INST_RETIRED:NEAR_TAKEN:k"), &[]),
        ("--lbr-event without branch records", &bare, Options { lbr: named("task-clock"), ..Options::default() }, &[]),
        ("--lbr-event on a machine that has none", &without_lbr, lbr("branches"), &[]),
        ("--lbr-event none", &skylake, Options { lbr: EventOption::None, ..Options::default() }, &[]),
        ("both none", &skylake, Options { ebs: EventOption::None, lbr: EventOption::None, ..Options::default() }, &[]),
        ("in a sandbox", &sandbox, Options::default(), &[]),
    ];
    let mut text = String::new();
    for (name, machine, options, refuses) in &cases {
        write!(text, "{name}\n{}\n", outcome(machine, options, refuses)).unwrap();
    }
    insta::assert_snapshot!(text);
}

/// The kernel cannot count two events with different branch filters at the same time.
#[test]
fn both_roles_ask_for_the_same_branches() {
    let skylake = machine(INTEL, 6, 0x55, intel("skylake", "32", "3"));
    for filter in ["any", "u", "any_call,k", "stack", "cond,no_cycles"] {
        for levels in [None, Some(Levels::User), Some(Levels::Kernel)] {
            let options = Options { filter: parse_branch_filter(filter).ok(), levels, ..Options::default() };
            let mut kernel = SimulatedKernel { machine: &skylake, refuses: &[], log: Vec::new() };
            let events = choose(&skylake, &options, &mut kernel).unwrap().events;
            assert_eq!(events.len(), 2);
            assert_eq!(events[0].branches, events[1].branches, "{filter} {levels:?}");
        }
    }
}

/// A paranoid level that changed after it was read: the kernel has the last word.
#[test]
fn refusal_of_kernel_samples_falls_back_to_user_space() {
    let mut seen = machine(INTEL, 6, 0x55, intel("skylake", "32", "3"));
    let mut real = seen.clone();
    real.privileges = Default::default();
    seen.kernel.perf_event_paranoid = Some(1);
    let mut kernel = SimulatedKernel { machine: &real, refuses: &[], log: Vec::new() };
    let choice = choose(&seen, &Options::default(), &mut kernel).unwrap();
    assert!(choice.events.iter().all(|event| event.levels == Levels::User));
    assert!(choice.degradations[0].starts_with("kernel code is not recorded"), "{:?}", choice.degradations);
}
