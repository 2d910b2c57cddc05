//! Putting the agent into a process: one of its threads stands still, maps a page, and is given code there that maps the image and installs the
//! handler ([`agent::page`]).
//!
//! The thread makes the one system call by an instruction `syscall` that every process has, in the kernel's own shared object (vdso(7)).
//! Nothing of the program's memory is written, its stack neither. It is let go before the code runs, which needs no tracer: one that is
//! killed leaves no thread behind in the middle of it.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use addresses::Avma;
use agent::{ENTRY, Image, LoadStatus, REGION, SCRATCH, STATUS, page};

use crate::errno::Errno;
use crate::sys::process::{Guards, Mapping, guards, mappings, signals_blocked, signals_pending_and_blocked};
use crate::sys::{HeldThread, RemoteError, read_memory, write_memory};
use crate::tracer::agent::filter_makers::makes_filters;
use crate::tracer::agent::residents::taken_by;
use crate::tracer::notice::blocks_all;

const PAGE: u64 = 4096;
/// A program may install a handler after it got the agent: more of them do for the size of their window than for urgent data.
const PREFERRED: [i32; 2] = [libc::SIGURG, libc::SIGWINCH];

/// Why a process has no agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another time it may work.
    NotNow,
    /// The same, and the thread is to get this signal.
    Signal(i32),
    /// It will not work.
    Never(&'static str),
    /// It may not be traced.
    Barred,
    /// The thread has ended; the status of wait(2).
    Ended(i32),
}

impl From<RemoteError> for Refusal {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Ended(status) => Self::Ended(status),
            RemoteError::Signal(signal) => Self::Signal(signal),
            RemoteError::Errno(Errno(libc::EINTR)) => Self::NotNow,
            RemoteError::Errno(_) => Self::Never("it may not map the agent"),
        }
    }
}

/// What is known of a process that may get the agent.
pub(crate) struct Candidate {
    pub(crate) signal: i32,
    system_call: u64,
}

impl Candidate {
    /// Looks whether the agent would do no harm in a process.
    pub(crate) fn of(process: i32, thread: i32) -> Result<Self, Refusal> {
        let guards = guards(thread as u32);
        let Guards { caught, ignored, blocked, .. } = guards;
        if !is_in_own_namespace(process) {
            return Err(Refusal::Never("it is in another namespace of processes"));
        }
        // The signal of a step would end that.
        if ignored & 1 << (libc::SIGTRAP - 1) != 0 {
            return Err(Refusal::Never("it ignores SIGTRAP"));
        }
        let maps = mappings(process as u32);
        if maps.is_empty() {
            return Err(Refusal::NotNow);
        }
        if let Some(why) = harm(process, &guards, &maps) {
            return Err(Refusal::Never(why));
        }
        if maps.iter().any(|map| map.start < REGION.end && REGION.start < map.end) {
            return Err(Refusal::Never(taken_by(process)));
        }
        let system_call = system_call_in(&maps).ok_or(Refusal::Never("it has no vdso with a system call"))?;
        let free = |used: u64| PREFERRED.into_iter().find(|signal| used & 1 << (signal - 1) == 0);
        // A program that has handlers for both has one for everything, and signals that nobody sent are nothing new to it.
        let Some(signal) = free(caught | ignored | blocked).or_else(|| free(blocked)) else {
            return Err(Refusal::NotNow);
        };
        Ok(Self { signal, system_call })
    }

    /// Puts the agent in by a thread that stands still: it maps a page, is given the code that does the rest, and has to be let go. If this
    /// fails, the thread has its registers back.
    pub(crate) fn inject(&self, process: i32, thread: i32, image: &Image) -> Result<(), Refusal> {
        let mut held = HeldThread::hold(thread).ok().flatten().ok_or(Refusal::NotNow)?;
        let refusal = match self.give_code(&mut held, process, thread, image) {
            Ok(()) => return held.leave_to(ENTRY).map_err(|_| Refusal::NotNow),
            Err(ended @ Refusal::Ended(_)) => return Err(ended),
            Err(refusal) => refusal,
        };
        held.give_back().map_err(|_| Refusal::NotNow)?;
        Err(refusal)
    }

    fn give_code(&self, held: &mut HeldThread, process: i32, thread: i32, image: &Image) -> Result<(), Refusal> {
        if is_in_restartable_sequence(held, process) || faults(thread) {
            return Err(Refusal::NotNow);
        }
        let own = std::process::id();
        let (memory, executable) =
            (format!("/proc/{own}/fd/{}", image.as_fd().as_raw_fd()), format!("/proc/{own}/exe"));
        let page = page(image, &memory, &executable, &held.loading(self.signal)).ok_or(Refusal::Never("no code"))?;
        let mapped = held.call(self.system_call, libc::SYS_mmap, one_page())?;
        if mapped != SCRATCH {
            // A kernel before 4.17 takes the address for a hint.
            held.call(self.system_call, libc::SYS_munmap, [mapped, PAGE, 0, 0, 0, 0])?;
            return Err(Refusal::Never("the place of the agent is taken"));
        }
        if write_memory(process, &[(Avma(SCRATCH), &page)]).is_ok() {
            return Ok(());
        }
        held.call(self.system_call, libc::SYS_munmap, [SCRATCH, PAGE, 0, 0, 0, 0])?;
        Err(Refusal::Never("its memory cannot be written"))
    }
}

/// What harm an agent would do in a process.
pub(crate) fn harm(process: i32, guards: &Guards, maps: &[Mapping]) -> Option<&'static str> {
    if guards.filters > own_filters() {
        return Some("it filters its system calls (seccomp)");
    }
    if guards.shadow_stack {
        return Some("it has a shadow stack");
    }
    if maps.iter().any(is_device) {
        return Some("it has memory of a device mapped");
    }
    // A filter that comes later might end the process for the agent's own system calls.
    match makes_filters(process, maps) {
        Some(false) => None,
        Some(true) => Some("it has code that makes filters of system calls (seccomp)"),
        None => Some("not all of its code can be read, and it may make filters of system calls (seccomp)"),
    }
}

/// Filters of system calls that this process has as well let through what the agent does, as the recorder does the same.
pub(crate) fn own_filters() -> u64 {
    static FILTERS: OnceLock<u64> = OnceLock::new();
    *FILTERS.get_or_init(|| guards(std::process::id()).filters)
}

/// Whether a process filters its system calls, and did not inherit that from this one.
pub(crate) fn filters_system_calls(process: i32) -> bool {
    guards(process as u32).filters > own_filters()
}

/// Whether a process filters its system calls, or has code that does.
pub(crate) fn may_filter_system_calls(process: i32) -> bool {
    filters_system_calls(process) || has_filter_makers(process)
}

/// Whether a process has code that makes filters of system calls.
pub(crate) fn has_filter_makers(process: i32) -> bool {
    makes_filters(process, &mappings(process as u32)) != Some(false)
}

/// Whether the code has done its work in a process.
pub(crate) fn load_status(process: i32) -> LoadStatus {
    let mut word = [0; 8];
    match read_memory(process, Avma(STATUS), &mut word) {
        true => LoadStatus::from(u64::from_ne_bytes(word)),
        false => LoadStatus::Working,
    }
}

/// Whether a process sees the same process ids: it opens the files of this one by its id.
pub(crate) fn is_in_own_namespace(process: i32) -> bool {
    let namespace = |id: &str| std::fs::read_link(format!("/proc/{id}/ns/pid")).ok();
    namespace("self").is_some_and(|own| namespace(&process.to_string()) == Some(own))
}

/// Whether a thread blocks a signal.
pub(crate) fn blocks(thread: i32, signal: i32) -> bool {
    signals_blocked(thread as u32) & 1 << (signal - 1) != 0
}

/// Whether a signal waits for a thread that blocks it. The agent blocks its own signal while it takes a burst, but none waits then.
pub(crate) fn waits_for(thread: i32, signal: i32) -> bool {
    let (pending, blocked) = signals_pending_and_blocked(thread as u32);
    pending & blocked & 1 << (signal - 1) != 0
}

/// Whether a thread lets a signal through. One that blocks all is about to begin or to end.
pub(crate) fn lets_through(thread: i32, signal: i32) -> bool {
    let blocked = signals_blocked(thread as u32);
    blocks_all(blocked) || blocked & 1 << (signal - 1) == 0
}

/// Arguments of mmap(2) for the scratch page.
fn one_page() -> [u64; 6] {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    [SCRATCH, PAGE, protection as u64, flags as u64, u64::MAX, 0]
}

/// Reading memory of a device may do something.
fn is_device(map: &Mapping) -> bool {
    let is_plain = [&b"/dev/shm/"[..], b"/dev/zero", b"/dev/hugepages/"].iter().any(|name| map.path.starts_with(name));
    let names = [&b"/dev/"[..], b"/sys/", b"anon_inode:[vfio"];
    names.iter().any(|name| map.path.starts_with(name)) && !is_plain
}

/// Whether the thread is between the first and the last instruction of a restartable sequence (rseq(2)): the kernel would not notice that it
/// was elsewhere meanwhile.
pub(crate) fn is_in_restartable_sequence(held: &HeldThread, process: i32) -> bool {
    let Some(area) = held.restartable_sequences() else { return false };
    let mut sequence = [0; 8];
    !read_memory(process, Avma(area + 8), &mut sequence) || u64::from_ne_bytes(sequence) != 0
}

/// Whether a signal of a fault waits for the thread. It would come in place of the end of our step, blocked or not
/// (`dequeue_synchronous_signal` in the kernel's `signal.c`).
pub(crate) fn faults(thread: i32) -> bool {
    const FAULTS: [i32; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSYS];
    let (pending, _) = signals_pending_and_blocked(thread as u32);
    FAULTS.iter().any(|signal| pending & 1 << (signal - 1) != 0)
}

/// Where a process has an instruction `syscall` in the kernel's shared object.
pub(crate) fn system_call_instruction(process: i32) -> Option<u64> {
    system_call_in(&mappings(process as u32))
}

fn system_call_in(maps: &[Mapping]) -> Option<u64> {
    let vdso = maps.iter().find(|map| map.path == b"[vdso]")?;
    Some(vdso.start + own_system_call()?)
}

/// Where the kernel's shared object has an instruction `syscall`, from its start.
fn own_system_call() -> Option<u64> {
    static OFFSET: OnceLock<Option<u64>> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        let own = std::process::id();
        let map = mappings(own).into_iter().find(|map| map.path == b"[vdso]")?;
        let mut bytes = vec![0; usize::try_from(map.end - map.start).ok()?];
        read_memory(own as i32, Avma(map.start), &mut bytes).then_some(())?;
        bytes.windows(2).position(|pair| pair == [0x0f, 0x05]).map(|at| at as u64)
    })
}
