//! What an agent says of itself in a program, so that it can be taken out: by its own recorder, or by one that comes later, of another
//! build perhaps. Everything is found by what stands here.
//!
//! ```text
//! RESIDENT  description: version, the recorder, contexts, the handlers and the program's own
//! RESTORE   code that gives the program its handlers back; put there when it is to run
//! DATA      what that code works with
//! ```

use std::arch::naked_asm;
use std::mem::offset_of;

use crate::image::{Image, Kept};
use crate::inside::context::Tcb;
use crate::inside::follow;
use crate::inside::system::Action;
use crate::layout::{CONTEXT_BYTES, CONTEXT_COUNT, SCRATCH, tcb};
use crate::loader::{Back, Loading, PATH, RECORDER, bytes_of, code_of, go_back};
use crate::slots::Shared;

/// Where the description is.
pub(crate) const RESIDENT: u64 = SCRATCH + 0x900;
/// Where the thread has to go on once the code is there: it begins with the length of the code.
pub const RESTORE: u64 = CODE + 8;
const CODE: u64 = SCRATCH + 0xb00;
const DATA: u64 = SCRATCH + 0xd00;
/// Changes with anything of the description, and with what a recorder has to know to take an agent out.
const VERSION: u64 = u64::from_le_bytes(*b"hbbp-ag1");
const HANDLERS: usize = 7;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Description {
    version: u64,
    token: u64,
    /// Not zero there, 32 bits: no burst is to be taken.
    off: u64,
    /// Of the first context, the process that takes a burst there, 32 bits;
    busy: u64,
    /// and what waits there: the thread, above these bits, and how.
    waits: u64,
    thread_shift: u64,
    armed: u64,
    contexts: u64,
    context_bytes: u64,
    /// Ids of threads, 32 bits each, 0: none.
    forsaken: u64,
    most_forsaken: u64,
    /// The last one has no signal.
    handlers: [Handler; HANDLERS + 1],
}

/// A signal, the agent's handler for it, where the program's action is kept, and where a word of 64 bits is that is not zero if the handler
/// was there for longer than a burst.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Handler {
    signal: u64,
    agents: u64,
    programs: u64,
    installed: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    /// 0: nobody has begun; 1: the program has its handlers; 2: a thread is about to give it them.
    restored: u64,
    /// How many the program has not, because it has installed others: these may know the agent's.
    taken: u64,
    found: Action,
    back: Back,
}

const _: () = assert!(RESIDENT + (size_of::<Description>() as u64) <= CODE);
const _: () = assert!(DATA + (size_of::<Data>() as u64) <= SCRATCH + 0x1000);

/// What stands at [`RESIDENT`].
pub(crate) fn description(image: &Image, signal: i32) -> Vec<u8> {
    let (yes, no) = (RESIDENT + offset_of!(Description, version) as u64, at_handler(HANDLERS));
    let mut handlers = [Handler::default(); HANDLERS + 1];
    for (place, known) in handlers[..HANDLERS].iter_mut().zip(image.handlers(signal)) {
        let installed = match known.kept {
            Kept::Always => yes,
            Kept::ForBursts => no,
            Kept::If(word) => word,
        };
        *place = Handler { signal: known.signal as u64, agents: known.agents, programs: known.programs, installed };
    }
    bytes_of(&Description {
        version: VERSION,
        token: image.token,
        off: Shared::OFF,
        // The first context is that of preparing.
        busy: tcb(1) + offset_of!(Tcb, busy) as u64,
        waits: tcb(1) + offset_of!(Tcb, waits) as u64,
        thread_shift: u64::from(follow::THREAD_SHIFT),
        armed: follow::ARMED,
        contexts: CONTEXT_COUNT - 1,
        context_bytes: CONTEXT_BYTES,
        forsaken: image.inside(&raw const follow::FORSAKEN as u64),
        most_forsaken: follow::MOST_FORSAKEN as u64,
        handlers,
    })
}

/// Where the number of a signal is.
const fn at_handler(number: usize) -> u64 {
    RESIDENT + (offset_of!(Description, handlers) + number * size_of::<Handler>()) as u64
}

/// An agent that is in a program.
#[derive(Clone)]
pub struct Resident {
    description: Description,
    /// Path of the file that it shares with its recorder, while that lives.
    pub recorder: String,
}

/// How a thread has to come back to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// By its next system call.
    Armed,
    /// When it comes out of its system call, by the trap flag.
    InCall,
}

/// Whether the program has its handlers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restoring {
    /// Nobody has begun.
    No,
    /// A thread runs the code for it, or is about to.
    UnderWay,
    /// It has.
    Done {
        /// The program has installed others in place of some, which may know the agent's.
        taken: bool,
    },
}

/// What goes on in an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// Whether a burst is being taken, by this process.
    pub bursts: bool,
    /// Threads that have to come back to it. Where the process was forked, they may be those of a parent.
    pub waiting: Vec<(i32, Waiting)>,
}

impl Resident {
    /// The agent of a program, whose memory `read` reads from an address on. `None`: there is none; `Some(None)`: it is of a version
    /// that is not known here.
    pub fn of(read: impl Fn(u64, &mut [u8]) -> bool) -> Option<Option<Self>> {
        let mut description = [0; size_of::<Description>()];
        let mut path = [0; PATH];
        (read(RESIDENT, &mut description) && read(RECORDER, &mut path)).then_some(())?;
        // SAFETY: words, for which any bits will do.
        let description: Description = unsafe { description.as_ptr().cast::<Description>().read_unaligned() };
        let [version, known] = [description.version, VERSION].map(u64::to_le_bytes);
        if version[..7] != known[..7] {
            return None;
        }
        let length = path.iter().position(|&byte| byte == 0).unwrap_or(PATH);
        let recorder = String::from_utf8_lossy(&path[..length]).into_owned();
        Some((version == known).then_some(Self { description, recorder }))
    }

    /// Whether it was put in with this image.
    pub fn is_of(&self, image: &Image) -> bool {
        self.description.token == image.token
    }

    /// Where a word of 32 bits is that is not zero if no bursts are to be taken.
    pub fn off(&self) -> u64 {
        self.description.off
    }

    /// Whether the program has a handler of its own for a signal that the agent has taken over.
    pub fn is_caught(&self, signal: i32, read: impl Fn(u64, &mut [u8]) -> bool) -> bool {
        let taken = self.description.handlers.iter().find(|handler| handler.signal == signal as u64);
        taken.is_some_and(|handler| {
            let mut action = [0; 8];
            let none = [libc::SIG_DFL, libc::SIG_IGN].map(|action| action as u64);
            read(handler.programs, &mut action) && !none.contains(&u64::from_ne_bytes(action))
        })
    }

    /// What goes on in it, in a process; `None` if that cannot be read.
    pub fn in_use(&self, process: i32, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<InUse> {
        let known = &self.description;
        let mut in_use = InUse::default();
        // The program could have written anything.
        for context in 0..known.contexts.min(1024) {
            let (mut busy, mut waits) = ([0; 4], [0; 8]);
            let from = known.context_bytes.wrapping_mul(context);
            (read(known.busy.wrapping_add(from), &mut busy) && read(known.waits.wrapping_add(from), &mut waits))
                .then_some(())?;
            let (waits, shift) = (u64::from_ne_bytes(waits), known.thread_shift as u32 & 63);
            if waits != 0 {
                let how = if waits & ((1 << shift) - 1) == known.armed { Waiting::Armed } else { Waiting::InCall };
                in_use.waiting.push(((waits >> shift) as i32, how));
            } else if i32::from_ne_bytes(busy) == process {
                in_use.bursts = true;
            }
        }
        let mut forsaken = vec![0; 4 * known.most_forsaken.min(1 << 20) as usize];
        read(known.forsaken, &mut forsaken).then_some(())?;
        let threads = forsaken.chunks_exact(4).map(|word| i32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        in_use.waiting.extend(threads.filter(|&thread| thread != 0).map(|thread| (thread, Waiting::InCall)));
        Some(in_use)
    }

    /// Whether the program has its handlers again; `None` if that cannot be read.
    pub fn restoring(&self, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<Restoring> {
        let word = |offset: usize| {
            let mut word = [0; 8];
            read(DATA + offset as u64, &mut word).then_some(u64::from_ne_bytes(word))
        };
        Some(match word(offset_of!(Data, restored))? {
            0 => Restoring::No,
            1 => Restoring::Done { taken: word(offset_of!(Data, taken))? != 0 },
            _ => Restoring::UnderWay,
        })
    }

    /// The code that gives the program its handlers back, where they are the agent's, and then a thread what it has; with what it works
    /// with: pieces of memory by their addresses.
    pub fn code_to_restore(thread: &Loading) -> Option<[(u64, Vec<u8>); 2]> {
        let data = Data { restored: 2, back: thread.back(), ..Data::default() };
        // SAFETY: `restore` begins with its length.
        let code = unsafe { code_of(restore as *const u8, thread.registers.rip) }?;
        (code.len() as u64 <= DATA - CODE).then_some([(CODE, code), (DATA, bytes_of(&data))])
    }
}

/// Runs in the scratch page. What it uses is at fixed addresses.
#[unsafe(naked)]
unsafe extern "C" fn restore() {
    naked_asm!(
        "20:",
        ".quad 21f - 20b",
        // rt_sigprocmask(SIG_SETMASK, all, 0, 8)
        "mov eax, {rt_sigprocmask}",
        "mov edi, {set_mask}",
        "lea rsi, [rip + 6f]",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        "movabs rbp, {data}",
        "movabs rbx, {handlers}",
        "2:",
        "mov rdi, qword ptr [rbx]",
        "test rdi, rdi",
        "jz 4f",
        // rt_sigaction(signal, 0, found, 8)
        "xor esi, esi",
        "lea rdx, [rbp + {found}]",
        "mov r10d, 8",
        "mov eax, {rt_sigaction}",
        "syscall",
        "test rax, rax",
        "jnz 3f",
        "mov rax, qword ptr [rbp + {found}]",
        "cmp rax, qword ptr [rbx + {agents}]",
        "jne 5f",
        // rt_sigaction(signal, programs, 0, 8)
        "mov rdi, qword ptr [rbx]",
        "mov rsi, qword ptr [rbx + {programs}]",
        "xor edx, edx",
        "mov r10d, 8",
        "mov eax, {rt_sigaction}",
        "syscall",
        "3:",
        "add rbx, {handler}",
        "jmp 2b",
        "5:",
        "mov rdx, qword ptr [rbx + {installed}]",
        "cmp qword ptr [rdx], 0",
        "je 3b",
        "inc qword ptr [rbp + {taken}]",
        "jmp 3b",
        "6:",
        ".quad -1",
        "4:",
        go_back!("mov qword ptr [rbp + {restored}], 1\n"),
        "21:",
        data = const DATA,
        handlers = const at_handler(0),
        handler = const size_of::<Handler>(),
        agents = const offset_of!(Handler, agents),
        programs = const offset_of!(Handler, programs),
        installed = const offset_of!(Handler, installed),
        taken = const offset_of!(Data, taken),
        found = const offset_of!(Data, found) + offset_of!(Action, handler),
        restored = const offset_of!(Data, restored),
        rt_sigaction = const libc::SYS_rt_sigaction,
        rt_sigprocmask = const libc::SYS_rt_sigprocmask,
        set_mask = const libc::SIG_SETMASK,
        back = const offset_of!(Data, back),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a program: pieces by their addresses.
    fn read(pieces: &[(u64, Vec<u8>)], address: u64, bytes: &mut [u8]) -> bool {
        let found = pieces.iter().find_map(|(start, piece)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            piece.get(from..from + bytes.len())
        });
        found.map(|found| bytes.copy_from_slice(found)).is_some()
    }

    fn program(version: u64) -> Vec<(u64, Vec<u8>)> {
        let description = Description {
            version,
            busy: 0x1000,
            waits: 0x1008,
            thread_shift: 2,
            armed: 1,
            contexts: 4,
            context_bytes: 0x100,
            forsaken: 0x2000,
            most_forsaken: 3,
            ..Description::default()
        };
        let mut contexts = vec![0; 0x400];
        // A burst of this process, one of a parent, a thread that is armed, one in a system call.
        for (context, busy, waits) in [(0, 7_u32, 0_u64), (1, 5, 0), (2, 7, 8 << 2 | 1), (3, 7, 9 << 2 | 2)] {
            let at = context * 0x100;
            contexts[at..at + 4].copy_from_slice(&busy.to_ne_bytes());
            contexts[at + 8..at + 16].copy_from_slice(&waits.to_ne_bytes());
        }
        let forsaken = [0_u32, 11, 0].iter().flat_map(|thread| thread.to_ne_bytes()).collect();
        let mut path = b"/proc/1/fd/3".to_vec();
        path.resize(PATH, 0);
        vec![(RESIDENT, bytes_of(&description)), (RECORDER, path), (0x1000, contexts), (0x2000, forsaken)]
    }

    #[test]
    fn what_stands_in_a_program_is_read() {
        let memory = program(VERSION);
        let resident = Resident::of(|address, bytes| read(&memory, address, bytes)).unwrap().unwrap();
        assert_eq!(resident.recorder, "/proc/1/fd/3");
        let waiting = vec![(8, Waiting::Armed), (9, Waiting::InCall), (11, Waiting::InCall)];
        let in_use = |process| resident.in_use(process, |address, bytes| read(&memory, address, bytes));
        assert_eq!(in_use(7), Some(InUse { bursts: true, waiting: waiting.clone() }));
        assert_eq!(in_use(6), Some(InUse { bursts: false, waiting }));
        assert_eq!(resident.in_use(7, |_, _| false), None);
    }

    #[test]
    fn another_version_is_one_and_anything_else_is_none() {
        let of = |version: &[u8; 8]| {
            let memory = program(u64::from_le_bytes(*version));
            Resident::of(|address, bytes| read(&memory, address, bytes)).map(|known| known.is_some())
        };
        assert_eq!((of(b"hbbp-ag0"), of(b"\x7fELF\x02\x01\x01\0")), (Some(false), None));
        assert!(Resident::of(|_, _| false).is_none());
    }
}
