//! Why a process that runs already can have neither an agent nor visits.

use std::fs::File;

use crate::sys::is_32_bit_process;
use crate::sys::process::{each_mapping, proc_path, tracer_of};

/// In words that follow "process 12": `None` if nothing is known to be in the way.
pub(crate) fn obstacle(process: u32) -> Option<String> {
    if let Some(tracer) = tracer_of(process) {
        return Some(format!("is traced by process {tracer} (a debugger, strace)"));
    }
    if is_32_bit_process(process) {
        return Some("is a 32-bit program: bursts are of 64-bit code".to_owned());
    }
    if !each_mapping(process).any(|map| map.prot & 1 != 0 && !map.path.starts_with(b"[v")) {
        return Some("has no memory that may be read: it has ended, or is another user's".to_owned());
    }
    // Nothing is read: the page might be one that somebody has to serve first.
    File::open(proc_path(process).join("mem")).is_err().then(|| {
        "may not be traced: it may be another user's, or kernel.yama.ptrace_scope allows to trace own children only"
            .to_owned()
    })
}
