//! Code that a thread executes where the agent is not yet, or not any more: in the rest of the page in which the kernel's shared object
//! (vdso(7)) ends. It makes its system calls, gives the thread its registers again and goes on where that stood. It writes to no memory, and changes no
//! flag.
//!
//! All that the recorder does to the thread is one PTRACE_SETREGS, which leads it here: whatever happens to the recorder before or after
//! that, the program goes on.

use std::arch::naked_asm;
use std::mem::offset_of;

use crate::layout::{REGION, SCRATCH};
use crate::loader::{ENTRY, Loading, PATH, bytes_of, code_of, path_bytes};

const PAGE: u64 = 4096;

/// What the code works with, at its end.
#[repr(C)]
#[derive(Clone, Copy)]
struct Data {
    path: [u8; PATH],
    all_signals: u64,
    /// What the thread has again.
    mask: u64,
    rax: u64,
    rcx: u64,
    rdx: u64,
    rsi: u64,
    rdi: u64,
    r8: u64,
    r9: u64,
    r10: u64,
    r11: u64,
    /// Where it goes on.
    rip: u64,
}

/// Code that maps the scratch page from the file with this path and goes on in it. If that fails, the thread goes on as it was.
/// `None` if the path is too long.
pub fn code_to_map(path: &str, loading: &Loading) -> Option<Vec<u8>> {
    code(map, path, loading)
}

/// Code that unmaps all that belongs to the agent.
pub fn code_to_unmap(loading: &Loading) -> Option<Vec<u8>> {
    code(unmap, "", loading)
}

fn code(start: unsafe extern "C" fn(), path: &str, loading: &Loading) -> Option<Vec<u8>> {
    let data = Data::of(path_bytes(path)?, loading);
    // SAFETY: both begin with their length, and end with data, of which the last word says where the thread goes on.
    let mut code = unsafe { code_of(start as *const u8, data.rip) }?;
    let place = code.len().checked_sub(size_of::<Data>())?;
    code[place..].copy_from_slice(&bytes_of(&data));
    code.drain(..8);
    Some(code)
}

impl Data {
    fn of(path: [u8; PATH], loading: &Loading) -> Self {
        let [rax, rcx, rdx, _, _, _, rsi, rdi, r8, r9, r10, r11, ..] = loading.registers.general;
        let (mask, rip) = (loading.mask, loading.registers.rip);
        Self { path, all_signals: u64::MAX, mask, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rip }
    }
}

/// `rt_sigprocmask(SIG_SETMASK, ..)` with the word that is called so.
macro_rules! set_mask {
    ($word:literal) => {
        concat!(
            "mov eax, {rt_sigprocmask}\n",
            "mov edi, {set_mask}\n",
            "lea rsi, [rip + 30f + ",
            $word,
            "]\n",
            "mov edx, 0\n",
            "mov r10d, 8\n",
            "syscall\n",
        )
    };
}

/// The thread has its mask and its registers again.
macro_rules! go_on {
    () => {
        concat!(
            set_mask!("{mask}"),
            "mov rax, qword ptr [rip + 30f + {mask} + 8]\n",
            "mov rcx, qword ptr [rip + 30f + {mask} + 16]\n",
            "mov rdx, qword ptr [rip + 30f + {mask} + 24]\n",
            "mov rsi, qword ptr [rip + 30f + {mask} + 32]\n",
            "mov rdi, qword ptr [rip + 30f + {mask} + 40]\n",
            "mov r8, qword ptr [rip + 30f + {mask} + 48]\n",
            "mov r9, qword ptr [rip + 30f + {mask} + 56]\n",
            "mov r10, qword ptr [rip + 30f + {mask} + 64]\n",
            "mov r11, qword ptr [rip + 30f + {mask} + 72]\n",
            "jmp qword ptr [rip + 30f + {mask} + 80]\n",
        )
    };
}

// What `go_on` has in numbers.
const _: () = assert!(offset_of!(Data, rip) - offset_of!(Data, mask) == 80);

#[unsafe(naked)]
unsafe extern "C" fn map() {
    naked_asm!(
        "20:",
        ".quad 21f - 20b",
        set_mask!("{all_signals}"),
        // open(path, O_RDONLY | O_CLOEXEC)
        "mov eax, {open}",
        "lea rdi, [rip + 30f]",
        "mov esi, {read}",
        "mov edx, 0",
        "syscall",
        // mmap(SCRATCH, .., file, 0)
        "mov r8, rax",
        "mov eax, {mmap}",
        "movabs rdi, {scratch}",
        "mov esi, {page}",
        "mov edx, {protection}",
        "mov r10d, {flags}",
        "mov r9d, 0",
        "syscall",
        "mov r9, rax",
        "mov eax, {close}",
        "mov edi, r8d",
        "syscall",
        "movabs rcx, {minus_scratch}",
        "lea rcx, [rcx + r9]",
        "jrcxz 2f",
        // A kernel before 4.17 takes the address for a hint. An error is no address of a page.
        "mov eax, {munmap}",
        "mov rdi, r9",
        "mov esi, {page}",
        "syscall",
        go_on!(),
        "2:",
        "movabs rax, {entry}",
        "jmp rax",
        "30:",
        ".zero {data}",
        "21:",
        all_signals = const offset_of!(Data, all_signals),
        mask = const offset_of!(Data, mask),
        data = const size_of::<Data>(),
        page = const PAGE,
        scratch = const SCRATCH,
        minus_scratch = const SCRATCH.wrapping_neg() as i64,
        entry = const ENTRY,
        open = const libc::SYS_open,
        read = const libc::O_RDONLY | libc::O_CLOEXEC,
        mmap = const libc::SYS_mmap,
        protection = const libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
        flags = const libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE,
        munmap = const libc::SYS_munmap,
        close = const libc::SYS_close,
        rt_sigprocmask = const libc::SYS_rt_sigprocmask,
        set_mask = const libc::SIG_SETMASK,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn unmap() {
    naked_asm!(
        "20:",
        ".quad 21f - 20b",
        set_mask!("{all_signals}"),
        "mov eax, {munmap}",
        "movabs rdi, {start}",
        "movabs rsi, {bytes}",
        "syscall",
        go_on!(),
        "30:",
        ".zero {data}",
        "21:",
        all_signals = const offset_of!(Data, all_signals),
        mask = const offset_of!(Data, mask),
        data = const size_of::<Data>(),
        start = const REGION.start,
        bytes = const REGION.end - REGION.start,
        munmap = const libc::SYS_munmap,
        rt_sigprocmask = const libc::SYS_rt_sigprocmask,
        set_mask = const libc::SIG_SETMASK,
    )
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpAccess, OpKind};
    use iced_x86::{InstructionInfoFactory, Register};

    use super::*;

    fn both() -> [Vec<u8>; 2] {
        let loading = Loading { signal: 0, registers: Default::default(), flags: 0, mask: 0 };
        [code_to_map("/proc/4194304/fd/1000000", &loading), code_to_unmap(&loading)].map(Option::unwrap)
    }

    #[test]
    fn nothing_is_written_and_no_flag_changed() {
        for code in both() {
            let end = code.len() - size_of::<Data>();
            let mut info = InstructionInfoFactory::new();
            for instruction in &mut Decoder::with_ip(64, &code[..end], 0, DecoderOptions::NONE) {
                assert!(!instruction.is_invalid());
                let info = info.info(&instruction);
                let writes = |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite);
                assert!(!info.used_memory().iter().any(|memory| writes(memory.access())), "{instruction}");
                // The kernel gives the flags back that it found.
                if instruction.mnemonic() != Mnemonic::Syscall {
                    assert_eq!(instruction.rflags_modified(), 0, "{instruction}");
                }
                assert!(info.used_registers().iter().all(|used| used.register().full_register() != Register::RSP));
            }
        }
    }

    #[test]
    fn the_data_is_where_the_code_looks_for_it() {
        let [mut general, rip, mask] = [[0; 16], [17; 16], [18; 16]];
        general.iter_mut().enumerate().for_each(|(number, register)| *register = 100 + number as u64);
        let registers = crate::loader::ProgramRegisters { general, rip: rip[0] };
        let code = code_to_unmap(&Loading { signal: 0, registers, flags: 0, mask: mask[0] }).unwrap();
        let end = code.len() - size_of::<Data>();
        let word = |place: u64| u64::from_ne_bytes(code[place as usize..][..8].try_into().unwrap());
        // The registers as the last instructions give them, and where the thread goes on.
        let mut given = Vec::new();
        for instruction in &mut Decoder::with_ip(64, &code[..end], 0, DecoderOptions::NONE) {
            match instruction.mnemonic() {
                Mnemonic::Mov if instruction.op1_kind() == OpKind::Memory => {
                    given.push((instruction.op0_register(), word(instruction.memory_displacement64())));
                }
                Mnemonic::Jmp => given.push((Register::RIP, word(instruction.memory_displacement64()))),
                _ => {}
            }
        }
        let expected = [
            (Register::RAX, 100),
            (Register::RCX, 101),
            (Register::RDX, 102),
            (Register::RSI, 106),
            (Register::RDI, 107),
            (Register::R8, 108),
            (Register::R9, 109),
            (Register::R10, 110),
            (Register::R11, 111),
            (Register::RIP, 17),
        ];
        assert_eq!(given, expected);
    }

    #[test]
    fn a_path_that_is_too_long_is_none() {
        let loading = Loading { signal: 0, registers: Default::default(), flags: 0, mask: 0 };
        assert!(code_to_map(&"/".repeat(PATH - 1), &loading).is_some());
        assert!(code_to_map(&"/".repeat(PATH), &loading).is_none());
    }
}
