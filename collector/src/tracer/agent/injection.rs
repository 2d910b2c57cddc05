//! Putting the agent into a process: one of its threads stands still, and is sent to code that maps a page ([`agent::code_to_map`]), in which
//! there is code that maps the image and installs the handler ([`agent::page`]).
//!
//! The first code is put where every process has room ([`Room`]). Nothing of the program's memory is written, its stack neither. The thread is
//! let go before the code runs, which needs no tracer: one that is killed leaves no thread behind in the middle of it.

use std::sync::OnceLock;
use std::time::Duration;

use addresses::Avma;
use agent::{Image, LoadStatus, PageFile, REGION, STATUS, code_to_map, page};

use crate::sys::process::{Guards, Mapping, guards, signals_blocked, signals_pending_and_blocked, signals_to_take};
use crate::sys::{HeldThread, cpu_time, read_memory};
use crate::tracer::agent::filter_makers::makes_filters;
use crate::tracer::agent::residents::taken_by;
use crate::tracer::agent::searched_files::SearchedFiles;
use crate::tracer::agent::vdso::{NO_ROOM, Room};
use crate::tracer::notice::blocks_all;

/// A program may install a handler after it got the agent: more of them do for the size of their window than for urgent data.
const PREFERRED: [i32; 2] = [libc::SIGURG, libc::SIGWINCH];

/// Why a process has no agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another time it may work.
    NotNow,
    /// It will not work.
    Never(&'static str),
    /// It may not be traced.
    Barred,
    /// It executes code of 32 bits.
    Bits32,
}

/// An agent on its way into a process: a thread is to map it.
pub(crate) struct OnTheWay {
    /// What it maps first.
    page: PageFile,
    room: Room,
    /// CPU time of the process when the thread was sent.
    began: Duration,
}

/// What is known of a process that may get the agent.
pub(crate) struct Candidate {
    pub(crate) signal: i32,
    maps: Vec<Mapping>,
}

impl Candidate {
    /// Looks whether the agent would do no harm in a process that has just these mappings; `harmless` as in [`makes_filters`].
    pub(crate) fn of(
        process: i32,
        thread: i32,
        maps: Vec<Mapping>,
        harmless: &mut Vec<Mapping>,
        searched: &SearchedFiles,
    ) -> Result<Self, Refusal> {
        let guards = guards(thread as u32);
        let Guards { caught, ignored, blocked, .. } = guards;
        if !is_in_own_namespace(process) {
            return Err(Refusal::Never("it is in another namespace of processes"));
        }
        // The agent's handler in its place would end that for the programs it executes.
        if ignored & 1 << (libc::SIGTRAP - 1) != 0 {
            return Err(Refusal::Never("it ignores SIGTRAP"));
        }
        if maps.is_empty() {
            return Err(Refusal::NotNow);
        }
        if let Some(why) = harm(process, &guards, &maps, harmless, searched) {
            return Err(Refusal::Never(why));
        }
        if maps.iter().any(|map| map.start < REGION.end && REGION.start < map.end) {
            return Err(Refusal::Never(taken_by(process)));
        }
        let free = |used: u64| PREFERRED.into_iter().find(|signal| used & 1 << (signal - 1) == 0);
        // A program that has handlers for both has one for everything, and signals that nobody sent are nothing new to it.
        let Some(signal) = free(caught | ignored | blocked).or_else(|| free(blocked)) else {
            return Err(Refusal::NotNow);
        };
        Ok(Self { signal, maps })
    }

    /// Sends a thread that stands still on its way to map the agent. It has to be let go.
    pub(crate) fn inject(&self, process: i32, thread: i32, image: &Image) -> Result<OnTheWay, Refusal> {
        let held = HeldThread::hold(thread).ok().flatten().ok_or(Refusal::NotNow)?;
        if is_unfit(&held, process, thread) {
            return Err(Refusal::NotNow);
        }
        let loading = held.loading(self.signal);
        let page = page(image, &loading).ok_or(Refusal::Never("no code"))?;
        let page = PageFile::of(&page).map_err(|_| Refusal::NotNow)?;
        let code = code_to_map(&page.path(), &loading).ok_or(Refusal::Never("no code"))?;
        let room = Room::put(thread, &self.maps, &code).ok_or(Refusal::Never(NO_ROOM))?;
        let began = cpu_time(process).unwrap_or_default();
        if held.leave_to(room.start.0).is_err() {
            room.clear(thread);
            return Err(Refusal::NotNow);
        }
        Ok(OnTheWay { page, room, began })
    }
}

impl OnTheWay {
    /// CPU time within which a thread has mapped the page, if it can, or has gone on without.
    const LONGEST: Duration = Duration::from_millis(20);

    /// What is known of it, in a process that has so many threads that may compute at the same time.
    pub(crate) fn status(&self, process: i32, threads: u32) -> LoadStatus {
        let status = read_status(process);
        let used = || cpu_time(process).unwrap_or_default().saturating_sub(self.began);
        match status {
            None if used() > threads.max(1) * Self::LONGEST => LoadStatus::Failed,
            _ => status.unwrap_or(LoadStatus::Working),
        }
    }

    /// The thread has mapped the page, from which it goes back where it was.
    pub(crate) fn has_come(self, process: i32) {
        self.room.clear(process);
    }

    /// The recording is over: the file stays open as long as this process lives. A thread that opened another one by its number would execute
    /// that.
    pub(crate) fn stays(self) {
        std::mem::forget(self.page);
    }
}

/// What harm an agent would do in a process.
pub(crate) fn harm(
    process: i32,
    guards: &Guards,
    maps: &[Mapping],
    harmless: &mut Vec<Mapping>,
    searched: &SearchedFiles,
) -> Option<&'static str> {
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
    match makes_filters(process, maps, harmless, searched) {
        Some(false) => None,
        Some(true) => {
            Some("it has code that makes filters of system calls (seccomp), or that does not tell what it calls")
        }
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

/// Whether a process filters its system calls, or has code that does; `harmless` as in [`makes_filters`].
pub(crate) fn may_filter_system_calls(
    process: i32,
    maps: &[Mapping],
    harmless: &mut Vec<Mapping>,
    searched: &SearchedFiles,
) -> bool {
    filters_system_calls(process) || makes_filters(process, maps, harmless, searched) != Some(false)
}

/// Whether the code has done its work in a process.
pub(crate) fn load_status(process: i32) -> LoadStatus {
    read_status(process).unwrap_or(LoadStatus::Working)
}

/// `None` while the code is not there.
fn read_status(process: i32) -> Option<LoadStatus> {
    let mut word = [0; 8];
    read_memory(process, Avma(STATUS), &mut word).then(|| LoadStatus::from(u64::from_ne_bytes(word)))
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

/// Reading memory of a device may do something.
fn is_device(map: &Mapping) -> bool {
    let is_plain = [&b"/dev/shm/"[..], b"/dev/zero", b"/dev/hugepages/"].iter().any(|name| map.path.starts_with(name));
    let names = [&b"/dev/"[..], b"/sys/", b"anon_inode:[vfio"];
    names.iter().any(|name| map.path.starts_with(name)) && !is_plain
}

/// Whether a thread that stands still must not be sent elsewhere for a moment.
pub(crate) fn is_unfit(held: &HeldThread, process: i32, thread: i32) -> bool {
    REGION.contains(&held.place()) || is_in_restartable_sequence(held, process) || takes_signal(thread)
}

/// Whether the thread is between the first and the last instruction of a restartable sequence (rseq(2)): the kernel would not notice that it
/// was elsewhere meanwhile.
fn is_in_restartable_sequence(held: &HeldThread, process: i32) -> bool {
    let Some(area) = held.restartable_sequences() else { return false };
    let mut sequence = [0; 8];
    !read_memory(process, Avma(area + 8), &mut sequence) || u64::from_ne_bytes(sequence) != 0
}

/// Whether a signal waits for the thread that it takes at once, of a fault perhaps, blocked or not: the handler would find it elsewhere,
/// and a system call that is made again afterwards would not be interrupted.
fn takes_signal(thread: i32) -> bool {
    const FAULTS: [i32; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSYS];
    let (pending, _) = signals_pending_and_blocked(thread as u32);
    FAULTS.iter().any(|signal| pending & 1 << (signal - 1) != 0) || signals_to_take(thread as u32) != 0
}
