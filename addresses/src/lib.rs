#![doc = include_str!("../README.md")]
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
