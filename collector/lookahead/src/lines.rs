//! The lines of data that a path uses.

use crate::Branch;
use crate::machine::Machine;
use crate::op::Op;
use crate::sink::Sink;

/// Places for lines that are known to have been used. A path of 10,000 instructions uses 50 to 500 lines.
const KNOWN: usize = 512;
/// No line: addresses have 64 bits, lines 58.
const NONE: u64 = u64::MAX;

/// The first use of a line of data (64 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUse {
    /// Instructions of the path that were executed before.
    pub instruction: u32,
    /// Address / 64.
    pub line: u64,
}

/// The lines of data that a path uses with operands in memory, in the order of their first use.
///
/// It is a filter, made to be cheap: a line may come again when another one took its place, and `lea`, which only adds up an address, counts
/// as a use. The stack of `push` and `call`, and strings, have no such operand.
#[derive(Debug)]
pub struct DataLines {
    uses: Vec<DataUse>,
    known: Box<[u64; KNOWN]>,
    /// Instructions executed so far.
    executed: u32,
    /// Instructions until there was no room for more.
    known_until: Option<u32>,
}

impl Default for DataLines {
    fn default() -> Self {
        Self { uses: Vec::new(), known: Box::new([NONE; KNOWN]), executed: 0, known_until: None }
    }
}

impl DataLines {
    /// First uses that are kept of a path.
    pub const MOST: usize = 2000;

    /// Forgets everything: another path begins.
    pub fn clear(&mut self) {
        self.uses.clear();
        self.known.fill(NONE);
        (self.executed, self.known_until) = (0, None);
    }

    /// The path goes on after so many instructions in all, of which the thread itself may have executed some.
    pub fn continue_at(&mut self, instructions: u64) {
        self.executed = instructions as u32;
    }

    /// Instructions for which the uses are known, where there was no room for more than 2,000; `None` if for all.
    pub fn known_until(&self) -> Option<u32> {
        self.known_until
    }

    /// In the order of [`DataUse::instruction`].
    pub fn uses(&self) -> &[DataUse] {
        &self.uses
    }
}

impl DataLines {
    fn add(&mut self, line: u64) {
        match self.uses.len() < Self::MOST {
            true => self.uses.push(DataUse { instruction: self.executed, line }),
            false => self.known_until = self.known_until.or(Some(self.executed)),
        }
    }
}

/// Keeps taken branches and lines of data.
pub(crate) struct Path<'t> {
    pub(crate) branches: &'t mut Vec<Branch>,
    pub(crate) lines: &'t mut DataLines,
}

impl Sink for Path<'_> {
    #[inline(always)]
    fn before(&mut self, m: &Machine<'_>, op: &Op) {
        // Without an operand the address is 0.
        let line = m.address(op) >> 6;
        let known = &mut self.lines.known[line as usize % KNOWN];
        if *known != line && line != 0 {
            *known = line;
            self.lines.add(line);
        }
    }

    #[inline(always)]
    fn executed(&mut self, _: &Op) {
        self.lines.executed = self.lines.executed.wrapping_add(1);
    }

    #[inline(always)]
    fn taken(&mut self, branch: Branch) {
        self.lines.executed = self.lines.executed.wrapping_add(1);
        self.branches.push(branch);
    }
}
