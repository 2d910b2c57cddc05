//! The data that a path uses, as far as it says how long the path takes.

use crate::line_tables::{KNOWN, LINE_BITS, LineTables, place};
use crate::machine::Machine;
use crate::op::{MemoryUse, Op};
use crate::sink::Sink;
use crate::{Branch, Branches};

/// Above the line: which path has used it, so that not all has to be forgotten for each. The last number is that of none.
const PATHS: u64 = 63;
const NONE: u64 = u64::MAX;
/// The last line of the address space.
const LAST: u64 = u64::MAX >> 6;

/// The first use of a line of data (64 bytes). An operand across the border of two is a use of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUse {
    /// Instructions of the path that were executed before.
    pub instruction: u32,
    /// Address / 64.
    pub line: u64,
}

/// A use of an address that was stored to shortly before: a load waits for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Instructions of the path that were executed before.
    pub instruction: u32,
    /// How many instructions before it the store was; 1 to [`DataLines::FARTHEST`].
    pub distance: u32,
}

/// An address that was stored to.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Stored {
    pub(crate) address: u64,
    /// Instructions executed before.
    pub(crate) instruction: u32,
}

/// What a path does with operands in memory: lines of data in the order of their first use, and uses of what was stored shortly before.
///
/// It is a filter, made to be cheap: a line may come again when another one took its place, a store may be forgotten for one after it.
/// The stack of `push` and `call`, and strings, have no such operand. Variables at a constant distance from `rsp` or `rbp` are no uses of
/// stores: code alone tells when they are the same.
#[derive(Debug)]
pub struct DataLines {
    uses: Vec<DataUse>,
    forwarded: Vec<Forwarded>,
    /// A path of 10,000 instructions uses 50 to 500 lines.
    known: Box<[u64; KNOWN]>,
    /// The number of the path at hand.
    number: u64,
    stored: Box<[Stored; DataLines::STORED]>,
    /// Instructions executed so far.
    executed: u32,
    /// Instructions until there was no room for more.
    known_until: Option<u32>,
}

impl Default for DataLines {
    fn default() -> Self {
        Self {
            uses: Vec::new(),
            forwarded: Vec::new(),
            known: Box::new([NONE; KNOWN]),
            number: 0,
            stored: Box::new([Stored::default(); Self::STORED]),
            executed: 0,
            known_until: None,
        }
    }
}

impl DataLines {
    /// First uses that are kept of a path.
    pub const MOST: usize = 1200;
    /// Uses of what was stored that are kept of a path.
    pub const MOST_FORWARDED: usize = 900;
    /// Instructions from a store to a use that counts.
    pub const FARTHEST: u32 = 255;
    /// Places for addresses that were stored to last,
    pub(crate) const STORED: usize = 64;
    /// which their higher bits help to choose: neighbours in an array of any kind have places of their own.
    pub(crate) const STORED_FOLDED: u8 = 6;

    /// Forgets everything: another path begins.
    pub fn clear(&mut self) {
        self.uses.clear();
        self.forwarded.clear();
        self.number = (self.number + 1) % PATHS;
        if self.number == 0 {
            self.known.fill(NONE);
        }
        self.stored.fill(Stored::default());
        (self.executed, self.known_until) = (0, None);
    }

    /// The path goes on after so many instructions in all, of which the thread itself may have executed some.
    pub fn continue_at(&mut self, instructions: u64) {
        self.executed = instructions as u32;
    }

    /// Instructions for which all is known, where there was no room for more; `None` if for all.
    pub fn known_until(&self) -> Option<u32> {
        self.known_until
    }

    /// In the order of [`DataUse::instruction`].
    pub fn uses(&self) -> &[DataUse] {
        &self.uses
    }

    /// In the order of [`Forwarded::instruction`].
    pub fn forwarded(&self) -> &[Forwarded] {
        &self.forwarded
    }

    /// An operation is executed next, so many instructions after those that are counted.
    #[inline(always)]
    pub(crate) fn before(&mut self, m: &mut Machine<'_>, op: &Op, index: usize) {
        if op.memory.none() {
            return;
        }
        let address = m.address(&op.address);
        let instruction = self.executed.wrapping_add(index as u32);
        self.add_new(&mut m.resident.tables, address >> 6, instruction);
        if (address & 63) + u64::from(op.width) > 64 {
            self.add_second(&mut m.resident.tables, (address >> 6).wrapping_add(1) & LAST, instruction);
        }
        if op.memory.elsewhere() {
            self.pass(address, op.memory, instruction);
        }
    }

    /// So many instructions were executed.
    #[inline(always)]
    pub(crate) fn passed(&mut self, instructions: usize) {
        self.executed = self.executed.wrapping_add(instructions as u32);
    }

    /// Instructions executed so far.
    pub(crate) fn executed(&self) -> u32 {
        self.executed
    }

    /// Where compiled code finds what was stored.
    pub(crate) fn stored(&mut self) -> *mut Stored {
        self.stored.as_mut_ptr()
    }

    #[inline(always)]
    fn add_new(&mut self, tables: &mut LineTables, line: u64, instruction: u32) {
        let place = place(line);
        let of_path = line | self.number << LINE_BITS;
        if self.known[place] != of_path {
            self.known[place] = of_path;
            tables.forget_place(place);
            self.add(line, instruction);
        }
    }

    fn add(&mut self, line: u64, instruction: u32) {
        match self.uses.len() < Self::MOST {
            true => self.uses.push(DataUse { instruction, line }),
            false => self.known_until = self.known_until.or(Some(instruction)),
        }
    }

    #[cold]
    fn add_second(&mut self, tables: &mut LineTables, line: u64, instruction: u32) {
        self.add_new(tables, line, instruction);
    }

    #[inline(always)]
    fn pass(&mut self, address: u64, memory: MemoryUse, instruction: u32) {
        let stored = &mut self.stored[(address ^ address >> Self::STORED_FOLDED) as usize % Self::STORED];
        let Stored { address: last, instruction: before } = *stored;
        if memory.stores() {
            *stored = Stored { address, instruction };
        }
        if last == address && memory.loads() {
            let distance = instruction.wrapping_sub(before);
            if (1..=Self::FARTHEST).contains(&distance) {
                self.add_forwarded(distance, instruction);
            }
        }
    }

    #[inline(never)]
    fn add_forwarded(&mut self, distance: u32, instruction: u32) {
        match self.forwarded.len() < Self::MOST_FORWARDED {
            true => self.forwarded.push(Forwarded { instruction, distance }),
            false => self.known_until = self.known_until.or(Some(instruction)),
        }
    }
}

/// Keeps taken branches and lines of data.
pub(crate) struct Path<'t, B> {
    pub(crate) branches: &'t mut B,
    pub(crate) lines: &'t mut DataLines,
}

impl<B: Branches> Sink for Path<'_, B> {
    #[inline(always)]
    fn lines(&mut self) -> Option<&mut DataLines> {
        Some(self.lines)
    }

    #[inline(always)]
    fn before(&mut self, m: &mut Machine<'_>, op: &Op, index: usize) {
        self.lines.before(m, op, index);
    }

    #[inline(always)]
    fn passed(&mut self, instructions: usize) {
        self.lines.passed(instructions);
    }

    #[inline(always)]
    fn executed(&mut self, _: &Op) {}

    #[inline(always)]
    fn taken(&mut self, branch: Branch) {
        self.branches.taken(branch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_first_uses_of_its_own() {
        let (mut lines, mut tables) = (DataLines::default(), LineTables::default());
        // Numbers of paths come again: the line of the first path of a number is new to the next.
        for path in 0..2 * PATHS as u32 {
            // The last line of all has all its bits.
            for line in [7 + u64::from(path) % PATHS, LAST] {
                lines.add_new(&mut tables, line, path);
                lines.add_new(&mut tables, line, path + 1);
            }
            let expected = [7 + u64::from(path) % PATHS, LAST].map(|line| DataUse { instruction: path, line });
            assert_eq!(lines.uses(), expected);
            lines.clear();
        }
    }
}
