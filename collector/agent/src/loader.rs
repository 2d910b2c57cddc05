//! The code by which a thread of the program maps the image: it makes the system calls, gives itself its registers again and goes on where it
//! stood. It is in the scratch page, which the thread has mapped itself ([`crate::vdso_code`]).
//!
//! ```text
//! SCRATCH   code
//! DATA      paths of the two files, the parts to map, the action for the signal, the registers of the thread
//! RESIDENT  what the agent says of itself, and the code that gives the program its handlers back (`resident`)
//! ```

use std::arch::naked_asm;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process;
use std::slice;

use crate::image::{Image, Source, memory_file};
use crate::inside::system::Action;
use crate::layout::SCRATCH;
use crate::resident::{self, RESIDENT};

/// Where the data begins.
pub(crate) const DATA: u64 = SCRATCH + 0x400;
/// Where the path of the recorder's file is.
pub(crate) const RECORDER: u64 = DATA + offset_of!(Data, memory_path) as u64;
/// Parts at most; the last is followed by an address of 0.
const PARTS: usize = 8;
pub(crate) const PATH: usize = 64;

/// What the code works with.
#[repr(C)]
#[derive(Clone, Copy)]
struct Data {
    memory_path: [u8; PATH],
    executable_path: [u8; PATH],
    parts: [PartToMap; PARTS + 1],
    action: Action,
    signal: u64,
    place_of_programs_action: u64,
    /// 1: the agent is in. 2: it could not be mapped.
    status: u64,
    back: Back,
    /// The process that has put itself here, and its timer ([`crate::preload`]).
    owner: u64,
    timer: u64,
}

/// What the thread has again when the code has done its work.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Back {
    pub(crate) mask: u64,
    /// Flags, with nothing below: the stack pointer points here when they are taken.
    pub(crate) flags: u64,
    pub(crate) registers: ProgramRegisters,
}

// What `go_back` has in numbers.
const _: () = assert!(offset_of!(Back, mask) == 0 && offset_of!(Back, flags) == 8 && offset_of!(Back, registers) == 16);

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PartToMap {
    address: u64,
    bytes: u64,
    protection: u64,
    flags: u64,
    offset: u64,
    of_executable: u64,
}

/// Registers of the thread: what the code gives it again.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramRegisters {
    /// In encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub general: [u64; 16],
    /// Where it goes on.
    pub rip: u64,
}

/// A thread that is to map the image.
#[derive(Clone, Copy, Debug)]
pub struct Loading {
    /// The signal that the agent takes.
    pub signal: i32,
    /// The thread's registers.
    pub registers: ProgramRegisters,
    /// Its flags.
    pub flags: u64,
    /// The signals it blocks.
    pub mask: u64,
}

/// Whether the code has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStatus {
    /// Not yet.
    Working,
    /// The agent is in.
    Loaded,
    /// The system calls failed.
    Failed,
}

/// Where the status is, a word of 64 bits in the program's memory.
pub const STATUS: u64 = DATA + offset_of!(Data, status) as u64;

/// Where the number of the agent's signal is, a word of 64 bits in the program's memory.
pub const SIGNAL: u64 = DATA + offset_of!(Data, signal) as u64;

impl From<u64> for LoadStatus {
    fn from(word: u64) -> Self {
        match word {
            0 => Self::Working,
            1 => Self::Loaded,
            _ => Self::Failed,
        }
    }
}

/// Where the thread has to go on once the page is there: it begins with the length of the code.
pub(crate) const ENTRY: u64 = SCRATCH + 8;

/// The content of the scratch page. `None` if it has no room for all.
pub fn page(image: &Image, loading: &Loading) -> Option<Vec<u8>> {
    let mut parts = [PartToMap::default(); PARTS + 1];
    for (to_map, part) in parts[..PARTS].iter_mut().zip(image.parts()) {
        let (protection, flags) = part.mmap_flags();
        *to_map = PartToMap {
            address: part.address,
            bytes: part.bytes,
            protection: protection as u64,
            flags: (flags | libc::MAP_FIXED_NOREPLACE) as u64,
            offset: part.offset,
            of_executable: u64::from(part.source == Source::Executable),
        };
    }
    let data = Data {
        memory_path: path_bytes(&path_of(&image.file))?,
        executable_path: path_bytes(&format!("/proc/{}/exe", process::id()))?,
        parts,
        action: image.action(),
        signal: loading.signal as u64,
        place_of_programs_action: image.place_of_programs_action(),
        status: 0,
        back: loading.back(),
        owner: 0,
        timer: 0,
    };
    (image.parts().len() <= PARTS).then_some(())?;
    let mut page = vec![0; (RESIDENT - SCRATCH) as usize];
    // SAFETY: `load` begins with its length.
    let code = unsafe { code_of(load as *const u8, loading.registers.rip) }?;
    page.get_mut(..code.len().min((DATA - SCRATCH) as usize))?.copy_from_slice(&code);
    let data = bytes_of(&data);
    page[(DATA - SCRATCH) as usize..].get_mut(..data.len())?.copy_from_slice(&data);
    page.extend_from_slice(&resident::description(image, loading.signal));
    Some(page)
}

/// Where processes in the same namespaces open a file of this one.
fn path_of(file: &impl AsRawFd) -> String {
    format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd())
}

/// A path as the code has it, with a zero at its end. `None` if it is too long.
pub(crate) fn path_bytes(path: &str) -> Option<[u8; PATH]> {
    let mut bytes = [0; PATH];
    bytes[..PATH - 1].get_mut(..path.len())?.copy_from_slice(path.as_bytes());
    Some(bytes)
}

/// A page that other processes can map by its path, as long as this is there.
#[derive(Debug)]
pub struct PageFile {
    file: File,
}

impl PageFile {
    /// Of this content, and zeros after that.
    ///
    /// # Errors
    /// The system refuses memory.
    pub fn of(content: &[u8]) -> io::Result<Self> {
        let file = File::from(memory_file()?);
        file.write_all_at(content, 0)?;
        Ok(Self { file })
    }

    /// Where processes in the same namespaces open it.
    pub fn path(&self) -> String {
        path_of(&self.file)
    }
}

/// The bytes of a value of words, or bytes, without padding.
pub(crate) fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: those for which this is called have none.
    unsafe { slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

/// Code as it is copied into a program, where it goes on to `target` in the end.
///
/// # Safety
/// What is at `start` begins with its length, which is followed by code, and ends with a word for the target.
pub(crate) unsafe fn code_of(start: *const u8, target: u64) -> Option<Vec<u8>> {
    // SAFETY: the caller's.
    let mut code = unsafe {
        let length = start.cast::<u64>().read_unaligned() as usize;
        slice::from_raw_parts(start, length).to_vec()
    };
    let (_, place) = code.split_last_chunk_mut::<8>()?;
    *place = target.to_ne_bytes();
    Some(code)
}

impl Loading {
    pub(crate) fn back(&self) -> Back {
        Back { mask: self.mask, flags: self.flags, registers: self.registers }
    }
}

const _: () = assert!(DATA + (size_of::<Data>() as u64) <= RESIDENT);

/// Where, from [`DATA`] on, what is that a program needs which maps the image by itself.
pub(crate) mod at {
    use super::*;

    pub(crate) const STATUS: usize = offset_of!(Data, status);
    pub(crate) const OWNER: usize = offset_of!(Data, owner);
    pub(crate) const TIMER: usize = offset_of!(Data, timer);
    const BACK: usize = offset_of!(Data, back);
    pub(crate) const MASK: usize = BACK + offset_of!(Back, mask);
    pub(crate) const FLAGS: usize = BACK + offset_of!(Back, flags);
    const REGISTERS: usize = BACK + offset_of!(Back, registers);
    pub(crate) const RSP: usize = REGISTERS + 8 * 4;
    pub(crate) const RBP: usize = REGISTERS + 8 * 5;
}

/// The process that has put itself here, and its timer. Only where the image is mapped.
pub(crate) fn preloaded() -> (u32, u32) {
    // SAFETY: the scratch page is mapped with the image; nobody writes these words any more.
    let word = |place: usize| unsafe { ((DATA + place as u64) as *const u64).read_volatile() };
    (word(at::OWNER) as u32, word(at::TIMER) as u32)
}

/// Gives the thread its flags, its mask and its registers again, and goes to the address that is written after this. `back` is where the
/// [`Back`] is, from rbp on. Flags first, by a stack that is nobody's: from the program's own stack pointer on a signal
/// may come.
/// `$at_last`: what else is to be done, when signals may come again; only the last of all registers are still to be given back then.
macro_rules! go_back {
    ($at_last:literal) => {
        concat!(
            "lea rsp, [rbp + {back} + 8]\n",
            "lea rsi, [rbp + {back}]\n",
            "popfq\n",
            "mov rsp, qword ptr [rbp + {back} + 48]\n",
            "mov eax, {rt_sigprocmask}\n",
            "mov edi, {set_mask}\n",
            "mov edx, 0\n",
            "mov r10d, 8\n",
            "syscall\n",
            "mov rcx, qword ptr [rbp + {back} + 24]\n",
            "mov rdx, qword ptr [rbp + {back} + 32]\n",
            "mov rbx, qword ptr [rbp + {back} + 40]\n",
            "mov rsi, qword ptr [rbp + {back} + 64]\n",
            "mov rdi, qword ptr [rbp + {back} + 72]\n",
            "mov r8, qword ptr [rbp + {back} + 80]\n",
            "mov r9, qword ptr [rbp + {back} + 88]\n",
            "mov r10, qword ptr [rbp + {back} + 96]\n",
            "mov r11, qword ptr [rbp + {back} + 104]\n",
            "mov r12, qword ptr [rbp + {back} + 112]\n",
            "mov r13, qword ptr [rbp + {back} + 120]\n",
            "mov r14, qword ptr [rbp + {back} + 128]\n",
            "mov r15, qword ptr [rbp + {back} + 136]\n",
            $at_last,
            "mov rax, qword ptr [rbp + {back} + 16]\n",
            "mov rbp, qword ptr [rbp + {back} + 56]\n",
            "jmp qword ptr [rip]\n",
            ".quad 0\n",
        )
    };
}
pub(crate) use go_back;

/// Runs at the start of the scratch page, with all signals blocked. What it uses is at fixed addresses.
#[unsafe(naked)]
unsafe extern "C" fn load() {
    naked_asm!(
        "20:",
        ".quad 21f - 20b",
        "movabs rbp, {data}",
        // open(path, O_RDWR | O_CLOEXEC), open(path, O_RDONLY | O_CLOEXEC)
        "mov eax, {open}",
        "lea rdi, [rbp + {memory_path}]",
        "mov esi, {read_write}",
        "xor edx, edx",
        "syscall",
        "mov r12, rax",
        "mov eax, {open}",
        "lea rdi, [rbp + {executable_path}]",
        "mov esi, {read}",
        "xor edx, edx",
        "syscall",
        "mov r13, rax",
        "lea rbx, [rbp + {parts}]",
        // Each part, at its own address or not at all.
        "2:",
        "mov rdi, qword ptr [rbx]",
        "test rdi, rdi",
        "jz 3f",
        "mov rsi, qword ptr [rbx + 8]",
        "mov rdx, qword ptr [rbx + 16]",
        "mov r10, qword ptr [rbx + 24]",
        "mov r9, qword ptr [rbx + 32]",
        "mov r8, r12",
        "cmp qword ptr [rbx + 40], 0",
        "cmovne r8, r13",
        "mov eax, {mmap}",
        "syscall",
        "cmp rax, qword ptr [rbx]",
        "jne 4f",
        "add rbx, {part}",
        "jmp 2b",
        // rt_sigaction(signal, action, place, 8)
        "3:",
        "mov eax, {rt_sigaction}",
        "mov rdi, qword ptr [rbp + {signal}]",
        "lea rsi, [rbp + {action}]",
        "mov rdx, qword ptr [rbp + {place}]",
        "mov r10d, 8",
        "syscall",
        "test rax, rax",
        "jnz 4f",
        "mov qword ptr [rbp + {status}], 1",
        "jmp 6f",
        // What was mapped before goes again.
        "4:",
        "lea rax, [rbp + {parts}]",
        "cmp rbx, rax",
        "jbe 5f",
        "sub rbx, {part}",
        "mov rdi, qword ptr [rbx]",
        "mov rsi, qword ptr [rbx + 8]",
        "mov eax, {munmap}",
        "syscall",
        "jmp 4b",
        "5:",
        "mov qword ptr [rbp + {status}], 2",
        "6:",
        "mov eax, {close}",
        "mov rdi, r12",
        "test r12, r12",
        "js 7f",
        "syscall",
        "7:",
        "mov eax, {close}",
        "mov rdi, r13",
        "test r13, r13",
        "js 8f",
        "syscall",
        "8:",
        go_back!(""),
        "21:",
        data = const DATA,
        memory_path = const offset_of!(Data, memory_path),
        executable_path = const offset_of!(Data, executable_path),
        parts = const offset_of!(Data, parts),
        part = const size_of::<PartToMap>(),
        action = const offset_of!(Data, action),
        signal = const offset_of!(Data, signal),
        place = const offset_of!(Data, place_of_programs_action),
        status = const offset_of!(Data, status),
        back = const offset_of!(Data, back),
        open = const libc::SYS_open,
        mmap = const libc::SYS_mmap,
        munmap = const libc::SYS_munmap,
        close = const libc::SYS_close,
        rt_sigaction = const libc::SYS_rt_sigaction,
        rt_sigprocmask = const libc::SYS_rt_sigprocmask,
        set_mask = const libc::SIG_SETMASK,
        read_write = const libc::O_RDWR | libc::O_CLOEXEC,
        read = const libc::O_RDONLY | libc::O_CLOEXEC,
    )
}
