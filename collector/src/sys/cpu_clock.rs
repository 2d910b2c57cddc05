//! The CPU clocks of processes and of the calling thread, and timers of them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::errno::Errno;

/// CPU time of this process, of all its threads.
pub(crate) fn own_cpu_time() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

fn duration(time: rustix::time::Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// CPU time of all threads of a process, those that have ended included; `None` if it is not there any more.
pub(crate) fn cpu_time(process: i32) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write one value to the live local whose address they are given.
    let done = unsafe {
        libc::clock_getcpuclockid(process, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    done.then(|| Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32))
}

/// CPU time of the processes that this one and those it started have waited for.
pub fn children_time() -> Duration {
    // SAFETY: a zeroed rusage is a valid place for getrusage(2) to write to.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time =
        |time: libc::timeval| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// How often the kernel looks whether timers of CPU time are due: its tick, which its coarse clocks count.
pub(crate) fn tick() -> Duration {
    duration(rustix::time::clock_getres(ClockId::MonotonicCoarse))
}

/// Whether this process may have a timer of its CPU time.
pub(crate) fn try_timer() -> Result<(), Errno> {
    let mut timer: libc::timer_t = std::ptr::null_mut();
    // SAFETY: the event is plain data, which says that nothing is sent; the kernel writes the timer's id, which is given back at once.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_NONE;
        if libc::timer_create(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut event, &raw mut timer) != 0 {
            return Err(Errno::last());
        }
        libc::timer_delete(timer);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_processes() {
        let own = std::process::id() as i32;
        let before = cpu_time(own).unwrap();
        let sum: u64 = (0..1_000_000).map(std::hint::black_box).sum();
        assert!(sum > 0 && before > Duration::ZERO && cpu_time(own).unwrap() > before);
        // More than any limit of process ids.
        assert_eq!(cpu_time(1 << 23), None);
    }
}
