//! Profiles for other tools: one file per format, from the finished flow to bytes.

mod llvm_profgen;

pub use llvm_profgen::llvm_profgen;
