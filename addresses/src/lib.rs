//! Types that keep apart the three numbers that are all called "the address" of an instruction.
//!
//! ```text
//!  file                     ELF's headers                process
//!  FileOffset --segments--> Svma --mapping (load bias)--> Avma
//!  0x1040                   0x401040                      0x55d0_4f40_1040
//! ```
//!
//! They do not convert into each other: the way from one to the next leads through a segment of the file or a mapping of the
//! process, which the caller has to have. The number inside is public, so that arithmetic within one space stays short:
//!
//! ```
//! use addresses::{Avma, Svma};
//!
//! /// Where the code of a symbol lies in a process that mapped its file `bias` bytes above the stated addresses.
//! fn in_process(symbol: Svma, bias: u64) -> Avma {
//!     Avma(symbol.0.wrapping_add(bias))
//! }
//!
//! assert_eq!(in_process(Svma(0x1040), 0x5555_5555_4000).to_string(), "0x555555555040");
//! ```
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

/// Actual virtual memory address: where something was in the running process or kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Avma(pub u64);

/// Stated virtual memory address: what the ELF file's headers and symbols say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Svma(pub u64);

/// Distance in bytes from the start of a module's file; for code without a file (kernel, code made at run time) the address
/// itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct FileOffset(pub u64);

macro_rules! written_in_hexadecimal {
    ($($address:ident)*) => {$(
        /// In hexadecimal, with `0x`.
        impl fmt::Display for $address {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    )*};
}

written_in_hexadecimal! { Avma Svma FileOffset }
