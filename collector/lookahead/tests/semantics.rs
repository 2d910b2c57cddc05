//! Single instructions: state before, bytes, state after, one case per line of `semantics.txt`.

mod support;

use lookahead::{CodeCache, Fuel, Overlay, Registers, StopReason, run};
use support::pages::Pages;
use support::tracee::{Event, Tracee, clear_what_this_cpu_lacks};
use testing::Alone;

const CODE: u64 = 0x40_0000;
const DATA: u64 = 0xd0_0000;
const NAMES: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
const FLAGS: [(&str, u64); 7] =
    [("CF", 1), ("PF", 4), ("AF", 16), ("ZF", 64), ("SF", 128), ("DF", 1 << 10), ("OF", 1 << 11)];

#[test]
fn every_line_holds() {
    let mut failures = Vec::new();
    let mut cases = 0;
    let mut cache = CodeCache::new(1024);
    for case in cases_for_this_cpu() {
        cases += 1;
        cache.clear();
        if let Err(why) = check(&case, &mut cache) {
            failures.push(format!("{}\n    {why}", case.line));
        }
    }
    assert!(cases > 200, "{cases} cases");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// What the lines expect is what this CPU does: their instructions are executed by a traced process.
#[test]
fn the_cpu_does_what_the_lines_say() {
    let _alone = Alone::wait();
    let mut tracee = match Tracee::start(std::process::Command::new("/bin/true")) {
        Ok(tracee) => tracee,
        Err(error) => {
            testing::skip!(NoTracing, "cannot trace /bin/true: {error}");
            return;
        }
    };
    tracee.map(CODE, 0x1000);
    tracee.map(DATA, 0x2000);
    let mut failures = Vec::new();
    for case in cases_for_this_cpu() {
        if let Err(why) = check_cpu(&mut tracee, &case) {
            failures.push(format!("{}\n    {why}", case.line));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

struct Case {
    line: &'static str,
    code: Vec<u8>,
    before: &'static str,
    after: &'static str,
}

impl Case {
    fn state(&self) -> State {
        let mut state = State { registers: Registers::default(), data: vec![0; 0x2000], stop: None };
        state.registers.rip = CODE;
        state.registers.general[6] = DATA;
        state.apply(self.before);
        clear_what_this_cpu_lacks(&mut state.registers.vector);
        state
    }

    /// The state after the instruction. Arithmetic clears the flags that the line does not name; other instructions keep them.
    fn expected(&self) -> State {
        let mut state = self.state();
        let kept = state.registers.rflags;
        state.apply(self.after);
        if self.after.contains("flags=") {
            state.registers.rflags |= kept & (1 << 10);
        }
        if state.stop.is_none() {
            state.registers.rip += self.code.len() as u64;
        }
        state
    }
}

/// The cases whose instructions this CPU has.
fn cases_for_this_cpu() -> Vec<Case> {
    let lines = include_str!("semantics.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let cases = lines.map(|line| {
        let fields: Vec<&str> = line.split(';').collect();
        let [_, code, before, after] = fields[..] else { panic!("four fields expected: {line}") };
        let code = code.split_whitespace().map(|b| u8::from_str_radix(b, 16).expect("hex")).collect();
        Case { line, code, before, after }
    });
    let runs = |case: &Case| case.before.split_whitespace().filter_map(|item| item.strip_prefix("needs=")).all(has);
    let (there, missing): (Vec<Case>, Vec<Case>) = cases.partition(runs);
    for case in missing {
        testing::skip!(CpuInstruction, "this CPU has no such instruction: {}", case.line);
    }
    there
}

fn has(feature: &str) -> bool {
    use std::arch::is_x86_feature_detected as has;
    match feature {
        "amd" => made_by("AuthenticAMD"),
        "intel" => made_by("GenuineIntel"),
        "adx" => has!("adx"),
        "aes" => has!("aes"),
        "avx" => has!("avx"),
        "avx2" => has!("avx2"),
        "avx512f" => has!("avx512f") && has!("avx512bw"),
        "avx512vl" => has!("avx512vl") && has!("avx512bw"),
        "bmi1" => has!("bmi1"),
        "bmi2" => has!("bmi2"),
        "cmpxchg16b" => has!("cmpxchg16b"),
        "f16c" => has!("f16c"),
        "fma" => has!("fma"),
        "lzcnt" => has!("lzcnt"),
        "movbe" => has!("movbe"),
        "pclmulqdq" => has!("pclmulqdq"),
        "popcnt" => has!("popcnt"),
        "sha" => has!("sha"),
        "sse3" => has!("sse3"),
        "ssse3" => has!("ssse3"),
        "sse4.1" => has!("sse4.1"),
        "sse4.2" => has!("sse4.2"),
        "xsave" => has!("xsave"),
        "xsavec" => has!("xsavec"),
        _ => panic!("{feature} is not known"),
    }
}

fn made_by(vendor: &str) -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|cpus| cpus.contains(vendor))
}

struct State {
    registers: Registers,
    data: Vec<u8>,
    stop: Option<String>,
}

impl State {
    fn apply(&mut self, items: &str) {
        for item in items.split_whitespace().filter(|&item| item != "?") {
            let (name, value) = item.split_once('=').expect("name=value");
            let bytes = || -> Vec<u8> {
                (0..value.len() / 2).map(|i| u8::from_str_radix(&value[2 * i..2 * i + 2], 16).expect("hex")).collect()
            };
            let number = || u64::from_str_radix(value, 16).expect("hex");
            if let Some(index) = NAMES.iter().position(|n| *n == name) {
                self.registers.general[index] = number();
            } else if name == "flags" {
                self.registers.rflags = 0x202;
                for flag in value.split('+').filter(|&flag| flag != "none") {
                    self.registers.rflags |= FLAGS.iter().find(|(n, _)| *n == flag).expect("a flag").1;
                }
            } else if name == "mxcsr" {
                self.registers.vector.mxcsr = number() as u32;
            } else if name == "stop" {
                self.stop = Some(value.to_string());
            } else if let Some(control) = ["fcw", "fsw", "ftw"].iter().position(|n| *n == name) {
                let bytes = (number() as u16).to_le_bytes();
                self.registers.vector.x87[2 * control..2 * control + 2].copy_from_slice(&bytes);
            } else if let Some(index) = name.strip_prefix("st") {
                let index: usize = index.parse().expect("a number");
                self.registers.vector.x87[32 + 16 * index..][..10].copy_from_slice(&bytes());
            } else if let Some(index) = name.strip_prefix('k') {
                self.registers.vector.mask[index.parse::<usize>().expect("a number")] = number();
            } else if let Some(index) = name.strip_prefix("xmm") {
                let index: usize = index.parse().expect("a number");
                self.registers.vector.zmm[index][..value.len() / 2].copy_from_slice(&bytes());
            } else if let Some(offset) = name.strip_prefix('m') {
                let offset = usize::from_str_radix(offset, 16).expect("hex");
                self.data[offset..offset + value.len() / 2].copy_from_slice(&bytes());
            } else if name != "needs" {
                panic!("{name} is not known");
            }
        }
    }
}

/// With memory that is read into copies, and with memory that is used where it is.
fn check(case: &Case, cache: &mut CodeCache) -> Result<(), String> {
    check_with(case, cache, false)?;
    check_with(case, cache, true).map_err(|error| format!("in place: {error}"))
}

fn check_with(case: &Case, cache: &mut CodeCache, in_place: bool) -> Result<(), String> {
    let before = case.state();
    let mut memory = Pages::default();
    memory.in_place = in_place;
    memory.put(CODE, &case.code);
    memory.put(DATA, &before.data);
    let mut ours = before.registers;
    let mut overlay = Overlay::new(64);
    let fuel = Fuel { instructions: 1, branches: 1 };
    let outcome = run(&mut ours, &mut overlay, &mut memory, cache, fuel, &[], &mut Vec::new());

    let state = case.expected();
    if let Some(stop) = &state.stop {
        let got = format!("{:?}", outcome.stop);
        if !got.starts_with(stop.as_str()) || outcome.instructions != 0 {
            return Err(format!("stopped with {got} after {} instructions", outcome.instructions));
        }
    } else if outcome.stop != StopReason::Fuel || outcome.instructions != 1 {
        return Err(format!("stopped with {:?} after {} instructions", outcome.stop, outcome.instructions));
    }
    let undefined = lookahead::undefined_flags(&case.code);
    ours.rflags = (ours.rflags & !undefined) | (state.registers.rflags & undefined);
    let mut wrong = support::lockstep::differences(&ours, &state.registers);
    let mut data = memory;
    let mut expected = state.data;
    for (address, page) in overlay.written() {
        let at = (address.0 - DATA) as usize;
        if expected[at..at + 4096] != page[..] {
            let first = (0..4096).find(|&i| expected[at + i] != page[i]).unwrap_or(0);
            wrong.push(format!("memory at {:x} is {:02x}", at + first, page[first]));
        }
        expected[at..at + 4096].copy_from_slice(&page);
    }
    data.reads = 0;
    let mut unwritten = [0; 4096];
    for at in [0, 0x1000u64] {
        lookahead::Memory::read_page(&mut data, addresses::Avma(DATA + at), &mut unwritten).expect("data");
        let written = overlay.written().any(|(address, _)| address.0 == DATA + at);
        if !written && unwritten[..] != expected[at as usize..at as usize + 4096] {
            wrong.push("memory was not written".into());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
}

fn check_cpu(tracee: &mut Tracee, case: &Case) -> Result<(), String> {
    let before = case.state();
    let expected = case.expected();
    // What the interpreter leaves alone, the CPU may well do.
    let stops_for_itself = ["Unsupported", "SystemCall", "Interrupt", "SelfModifying"];
    if expected.stop.as_deref().is_some_and(|stop| stops_for_itself.contains(&stop)) {
        return Ok(());
    }
    tracee.write(CODE, &case.code);
    tracee.write(DATA, &before.data);
    tracee.set_registers(&before.registers);
    let mut event = tracee.step(0);
    while event == Event::Stopped(libc::SIGTRAP) && tracee.registers_rip() == CODE {
        event = tracee.step(0); // one more repetition
    }
    let executed = event == Event::Stopped(libc::SIGTRAP);
    if executed != expected.stop.is_none() {
        return Err(format!("the CPU: {event:?}"));
    }
    if !executed {
        return Ok(());
    }
    let mut theirs = tracee.registers();
    let undefined = lookahead::undefined_flags(&case.code);
    let mut data = vec![0; expected.data.len()];
    assert!(tracee.read(DATA, &mut data), "the data");
    if case.code == [0x9c] {
        data[0xf9] &= !1; // the single step shows in what `pushf` stores
    }
    if case.after.trim() == "?" {
        return Err(describe(&before, &theirs, &data, undefined));
    }
    theirs.rflags = (theirs.rflags & !undefined) | (expected.registers.rflags & undefined);
    let mut wrong = support::lockstep::differences(&expected.registers, &theirs);
    if let Some(at) = (0..data.len()).find(|&at| data[at] != expected.data[at]) {
        wrong.push(format!("memory at {at:x} {:02x} instead of {:02x}", expected.data[at], data[at]));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("the line has {}", wrong.join(", "))) }
}

/// The last field of a line for what the CPU did, to be looked at and put where a new line has a question mark.
fn describe(before: &State, theirs: &Registers, data: &[u8], undefined: u64) -> String {
    let mut items = Vec::new();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (index, name) in NAMES.iter().enumerate() {
        if theirs.general[index] != before.registers.general[index] {
            items.push(format!("{name}={:x}", theirs.general[index]));
        }
    }
    let (old, new) = (&before.registers.vector, &theirs.vector);
    for index in 0..32 {
        if let Some(last) = (0..64).rev().find(|&at| old.zmm[index][at] != new.zmm[index][at]) {
            items.push(format!("xmm{index}={}", hex(&new.zmm[index][..=last])));
        }
    }
    for index in (0..8).filter(|&index| old.mask[index] != new.mask[index]) {
        items.push(format!("k{index}={:x}", new.mask[index]));
    }
    for (index, name) in ["fcw", "fsw", "ftw"].iter().enumerate() {
        let word = |state: &[u8; 512]| u16::from_le_bytes([state[2 * index], state[2 * index + 1]]);
        if word(&old.x87) != word(&new.x87) {
            items.push(format!("{name}={:x}", word(&new.x87)));
        }
    }
    for index in 0..8 {
        let place = 32 + 16 * index..42 + 16 * index;
        if old.x87[place.clone()] != new.x87[place.clone()] {
            items.push(format!("st{index}={}", hex(&new.x87[place])));
        }
    }
    if old.mxcsr != new.mxcsr {
        items.push(format!("mxcsr={:x}", new.mxcsr));
    }
    let mut at = 0;
    while at < data.len() {
        let changed = |at: usize| at < data.len() && data[at] != before.data[at];
        if changed(at) {
            let end = (at..).find(|&end| !(end..end + 4).any(changed)).unwrap_or(at);
            items.push(format!("m{at:x}={}", hex(&data[at..end])));
            at = end;
        }
        at += 1;
    }
    let flags: Vec<&str> =
        FLAGS.iter().filter(|(_, bit)| theirs.rflags & !undefined & bit != 0).map(|(name, _)| *name).collect();
    let flag_bits = FLAGS.iter().map(|(_, bit)| bit).sum::<u64>() & !undefined;
    if !flags.is_empty() || (before.registers.rflags ^ theirs.rflags) & flag_bits != 0 {
        items.push(format!("flags={}", if flags.is_empty() { "none".into() } else { flags.join("+") }));
    }
    items.join(" ")
}
