//! CPU time that a hypervisor gave to others.

use std::time::Duration;

/// CPU time that was stolen from all CPUs of this machine since it started (the field `steal` of `/proc/stat`, proc(5)), to 10 ms; nothing where
/// the kernel does not say. perf's clocks count it for the thread that would have run, and CPU time leaves it out.
pub fn stolen() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.lines().next().and_then(|cpus| cpus.split_whitespace().nth(8)?.parse().ok());
    // USER_HZ is 100 on x86.
    Duration::from_millis(10 * ticks.unwrap_or(0))
}
