//! Names for events whose recording gives none, as `perf` makes them.

use crate::{AttrFlags, EventAttr};

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// A name such as `cycles:ppp`, `task-clock:u`, `raw 0x534088`.
pub(crate) fn event_name(attr: &EventAttr) -> String {
    let listed = |names: &[&str], unknown: &str| match names.get(attr.config as usize) {
        Some(name) => (*name).to_owned(),
        None => unknown.to_owned(),
    };
    let base = match attr.kind {
        // The high half is the PMU of a hybrid machine.
        0 => match HARDWARE.get((attr.config & 0xffff_ffff) as usize) {
            Some(name) => (*name).to_owned(),
            None => "unknown-hardware".to_owned(),
        },
        1 => listed(&SOFTWARE, "unknown-software"),
        2 => return "unknown tracepoint".to_owned(),
        3 => cache_name(attr.config),
        4 => format!("raw {:#x}", attr.config),
        5 => format!("mem:{:#x}{}", attr.config1, breakpoint_access(attr.bp_type)),
        other => return format!("unknown attr type: {other}"),
    };
    base + &modifiers(attr)
}

fn cache_name(config: u64) -> String {
    const CACHES: [(&str, &str); 7] = [
        ("L1-dcache", "lsp"),
        ("L1-icache", "lp"),
        ("LLC", "lsp"),
        ("dTLB", "lsp"),
        ("iTLB", "l"),
        ("branch", "l"),
        ("node", "lsp"),
    ];
    const OPERATIONS: [(&str, &str); 3] = [("load", "loads"), ("store", "stores"), ("prefetch", "prefetches")];
    let byte = |shift: u32| ((config >> shift) & 0xff) as usize;
    let (Some((cache, possible)), Some((one, many))) = (CACHES.get(byte(0)), OPERATIONS.get(byte(8))) else {
        return "invalid-cache".to_owned();
    };
    match byte(16) {
        _ if !possible.contains(&one[..1]) => "invalid-cache".to_owned(),
        0 => format!("{cache}-{many}"),
        1 => format!("{cache}-{one}-misses"),
        _ => "invalid-cache".to_owned(),
    }
}

fn breakpoint_access(bp_type: u32) -> String {
    let access: String =
        [(1, 'r'), (2, 'w'), (4, 'x')].iter().filter(|(bit, _)| bp_type & bit != 0).map(|(_, letter)| letter).collect();
    if access.is_empty() { access } else { format!(":{access}") }
}

/// `:` and letters: what is not excluded (kernel, user, hypervisor), how precise the ip is, host and guest. Each part only
/// where it differs from what `perf` takes for the default.
fn modifiers(attr: &EventAttr) -> String {
    let mut letters = String::new();
    let mut put_unless = |excluded: bool, letter: char| {
        if !excluded {
            letters.push(letter);
        }
    };
    let restricted = attr.exclude_kernel() || attr.exclude_user() || attr.exclude_hv();
    if restricted {
        put_unless(attr.exclude_kernel(), 'k');
        put_unless(attr.exclude_user(), 'u');
        put_unless(attr.exclude_hv(), 'h');
    }
    (0..attr.precise_ip()).for_each(|_| put_unless(false, 'p'));
    let (no_host, no_guest) =
        (attr.flags.contains(AttrFlags::EXCLUDE_HOST), attr.flags.contains(AttrFlags::EXCLUDE_GUEST));
    // Guests are left out by default of what is restricted or precise.
    if no_host || no_guest == (restricted || attr.precise_ip() > 0) {
        put_unless(no_host, 'H');
        put_unless(no_guest, 'G');
    }
    if letters.is_empty() { letters } else { format!(":{letters}") }
}
