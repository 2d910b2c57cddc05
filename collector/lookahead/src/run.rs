//! The burst.

use std::ops::Range;

use addresses::Avma;

use crate::code_cache::CodeCache;
use crate::compiled::exit_code::ExitCode;
use crate::context::BRANCHES;
use crate::exit::Exit;
use crate::lines::{DataLines, Path};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::native::{Allowed, run_compiled};
use crate::outcome::{Fuel, Outcome, StopReason};
use crate::overlay::Overlay;
use crate::registers::Registers;
use crate::sink::{Sink, Trace};
use crate::spin::SpinDetector;
use crate::{Branch, BranchKind, Branches, Executed};

/// Runs the thread's code ahead from `registers` until `fuel` is used up or something ends the burst, and appends the taken
/// branches to `sink`. On return `registers` are those in front of the first instruction that was not executed.
///
/// What the code writes goes to `overlay`, which has to be cleared when the thread itself has run; without that, a further call
/// goes on where this one ended. A branch into one of `forbidden` ends the burst.
///
/// Limits: memory that is mapped twice is taken for two memories, and nobody else writes to it during the burst.
pub fn run(
    registers: &mut Registers,
    overlay: &mut Overlay,
    memory: &mut dyn Memory,
    cache: &mut CodeCache,
    fuel: Fuel,
    forbidden: &[Range<Avma>],
    sink: &mut Vec<Branch>,
) -> Outcome {
    run_into(registers, overlay, memory, cache, fuel, forbidden, sink)
}

/// Like [`run()`] without forbidden ranges and with any place for the branches, but appends the lines of data that are used to `lines`, too.
pub fn run_with_lines(
    registers: &mut Registers,
    overlay: &mut Overlay,
    memory: &mut dyn Memory,
    cache: &mut CodeCache,
    fuel: Fuel,
    branches: &mut impl Branches,
    lines: &mut DataLines,
) -> Outcome {
    run_into(registers, overlay, memory, cache, fuel, &[], &mut Path { branches, lines })
}

/// Like [`run()`], but appends every instruction that was executed to `trace`, not only the taken branches.
pub fn run_traced(
    registers: &mut Registers,
    overlay: &mut Overlay,
    memory: &mut dyn Memory,
    cache: &mut CodeCache,
    fuel: Fuel,
    trace: &mut Vec<Executed>,
) -> Outcome {
    run_into(registers, overlay, memory, cache, fuel, &[], &mut Trace::new(trace))
}

fn run_into(
    registers: &mut Registers,
    overlay: &mut Overlay,
    memory: &mut dyn Memory,
    cache: &mut CodeCache,
    fuel: Fuel,
    forbidden: &[Range<Avma>],
    sink: &mut impl Sink,
) -> Outcome {
    let mut machine = Machine::new(registers, overlay, memory, cache.lend());
    machine.repetitions = fuel.instructions.saturating_mul(64);
    let (outcome, rip) = burst(&mut machine, registers.rip, cache, fuel, forbidden, sink);
    machine.save(rip, registers);
    cache.take_back(machine.resident);
    outcome
}

fn burst(
    m: &mut Machine<'_>,
    start: u64,
    cache: &mut CodeCache,
    fuel: Fuel,
    forbidden: &[Range<Avma>],
    sink: &mut impl Sink,
) -> (Outcome, u64) {
    let mut left = fuel.instructions;
    let mut branches = 0;
    let mut not_taken = 0;
    let mut spin = SpinDetector::default();
    let end = |left, branches, not_taken, stop, rip| {
        (Outcome { instructions: fuel.instructions - left, branches, not_taken, stop }, rip)
    };
    if left == 0 {
        return end(left, 0, 0, StopReason::Fuel, start);
    }
    let mut id = match cache.at(start, m) {
        Ok(id) => id,
        Err(stop) => return end(left, 0, 0, stop, start),
    };
    loop {
        let block = &cache.blocks[id as usize];
        let wanted = block.count as usize;
        let count = wanted.min(left as usize);
        let (first, after) = (block.first as usize, block.end);
        if count == wanted
            && let Some(lines) = sink.lines()
            && let Some(compiled) = cache.compiled(id, m)
        {
            let allowed = Allowed {
                left: left.min(u64::from(MOST_LEFT)) as u32,
                until: fuel.branches.wrapping_sub(branches).min(spin.until()).min(BRANCHES as u64) as u32,
                suspect: spin.suspect(),
            };
            if let Some(exit) = run_compiled(compiled, m, lines, cache.for_blocks(), &allowed) {
                left -= u64::from(allowed.left - m.context.hot.left);
                not_taken += u64::from(m.context.hot.not_taken);
                let taken = m.context.taken().min(BRANCHES);
                for &[from, to, kind] in &m.context.branches[..taken] {
                    sink.taken(Branch { from: Avma(from), to: Avma(to), kind: BranchKind::of_compiled(kind) });
                }
                branches += taken as u64;
                // The last one is looked at below.
                spin.passed(taken as u64 - u64::from(exit == ExitCode::TAKEN));
                let target = match exit {
                    ExitCode::NOT_ENTERED => cache.start_of(m.context.hot.current),
                    _ => m.context.hot.target,
                };
                let stop = match exit {
                    ExitCode::TAKEN => why_not_on(&mut spin, m, target, branches == fuel.branches, left, forbidden),
                    ExitCode::STOPPED => Some(m.stop),
                    _ => (left == 0).then_some(StopReason::Fuel),
                };
                if let Some(stop) = stop {
                    return end(left, branches, not_taken, stop, target);
                }
                let site = m.context.hot.site;
                id = match cache.at(target, m) {
                    Ok(id) => id,
                    Err(stop) => return end(left, branches, not_taken, stop, target),
                };
                if exit == ExitCode::UNLINKED {
                    cache.link(site, id, m);
                }
                continue;
            }
        }
        let ops = &cache.ops[first..first + count];
        m.interpreter_has_status();
        let mut exit = None;
        for (index, op) in ops.iter().enumerate() {
            sink.before(m, op, index);
            if let Err(why) = (op.run)(m, op) {
                exit = Some((index, why));
                break;
            }
            sink.executed(op);
        }
        let passed = match exit {
            Some((index, Exit::Stop)) => index,
            _ => count,
        };
        sink.passed(passed);
        left -= passed as u64;
        let next = match exit {
            None => {
                if count < wanted {
                    return end(left, branches, not_taken, StopReason::Fuel, ops[count - 1].next());
                }
                if left == 0 {
                    return end(left, branches, not_taken, StopReason::Fuel, after);
                }
                cache.following(id, m).map_err(|stop| (stop, after))
            }
            Some((index, Exit::NotTaken)) => {
                sink.executed(&ops[index]);
                not_taken += 1;
                if left == 0 {
                    return end(left, branches, not_taken, StopReason::Fuel, after);
                }
                cache.following(id, m).map_err(|stop| (stop, after))
            }
            Some((index, Exit::Taken(kind))) => {
                branches += 1;
                let target = m.target;
                sink.taken(Branch { from: Avma(ops[index].ip), to: Avma(target), kind });
                let stop = why_not_on(&mut spin, m, target, branches == fuel.branches, left, forbidden);
                if let Some(stop) = stop {
                    return end(left, branches, not_taken, stop, target);
                }
                cache.after(id, target, m).map_err(|stop| (stop, target))
            }
            Some((index, Exit::Stop)) => {
                return end(left, branches, not_taken, m.stop, ops[index].ip);
            }
        };
        id = match next {
            Ok(id) => id,
            Err((stop, rip)) => return end(left, branches, not_taken, stop, rip),
        };
    }
}

/// Why a burst does not go on at the target of a branch that was taken.
#[inline(always)]
fn why_not_on(
    spin: &mut SpinDetector,
    m: &mut Machine<'_>,
    target: u64,
    is_last: bool,
    left: u64,
    forbidden: &[Range<Avma>],
) -> Option<StopReason> {
    if is_last {
        Some(StopReason::Branches)
    } else if forbidden.iter().any(|range| range.contains(&Avma(target))) {
        Some(StopReason::Forbidden)
    } else if left == 0 {
        Some(StopReason::Fuel)
    } else if spin.repeats(target, m) {
        Some(StopReason::Spinning)
    } else {
        None
    }
}

/// Instructions that compiled blocks are given at most.
const MOST_LEFT: u32 = 1 << 30;

const _: () = assert!(BranchKind::Return as u8 == 6);
