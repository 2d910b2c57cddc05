//! The registers of a thread, as plain data.

/// `mxcsr` of a new process: all exceptions masked, none seen (SDM vol. 1, 10.2.3).
pub(crate) const INITIAL_MXCSR: u32 = 0x1f80;

/// Everything a user-mode instruction can read or write besides memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// General registers in encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub general: [u64; 16],
    /// Address of the next instruction.
    pub rip: u64,
    /// Flags, status and others.
    pub rflags: u64,
    /// Base of the fs segment (thread-local storage).
    pub fs_base: u64,
    /// Base of the gs segment.
    pub gs_base: u64,
    /// Whether the thread has a shadow stack (SDM volume 1, chapter 17). Without one, `rdssp` does nothing; with one, the instructions that
    /// use it are not interpreted.
    pub shadow_stack: bool,
    /// Vector, mask and x87 registers.
    pub vector: VectorState,
}

/// State of the vector, mask and x87 units.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct VectorState {
    /// zmm0 to zmm31, of which xmm and ymm registers are the low bytes.
    pub zmm: [[u8; 64]; 32],
    /// The x87/MMX part in the layout of `fxsave64` (SDM vol. 1, table 10-2): control words, `st`/`mm` registers from byte 32. Its
    /// xmm part and its `mxcsr` mean nothing here.
    pub x87: [u8; 512],
    /// Mask registers k0 to k7.
    pub mask: [u64; 8],
    /// Control and status of SSE and AVX arithmetic.
    pub mxcsr: u32,
}

impl Registers {
    /// Whether the thread has [just come out](returned_to) of a system call.
    pub fn are_after_system_call(&self) -> bool {
        let [_, rcx, .., r11, _, _, _, _] = self.general;
        returned_to(rcx, r11, self.rflags) == Some(self.rip)
    }
}

/// Where the last system call of a thread returned to, as far as its registers still say so: `syscall` leaves the address after it in rcx, and
/// the flags in r11 (SDM volume 2B). Another instruction may have left the same there; that is rare.
pub fn returned_to(rcx: u64, r11: u64, rflags: u64) -> Option<u64> {
    // The kernel sets it as it likes.
    const RESUME_FLAG: u64 = 1 << 16;
    ((r11 ^ rflags) & !RESUME_FLAG == 0).then_some(rcx)
}

impl Default for Registers {
    fn default() -> Self {
        let vector = VectorState::default();
        Self { general: [0; 16], rip: 0, rflags: 0x202, fs_base: 0, gs_base: 0, shadow_stack: false, vector }
    }
}

impl Default for VectorState {
    /// The state a new process starts with.
    fn default() -> Self {
        let mut x87 = [0; 512];
        x87[0] = 0x7f;
        x87[1] = 0x03;
        x87[24..28].copy_from_slice(&INITIAL_MXCSR.to_le_bytes());
        x87[28..32].copy_from_slice(&0xffffu32.to_le_bytes());
        Self { zmm: [[0; 64]; 32], x87, mask: [0; 8], mxcsr: INITIAL_MXCSR }
    }
}
