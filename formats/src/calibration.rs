//! How far away data is on a machine, as `hbbp calibrate` measured it: JSON of the schema `hbbp-calibration/1`.
//!
//! It stands in a file of its own, for recorders, and in the metadata of what they record.
//!
//! ```text
//! {"schema":"hbbp-calibration/1","cpuid":"AuthenticAMD,26,2,1","measured":1764093000,"cycle_ns":0.242,
//!  "second_cycles":14.1,"third_cycles":55.0,"memory_cycles":612.0,"second_kib":1024,"third_kib":7168}
//! ```

use crate::tolerant::{objects, tolerant_objects};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-calibration/1";

tolerant_objects! {
    /// How far away data is on a machine. A cycle is that of a simple instruction.
    pub struct Calibration {
        /// [`SCHEMA`].
        pub schema: Option<String>,
        /// The CPU, as recordings name it: vendor, family, model and stepping.
        pub cpuid: Option<String>,
        /// When it was measured, s since 1970.
        pub measured: Option<u64>,
        /// How long a cycle takes, ns.
        pub cycle_ns: Option<f64>,
        /// Cycles from an address to data of the second level of the caches,
        pub second_cycles: Option<f64>,
        /// of the third,
        pub third_cycles: Option<f64>,
        /// and of memory.
        pub memory_cycles: Option<f64>,
        /// Size of the second level, KiB.
        pub second_kib: Option<u64>,
        /// How much data is found in the third level at most, with the second, KiB: what other programs and machines leave.
        pub third_kib: Option<u64>,
    }
}

objects! { Calibration }
