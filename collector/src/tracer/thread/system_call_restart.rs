//! System calls that fail because the thread was stopped, and are restarted.
//!
//! A thread that waits in a system call when it is traced comes out of it for every stop, and for every signal that would do nothing to it
//! otherwise, such as SIGCHLD by default (`sig_ignored`, kernel/signal.c). Most calls are then restarted by the kernel, if no
//! handler runs; some fail with EINTR whatever happens (signal(7), "Interruption of system calls and library functions by stop
//! signals"). For those the tracer asks the kernel to do as with the others: `ERESTARTNOHAND` in place of the result restarts the call, or
//! returns EINTR if a handler runs after all. A timeout begins anew.

use std::mem::offset_of;

use libc::user_regs_struct as Fields;

use crate::sys::USER_CS_64;
use crate::tracer::kernel::Kernel;

/// Those that fail, where they have done nothing yet.
const CALLS: [libc::c_long; 20] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    // Sockets with a timeout, inotify.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
];
/// linux/errno.h; programs never see it.
const ERESTARTNOHAND: i64 = 514;

/// Has a system call restarted that the stop the thread is in has interrupted.
pub(crate) fn restart_system_call(thread: i32, kernel: &mut impl Kernel) {
    let get = |kernel: &mut _, offset| Kernel::register(kernel, thread, offset);
    if get(kernel, offset_of!(Fields, rax)) as i64 == -i64::from(libc::EINTR)
        && CALLS.contains(&(get(kernel, offset_of!(Fields, orig_rax)) as i64))
        // Others are numbered otherwise.
        && get(kernel, offset_of!(Fields, cs)) == USER_CS_64
    {
        let _ = kernel.set_register(thread, offset_of!(Fields, rax), -ERESTARTNOHAND as u64);
    }
}
