//! On after a system call: how a burst that ended before one goes on when the thread comes out of it.
//!
//! ```text
//! ARMED     the thread runs to the system call itself: the kernel raises SIGSYS before it (syscall user dispatch)
//! IN_CALL   it makes the system call itself, with the trap flag set: SIGTRAP after the instruction that follows
//! ```
//!
//! The system call is the program's own, with its own registers, at its own address, and takes as long as it takes. While a thread is
//! armed, for microseconds, all signals are blocked but the agent's own and those of faults: a handler of the program
//! might block SIGSYS and make a system call, which would end the program. If one of these comes, or the thread takes another way and its clock
//! overflows, it is armed no more.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use lookahead::{LONGEST_INSTRUCTION, Registers, SingleStep};

use crate::inside::context::{self, Tcb};
use crate::inside::entry::{self, PROGRAMS_HANDLER};
use crate::inside::faults::{self, bit};
use crate::inside::frame::{Frame, TRAP_FLAG};
use crate::inside::programs::{self, SharedAction, no_action};
use crate::inside::system::{self, Action, exchange_action};
use crate::inside::{burst, check, own};
use crate::layout::{BASE, CONTEXTS};
use crate::slots::{HeldSlot, Shared};

pub(crate) const ARMED: u64 = 1;
pub(crate) const IN_CALL: u64 = 2;
/// The thread executes a copy of its path ([`super::check`]).
pub(crate) const CHECKED: u64 = 3;
/// No burst waits.
const NONE: u64 = 0;
/// Where the thread stands beside the phase.
pub(crate) const THREAD_SHIFT: u32 = 2;
pub(crate) const PHASE: u64 = (1 << THREAD_SHIFT) - 1;
/// Times that a burst goes on.
pub(crate) const MOST: u64 = 16;
/// Sleeps of 5 us until the handlers are installed.
const TURNS: u32 = 200;
/// Its bytes. `int 0x80` has numbers of its own and is not followed.
const SYSCALL: [u8; LENGTH as usize] = [0x0f, 0x05];
const LENGTH: u64 = 2;
/// asm-generic/siginfo.h.
const SYS_USER_DISPATCH: c_int = 2;
const TRAP_TRACE: c_int = 2;
/// What comes by what the thread executes: a blocked one would end the program.
const SYNCHRONOUS: u64 = !faults::ALL_BUT_FAULTS | bit(libc::SIGTRAP) | bit(libc::SIGSYS);

/// Whether this process has the handlers: not yet, one of its threads installs them, yes, and it is not to.
static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const INSTALLING: u32 = 1;
const READY: u32 = 2;
const NEVER: u32 = 3;

/// Not zero: they have been installed once.
pub(crate) static INSTALLED: AtomicU64 = AtomicU64::new(0);

static PROGRAMS_SIGSYS: SharedAction = no_action();
static PROGRAMS_SIGTRAP: SharedAction = no_action();

/// Threads that come out of a system call with the trap flag set, and for which no burst waits any more.
pub(crate) static FORSAKEN: [AtomicU32; MOST_FORSAKEN] = [const { AtomicU32::new(0) }; MOST_FORSAKEN];
pub(crate) const MOST_FORSAKEN: usize = 1024;

/// Remembers that the trap flag of a thread is the agent's. `false`: there is no room.
fn forsake(thread: u32) -> bool {
    FORSAKEN.iter().any(|entry| entry.compare_exchange(0, thread, AcqRel, Relaxed).is_ok())
}

/// Whether the trap flag of the thread is the agent's, which is forgotten.
fn was_forsaken(thread: u32) -> bool {
    FORSAKEN.iter().any(|entry| entry.compare_exchange(thread, 0, AcqRel, Relaxed).is_ok())
}

/// A burst that waits for its thread.
#[derive(Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) slot: HeldSlot<'static>,
    pub(crate) place: Place,
}

/// Where the thread is to come, and what is done for it until then.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    process: u32,
    /// The registers before the system call: in encoding order.
    general: [u64; 16],
    rip: u64,
    /// What the thread blocks.
    blocked: u64,
}

pub(crate) fn handlers() -> [(c_int, &'static SharedAction, Action); 2] {
    let restorer = entry::restorer as *const () as u64;
    let system_call = Action::of_agent(entry::system_call_handler as *const () as u64, restorer, 0);
    let trap = Action::of_agent(entry::trap_handler as *const () as u64, restorer, libc::SA_RESTART);
    [(libc::SIGSYS, &PROGRAMS_SIGSYS, system_call), (libc::SIGTRAP, &PROGRAMS_SIGTRAP, trap)]
}

/// Those that are installed: where bursts are checked, system calls are not followed, and SIGSYS is left to the program.
fn needed() -> impl Iterator<Item = (c_int, &'static SharedAction, Action)> {
    handlers().into_iter().skip(usize::from(Shared::inside().checks()))
}

/// Whether SIGSYS and SIGTRAP are the agent's. They stay so; if the program takes one of them for itself, it keeps it.
pub(crate) fn is_ready() -> bool {
    match STATE.load(Acquire) {
        READY => {
            let is_ours = needed().all(|(signal, _, own)| system::action(signal).handler == own.handler);
            // A program may have a reason for its own, but not where it is to be checked.
            let is_ready = is_ours || Shared::inside().checks() && install();
            if !is_ready {
                STATE.store(NEVER, Release);
            }
            is_ready
        }
        UNKNOWN if STATE.compare_exchange(UNKNOWN, INSTALLING, AcqRel, Relaxed).is_ok() => {
            let is_ready = install();
            STATE.store(if is_ready { READY } else { NEVER }, Release);
            is_ready
        }
        _ => false,
    }
}

/// What the program had for a signal when the agent's handler took its place.
fn programs_action(action: &SharedAction) -> &SharedAction {
    // Not for ever: a child that was forked meanwhile has nobody who installs them.
    for _ in 0..TURNS {
        if STATE.load(Acquire) != INSTALLING {
            break;
        }
        system::sleep(5);
    }
    action
}

fn install() -> bool {
    // A program that has a handler for this signal in particular may dispatch system calls itself; one that has the same handler for
    // every signal does not.
    let before = system::action(libc::SIGSYS);
    if !Shared::inside().checks() && before.is_function() && before.handler != PROGRAMS_HANDLER[0].load(Relaxed) {
        return false;
    }
    INSTALLED.store(1, Release);
    for (signal, programs, own) in needed() {
        programs::store(programs, system::action(signal));
        exchange_action(signal, &own);
    }
    true
}

/// A burst has come to the system call that `registers` stand before: from now on the kernel tells when the thread comes there itself.
/// `None`: it cannot be followed there. The handlers of faults are installed.
pub(crate) fn arm(tcb: &Tcb, signal: c_int, process: u32, frame: &mut Frame, registers: &Registers) -> Option<Place> {
    let mut code = [0; LENGTH as usize + LONGEST_INSTRUCTION];
    let length = own::copy(registers.rip, &mut code);
    // A signal that gave the burst up from here on would leave the thread armed.
    system::set_mask(u64::MAX);
    let after = code[..length].strip_prefix(&SYSCALL)?;
    let is_blocked = frame.blocked & (bit(libc::SIGSYS) | bit(libc::SIGTRAP)) != 0;
    if is_blocked || !comes_back(&registers.general) || !SingleStep::is_possible(after) || !is_ready() {
        return None;
    }
    tcb.selector.store(1, Relaxed);
    if !system::dispatch_system_calls(BASE..CONTEXTS, &tcb.selector) {
        STATE.store(NEVER, Release);
        return None;
    }
    let blocked = frame.blocked;
    frame.blocked |= !(SYNCHRONOUS | bit(signal));
    tcb.waits.store(of_thread(ARMED), Release);
    let Registers { general, rip, .. } = *registers;
    Some(Place { process, general, rip, blocked })
}

/// Whether a thread that makes a system call with these registers comes back where it made it, alone, with its stack and SIGTRAP as they are.
/// What is in memory is not asked: a burst has it from before, and where the thread stands, a fault could not be handled.
fn comes_back(general: &[u64; 16]) -> bool {
    let [number, second, stack, set, first] = [general[0], general[6], general[4], general[6], general[7]];
    // The kernel takes the lower half, and this bit for the numbers of x32.
    const X32: u64 = 1 << 30;
    if number & X32 != 0 {
        return false;
    }
    match i64::from(number as u32) {
        libc::SYS_rt_sigreturn
        | libc::SYS_execve
        | libc::SYS_execveat
        | libc::SYS_exit
        | libc::SYS_exit_group
        | libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_fork
        | libc::SYS_vfork
        | libc::SYS_prctl
        | libc::SYS_arch_prctl
        | libc::SYS_seccomp
        | libc::SYS_ptrace => false,
        libc::SYS_rt_sigaction => ![libc::SIGSYS, libc::SIGTRAP].contains(&(first as c_int)),
        libc::SYS_rt_sigprocmask => first as c_int == libc::SIG_UNBLOCK || set == 0,
        libc::SYS_munmap => !(first..first.saturating_add(second)).contains(&stack),
        _ => true,
    }
}

/// What a context says whose burst waits for the calling thread in this phase.
pub(crate) fn of_thread(phase: u64) -> u64 {
    u64::from(system::thread_id()) << THREAD_SHIFT | phase
}

fn waits(tcb: *mut Tcb) -> &'static AtomicU64 {
    // SAFETY: contexts stay where they are; the field is atomic.
    unsafe { &(*tcb).waits }
}

/// The context whose burst waits in this way.
fn waiting(how: u64) -> Option<*mut Tcb> {
    context::all().find(|&tcb| waits(tcb).load(Acquire) == how)
}

/// The context of the calling thread, if it is armed, and where it is to come. Nobody else changes one that is armed.
fn armed() -> Option<(&'static mut Tcb, Place)> {
    let tcb = waiting(of_thread(ARMED))?;
    // SAFETY: see above.
    let tcb = unsafe { &mut *tcb };
    let place = tcb.hold?.place;
    Some((tcb, place))
}

/// The thread is armed no more. What it blocks is what it was.
fn disarm(tcb: &Tcb, place: &Place, frame: &mut Frame) {
    tcb.selector.store(0, Relaxed);
    system::end_dispatch();
    frame.blocked = place.blocked;
    faults::end(place.process);
}

fn leave_slot(tcb: &mut Tcb) {
    if let Some(hold) = tcb.hold.take() {
        hold.slot.leave();
    }
}

/// The burst is the recorder's, the context is free.
fn finish(tcb: &mut Tcb) {
    leave_slot(tcb);
    tcb.waits.store(NONE, Release);
    tcb.busy.store(0, Release);
}

/// A signal has come for the thread that stands where `frame` says: if it is armed, it is so no more.
///
/// Nothing here uses thread-local storage.
pub(crate) fn interrupted(frame: &mut Frame) {
    let is_armed = |tcb| waits(tcb).load(Relaxed) & PHASE == ARMED;
    if !context::all().any(is_armed) {
        return;
    }
    if let Some((tcb, place)) = armed() {
        disarm(tcb, &place, frame);
        finish(tcb);
    }
}

/// A burst of a thread begins: an earlier one goes no further. `false`: it must not begin. Nothing here uses thread-local storage.
pub(crate) fn begin_anew(frame: &mut Frame) -> bool {
    interrupted(frame);
    let in_call = of_thread(IN_CALL);
    while let Some(tcb) = waiting(in_call) {
        if !forsaken(tcb, in_call, finish) {
            return false;
        }
    }
    true
}

/// Ends that a burst waits in a system call in this way, unless somebody else has: who does has the context.
fn take_over(tcb: *mut Tcb, how: u64, then: impl FnOnce(&mut Tcb)) -> bool {
    let is_mine = waits(tcb).compare_exchange(how, NONE, AcqRel, Relaxed).is_ok();
    if is_mine {
        // SAFETY: see above.
        then(unsafe { &mut *tcb });
    }
    is_mine
}

/// Takes the context of a burst that waits, whose thread comes out of its system call with the trap flag all the same.
fn forsaken(tcb: *mut Tcb, how: u64, then: impl FnOnce(&mut Tcb)) -> bool {
    let thread = (how >> THREAD_SHIFT) as u32;
    if !forsake(thread) {
        return false;
    }
    let is_mine = take_over(tcb, how, then);
    if !is_mine {
        was_forsaken(thread);
    }
    is_mine
}

/// A context for a burst where none is free: that of one that waits for its thread. Null if there is none. Nothing here uses thread-local
/// storage.
pub(crate) extern "C" fn context_of_waiting(process: u32, _: *const libc::siginfo_t, frame: &mut Frame) -> *mut Tcb {
    interrupted(frame);
    let mut of_process = context::all().filter(|&tcb| {
        // SAFETY: contexts stay where they are; the field is atomic.
        unsafe { &(*tcb).busy }.load(Relaxed) == process
    });
    let found = of_process.find(|&tcb| {
        let how = waits(tcb).load(Acquire);
        how & PHASE == IN_CALL && forsaken(tcb, how, leave_slot)
    });
    found.unwrap_or(std::ptr::null_mut())
}

/// SIGSYS: the thread stands before a system call. Returns the program's handler, if the signal is not the agent's and there is one.
/// Nothing here uses thread-local storage.
pub(crate) extern "C" fn at_system_call(signal: c_int, info: *const libc::siginfo_t, frame: &mut Frame) -> u64 {
    // SAFETY: the kernel has written it.
    let is_sent = unsafe { (*info).si_code } != SYS_USER_DISPATCH;
    let Some((tcb, place)) = armed() else {
        return programs::pass_on(signal, info, frame, programs_action(&PROGRAMS_SIGSYS));
    };
    let general = frame.general();
    let can_go_on = comes_back(&general);
    disarm(tcb, &place, frame);
    // One that was sent may have come first: then the kernel has dropped its own, and the system call was not made all the same.
    if !is_sent || frame.rip == place.rip + LENGTH && frame.rax == place.general[0] {
        frame.rip = frame.rip.wrapping_sub(LENGTH);
    }
    if is_sent {
        finish(tcb);
        return programs::pass_on(signal, info, frame, programs_action(&PROGRAMS_SIGSYS));
    }
    let tally = &Shared::inside().tally;
    if frame.rip != place.rip || general[4] != place.general[4] {
        tally.strayed.fetch_add(1, Relaxed);
        finish(tcb);
        return 0;
    }
    tally.came.fetch_add(1, Relaxed);
    // The instruction itself has changed rcx and r11. Other threads, the clock: the path so far is one it could have taken.
    let is_same = (0..16).all(|register| matches!(register, 1 | 11) || general[register] == place.general[register]);
    tally.diverged.fetch_add(u32::from(!is_same), Relaxed);
    if !can_go_on {
        finish(tcb);
        return 0;
    }
    frame.rflags |= TRAP_FLAG;
    tcb.waits.store(of_thread(IN_CALL), Release);
    0
}

/// SIGTRAP. Returns the control block of the context whose burst is to go on, or the program's handler, if the signal is not the agent's
/// and there is one. Nothing here uses thread-local storage.
pub(crate) extern "C" fn trapped(signal: c_int, info: *const libc::siginfo_t, frame: &mut Frame) -> u64 {
    if let Some(tcb) = check::trapped(info, frame) {
        return tcb as u64;
    }
    // SAFETY: the kernel has written it.
    let code = unsafe { (*info).si_code };
    if code == TRAP_TRACE {
        let in_call = of_thread(IN_CALL);
        let waits = waiting(in_call).filter(|&tcb| take_over(tcb, in_call, |_| ()));
        let steps_itself = || programs::load(programs_action(&PROGRAMS_SIGTRAP)).is_function();
        // The burst went no further meanwhile, or a program that has a handler for it steps itself.
        if waits.is_some() || was_forsaken(system::thread_id()) || !steps_itself() {
            forget_trap_flag(frame);
            return waits.map_or(0, |tcb| tcb as u64);
        }
    }
    interrupted(frame);
    programs::pass_on(signal, info, frame, programs_action(&PROGRAMS_SIGTRAP))
}

/// Takes the trap flag out of the flags, and out of r11, where `syscall` leaves a copy of them.
fn forget_trap_flag(frame: &mut Frame) {
    /// What can be set in the flags of a program (SDM volume 1, 3.4.3), and the bit that always is.
    const FLAGS: u64 = 0x25_7fd7;
    const ALWAYS: u64 = 2;
    frame.rflags &= !TRAP_FLAG;
    let [_, _, _, r11, ..] = &mut frame.r8_to_r15;
    if *r11 & !FLAGS == 0 && *r11 & ALWAYS != 0 {
        *r11 &= !TRAP_FLAG;
    }
}

impl Hold {
    /// What the thread did after the system call, one instruction, and stands at `to` now. `None` if it came from elsewhere. The handlers
    /// of faults are installed.
    pub(crate) fn stepped(&self, to: u64) -> Option<SingleStep> {
        let mut code = [0; LONGEST_INSTRUCTION];
        let after = self.place.rip + LENGTH;
        let length = own::copy(after, &mut code);
        SingleStep::between(&code[..length], addresses::Avma(after), addresses::Avma(to))
    }
}

/// The burst that waited in `tcb` goes on where `frame` says.
pub(crate) extern "C" fn go_on(tcb: &mut Tcb, _: *const libc::siginfo_t, frame: &mut Frame) {
    if check::is_under_way(tcb) {
        return check::ended(tcb, frame);
    }
    let Some(hold) = tcb.hold.take() else { return };
    burst::go_on(tcb, &hold, frame);
}
