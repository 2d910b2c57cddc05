//! Whose samples are added up together.

use crate::address::Avma;
use crate::recording::{EpochId, PhaseId};

/// Whose samples are added up together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

impl Context {
    /// This context, of bursts that start there.
    pub fn starting_at(self, start: Avma) -> Self {
        const ALIGNMENT_OF_FUNCTIONS: u64 = 16;
        Context { start: Avma(start.0 & !(ALIGNMENT_OF_FUNCTIONS - 1)), ..self }
    }
}

/// Index of a [`Context`] in its [`Aggregate`](crate::recording::Aggregate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);
