//! A stopped thread that is made to execute code of ours.

use std::ptr::addr_of_mut;

use agent::{Loading, ProgramRegisters};

use crate::errno::Errno;
use crate::sys::ptrace::signal_mask;
use crate::sys::registers::{USER_CS_64, general};

// asm/unistd_64.h.
const SYS_IO_PGETEVENTS: i64 = 333;
const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;

/// A thread that stands still, as it stands there. Nothing of it is changed before it is left to other code.
pub(crate) struct HeldThread {
    thread: i32,
    registers: libc::user_regs_struct,
    mask: u64,
}

/// Whether the thread is to be sent back into a system call, or has come out of one that may have changed its mask for a while. One that is
/// complete is like any other place.
fn is_in_system_call(registers: &libc::user_regs_struct) -> bool {
    const CHANGE_MASK: [i64; 7] = [
        libc::SYS_rt_sigsuspend,
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        SYS_IO_PGETEVENTS,
        libc::SYS_io_uring_enter,
    ];
    let number = registers.orig_rax as i64;
    number >= 0 && (goes_back(registers) || CHANGE_MASK.contains(&number))
}

/// ERESTART_RESTARTBLOCK (linux/errno.h).
const RESTART_BLOCK: i64 = -516;

/// Whether the kernel will make the system call again that a stop has interrupted.
fn goes_back(registers: &libc::user_regs_struct) -> bool {
    // From ERESTARTSYS on.
    registers.orig_rax as i64 >= 0 && (RESTART_BLOCK..=-512).contains(&(registers.rax as i64))
}

impl HeldThread {
    /// A stopped thread, if it stands in 64-bit code of its own, which it does not step through itself, and not in the middle of a system call.
    pub(crate) fn hold(thread: i32) -> Result<Option<Self>, Errno> {
        Self::hold_if(thread, |registers| !is_in_system_call(registers))
    }

    /// The same, also if it has to go back into a system call.
    pub(crate) fn hold_waiting(thread: i32) -> Result<Option<Self>, Errno> {
        Self::hold_if(thread, |registers| goes_back(registers) || !is_in_system_call(registers))
    }

    fn hold_if(thread: i32, is_fit: impl Fn(&libc::user_regs_struct) -> bool) -> Result<Option<Self>, Errno> {
        const TRAP_FLAG: u64 = 1 << 8;
        // SAFETY: user_regs_struct is plain integers.
        let mut held = Self { thread, registers: unsafe { std::mem::zeroed() }, mask: 0 };
        ask(thread, libc::PTRACE_GETREGS, 0, addr_of_mut!(held.registers).cast())?;
        let r = &held.registers;
        if r.cs != USER_CS_64 || !is_fit(r) || r.eflags & TRAP_FLAG != 0 {
            return Ok(None);
        }
        held.mask = signal_mask(thread)?;
        Ok(Some(held))
    }

    /// The address of its `struct rseq`, if it has one (Linux 5.13).
    pub(crate) fn restartable_sequences(&self) -> Option<u64> {
        // `struct ptrace_rseq_configuration`: address, size, signature, flags, padding.
        let mut configuration = [0_u64; 3];
        let size = size_of_val(&configuration);
        ask(self.thread, PTRACE_GET_RSEQ_CONFIGURATION, size, configuration.as_mut_ptr().cast()).ok()?;
        Some(configuration[0]).filter(|&address| address != 0)
    }

    /// What code needs that gives it all this itself, for the agent to come by this signal.
    pub(crate) fn loading(&self, signal: i32) -> Loading {
        let mut to_be = self.registers;
        if goes_back(&to_be) {
            // Before the system call: what the kernel would do (`arch_do_signal_or_restart`).
            to_be.rip -= 2;
            let is_block = to_be.rax as i64 == RESTART_BLOCK;
            to_be.rax = if is_block { libc::SYS_restart_syscall as u64 } else { to_be.orig_rax };
        }
        let registers = ProgramRegisters { general: general(&to_be), rip: to_be.rip };
        Loading { signal, registers, flags: to_be.eflags, mask: self.mask }
    }

    /// Where it stands.
    pub(crate) fn place(&self) -> u64 {
        self.registers.rip
    }

    /// Has it go on at `entry`, where code is that gives it its registers again. This is one request: the kernel does all of it or nothing,
    /// whatever happens to the calling process.
    pub(crate) fn leave_to(&self, entry: u64) -> Result<(), Errno> {
        self.set(libc::user_regs_struct { rip: entry, orig_rax: u64::MAX, ..self.registers })
    }

    /// It stands still again, and has executed nothing: it is as it was.
    pub(crate) fn give_back(&self) -> Result<(), Errno> {
        self.set(self.registers)
    }

    fn set(&self, mut registers: libc::user_regs_struct) -> Result<(), Errno> {
        ask(self.thread, libc::PTRACE_SETREGS, 0, addr_of_mut!(registers).cast())
    }
}

/// A request whose data is read or written at `data`, and of which `address` says how long that is, where it says anything.
fn ask(thread: i32, request: libc::c_uint, address: usize, data: *mut libc::c_void) -> Result<(), Errno> {
    // SAFETY: the requests above read or write what `data` points to, which is a local or a field of the size they expect.
    let result = unsafe { libc::ptrace(request, thread, address, data) };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Whether two processes have one memory, as a child of `vfork` has its parent's; `None` if the kernel does not say.
pub(crate) fn share_memory(one: i32, other: i32) -> Option<bool> {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: kcmp(2) takes numbers.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) };
    (order >= 0).then_some(order == 0)
}
