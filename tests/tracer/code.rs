//! The code that bursts say was executed, decoded from the files it is in.

use std::collections::HashMap;
use std::fs;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use crate::bursts::{Burst, Traced};

/// Files that were read.
#[derive(Default)]
pub struct Code {
    files: HashMap<String, Vec<u8>>,
}

impl Code {
    /// The instruction at `address` of a burst; `None` where the code is in no file.
    pub fn instruction(&mut self, traced: &Traced, burst: &Burst, address: u64) -> Option<Instruction> {
        let (path, offset) = traced.locate(burst, address)?;
        let file = self.files.entry(path.to_owned()).or_insert_with(|| fs::read(path).unwrap_or_default());
        let bytes = file.get(offset as usize..)?;
        let mut decoder = Decoder::with_ip(64, &bytes[..bytes.len().min(15)], address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        assert!(!instruction.is_invalid(), "{path}+{offset:#x} is no instruction");
        Some(instruction)
    }

    /// Walks straight from `start` to the branch at `from`: the number of instructions, or `None` through code of no file.
    ///
    /// Panics where the way does not lead there.
    pub fn straight(&mut self, traced: &Traced, burst: &Burst, start: u64, from: u64) -> Option<u64> {
        let (mut address, mut count) = (start, 1);
        while address != from {
            assert!(address < from, "{address:#x}: from {start:#x} no instruction begins at {from:#x}");
            let instruction = self.instruction(traced, burst, address)?;
            assert!(falls_through(&instruction), "{address:#x}: {instruction} is on the way to {from:#x}");
            address = instruction.next_ip();
            count += 1;
        }
        Some(count)
    }

    /// Whether `count` instructions lie straight behind `start`.
    pub fn lie_straight(&mut self, traced: &Traced, burst: &Burst, start: u64, count: u64) -> bool {
        let mut address = start;
        for _ in 0..count {
            let Some(instruction) = self.instruction(traced, burst, address) else { return true };
            if !falls_through(&instruction) {
                return false;
            }
            address = instruction.next_ip();
        }
        true
    }
}

/// Whether the next instruction may be the one behind: conditional branches too, and system calls.
fn falls_through(instruction: &Instruction) -> bool {
    use FlowControl::{Call, ConditionalBranch, Next};
    let is_system_call = instruction.mnemonic() == iced_x86::Mnemonic::Syscall;
    matches!(instruction.flow_control(), Next | ConditionalBranch)
        || instruction.flow_control() == Call && is_system_call
}
