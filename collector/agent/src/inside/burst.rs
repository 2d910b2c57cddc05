//! A burst: from the frame of the clock's signal to a slot.

use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering::{Relaxed, Release};

use lookahead::{
    Branch, Branches, CodeCache, DataLines, Fuel, Overlay, Registers, SingleStep, StopReason, StubMemory, VectorState,
    run_with_lines,
};

use crate::inside::check::{self, Check};
use crate::inside::context::{self, Tcb};
use crate::inside::follow::Hold;
use crate::inside::frame::Frame;
use crate::inside::heap::Heap;
use crate::inside::own::OwnMemory;
use crate::inside::{entry, faults, follow, system};
use crate::layout::{STUBS, STUBS_BYTES};
use crate::path_copy;
use crate::slots::{Checked, Limits, Outcome, PIECE, PIECES, Shared, SlotBranches, Taken, TakenSlot};

/// Pages of memory that a burst may touch, and instructions that are kept decoded: what the heap of a context has room for.
pub(crate) const PAGES: usize = 1024;
const DECODED: usize = 40_000;
/// Where bursts are checked, other things need the room.
const DECODED_IN_CHECKS: usize = 20_000;
/// Instructions from which on a burst is long enough for compiled blocks: in short ones, getting their code into the caches takes longer
/// than is gained.
const LONG: u64 = 30_000;
/// Runs of a block until it is compiled.
const COMPILED_AFTER: u32 = 16;
/// The code segment of 64-bit code.
const USER_CS_64: u64 = 0x33;
/// In the last words of the legacy area of a frame: an XSAVE area follows, of this size (asm/sigcontext.h).
const MAGIC: u32 = 0x4650_5853;
const MAGIC_AT: usize = 464;
const SIZE_AT: usize = 480;

/// What bursts of a context are taken with.
pub(crate) struct Agent {
    pub(crate) overlay: Overlay,
    pub(crate) code: CodeCache,
    lines: DataLines,
    /// Taken branches, if they are to be checked.
    pub(crate) branches: Vec<Branch>,
    pub(crate) path: Path,
    /// The slot that is being filled.
    pub(crate) slot: Option<TakenSlot<'static>>,
    pub(crate) process: u32,
    /// The clock's signal here.
    pub(crate) signal: i32,
    pub(crate) has_handlers: bool,
    /// What bursts are compared with their thread by, if they are.
    pub(crate) check: Option<Box<Check>>,
}

/// How far a burst has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    pub(crate) start: u64,
    /// It starts right after a system call.
    after_call: bool,
    /// Instructions of each piece of as many branches as a sample has.
    pieces: [u64; PIECES],
    pub(crate) executed: u64,
    not_taken: u64,
    decoding: u64,
    pages: u64,
    system_calls: u64,
    /// Taken branches.
    branches: usize,
    /// CPU time of the handler, ns.
    pub(crate) took: u64,
}

impl Agent {
    fn new(context: u64) -> Self {
        let stubs = (STUBS + context * STUBS_BYTES) as *mut u8;
        let check = Shared::inside().checks().then(|| Box::new(Check::new()));
        let (pages, decoded) = if check.is_some() { (check::PAGES, DECODED_IN_CHECKS) } else { (PAGES, DECODED) };
        let compiled_after = if Shared::inside().limits().instructions >= LONG { COMPILED_AFTER } else { 0 };
        let mut code = CodeCache::comparing(decoded).compiling_after(compiled_after);
        if let Some(stubs) = NonNull::new(stubs) {
            // SAFETY: mapped with the image, writable and executable, a part for each context.
            code = code.with_stub_memory(unsafe { StubMemory::new(stubs) });
        }
        let branches = Vec::new();
        let (overlay, lines) = (Overlay::new(pages), DataLines::default());
        let path = Path::default();
        Self { overlay, code, lines, branches, path, slot: None, process: 0, signal: 0, has_handlers: false, check }
    }

    /// The piece that the next instructions belong to.
    fn piece(&self) -> usize {
        (self.path.branches / PIECE).min(PIECES - 1)
    }

    /// So many instructions of a piece were executed.
    fn executed(&mut self, piece: usize, instructions: u64) {
        self.path.executed += instructions;
        self.path.pieces[piece] += instructions;
    }
}

/// Takes a burst of the thread that stands where `frame` says. `left_by`: the parent, if one of its threads had this context when the
/// process was forked.
pub(crate) extern "C" fn burst(tcb: &mut Tcb, info: *const libc::siginfo_t, frame: &mut Frame, left_by: u32) {
    let began = system::thread_time();
    let shared = Shared::inside();
    if left_by != 0 {
        renew(tcb);
    }
    if !follow::begin_anew(frame) || shared.is_off() {
        return;
    }
    // SAFETY: the kernel has written all of it; `si_fd` follows `si_band`.
    let (signal, code, number) = unsafe { ((*info).si_signo, (*info).si_code, info.cast::<i32>().add(6).read()) };
    // A timer is not of a thread.
    let event = if code < 0 { system::thread_id() } else { number as u32 };
    // A fault of a probe would end the process: a blocked signal of a fault cannot be handled.
    if frame.blocked & faults::OF_PROBES != 0 || frame.is_stepped() {
        return;
    }
    let Some(registers) = registers(frame, tcb.fs_base) else { return };
    let process = tcb.busy.load(Relaxed);
    let Some(slot) = shared.take(event, process) else {
        shared.tally.no_slot.fetch_add(1, Relaxed);
        return;
    };
    // The frame of a fault would come where the frame of this signal is, if that is on the alternate stack.
    system::disable_alternate_stack();
    if !faults::begin(process) {
        shared.tally.waiting.fetch_add(1, Relaxed);
        slot.free();
        return;
    }
    let index = tcb.index;
    let agent = tcb.agent.get_or_insert_with(|| made(Agent::new(index)));
    // SAFETY: the agent of the context at hand, which this thread has alone.
    let agent = unsafe { agent.as_mut() };
    (agent.slot, agent.process, agent.signal, agent.has_handlers) = (Some(slot), process, signal, true);
    agent.path = Path { start: registers.rip, after_call: registers.are_after_system_call(), ..Path::default() };
    agent.branches.clear();
    agent.lines.clear();
    system::set_mask(faults::ALL_BUT_FAULTS);
    take(tcb, agent, registers, slot, frame, began);
}

/// The burst of `tcb` goes on after a system call, where `frame` says.
pub(crate) fn go_on(tcb: &mut Tcb, hold: &Hold, frame: &mut Frame) {
    let began = system::thread_time();
    // SAFETY: the agent of the context at hand, which this thread has alone.
    let Some(agent) = tcb.agent.map(|mut agent| unsafe { agent.as_mut() }) else { return };
    let Some(registers) = registers(frame, tcb.fs_base).filter(|_| !Shared::inside().is_off()) else {
        return hold.slot.leave();
    };
    system::disable_alternate_stack();
    if !faults::begin(agent.process) {
        return hold.slot.leave();
    }
    let Some(slot) = hold.slot.take_again() else {
        return faults::end(agent.process);
    };
    (agent.slot, agent.has_handlers) = (Some(slot), true);
    system::set_mask(faults::ALL_BUT_FAULTS);
    agent.path.system_calls += 1;
    let step = hold.stepped(registers.rip);
    // The system call itself, and what followed.
    let passed = !matches!(step, None | Some(SingleStep::Repeats));
    agent.executed(agent.piece(), 1 + u64::from(passed));
    match step {
        Some(SingleStep::Next | SingleStep::Repeats) => {}
        Some(SingleStep::NotTaken) => agent.path.not_taken += 1,
        Some(SingleStep::Taken(branch)) => {
            SlotBranches { slot: slot.slot, count: &mut agent.path.branches, kept: None }.taken(branch);
        }
        None => {
            fill(agent, slot, StopReason::SystemCall);
            return complete(agent, slot, began);
        }
    }
    take(tcb, agent, registers, slot, frame, began);
}

fn made(agent: Agent) -> NonNull<Agent> {
    NonNull::from(Box::leak(Box::new(agent)))
}

/// Looks ahead from `registers` as far as the burst may go.
fn take(
    tcb: &mut Tcb,
    agent: &mut Agent,
    mut registers: Registers,
    slot: TakenSlot<'static>,
    frame: &mut Frame,
    began: u64,
) {
    let limits = Shared::inside().limits();
    if agent.check.is_some() {
        return take_and_check(tcb, agent, registers, slot, frame, began);
    }
    let stop = look_ahead(agent, slot, &mut registers, limits);
    let goes_on = stop == StopReason::SystemCall
        && agent.path.system_calls < follow::MOST
        && agent.path.executed + 2 < limits.instructions
        && (agent.path.branches as u64) + 1 < limits.branches;
    fill(agent, slot, stop);
    let place = if goes_on { follow::arm(tcb, agent.signal, agent.process, frame, &registers) } else { None };
    let Some(place) = place else { return complete(agent, slot, began) };
    (agent.has_handlers, agent.slot) = (false, None);
    agent.path.took += system::thread_time().saturating_sub(began);
    tcb.hold = Some(Hold { slot: slot.hold(agent.path.took), place });
}

/// The same, and has the thread execute a copy of the path. The burst ends at a system call.
fn take_and_check(
    tcb: &mut Tcb,
    agent: &mut Agent,
    mut registers: Registers,
    slot: TakenSlot<'static>,
    frame: &mut Frame,
    began: u64,
) {
    let context = tcb.index;
    if let Some(check) = &mut agent.check {
        check.redirect(context, frame, &registers);
    }
    let stop = look_ahead(agent, slot, &mut registers, Shared::inside().limits());
    fill(agent, slot, stop);
    let Agent { check, branches, path, .. } = agent;
    let Some(check) = check else { return complete(agent, slot, began) };
    let path = path_copy::Path { start: path.start, instructions: path.executed, branches };
    match check::begin(check, context, path, registers) {
        Ok(()) => {
            system::set_mask(u64::MAX);
            agent.path.took += system::thread_time().saturating_sub(began);
            tcb.waits.store(follow::of_thread(follow::CHECKED), Release);
        }
        Err(why) => {
            check.undo();
            slot.slot.set_checked(&Checked { outcome: Outcome::Unfinished(why), ..Checked::default() });
            complete(agent, slot, began);
        }
    }
}

/// The burst is the recorder's.
pub(crate) fn complete(agent: &mut Agent, slot: TakenSlot<'static>, began: u64) {
    system::set_mask(u64::MAX);
    agent.has_handlers = false;
    faults::end(agent.process);
    agent.slot = None;
    slot.hand_over(agent.path.took + system::thread_time().saturating_sub(began));
}

fn look_ahead(agent: &mut Agent, slot: TakenSlot<'_>, registers: &mut Registers, limits: Limits) -> StopReason {
    agent.overlay.clear();
    let decoding = agent.code.decoding();
    let bursts = agent.code.bursts();
    let stop = loop {
        let (executed, branches) = (agent.path.executed, agent.path.branches);
        let left = limits.branches.saturating_sub(branches as u64);
        let fuel = Fuel {
            instructions: limits.instructions.saturating_sub(executed),
            branches: left.min((PIECE - branches % PIECE) as u64),
        };
        if fuel.instructions == 0 || left == 0 {
            break if fuel.instructions == 0 { StopReason::Fuel } else { StopReason::Branches };
        }
        agent.lines.continue_at(executed);
        let piece = agent.piece();
        let Agent { overlay, code, lines, check, branches, path, .. } = agent;
        let kept = check.is_some().then_some(branches);
        let mut branches = SlotBranches { slot: slot.slot, count: &mut path.branches, kept };
        let outcome = match check {
            None => run_with_lines(registers, overlay, &mut OwnMemory, code, fuel, &mut branches, lines),
            Some(check) => run_with_lines(registers, overlay, &mut check.memory(), code, fuel, &mut branches, lines),
        };
        agent.executed(piece, outcome.instructions);
        agent.path.not_taken += outcome.not_taken;
        if outcome.stop != StopReason::Branches {
            break outcome.stop;
        }
    };
    agent.path.decoding += (agent.code.decoding() - decoding).as_nanos() as u64;
    agent.path.pages += agent.overlay.pages() as u64;
    hand_over_code(agent, slot, bursts);
    stop
}

/// Puts the bytes of what was executed after the burst of that number into the slot, but for code of files.
fn hand_over_code(agent: &Agent, slot: TakenSlot<'_>, bursts: u32) {
    let of_files = Shared::inside().file_code.of(agent.process);
    for (at, bytes) in agent.code.code_since(bursts) {
        if !of_files.has(at) {
            slot.slot.code.put(at, bytes);
        }
    }
}

fn fill(agent: &mut Agent, slot: TakenSlot<'_>, stop: StopReason) {
    let Path { start, after_call, pieces, not_taken, decoding, pages, system_calls, branches, .. } = agent.path;
    slot.slot.fill(&Taken {
        start,
        after_call,
        time: system::monotonic_time(),
        pieces,
        not_taken,
        decoding,
        pages,
        system_calls,
        stop,
        branches,
        lines: &agent.lines,
    });
}

/// The registers of the interrupted thread; `None` if it is not in 64-bit code.
pub(crate) fn registers(frame: &Frame, fs_base: u64) -> Option<Registers> {
    if frame.segments & 0xffff != USER_CS_64 || frame.vector.is_null() {
        return None;
    }
    // SAFETY: the legacy area has 512 bytes, and what follows is as long as it says, if the magic number stands there.
    let area = unsafe {
        let magic = frame.vector.add(MAGIC_AT).cast::<u32>().read_unaligned();
        let size = frame.vector.add(SIZE_AT).cast::<u32>().read_unaligned() as usize;
        slice::from_raw_parts(frame.vector, if magic == MAGIC { size } else { return None })
    };
    let gs_base: u64;
    // SAFETY: user code may read it where it may read fs, which the agent does everywhere.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) gs_base, options(nomem, nostack, preserves_flags)) };
    let vector = VectorState::from_xsave(area)?;
    let (general, rip, rflags) = (frame.general(), frame.rip, frame.rflags);
    Some(Registers { general, rip, rflags, fs_base, gs_base, shadow_stack: system::has_shadow_stack(), vector })
}

/// Ends a burst in which something happened that must not, and goes back to the program. `at`: where it happened.
pub(crate) extern "C" fn give_up(at: u64) -> ! {
    system::set_mask(u64::MAX);
    let shared = Shared::inside();
    shared.tally.given_up_at.store(at, Relaxed);
    shared.tally.given_up.fetch_add(1, Relaxed);
    // SAFETY: the context at hand. What the burst left half done is forgotten with its heap.
    unsafe {
        let tcb = context::current().as_mut();
        if let Some(agent) = tcb.agent.map(|mut agent| agent.as_mut()) {
            if let Some(slot) = agent.slot.take() {
                slot.free();
            }
            if let Some(check) = &mut agent.check {
                check.undo();
            }
            if std::mem::take(&mut agent.has_handlers) {
                faults::end(agent.process);
            }
        }
        renew(tcb);
        entry::leave()
    }
}

/// Empties the heap of a context: nothing of what was in it is used again.
fn renew(tcb: &mut Tcb) {
    tcb.agent = None;
    tcb.hold = None;
    tcb.selector.store(0, Relaxed);
    tcb.waits.store(0, Relaxed);
    tcb.heap = Heap::of(&raw const *tcb as u64);
}

/// Computes what is otherwise computed in the first burst. The recorder calls it in the image, in the context that is for this.
pub(crate) extern "C" fn prepare() {
    lookahead::warm_up();
}
