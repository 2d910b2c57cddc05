//! From the registers of a stopped thread to the path it takes from there: as far as it can be followed, or to where a breakpoint helps.

use std::time::Duration;

use addresses::Avma;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess};
use lookahead::{Fuel, LONGEST_INSTRUCTION, Overlay, Registers, StopReason, run, run_with_lines};

use crate::errno::Errno;
use crate::tracer::burst::ThreadId;
use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::burst::memory::PageReader;
use crate::tracer::burst::path::{Goal, Path};
use crate::tracer::burst::prediction::{Prediction, same_path, same_registers, same_stack};
use crate::tracer::burst::static_path::{NoBranch, next_unresolved, read_code};
use crate::tracer::kernel::{Kernel, ThreadMemory};
use crate::tracer::options::{BurstEnd, TracerKind};
use crate::tracer::statistics::{CODE_OF_32_BITS, TracerStatistics};
use crate::tracer::thread::event::Answer;

/// Pages of a thread that a burst may touch.
const PAGES: usize = 2048;
/// Times a burst goes on after what could not be followed.
const CONTINUATIONS: u32 = 16;

/// Takes bursts, one after the other.
pub(crate) struct BurstTaker {
    kind: TracerKind,
    end: BurstEnd,
    // Reused from burst to burst.
    overlay: Overlay,
    reader: PageReader,
    /// When the present part of the work began, by the CPU time of the tracer.
    part_began: Duration,
}

/// A thread that stands still, and what there is to take its burst with.
pub(crate) struct Standing<'a, K: Kernel> {
    pub(crate) kernel: &'a mut K,
    pub(crate) statistics: &'a mut TracerStatistics,
    pub(crate) id: ThreadId,
    /// What its burst stands for.
    pub(crate) period: u64,
    pub(crate) path: &'a mut Path,
    pub(crate) space: &'a mut AddressSpace,
}

impl BurstTaker {
    pub(crate) fn new(kind: TracerKind, end: BurstEnd) -> Self {
        Self { kind, end, overlay: Overlay::new(PAGES), reader: PageReader::new(), part_began: Duration::ZERO }
    }

    /// Looks ahead, or for the first branch to set a breakpoint at.
    pub(crate) fn begin<K: Kernel>(&mut self, on: &mut Standing<'_, K>, registers: Registers) -> Answer {
        on.path.burst.begin(Avma(registers.rip), registers.are_after_system_call(), on.period);
        on.space.refresh(on.kernel);
        match self.kind {
            TracerKind::Lookahead | TracerKind::Agent | TracerKind::AgentCheck | TracerKind::Timer => {
                self.look_ahead(on, registers)
            }
            TracerKind::Breakpoint => self.seek_next_branch(on, &registers),
            TracerKind::Check => {
                self.predict(on, registers.clone());
                self.seek_next_branch(on, &registers)
            }
        }
    }

    /// The thread stands where it was to go: goes on from there.
    pub(crate) fn go_on<K: Kernel>(&mut self, on: &mut Standing<'_, K>, registers: Registers, goal: Goal) -> Answer {
        match goal {
            Goal::AfterSystemCall(expected) => {
                // Other threads, the clock, a handler that ran: the path so far is one it could have taken.
                on.statistics.predictions.checked += 1;
                on.statistics.predictions.diverged += u64::from(!same_path(&expected, &registers));
                if !same_stack(&expected, &registers) {
                    return Answer::Complete("breakpoint reached on another stack");
                }
                // The system call itself.
                on.path.burst.executed(1);
                self.look_ahead(on, registers)
            }
            Goal::AfterInstruction { before, kept } => {
                // In a loop, another turn may come there first.
                if !same_registers(&before, &registers, kept) {
                    on.statistics.breakpoints_missed += 1;
                    return Answer::Complete("breakpoint reached at another time");
                }
                on.path.burst.executed(1);
                self.look_ahead(on, registers)
            }
            Goal::Branch { stack: Some(stack), .. } if stack != registers.general[4] => {
                on.statistics.breakpoints_missed += 1;
                Answer::Complete("breakpoint reached on another stack")
            }
            Goal::Branch { instructions, .. } => self.evaluate(on, registers, instructions),
        }
    }

    /// Follows the thread's future from `registers` until the burst is complete, or only the thread itself can go on.
    fn look_ahead<K: Kernel>(&mut self, on: &mut Standing<'_, K>, mut registers: Registers) -> Answer {
        // RF, with which no breakpoint is hit at once. The kernel sets it at one that was.
        let (stands_at, passes) = (Avma(registers.rip), registers.rflags & 1 << 16 != 0);
        let stop = self.interpret(on, &mut registers);
        if self.reader.met_served && matches!(stop, StopReason::Fault { .. } | StopReason::UnreadableCode) {
            // The thread may wait there, and is not traced while it waits.
            return Answer::Complete("memory that others serve");
        }
        let next = match stop {
            StopReason::SystemCall => after_system_call(&registers),
            StopReason::Unsupported(instruction) => {
                let name = format!("{:?}", instruction.mnemonic).to_lowercase();
                TracerStatistics::count(&mut on.statistics.unsupported, &name);
                after_instruction(on.kernel, on.id.pid, &registers)
            }
            StopReason::Fault { .. } => after_instruction(on.kernel, on.id.pid, &registers),
            _ => None,
        };
        match next.filter(|_| on.path.burst.continuations < CONTINUATIONS) {
            Some((address, goal)) => {
                on.path.goal = Some(goal);
                let again = stands_at == address && !passes;
                Answer::GoesOnAt { address, again, otherwise: stop.name() }
            }
            None => Answer::Complete(stop.name()),
        }
    }

    /// Runs ahead from `registers` as far as the burst may still go.
    fn interpret<K: Kernel>(&mut self, on: &mut Standing<'_, K>, registers: &mut Registers) -> StopReason {
        let pid = on.id.pid;
        self.overlay.clear();
        self.reader.fetch(on.kernel, pid, on.path.working_set.expected());
        on.statistics.time.state += self.part(on.kernel);
        let AddressSpace { code, layout, .. } = &mut *on.space;
        let (decoding, blocks) = (code.decoding(), code.blocks());
        let mut memory = self.reader.memory(on.kernel, pid, layout);
        let burst = &mut on.path.burst;
        let stop = loop {
            let left = self.end.most_instructions().saturating_sub(burst.instructions);
            let branches = self.end.most_branches().saturating_sub(burst.branches.len() as u64);
            let fuel = Fuel { instructions: left, branches: branches.min(burst.room()) };
            if left == 0 || branches == 0 {
                break if left == 0 { StopReason::Fuel } else { StopReason::Branches };
            }
            burst.lines.continue_at(burst.instructions);
            let (overlay, branches) = (&mut self.overlay, &mut burst.branches);
            let outcome = run_with_lines(registers, overlay, &mut memory, code, fuel, branches, &mut burst.lines);
            burst.add(&outcome);
            on.statistics.not_taken += outcome.not_taken;
            if outcome.stop != StopReason::Branches {
                break outcome.stop;
            }
        };
        on.space.refresh_if_unknown(on.kernel, blocks);
        let AddressSpace { code, layout, .. } = &*on.space;
        if layout.has_made_code() {
            // What was executed is what is held: it was forgotten before.
            for (at, bytes) in code.code_since(0).filter(|(at, _)| layout.is_made_code(*at)) {
                burst.code.push(at, bytes);
            }
        }
        let took = self.part(on.kernel);
        // By the clock on the wall, which goes on where others have the CPU.
        let decoded = (code.decoding() - decoding).min(took);
        on.path.working_set.touched(self.overlay.touched());
        on.statistics.pages += self.overlay.pages() as u64;
        on.statistics.pages_missed += self.reader.missed;
        on.statistics.time.decoding += decoded;
        on.statistics.time.lookahead += took - decoded;
        stop
    }

    /// Looks ahead without writing anything down, to be compared with what the breakpoints find.
    fn predict<K: Kernel>(&mut self, on: &mut Standing<'_, K>, mut registers: Registers) {
        let (not_taken, start) = (on.statistics.not_taken, Avma(registers.rip));
        let stop = self.interpret(on, &mut registers);
        on.statistics.not_taken = not_taken;
        let branches = std::mem::take(&mut on.path.burst.branches);
        on.path.burst.begin(start, on.path.burst.after_call, on.period);
        let complete = stop == StopReason::Branches;
        on.path.prediction = Some(Box::new(Prediction { branches, registers, complete }));
    }

    /// Evaluates the branch before which the thread has stopped, and goes on to the next.
    fn evaluate<K: Kernel>(&mut self, on: &mut Standing<'_, K>, mut registers: Registers, instructions: u64) -> Answer {
        on.path.burst.executed(instructions);
        let stop = self.step(on, &mut registers);
        match stop {
            StopReason::Fuel | StopReason::Branches => {}
            other => return Answer::Complete(other.name()),
        }
        if self.branches_left(on.path) == 0 {
            if let Some(prediction) = &on.path.prediction {
                prediction.compare_registers(&registers, &mut on.statistics.predictions);
            }
            return Answer::Complete(StopReason::Branches.name());
        }
        if on.path.burst.instructions >= self.end.most_instructions() {
            return Answer::Complete(StopReason::Fuel.name());
        }
        self.seek_next_branch(on, &registers)
    }

    /// Interprets one instruction, of which nothing is written down.
    fn step<K: Kernel>(&mut self, on: &mut Standing<'_, K>, registers: &mut Registers) -> StopReason {
        let pid = on.id.pid;
        on.statistics.time.state += self.part(on.kernel);
        self.overlay.clear();
        self.reader.fetch(on.kernel, pid, &[]);
        let AddressSpace { code, layout, .. } = &mut *on.space;
        let mut memory = self.reader.memory(on.kernel, pid, layout);
        let _ = on.path.burst.room();
        let fuel = Fuel { instructions: 1, branches: 1 };
        let branches = &mut on.path.burst.branches;
        let outcome = run(registers, &mut self.overlay, &mut memory, code, fuel, &[], branches);
        on.path.burst.add(&outcome);
        on.statistics.not_taken += outcome.not_taken;
        on.statistics.time.lookahead += self.part(on.kernel);
        outcome.stop
    }

    /// Taken branches that the burst may still have.
    fn branches_left(&self, path: &Path) -> u64 {
        self.end.most_branches().saturating_sub(path.burst.branches.len() as u64)
    }

    /// Lets the thread run to the next branch that its bytes do not decide.
    fn seek_next_branch<K: Kernel>(&mut self, on: &mut Standing<'_, K>, registers: &Registers) -> Answer {
        on.statistics.time.state += self.part(on.kernel);
        let depth = self.branches_left(on.path).min(on.path.burst.room());
        let (start, stack) = (Avma(registers.rip), registers.general[4]);
        let branches = &mut on.path.burst.branches;
        let found = next_unresolved(on.kernel, on.id.pid, start, stack, depth, branches);
        on.statistics.time.decoding += self.part(on.kernel);
        match found {
            Ok(branch) => {
                on.path.goal = Some(Goal::Branch { instructions: branch.instructions, stack: branch.stack });
                Answer::GoesOnAt { address: branch.address, again: false, otherwise: "no breakpoint" }
            }
            Err(NoBranch::Depth(instructions)) => {
                on.path.burst.executed(instructions);
                Answer::Complete(StopReason::Branches.name())
            }
            Err(NoBranch::Unreadable) => Answer::Complete(StopReason::UnreadableCode.name()),
            Err(NoBranch::Unsupported) => Answer::Complete("unsupported branch"),
            Err(NoBranch::Endless) => Answer::Complete(StopReason::Spinning.name()),
        }
    }

    /// CPU time of the tracer since the last time this was asked: one part of its work ends, another one begins. There is one look at
    /// the clock between two of them: each is a system call.
    pub(crate) fn part(&mut self, kernel: &impl Kernel) -> Duration {
        let now = kernel.own_time();
        now.saturating_sub(std::mem::replace(&mut self.part_began, now))
    }

    /// The registers, if the thread is in its own 64-bit code, and not about to be sent back into an interrupted system call.
    pub(crate) fn registers<K: Kernel>(
        kernel: &mut K,
        statistics: &mut TracerStatistics,
        thread: i32,
    ) -> Option<Registers> {
        let why = match kernel.registers(thread) {
            // ERESTARTSYS to ERESTART_RESTARTBLOCK (linux/errno.h).
            Ok(read) if read.system_call >= 0 && (-516..=-512).contains(&(read.registers.general[0] as i64)) => {
                "interrupted system call"
            }
            Ok(read) => return Some(read.registers),
            Err(Errno::ENOSYS) => CODE_OF_32_BITS,
            Err(_) => "no registers",
        };
        TracerStatistics::count(&mut statistics.ends, why);
        None
    }
}

/// Where a system call returns to, if it returns.
fn after_system_call(registers: &Registers) -> Option<(Avma, Goal)> {
    let number = registers.general[0] as i64;
    let never = [libc::SYS_rt_sigreturn, libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group];
    // `syscall`, `sysenter` and `int 0x80` are two bytes long.
    let after = Avma(registers.rip.wrapping_add(2));
    (!never.contains(&number)).then(|| (after, Goal::AfterSystemCall(registers.clone())))
}

/// The address after the next instruction, and what is known of the registers there.
fn after_instruction(memory: &impl ThreadMemory, pid: i32, registers: &Registers) -> Option<(Avma, Goal)> {
    let address = registers.rip;
    let mut bytes = [0; LONGEST_INSTRUCTION];
    let length = read_code(memory, pid, address, &mut bytes);
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
    let goal = Goal::AfterInstruction { before: registers.clone(), kept };
    Some((Avma(instruction.next_ip()), goal))
}
