//! Registers of a stopped thread, read and written as a whole.

use std::ptr::addr_of_mut;

use lookahead::{Registers, VectorState};

use crate::errno::Errno;

/// The register set of `PTRACE_GETREGSET` that is an XSAVE area.
const NT_X86_XSTATE: usize = 0x202;
/// arch_prctl(2) of another thread, and what asks which shadow stacks it has (since Linux 6.6): bit 0, any. Kernels before 6.14 warn of
/// whoever asks for the pointer (`NT_X86_SHSTK`) of a thread that has none.
const PTRACE_ARCH_PRCTL: libc::c_uint = 30;
const ARCH_SHSTK_STATUS: usize = 0x5005;

/// The code segment of 64-bit code in user space; 32-bit code has another.
pub(crate) const USER_CS_64: u64 = 0x33;

/// Memory to read a thread's registers through, used again and again.
pub(crate) struct RegisterArea {
    /// The XSAVE area, of which `length` bytes were filled last.
    words: Vec<u64>,
    length: usize,
    general: libc::user_regs_struct,
}

/// The registers of a stopped thread.
pub(crate) struct ThreadRegisters {
    pub(crate) registers: Registers,
    /// The system call the thread is in or comes from; negative: none.
    pub(crate) system_call: i64,
}

/// The general registers in encoding order.
pub(crate) fn general(r: &libc::user_regs_struct) -> [u64; 16] {
    [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15]
}

impl RegisterArea {
    /// Bytes enough for AMX tiles, the largest state there is.
    pub(crate) fn new() -> Self {
        // SAFETY: user_regs_struct is plain integers.
        Self { words: vec![0; 16384 / 8], length: 0, general: unsafe { std::mem::zeroed() } }
    }

    /// `PTRACE_GETREGS`, `PTRACE_GETREGSET` of `NT_X86_XSTATE`, and whether it has a shadow stack.
    pub(crate) fn read(&mut self, thread: i32) -> Result<ThreadRegisters, Errno> {
        let mut area = libc::iovec { iov_base: self.words.as_mut_ptr().cast(), iov_len: self.words.len() * 8 };
        // SAFETY: user_regs_struct is plain integers, of which the kernel fills one; to `area` it writes no more than its length.
        let regs = unsafe {
            let mut regs: libc::user_regs_struct = std::mem::zeroed();
            if libc::ptrace(libc::PTRACE_GETREGS, thread, 0_usize, addr_of_mut!(regs)) < 0
                || libc::ptrace(libc::PTRACE_GETREGSET, thread, NT_X86_XSTATE, addr_of_mut!(area)) < 0
            {
                return Err(Errno::last());
            }
            regs
        };
        (self.length, self.general) = (area.iov_len, regs);
        let mut features = 0_u64;
        // SAFETY: the kernel writes one word at most.
        let asked = unsafe { libc::ptrace(PTRACE_ARCH_PRCTL, thread, addr_of_mut!(features), ARCH_SHSTK_STATUS) };
        // SAFETY: any bytes are u8, and `iov_len` is at most the length given.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), area.iov_len) };
        let registers = Registers {
            general: general(&regs),
            rip: regs.rip,
            rflags: regs.eflags,
            fs_base: regs.fs_base,
            gs_base: regs.gs_base,
            shadow_stack: asked == 0 && features & 1 != 0,
            vector: VectorState::from_xsave(bytes).ok_or(Errno::EINVAL)?,
        };
        if regs.cs != USER_CS_64 {
            return Err(Errno::ENOSYS);
        }
        Ok(ThreadRegisters { registers, system_call: regs.orig_rax as i64 })
    }

    /// `PTRACE_SETREGS`, and `PTRACE_SETREGSET` of `NT_X86_XSTATE` if `vector`: gives `thread`, whose registers were the last to be read,
    /// these ones. What [`Registers`] does not hold stays as it was, and no system call will be made again.
    #[cfg(feature = "simulated-pmu")]
    pub(crate) fn write(&mut self, thread: i32, registers: &Registers, vector: bool) -> Result<(), Errno> {
        let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] = registers.general;
        let (rip, eflags) = (registers.rip, registers.rflags);
        let (fs_base, gs_base, orig_rax) = (registers.fs_base, registers.gs_base, u64::MAX);
        let regs = libc::user_regs_struct {
            rax,
            rcx,
            rdx,
            rbx,
            rsp,
            rbp,
            rsi,
            rdi,
            r8,
            r9,
            r10,
            r11,
            r12,
            r13,
            r14,
            r15,
            rip,
            eflags,
            fs_base,
            gs_base,
            orig_rax,
            ..self.general
        };
        // SAFETY: the kernel reads one user_regs_struct; the registers are those of a thread of another process that is ours to trace.
        if unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, 0_usize, std::ptr::addr_of!(regs)) } < 0 {
            return Err(Errno::last());
        }
        if !vector {
            return Ok(());
        }
        // SAFETY: any bytes are u8, and `length` is what the kernel filled, at most the length of `words`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), self.length) };
        registers.vector.to_xsave(bytes);
        let area = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel reads `iov_len` bytes, which are there.
        let result = unsafe { libc::ptrace(libc::PTRACE_SETREGSET, thread, NT_X86_XSTATE, std::ptr::addr_of!(area)) };
        if result < 0 { Err(Errno::last()) } else { Ok(()) }
    }
}
