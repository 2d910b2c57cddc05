//! Counts from real branch stacks, against a count that shares no code with them: raw bytes of the recording, and instruction
//! boundaries from objdump.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use support::Fixture;

/// A branch in a raw stack.
#[derive(Clone, Copy)]
struct RawBranch {
    from: u64,
    to: u64,
}

/// The stacks of a recording whose `sample_type` is IP|TID|TIME|BRANCH_STACK, newest branch first: the stack starts 24 bytes into
/// the body.
fn raw_stacks(file: &Path) -> Vec<Vec<RawBranch>> {
    let data = std::fs::read(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let (start, size) = (word(40) as usize, word(48) as usize);
    let mut stacks = Vec::new();
    let mut at = start;
    while at < start + size {
        let kind = word(at) as u32;
        let length = (word(at) >> 48) as usize;
        if kind == 9 {
            let body = at + 8;
            let entries = body + 32;
            stacks.push(
                (0..word(body + 24) as usize)
                    .map(|i| RawBranch { from: word(entries + i * 24), to: word(entries + i * 24 + 8) })
                    .collect(),
            );
        }
        at += length;
    }
    stacks
}

/// Address and mnemonic of every instruction, by objdump.
fn disassemble(binary: &Path) -> BTreeMap<u64, String> {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(binary).output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let (address, text) = line.trim_start().split_once(":\t")?;
            let address = u64::from_str_radix(address, 16).ok()?;
            let mnemonic = text.split_whitespace().find(|word| !["rep", "repz", "lock", "bnd"].contains(word))?;
            Some((address, mnemonic.to_string()))
        })
        .collect()
}

/// Executions of every instruction by the streams, one by one.
fn count_instructions(stacks: &[Vec<RawBranch>], period: f64, code: &BTreeMap<u64, String>) -> BTreeMap<u64, f64> {
    let in_kernel = |address: u64| address >> 63 == 1;
    let in_binary = |address: u64| code.contains_key(&address);
    let leaves = |mnemonic: &str| ["jmp", "ret", "call"].iter().any(|word| mnemonic.starts_with(word));
    let mut counts = BTreeMap::new();
    for stack in stacks {
        let weight = period / (stack.len() - 1) as f64;
        for pair in stack.windows(2) {
            let (newer, start) = (pair[0], pair[1].to);
            if newer.from < start || !in_binary(start) || !in_binary(newer.from) {
                continue;
            }
            // A branch into the kernel that no system call made is an interrupt: the instruction there was not executed yet.
            let interrupted = in_kernel(newer.to) && code[&newer.from] != "syscall";
            let end = if interrupted { newer.from } else { newer.from + 1 };
            let last = *code.range(..end).next_back().unwrap().0;
            if code.range(start..last).any(|(_, mnemonic)| leaves(mnemonic)) {
                continue;
            }
            for (address, _) in code.range(start..end) {
                *counts.entry(*address).or_insert(0.0) += weight;
            }
        }
    }
    counts
}

#[test]
fn every_instruction_is_counted_as_the_streams_say() {
    if !support::has("objdump") {
        return;
    }
    check(&Fixture::stacks(), 100_003.0, 4_000, 8e8);
    if let Some(westmere) = Fixture::westmere() {
        check(&westmere, 500_000.0, 7_000, 4e10);
    }
}

/// The stacks stand for `period` taken branches; the binary has at least so many instructions, of which so many ran.
fn check(fixture: &Fixture, period: f64, static_instructions: usize, executed: f64) {
    let code = disassemble(&fixture.binary);
    assert!(code.len() > static_instructions, "objdump found {} instructions", code.len());
    let expected = count_instructions(&raw_stacks(&fixture.recording), period, &code);

    let json = support::stdout_of(&["blocks", "--format", "json"], fixture);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema"], "hbbp-blocks/1");
    let module = document["modules"]
        .as_array()
        .unwrap()
        .iter()
        .position(|module| module["path"].as_str().unwrap().ends_with(fixture.recorded_as))
        .expect("the binary is among the modules");

    let (mut instructions, mut differing, mut difference) = (0.0, 0, 0.0);
    let mut unexplained = expected.clone();
    for block in document["blocks"].as_array().unwrap().iter().filter(|block| block["module"] == module) {
        let (start, end) = (block["start"].as_u64().unwrap(), block["end"].as_u64().unwrap());
        let lbr = block["lbr"].as_f64().unwrap();
        let inside: Vec<u64> = code.range(start..end).map(|(address, _)| *address).collect();
        assert_eq!(inside.first(), Some(&start), "a block starts at an instruction");
        assert_eq!(inside.len() as u64, block["instructions"].as_u64().unwrap(), "block {start:#x} - {end:#x}");
        for address in &inside {
            let counted = unexplained.remove(address).unwrap_or(0.0);
            instructions += counted;
            difference += (counted - lbr).abs();
            differing += usize::from((counted - lbr).abs() > 1e-6 * lbr.max(1.0));
        }
        // A block counts when its last instruction was executed: there both must agree to the last digit.
        let last = expected.get(inside.last().unwrap()).copied().unwrap_or(0.0);
        assert!((last - lbr).abs() <= 1e-6 * last.max(1.0), "block {start:#x}: {lbr} by hbbp, {last} by hand");
    }
    // What remains was executed only up to an interrupt, whose other half lies outside the stack.
    let lost: f64 = unexplained.values().sum();
    assert!(instructions > executed, "{instructions} instructions");
    eprintln!("{differing} instructions differ, by {difference} of {instructions}; {lost} in no block");
    assert!((difference + lost) / instructions < 1e-4, "{difference} + {lost} of {instructions}");
}
