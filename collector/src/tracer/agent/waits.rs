//! System calls in which a thread may wait. Nothing traces a thread while it waits: signals that do nothing to it would wake it then.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use lookahead::Registers;

use crate::sys::process::proc_path;

/// What an argument of a call says of waiting.
enum Argument {
    /// A flag not to wait, in the argument of this number.
    Flag(usize, u64),
    /// How long to wait at most, in ms: not at all if it is zero.
    Timeout(usize),
}

/// Whether a thread of `process` that is about to make the system call its registers say may wait in it: for data, for another thread, for a
/// time. What is not known to come back at once may.
pub(crate) fn may_wait(process: i32, registers: &Registers) -> bool {
    let number = registers.general[0] as libc::c_long;
    // rdi, rsi, rdx, r10, r8, r9.
    let arguments = [7, 6, 2, 10, 8, 9].map(|register: usize| registers.general[register]);
    let never_waits = |argument: Argument| match argument {
        Argument::Flag(place, flag) => arguments[place] & flag != 0,
        Argument::Timeout(place) => arguments[place] as i32 == 0,
    };
    let dont_wait = libc::MSG_DONTWAIT as u64;
    let at_once = match number {
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_accept
        | libc::SYS_accept4 => file_never_waits(process, arguments[0]),
        libc::SYS_sendfile => file_never_waits(process, arguments[0]) && file_never_waits(process, arguments[1]),
        libc::SYS_sendto | libc::SYS_recvfrom => {
            never_waits(Argument::Flag(3, dont_wait)) || file_never_waits(process, arguments[0])
        }
        libc::SYS_sendmsg | libc::SYS_recvmsg => {
            never_waits(Argument::Flag(2, dont_wait)) || file_never_waits(process, arguments[0])
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => never_waits(Argument::Timeout(3)),
        libc::SYS_poll => never_waits(Argument::Timeout(2)),
        libc::SYS_futex => {
            let operation = arguments[1] as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
            [libc::FUTEX_WAKE, libc::FUTEX_WAKE_OP, libc::FUTEX_REQUEUE, libc::FUTEX_CMP_REQUEUE].contains(&operation)
        }
        libc::SYS_fcntl => ![libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&(arguments[1] as i32)),
        libc::SYS_close => is_plain_file(process, arguments[0]),
        _ => AT_ONCE.contains(&number),
    };
    !at_once
}

/// Those that come back at once, whatever they are asked. None changes which signals come through.
const AT_ONCE: [libc::c_long; 54] = [
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
    libc::SYS_getrandom,
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
    libc::SYS_dup2,
    libc::SYS_dup3,
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

/// Whether reading and writing a file of a process never waits: a plain file, or one opened so.
fn file_never_waits(process: i32, descriptor: u64) -> bool {
    let path = proc_path(process as u32).join(format!("fdinfo/{}", descriptor as i32));
    // Flags are octal, proc_pid_fdinfo(5).
    let flags = fs::read_to_string(path).ok().and_then(|text| {
        let octal = text.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        i32::from_str_radix(octal, 8).ok()
    });
    flags.is_some_and(|flags| flags & libc::O_NONBLOCK != 0) || is_plain_file(process, descriptor)
}

/// Whether it is a file of a file system, or a device of memory: `/dev/null`, `/dev/zero`.
fn is_plain_file(process: i32, descriptor: u64) -> bool {
    const MEMORY_DEVICES: u32 = 1;
    let path = proc_path(process as u32).join(format!("fd/{}", descriptor as i32));
    fs::metadata(path).is_ok_and(|file| {
        file.is_file() || file.file_type().is_char_device() && libc::major(file.rdev()) == MEMORY_DEVICES
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
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
        let file = File::open("/proc/self/exe").unwrap().into_raw_fd() as u64;
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
}
