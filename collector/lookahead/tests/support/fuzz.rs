//! Random instructions on random registers and memory: the interpreter against a single step of the CPU.

use std::collections::BTreeMap;
use std::process::Command;

use iced_x86::{
    Decoder, DecoderOptions, Encoder, FlowControl, Instruction, MandatoryPrefix, Mnemonic, OpKind, Register,
};
use lookahead::{CodeCache, Fuel, Overlay, Registers, StopReason, VectorState, undefined_flags, undefined_save};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::lockstep::{allow, differences, text};
use super::tracee::{Event, Remote, Tracee, clear_what_this_cpu_lacks};

/// Bytes of memory the instructions work on.
const REGION: usize = 4 * 4096;

#[derive(Default, Debug)]
pub struct Report {
    /// Instructions that both executed.
    pub executed: u64,
    /// Instructions at which both stopped.
    pub trapped: u64,
    pub unsupported: BTreeMap<String, u64>,
    pub divergences: BTreeMap<String, u64>,
    pub undefined: BTreeMap<String, u64>,
    pub examples: Vec<String>,
    pub mnemonics: BTreeMap<String, u64>,
}

/// A generator that is the same in all implementations, so that a seed means the same forever.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Often at the edge of a size.
    fn value(&mut self) -> u64 {
        let edge = [
            0,
            1,
            2,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            i64::MAX as u64,
            1 << 63,
        ];
        match self.below(4) {
            0 => edge[self.below(edge.len() as u64) as usize],
            1 => edge[self.below(edge.len() as u64) as usize].wrapping_neg(),
            2 => self.below(256),
            _ => self.next(),
        }
    }
}

pub fn fuzz(seed: u64, cases: u64) -> Report {
    let mut random = Random::new(seed);
    let mut bench = Bench::new();
    let mut done = 0;
    while done < cases {
        let bytes = guess(&mut random);
        done += u64::from(bench.try_out(&bytes, &mut random));
    }
    bench.report
}

/// Bytes of an input that make one case: an instruction, and the seed of the state it works on.
pub const CASE: usize = INSTRUCTION + 8;
const INSTRUCTION: usize = 15;
/// Cases of an input at most.
const CASES: usize = 16;

/// A process to try instructions in.
pub struct Bench {
    tracee: Tracee,
    start: Registers,
    code: u64,
    region: u64,
    /// What the last instruction left; the x87 unit is never in as many states as after others.
    vector: VectorState,
    pub report: Report,
}

impl Bench {
    pub fn new() -> Self {
        let mut tracee = Tracee::start(Command::new("/bin/true")).expect("/bin/true starts");
        let start = tracee.registers();
        // The code lies where the program starts; the data on its stack, well below what is in use.
        let code = start.rip & !0xfff;
        let region = (start.general[4] & !0xfff) - 16 * 4096;
        let vector = start.vector.clone();
        Self { tracee, start, code, region, vector, report: Report::default() }
    }

    /// Runs the cases of a fuzzer's input, always from the same state. Returns how many were instructions that can be tried out.
    pub fn input(&mut self, input: &[u8]) -> usize {
        self.vector = self.start.vector.clone();
        let case = |case: &[u8]| {
            let (bytes, seed) = case.split_at(INSTRUCTION);
            let seed = u64::from_le_bytes(seed.try_into().expect("8 bytes"));
            self.try_out(bytes, &mut Random::new(seed))
        };
        input.chunks_exact(CASE).take(CASES).map(case).filter(|&tried| tried).count()
    }

    /// Tries the instruction at the start of `bytes` on random registers and memory. False if it cannot be tried out here.
    fn try_out(&mut self, bytes: &[u8], random: &mut Random) -> bool {
        let Some(bytes) = aim(bytes, random) else { return false };
        let mut ours = registers(random, &self.start, self.code, self.region);
        fill_vector(random, &mut self.vector);
        ours.vector = self.vector.clone();
        aim_vector(random, &bytes, &mut ours);
        clear_what_this_cpu_lacks(&mut ours.vector);
        let mut memory = vec![0; REGION];
        for chunk in memory.chunks_exact_mut(8) {
            chunk.copy_from_slice(&random.value().to_le_bytes());
        }
        self.tracee.write(self.region, &memory);
        self.tracee.write(self.code, &bytes);
        self.tracee.set_registers(&ours);
        self.vector = one(&mut self.tracee, &bytes, ours, self.region, &memory, &mut self.report);
        true
    }
}

fn one(
    tracee: &mut Tracee,
    bytes: &[u8],
    mut ours: Registers,
    region: u64,
    memory: &[u8],
    report: &mut Report,
) -> VectorState {
    let before = ours.clone();
    let instruction = Decoder::with_ip(64, bytes, ours.rip, DecoderOptions::NONE).decode();
    let name = format!("{:?}", instruction.mnemonic());
    let (mut cache, mut overlay) = (CodeCache::new(1024), Overlay::new(64));
    let fuel = Fuel { instructions: 1, branches: 2 };
    let outcome = lookahead::run(&mut ours, &mut overlay, &mut Remote(tracee), &mut cache, fuel, &[], &mut Vec::new());
    if let StopReason::Unsupported(_) | StopReason::SystemCall | StopReason::Interrupt = outcome.stop {
        *report.unsupported.entry(name).or_default() += 1;
        return before.vector;
    }
    *report.mnemonics.entry(name.clone()).or_default() += 1;
    let mut event = tracee.step(0);
    let mut repetitions = 0;
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    while repeated
        && instruction.is_string_instruction()
        && event == Event::Stopped(libc::SIGTRAP)
        && tracee.registers_rip() == before.rip
        && repetitions < 100
    {
        event = tracee.step(0);
        repetitions += 1;
    }
    let mut wrong = Vec::new();
    let executed = event == Event::Stopped(libc::SIGTRAP);
    if instruction.flow_control() != FlowControl::Next && (ours.rip as i64) << 16 >> 16 != ours.rip as i64 {
        // The CPU faults at a branch to an address that cannot exist, the interpreter after it.
        return before.vector;
    }
    let theirs = tracee.registers();
    let beside =
        matches!(outcome.stop, StopReason::Fault { address } if !(region..region + REGION as u64).contains(&address.0));
    if executed && beside {
        // The kernel lets the stack grow down to where a bit string reached.
        report.trapped += 1;
    } else if executed != (outcome.instructions == 1) {
        wrong.push(format!("CPU {event:?}, ours {:?}", outcome.stop));
    } else if executed {
        report.executed += 1;
        let undefined = undefined_flags(bytes);
        if (ours.rflags ^ theirs.rflags) & undefined != 0 {
            let count = report.undefined.entry(name.clone()).or_default();
            *count += 1;
            if *count <= 2 && std::env::var_os("LOOKAHEAD_UNDEFINED").is_some() {
                eprintln!(
                    "{}: before {:x} ours {:x} theirs {:x}",
                    text(&instruction),
                    before.rflags,
                    ours.rflags,
                    theirs.rflags
                );
            }
            ours.rflags = (ours.rflags & !undefined) | (theirs.rflags & undefined);
        }
        wrong = differences(&ours, &theirs);
    } else {
        report.trapped += 1;
    }
    let mut expected = memory.to_vec();
    for (address, page) in overlay.written() {
        match address.0.checked_sub(region).map(|at| at as usize).filter(|&at| at < REGION) {
            Some(at) => expected[at..at + 4096].copy_from_slice(&page),
            None if !executed => {}
            None => {
                let mut theirs = [0; 4096];
                if !tracee.read(address.0, &mut theirs) || theirs != page {
                    wrong.push(format!("wrote to {address}"));
                }
            }
        }
    }
    let mut found = vec![0; REGION];
    assert!(tracee.read(region, &mut found), "the stack is there");
    if let Some(save) = undefined_save(bytes, &before).filter(|_| executed) {
        allow(&save, region, &mut expected, &found);
    }
    if let Some(at) = (0..REGION).find(|&at| found[at] != expected[at]) {
        wrong.push(format!("memory +{at:#x} {:02x} instead of {:02x}", expected[at], found[at]));
    }
    if !wrong.is_empty() {
        *report.divergences.entry(name.clone()).or_default() += 1;
        if report.divergences[&name] <= 2 && report.examples.len() < 60 {
            report.examples.push(format!(
                "{} ({bytes:02x?}) flags {:x} rcx {:x}: {}",
                text(&instruction),
                before.rflags,
                before.general[1],
                wrong.join(", ")
            ));
        }
    }
    if executed { theirs.vector } else { before.vector }
}

const POINTERS: [usize; 6] = [3, 5, 6, 7, 8, 9];

fn registers(random: &mut Random, start: &Registers, code: u64, region: u64) -> Registers {
    let mut registers = start.clone();
    for register in &mut registers.general {
        *register = random.value();
    }
    for index in POINTERS {
        let aligned = if random.below(2) == 0 { !63 } else { !0 };
        registers.general[index] = region + ((4096 + random.below(8192)) & aligned);
    }
    registers.general[1] = random.below(60);
    registers.general[4] = region + 8192 + 8 * random.below(64);
    registers.rip = code;
    // Status flags, and now and then the direction.
    registers.rflags = 0x202 | (random.next() & 0x8d5) | if random.below(8) == 0 { 0x400 } else { 0 };
    registers
}

/// A part of the registers anew; the rest, and the x87 unit, as the last instruction left them.
fn fill_vector(random: &mut Random, vector: &mut VectorState) {
    for register in &mut vector.zmm {
        if random.below(3) == 0 {
            for chunk in register.chunks_exact_mut(8) {
                let value = match random.below(4) {
                    0 => (random.below(2000) as f64 - 1000.0).to_bits(),
                    1 => u64::from((random.below(2000) as f32 / 7.0).to_bits()) * 0x1_0000_0001,
                    _ => random.value(),
                };
                chunk.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    for mask in &mut vector.mask {
        *mask = random.next();
    }
    vector.mxcsr = 0x1f80 | (random.next() as u32 & 0x6000);
    // Exceptions of the x87 unit stay masked, as a program has them.
    vector.x87[0] |= 0x3f;
    vector.x87[2] = 0;
}

/// Makes the vector of offsets of a gather or scatter lead to the data.
fn aim_vector(random: &mut Random, bytes: &[u8], registers: &mut Registers) {
    let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    if !instruction.is_vsib() {
        return;
    }
    let index = &mut registers.vector.zmm[instruction.memory_index().number()];
    let wide = instruction.is_vsib64();
    for chunk in index.chunks_exact_mut(if wide { 8 } else { 4 }) {
        let offset = random.below(1000) as i64 - 500;
        chunk.copy_from_slice(&offset.to_le_bytes()[..chunk.len()]);
    }
}

/// Bytes that are likely to be an instruction.
fn guess(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    match random.below(10) {
        0..=2 => {
            // one byte
            if random.below(5) == 0 {
                bytes.push([0x66, 0xf2, 0xf3, 0xf0, 0x67][random.below(5) as usize]);
            }
            if random.below(2) == 0 {
                bytes.push(0x40 | random.below(16) as u8);
            }
        }
        3..=5 => {
            if random.below(2) == 0 {
                bytes.push([0x66, 0xf2, 0xf3, 0xf0][random.below(4) as usize]);
            }
            if random.below(2) == 0 {
                bytes.push(0x40 | random.below(16) as u8);
            }
            bytes.push(0x0f);
            match random.below(4) {
                0 => bytes.push(0x38),
                1 => bytes.push(0x3a),
                _ => {}
            }
        }
        6..=7 => {
            bytes.push(0xc4);
            bytes.push((random.next() as u8 & 0xe0) | (1 + random.below(3) as u8));
            bytes.push(random.next() as u8);
        }
        _ => {
            bytes.push(0x62);
            bytes.push((random.next() as u8 & 0xf0) | (1 + random.below(3) as u8));
            bytes.push(random.next() as u8 | 4);
            bytes.push(random.next() as u8);
        }
    }
    if matches!(bytes.first(), Some(0xc4 | 0x62)) && random.below(20) == 0 {
        // Gathers, and with EVEX scatters: map 2, opcodes 90 to 93 and a0 to a3, with an index in a SIB byte.
        let scatter = if bytes[0] == 0x62 && random.below(2) == 0 { 0x10 } else { 0 };
        bytes[1] = (bytes[1] & 0xf0) | 2;
        let last = if bytes[0] == 0xc4 { 2 } else { 3 };
        let field = last - usize::from(bytes[0] == 0x62);
        bytes[field] = (bytes[field] & 0xfc) | 1;
        bytes.push(0x90 + scatter + random.below(4) as u8);
        bytes.push(0x04 | (random.next() as u8 & 0x38));
    }
    for _ in 0..10 {
        bytes.push(random.next() as u8);
    }
    bytes.truncate(INSTRUCTION);
    bytes
}

/// The instruction at the start of `bytes` with its memory operand where the data is; `None` if it would leave the process.
fn aim(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
    if instruction.is_invalid() || !wanted(&instruction) {
        return None;
    }
    let memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    if memory && instruction.is_vsib() {
        instruction.set_memory_base(Register::RAX + POINTERS[random.below(POINTERS.len() as u64) as usize] as u32);
        instruction.set_memory_displ_size(0);
        instruction.set_memory_displacement64(0);
        instruction.set_segment_prefix(Register::None);
    } else if memory {
        let base = POINTERS[random.below(POINTERS.len() as u64) as usize] as u32;
        instruction.set_memory_base(Register::RAX + base);
        instruction.set_memory_index(if random.below(3) == 0 { Register::RCX } else { Register::None });
        instruction.set_memory_index_scale(1 << random.below(4));
        let displacement = if random.below(3) == 0 { random.below(256) as i64 - 128 } else { 0 };
        instruction.set_memory_displ_size(8);
        instruction.set_memory_displacement64(displacement as u64);
        instruction.set_segment_prefix(Register::None);
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&instruction, 0x1000).ok()?;
    let bytes = encoder.take_buffer();
    // What comes out must be what was meant, and not a shorter instruction with another prefix.
    let again = Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE).decode();
    (again.code() == instruction.code() && instruction.op_code().mandatory_prefix() != MandatoryPrefix::PNP
        || again.code() == instruction.code())
    .then_some(bytes)
}

fn wanted(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let world = matches!(
        instruction.mnemonic(),
        // The single step shows in what `pushf` stores; what `popf` sets could not be cleared again.
        M::Pushf
            | M::Pushfq
            | M::Popf
            | M::Popfq
            | M::Rdtsc
            | M::Rdtscp
            | M::Rdpid
            | M::Rdrand
            | M::Rdseed
            | M::Cpuid
            | M::Xgetbv
            | M::Rdpru
            | M::Rdpmc
            | M::Rdfsbase
            | M::Rdgsbase
    );
    // Prefixes and encodings that no assembler makes, and that CPUs take differently.
    let odd = ((instruction.is_loop() || instruction.is_loopcc())
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix()))
        || matches!(instruction.mnemonic(), M::Nop | M::Reservednop);
    !world
        && !odd
        && !instruction.op_code().is_privileged()
        && !matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::XbeginXabortXend)
        && (0..instruction.op_count()).all(|operand| {
            !matches!(instruction.op_kind(operand), OpKind::FarBranch16 | OpKind::FarBranch32)
                && !instruction.op_register(operand).is_segment_register()
        })
        && !matches!(instruction.memory_segment(), Register::FS | Register::GS)
}
