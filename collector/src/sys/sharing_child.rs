//! A child that shares this process's memory until it ends or executes a program.
//!
//! A fork copies the tables of all memory that is in use, and lets the first write to each page of it fault afterwards, in this process as
//! in the child: half a millisecond each time. Nothing of that is needed by a child that touches little.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;

use rustix::process::Pid;

/// Bytes of the child's stack: several frames of signals, each with all registers that there are, and what an exec needs.
const STACK: usize = 128 << 10;

/// What a child has of its own.
pub(super) struct SharingChild<T> {
    task: Box<Task<T>>,
    stack: Box<[MaybeUninit<u128>]>,
}

struct Task<T> {
    run: unsafe fn(&T) -> !,
    of: T,
}

impl<T> SharingChild<T> {
    /// Of a child that will do `run` with `of`, and needs so many bytes of stack more than most.
    pub(super) fn new(of: T, run: unsafe fn(&T) -> !, more: usize) -> Self {
        let stack = Box::new_uninit_slice((STACK + more) / size_of::<u128>());
        Self { task: Box::new(Task { run, of }), stack }
    }

    /// Starts it. It has copies of all open files, and actions of signals of its own.
    ///
    /// # Safety
    /// `run` does only what is async-signal-safe and allocates nothing. It has the thread-local variables of the calling thread, `errno` too:
    /// only one of both makes calls of the C library that may fail at a time. The value is not dropped before the child has ended or
    /// executes a program. It is started once.
    pub(super) unsafe fn start(&mut self) -> io::Result<Pid> {
        extern "C" fn enter<T>(task: *mut c_void) -> i32 {
            // SAFETY: what `start` handed over, which lives as long as the child; nobody changes it.
            unsafe {
                let task = &*task.cast::<Task<T>>();
                (task.run)(&task.of)
            }
        }
        let task: *mut Task<T> = &raw mut *self.task;
        let end = self.stack.as_mut_ptr_range().end;
        // SAFETY: the stack is memory of the child's alone, ends at a multiple of 16, and grows downwards. The rest is the caller's contract.
        let pid = unsafe { libc::clone(enter::<T>, end.cast(), libc::CLONE_VM | libc::SIGCHLD, task.cast()) };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        Pid::from_raw(pid).ok_or_else(|| io::Error::other("a child has no number"))
    }
}
