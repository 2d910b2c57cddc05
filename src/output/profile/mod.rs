//! Profiles for other tools: one file per format, from the finished flow to bytes.

mod bolt;
mod bolt_preagg;
mod callgrind;
mod llvm_profgen;
mod perf_script;
mod pprof;
mod profiled;

pub use bolt::bolt;
pub use bolt_preagg::bolt_preagg;
pub use callgrind::callgrind;
pub use llvm_profgen::llvm_profgen;
pub use perf_script::{NotWritten, perf_script};
pub use pprof::pprof;
pub use profiled::{Profiled, left_out};
