//! Whose samples are added up together.

use crate::address::Avma;
use crate::recording::{EpochId, PhaseId};

/// The first of the 16 bytes of code around a place. No two functions share such 16 bytes as a rule.
pub fn granule(at: u64) -> u64 {
    const ALIGNMENT_OF_FUNCTIONS: u64 = 16;
    at & !(ALIGNMENT_OF_FUNCTIONS - 1)
}

/// Whose samples are added up together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Context {
    /// Index of the event in the recording.
    pub event: u32,
    /// Id of the process; it may be used again, see `place`.
    pub pid: u32,
    /// Which process of that pid, and which of its epochs.
    pub place: EpochId,
    /// Thread id; 0 where threads are not told apart.
    pub tid: u32,
    /// The phase it was in; none where phases are not told apart.
    pub phase: PhaseId,
    /// The sample was taken in a guest: its addresses are the guest's.
    pub guest: bool,
    /// Of bursts, the 16 bytes of code where they started; 0 for everything else. Bursts are weighted by where they start, and no two
    /// functions share such 16 bytes as a rule.
    pub start: Avma,
    /// Of bursts: they start right after a system call.
    pub after_call: bool,
}

impl Context {
    /// This context, of bursts that start there, right after a system call or not.
    pub fn starting_at(self, start: Avma, after_call: bool) -> Self {
        Context { start: Avma(granule(start.0)), after_call, ..self }
    }
}

/// Index of a [`Context`] in its [`Aggregate`](crate::recording::Aggregate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);
