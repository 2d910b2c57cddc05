//! How control goes from one function to another.

use std::ops::Range;

use crate::address::Avma;
use crate::walks::FunctionKey;

/// How control leaves a function, or seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A jump.
    Jump {
        /// Its target was computed.
        computed: bool,
    },
    /// A call.
    Call {
        /// Where it returns to: one address, or where the length of the call is not known, those that it can be.
        returns_to: Range<Avma>,
    },
    /// A return.
    Return,
    /// A system call, an interrupt or a fault.
    EnterKernel,
    /// Back to the program, or to one of its signal handlers.
    LeaveKernel,
    /// Nothing tells whether it was a call.
    Unclear,
}

/// Where control goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The function there.
    pub function: FunctionKey,
    /// The address.
    pub at: Avma,
    /// The function starts there.
    pub is_entry: bool,
}
