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
use crate::native::{Allowed, CompiledId, run_compiled};
use crate::outcome::{Fuel, Outcome, StopReason};
use crate::overlay::Overlay;
use crate::registers::Registers;
use crate::sink::{Sink, Trace};
use crate::spin::SpinDetector;
use crate::{Branch, BranchKind, Branches, Executed};

/// Runs the thread's code ahead from `registers` until `fuel` is used up or something ends the burst, and appends the taken
/// branches to `sink`. On return `registers` are those before the first instruction that was not executed.
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
    let start = registers.rip;
    let (outcome, rip) = match sink.lines().is_some() && cache.compiles() {
        true => burst::<true>(&mut machine, start, cache, fuel, forbidden, sink),
        false => burst::<false>(&mut machine, start, cache, fuel, forbidden, sink),
    };
    machine.save(rip, registers);
    cache.take_back(machine.resident);
    outcome
}

/// `COMPILES`: blocks that are compiled run by themselves.
fn burst<const COMPILES: bool>(
    m: &mut Machine<'_>,
    start: u64,
    cache: &mut CodeCache,
    fuel: Fuel,
    forbidden: &[Range<Avma>],
    sink: &mut impl Sink,
) -> (Outcome, u64) {
    let mut burst = Burst { fuel, forbidden, left: fuel.instructions, branches: 0, not_taken: 0 };
    let mut spin = SpinDetector::default();
    if burst.left == 0 {
        return burst.end(StopReason::Fuel, start);
    }
    let mut id = match cache.at(start, m) {
        Ok(id) => id,
        Err(stop) => return burst.end(stop, start),
    };
    loop {
        let block = &cache.blocks[id as usize];
        let wanted = block.count as usize;
        let count = wanted.min(burst.left as usize);
        let (first, after) = (block.first as usize, block.end);
        if COMPILES
            && count == wanted
            && let Some(compiled) = cache.compiled(id, m)
        {
            match burst.run_blocks((id, compiled), m, cache, &mut spin, sink) {
                Ok(next) => id = next,
                Err((stop, rip)) => return burst.end(stop, rip),
            }
            continue;
        }
        let ops = &cache.ops[first..first + count];
        if COMPILES {
            m.interpreter_has_status();
        }
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
        burst.left -= passed as u64;
        let next = match exit {
            None => {
                if count < wanted {
                    return burst.end(StopReason::Fuel, ops[count - 1].next());
                }
                if burst.left == 0 {
                    return burst.end(StopReason::Fuel, after);
                }
                cache.following(id, m).map_err(|stop| (stop, after))
            }
            Some((index, Exit::NotTaken)) => {
                sink.executed(&ops[index]);
                burst.not_taken += 1;
                if burst.left == 0 {
                    return burst.end(StopReason::Fuel, after);
                }
                cache.following(id, m).map_err(|stop| (stop, after))
            }
            Some((index, Exit::Taken(kind))) => {
                burst.branches += 1;
                let target = m.target;
                sink.taken(Branch { from: Avma(ops[index].ip), to: Avma(target), kind });
                if let Some(stop) = burst.why_not_on(&mut spin, m, target) {
                    return burst.end(stop, target);
                }
                cache.after(id, target, m).map_err(|stop| (stop, target))
            }
            Some((index, Exit::Stop)) => {
                return burst.end(m.stop, ops[index].ip);
            }
        };
        id = match next {
            Ok(id) => id,
            Err((stop, rip)) => return burst.end(stop, rip),
        };
    }
}

/// How far a burst has come.
struct Burst<'f> {
    fuel: Fuel,
    forbidden: &'f [Range<Avma>],
    /// Instructions that may still be executed.
    left: u64,
    branches: u64,
    not_taken: u64,
}

impl Burst<'_> {
    fn end(&self, stop: StopReason, rip: u64) -> (Outcome, u64) {
        let instructions = self.fuel.instructions - self.left;
        (Outcome { instructions, branches: self.branches, not_taken: self.not_taken, stop }, rip)
    }

    /// Runs a compiled block and those that follow. Returns the next block that the loop has to look at, or why, and where, the burst ends.
    #[inline(never)]
    fn run_blocks(
        &mut self,
        (id, compiled): (u32, CompiledId),
        m: &mut Machine<'_>,
        cache: &mut CodeCache,
        spin: &mut SpinDetector,
        sink: &mut impl Sink,
    ) -> Result<u32, (StopReason, u64)> {
        let allowed = Allowed {
            left: self.left.min(u64::from(MOST_LEFT)) as u32,
            until: self.fuel.branches.wrapping_sub(self.branches).min(spin.until()).min(BRANCHES as u64) as u32,
            suspect: spin.suspect(),
            start: cache.start_of(id),
        };
        let Some(lines) = sink.lines() else { return Err((StopReason::UnreadableCode, m.target)) };
        let exit = run_compiled(compiled, m, lines, cache.for_blocks(), &allowed);
        self.left -= u64::from(allowed.left - m.context.hot.left);
        self.not_taken += u64::from(m.context.hot.not_taken);
        let taken = m.context.taken().min(BRANCHES);
        for &[from, to, kind] in &m.context.branches[..taken] {
            sink.taken(Branch { from: Avma(from), to: Avma(to), kind: BranchKind::of_compiled(kind) });
        }
        self.branches += taken as u64;
        // The last one is looked at below.
        spin.passed(taken as u64 - u64::from(exit == ExitCode::TAKEN));
        let target = match exit {
            ExitCode::NOT_ENTERED => cache.start_of(m.context.hot.current),
            _ => m.context.hot.target,
        };
        let stop = match exit {
            ExitCode::TAKEN => self.why_not_on(spin, m, target),
            ExitCode::STOPPED => Some(m.stop),
            _ => (self.left == 0).then_some(StopReason::Fuel),
        };
        if let Some(stop) = stop {
            return Err((stop, target));
        }
        let site = m.context.hot.site;
        let id = cache.at(target, m).map_err(|stop| (stop, target))?;
        match exit {
            ExitCode::UNLINKED => cache.link(site, id, m),
            ExitCode::PASSED => cache.put_target(id, m),
            _ => {}
        }
        Ok(id)
    }

    /// Why the burst does not go on at the target of a branch that was taken.
    #[inline(always)]
    fn why_not_on(&self, spin: &mut SpinDetector, m: &mut Machine<'_>, target: u64) -> Option<StopReason> {
        if self.branches == self.fuel.branches {
            Some(StopReason::Branches)
        } else if self.forbidden.iter().any(|range| range.contains(&Avma(target))) {
            Some(StopReason::Forbidden)
        } else if self.left == 0 {
            Some(StopReason::Fuel)
        } else if spin.repeats(target, m) {
            Some(StopReason::Spinning)
        } else {
            None
        }
    }
}

/// Instructions that compiled blocks are given at most.
const MOST_LEFT: u32 = 1 << 30;

const _: () = assert!(BranchKind::Return as u8 == 6);
