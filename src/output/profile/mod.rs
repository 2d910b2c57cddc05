//! Profiles for other tools: one file per format, from the finished flow (or calling contexts) to bytes.

mod bolt;
mod bolt_preagg;
mod callgrind;
mod contexts;
mod gcov;
mod llvm_extbin;
mod llvm_profgen;
mod llvm_text;
mod otlp;
mod perf_script;
mod pprof;
mod profiled;
mod propeller;
mod sde_mix;
mod summary;

pub use bolt::bolt;
pub use bolt_preagg::bolt_preagg;
pub use callgrind::{InclusiveCosts, callgrind};
pub use contexts::{Contexts, UNKNOWN_CALLERS, firefox, flamegraph, folded, speedscope};
pub use gcov::{GcovVersion, gcov};
pub use llvm_extbin::llvm_extbin;
pub use llvm_profgen::llvm_profgen;
pub use llvm_text::llvm_text;
pub use otlp::{Recorded, otlp};
pub use perf_script::{NotWritten, perf_script};
pub use pprof::pprof;
pub use profiled::Profiled;
pub use propeller::{cc_profile, ld_profile};
pub use reports::left_out::{left_out, sampled_only, without_place};
pub use sde_mix::sde_mix;
