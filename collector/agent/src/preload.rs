//! A shared object that the dynamic loader of a program maps (`LD_PRELOAD`), for where nobody may trace: it has a timer of CPU time started,
//! and maps the image at the timer's first signal.
//!
//! ```text
//! file and memory
//! 0x0000  ELF header, segments, empty tables of symbols | what the code works with (`Given`)
//! 0x1000  code: `begin`, for the dynamic loader; `first`, the handler of the first signal
//! 0x2000  the scratch page, as `first` puts it into its place
//! 0x3000  dynamic section | what is written (`Own`)
//! ```
//!
//! It needs no library and has no relocations. Most processes end before their first signal: they pay for the object and the timer, not for
//! the image. Where the image cannot be mapped, because the recorder is gone, its files cannot be opened or its place is taken, the program has its
//! handler back, and that is all.

use std::arch::naked_asm;
use std::mem::offset_of;

use object::elf;

use crate::image::Image;
use crate::inside::system::Action;
use crate::layout::SCRATCH;
use crate::loader::{self, DATA, ENTRY, Loading, ProgramRegisters, at, bytes_of, code_of};

/// The signal of timers. Nothing happens by default, and few programs have a handler for it.
pub const SIGNAL_OF_TIMERS: i32 = libc::SIGURG;

const PAGE: u64 = 4096;
const GIVEN: u64 = 0x800;
const CODE: u64 = 0x1000;
const SCRATCH_PAGE: u64 = 0x2000;
const DYNAMIC: u64 = 0x3000;
const OWN: u64 = 0x3200;
const END: u64 = 0x4000;
/// In the first page, after the segments: a table of no symbols, their names, and how to find them.
const SYMBOLS: u64 = 0x400;
const NAMES: u64 = 0x420;
const HASHES: u64 = 0x430;

/// Whose CPU time the timers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// That of all threads of a process. The signal goes to a thread that computes since Linux 6.4.
    Process,
    /// That of the thread that begins.
    Thread,
}

impl Clock {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Process => libc::CLOCK_PROCESS_CPUTIME_ID,
            Self::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
        }
    }
}

/// What the code is given.
#[repr(C)]
#[derive(Clone, Copy)]
struct Given {
    /// The mean time until the first signal is half of this, ns.
    period: u64,
    signal: u64,
    // After the signal: both are cleared at once.
    token: u64,
    clock: u64,
    notify: u64,
    /// The image's handler.
    handler: u64,
}

/// What the code writes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Own {
    programs: Action,
    action: Action,
    event: [u64; 8],
    setting: [u64; 4],
    owner: u64,
    timer: u64,
    /// Not zero: a thread maps the image, or has.
    begun: u64,
}

const _: () = assert!(OWN + (size_of::<Own>() as u64) <= END && GIVEN + (size_of::<Given>() as u64) <= CODE);

/// The shared object of a recording.
#[derive(Clone, Debug)]
pub struct Preload {
    /// The file.
    pub bytes: Vec<u8>,
}

impl Preload {
    /// Where the period stands in the file, in 8 bytes: what is written there holds for the processes that begin then.
    pub const PERIOD: u64 = GIVEN + offset_of!(Given, period) as u64;

    /// Where the file has the signal and what it carries, in 16 bytes. Once there are zeros, processes that have the object do nothing:
    /// none that begins then, and none that has not mapped the image.
    pub const SIGNAL_AND_TOKEN: u64 = GIVEN + offset_of!(Given, signal) as u64;

    /// One by which processes get this image, whose timers are from now on of this clock. `None` if its code has no room.
    pub fn of(image: &Image, clock: Clock) -> Option<Self> {
        // The handler fills in where the thread goes on.
        let loading =
            Loading { signal: SIGNAL_OF_TIMERS, registers: ProgramRegisters::default(), flags: 0, mask: u64::MAX };
        let scratch = loader::page(image, &loading)?;
        // SAFETY: `begin` begins with its length.
        let code = unsafe { code_of(begin as *const u8, 0) }?;
        let of_thread = clock == Clock::Thread;
        let given = Given {
            period: 0,
            signal: SIGNAL_OF_TIMERS as u64,
            token: image.token,
            clock: clock.number() as u64,
            notify: (libc::SIGEV_SIGNAL | if of_thread { libc::SIGEV_THREAD_ID } else { 0 }) as u64,
            handler: image.action().handler,
        };
        image.slots.set_signal(SIGNAL_OF_TIMERS);
        image.slots.timers().begin(image.token, clock.number());
        let fits = code.len() as u64 <= SCRATCH_PAGE - CODE && scratch.len() as u64 <= PAGE;
        let bytes = object_file(&[
            (GIVEN, bytes_of(&given)),
            (CODE, code),
            (SCRATCH_PAGE, scratch),
            (DYNAMIC, dynamic_section()),
        ]);
        fits.then_some(Self { bytes })
    }
}

impl Image {
    /// What the signals of timers carry, and those that ask a process for its timer.
    pub fn token_of_timers(&self) -> u64 {
        self.token
    }
}

/// The file, with these pieces at their places.
fn object_file(pieces: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0; END as usize];
    let mut put = |at: u64, bytes: &[u8]| file[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    let header_bytes = 64_u16;
    let segment_bytes = 56_u16;
    let segments = [
        segment(elf::PT_LOAD.0, elf::PF_R.0 | elf::PF_X.0, 0..DYNAMIC, PAGE),
        segment(elf::PT_LOAD.0, elf::PF_R.0 | elf::PF_W.0, DYNAMIC..END, PAGE),
        segment(elf::PT_DYNAMIC.0, elf::PF_R.0 | elf::PF_W.0, DYNAMIC..OWN, 8),
        // Without this one, the loader would make stacks executable.
        segment(elf::PT_GNU_STACK.0, elf::PF_R.0 | elf::PF_W.0, 0..0, 16),
    ];
    let mut header = vec![0x7f, b'E', b'L', b'F', elf::ELFCLASS64.0, elf::ELFDATA2LSB.0, elf::EV_CURRENT.0];
    header.resize(16, 0);
    header.extend(elf::ET_DYN.0.to_le_bytes());
    header.extend(elf::EM_X86_64.0.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    for word in [0, u64::from(header_bytes), 0] {
        header.extend(word.to_le_bytes());
    }
    header.extend(0_u32.to_le_bytes());
    for half in [header_bytes, segment_bytes, segments.len() as u16, 64, 0, 0] {
        header.extend(half.to_le_bytes());
    }
    put(0, &header);
    put(u64::from(header_bytes), &segments.concat());
    // One bucket, which is empty, and the symbol that stands for none.
    put(HASHES, &[1_u32, 1, 0, 0].map(u32::to_le_bytes).concat());
    pieces.iter().for_each(|(at, bytes)| put(*at, bytes));
    file
}

/// A program header of memory that is where it is in the file.
fn segment(kind: u32, flags: u32, range: std::ops::Range<u64>, align: u64) -> Vec<u8> {
    let length = range.end - range.start;
    let words = [range.start, range.start, range.start, length, length, align];
    let head = [kind.to_le_bytes(), flags.to_le_bytes()].concat();
    head.into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
}

fn dynamic_section() -> Vec<u8> {
    let entries = [
        // After its length.
        (elf::DT_INIT, CODE + 8),
        (elf::DT_HASH, HASHES),
        (elf::DT_SYMTAB, SYMBOLS),
        (elf::DT_STRTAB, NAMES),
        (elf::DT_STRSZ, 1),
        (elf::DT_SYMENT, 24),
        (elf::DT_NULL, 0),
    ];
    entries.into_iter().flat_map(|(tag, value)| [tag.0 as u64, value]).flat_map(u64::to_le_bytes).collect()
}

/// Where something of what the code writes is, from the start of the code on.
const fn own(offset: usize) -> usize {
    (OWN - CODE) as usize + offset
}

/// The same of what it is given, backwards.
const fn given(offset: usize) -> usize {
    (CODE - GIVEN) as usize - offset
}

/// Runs in a program when its dynamic loader calls it, as a C function without arguments; and, from `30` on, as the handler of the first
/// signal. Its own place is not known before.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!(
        "20:",
        ".quad 21f - 20b",
        "push rbx",
        "push rbp",
        "lea rbp, [rip + 20b]",
        // rt_sigaction(signal, action, programs, 8)
        "lea rax, [rip + 30f]",
        "mov qword ptr [rbp + {action} + {handler_in_action}], rax",
        "lea rax, [rip + 39f]",
        "mov qword ptr [rbp + {action} + {restorer_in_action}], rax",
        "mov qword ptr [rbp + {action} + {flags_in_action}], {action_flags}",
        "mov qword ptr [rbp + {action} + {mask_in_action}], -1",
        "mov eax, {rt_sigaction}",
        "mov rdi, qword ptr [rbp - {signal}]",
        "lea rsi, [rbp + {action}]",
        "lea rdx, [rbp + {programs}]",
        "mov r10d, 8",
        "syscall",
        "test rax, rax",
        "jnz 29f",
        // timer_create(clock, event, timer)
        "mov eax, {getpid}",
        "syscall",
        "mov qword ptr [rbp + {owner}], rax",
        "mov eax, {gettid}",
        "syscall",
        "mov qword ptr [rbp + {event} + 16], rax",
        "mov rax, qword ptr [rbp - {token}]",
        "mov qword ptr [rbp + {event}], rax",
        "mov rax, qword ptr [rbp - {notify}]",
        "shl rax, 32",
        "or rax, qword ptr [rbp - {signal}]",
        "mov qword ptr [rbp + {event} + 8], rax",
        "mov eax, {timer_create}",
        "mov rdi, qword ptr [rbp - {clock}]",
        "lea rsi, [rbp + {event}]",
        "lea rdx, [rbp + {timer}]",
        "syscall",
        "test rax, rax",
        "jnz 28f",
        // A random part of the period: by the time, in ns, and the process.
        "mov eax, {clock_gettime}",
        "mov edi, {monotonic}",
        "lea rsi, [rbp + {setting}]",
        "syscall",
        "mov rax, qword ptr [rbp + {owner}]",
        "shl rax, 32",
        "xor rax, qword ptr [rbp + {setting} + 8]",
        "movabs rcx, 0x9e3779b97f4a7c15",
        "imul rax, rcx",
        "mul qword ptr [rbp - {period}]",
        "mov rax, rdx",
        "xor edx, edx",
        "mov ecx, 1000000000",
        "div rcx",
        "or rdx, 1",
        // timer_settime(timer, 0, setting, 0)
        "mov qword ptr [rbp + {setting}], 0",
        "mov qword ptr [rbp + {setting} + 8], 0",
        "mov qword ptr [rbp + {setting} + 16], rax",
        "mov qword ptr [rbp + {setting} + 24], rdx",
        "mov eax, {timer_settime}",
        "mov edi, dword ptr [rbp + {timer}]",
        "xor esi, esi",
        "lea rdx, [rbp + {setting}]",
        "xor r10d, r10d",
        "syscall",
        "jmp 29f",
        "28:",
        "mov eax, {rt_sigaction}",
        "mov rdi, qword ptr [rbp - {signal}]",
        "lea rsi, [rbp + {programs}]",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        "29:",
        "pop rbp",
        "pop rbx",
        "ret",
        // The handler: a timer's (-2) or somebody's (-1) signal that carries the token, and the first one.
        "30:",
        "mov eax, dword ptr [rsi + 8]",
        "add eax, 2",
        "cmp eax, 1",
        "ja 38f",
        "lea rbp, [rip + 20b]",
        "mov rax, qword ptr [rbp - {token}]",
        "cmp rax, qword ptr [rsi + 24]",
        "jne 38f",
        "mov eax, 1",
        "xchg qword ptr [rbp + {begun}], rax",
        "test rax, rax",
        "jnz 38f",
        "push rdi",
        "push rsi",
        "push rdx",
        // What the image finds is the program's action.
        "mov eax, {rt_sigaction}",
        "mov rdi, qword ptr [rbp - {signal}]",
        "lea rsi, [rbp + {programs}]",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        // mmap(SCRATCH, ..), and what belongs there.
        "mov eax, {mmap}",
        "movabs rdi, {scratch}",
        "mov esi, {page}",
        "mov edx, {protection}",
        "mov r10d, {mmap_flags}",
        "mov r8, -1",
        "xor r9d, r9d",
        "syscall",
        "movabs rdi, {scratch}",
        "cmp rax, rdi",
        "jne 37f",
        "lea rsi, [rbp + {scratch_page}]",
        "mov ecx, {page}",
        "rep movsb",
        "movabs rbx, {data}",
        "mov rax, qword ptr [rbp + {owner}]",
        "mov qword ptr [rbx + {owner_in_data}], rax",
        "mov eax, dword ptr [rbp + {timer}]",
        "mov qword ptr [rbx + {timer_in_data}], rax",
        // How it comes back: here, with all signals blocked. The code ends with where it goes on.
        "mov qword ptr [rbx + {mask}], -1",
        "pushfq",
        "pop qword ptr [rbx + {flags}]",
        "mov qword ptr [rbx + {rsp}], rsp",
        "mov qword ptr [rbx + {rbp}], rbp",
        "movabs rcx, {scratch}",
        "mov rdx, qword ptr [rcx]",
        "lea rax, [rip + 36f]",
        "mov qword ptr [rcx + rdx - 8], rax",
        "movabs rax, {entry}",
        "jmp rax",
        "36:",
        "movabs rax, {data}",
        "cmp qword ptr [rax + {status}], 1",
        "jne 37f",
        // The signal is the image's handler's.
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp qword ptr [rbp - {handler}]",
        "37:",
        "add rsp, 24",
        "38:",
        "ret",
        "39:",
        "mov eax, {rt_sigreturn}",
        "syscall",
        // Where `code_of` writes a target.
        ".quad 0",
        "21:",
        signal = const given(offset_of!(Given, signal)),
        token = const given(offset_of!(Given, token)),
        clock = const given(offset_of!(Given, clock)),
        notify = const given(offset_of!(Given, notify)),
        period = const given(offset_of!(Given, period)),
        handler = const given(offset_of!(Given, handler)),
        programs = const own(offset_of!(Own, programs)),
        action = const own(offset_of!(Own, action)),
        event = const own(offset_of!(Own, event)),
        setting = const own(offset_of!(Own, setting)),
        owner = const own(offset_of!(Own, owner)),
        timer = const own(offset_of!(Own, timer)),
        begun = const own(offset_of!(Own, begun)),
        handler_in_action = const offset_of!(Action, handler),
        flags_in_action = const offset_of!(Action, flags),
        restorer_in_action = const offset_of!(Action, restorer),
        mask_in_action = const offset_of!(Action, mask),
        action_flags = const ACTION_FLAGS,
        scratch = const SCRATCH,
        scratch_page = const SCRATCH_PAGE - CODE,
        page = const PAGE,
        data = const DATA,
        entry = const ENTRY,
        status = const at::STATUS,
        owner_in_data = const at::OWNER,
        timer_in_data = const at::TIMER,
        mask = const at::MASK,
        flags = const at::FLAGS,
        rsp = const at::RSP,
        rbp = const at::RBP,
        protection = const libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
        mmap_flags = const libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
        monotonic = const libc::CLOCK_MONOTONIC,
        rt_sigaction = const libc::SYS_rt_sigaction,
        rt_sigreturn = const libc::SYS_rt_sigreturn,
        getpid = const libc::SYS_getpid,
        gettid = const libc::SYS_gettid,
        timer_create = const libc::SYS_timer_create,
        timer_settime = const libc::SYS_timer_settime,
        clock_gettime = const libc::SYS_clock_gettime,
        mmap = const libc::SYS_mmap,
    )
}

/// The same as those of the image's handler.
const ACTION_FLAGS: i32 = Action::FLAGS as i32 | libc::SA_RESTART;

#[cfg(test)]
mod tests {
    use object::{Object, ObjectKind, ObjectSegment};

    use super::*;

    #[test]
    fn the_file_is_a_shared_object_with_nothing_to_resolve() {
        let bytes = object_file(&[(DYNAMIC, dynamic_section())]);
        let file = object::File::parse(bytes.as_slice()).unwrap();
        assert_eq!(file.kind(), ObjectKind::Dynamic);
        let segments: Vec<(u64, u64)> = file.segments().map(|segment| (segment.address(), segment.size())).collect();
        assert_eq!(segments, [(0, DYNAMIC), (DYNAMIC, END - DYNAMIC)]);
        assert_eq!((file.dynamic_symbols().count(), file.imports().unwrap().count()), (0, 0));
    }

    #[test]
    fn the_code_has_room() {
        // SAFETY: it begins with its length.
        let code = unsafe { code_of(begin as *const u8, 0) }.unwrap();
        assert!(code.len() as u64 <= SCRATCH_PAGE - CODE, "{}", code.len());
    }
}
