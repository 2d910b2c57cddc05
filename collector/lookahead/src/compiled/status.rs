//! What instructions do with the status flags, and where those are needed.

use crate::arith::{self, ADC, SBB};
use crate::foreign;
use crate::form::{Form, IMM, MEM};
use crate::frequent::{Frequent, Kind};
use crate::op::Op;

/// What an instruction does with the status flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// It does something else by them.
    pub(super) reads: bool,
    /// It sets some.
    pub(super) writes: bool,
    /// It leaves some as they were, always or for some operands.
    pub(super) keeps: bool,
    /// A burst may end before it, or the interpreter executes it: they have to be in the context.
    shows: bool,
}

const NONE: Status = Status { reads: false, writes: false, keeps: false, shows: false };
const SETS: Status = Status { writes: true, ..NONE };
const SETS_SOME: Status = Status { writes: true, keeps: true, ..NONE };
const READS: Status = Status { reads: true, ..NONE };
/// Of an instruction of which nothing is known.
const UNKNOWN: Status = Status { reads: true, writes: true, keeps: true, shows: true };

impl Status {
    pub(super) fn of(kind: Kind, form: Form, op: &Op) -> Self {
        let by_kind = match kind {
            Kind::Arithmetic(ADC | SBB) => Status { reads: true, ..SETS },
            Kind::Arithmetic(_) | Kind::Unary(arith::NEG) => SETS,
            Kind::Unary(arith::NOT) => NONE,
            Kind::Unary(_) => SETS_SOME,
            Kind::Shift(operation) => {
                let mask = if form.size == 8 { 63 } else { 31 };
                let is_rotation = operation < 4;
                if form.src == IMM && op.imm & mask != 0 && !is_rotation { SETS } else { SETS_SOME }
            }
            Kind::JumpIf(_) | Kind::SetIf(_) | Kind::MoveIf(_) => READS,
            _ => NONE,
        };
        let stack = matches!(kind, Kind::Push | Kind::Pop | Kind::Call | Kind::IndirectCall | Kind::Return);
        Status { shows: stack || form.dst == MEM || form.src == MEM, ..by_kind }
    }

    /// Whether the interpreter needs or changes them when it executes the instruction.
    pub(super) fn is_used(self) -> bool {
        self.reads || self.writes
    }

    /// The same of an instruction that only the interpreter executes.
    pub(super) fn is_touched(op: &Op) -> bool {
        !foreign::leaves_status(op)
    }
}

/// For each instruction, whether what it leaves in the status flags is needed after it. At the end of a block, all is.
pub(super) fn saves(instructions: &[(Op, Option<Frequent>)], saves: &mut Vec<bool>) {
    saves.clear();
    saves.resize(instructions.len(), false);
    let mut needed = true;
    for ((op, frequent), saves) in instructions.iter().zip(saves).rev() {
        let status = frequent.as_ref().map_or(UNKNOWN, |frequent| Status::of(frequent.kind, frequent.form, op));
        *saves = status.writes && needed;
        needed = status.reads || status.shows || (needed && (status.keeps || !status.writes));
    }
}
