//! Why compiled code comes back to the burst's loop.

/// What compiled code returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitCode(pub(crate) u32);

impl ExitCode {
    /// Only of a step: the block goes on.
    pub(crate) const NONE: Self = Self(0);
    /// A branch was taken and is written down. The path goes on at the target, if it may.
    pub(crate) const TAKEN: Self = Self(1);
    /// The path goes on at the target.
    pub(crate) const PASSED: Self = Self(2);
    /// The path goes on with the block at hand, which is longer than may be executed, or was not compared with memory yet.
    pub(crate) const NOT_ENTERED: Self = Self(3);
    /// The path goes on at the target, and the code says where a block there could be linked.
    pub(crate) const UNLINKED: Self = Self(4);
    /// The target is where an operation ends the burst.
    pub(crate) const STOPPED: Self = Self(5);
}
