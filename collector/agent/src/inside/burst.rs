//! A burst: from the frame of the clock's signal to a slot.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use lookahead::{
    Branch, CodeCache, DataLines, Fuel, Overlay, Registers, StopReason, StubMemory, VectorState, run_with_lines,
};

use crate::inside::context::{self, Tcb};
use crate::inside::frame::Frame;
use crate::inside::heap::Heap;
use crate::inside::own::OwnMemory;
use crate::inside::{entry, faults, system};
use crate::layout::{STUBS, STUBS_BYTES};
use crate::slots::{PIECE, PIECES, Shared, Slot, Taken, TakenSlot};

/// Pages of memory that a burst may touch, and instructions that are kept decoded: what the heap of a context has room for.
const PAGES: usize = 1024;
const DECODED: usize = 40_000;
/// The code segment of 64-bit code.
const USER_CS_64: u64 = 0x33;
/// In the last words of the legacy area of a frame: an XSAVE area follows, of this size (asm/sigcontext.h).
const MAGIC: u32 = 0x4650_5853;
const MAGIC_AT: usize = 464;
const SIZE_AT: usize = 480;

/// What bursts of a context are taken with.
pub(crate) struct Agent {
    overlay: Overlay,
    code: CodeCache,
    lines: DataLines,
    branches: Vec<Branch>,
    /// The slot that is being filled.
    slot: Option<TakenSlot<'static>>,
    process: u32,
    has_handlers: bool,
}

impl Agent {
    fn new(context: u64) -> Self {
        let stubs = (STUBS + context * STUBS_BYTES) as *mut u8;
        let mut code = CodeCache::comparing(DECODED);
        if let Some(stubs) = NonNull::new(stubs) {
            // SAFETY: mapped with the image, writable and executable, a part for each context.
            code = code.with_stub_memory(unsafe { StubMemory::new(stubs) });
        }
        let branches = Vec::with_capacity(4096);
        let (overlay, lines) = (Overlay::new(PAGES), DataLines::default());
        Self { overlay, code, lines, branches, slot: None, process: 0, has_handlers: false }
    }
}

/// Takes a burst of the thread that stands where `frame` says. `left_by`: the parent, if one of its threads had this context when the
/// process was forked.
pub(crate) extern "C" fn burst(tcb: &mut Tcb, info: *const libc::siginfo_t, frame: *const c_void, left_by: u32) {
    let began = system::thread_time();
    let shared = Shared::inside();
    if left_by != 0 {
        renew(tcb);
    }
    if shared.is_off() {
        return;
    }
    // SAFETY: the kernel has written both; `si_fd` follows `si_band`.
    let (frame, event) = unsafe { (&*frame.cast::<Frame>(), info.cast::<i32>().add(6).read()) };
    // A fault of a probe would end the process: a blocked signal of a fault cannot be handled.
    if frame.blocked & !faults::ALL_BUT_FAULTS != 0 {
        return;
    }
    let Some(registers) = registers(frame, tcb.fs_base) else { return };
    let process = tcb.busy;
    let Some(slot) = shared.take(event as u64) else {
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
    (agent.slot, agent.process, agent.has_handlers) = (Some(slot), process, true);
    system::set_mask(faults::ALL_BUT_FAULTS);
    take(agent, registers, shared, slot.slot);
    system::set_mask(u64::MAX);
    agent.has_handlers = false;
    faults::end(process);
    agent.slot = None;
    slot.hand_over(system::thread_time().saturating_sub(began));
}

fn made(agent: Agent) -> NonNull<Agent> {
    NonNull::from(Box::leak(Box::new(agent)))
}

fn take(agent: &mut Agent, mut registers: Registers, shared: &Shared, slot: &Slot) {
    agent.overlay.clear();
    agent.branches.clear();
    agent.lines.clear();
    let limits = shared.limits();
    let start = registers.rip;
    let decoding = agent.code.decoding();
    let (mut pieces, mut executed, mut not_taken) = ([0; PIECES], 0, 0);
    let mut stop = StopReason::Branches;
    for piece in &mut pieces {
        let branches = limits.branches.saturating_sub(agent.branches.len() as u64).min(PIECE as u64);
        let fuel = Fuel { instructions: limits.instructions.saturating_sub(executed), branches };
        if fuel.instructions == 0 || branches == 0 {
            stop = if fuel.instructions == 0 { StopReason::Fuel } else { StopReason::Branches };
            break;
        }
        agent.lines.continue_at(executed);
        let (overlay, code) = (&mut agent.overlay, &mut agent.code);
        let (branches, lines) = (&mut agent.branches, &mut agent.lines);
        let outcome = run_with_lines(&mut registers, overlay, &mut OwnMemory, code, fuel, branches, lines);
        *piece = outcome.instructions;
        executed += outcome.instructions;
        not_taken += outcome.not_taken;
        stop = outcome.stop;
        if stop != StopReason::Branches {
            break;
        }
    }
    slot.fill(&Taken {
        start,
        time: system::monotonic_time(),
        pieces,
        not_taken,
        decoding: (agent.code.decoding() - decoding).as_nanos() as u64,
        pages: agent.overlay.pages() as u64,
        stop,
        branches: &agent.branches,
        lines: &agent.lines,
    });
}

/// The registers of the interrupted thread; `None` if it is not in 64-bit code.
fn registers(frame: &Frame, fs_base: u64) -> Option<Registers> {
    if frame.segments & 0xffff != USER_CS_64 || frame.vector.is_null() {
        return None;
    }
    // SAFETY: the legacy area has 512 bytes, and what follows is as long as it says, if the magic number stands there.
    let area = unsafe {
        let magic = frame.vector.add(MAGIC_AT).cast::<u32>().read_unaligned();
        let size = frame.vector.add(SIZE_AT).cast::<u32>().read_unaligned() as usize;
        slice::from_raw_parts(frame.vector, if magic == MAGIC { size } else { return None })
    };
    let [r8, r9, r10, r11, r12, r13, r14, r15] = frame.r8_to_r15;
    let general = [
        frame.rax, frame.rcx, frame.rdx, frame.rbx, frame.rsp, frame.rbp, frame.rsi, frame.rdi, r8, r9, r10, r11, r12,
        r13, r14, r15,
    ];
    let gs_base: u64;
    // SAFETY: user code may read it where it may read fs, which the agent does everywhere.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) gs_base, options(nomem, nostack, preserves_flags)) };
    let vector = VectorState::from_xsave(area)?;
    Some(Registers { general, rip: frame.rip, rflags: frame.rflags, fs_base, gs_base, vector })
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
    tcb.heap = Heap::of(&raw const *tcb as u64);
}

/// Computes what is otherwise computed in the first burst. The recorder calls it in the image, in the context that is for this.
pub(crate) extern "C" fn prepare() {
    lookahead::warm_up();
}
