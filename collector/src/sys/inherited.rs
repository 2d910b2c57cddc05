//! What this process was started with and changes for itself: dispositions of signals, and limits. What it starts gets them as found.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals whose disposition is changed in this process: SIGPIPE by Rust's runtime, the others here.
const CHANGED: [i32; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

/// Those that were ignored at the start: bit n - 1 for signal n.
static IGNORED_AT_START: AtomicU64 = AtomicU64::new(0);

/// Rust's runtime ignores SIGPIPE before `main`, so that nothing can be asked there any more; the C library calls what is in this section
/// before that, dynamically linked or not: glibc does, and musl in a static program of C that was tried; no Rust program was built for
/// musl.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

extern "C" fn look() {
    let ignored = CHANGED.into_iter().filter(|&signal| is_ignored(signal)).fold(0, |mask, signal| mask | bit(signal));
    IGNORED_AT_START.store(ignored, Ordering::Relaxed);
}

/// Whether this process ignores `signal`. An ignored signal stays so in what is started: `nohup` ignores SIGHUP, systemd SIGPIPE.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction is plain data of any bits; without a new action the call only writes the present one to a local.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// From now on a write beyond the limit of file sizes (`ulimit -f`) fails, and does not kill this process.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring is no handler that could be called.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// From now on this process goes on when its terminal's user interrupts it (Ctrl-C). What was started before is not concerned.
pub fn ignore_interrupts() {
    // SAFETY: ignoring is no handler that could be called.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
}

/// A limit that is raised: its soft value as found, or `NOT_RAISED`.
struct Raised {
    resource: libc::__rlimit_resource_t,
    found: AtomicU64,
}

/// No limit, so there is nothing to raise.
const NOT_RAISED: u64 = libc::RLIM_INFINITY;

static LIMITS: [Raised; 2] = [
    Raised { resource: libc::RLIMIT_NOFILE, found: AtomicU64::new(NOT_RAISED) },
    Raised { resource: libc::RLIMIT_AS, found: AtomicU64::new(NOT_RAISED) },
];

/// Raises the limits of open files and of address space as far as this process may: a recorded thread needs a file per event and CPU.
/// What is started from here gets the limits that were found.
pub fn raise_limits() {
    for limit in &LIMITS {
        let Some(mut rlimit) = get(limit.resource) else { continue };
        if rlimit.rlim_cur < rlimit.rlim_max {
            let _ = limit.found.compare_exchange(NOT_RAISED, rlimit.rlim_cur, Ordering::Relaxed, Ordering::Relaxed);
            rlimit.rlim_cur = rlimit.rlim_max;
            set(limit.resource, &rlimit);
        }
    }
}

fn get(resource: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut rlimit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit to the address given.
    (unsafe { libc::getrlimit(resource, &mut rlimit) } == 0).then_some(rlimit)
}

fn set(resource: libc::__rlimit_resource_t, rlimit: &libc::rlimit) {
    // SAFETY: the kernel reads one rlimit from the address given.
    unsafe { libc::setrlimit(resource, rlimit) };
}

/// In a child, which may share this process's memory: restores the dispositions of signals and the limits that this process was started
/// with. Async-signal-safe, and writes to nothing that this process reads.
pub(super) fn restore() {
    let ignored = IGNORED_AT_START.load(Ordering::Relaxed);
    for signal in CHANGED {
        let action = if ignored & bit(signal) == 0 { libc::SIG_DFL } else { libc::SIG_IGN };
        // SAFETY: neither action is a handler that could be called.
        unsafe { libc::signal(signal, action) };
    }
    for limit in &LIMITS {
        let found = limit.found.load(Ordering::Relaxed);
        if let (true, Some(rlimit)) = (found != NOT_RAISED, get(limit.resource)) {
            set(limit.resource, &libc::rlimit { rlim_cur: found, ..rlimit });
        }
    }
}

/// Lets `command` find what this process found when it was started: the same signals ignored, the same limits, and the signals blocked
/// that the calling thread blocks now. The standard library would set SIGPIPE to its default and block none. If SIGCHLD is ignored it is not
/// from here on in this process, or the kernel would throw the exit status of `command` away.
pub fn with_inherited(command: &mut Command) -> &mut Command {
    // SAFETY: a zeroed sigset_t is a valid place for pthread_sigmask to write to; the default action is no handler. What the child does before its exec is
    // async-signal-safe, and allocates nothing.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), &mut blocked);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        command.pre_exec(move || {
            restore();
            match libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, ptr::null_mut()) {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        })
    }
}

/// One place to allocate from for all threads, where the address space is limited: glibc would reserve 64 MiB of it for each thread.
pub(crate) fn allocate_from_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes and returns numbers.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Has all threads allocate from one place, which asks for memory in large steps and keeps it. By default glibc lets each thread begin with
/// new pages, and asks for them one by one: a fault and a system call for each page of what a recorder needs when it begins. What one round
/// gives back the next one needs again. For processes whose threads seldom allocate at the same time.
pub fn allocate_in_large_steps() {
    allocate_from_one_arena();
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes and returns numbers.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 2 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 8 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}
