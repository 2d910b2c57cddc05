//! From a sampling stop to a complete burst.

use std::time::Instant;

use addresses::Avma;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess};
use lookahead::{CodeCache, Fault, Fuel, Memory, Overlay, Page, Registers, StopReason, run, run_with_lines};

use crate::errno::Errno;
use crate::sys::process::signals_caught;
use crate::tracer::address_space::AddressSpace;
use crate::tracer::comparison::{same_path, same_registers, same_stack};
use crate::tracer::engine::Engine;
use crate::tracer::own_time::own_time;
use crate::tracer::static_path::{LONGEST_INSTRUCTION, NoBranch, next_unresolved, read_code};
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::{Goal, Phase, Thread, Underway};
use crate::tracer::wish::{BREAKPOINT_DEPTH, TracerKind};

/// Times a burst goes on behind what could not be followed.
const CONTINUATIONS: u32 = 16;

/// Two instructions: `addps xmm0, xmm1` and a jump to itself.
struct AnyCode;

impl Memory for AnyCode {
    fn read_page(&mut self, _: Avma, page: &mut Page) -> Result<(), Fault> {
        page[..5].copy_from_slice(&[0x0f, 0x58, 0xc1, 0xeb, 0xfe]);
        Ok(())
    }
}

/// Builds the tables that decoding and interpreting build when they are first used, while no thread waits for it.
pub(crate) fn warm_up(overlay: &mut Overlay) {
    let (mut registers, mut code, mut branches) = (Registers::default(), CodeCache::new(1024), Vec::new());
    let fuel = Fuel { instructions: 2, branches: 1 };
    run(&mut registers, overlay, &mut AnyCode, &mut code, fuel, &[], &mut branches);
    overlay.clear();
}

impl Engine {
    /// A sampling stop: the beginning of a burst.
    pub(crate) fn begin(&mut self, thread: &mut Thread) {
        self.parts.next();
        let Some(registers) = self.registers(thread) else {
            self.statistics.sampling_stops += 1;
            return self.arm_stopped(thread);
        };
        self.statistics.sampling_stops += 1;
        thread.burst.begin(Avma(registers.rip), thread.period);
        self.refresh(thread);
        match self.settings.kind {
            TracerKind::Lookahead => self.look_ahead(thread, registers),
            TracerKind::Breakpoint => self.go_to_next_branch(thread, &registers),
            TracerKind::Check => {
                self.predict(thread, registers.clone());
                self.go_to_next_branch(thread, &registers);
            }
        }
    }

    pub(crate) fn refresh(&mut self, thread: &Thread) {
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.space.refresh();
            process.bursts += 1;
            // Programs begin by choosing their handlers.
            if process.bursts.is_power_of_two() || process.bursts.is_multiple_of(64) {
                process.caught = signals_caught(thread.id.pid as u32);
            }
        }
    }

    /// The registers, if the thread is in its own 64-bit code, and not about to be sent back into an interrupted system call.
    pub(crate) fn registers(&mut self, thread: &Thread) -> Option<Registers> {
        let why = match self.area.read(thread.id.tid) {
            // ERESTARTSYS to ERESTART_RESTARTBLOCK (linux/errno.h).
            Ok(read) if read.system_call >= 0 && (-516..=-512).contains(&(read.registers.general[0] as i64)) => {
                "interrupted system call"
            }
            Ok(read) => return Some(read.registers),
            Err(Errno::ENOSYS) => "32-bit code",
            Err(_) => "no registers",
        };
        TracerStatistics::count(&mut self.statistics.ends, why);
        None
    }

    /// Follows the thread's future from `registers` until the burst is complete, or only the thread itself can go on.
    pub(crate) fn look_ahead(&mut self, thread: &mut Thread, mut registers: Registers) {
        // RF, with which no breakpoint is hit at once. The kernel sets it at one that was.
        let (stands_at, passes) = (Avma(registers.rip), registers.rflags & 1 << 16 != 0);
        let stop = self.interpret(thread, &mut registers);
        let behind = match stop {
            StopReason::SystemCall => self.behind_system_call(&registers),
            StopReason::Unsupported(instruction) => {
                TracerStatistics::count(
                    &mut self.statistics.unsupported,
                    &format!("{:?}", instruction.mnemonic).to_lowercase(),
                );
                behind_instruction(thread.id.pid, &registers)
            }
            StopReason::Fault { .. } => behind_instruction(thread.id.pid, &registers),
            _ => None,
        };
        let name = reason(stop);
        if let Some((address, goal)) = behind.filter(|_| thread.burst.continuations < CONTINUATIONS)
            && self.go_to(thread, address, goal, stands_at == address && !passes)
        {
            thread.burst.continuations += 1;
            return TracerStatistics::count(&mut self.statistics.continued, name);
        }
        self.complete(thread, name);
    }

    /// Runs ahead from `registers` as far as the burst may still go.
    pub(crate) fn interpret(&mut self, thread: &mut Thread, registers: &mut Registers) -> StopReason {
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return StopReason::UnreadableCode };
        self.overlay.clear();
        self.reader.fetch(thread.id.pid, thread.working_set.expected());
        self.statistics.time.state += self.parts.next();
        let AddressSpace { code, layout, .. } = &mut process.space;
        let decoding = code.decoding();
        let mut memory = self.reader.memory(thread.id.pid, layout);
        let burst = &mut thread.burst;
        let size = self.settings.size;
        let stop = loop {
            let left = size.most_instructions().saturating_sub(burst.instructions);
            let branches = size.most_branches().saturating_sub(burst.branches.len() as u64);
            let fuel = Fuel { instructions: left, branches: branches.min(burst.room()) };
            if left == 0 || branches == 0 {
                break if left == 0 { StopReason::Fuel } else { StopReason::Branches };
            }
            burst.lines.continue_at(burst.instructions);
            let (overlay, branches) = (&mut self.overlay, &mut burst.branches);
            let outcome = run_with_lines(registers, overlay, &mut memory, code, fuel, branches, &mut burst.lines);
            burst.add(&outcome);
            self.statistics.not_taken += outcome.not_taken;
            if outcome.stop != StopReason::Branches {
                break outcome.stop;
            }
        };
        let decoded = code.decoding() - decoding;
        thread.working_set.touched(self.overlay.touched());
        self.statistics.pages += self.overlay.pages() as u64;
        self.statistics.pages_missed += self.reader.missed;
        self.statistics.time.decoding += decoded;
        self.statistics.time.lookahead += self.parts.next().saturating_sub(decoded);
        stop
    }

    /// Where a system call returns to, if it returns.
    pub(crate) fn behind_system_call(&self, registers: &Registers) -> Option<(Avma, Goal)> {
        let number = registers.general[0] as i64;
        let never =
            [libc::SYS_rt_sigreturn, libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group];
        // `syscall`, `sysenter` and `int 0x80` are two bytes long.
        let behind = Avma(registers.rip.wrapping_add(2));
        (!never.contains(&number)).then(|| (behind, Goal::BehindSystemCall(registers.clone())))
    }

    /// Lets the thread itself go to `address`, where it stands already if `again`: then the second time is meant. Returns false if no
    /// breakpoint may or can be there.
    pub(crate) fn go_to(&mut self, thread: &mut Thread, address: Avma, goal: Goal, again: bool) -> bool {
        let critical =
            self.processes.get(&thread.id.pid).is_some_and(|process| process.space.layout.is_critical(address));
        if critical {
            TracerStatistics::count(&mut self.statistics.continued, "not in a restartable sequence");
            return false;
        }
        let began = own_time();
        let set = thread.break_at(address);
        self.statistics.time.breakpoints += own_time().saturating_sub(began);
        match set {
            Ok(()) => {
                thread.phase = Phase::Underway(Box::new(Underway { address, again, since: Instant::now(), goal }));
                true
            }
            Err(errno) => {
                TracerStatistics::count(&mut self.statistics.continued, &format!("no breakpoint: {errno}"));
                false
            }
        }
    }

    /// A breakpoint was reached.
    pub(crate) fn reached(&mut self, thread: &mut Thread) {
        let Phase::Underway(underway) = std::mem::replace(&mut thread.phase, Phase::Sampling) else { return };
        self.statistics.breakpoints += 1;
        self.parts.next();
        let Some(registers) = self.registers(thread) else {
            return self.complete(thread, "breakpoint without registers");
        };
        if Avma(registers.rip) != underway.address {
            self.statistics.breakpoints_missed += 1;
            return self.complete(thread, "breakpoint reached elsewhere");
        }
        if underway.again {
            thread.phase = Phase::Underway(Box::new(Underway { again: false, ..*underway }));
            return;
        }
        match underway.goal {
            Goal::BehindSystemCall(expected) => {
                // Other threads, the clock, a handler that ran: the path so far is one it could have taken.
                self.statistics.predictions.checked += 1;
                self.statistics.predictions.diverged += u64::from(!same_path(&expected, &registers));
                if !same_stack(&expected, &registers) {
                    return self.complete(thread, "breakpoint reached on another stack");
                }
                // The system call itself.
                thread.burst.executed(1);
                self.look_ahead(thread, registers);
            }
            Goal::BehindInstruction { before, kept } => {
                // In a loop, another turn may come there first.
                if !same_registers(&before, &registers, kept) {
                    self.statistics.breakpoints_missed += 1;
                    return self.complete(thread, "breakpoint reached at another time");
                }
                thread.burst.executed(1);
                self.look_ahead(thread, registers);
            }
            Goal::Branch { stack: Some(stack), .. } if stack != registers.general[4] => {
                self.statistics.breakpoints_missed += 1;
                self.complete(thread, "breakpoint reached on another stack");
            }
            Goal::Branch { instructions, .. } => self.evaluate(thread, registers, instructions),
        }
    }

    /// Evaluates the branch in front of which the thread has stopped, and goes on to the next.
    pub(crate) fn evaluate(&mut self, thread: &mut Thread, mut registers: Registers, instructions: u64) {
        thread.burst.executed(instructions);
        let stop = self.step(thread, &mut registers);
        match stop {
            StopReason::Fuel | StopReason::Branches => {}
            other => return self.complete(thread, reason(other)),
        }
        if self.depth_left(thread) == 0 {
            self.compare_registers(thread, &registers);
            return self.complete(thread, reason(StopReason::Branches));
        }
        if thread.burst.instructions >= self.settings.size.most_instructions() {
            return self.complete(thread, reason(StopReason::Fuel));
        }
        self.go_to_next_branch(thread, &registers);
    }

    /// Interprets one instruction.
    pub(crate) fn step(&mut self, thread: &mut Thread, registers: &mut Registers) -> StopReason {
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return StopReason::UnreadableCode };
        self.statistics.time.state += self.parts.next();
        self.overlay.clear();
        self.reader.fetch(thread.id.pid, &[]);
        let AddressSpace { code, layout, .. } = &mut process.space;
        let mut memory = self.reader.memory(thread.id.pid, layout);
        let _ = thread.burst.room();
        let fuel = Fuel { instructions: 1, branches: 1 };
        let outcome = run(registers, &mut self.overlay, &mut memory, code, fuel, &[], &mut thread.burst.branches);
        thread.burst.add(&outcome);
        self.statistics.not_taken += outcome.not_taken;
        self.statistics.time.lookahead += self.parts.next();
        outcome.stop
    }

    pub(crate) fn depth_left(&self, thread: &Thread) -> u64 {
        self.breakpoint_depth().saturating_sub(thread.burst.branches.len() as u64)
    }

    /// Taken branches of a burst by breakpoints alone.
    pub(crate) fn breakpoint_depth(&self) -> u64 {
        self.settings.size.depth.unwrap_or(BREAKPOINT_DEPTH).max(1)
    }

    /// Lets the thread run to the next branch that its bytes do not decide.
    pub(crate) fn go_to_next_branch(&mut self, thread: &mut Thread, registers: &Registers) {
        self.statistics.time.state += self.parts.next();
        let depth = self.depth_left(thread).min(thread.burst.room());
        let (start, stack) = (Avma(registers.rip), registers.general[4]);
        let found = next_unresolved(thread.id.pid, start, stack, depth, &mut thread.burst.branches);
        self.statistics.time.decoding += self.parts.next();
        match found {
            Ok(branch) => {
                let goal = Goal::Branch { instructions: branch.instructions, stack: branch.stack };
                if !self.go_to(thread, branch.address, goal, false) {
                    self.complete(thread, "no breakpoint");
                }
            }
            Err(NoBranch::Depth(instructions)) => {
                thread.burst.executed(instructions);
                self.complete(thread, reason(StopReason::Branches));
            }
            Err(NoBranch::Unreadable) => self.complete(thread, reason(StopReason::UnreadableCode)),
            Err(NoBranch::Unsupported) => self.complete(thread, "unsupported branch"),
            Err(NoBranch::Endless) => self.complete(thread, reason(StopReason::Spinning)),
        }
    }

    /// The burst is complete: it is written, and the clock started for the next.
    pub(crate) fn complete(&mut self, thread: &mut Thread, why: &str) {
        self.write(thread, why);
        self.arm_stopped(thread);
    }

    pub(crate) fn write(&mut self, thread: &mut Thread, why: &str) {
        if thread.burst.continuations > 0 || self.settings.kind != TracerKind::Lookahead {
            thread.unbreak();
        }
        thread.phase = Phase::Sampling;
        self.compare_branches(thread);
        TracerStatistics::count(&mut self.statistics.ends, why);
        let burst = &thread.burst;
        if burst.instructions == 0 {
            return;
        }
        let statistics = &mut self.statistics;
        statistics.instructions += burst.instructions;
        statistics.taken_branches += burst.branches.len() as u64;
        statistics.static_branches += burst.static_branches();
        let written = self.shared.push(|time, records| {
            burst.write(&self.event, thread.id, time, records);
        });
        *(if written { &mut statistics.bursts } else { &mut statistics.lost_bursts }) += 1;
    }
}

/// The address behind the next instruction, and what is known of the registers there.
fn behind_instruction(pid: i32, registers: &Registers) -> Option<(Avma, Goal)> {
    let address = registers.rip;
    let mut bytes = [0; LONGEST_INSTRUCTION];
    let length = read_code(pid, address, &mut bytes);
    let mut decoder = Decoder::with_ip(64, &bytes[..length], address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let falls_through = instruction.flow_control() == FlowControl::Next;
    if instruction.is_invalid() || !falls_through {
        return None;
    }
    let mut kept = u16::MAX;
    for used in InstructionInfoFactory::new().info(&instruction).used_registers() {
        let writes =
            !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        if writes && used.register().is_gpr() {
            kept &= !(1 << used.register().full_register().number());
        }
    }
    let goal = Goal::BehindInstruction { before: registers.clone(), kept };
    Some((Avma(instruction.next_ip()), goal))
}

/// The name of a reason in the statistics.
pub(crate) fn reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Fuel => "instruction budget",
        StopReason::Branches => "branch depth",
        StopReason::SystemCall => "system call",
        StopReason::Fault { .. } => "unreadable memory",
        StopReason::Exception => "exception",
        StopReason::Interrupt => "software interrupt",
        StopReason::Unsupported(_) => "unsupported instruction",
        StopReason::UnreadableCode => "unreadable code",
        StopReason::SelfModifying => "self-modifying code",
        StopReason::Spinning => "spinning",
        StopReason::Forbidden => "forbidden range",
        StopReason::OverlayFull => "too many pages",
    }
}
