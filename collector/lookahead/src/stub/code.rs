//! What a stub is to those who call it.

/// Machine code of a stub that keeps the contract `native` calls it under. Only the module `stub` makes one.
pub(crate) struct Code(Vec<u8>);

impl Code {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What has to be done around a call of a stub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Takes the status flags from the context.
    pub(crate) takes_flags: bool,
    /// Leaves the status flags in the context.
    pub(crate) gives_flags: bool,
    /// Obeys `mxcsr`: its exceptions have to be masked.
    pub(crate) float: bool,
    /// Uses the x87 unit: its exceptions have to be masked.
    pub(crate) x87: bool,
}
