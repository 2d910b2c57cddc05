//! From a running program to a recording.

pub mod branch_filter;
pub mod catalogue;
pub mod choice;
pub mod cpu_list;
pub mod errno;
pub mod event_name;
pub mod event_spec;
pub mod ladder;
pub mod machine;
pub mod microarchitecture;
pub mod periods;
pub mod plan;
pub mod pmu;
