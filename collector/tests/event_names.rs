//! Event names as perf takes them, and what they stand for on a few machines.

mod simulated;

use collector::machine::Machine;
use collector::machine::cpu_list::CpuList;
use collector::plan::branch_filter::parse_branch_filter;
use collector::plan::event_name::parse_event_name;
use proptest::prelude::*;
use simulated::{hybrid, ibs, intel, machine, pmu};

fn skylake() -> Machine {
    machine("GenuineIntel", 6, 0x55, intel("skylake", "32", "3"))
}

fn alder_lake() -> Machine {
    machine("GenuineIntel", 6, 0x97, hybrid())
}

fn zen4() -> Machine {
    machine("AuthenticAMD", 25, 17, vec![pmu("cpu", 4, &[("branches", "16")]), ibs(true)])
}

/// `name type config[/config1/config2] unit levels precise period`, one line per event.
fn check(machine: &Machine, name: &str, expected: &[&str]) {
    let events = parse_event_name(name, machine).unwrap_or_else(|error| panic!("{name}: {error}"));
    let lines: Vec<String> = events
        .iter()
        .map(|event| {
            let levels = event.levels.map_or("-".to_owned(), |levels| format!("{levels:?}"));
            let period = event.period.map_or("-".to_owned(), |period| period.to_string());
            let config: Vec<String> = event.code.config.iter().map(|word| format!("{word:x}")).collect();
            let config = config.join("/");
            let config = config.trim_end_matches("/0");
            format!(
                "{} {} {config} {:?} {levels} {:?} {period}",
                event.name, event.code.kind, event.unit, event.precise
            )
        })
        .collect();
    assert_eq!(lines, expected, "{name}");
}

#[test]
fn names_and_codes() {
    let skylake = skylake();
    check(&skylake, "cycles", &["cycles 0 0 Other - Level(0) -"]);
    check(&skylake, "cpu-cycles:u", &["cpu-cycles 0 0 Other User Level(0) -"]);
    check(&skylake, "instructions:kpp", &["instructions 0 1 Instructions Kernel Level(2) -"]);
    check(&skylake, "branches:ukP", &["branches 0 4 Branches All Most -"]);
    check(&skylake, "task-clock", &["task-clock 1 1 Nanoseconds - Level(0) -"]);
    check(&skylake, "cs", &["cs 1 3 Other - Level(0) -"]);
    check(&skylake, "r00c0", &["r00c0 4 c0 Instructions - Level(0) -"]);
    check(&skylake, "r20c4:upp", &["r20c4 4 20c4 TakenBranches User Level(2) -"]);
    check(
        &skylake,
        "cpu/event=0xc4,umask=0x20/upp",
        &["cpu/event=0xc4,umask=0x20/ 4 20c4 TakenBranches User Level(2) -"],
    );
    check(&skylake, "cpu/event=0xc0,cmask=16,inv/:p", &["cpu/event=0xc0,cmask=16,inv/ 4 108000c0 Other - Level(1) -"]);
    check(&skylake, "cpu/branch-instructions/", &["cpu/branch-instructions/ 4 c4 Branches - Level(0) -"]);
    check(
        &skylake,
        "cpu/config=0x1c0,config1=2,period=77/",
        &["cpu/config=0x1c0,config1=2,period=77/ 4 1c0/2 Instructions - Level(0) every 77"],
    );
    check(&skylake, "cpu/cpu-cycles,freq=99,name=mine/", &["mine 4 3c Other - Level(0) 99 Hz"]);
    check(&skylake, "inst_retired.prec_dist:pp", &["inst_retired.prec_dist 4 1c0 Instructions - Level(2) -"]);
    check(&skylake, "BR_INST_RETIRED:NEAR_TAKEN", &["br_inst_retired.near_taken 4 20c4 TakenBranches - Level(0) -"]);
}

#[test]
fn hybrid_machines_have_one_per_kind_of_core() {
    let alder_lake = alder_lake();
    check(
        &alder_lake,
        "cycles:u",
        &["cpu_core/cycles/ 0 400000000 Other User Level(0) -", "cpu_atom/cycles/ 0 a00000000 Other User Level(0) -"],
    );
    check(
        &alder_lake,
        "br_inst_retired.near_taken",
        &[
            "cpu_core/br_inst_retired.near_taken/ 4 20c4 TakenBranches - Level(0) -",
            "cpu_atom/br_inst_retired.near_taken/ 10 c0c4 TakenBranches - Level(0) -",
        ],
    );
    check(&alder_lake, "inst_retired.any_p", &["cpu_atom/inst_retired.any_p/ 10 c0 Instructions - Level(0) -"]);
    check(&alder_lake, "cpu_atom/event=0xc4/", &["cpu_atom/event=0xc4/ 10 c4 Branches - Level(0) -"]);
}

#[test]
fn amd() {
    check(
        &zen4(),
        "ibs_op/cnt_ctl=1,swfilt=1/u",
        &["ibs_op/cnt_ctl=1,swfilt=1/ 11 80000/0/1 Operations User Level(0) -"],
    );
    check(&zen4(), "ibs_op//", &["ibs_op// 11 0 Other - Level(0) -"]);
    check(&zen4(), "ex_ret_brn_tkn", &["ex_ret_brn_tkn 4 c4 TakenBranches - Level(0) -"]);
}

#[test]
fn errors_say_what_is_wrong() {
    let bare = machine("GenuineIntel", 6, 0x55, Vec::new());
    let error = |machine: &Machine, name: &str| parse_event_name(name, machine).unwrap_err().to_string();
    assert!(error(&skylake(), "nonsense").starts_with("`nonsense` is no event of this machine"));
    assert!(error(&skylake(), "rxyz").starts_with("`rxyz` is no event"));
    assert_eq!(error(&skylake(), "cpux/event=1/"), "`cpux/event=1/`: this machine has no PMU `cpux`; it has cpu");
    assert_eq!(error(&skylake(), "cpu/evnt=1/"), "`cpu/evnt=1/`: PMU cpu has no term or event `evnt`");
    assert_eq!(error(&skylake(), "cpu/event=1,period=x/"), "`cpu/event=1,period=x/`: `x` is not a number");
    assert!(error(&skylake(), "cycles:pppp").contains("modifier `p`"));
    assert!(error(&skylake(), "cycles:S").contains("modifier `S`"));
    assert!(error(&bare, "r00c0").contains("no PMU that counts hardware events"));
    assert!(error(&bare, "cycles").contains("no PMU that counts hardware events"));
}

proptest! {
    #[test]
    fn any_text_gives_a_result_or_an_error(text in "[a-z0-9_./=,:x-]{0,40}|.{0,20}") {
        for machine in [skylake(), alder_lake(), zen4()] {
            let _ = parse_event_name(&text, &machine);
        }
        let _ = parse_branch_filter(&text);
        let _ = text.parse::<CpuList>();
    }

    #[test]
    fn cpu_lists_print_what_they_hold(cpus in prop::collection::vec(0..300_u32, 0..40)) {
        let text = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let list: CpuList = text.parse().unwrap();
        prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
    }
}
