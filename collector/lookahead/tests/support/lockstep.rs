//! Runs the interpreter beside the CPU, one instruction at a time, and compares everything.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, Mnemonic, NasmFormatter};
use lookahead::{CodeCache, Fuel, Overlay, Registers, StopReason, UndefinedSave, undefined_flags, undefined_save};

use super::tracee::{Event, Remote, Tracee};

/// Flags of the debugger, not of the program: TF and RF.
const DEBUG_FLAGS: u64 = (1 << 8) | (1 << 16);

/// What was seen in all steps.
#[derive(Default, Debug)]
pub struct Report {
    pub steps: u64,
    /// Mnemonic to number of divergences.
    pub divergences: BTreeMap<String, u64>,
    /// The first few, in full.
    pub examples: Vec<String>,
    /// Stops that are no fault of the interpreter.
    pub stops: BTreeMap<String, u64>,
    pub unsupported: BTreeMap<String, u64>,
    /// Differences in flags that the manuals leave undefined.
    pub undefined: BTreeMap<String, u64>,
    pub instructions: BTreeMap<String, u64>,
}

impl Report {
    pub fn add(&mut self, other: Report) {
        self.steps += other.steps;
        self.examples.extend(other.examples);
        for (into, from) in [
            (&mut self.divergences, other.divergences),
            (&mut self.stops, other.stops),
            (&mut self.unsupported, other.unsupported),
            (&mut self.undefined, other.undefined),
            (&mut self.instructions, other.instructions),
        ] {
            for (key, count) in from {
                *into.entry(key).or_default() += count;
            }
        }
    }

    pub fn unsupported_count(&self) -> u64 {
        self.unsupported.values().sum()
    }

    fn diverged(&mut self, what: &str, example: String) {
        *self.divergences.entry(what.to_string()).or_default() += 1;
        if self.examples.len() < 12 {
            self.examples.push(example);
        }
    }
}

/// How much to compare: `windows` of `steps` instructions, with the program running freely for `pause` in between.
#[derive(Clone, Copy)]
pub struct Plan {
    pub steps: u64,
    pub windows: u32,
    pub pause: Duration,
}

struct Known {
    instruction: Instruction,
    undefined: u64,
    bytes: [u8; 15],
}

pub fn lockstep(tracee: &mut Tracee, plan: Plan) -> Report {
    let mut report = Report::default();
    let mut cache = CodeCache::new(1 << 20);
    let mut overlay = Overlay::new(65536);
    let mut known = HashMap::new();
    for window in 0..plan.windows {
        if window > 0 && !tracee.run_for(plan.pause) {
            break;
        }
        if !one_window(tracee, plan.steps, &mut report, &mut cache, &mut overlay, &mut known) {
            break;
        }
        // The program may map other code while it runs freely.
        cache.clear();
        known.clear();
    }
    report
}

/// False if the program has ended.
fn one_window(
    tracee: &mut Tracee,
    steps: u64,
    report: &mut Report,
    cache: &mut CodeCache,
    overlay: &mut Overlay,
    known: &mut HashMap<u64, Known>,
) -> bool {
    overlay.clear();
    let mut ours = tracee.registers();
    let mut branches = Vec::new();
    let mut signal = 0;
    if std::env::var_os("LOOKAHEAD_WINDOWS").is_some() {
        eprintln!("window at {:#x} {}", ours.rip, tracee.mapping(ours.rip));
    }
    for step in 0..steps {
        let (rip, before) = (ours.rip, ours.rflags);
        let &mut Known { instruction, undefined, bytes } = known.entry(rip).or_insert_with(|| decode(tracee, rip));
        let save = undefined_save(&bytes, &ours);
        branches.clear();
        let mut outcome;
        let mut rounds = 0;
        loop {
            let fuel = Fuel { instructions: 1, branches: u64::MAX };
            outcome = lookahead::run(&mut ours, overlay, &mut Remote(tracee), cache, fuel, &[], &mut branches);
            rounds += 1;
            // A long repetition uses up its fuel before it is done.
            if outcome.instructions == 1 || outcome.stop != StopReason::Fuel || rounds > 100_000 {
                break;
            }
        }
        report.steps += 1;
        let name = format!("{:?}", instruction.mnemonic());
        *report.instructions.entry(name.clone()).or_default() += 1;
        let executed = outcome.instructions == 1;
        if !executed {
            compare_memory(tracee, overlay, rip, report);
        }
        let mut event = tracee.step(std::mem::take(&mut signal));
        if executed && ours.rip != rip && instruction.is_string_instruction() {
            let mut repetitions = 0u64;
            while event == Event::Stopped(libc::SIGTRAP) && tracee.registers_rip() == rip && repetitions < 100_000_000 {
                event = tracee.step(0);
                repetitions += 1;
            }
        }
        match event {
            Event::Gone => return false,
            Event::Stopped(libc::SIGTRAP) => {}
            Event::Stopped(other) => {
                signal = other;
                *report.stops.entry("signal".into()).or_default() += 1;
                overlay.clear();
                ours = tracee.registers();
                continue;
            }
        }
        let theirs = tracee.registers();
        if !executed {
            match outcome.stop {
                StopReason::Unsupported(_) => *report.unsupported.entry(name).or_default() += 1,
                StopReason::Fault { .. } => *report.stops.entry(format!("Fault at {name}")).or_default() += 1,
                other => *report.stops.entry(format!("{other:?}")).or_default() += 1,
            }
            if outcome.stop == StopReason::SelfModifying {
                cache.clear();
                known.clear();
            }
            if outcome.stop == StopReason::SystemCall {
                forget_if_mapped(&ours, cache, known);
            }
            overlay.clear();
            ours = theirs;
            continue;
        }
        if reads_the_world(instruction.mnemonic()) {
            *report.stops.entry(name).or_default() += 1;
            overlay.clear();
            ours = theirs;
            continue;
        }
        if (ours.rflags ^ theirs.rflags) & undefined != 0 {
            let count = report.undefined.entry(name.clone()).or_default();
            *count += 1;
            if *count <= 2 && std::env::var_os("LOOKAHEAD_UNDEFINED").is_some() {
                eprintln!(
                    "{}: before {before:x} ours {:x} theirs {:x}",
                    text(&instruction),
                    ours.rflags,
                    theirs.rflags
                );
            }
            ours.rflags = (ours.rflags & !undefined) | (theirs.rflags & undefined);
        }
        if let Some(save) = save {
            if compare_save(tracee, overlay, &save) {
                *report.undefined.entry(name.clone()).or_default() += 1;
            }
            compare_written(tracee, overlay, theirs.rip, Some(&save), report);
            overlay.clear();
        }
        let differences = differences(&ours, &theirs);
        if step % 1000 == 999 && differences.is_empty() {
            compare_memory(tracee, overlay, theirs.rip, report);
        }
        if !differences.is_empty() {
            report.diverged(&name, format!("{rip:#x} {}: {}", text(&instruction), differences.join(", ")));
            overlay.clear();
            ours = theirs;
        }
    }
    true
}

/// `mmap`, `munmap`, `mprotect` and `mremap` may change the code.
fn forget_if_mapped(registers: &Registers, cache: &mut CodeCache, known: &mut HashMap<u64, Known>) {
    if matches!(registers.general[0], 9 | 10 | 11 | 25 | 59) {
        cache.clear();
        known.clear();
    }
}

/// Instructions whose result differs from one moment or CPU to the next.
fn reads_the_world(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Cpuid | Mnemonic::Rdpid)
}

fn decode(tracee: &Tracee, rip: u64) -> Known {
    let mut bytes = [0; 15];
    if !tracee.read(rip, &mut bytes) {
        let in_page = (4096 - (rip & 0xfff)).min(15) as usize;
        let _ = tracee.read(rip, &mut bytes[..in_page]);
    }
    Known {
        instruction: Decoder::with_ip(64, &bytes, rip, DecoderOptions::NONE).decode(),
        undefined: undefined_flags(&bytes),
        bytes,
    }
}

pub fn text(instruction: &Instruction) -> String {
    let mut text = String::new();
    NasmFormatter::new().format(instruction, &mut text);
    text
}

fn compare_memory(tracee: &Tracee, overlay: &Overlay, rip: u64, report: &mut Report) {
    compare_written(tracee, overlay, rip, None, report);
}

/// Compares every page written so far, but for what `save` leaves to the CPU.
fn compare_written(tracee: &Tracee, overlay: &Overlay, rip: u64, save: Option<&UndefinedSave>, report: &mut Report) {
    for (address, page) in overlay.written() {
        let mut theirs = [0; 4096];
        if !tracee.read(address.0, &mut theirs) {
            report.diverged("memory", format!("before {rip:#x}: page {address} is not there"));
            continue;
        }
        let mut ours = page;
        if let Some(save) = save {
            allow(save, address.0, &mut ours, &theirs);
        }
        if let Some(at) = (0..4096).find(|&at| theirs[at] != ours[at]) {
            let example = format!(
                "before {rip:#x}: memory at {:#x} is {:02x}, ours {:02x}",
                address.0 + at as u64,
                theirs[at],
                ours[at]
            );
            report.diverged("memory", example);
        }
    }
}

/// Whether the CPU has stored something else than the interpreter where it may.
fn compare_save(tracee: &Tracee, overlay: &Overlay, save: &UndefinedSave) -> bool {
    overlay.written().any(|(address, page)| {
        let mut theirs = [0; 4096];
        let mut ours = page;
        tracee.read(address.0, &mut theirs) && {
            allow(save, address.0, &mut ours, &theirs);
            ours != page
        }
    })
}

/// Takes from `theirs`, a page at `start`, what the manuals leave to the CPU.
pub fn allow(save: &UndefinedSave, start: u64, ours: &mut [u8], theirs: &[u8]) {
    let mut take = |address: u64, mask: u8| {
        if let Some(at) = address.checked_sub(start).map(|at| at as usize).filter(|&at| at < ours.len()) {
            ours[at] = (ours[at] & !mask) | (theirs[at] & mask);
        }
    };
    for (index, mask) in save.either.to_le_bytes().into_iter().enumerate() {
        take(save.state_bits.0 + index as u64, mask);
    }
    for address in save.bytes.iter().flat_map(|bytes| bytes.start.0..bytes.end.0) {
        take(address, 0xff);
    }
}

/// Every register that differs.
pub fn differences(ours: &Registers, theirs: &Registers) -> Vec<String> {
    const NAMES: [&str; 16] =
        ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    let mut found = Vec::new();
    let mut check = |name: &str, ours: u64, theirs: u64| {
        if ours != theirs {
            found.push(format!("{name} {ours:#x} instead of {theirs:#x}"));
        }
    };
    for (index, name) in NAMES.iter().enumerate() {
        check(name, ours.general[index], theirs.general[index]);
    }
    check("rip", ours.rip, theirs.rip);
    check("rflags", ours.rflags & !DEBUG_FLAGS, theirs.rflags & !DEBUG_FLAGS);
    check("fs_base", ours.fs_base, theirs.fs_base);
    check("gs_base", ours.gs_base, theirs.gs_base);
    let (a, b) = (&ours.vector, &theirs.vector);
    check("mxcsr", a.mxcsr.into(), b.mxcsr.into());
    for index in 0..8 {
        check(&format!("k{index}"), a.mask[index], b.mask[index]);
    }
    for index in 0..32 {
        if a.zmm[index] != b.zmm[index] {
            found.push(format!("zmm{index} {:02x?} instead of {:02x?}", a.zmm[index], b.zmm[index]));
        }
    }
    // Control, status and tag word, and the registers; the last instruction's addresses (bytes 6 to 23) are not kept by CPUs alike.
    for range in [0..5, 32..160] {
        if a.x87[range.clone()] != b.x87[range.clone()] {
            found.push(format!("x87 {:02x?} instead of {:02x?}", &a.x87[range.clone()], &b.x87[range]));
        }
    }
    found
}
