//! Shared by the tests and the examples that compare with the CPU.

#![allow(dead_code)] // each user takes a part

pub mod fuzz;
pub mod lockstep;
pub mod pages;
pub mod tracee;
