//! What the kernel puts on the stack for a signal (asm/ucontext.h, asm/sigcontext.h).

/// EFLAGS.TF.
pub(crate) const TRAP_FLAG: u64 = 1 << 8;

/// `struct ucontext` of a signal frame, up to what is used of it.
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) flags: u64,
    pub(crate) link: u64,
    pub(crate) stack: [u64; 3],
    pub(crate) r8_to_r15: [u64; 8],
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) rdx: u64,
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rsp: u64,
    pub(crate) rip: u64,
    pub(crate) rflags: u64,
    pub(crate) segments: u64,
    pub(crate) error: u64,
    pub(crate) trap: u64,
    pub(crate) old_mask: u64,
    pub(crate) cr2: u64,
    pub(crate) vector: *const u8,
    pub(crate) reserved: [u64; 8],
    /// Signals that the thread blocks.
    pub(crate) blocked: u64,
}

impl Frame {
    /// Whether the trap flag is set: somebody steps the thread.
    pub(crate) fn is_stepped(&self) -> bool {
        self.rflags & TRAP_FLAG != 0
    }

    /// The handler returns by this code: nothing of the agent is on the stack below a handler of the program.
    pub(crate) fn return_by(&mut self, restorer: u64) {
        // SAFETY: in `struct rt_sigframe` (asm/sigframe.h) the return address of the handler comes right before this structure.
        unsafe { (&raw mut *self).cast::<u64>().sub(1).write(restorer) };
    }

    /// The general registers in encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub(crate) fn general(&self) -> [u64; 16] {
        let [r8, r9, r10, r11, r12, r13, r14, r15] = self.r8_to_r15;
        [
            self.rax, self.rcx, self.rdx, self.rbx, self.rsp, self.rbp, self.rsi, self.rdi, r8, r9, r10, r11, r12, r13,
            r14, r15,
        ]
    }

    /// Sets a general register, by its number in encoding order.
    pub(crate) fn set_general(&mut self, register: u8, value: u64) {
        let place = match register {
            0 => &mut self.rax,
            1 => &mut self.rcx,
            2 => &mut self.rdx,
            3 => &mut self.rbx,
            4 => &mut self.rsp,
            5 => &mut self.rbp,
            6 => &mut self.rsi,
            7 => &mut self.rdi,
            other => &mut self.r8_to_r15[usize::from(other & 7)],
        };
        *place = value;
    }
}
