//! Where system calls of 64-bit programs enter Linux, by names of its functions (arch/x86/entry, since 4.4): the recorder keeps them though no
//! sample falls there, and the analyzer leads system calls of bursts to them.

/// Of `syscall`.
pub const SYSCALL: &str = "entry_SYSCALL_64";
/// Of `int $0x80`: from 6.7 on, and before.
pub const INT_80: [&str; 2] = ["asm_int80_emulation", "entry_INT80_compat"];
/// Of both where the kernel uses FRED. It has the function in any case: only a list that was made of the entries in use tells.
pub const FRED: &str = "asm_fred_entrypoint_user";
