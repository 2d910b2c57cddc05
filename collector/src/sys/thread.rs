//! The calling thread: its id and its scheduling policy.

use crate::errno::Errno;

/// The id of the calling thread.
pub(crate) fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// `sched_getscheduler` of the calling thread: `SCHED_OTHER`, ..., or -1.
pub(crate) fn policy() -> libc::c_int {
    // SAFETY: it takes and returns numbers.
    unsafe { libc::sched_getscheduler(0) }
}

/// `sched_setscheduler` of the calling thread, to a policy without priorities.
pub(crate) fn set_policy(policy: libc::c_int) -> Result<(), Errno> {
    // SAFETY: a zeroed sched_param is valid, and what these policies want; the kernel reads it.
    let result = unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, policy, &parameter)
    };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}
