//! A program of four known blocks, and recordings of it made up branch by branch.
//!
//! ```text
//! A 0x401000  20 nops, jne C     21 instructions, longer than the rule's 18
//! B 0x401016   3 nops, jmp D      4
//! C 0x40101b   2 nops             2, falls into D
//! D 0x40101d   1 nop,  jmp A      2
//! ```
//!
//! A recording has either two events of hardware ([`Recorder::new`]) or a clock and bursts ([`Recorder::traced`]).
#![allow(dead_code)]

#[path = "calls.rs"]
pub mod calls;

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata::{
    AttrFlags, Avma, Branch, BranchFlags, BranchKind, BranchSampleType, Comm, EventAttr, EventDescription, Features,
    Ksymbol, Lost, LostSamples, MappedFile, Mmap, SampleFields, SampleFormat, SampleId, TextPoke, Weight, Writer,
};

pub const A: u64 = 0x40_1000;
pub const A_JNE: u64 = 0x40_1014;
pub const B: u64 = 0x40_1016;
pub const B_JMP: u64 = 0x40_1019;
pub const C: u64 = 0x40_101b;
pub const D: u64 = 0x40_101d;
pub const D_JMP: u64 = 0x40_101e;

/// The program.
pub const SOURCE: &str = "
.globl _start
.type _start, @function
_start:
    .rept 20
    nop
    .endr
    jne 1f
    nop; nop; nop
    jmp 2f
1:  nop; nop
2:  nop
    jmp _start
.size _start, .-_start
.section .note.GNU-stack,\"\",@progbits
";

/// Assembles the program as `name` in a folder; `None` (said loudly) without a C compiler.
pub fn program(folder: &Path, name: &str, extra: &[&str]) -> Option<PathBuf> {
    assemble(folder, name, SOURCE, extra)
}

/// The program with other symbols: one at B and one at C. Its build id is made of the length of its name.
pub fn with_symbols(folder: &Path, name: &str, [at_b, at_c]: [&str; 2]) -> Option<PathBuf> {
    let symbol = |name: &str, end: &str| format!(".type {name}, @function\n{name}: .size {name}, {end} - {name}\n");
    let text = SOURCE
        .replace("    nop; nop; nop\n", &format!("{}    nop; nop; nop\n", symbol(at_b, "1f")))
        .replace("1:  nop; nop\n", &format!("1:\n{}    nop; nop\n", symbol(at_c, "2f")));
    assert_ne!(text, SOURCE);
    assemble(folder, name, &text, &[&format!("-Wl,--build-id=0x{:016x}", name.len())])
}

/// Assembles any program, its code from 0x401000 on.
pub fn assemble(folder: &Path, name: &str, text: &str, extra: &[&str]) -> Option<PathBuf> {
    let source = folder.join(name).with_extension("s");
    std::fs::write(&source, text).unwrap();
    let binary = folder.join(name);
    let status = Command::new("gcc")
        .args(["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000", "-o"])
        .arg(&binary)
        .arg(&source)
        .args(extra)
        .status();
    match status {
        Ok(status) if status.success() => Some(binary),
        _ => {
            testing::skip!(Tool, "gcc cannot assemble the test program");
            None
        }
    }
}

/// Writes a recording of process 7 running `binary`, mapped as the linker laid it out.
pub struct Recorder {
    writer: Writer<Cursor<Vec<u8>>>,
    time: u64,
}

/// Index of the `instructions` event of a [`Recorder`].
pub const EBS: usize = 0;
/// Index of the event with branch stacks: taken branches, or bursts.
pub const LBR: usize = 1;

/// What the recorder notes of a traced recording, but for its events' unit.
pub const TRACER: &str = r#"{"kind":"lookahead","bursts":3,"burst_instructions":10000,"overhead":0.93}"#;

/// Feature 250 of a recording whose event `burst:u` holds bursts of this unit.
pub fn burst_metadata(unit: &str) -> Features {
    note(&format!(
        r#"{{"schema":"hbbp-recording/1","events":[{{"name":"task-clock","role":"ebs","unit":"nanoseconds"}},
        {{"name":"burst:u","role":"lbr","provenance":"software","unit":"{unit}"}}],"tracer":{TRACER}}}"#
    ))
}

/// Feature 250 with this text.
pub fn note(text: &str) -> Features {
    Features { other: [(perfdata::FeatureBit(250), text.as_bytes().to_vec())].into(), ..Features::default() }
}

/// A burst, or a piece of one.
#[derive(Clone, Copy)]
pub struct Burst<'a> {
    /// Address of the first instruction.
    pub ip: u64,
    /// Branches (from, to), oldest first.
    pub branches: &'a [(u64, u64)],
    /// Instructions executed.
    pub instructions: u64,
    /// What it stands for.
    pub period: u64,
}

impl Recorder {
    /// Starts a recording with an instructions event (period 1,000) and a taken-branches event with stacks (period 100).
    pub fn new(binary: &Path) -> Self {
        Self::hardware(binary, SampleFormat::default())
    }

    /// The same, with stacks of both events, as `hbbp record` opens them.
    pub fn with_two_stacks(binary: &Path) -> Self {
        Self::hardware(binary, SampleFormat::BRANCH_STACK)
    }

    fn hardware(binary: &Path, of_instructions: SampleFormat) -> Self {
        let format =
            SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::PERIOD;
        let attr = |config, period, sample_format| EventAttr {
            kind: 4,
            config,
            sample_period_or_freq: period,
            sample_format,
            flags: AttrFlags::SAMPLE_ID_ALL,
            branch_sample_type: BranchSampleType::ANY,
            ..EventAttr::default()
        };
        let events = [
            EventDescription {
                attr: attr(0x1c0, 1000, format | of_instructions),
                name: "inst_retired.prec_dist".into(),
                ids: vec![1],
            },
            EventDescription {
                attr: attr(0x20c4, 100, format | SampleFormat::BRANCH_STACK),
                name: "br_inst_retired.near_taken".into(),
                ids: vec![2],
            },
        ];
        Self::start(binary, &events)
    }

    /// Starts a recording with a task clock (period 1,000 ns) and an event of bursts.
    pub fn traced(binary: &Path) -> Self {
        Self::traced_with(binary, BranchSampleType::ANY | BranchSampleType::USER)
    }

    /// Starts a recording of cycles with LBR call stacks (period 1,000): samples are [`Recorder::sample_with_stack`].
    pub fn call_stacks(binary: &Path) -> Self {
        let format =
            SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::PERIOD;
        let attr = EventAttr {
            kind: 0,
            config: 0,
            sample_period_or_freq: 1000,
            sample_format: format | SampleFormat::BRANCH_STACK,
            flags: AttrFlags::SAMPLE_ID_ALL,
            branch_sample_type: BranchSampleType::CALL_STACK | BranchSampleType::USER,
            ..EventAttr::default()
        };
        Self::start(binary, &[EventDescription { attr, name: "cycles".into(), ids: vec![1] }])
    }

    /// The same with another filter of branches.
    pub fn traced_with(binary: &Path, filter: BranchSampleType) -> Self {
        let format =
            SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::PERIOD;
        let clock = |sample_format, branch_sample_type| EventAttr {
            kind: 1,
            config: 1,
            sample_period_or_freq: 1000,
            sample_format,
            flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::USE_CLOCKID,
            clockid: 1,
            branch_sample_type,
            ..EventAttr::default()
        };
        let bursts = format | SampleFormat::RAW | SampleFormat::BRANCH_STACK | SampleFormat::WEIGHT;
        let events = [
            EventDescription {
                attr: clock(format, BranchSampleType::default()),
                name: "task-clock".into(),
                ids: vec![1],
            },
            EventDescription { attr: clock(bursts, filter), name: "burst:u".into(), ids: vec![2] },
        ];
        Self::start(binary, &events)
    }

    fn start(binary: &Path, events: &[EventDescription]) -> Self {
        let mut writer = Writer::create(Cursor::new(Vec::new()), events).unwrap();
        writer.write_comm(&Comm { pid: 7, tid: 7, exec: true, name: b"four", ..Comm::default() }).unwrap();
        let path = binary.to_str().unwrap().as_bytes();
        writer.write_mmap2(&Mmap { path, ..Self::mapping() }).unwrap();
        Recorder { writer, time: 1000 }
    }

    /// The mapping of the program, without its path.
    pub fn mapping() -> Mmap<'static> {
        Mmap {
            cpu_mode: perfdata::CpuMode::User,
            pid: 7,
            tid: 7,
            start: Avma(0x40_1000),
            len: 0x1000,
            pgoff: 0x1000,
            file: MappedFile::Unknown,
            prot: 5,
            flags: 2,
            ..Mmap::default()
        }
    }

    /// A mapping of the kernel whose code begins at `text`, as `perf record` and `hbbp record` write it.
    pub fn kernel_mapping(text: u64, path: &[u8]) -> Mmap<'_> {
        Mmap {
            cpu_mode: perfdata::CpuMode::Kernel,
            pid: u32::MAX,
            tid: 0,
            start: Avma(text),
            len: 0x100_0000,
            pgoff: text,
            path,
            ..Self::mapping()
        }
    }

    /// Adds a mapping, as of the time of the last sample.
    pub fn map(&mut self, mmap: &Mmap<'_>) {
        self.time += 10;
        let sample_id = SampleId { pid: Some(7), tid: Some(7), time: Some(self.time), ..SampleId::default() };
        self.writer.write_mmap2(&Mmap { sample_id, ..*mmap }).unwrap();
    }

    /// The time of the next sample.
    pub fn next_time(&self) -> u64 {
        self.time + 10
    }

    /// Adds what the recording has of code that is in no file.
    pub fn code(&mut self, code: &formats::made_code::MadeCode<'_>) {
        code.to_record_bodies().iter().for_each(|body| self.user_record(body));
    }

    /// Adds a record of the type of such code.
    pub fn user_record(&mut self, body: &[u8]) {
        self.writer.write_user_record(perfdata::RecordType(65), body).unwrap();
    }

    /// Adds an EBS sample.
    pub fn sample(&mut self, ip: u64) {
        self.write(EBS, ip, 1000, &[]);
    }

    /// Adds an EBS sample with a stack, oldest branch first.
    pub fn sample_with_stack(&mut self, ip: u64, branches: &[(u64, u64)]) {
        self.write(EBS, ip, 1000, &newest_first(branches, BranchFlags::PREDICTED));
    }

    /// Adds a stack of branches (from, to), oldest first.
    pub fn stack(&mut self, branches: &[(u64, u64)]) {
        self.stack_with(branches, BranchFlags::PREDICTED);
    }

    /// The same with other flags.
    pub fn stack_with(&mut self, branches: &[(u64, u64)], flags: BranchFlags) {
        let ip = branches.last().map_or(0, |branch| branch.1);
        self.write(LBR, ip, 100, &newest_first(branches, flags));
    }

    /// Adds a burst.
    pub fn burst(&mut self, burst: &Burst<'_>) {
        self.pieces(&[*burst]);
    }

    /// Adds a burst in pieces, oldest first.
    pub fn pieces(&mut self, pieces: &[Burst<'_>]) {
        self.time += 10;
        pieces.iter().for_each(|piece| self.piece(piece, &[]));
    }

    /// Adds a burst with the lines of data it used, as the tracer writes them.
    pub fn burst_with_data(&mut self, burst: &Burst<'_>, data: &[u8]) {
        self.time += 10;
        self.piece(burst, data);
    }

    fn piece(&mut self, piece: &Burst<'_>, raw: &[u8]) {
        let branches = newest_first(piece.branches, BranchFlags::default().with_kind(BranchKind::UNCOND));
        let weight = Some(Weight::Full(piece.instructions));
        self.write_now(&SampleFields { weight, raw, ..sample(LBR, piece.ip, piece.period, &branches) });
    }

    /// Adds an EBS sample in the kernel.
    pub fn kernel_sample(&mut self, ip: u64) {
        self.time += 10;
        self.write_now(&SampleFields { cpu_mode: perfdata::CpuMode::Kernel, ..sample(EBS, ip, 1000, &[]) });
    }

    /// Adds a branch stack of the kernel's code, oldest branch first.
    pub fn kernel_stack(&mut self, branches: &[(u64, u64)]) {
        self.time += 10;
        let ip = branches.last().map_or(0, |branch| branch.1);
        let stack = newest_first(branches, BranchFlags::PREDICTED);
        self.write_now(&SampleFields { cpu_mode: perfdata::CpuMode::Kernel, ..sample(LBR, ip, 100, &stack) });
    }

    /// Adds that a symbol of code that the kernel made came or went.
    pub fn ksymbol(&mut self, at: u64, len: u32, name: &[u8], unregister: bool) {
        let sample_id = self.happens_now();
        let symbol = Ksymbol { addr: Avma(at), len, ksym_type: 1, unregister, name, sample_id };
        self.writer.write_ksymbol(&symbol).unwrap();
    }

    /// Adds that the kernel patched its code.
    pub fn poke(&mut self, at: u64, old: &[u8], new: &[u8]) {
        let sample_id = self.happens_now();
        self.writer.write_text_poke(&TextPoke { addr: Avma(at), old, new, sample_id }).unwrap();
    }

    fn happens_now(&mut self) -> SampleId {
        self.time += 10;
        SampleId { pid: Some(7), tid: Some(7), time: Some(self.time), ..SampleId::default() }
    }

    /// Adds the kernel's word of a loss, and what `perf record` says of the same at the end.
    pub fn lose(&mut self, lost: u64, by_counters: u64) {
        let sample_id = SampleId { time: Some(self.time), ..SampleId::default() };
        self.writer.write_lost(&Lost { id: 1, lost, sample_id }).unwrap();
        self.writer.write_lost_samples(&LostSamples { lost: by_counters, ..LostSamples::default() }).unwrap();
    }

    fn write(&mut self, event: usize, ip: u64, period: u64, branches: &[Branch]) {
        self.time += 10;
        self.write_now(&sample(event, ip, period, branches));
    }

    fn write_now(&mut self, sample: &SampleFields<'_>) {
        self.writer.write_sample(&SampleFields { time: self.time, ..*sample }).unwrap();
    }

    /// The finished file's bytes.
    pub fn finish(self, features: &Features) -> Vec<u8> {
        self.writer.finish(features).unwrap().into_inner()
    }
}

fn sample(event: usize, ip: u64, period: u64, branches: &[Branch]) -> SampleFields<'_> {
    SampleFields {
        event,
        cpu_mode: perfdata::CpuMode::User,
        ip: Avma(ip),
        pid: 7,
        tid: 7,
        period,
        branches,
        ..SampleFields::default()
    }
}

fn newest_first(branches: &[(u64, u64)], flags: BranchFlags) -> Vec<Branch> {
    branches.iter().rev().map(|&(from, to)| Branch { from: Avma(from), to: Avma(to), flags }).collect()
}

/// Once around the program: A to B, D, A to C, D, A. Four streams of weight 25: A 50, B 25, C 25, D 50.
pub const AROUND: [(u64, u64); 5] = [(D_JMP, A), (B_JMP, D), (D_JMP, A), (A_JNE, C), (D_JMP, A)];
