//! From the program to the agent and back.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use crate::inside::context::Tcb;
use crate::inside::frame::Frame;
use crate::inside::programs::{self, SharedAction, no_action};
use crate::inside::timer::{self, Led};
use crate::inside::{burst, faults, follow, own};
use crate::layout::{CONTEXT_BYTES, CONTEXT_COUNT, CONTEXTS, SLOTS, STACK_TOP, tcb};
use crate::slots::{Shared, SharedTally};

/// What the program had for the clock's signal. The kernel writes it when the agent is put in.
pub(crate) static PROGRAMS_HANDLER: SharedAction = no_action();

/// Calls a function on the stack at hand; the arguments of the handler are what they were.
macro_rules! ask {
    ($function:literal) => {
        concat!(
            "sub rsp, 40\n",
            "mov qword ptr [rsp], rdi\n",
            "mov qword ptr [rsp + 8], rsi\n",
            "mov qword ptr [rsp + 16], rdx\n",
            "call {",
            $function,
            "}\n",
            "mov rdi, qword ptr [rsp]\n",
            "mov rsi, qword ptr [rsp + 8]\n",
            "mov rdx, qword ptr [rsp + 16]\n",
            "add rsp, 40\n",
        )
    };
}

/// The same, and then the program's handler if the function returns one.
macro_rules! ask_first {
    ($function:literal) => {
        concat!(ask!($function), "test rax, rax\n", "jz 88f\n", "jmp rax\n", "88:\n", "ret\n")
    };
}

/// Changes to the stack and the thread pointer of the context whose control block rdi has.
macro_rules! enter_context {
    () => {
        concat!(
            "rdfsbase rcx\n",
            "mov qword ptr [rdi + {fs_base}], rcx\n",
            "mov qword ptr [rdi + {stack_pointer}], rsp\n",
            "wrfsbase rdi\n",
            "lea rsp, [rdi + {stack}]\n",
        )
    };
}

/// Changes back; rdi has the control block then.
macro_rules! leave_context {
    () => {
        concat!(
            "mov rdi, qword ptr fs:[0]\n",
            "mov rsp, qword ptr [rdi + {stack_pointer}]\n",
            "mov rcx, qword ptr [rdi + {fs_base}]\n",
            "wrfsbase rcx\n",
        )
    };
}

/// The handler of the signal of a clock, or of a timer. It finds a free context, changes to its stack and thread pointer, and takes a
/// burst. A signal that is neither's is the program's own.
///
/// # Safety
/// Called by the kernel only, where the image is mapped.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn handler(_: c_int, _: *mut c_void, _: *mut c_void) {
    naked_asm!(
        // si_code: POLL_IN (1) to POLL_HUP (6) is what events send.
        "mov eax, dword ptr [rsi + 8]",
        "dec eax",
        "cmp eax, 5",
        "ja 9f",
        "6:",
        "mov eax, {getpid}",
        "syscall",
        "mov r8d, eax",
        "movabs rdi, {first}",
        "mov ecx, {count}",
        // A context whose holder is another process is one that a thread of the parent had when this one was forked.
        "2:",
        "mov eax, dword ptr [rdi + {busy}]",
        "cmp eax, r8d",
        "je 3f",
        "lock cmpxchg dword ptr [rdi + {busy}], r8d",
        "je 4f",
        "3:",
        "add rdi, {bytes}",
        "dec ecx",
        "jnz 2b",
        // One whose burst waits for its thread.
        "mov edi, r8d",
        ask!("of_waiting"),
        "mov rdi, rax",
        "xor eax, eax",
        "test rdi, rdi",
        "jnz 4f",
        "movabs rax, {none}",
        "lock inc dword ptr [rax]",
        "ret",
        "4:",
        enter_context!(),
        "mov ecx, eax",
        "call {burst}",
        "jmp {leave}",
        "9:",
        ask!("others"),
        "cmp rax, {a_burst}",
        "je 6b",
        "test rax, rax",
        "jz 8f",
        "jmp rax",
        "8:",
        "ret",
        getpid = const libc::SYS_getpid,
        // The first context is that of preparing.
        first = const tcb(1),
        count = const CONTEXT_COUNT - 1,
        bytes = const CONTEXT_BYTES,
        busy = const offset_of!(Tcb, busy),
        none = const SLOTS + offset_of!(Shared, tally) as u64 + offset_of!(SharedTally, busy) as u64,
        fs_base = const offset_of!(Tcb, fs_base),
        stack_pointer = const offset_of!(Tcb, stack_pointer),
        stack = const STACK_TOP,
        burst = sym burst::burst,
        leave = sym leave,
        of_waiting = sym follow::context_of_waiting,
        others = sym of_others,
        a_burst = const A_BURST,
    )
}

/// What [`of_others`] says of a signal by which a burst begins. No handler is there.
const A_BURST: u64 = 1;

/// A signal of the clock's number that no event has sent: a timer's, or the program's own. Returns the program's handler, if that is to
/// be called, or 0.
extern "C" fn of_others(signal: c_int, info: *const libc::siginfo_t, frame: &mut Frame) -> u64 {
    match timer::signalled(info, frame) {
        Led::Burst => return A_BURST,
        Led::Nowhere => {
            follow::interrupted(frame);
            return 0;
        }
        Led::Elsewhere => {}
    }
    follow::interrupted(frame);
    programs::pass_on(signal, info, frame, &PROGRAMS_HANDLER)
}

/// The handler of SIGSYS: the thread stands before a system call.
///
/// # Safety
/// Called by the kernel only, where the image is mapped.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn system_call_handler(_: c_int, _: *mut c_void, _: *mut c_void) {
    naked_asm!(ask_first!("function"), function = sym follow::at_system_call)
}

/// The handler of SIGTRAP: a thread has come out of a system call.
///
/// # Safety
/// Called by the kernel only, where the image is mapped.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn trap_handler(_: c_int, _: *mut c_void, _: *mut c_void) {
    naked_asm!(
        ask!("trapped"),
        "test rax, rax",
        "jz 2f",
        "movabs r8, {contexts}",
        "mov rcx, rax",
        "sub rcx, r8",
        "cmp rcx, {length}",
        "jb 3f",
        "jmp rax",
        "2:",
        "ret",
        "3:",
        "mov rdi, rax",
        enter_context!(),
        "call {go_on}",
        "jmp {leave}",
        trapped = sym follow::trapped,
        contexts = const CONTEXTS,
        length = const CONTEXT_COUNT * CONTEXT_BYTES,
        fs_base = const offset_of!(Tcb, fs_base),
        stack_pointer = const offset_of!(Tcb, stack_pointer),
        stack = const STACK_TOP,
        go_on = sym follow::go_on,
        leave = sym leave,
    )
}

/// Back to the stack and the thread pointer that were there before, and returns from what the agent was entered by. The context is free,
/// unless its burst is to go on.
///
/// # Safety
/// Only in a context.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave() -> ! {
    naked_asm!(
        leave_context!(),
        "cmp qword ptr [rdi + {waits}], 0",
        "jne 2f",
        "mov dword ptr [rdi + {busy}], 0",
        "2:",
        "ret",
        stack_pointer = const offset_of!(Tcb, stack_pointer),
        fs_base = const offset_of!(Tcb, fs_base),
        waits = const offset_of!(Tcb, waits),
        busy = const offset_of!(Tcb, busy),
    )
}

/// Calls `function` in a context: how the recorder prepares the image.
///
/// # Safety
/// No signal may come meanwhile. `tcb` is that of a context that is there.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter(_tcb: *mut Tcb, _function: extern "C" fn()) {
    naked_asm!(
        "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15", "push rax",
        enter_context!(),
        "call rsi",
        leave_context!(),
        "pop rax", "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
        "ret",
        fs_base = const offset_of!(Tcb, fs_base),
        stack_pointer = const offset_of!(Tcb, stack_pointer),
        stack = const STACK_TOP,
    )
}

/// In place of functions that are not there inside a program.
///
/// # Safety
/// Only in a context.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn refused() {
    naked_asm!("mov rdi, qword ptr [rsp]", "and rsp, -16", "call {give_up}", "ud2", give_up = sym burst::give_up)
}

/// Where a fault of the agent itself goes on.
///
/// # Safety
/// Only in a context.
#[unsafe(naked)]
unsafe extern "C" fn after_own_fault() {
    naked_asm!("and rsp, -16", "call {give_up}", "ud2", give_up = sym burst::give_up)
}

/// The handler of signals of faults while bursts run. A probe that faults says so; any other fault of the agent gives the burst up; one of
/// the program is left to the program's handler.
///
/// # Safety
/// Called by the kernel only, where the image is mapped.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fault_handler(_: c_int, _: *mut c_void, _: *mut c_void) {
    naked_asm!(
        "mov rax, qword ptr [rdx + {rip}]",
        "cmp dword ptr [rsi + 8], 0",
        "jle 5f",
        "lea rcx, [rip + {probe_read}]",
        "cmp rax, rcx",
        "je 2f",
        "lea rcx, [rip + {probe_write}]",
        "cmp rax, rcx",
        "je 2f",
        "5:",
        "rdfsbase rcx",
        "movabs r8, {contexts}",
        "sub rcx, r8",
        "cmp rcx, {length}",
        "jb 3f",
        ask_first!("foreign"),
        "2:",
        "lea rcx, [rip + {failed}]",
        "mov qword ptr [rdx + {rip}], rcx",
        "ret",
        "3:",
        // si_code: somebody sent it.
        "cmp dword ptr [rsi + 8], 0",
        "jg 4f",
        "push rdx",
        "push rax",
        "sub rsp, 8",
        "call {sent}",
        "add rsp, 8",
        "pop rax",
        "pop rdx",
        "4:",
        "mov qword ptr [rdx + {mask}], -1",
        "mov qword ptr [rdx + {rdi}], rax",
        "lea rcx, [rip + {own}]",
        "mov qword ptr [rdx + {rip}], rcx",
        "sub qword ptr [rdx + {rsp}], 256",
        "ret",
        rip = const offset_of!(Frame, rip),
        rsp = const offset_of!(Frame, rsp),
        rdi = const offset_of!(Frame, rdi),
        mask = const offset_of!(Frame, blocked),
        sent = sym faults::sent_to_agent,
        probe_read = sym own::probe_read,
        probe_write = sym own::probe_write,
        contexts = const CONTEXTS,
        length = const CONTEXT_COUNT * CONTEXT_BYTES,
        foreign = sym faults::of_the_program,
        failed = sym own::probe_failed,
        own = sym after_own_fault,
    )
}

/// What a handler returns to: `rt_sigreturn`.
///
/// # Safety
/// Only as the restorer of a handler.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn restorer() {
    naked_asm!("mov eax, {number}", "syscall", number = const libc::SYS_rt_sigreturn)
}
