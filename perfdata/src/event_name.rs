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
    const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    const OPERATIONS: [(&str, &str); 3] = [("load", "loads"), ("store", "stores"), ("prefetch", "prefetches")];
    let byte = |shift: u32| ((config >> shift) & 0xff) as usize;
    match (CACHES.get(byte(0)), OPERATIONS.get(byte(8)), byte(16)) {
        (Some(cache), Some((_, plural)), 0) => format!("{cache}-{plural}"),
        (Some(cache), Some((singular, _)), 1) => format!("{cache}-{singular}-misses"),
        _ => "invalid-cache".to_owned(),
    }
}

fn breakpoint_access(bp_type: u32) -> String {
    let access: String =
        [(1, 'r'), (2, 'w'), (4, 'x')].iter().filter(|(bit, _)| bp_type & bit != 0).map(|(_, letter)| letter).collect();
    if access.is_empty() { access } else { format!(":{access}") }
}

/// `:` and letters for what is not excluded, how precise it is, host and guest; nothing where all is at its default.
fn modifiers(attr: &EventAttr) -> String {
    let mut letters = String::new();
    let flag = |flag| attr.flags.contains(flag);
    let default_excludes_guest = attr.precise_ip() > 0;
    if attr.exclude_kernel() || attr.exclude_user() || attr.exclude_hv() {
        for (letter, excluded) in [('k', attr.exclude_kernel()), ('u', attr.exclude_user()), ('h', attr.exclude_hv())] {
            if !excluded {
                letters.push(letter);
            }
        }
    }
    for _ in 0..attr.precise_ip() {
        letters.push('p');
    }
    if flag(AttrFlags::EXCLUDE_HOST) || flag(AttrFlags::EXCLUDE_GUEST) != default_excludes_guest {
        for (letter, excluded) in [('H', flag(AttrFlags::EXCLUDE_HOST)), ('G', flag(AttrFlags::EXCLUDE_GUEST))] {
            if !excluded && flag(AttrFlags::EXCLUDE_HOST) != flag(AttrFlags::EXCLUDE_GUEST) {
                letters.push(letter);
            }
        }
    }
    if letters.is_empty() { letters } else { format!(":{letters}") }
}
