//! What a burst records: taken branches, or every instruction.

use addresses::Avma;

/// One taken branch, in execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Address of the first byte of the branch instruction.
    pub from: Avma,
    /// Address of the first byte of the instruction that ran next.
    pub to: Avma,
    /// Which sort of branch it was.
    pub kind: BranchKind,
}

/// What taken branches are given to, in execution order.
pub trait Branches {
    /// This one was taken.
    fn taken(&mut self, branch: Branch);
}

impl Branches for Vec<Branch> {
    #[inline(always)]
    fn taken(&mut self, branch: Branch) {
        self.push(branch);
    }
}

/// One executed instruction, in execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Address of its first byte.
    pub ip: Avma,
    /// Address of its memory operand; without meaning for an instruction that has none, or only one that it does not name (the stack,
    /// strings).
    pub operand: Avma,
    /// Where it went, if it was a branch that was taken.
    pub taken: Option<(BranchKind, Avma)>,
}

/// Sort of a branch; the values are those of `PERF_BR_*` in the kernel's `perf_event.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BranchKind {
    /// `jcc`, `loop`, `jrcxz`.
    Conditional = 1,
    /// Direct `jmp`.
    Jump = 2,
    /// `jmp` through a register or memory.
    IndirectJump = 3,
    /// Direct `call`.
    Call = 4,
    /// `call` through a register or memory.
    IndirectCall = 5,
    /// `ret`.
    Return = 6,
    /// `syscall`; never recorded here, as a burst ends before one, but callers that go on need the number.
    SystemCall = 7,
}

impl BranchKind {
    /// By the number that compiled code has written.
    #[inline(always)]
    pub(crate) fn of_compiled(kind: u64) -> Self {
        match kind {
            2 => Self::Jump,
            3 => Self::IndirectJump,
            4 => Self::Call,
            5 => Self::IndirectCall,
            6 => Self::Return,
            _ => Self::Conditional,
        }
    }
}
