//! What becomes of what is executed.

use addresses::Avma;

use crate::lines::DataLines;
use crate::machine::Machine;
use crate::op::Op;
use crate::{Branch, Executed};

/// Is told of every instruction. An instruction is either `executed` or `taken`, or could not be executed. Then it is told how many there
/// were.
pub(crate) trait Sink {
    /// Where lines of data are kept, if that, with taken branches, is all that it wants to know: compiled blocks do that by themselves.
    #[inline(always)]
    fn lines(&mut self) -> Option<&mut DataLines> {
        None
    }
    /// It is about to be executed, so many instructions after those of which it was told the number.
    fn before(&mut self, m: &mut Machine<'_>, op: &Op, index: usize);
    /// So many instructions were executed.
    fn passed(&mut self, instructions: usize);
    /// It was executed and the next one in memory follows.
    fn executed(&mut self, op: &Op);
    /// It was a branch and went elsewhere.
    fn taken(&mut self, branch: Branch);
}

/// Keeps taken branches.
impl Sink for Vec<Branch> {
    #[inline(always)]
    fn before(&mut self, _: &mut Machine<'_>, _: &Op, _: usize) {}

    #[inline(always)]
    fn passed(&mut self, _: usize) {}

    #[inline(always)]
    fn executed(&mut self, _: &Op) {}

    #[inline(always)]
    fn taken(&mut self, branch: Branch) {
        self.push(branch);
    }
}

/// Keeps everything.
pub(crate) struct Trace<'t> {
    executed: &'t mut Vec<Executed>,
    /// The operand of the instruction at hand: it may change the registers its address is made of.
    operand: Avma,
}

impl<'t> Trace<'t> {
    pub(crate) fn new(executed: &'t mut Vec<Executed>) -> Self {
        Self { executed, operand: Avma(0) }
    }
}

impl Sink for Trace<'_> {
    #[inline(always)]
    fn before(&mut self, m: &mut Machine<'_>, op: &Op, _: usize) {
        self.operand = Avma(m.address(&op.address));
    }

    #[inline(always)]
    fn passed(&mut self, _: usize) {}

    #[inline(always)]
    fn executed(&mut self, op: &Op) {
        self.executed.push(Executed { ip: Avma(op.ip), operand: self.operand, taken: None });
    }

    #[inline(always)]
    fn taken(&mut self, branch: Branch) {
        let taken = Some((branch.kind, branch.to));
        self.executed.push(Executed { ip: branch.from, operand: self.operand, taken });
    }
}
