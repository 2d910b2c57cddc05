//! System calls in which a thread may wait, and what becomes of those if something interrupts them: signals that do nothing to a thread wake it
//! while it is traced. So it is traced while it waits only where that does not show.

use std::fs;

use lookahead::Registers;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use crate::sys::process::{WaitedIn, proc_path, waited_in};
use crate::tracer::agent::injection::filters_system_calls;

/// Whether a thread that is about to make the system call its registers say may wait in it: for data, for another thread, for a time. What is
/// not known to come back at once may.
pub(crate) fn may_wait(thread: i32, registers: &Registers) -> bool {
    let number = registers.general[0] as libc::c_long;
    // rdi, rsi, rdx, r10, r8, r9.
    let arguments = [7, 6, 2, 10, 8, 9].map(|register: usize| registers.general[register]);
    let is_told_not_to = |flags: u64| flags & libc::MSG_DONTWAIT as u64 != 0;
    // In ms.
    let has_no_time = |timeout: u64| timeout as i32 == 0;
    let at_once = match number {
        libc::SYS_read | libc::SYS_write | libc::SYS_pread64 | libc::SYS_pwrite64 => {
            file_never_waits(thread, arguments[0], arguments[2])
        }
        libc::SYS_readv | libc::SYS_writev | libc::SYS_preadv | libc::SYS_pwritev => {
            file_never_waits(thread, arguments[0], u64::MAX)
        }
        libc::SYS_accept | libc::SYS_accept4 => does_not_block(thread, arguments[0]),
        libc::SYS_sendfile => {
            let is_little = arguments[3] <= LITTLE;
            is_little && [0, 1].iter().all(|&place| file_never_waits(thread, arguments[place], arguments[3]))
        }
        libc::SYS_sendto | libc::SYS_recvfrom => is_told_not_to(arguments[3]) || does_not_block(thread, arguments[0]),
        libc::SYS_sendmsg | libc::SYS_recvmsg => is_told_not_to(arguments[2]) || does_not_block(thread, arguments[0]),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => has_no_time(arguments[3]),
        libc::SYS_poll => has_no_time(arguments[2]),
        libc::SYS_futex => wakes(arguments[1]),
        libc::SYS_fcntl => ![libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&(arguments[1] as i32)),
        libc::SYS_close => file_of(thread, arguments[0]) == Some(File::Plain),
        libc::SYS_getrandom => arguments[1] <= 256,
        _ => AT_ONCE.contains(&number),
    };
    !at_once
}

/// Whether a futex operation does not wait.
fn wakes(operation: u64) -> bool {
    let operation = operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    [libc::FUTEX_WAKE, libc::FUTEX_WAKE_OP, libc::FUTEX_REQUEUE, libc::FUTEX_CMP_REQUEUE].contains(&operation)
}

/// Whether a system call that a thread waits in may be of a socket with a timeout, which begins anew if something interrupts it. That cannot be
/// seen from outside.
pub(crate) fn may_time_out(call: WaitedIn) -> bool {
    [libc::SYS_read, libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_accept, libc::SYS_accept4].contains(&call.number)
}

/// Whether a system call that a thread waits in is made again as if nothing had been if it is interrupted: what it has moved is not lost, a
/// timeout goes on. A thread may be asked to stop while it waits there.
pub(crate) fn is_made_again(call: WaitedIn) -> bool {
    let WaitedIn { number, arguments, .. } = call;
    match number {
        libc::SYS_recvfrom => arguments[3] & libc::MSG_WAITALL as u64 == 0,
        libc::SYS_recvmsg => arguments[2] & libc::MSG_WAITALL as u64 == 0,
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => arguments[3] as i32 <= 0,
        libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => arguments[3] == 0,
        libc::SYS_rt_sigtimedwait => arguments[2] == 0,
        _ => [
            libc::SYS_futex,
            libc::SYS_poll,
            libc::SYS_ppoll,
            libc::SYS_select,
            libc::SYS_pselect6,
            libc::SYS_nanosleep,
            libc::SYS_clock_nanosleep,
            libc::SYS_wait4,
            libc::SYS_waitid,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_read,
            libc::SYS_pause,
            libc::SYS_rt_sigsuspend,
            libc::SYS_semop,
            libc::SYS_msgrcv,
            libc::SYS_msgsnd,
            libc::SYS_flock,
        ]
        .contains(&number),
    }
}

/// Whether a thread may be interrupted where it is now: what it waits in is made again as if nothing had been, and no filter of system calls
/// could kill it for that.
pub(crate) fn may_be_interrupted(process: i32, thread: i32) -> bool {
    !filters_system_calls(process) && waited_in(thread as u32).is_none_or(is_made_again)
}

/// Those that come back at once, whatever they are asked. None blocks signals.
const AT_ONCE: [libc::c_long; 51] = [
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getpgrp,
    libc::SYS_getpgid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_times,
    libc::SYS_time,
    libc::SYS_gettimeofday,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_getrusage,
    libc::SYS_getrlimit,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_getcpu,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_lseek,
    libc::SYS_stat,
    libc::SYS_fstat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_access,
    libc::SYS_getcwd,
    libc::SYS_dup,
    libc::SYS_pipe2,
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
];

/// What moves at once, bytes: the kernel looks for signals between pieces of more.
const LITTLE: u64 = 64 << 10;

/// Whether a thread moves so many bytes to or from a file without waiting.
fn file_never_waits(thread: i32, descriptor: u64, bytes: u64) -> bool {
    match file_of(thread, descriptor) {
        Some(File::Plain) => true,
        Some(File::Zeros) => bytes <= LITTLE,
        None => does_not_block(thread, descriptor),
    }
}

/// Whether a file was opened so that nobody waits for it (`O_NONBLOCK`).
fn does_not_block(thread: i32, descriptor: u64) -> bool {
    // In octal, proc_pid_fdinfo(5).
    let flags = line_of_fdinfo(thread, descriptor, "flags:").and_then(|octal| i32::from_str_radix(&octal, 8).ok());
    flags.is_some_and(|flags| flags & libc::O_NONBLOCK != 0)
}

fn line_of_fdinfo(thread: i32, descriptor: u64, name: &str) -> Option<String> {
    let text = fs::read_to_string(proc_path(thread as u32).join(format!("fdinfo/{}", descriptor as i32))).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

/// Files that are there at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    /// Of a file system on a device or in memory, or `/dev/null` or `/dev/full`.
    Plain,
    /// `/dev/zero`.
    Zeros,
}

/// What a descriptor is of; `None` if that is another kind, or not known. File systems that others serve (FUSE, networks) are not asked.
fn file_of(thread: i32, descriptor: u64) -> Option<File> {
    let path = proc_path(thread as u32).join(format!("fd/{}", descriptor as i32));
    let found = statx(CWD, &path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::RegularFile if found.stx_dev_major != 0 => Some(File::Plain),
        FileType::RegularFile => is_of_memory(thread, descriptor).then_some(File::Plain),
        // The devices of memory, mem(4).
        FileType::CharacterDevice => match (found.stx_rdev_major, found.stx_rdev_minor) {
            (1, 3 | 7) => Some(File::Plain),
            (1, 5) => Some(File::Zeros),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a file without a device is of one of the file systems whose files are there: not one of the kernel's own, whose files may wait
/// (`/proc/kmsg`), nor one that others serve. One of no mount is in memory (memfd_create(2)).
fn is_of_memory(thread: i32, descriptor: u64) -> bool {
    const KINDS: [&str; 6] = ["tmpfs", "overlay", "btrfs", "zfs", "ramfs", "bcachefs"];
    let Some(mount) = line_of_fdinfo(thread, descriptor, "mnt_id:") else { return false };
    let Ok(mounts) = fs::read_to_string(proc_path(thread as u32).join("mountinfo")) else { return false };
    let of_file = mounts.lines().find(|line| line.split(' ').next() == Some(mount.as_str()));
    let kind = of_file.map(|line| line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or(""));
    kind.is_none_or(|kind| KINDS.contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn waits(number: libc::c_long, arguments: [u64; 4]) -> bool {
        let mut registers = Registers::default();
        registers.general[0] = number as u64;
        for (register, argument) in [7, 6, 2, 10].into_iter().zip(arguments) {
            registers.general[register] = argument;
        }
        may_wait(std::process::id() as i32, &registers)
    }

    #[test]
    fn what_comes_back_at_once_and_what_may_wait() {
        let open = |path: &str| fs::File::open(path).unwrap().into_raw_fd() as u64;
        let (file, null, zeros) = (open("/proc/self/exe"), open("/dev/null"), open("/dev/zero"));
        assert!(!waits(libc::SYS_read, [null, 0, u64::MAX, 0]) && !waits(libc::SYS_read, [zeros, 0, 16, 0]));
        assert!(waits(libc::SYS_read, [zeros, 0, 1 << 30, 0]), "it looks for signals meanwhile");
        assert!(waits(libc::SYS_read, [open("/proc/self/status"), 0, 16, 0]), "some files of the kernel wait");
        assert!(waits(libc::SYS_read, [open("/dev/urandom"), 0, 16, 0]) && waits(libc::SYS_dup2, [null, 0, 0, 0]));
        assert!(waits(libc::SYS_getrandom, [0, 1 << 20, 0, 0]) && !waits(libc::SYS_getrandom, [0, 16, 0, 0]));
        let (socket, _other) = UnixStream::pair().unwrap();
        let blocking = socket.as_raw_fd() as u64;
        assert!(!waits(libc::SYS_read, [file, 0, 0, 0]) && !waits(libc::SYS_close, [file, 0, 0, 0]));
        for call in [libc::SYS_read, libc::SYS_write, libc::SYS_recvfrom, libc::SYS_accept4] {
            assert!(waits(call, [blocking, 0, 0, 0]), "{call}");
            assert!(waits(call, [u64::MAX, 0, 0, 0]), "{call}: no such file");
        }
        assert!(!waits(libc::SYS_recvfrom, [blocking, 0, 0, libc::MSG_DONTWAIT as u64]));
        assert!(!waits(libc::SYS_sendmsg, [blocking, 0, libc::MSG_DONTWAIT as u64, 0]));
        socket.set_nonblocking(true).unwrap();
        assert!(!waits(libc::SYS_write, [blocking, 0, 0, 0]));
        assert!(waits(libc::SYS_close, [blocking, 0, 0, 0]), "it may linger");
        assert!(waits(libc::SYS_sendfile, [blocking, u64::MAX, 0, 0]));
        for (timeout, expected) in [(0, false), (5, true), (u64::MAX, true)] {
            assert_eq!(waits(libc::SYS_epoll_wait, [0, 0, 0, timeout]), expected);
            assert_eq!(waits(libc::SYS_poll, [0, 0, timeout, 0]), expected);
        }
        let private = libc::FUTEX_PRIVATE_FLAG;
        for (operation, expected) in
            [(libc::FUTEX_WAKE, false), (libc::FUTEX_WAIT, true), (libc::FUTEX_WAIT_BITSET, true)]
        {
            assert_eq!(waits(libc::SYS_futex, [0, operation as u64, 0, 0]), expected);
            assert_eq!(waits(libc::SYS_futex, [0, (operation | private) as u64, 0, 0]), expected);
        }
        assert!(!waits(libc::SYS_getpid, [0; 4]) && !waits(libc::SYS_clock_gettime, [0; 4]));
        for call in
            [libc::SYS_nanosleep, libc::SYS_wait4, libc::SYS_pause, libc::SYS_rt_sigprocmask, libc::SYS_clone, -1]
        {
            assert!(waits(call, [0; 4]), "{call}");
        }
    }

    #[test]
    fn what_is_made_again_as_if_nothing_had_been() {
        let waits = |number, arguments| is_made_again(WaitedIn { number, arguments, goes_on_at: 0 });
        assert!(waits(libc::SYS_futex, [0; 6]) && waits(libc::SYS_read, [0; 6]));
        assert!(!waits(libc::SYS_write, [0; 6]) && !waits(libc::SYS_connect, [0; 6]), "what was moved is lost");
        assert!(waits(libc::SYS_recvfrom, [0; 6]));
        assert!(!waits(libc::SYS_recvfrom, [0, 0, 0, libc::MSG_WAITALL as u64, 0, 0]));
        assert!(waits(libc::SYS_epoll_wait, [0, 0, 0, u64::MAX, 0, 0]));
        assert!(!waits(libc::SYS_epoll_wait, [0, 0, 0, 300, 0, 0]), "the timeout begins anew");
        assert!(waits(libc::SYS_pause, [0; 6]) && waits(libc::SYS_rt_sigtimedwait, [1, 1, 0, 8, 0, 0]));
        assert!(!waits(libc::SYS_rt_sigtimedwait, [1, 1, 1, 8, 0, 0]), "the timeout begins anew");
        let times_out = |number| may_time_out(WaitedIn { number, arguments: [0; 6], goes_on_at: 0 });
        assert!(times_out(libc::SYS_recvfrom) && !times_out(libc::SYS_futex) && !times_out(libc::SYS_epoll_wait));
    }
}
