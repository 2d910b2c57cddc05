//! Single instructions: state before, bytes, state after, one case per line of `semantics.txt`.

mod support;

use lookahead::{CodeCache, Fuel, Overlay, Registers, StopReason, run};
use support::pages::Pages;

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
    for line in include_str!("semantics.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        cases += 1;
        if let Err(why) = check(line) {
            failures.push(format!("{line}\n    {why}"));
        }
    }
    assert!(cases > 50, "{cases} cases");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

struct State {
    registers: Registers,
    data: Vec<u8>,
    stop: Option<String>,
}

impl State {
    fn apply(&mut self, items: &str) {
        for item in items.split_whitespace() {
            let (name, value) = item.split_once('=').expect("name=value");
            let bytes = || -> Vec<u8> {
                (0..value.len() / 2).map(|i| u8::from_str_radix(&value[2 * i..2 * i + 2], 16).expect("hex")).collect()
            };
            let number = || u64::from_str_radix(value, 16).expect("hex");
            if let Some(index) = NAMES.iter().position(|n| *n == name) {
                self.registers.general[index] = number();
            } else if name == "flags" {
                self.registers.rflags = 0x202;
                for flag in value.split('+') {
                    self.registers.rflags |= FLAGS.iter().find(|(n, _)| *n == flag).expect("a flag").1;
                }
            } else if name == "mxcsr" {
                self.registers.vector.mxcsr = number() as u32;
            } else if name == "stop" {
                self.stop = Some(value.to_string());
            } else if let Some(index) = name.strip_prefix("xmm") {
                let index: usize = index.parse().expect("a number");
                self.registers.vector.zmm[index][..value.len() / 2].copy_from_slice(&bytes());
            } else if let Some(offset) = name.strip_prefix('m') {
                let offset = usize::from_str_radix(offset, 16).expect("hex");
                self.data[offset..offset + value.len() / 2].copy_from_slice(&bytes());
            } else if name != "cl" {
                panic!("{name} is not known");
            }
        }
    }
}

fn check(line: &str) -> Result<(), String> {
    let fields: Vec<&str> = line.split(';').collect();
    let [_, code, before, after] = fields[..] else { return Err("four fields expected".into()) };
    let code: Vec<u8> = code.split_whitespace().map(|b| u8::from_str_radix(b, 16).expect("hex")).collect();
    let mut state = State { registers: Registers::default(), data: vec![0; 0x2000], stop: None };
    state.registers.rip = CODE;
    state.registers.general[6] = DATA;
    state.apply(before);
    let mut memory = Pages::default();
    memory.put(CODE, &code);
    memory.put(DATA, &state.data);
    let mut ours = state.registers.clone();
    let (mut overlay, mut cache) = (Overlay::new(64), CodeCache::new(1024));
    let fuel = Fuel { instructions: 1, branches: 1 };
    let outcome = run(&mut ours, &mut overlay, &mut memory, &mut cache, fuel, &[], &mut Vec::new());

    // Arithmetic clears the flags that the line does not name; other instructions keep them.
    let kept = state.registers.rflags;
    let names_flags = after.contains("flags=");
    state.apply(after);
    if let Some(stop) = &state.stop {
        let got = format!("{:?}", outcome.stop);
        if !got.starts_with(stop.as_str()) || outcome.instructions != 0 {
            return Err(format!("stopped with {got} after {} instructions", outcome.instructions));
        }
    } else {
        if outcome.stop != StopReason::Fuel || outcome.instructions != 1 {
            return Err(format!("stopped with {:?} after {} instructions", outcome.stop, outcome.instructions));
        }
        state.registers.rip += code.len() as u64;
    }
    let undefined = lookahead::undefined_flags(&code);
    if names_flags {
        state.registers.rflags |= kept & (1 << 10);
    }
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
        expected[at..at + 4096].copy_from_slice(page);
    }
    data.reads = 0;
    let mut unwritten = [0; 4096];
    for at in [0, 0x1000u64] {
        lookahead::Memory::read_page(&mut data, perfdata::Avma(DATA + at), &mut unwritten).expect("data");
        let written = overlay.written().any(|(address, _)| address.0 == DATA + at);
        if !written && unwritten[..] != expected[at as usize..at as usize + 4096] {
            wrong.push("memory was not written".into());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
}
