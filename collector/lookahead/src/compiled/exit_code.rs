//! Why compiled code comes back to the burst's loop.

/// What compiled code returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitCode(pub(crate) u32);

impl ExitCode {
    /// Only of a step: the block goes on.
    pub(crate) const NONE: Self = Self(0);
    /// A branch was taken and is written down. The path goes on at its target, if it may.
    pub(crate) const TAKEN: Self = Self(1);
    /// A block was passed without a taken branch. The path goes on at the target.
    pub(crate) const PASSED: Self = Self(2);
    /// An operation ends the burst.
    pub(crate) const STOPPED: Self = Self(3);
}
