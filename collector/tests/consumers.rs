//! Recordings with the two events of a machine that has branch records, as perf, llvm-profgen and create_llvm_prof read them.
//!
//! The samples are made up from a real program's loop; the attrs are those a session on such a machine opens.

mod simulated;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use collector::plan::Options;
use collector::plan::choice::choose;
use collector::plan::event_spec::SessionAttrs;
use perfdata::{
    Avma, Branch, BranchFlags, Comm, CpuMode, EventDescription, FeatureBit, Features, MappedFile, Mmap, SampleFields,
    SampleId, Writer,
};
use simulated::{SimulatedKernel, intel, machine};

const PROGRAM: &str = "
volatile int sink;
__attribute__((noinline)) void work(int n) {
    for (int i = 0; i < n; i++)
        sink += i;
}
int main(void) {
    for (int i = 0; i < 1000; i++)
        work(1000);
    return 0;
}
";

/// The first backward jump of `work`: where it is and where it goes.
struct Loop {
    from: u64,
    to: u64,
}

fn have(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !there {
        testing::skip!(Tool, "{tool} is not installed");
    }
    there
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn find_loop(binary: &Path) -> Loop {
    let code = stdout(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(binary));
    let body = code.split("<work>:").nth(1).unwrap();
    // `    1149:	jl     1140 <work+0x10>`
    let jump = |line: &str| {
        let (address, instruction) = line.trim().split_once(':')?;
        let mut words = instruction.split_whitespace();
        let mnemonic = words.next()?;
        let to = u64::from_str_radix(words.next()?, 16).ok()?;
        let from = u64::from_str_radix(address, 16).ok()?;
        (mnemonic.starts_with('j') && to < from).then_some(Loop { from, to })
    };
    body.lines().find_map(jump).expect("a loop")
}

/// 16 turns of the loop, in both events.
fn record(binary: &Path, output: &Path) {
    let skylake = machine("GenuineIntel", 6, 0x55, intel("skylake", "32", "3"));
    let mut kernel = SimulatedKernel { machine: &skylake, refuses: &[], log: Vec::new() };
    let choice = choose(&skylake, &Options::default(), &mut kernel).unwrap();
    let session = SessionAttrs {
        inherit: true,
        enable_on_exec: true,
        lost_counts: true,
        watermark: 4096,
        ..SessionAttrs::default()
    };
    let events: Vec<EventDescription> = choice
        .events
        .iter()
        .enumerate()
        .map(|(index, spec)| EventDescription {
            attr: spec.attr(&session, index == 0),
            name: spec.name(),
            ids: vec![10 + index as u64, 20 + index as u64],
        })
        .collect();
    assert_eq!(events.len(), 2);
    let Loop { from, to } = find_loop(binary);
    // Linked with -no-pie and one code segment whose addresses are file offsets plus this.
    const BASE: u64 = 0x40_0000;
    let branch = Branch { from: Avma(from), to: Avma(to), flags: BranchFlags(2) };
    let branches = [branch; 16];
    let mut writer = Writer::create(BufWriter::new(File::create(output).unwrap()), &events).unwrap();
    let id =
        |time| SampleId { pid: Some(77), tid: Some(77), time: Some(time), identifier: Some(10), ..SampleId::default() };
    writer.write_comm(&Comm { pid: 77, tid: 77, exec: true, name: b"program", sample_id: id(1) }).unwrap();
    writer
        .write_mmap2(&Mmap {
            cpu_mode: CpuMode::User,
            pid: 77,
            tid: 77,
            start: Avma(BASE + 0x1000),
            len: 0x1000,
            pgoff: 0x1000,
            file: MappedFile::Inode { maj: 1, min: 2, ino: 3, generation: 0 },
            prot: 5,
            flags: 2,
            path: binary.as_os_str().as_encoded_bytes(),
            sample_id: id(2),
            ..Mmap::default()
        })
        .unwrap();
    for sample in 0..200_u64 {
        let event = (sample % 2) as usize;
        writer
            .write_sample(&SampleFields {
                event,
                cpu_mode: CpuMode::User,
                ip: Avma(to),
                pid: 77,
                tid: 77,
                time: 10 + sample,
                period: 1_000_037,
                branches: &branches,
                id: events[event].ids[(sample / 2 % 2) as usize],
                ..SampleFields::default()
            })
            .unwrap();
    }
    writer.write_finished_round().unwrap();
    let features = Features {
        arch: Some("x86_64".into()),
        branch_stack: true,
        other: [(FeatureBit(250), b"{\"schema\":\"hbbp-recording/1\"}".to_vec())].into(),
        ..Features::default()
    };
    writer.finish(&features).unwrap();
}

#[test]
fn both_events_are_read_by_the_tools() {
    if !have("gcc") || !have("objdump") || !have("perf") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();

    let (source, binary, recording) =
        (dir.path().join("program.c"), dir.path().join("program"), dir.path().join("hbbp.data"));
    std::fs::write(&source, PROGRAM).unwrap();
    // create_llvm_prof 0.19 reads no DWARF 5.
    stdout(Command::new("gcc").args(["-O1", "-gdwarf-4", "-no-pie", "-o"]).arg(&binary).arg(&source));
    record(&binary, &recording);

    let Loop { from, to } = find_loop(&binary);
    let script = stdout(Command::new("perf").args(["script", "-F", "event,ip,brstack", "-i"]).arg(&recording));
    assert_eq!(script.lines().count(), 200, "{script}");
    assert_eq!(script.lines().filter(|line| line.contains("inst_retired.prec_dist:pp")).count(), 100, "{script}");
    assert!(script.lines().all(|line| line.matches(&format!("{from:#x}/{to:#x}/P/")).count() == 16), "{script}");

    if have("create_llvm_prof") {
        let profile = dir.path().join("autofdo.txt");
        let mut command = Command::new("create_llvm_prof");
        command.envs(testing::LITTLE_LOG).args(["--format=text", "--profiler=perf"]);
        stdout(
            command
                .arg(format!("--binary={}", binary.display()))
                .arg(format!("--profile={}", recording.display()))
                .arg(format!("--out={}", profile.display())),
        );
        let profile = std::fs::read_to_string(profile).unwrap();
        assert!(profile.contains("work:"), "{profile}");
    }
    if have("llvm-profgen-19") {
        let profile = dir.path().join("llvm.txt");
        stdout(
            Command::new("llvm-profgen-19")
                .arg(format!("--binary={}", binary.display()))
                .arg(format!("--perfdata={}", recording.display()))
                .arg(format!("--output={}", profile.display()))
                .arg("--format=text"),
        );
        let profile = std::fs::read_to_string(profile).unwrap();
        assert!(profile.contains("work:"), "{profile}");
    }
}
