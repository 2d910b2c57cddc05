//! From recordings to basic-block counts and instruction mixes.
//!
//! ```text
//! recording/   records -> processes and epochs; unique ips, unique streams
//! counting/    addresses -> modules -> blocks; EBS and branch-stack counts; the choice per block
//! estimation/  what bursts of a clock weigh
//! code/        ELF files -> functions -> static blocks -> instruction attributes
//! annotate/    functions: counts of blocks, where branches went, loops, lines
//! bolt/        the functions and edges of BOLT
//! calls/       calling contexts: who called whom, from branch records
//! findings/    what an analysis found, to be kept, and put together with the code again
//! flow/        executions of straight-line ranges and of taken branches: what profiles are made from
//! lines/       addresses -> source lines, with what was inlined where
//! mix/         counts x instructions x attributes -> pivot tables
//! propeller/   the layout of blocks and functions for clang and lld
//! paths/       what the order of branches tells: trips of loops, paths, cycles of blocks
//! sample_profile/  counts by function and source position: what compilers read
//! truth/       exact counts by instrumentation, to measure the others against
//! uncertainty/ how far counts can be from the truth
//! validation/  the errors of an analysis against exact counts
//! walks/       bursts and stacks once more, branch by branch
//! vectorization/  which part of floating-point and vector work is scalar, by function and loop
//! ```
//!
//! The analyzer reads files only: it never talks to the kernel.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as analyzer;

pub mod address;
mod analysis;
pub mod annotate;
mod binaries;
pub mod bolt;
mod build_id;
pub mod calls;
pub mod code;
pub mod counting;
mod estimation;
mod findings;
pub mod flow;
mod kernel_files;
pub mod lines;
pub mod mix;
mod parallel;
pub mod paths;
mod processor_trace;
mod progress;
pub mod propeller;
pub mod recording;
pub mod sample_profile;
pub mod truth;
pub mod uncertainty;
pub mod validation;
pub mod vectorization;
mod walks;

pub use analysis::{
    Analysis, CountedBlock, CountedModule, GroupCount, Options, Origin, Summary, TRACED, analyze, analyze_paths,
};
pub use binaries::{
    Binary, BinaryOverride, BinarySearch, ByBuildId, DebugFile, Elsewhere, KernelCopies, LARGEST_LIST,
    MissingDebugInformation, NoCode, PackedFile, PackedFiles, Refused, Wanted,
};
pub use build_id::BuildId;
pub use estimation::Estimate;
pub use findings::{Findings, Searched};
pub use formats::file_identity::FileIdentity;
pub use progress::{Progress, Step};
pub use simulated_core::Microarchitecture;

#[cfg(test)]
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;
