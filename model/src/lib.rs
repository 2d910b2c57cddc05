//! Which source of counts to trust, per basic block.
#![forbid(unsafe_code)]
