//! `hbbp`: how often every basic block of a program runs.
#![forbid(unsafe_code)]

fn main() {}
