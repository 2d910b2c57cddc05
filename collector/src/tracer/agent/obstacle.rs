//! Why a process that runs already can have neither an agent nor visits.

use std::fs::File;
use std::io::Read;

use crate::sys::process::{mappings, proc_path, tracer_of};

/// In words that follow "process 12": `None` if nothing is known to be in the way.
pub(crate) fn obstacle(process: u32) -> Option<String> {
    if let Some(tracer) = tracer_of(process) {
        return Some(format!("is traced by process {tracer} (a debugger, strace)"));
    }
    if has_32_bits(process) {
        return Some("is a 32-bit program: bursts are of 64-bit code".to_owned());
    }
    let maps = mappings(process);
    if !maps.iter().any(|map| map.prot & 1 != 0 && !map.path.starts_with(b"[v")) {
        return Some("has no memory that may be read: it has ended, or is another user's".to_owned());
    }
    // Nothing is read: the page might be one that somebody has to serve first.
    File::open(proc_path(process).join("mem")).is_err().then(|| {
        "may not be traced: it may be another user's, or kernel.yama.ptrace_scope allows to trace own children only"
            .to_owned()
    })
}

/// Whether the program is an ELF file of 32 bits.
fn has_32_bits(process: u32) -> bool {
    let mut head = [0; 5];
    let read = File::open(proc_path(process).join("exe")).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
}
