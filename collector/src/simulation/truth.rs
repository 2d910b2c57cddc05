//! Exact counts: how often each instruction was executed.

use std::collections::BTreeMap;

use addresses::{Avma, FileOffset};
use formats::executions::CountedInstruction;

use crate::tracer::burst::address_space::Layout;

/// Executions per instruction, of all processes together.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// By path of the mapped file (`//anon` or `[vdso]` where there is none) and offset in it, or address.
    counts: BTreeMap<(Vec<u8>, u64), u64>,
}

impl Truth {
    /// Adds what was executed in an address space.
    pub(super) fn add(&mut self, layout: &Layout, executed: impl Iterator<Item = (Avma, u64)>) {
        for (address, count) in executed {
            let place =
                layout.place_in_file(address).map_or((b"//anon".to_vec(), address.0), |(path, at)| (path.to_vec(), at));
            *self.counts.entry(place).or_default() += count;
        }
    }

    /// All of them, by path and offset.
    pub fn instructions(&self) -> impl Iterator<Item = CountedInstruction> {
        self.counts.iter().map(|((path, file_offset), count)| CountedInstruction {
            path: String::from_utf8_lossy(path).into_owned(),
            file_offset: FileOffset(*file_offset),
            count: *count,
        })
    }
}
