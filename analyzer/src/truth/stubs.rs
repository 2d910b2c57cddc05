//! Stubs of the procedure linkage table (PLT), which callgrind does not count where they are.
//!
//! With `--skip-plt=no` it counts them as code of no object, at the addresses of the process:
//! ```text
//! ob=/bin/hot                     calls=99 0x109030      at 0x1161, where the file has: call 0x1030
//! ob=???                          0x109030 0 99          so /bin/hot is at 0x108000, and the stub at 0x1030
//! ```
//! With `--skip-plt=yes`, its default, it adds their cost to the instruction that called them, after the cost of the call:
//! ```text
//! 0x1161 0 99                     the call
//! calls=99 0x1109 0               what the stub jumped to
//! 0x1161 0 198
//! 0x1161 0 104                    99 x 1 instruction of the stub, and 5 more when it was bound
//! ```

use std::collections::BTreeMap;

use iced_x86::{FlowControl, Instruction};

use crate::address::Svma;
use crate::code::{FunctionTable, Image, LONGEST_INSTRUCTION, Origin};
use crate::truth::Object;

/// Where an object was in the process: what to add to an address of its file. `None` where none of its calls of stubs tells.
pub(super) fn load_bias(image: &Image, object: &Object) -> Option<u64> {
    let mut calls_by_bias: BTreeMap<u64, u64> = BTreeMap::new();
    for (&(at, target), &calls) in &object.calls_of_unknown {
        if let Some(stated) = direct_target(image, at) {
            let sum = calls_by_bias.entry(target.wrapping_sub(stated.0)).or_default();
            *sum = sum.saturating_add(calls);
        }
    }
    let most = calls_by_bias.into_iter().max_by_key(|&(bias, calls)| (calls, std::cmp::Reverse(bias)));
    most.map(|(bias, _)| bias)
}

/// Where the code of a process' objects is.
#[derive(Default)]
pub(super) struct Placed {
    /// Start and end in the process, load bias, path.
    ranges: Vec<(u64, u64, u64, String)>,
}

impl Placed {
    pub fn add(&mut self, path: &str, image: &Image, bias: u64) {
        for segment in image.segments().iter().filter(|segment| segment.executable) {
            let [start, end] = [segment.start, segment.end()].map(|at| at.0.wrapping_add(bias));
            self.ranges.push((start, end, bias, path.to_string()));
        }
    }

    pub fn sort(&mut self) {
        self.ranges.sort();
    }

    /// The object that holds an address of the process, and its address there.
    pub fn find(&self, at: Svma) -> Option<(&str, Svma)> {
        let after = self.ranges.partition_point(|(start, ..)| *start <= at.0);
        let (_, end, bias, path) = self.ranges.get(after.checked_sub(1)?)?;
        (at.0 < *end).then(|| (path.as_str(), Svma(at.0.wrapping_sub(*bias))))
    }
}

/// Gives what was counted after calls to the stubs called. Returns how many instructions are left that bound them.
pub(super) fn place_skipped(image: &Image, functions: &FunctionTable, object: &mut Object) -> u64 {
    let mut binding = 0;
    for (at, counted) in std::mem::take(&mut object.after_calls) {
        let calls = object.counts.get(&at).copied().unwrap_or(0);
        let target = direct_target(image, at).filter(|&target| is_stub(functions, target));
        let skips_stubs = object.calls_of_unknown.range((at, 0)..=(at, u64::MAX)).next().is_none();
        let stub = target.filter(|_| skips_stubs).map_or(Vec::new(), |target| stub_at(image, target));
        let in_stub = calls.saturating_mul(stub.len() as u64);
        if stub.is_empty() || in_stub > counted {
            // No stub: the instruction alone is a block of its own, too.
            *object.counts.entry(at).or_default() += counted;
            continue;
        }
        for address in stub {
            *object.counts.entry(address).or_default() += calls;
        }
        binding += counted - in_stub;
    }
    binding
}

fn is_stub(functions: &FunctionTable, address: Svma) -> bool {
    functions.at(address).is_some_and(|id| functions.get(id).origin == Origin::Plt)
}

/// The instructions of a stub, up to the jump through its slot.
fn stub_at(image: &Image, start: Svma) -> Vec<Svma> {
    const LONGEST: usize = 3;
    let mut addresses = Vec::new();
    let mut at = start;
    while let Some(instruction) = instruction_at(image, at).filter(|_| addresses.len() < LONGEST) {
        addresses.push(at);
        match instruction.flow_control() {
            FlowControl::IndirectBranch => return addresses,
            FlowControl::Next => at = Svma(instruction.next_ip()),
            _ => break,
        }
    }
    Vec::new()
}

fn direct_target(image: &Image, at: Svma) -> Option<Svma> {
    let instruction = instruction_at(image, at)?;
    let target = instruction.near_branch_target();
    (target != 0).then_some(Svma(target))
}

/// The instruction at an address of the file.
pub(super) fn instruction_at(image: &Image, at: Svma) -> Option<Instruction> {
    let instruction = image.decoder(at, LONGEST_INSTRUCTION).decode();
    (!instruction.is_invalid()).then_some(instruction)
}
