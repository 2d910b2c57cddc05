//! Software branch tracing: branch stacks on machines whose hardware records none.
//!
//! ```text
//! clock of the thread overflows -> signal -> ptrace stop (the signal is never delivered)
//!   registers, pages it is likely to need           thread, memory
//!   look ahead: instruction budget left?            lookahead::run
//!     system call, page or instruction it cannot follow: breakpoint behind it, let the thread run there, go on
//!   burst complete -> samples -> shared queue       burst, shared
//!   next period from what it cost                   governor
//! the thread goes on                                 placement
//! ```
//!
//! After *Break Dancing* (Marin, Alexandrov, Moseley, LCTES 2021), whose algorithm is the other [`TracerKind`]: a breakpoint at every
//! branch that is not decided by its bytes. All of it happens in one thread, which alone may speak to the threads it traces
//! (ptrace(2)). If the collector is killed, the kernel detaches the threads and closes clocks and breakpoints; a signal that was
//! underway is one on which nothing happens by default.

pub(crate) mod address_space;
pub(crate) mod burst;
mod comparison;
mod cpu_time;
mod cut_short;
pub(crate) mod engine;
mod following;
mod governor;
pub(crate) mod memory;
mod own_time;
pub(crate) mod path;
mod placement;
pub(crate) mod shared;
mod static_path;
mod statistics;
mod thread;
pub(crate) mod tracing;
mod wish;
pub(crate) mod working_set;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr, ReadFormat};

use crate::errno::Errno;
use crate::sys::{WaitSet, Waiting, realtime_signal, wake_waiting_thread};
pub(crate) use crate::tracer::burst::BurstEvent;
use crate::tracer::engine::Engine;
pub(crate) use crate::tracer::shared::Shared;
pub(crate) use crate::tracer::statistics::SAMPLE;
pub use crate::tracer::statistics::{Predictions, Times, TracerStatistics};
pub(crate) use crate::tracer::wish::BREAKPOINT_DEPTH;
pub use crate::tracer::wish::{BurstSize, TracerKind, TracerWish, TracerWishes};

/// How to trace.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) kind: TracerKind,
    pub(crate) size: BurstSize,
    /// Percent of CPU time.
    pub(crate) overhead: f64,
    /// The part of it that is for bursts.
    pub(crate) burst_share: f64,
    /// Follow threads and processes that start later.
    pub(crate) inherit: bool,
    /// The command, which begins to run when tracing has begun.
    pub(crate) command: Option<i32>,
    pub(crate) clock: Clock,
}

/// What starts a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// CPU time.
    Time,
    /// Instructions in user space, where the machine counts them.
    Instructions,
}

impl Clock {
    /// The event of a thread. It counts, with the time it counted, and tells of one overflow at a time.
    fn attr(self) -> EventAttr {
        let (kind, config) = match self {
            Self::Time => (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_TASK_CLOCK),
            Self::Instructions => (sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_INSTRUCTIONS),
        };
        EventAttr {
            kind,
            config: u64::from(config),
            sample_period_or_freq: 1_000_000_000,
            read_format: ReadFormat::TOTAL_TIME_RUNNING,
            flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            wakeup_events_or_watermark: 1,
            ..EventAttr::default()
        }
    }
}

/// A thread that cannot be traced.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("thread {thread} cannot be traced: {errno}{}", hint(*.errno))]
pub struct AttachError {
    /// The thread.
    pub thread: i32,
    /// What the kernel said.
    pub errno: Errno,
}

fn hint(errno: Errno) -> &'static str {
    if errno.is_permission() {
        "; a debugger may have it, it may be another user's, or kernel.yama.ptrace_scope allows to trace own children only"
    } else {
        ""
    }
}

/// The thread that traces others, and what it has to say in the end.
pub(crate) struct Follower<F> {
    thread: Option<JoinHandle<F>>,
    shared: Arc<Shared>,
    /// Keeps the signals blocked that the thread waits for.
    _waiting: Waiting,
}

/// The tracer at work.
pub(crate) type Tracer = Follower<TracerStatistics>;

impl Tracer {
    /// Attaches to processes or threads; nothing stops them yet.
    ///
    /// # Errors
    /// What cannot be traced, and why.
    pub(crate) fn attach(
        settings: Settings,
        event: BurstEvent,
        ids: &[u32],
        whole_processes: bool,
    ) -> Result<Self, AttachError> {
        let ids = ids.to_vec();
        Self::begin("hbbp-tracer", move |shared, signals, result: Sender<Result<(), AttachError>>| {
            let mut engine = Engine::new(settings, event, shared, signals);
            let attached = engine.attach(&ids, whole_processes);
            let failed = attached.is_err();
            let _ = result.send(attached);
            if failed { engine.nothing() } else { engine.run() }
        })
    }
}

impl<F: Send + 'static> Follower<F> {
    /// Starts the thread, which is to say by the channel whether it could attach.
    pub(crate) fn begin(
        name: &str,
        work: impl FnOnce(Arc<Shared>, WaitSet, Sender<Result<(), AttachError>>) -> F + Send + 'static,
    ) -> Result<Self, AttachError> {
        let failed = |errno: Errno| AttachError { thread: 0, errno };
        let shared = Arc::new(Shared::new().map_err(|errno| failed(errno.into()))?);
        let waiting = Waiting::block(realtime_signal());
        let (signals, for_thread) = (waiting.signals(), shared.clone());
        let (result, attached) = channel();
        let spawned = Builder::new().name(name.to_owned()).spawn(move || work(for_thread, signals, result));
        let thread = spawned.map_err(|error| failed(Errno(error.raw_os_error().unwrap_or(libc::EAGAIN))))?;
        match attached.recv() {
            Ok(Ok(())) => Ok(Self { thread: Some(thread), shared, _waiting: waiting }),
            Ok(Err(error)) => {
                let _ = thread.join();
                Err(error)
            }
            Err(_) => Err(failed(Errno(libc::ECHILD))),
        }
    }
}

impl<F> Follower<F> {
    /// Samples, and how the command ended.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Begins to sample.
    pub(crate) fn start(&self) {
        self.shared.started.store(true, Ordering::Release);
        wake_waiting_thread();
    }

    /// Ends: the threads go on untraced. Returns what was done; `None` if the tracer failed.
    pub(crate) fn stop(mut self) -> Option<F> {
        self.end()
    }

    fn end(&mut self) -> Option<F> {
        self.shared.stopping.store(true, Ordering::Release);
        wake_waiting_thread();
        self.thread.take()?.join().ok()
    }
}

impl<F> Drop for Follower<F> {
    fn drop(&mut self) {
        self.end();
    }
}
