//! How executing one instruction ends.

/// What an instruction does to control flow, other than falling through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A branch was taken, to [`Machine::target`](crate::machine::Machine::target).
    Taken(crate::BranchKind),
    /// A conditional branch was not taken.
    NotTaken,
    /// The instruction cannot be executed for the reason in [`Machine::stop`](crate::machine::Machine::stop); the state is the one before it.
    Stop,
}

pub(crate) type Step = Result<(), Exit>;
