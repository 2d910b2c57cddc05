//! What cores are like.
//!
//! Numbers are of makers' manuals (AMD's Software Optimization Guides for families 17h, 19h and 1Ah; Intel's Optimization Reference Manual), of
//! the scheduling models of LLVM 19 (`benches/core-tables` prints both beside each other), of uops.info and of Fog's instruction tables. Where
//! they give a range, the number is that of data as usual. Only Zen 5 was measured (`benches/core-latencies`): four
//! fifths as many instructions come in a cycle as its manual says, and so they do in the other tables.

pub(crate) mod amd;
pub(crate) mod generic;
pub(crate) mod intel;

use crate::core::Level;

/// Lines of so many KiB.
const fn lines(kib: u32) -> f64 {
    (kib * 16) as f64
}

/// Three levels of so many KiB, the last with what other programs leave of it, and cycles from an address to data of the first level, of the
/// second, of the third and of memory.
const fn levels(kib: [u32; 3], cycles: [f64; 4]) -> [Level; 3] {
    [
        Level { lines: lines(kib[0]), beyond: cycles[1] - cycles[0] },
        Level { lines: lines(kib[1]), beyond: cycles[2] - cycles[1] },
        Level { lines: lines(kib[2]), beyond: cycles[3] - cycles[2] },
    ]
}
