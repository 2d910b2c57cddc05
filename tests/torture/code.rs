//! Unusual code: made at run time, changing itself, on deep stacks, and linked in every way.

use std::ops::Range;

use crate::contents::Contents;
use crate::tracer;
use crate::trial::{Trial, check};

/// Where `jit.c` puts code: a page that is always writable and one that is so in turns.
const PAGES: [u64; 2] = [0x7d00_0000_0000, 0x7d00_0010_0000];
const PAGE: u64 = 4096;
/// Its code is in the first bytes of the page, the rest are breakpoints.
const CODE: u64 = 64;
/// The jump of `self_modifying.c`, and the two places where it goes in turns.
const JUMP: u64 = 0x7d00_0020_0007;
const TARGETS: [u64; 2] = [0x7d00_0020_0000 + 25, 0x7d00_0020_0000 + 57];

#[test]
fn code_made_at_run_time() {
    let Some(contents) = Trial::of("jit").and_then(|trial| check(&trial)) else { return };
    let mut inside = 0;
    for (from, to) in contents.bursts.iter().flatten() {
        for address in [from, to] {
            for page in PAGES {
                let (pages, code): (Range<u64>, Range<u64>) = (page..page + PAGE, page..page + CODE);
                assert!(!pages.contains(address) || code.contains(address), "{from:x} -> {to:x}: no code was there");
                inside += u64::from(code.contains(address));
            }
        }
    }
    assert!(inside > 0 || tracer::kind().is_none(), "no branch in the code that was made");
}

/// The branches of a burst must show what the code was at that time: the jump goes to both places in turns. (Where only breakpoints are
/// used, a jump like this is taken to go where its bytes say when the thread stops: then it is one place or the other.)
#[test]
fn code_that_changes_itself() {
    let Some(contents) = Trial::of("self_modifying").and_then(|trial| check(&trial)) else { return };
    check_turns(&contents);
}

fn check_turns(contents: &Contents) {
    let bytes_decide = tracer::kind().as_deref() == Some("breakpoint");
    let mut jumps = 0;
    for branches in &contents.bursts {
        let targets: Vec<u64> = branches.iter().filter(|(from, _)| *from == JUMP).map(|&(_, to)| to).collect();
        assert!(targets.iter().all(|to| TARGETS.contains(to)), "{targets:x?}");
        assert!(bytes_decide || targets.windows(2).all(|pair| pair[0] != pair[1]), "not in turns: {targets:x?}");
        jumps += targets.len();
    }
    assert!(jumps > 1 || tracer::kind().is_none(), "the jump was never seen");
}

#[test]
fn deep_stacks() {
    if let Some(trial) = Trial::of("stack") {
        check(&trial);
    }
}

#[test]
fn linked_in_every_way() {
    for flags in [&["-static"][..], &["-static", "-s"], &["-static-pie"], &["-no-pie"], &["-pie", "-s"]] {
        if let Some(trial) = Trial::built("timers", flags) {
            check(&trial.with(&["300"]));
        }
    }
}
