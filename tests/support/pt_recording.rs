//! A program, random paths through it with their packets, and recordings of these as `perf record -e intel_pt//u` makes them.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use perfdata::{
    AttrFlags, Auxtrace, Avma, EventAttr, EventDescription, Features, Mmap, RecordType, SampleFormat, SampleId, Writer,
};

use crate::pt_packets::{Packets, Style};

const BASE: u64 = 0x40_1000;

/// Calls, returns, jumps of all kinds, and system calls.
const SOURCE: &str = "
.globl _start
.type _start, @function
_start:
1:  nop
    call leaf
    jne 2f
    call recursive
    nop
2:  je 1b
    call *%rax
    jmp 3f
    nop
3:  jmp *%rdx
.size _start, .-_start
.type leaf, @function
leaf:
    nop
    jne 4f
    ret
4:  nop
    syscall
    nop
    jmp 5f
    nop
5:  ret
.size leaf, .-leaf
.type recursive, @function
recursive:
    call 6f
6:  pop %rcx
    jne 7f
    call recursive
    call *%rax
7:  ret
.size recursive, .-recursive
.section .note.GNU-stack,\"\",@progbits
";

/// The program.
pub struct Traced {
    pub binary: PathBuf,
    code: Vec<u8>,
    functions: [u64; 3],
}

impl Traced {
    /// `None`, said loudly, without a C compiler.
    pub fn assemble(folder: &Path) -> Option<Self> {
        Self::assemble_source(folder, SOURCE)
    }

    /// Another one, without functions of these names.
    pub fn assemble_source(folder: &Path, text: &str) -> Option<Self> {
        let (source, binary) = (folder.join("traced.s"), folder.join("traced"));
        std::fs::write(&source, text).unwrap();
        let flags = ["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000", "-o"];
        let status = Command::new("gcc").args(flags).arg(&binary).arg(&source).status();
        if !status.is_ok_and(|status| status.success()) {
            testing::skip!(Tool, "gcc cannot assemble the test program");
            return None;
        }
        let file = std::fs::read(&binary).unwrap();
        let code = file[0x1000..].to_vec();
        let text = Command::new("nm").arg(&binary).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        let at = |name: &str| {
            let line = text.lines().find(|line| line.ends_with(&format!(" {name}")));
            line.map_or(BASE, |line| u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap())
        };
        Some(Self { functions: ["_start", "leaf", "recursive"].map(at), binary, code })
    }

    /// The functions, by name.
    pub fn places(&self) -> [(&'static str, Range<u64>); 3] {
        let [start, leaf, recursive] = self.functions;
        [("_start", start..leaf), ("leaf", leaf..recursive), ("recursive", recursive..u64::MAX)]
    }

    /// The block that ends in the system call of `leaf`.
    pub fn last_line(&self) -> u64 {
        // nop; jne 4f (2 bytes); ret
        self.functions[1] + 4
    }

    fn instruction(&self, at: u64) -> Instruction {
        Decoder::with_ip(64, &self.code[(at - BASE) as usize..], at, DecoderOptions::NONE).decode()
    }
}

/// A thread that takes a random path.
pub struct Thread<'a> {
    traced: &'a Traced,
    random: fastrand::Rng,
    pub packets: Packets,
    pub executed: BTreeMap<u64, u64>,
    at: u64,
    stack: Vec<u64>,
    /// What the kernel does is in the trace, too.
    pub traces_kernel: bool,
}

impl<'a> Thread<'a> {
    pub fn new(traced: &'a Traced, style: Style, seed: u64) -> Self {
        let (packets, random) = (Packets::new(style), fastrand::Rng::with_seed(seed));
        Self {
            traced,
            random,
            packets,
            executed: BTreeMap::new(),
            at: traced.functions[0],
            stack: Vec::new(),
            traces_kernel: false,
        }
    }

    /// The first that it executes.
    pub fn begin(&mut self) {
        self.packets.sync(None);
        self.packets.on(self.at);
    }

    /// Executes so many instructions and a few more, to the next taken branch.
    pub fn walk(&mut self, instructions: usize) {
        let mut done = 0;
        loop {
            let taken = self.step();
            done += 1;
            if taken && done >= instructions {
                break;
            }
        }
        self.packets.end();
    }

    fn any_function(&mut self) -> u64 {
        self.traced.functions[self.random.usize(1..3)]
    }

    /// Executes one instruction. Returns whether it took a branch.
    fn step(&mut self) -> bool {
        let instruction = self.traced.instruction(self.at);
        match self.random.u8(..) {
            0 => self.packets.sync(Some(self.at)),
            1 if self.traces_kernel => {
                self.packets.interrupted_by(self.at, KERNEL + 0x200);
                self.packets.bit(true);
                self.packets.indirect(self.at);
            }
            1 => {
                self.packets.interrupted(self.at);
                self.packets.on(self.at);
            }
            number @ 2..8 => self.packets.noise(number),
            _ => {}
        }
        *self.executed.entry(self.at).or_default() += 1;
        let (after, target) = (instruction.next_ip(), instruction.near_branch_target());
        let to = match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                // Deep recursion is rare.
                let taken = self.random.u8(..) < if self.stack.len() > 80 { 250 } else { 140 };
                self.packets.bit(taken);
                if taken { target } else { after }
            }
            FlowControl::UnconditionalBranch => target,
            FlowControl::Call if instruction.code() == Code::Syscall => {
                if self.traces_kernel {
                    self.packets.indirect(KERNEL);
                    self.packets.bit(true);
                    self.packets.bit(false);
                    self.packets.indirect(KERNEL + 0x100);
                    self.packets.indirect(after);
                } else {
                    self.packets.off();
                    self.packets.on(after);
                }
                after
            }
            FlowControl::Call => {
                // A call of what comes next is none.
                if target != after {
                    self.packets.call(after);
                    self.stack.push(after);
                }
                target
            }
            FlowControl::IndirectCall => {
                let to = self.any_function();
                self.packets.call_indirect(to, after);
                self.stack.push(after);
                to
            }
            FlowControl::IndirectBranch => {
                let to = self.traced.functions[0];
                self.packets.indirect(to);
                to
            }
            FlowControl::Return => {
                // Now and then it goes elsewhere, as after longjmp(3).
                let to = self.stack.pop().filter(|_| self.random.u8(..) > 4).unwrap_or(self.traced.functions[0]);
                self.packets.returns(to);
                to
            }
            _ => after,
        };
        self.at = to;
        to != after || instruction.flow_control() == FlowControl::Call && instruction.code() != Code::Syscall
    }

    /// What is to be written of the last instructions is lost; an interrupt comes.
    pub fn lose(&mut self) {
        self.packets.overflow_and_interrupt(self.at);
        self.packets.on(self.at);
    }

    /// Another thread gets the CPU.
    pub fn stop(&mut self) {
        self.packets.interrupted(self.at);
    }

    /// It has it again.
    pub fn go_on(&mut self, is_first_of_cpu: bool) {
        if is_first_of_cpu {
            self.packets.sync(None);
        }
        self.packets.on(self.at);
    }

    /// A signal comes; its handler makes some steps and ends in a system call.
    pub fn handle_signal(&mut self) {
        // The handler is no function of the program's.
        while self.at == self.traced.functions[1] {
            self.step();
        }
        self.packets.interrupted(self.at);
        let interrupted = std::mem::replace(&mut self.at, self.traced.functions[1]);
        self.packets.on(self.at);
        while self.traced.instruction(self.at).code() != Code::Syscall {
            self.step();
        }
        *self.executed.entry(self.at).or_default() += 1;
        self.packets.off();
        self.at = interrupted;
        self.packets.on(self.at);
    }
}

/// A recording of process 7.
pub struct PtRecording {
    writer: Writer<Cursor<Vec<u8>>>,
    time: u64,
    /// How much of the area of each CPU is filled.
    offsets: BTreeMap<u32, u64>,
    copies: Vec<(u32, u64, Vec<u8>)>,
}

const PMU: u32 = 8;
/// Somewhere in the kernel.
const KERNEL: u64 = 0xffff_ffff_8120_0000;

impl PtRecording {
    pub fn new(traced: &Traced) -> Self {
        let format =
            SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::CPU;
        let attr = |kind, config, flags| EventAttr {
            kind,
            config,
            sample_period_or_freq: 1,
            sample_format: format,
            flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV | flags,
            ..EventAttr::default()
        };
        let events = [
            EventDescription {
                attr: attr(PMU, 0x300_e601, AttrFlags::DISABLED),
                name: "intel_pt//u".into(),
                ids: vec![1],
            },
            EventDescription {
                attr: attr(1, 9, AttrFlags::MMAP | AttrFlags::COMM | AttrFlags::TASK),
                name: "dummy:u".into(),
                ids: vec![2],
            },
        ];
        let mut writer = Writer::create(Cursor::new(Vec::new()), &events).unwrap();
        // Type, PMU type, time shift, multiplier, zero, cap_user_time_zero, TSC bit, NoRETComp bit, have_sched_switch, snapshot mode, per-CPU
        // maps, MTC bit, MTC frequency bits, TSC to CTC, CYC bit, largest non-turbo ratio, filter length (tools/perf/util/intel-pt.h).
        let words: [u64; 17] = [1, PMU.into(), 0, 1, 0, 1, 0x400, 0x800, 0, 0, 1, 0x200, 0x3c000, 84, 2, 2, 36];
        let body: Vec<u8> = words.iter().chain(&[0]).flat_map(|word| word.to_le_bytes()).collect();
        writer.write_user_record(RecordType::AUXTRACE_INFO, &body).unwrap();
        let mapping = Mmap {
            pid: 7,
            tid: 7,
            start: Avma(BASE),
            len: 0x1000,
            pgoff: 0x1000,
            prot: 5,
            flags: 2,
            cpu_mode: perfdata::CpuMode::User,
            path: traced.binary.to_str().unwrap().as_bytes(),
            sample_id: id(7, 0, 1),
            ..Mmap::default()
        };
        writer.write_mmap2(&mapping).unwrap();
        Self { writer, time: 10, offsets: BTreeMap::new(), copies: Vec::new() }
    }

    /// All that a thread did, copied in so many parts.
    pub fn of(thread: &Thread<'_>, parts: usize) -> Self {
        let mut recording = Self::new(thread.traced);
        let bytes = &thread.packets.bytes;
        recording.aux(7, 0, bytes.len() as u64);
        bytes.chunks(bytes.len().div_ceil(parts).max(1)).for_each(|part| recording.copy(0, part.to_vec()));
        recording
    }

    /// What a thread did on a CPU, until another one got it.
    pub fn filled(&mut self, tid: u32, cpu: u32, bytes: Vec<u8>) {
        self.aux(tid, cpu, bytes.len() as u64);
        self.copy(cpu, bytes);
    }

    /// Whether nothing was traced on a CPU yet.
    pub fn is_empty(&self, cpu: u32) -> bool {
        !self.offsets.contains_key(&cpu)
    }

    fn copy(&mut self, cpu: u32, bytes: Vec<u8>) {
        let offset = self.offsets.entry(cpu).or_default();
        self.copies.push((cpu, *offset, bytes.clone()));
        *offset += bytes.len() as u64;
    }

    fn aux(&mut self, tid: u32, cpu: u32, size: u64) {
        self.time += 10;
        let offset = self.offsets.get(&cpu).copied().unwrap_or(0);
        // pid, tid, time, CPU, identifier.
        let words = [offset, size, 0, u64::from(tid) << 32 | 7, self.time, cpu.into(), 1];
        let mut record = [11_u32.to_le_bytes().as_slice(), &[0, 0, 64, 0]].concat();
        record.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.writer.write_raw(&record).unwrap();
    }

    pub fn finish(mut self) -> Vec<u8> {
        for (cpu, offset, bytes) in &self.copies {
            let auxtrace = Auxtrace { offset: *offset, idx: *cpu, tid: 7, cpu: *cpu, ..Auxtrace::default() };
            self.writer.write_aux_data(&auxtrace, bytes).unwrap();
        }
        let features = Features {
            cpuid: Some("GenuineIntel,6,78,3".into()),
            arch: Some("x86_64".into()),
            nr_cpus: Some((2, 2)),
            ..Features::default()
        };
        self.writer.finish(&features).unwrap().into_inner()
    }
}

fn id(tid: u32, cpu: u32, time: u64) -> SampleId {
    SampleId {
        pid: Some(7),
        tid: Some(tid),
        time: Some(time),
        cpu: Some(cpu),
        identifier: Some(2),
        ..SampleId::default()
    }
}
