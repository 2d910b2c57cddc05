//! Recordings made by this crate's writer, opened by the tools that people use on recordings.
//!
//! The branch stacks are made up, on a real branch of a real program: what a software tracer writes.

mod elf_program;
mod perf_tool;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use elf_program::{Program, compile, run};
use perf_tool::{check, check_header, one_space, perf, perf_is_here};
use perfdata::{
    AttrFlags, Avma, Branch, BranchFlags, BranchSampleType, BuildIdEntry, Comm, CpuMode, EventAttr, EventDescription,
    FeatureBit, Features, MappedFile, Mmap, SampleFields, SampleFormat, SampleId, Task, Writer,
};
use tempfile::TempDir;

const SAMPLES: u64 = 500;
const DEPTH: usize = 32;
const PERIOD: u64 = 1_000_003;
const PID: u32 = 4242;
/// Where the program's first page is said to be mapped; its addresses if it is not position-independent.
const BASE: u64 = 0x5555_5555_4000;

struct Fixture {
    _directory: TempDir,
    recording: PathBuf,
    program: Program,
    /// What to add to an address of the file.
    bias: u64,
}

fn event() -> EventDescription {
    let attr = EventAttr {
        kind: 1,
        config: 1,
        sample_period_or_freq: PERIOD,
        sample_format: SampleFormat::IP
            | SampleFormat::TID
            | SampleFormat::TIME
            | SampleFormat::PERIOD
            | SampleFormat::BRANCH_STACK,
        flags: AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::INHERIT
            | AttrFlags::MMAP
            | AttrFlags::MMAP2
            | AttrFlags::COMM
            | AttrFlags::COMM_EXEC
            | AttrFlags::TASK,
        branch_sample_type: BranchSampleType::USER | BranchSampleType::ANY,
        ..EventAttr::default()
    };
    EventDescription { attr, name: "task-clock:u".to_owned(), ids: vec![77] }
}

fn sample_id(time: u64) -> SampleId {
    SampleId { pid: Some(PID), tid: Some(PID), time: Some(time), ..SampleId::default() }
}

fn features(program: &Program) -> Features {
    let text = |text: &str| Some(text.to_owned());
    Features {
        hostname: text("host"),
        os_release: text("6.12.1"),
        version: text("0.1.0"),
        arch: text("x86_64"),
        cpu_desc: text("A CPU @ 1 GHz"),
        cpuid: text("GenuineIntel,6,85,7"),
        nr_cpus: Some((2, 2)),
        total_mem: Some(1 << 20),
        cmdline: vec!["/usr/bin/hbbp".to_owned(), "record".to_owned()],
        build_ids: vec![BuildIdEntry {
            misc: CpuMode::User.to_misc(),
            pid: -1,
            build_id: program.build_id.clone(),
            path: program.path.to_str().unwrap().as_bytes().to_vec(),
        }],
        pmu_mappings: vec![(1, "software".to_owned())],
        sample_time: Some((1_000_000, 1_000_000 + (SAMPLES - 1) * 1000)),
        branch_stack: true,
        other: [(FeatureBit(250), br#"{"provenance":"software"}"#.to_vec())].into(),
        ..Features::default()
    }
}

fn write(path: &Path, program: &Program, bias: u64, events: &[EventDescription]) {
    let out = BufWriter::new(File::create(path).unwrap());
    let mut writer = Writer::create(out, events).unwrap();
    let task = Task { pid: PID, ppid: PID - 1, tid: PID, ptid: PID - 1, time: 1000, sample_id: sample_id(1000) };
    writer.write_fork(&task).unwrap();
    writer
        .write_comm(&Comm { pid: PID, tid: PID, exec: true, name: b"loop-program", sample_id: sample_id(2000) })
        .unwrap();
    let page = 4096;
    let start = program.text.address & !(page - 1);
    writer
        .write_mmap2(&Mmap {
            cpu_mode: CpuMode::User,
            pid: PID,
            tid: PID,
            start: Avma(bias + start),
            len: (program.text.address + program.text.size - start).next_multiple_of(page),
            pgoff: program.text.offset & !(page - 1),
            file: MappedFile::Inode { maj: 8, min: 1, ino: 4711, generation: 0 },
            prot: 5,
            flags: 2,
            data: false,
            path: program.path.to_str().unwrap().as_bytes(),
            sample_id: sample_id(3000),
        })
        .unwrap();
    let (from, to) = program.jump;
    let branch = Branch { from: Avma(bias + from), to: Avma(bias + to), flags: BranchFlags::PREDICTED };
    let mispredicted = Branch { flags: BranchFlags::MISPREDICTED, ..branch };
    let mut branches = [branch; DEPTH];
    branches[DEPTH - 1] = mispredicted;
    for number in 0..SAMPLES {
        let sample = SampleFields {
            event: number as usize % events.len(),
            cpu_mode: CpuMode::User,
            ip: Avma(bias + to),
            pid: PID,
            tid: PID,
            time: 1_000_000 + number * 1000,
            period: PERIOD,
            branches: &branches,
            ..SampleFields::default()
        };
        writer.write_sample(&sample).unwrap();
    }
    let end = 1_000_000 + SAMPLES * 1000;
    writer.write_exit(&Task { time: end, sample_id: sample_id(end), ..task }).unwrap();
    writer.finish(&features(program)).unwrap();
}

/// The program compiled with these options, and a recording of it.
fn fixture(compiler: &str, options: &[&str], events: &[EventDescription]) -> Option<Fixture> {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), compiler, options)?;
    let bias = if options.contains(&"-no-pie") { 0 } else { BASE };
    let recording = directory.path().join("hbbp.data");
    write(&recording, &program, bias, events);
    Some(Fixture { _directory: directory, recording, program, bias })
}

/// autofdo 0.19 finds no function in DWARF 5.
fn fixtures() -> impl Iterator<Item = Fixture> {
    const GCC: [&str; 3] = ["-g", "-gdwarf-4", "-no-pie"];
    [("gcc", &GCC[..2]), ("gcc", &GCC), ("clang-19", &["-g", "-gdwarf-4", "-fdebug-info-for-profiling"])]
        .into_iter()
        .filter_map(|(compiler, options)| fixture(compiler, options, &[event()]))
}

/// Two events told apart by their ids, both with stacks: how hardware branch records are taken.
fn two_events() -> Vec<EventDescription> {
    let more = SampleFormat::IDENTIFIER | SampleFormat::CPU;
    let mut events = vec![event(), event()];
    for (event, (name, config)) in events.iter_mut().zip([("instructions:u", 1), ("branches:u", 4)]) {
        (event.attr.kind, event.attr.config, event.name) = (0, config, name.to_owned());
        event.attr.sample_format |= more;
    }
    (events[0].ids, events[1].ids) = (vec![77, 78], vec![79, 80]);
    events
}

/// Runs a tool that must succeed; what it printed, errors included. `None`, loudly, when it is not there.
fn must_succeed(tool: &str, args: &[&str]) -> Option<String> {
    let output = run(tool, args)?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{tool} {args:?}: {printed}");
    Some(printed)
}

#[test]
fn perf_reads_every_record_and_feature() {
    if !perf_is_here() {
        return;
    }
    for fixture in fixtures() {
        check(&fixture.recording);
        check_header(&fixture.recording);
    }
}

#[test]
fn perf_reports_without_complaint() {
    if !perf_is_here() {
        return;
    }
    for Fixture { recording, program, bias, .. } in fixtures() {
        let path = recording.to_str().unwrap();
        let output = run("perf", &["report", "--stdio", "-i", path]).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.trim().is_empty(), "perf report: {errors}");
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(report.contains("task-clock:u") && report.contains("loop-program"), "{report}");
        let row = report.lines().find(|line| line.contains("hot")).unwrap_or_else(|| panic!("no function: {report}"));
        assert!(row.trim().starts_with("100.00%"), "{row}");

        let script = perf(&["script", "-F", "ip,brstack"], &recording);
        let (from, to) = (program.jump.0 + bias, program.jump.1 + bias);
        let entries = vec![format!("{from:#x}/{to:#x}/P/-/-/0/"); DEPTH - 1].join(" ");
        let expected = format!("{to:x} {entries} {from:#x}/{to:#x}/M/-/-/0/");
        let lines: Vec<_> = script.lines().map(one_space).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, vec![expected; SAMPLES as usize]);

        let events = perf(&["evlist", "-v"], &recording);
        for part in [
            "task-clock:u: type: 1, size: 128, config: 0x1",
            "sample_period, sample_freq }: 1000003",
            "sample_type: IP|TID|TIME|PERIOD|BRANCH_STACK",
            "branch_sample_type: USER|ANY",
        ] {
            assert!(events.contains(part), "{part:?} is not in {events}");
        }
        let id: String = program.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let ids = perf(&["buildid-list"], &recording);
        assert_eq!(ids.trim(), format!("{id} {}", program.path.display()));
    }
}

#[test]
fn llvm_profgen_makes_a_profile() {
    for Fixture { recording, program, .. } in fixtures() {
        let output = recording.with_extension("prof");
        let args = [
            "--format=text",
            &format!("--perfdata={}", recording.display()),
            &format!("--binary={}", program.path.display()),
            &format!("--output={}", output.display()),
        ];
        let Some(printed) = must_succeed("llvm-profgen-19", &args) else { return };
        let profile = std::fs::read_to_string(&output).unwrap();
        let head =
            profile.lines().find(|line| line.starts_with("hot:")).unwrap_or_else(|| panic!("{profile}\n{printed}"));
        let total: u64 = head.split(':').nth(1).unwrap().parse().unwrap();
        assert!(total >= SAMPLES * (DEPTH as u64 - 1), "{profile}");
        assert!(!printed.to_lowercase().contains("warning"), "{printed}");
    }
}

#[test]
fn perf2bolt_makes_a_profile() {
    for Fixture { recording, program, .. } in fixtures() {
        let output = recording.with_extension("fdata");
        let (data, profile) = (recording.to_str().unwrap(), output.to_str().unwrap());
        let args = ["-p", data, "-o", profile, program.path.to_str().unwrap()];
        // The link in /usr/bin behaves as llvm-bolt.
        let Some(printed) = must_succeed("/usr/lib/llvm-19/bin/perf2bolt", &args) else { return };
        assert!(printed.contains("matched build-id"), "{printed}");
        let samples = format!("read {SAMPLES} samples and {} LBR entries", SAMPLES * DEPTH as u64);
        assert!(printed.contains(&samples), "{samples:?} is not in {printed}");
        let profile = std::fs::read_to_string(&output).unwrap();
        let branch = profile.lines().find(|line| line.starts_with("1 hot ")).unwrap_or_else(|| panic!("{profile}"));
        // 1 from_symbol offset 1 to_symbol offset mispredictions count
        let counts: Vec<u64> = branch.split(' ').skip(6).map(|number| number.parse().unwrap()).collect();
        assert_eq!(counts, [SAMPLES, SAMPLES * DEPTH as u64], "{profile}");
    }
}

#[test]
fn create_llvm_prof_makes_a_profile() {
    for Fixture { recording, program, .. } in fixtures() {
        let output = recording.with_extension("autofdo");
        let args = [
            "--format=text".to_owned(),
            format!("--profile={}", recording.display()),
            format!("--binary={}", program.path.display()),
            format!("--out={}", output.display()),
        ];
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let Some(printed) = must_succeed("create_llvm_prof", &args) else { return };
        let profile = std::fs::read_to_string(&output).unwrap();
        let head =
            profile.lines().find(|line| line.starts_with("hot:")).unwrap_or_else(|| panic!("{profile}\n{printed}"));
        let total: u64 = head.split(':').nth(1).unwrap().parse().unwrap();
        assert!(total >= SAMPLES * (DEPTH as u64 - 1), "{profile}");
    }
}

#[test]
fn two_events_are_read_by_all() {
    let Some(fixture) = fixture("gcc", &["-g", "-gdwarf-4"], &two_events()) else { return };
    let Fixture { recording, program, .. } = &fixture;
    let (data, binary) = (recording.to_str().unwrap(), program.path.to_str().unwrap());
    if perf_is_here() {
        check(recording);
        check_header(recording);
        let report = perf(&["report", "--stdio"], recording);
        assert!(report.contains("'instructions:u'") && report.contains("'branches:u'"), "{report}");
    }
    let expected = SAMPLES * (DEPTH as u64 - 1);
    let output = recording.with_extension("prof");
    let args = ["--format=text", &format!("--perfdata={data}"), &format!("--binary={binary}"), "--output"];
    if must_succeed("llvm-profgen-19", &[&args[..], &[output.to_str().unwrap()]].concat()).is_some() {
        assert!(total_of_hot(&output) >= expected);
    }
    let output = recording.with_extension("autofdo");
    let args = ["--format=text", &format!("--profile={data}"), &format!("--binary={binary}"), "--out"];
    if must_succeed("create_llvm_prof", &[&args[..], &[output.to_str().unwrap()]].concat()).is_some() {
        assert!(total_of_hot(&output) >= expected);
    }
    let output = recording.with_extension("fdata");
    let args = ["-p", data, "-o", output.to_str().unwrap(), binary];
    if must_succeed("/usr/lib/llvm-19/bin/perf2bolt", &args).is_some() {
        let profile = std::fs::read_to_string(&output).unwrap();
        assert!(profile.contains(&format!(" {SAMPLES} {}", SAMPLES * DEPTH as u64)), "{profile}");
    }
}

/// The total of the function `hot` in a text profile.
fn total_of_hot(path: &Path) -> u64 {
    let profile = std::fs::read_to_string(path).unwrap();
    let head = profile.lines().find(|line| line.starts_with("hot:")).unwrap_or_else(|| panic!("no hot: {profile}"));
    head.split(':').nth(1).unwrap().parse().unwrap()
}
