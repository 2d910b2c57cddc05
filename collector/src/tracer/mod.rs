//! Software branch tracing: branch stacks on machines whose hardware records none.
//!
//! ```text
//!                         reports of threads, signals of clocks              report_loop (the simulator's, too)
//!                                     |
//!                                  engine      with attaching (threads that were there) and upkeep
//!                                     |
//! threads, processes  <---------  executor  --------->  burst::taker: registers -> look ahead -> path, or a breakpoint
//! thread::table                event | ^ actions                      (lookahead, memory, static_path)
//!                                    v |
//!                              thread::state: (state, event) -> (state, actions). Pure
//!
//! budget: what was spent, of how much CPU time      governor, cpu_time
//! agent: bursts that the sampled thread takes itself, or is stopped for and let go after; an engine of its own
//! timer: the same where neither events nor ptrace are to be had: timers of the processes start the bursts
//! kernel: everything that is asked of the kernel    linux; a script in tests
//! ```
//!
//! The drawing is of threads that are traced all the time. The clock of a thread overflows and its signal stops the thread; the signal is never
//! delivered. Burst and samples come of it, the next period of what it cost, and the thread goes on.
//!
//! After *Break Dancing* (Marin, Alexandrov, Moseley, LCTES 2021), whose algorithm is the other [`TracerKind`]: a breakpoint at every
//! branch that is not decided by its bytes. All of it happens in one thread, which alone may speak to the threads it traces
//! (ptrace(2)). If the collector is killed, the kernel detaches the threads and closes clocks and breakpoints; a signal that was
//! underway is one on which nothing happens by default.

mod agent;
pub(crate) mod budget;
pub(crate) mod burst;
pub(crate) mod engine;
pub(crate) mod kernel;
pub(crate) mod made_code;
mod notice;
mod options;
mod placement;
pub(crate) mod report_loop;
mod settings;
pub(crate) mod shared;
mod statistics;
pub(crate) mod thread;
mod timer;
mod turns;
mod waits;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::sys::{WaitSet, Waiting, realtime_signal};
use crate::tracer::agent::engine::AgentEngine;
pub(crate) use crate::tracer::agent::engine::Running;
pub(crate) use crate::tracer::agent::obstacle::obstacle;
pub use crate::tracer::agent::searched_files::{SearchedFile, SearchedFiles};
use crate::tracer::budget::stop_cost::{StopCost, calibrate};
pub(crate) use crate::tracer::burst::BurstEvent;
use crate::tracer::engine::Engine;
use crate::tracer::kernel::linux::LinuxKernel;
pub use crate::tracer::options::{BurstEnd, BurstSize, TracerChoice, TracerKind, TracerOptions};
use crate::tracer::placement::Placement;
pub(crate) use crate::tracer::settings::{ByCpu, Clock, Settings};
pub(crate) use crate::tracer::shared::{Shared, monotonic_time};
pub use crate::tracer::statistics::{Agents, Checks, Predictions, Times, TracerStatistics};
use crate::tracer::timer::TimerEngine;
pub(crate) use crate::tracer::timer::{PreloadFile, TimedBursts};

/// The name of the thread that traces, in every recorder.
pub(crate) const TRACER_THREAD: &str = "hbbp-tracer";

/// A thread that cannot be traced.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("thread {thread} cannot be traced: {errno}{}", hint(*.errno))]
pub struct AttachError {
    /// The thread that cannot be traced.
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

/// Why tracing could not begin.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A thread cannot be traced.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// No agent can be put into programs.
    #[error("no agent can be put into the program: {0}")]
    Agent(String),
    /// There is something in the way of tracing all of it.
    #[error("{0}")]
    Obstacle(String),
}

impl TraceError {
    /// What is in the way of bursts of this kind.
    pub(crate) fn of(kind: TracerKind, why: String) -> Self {
        if kind.has_agents() { Self::Agent(why) } else { Self::Obstacle(why) }
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
        Self::begin(TRACER_THREAD, move |shared, signals, result: Sender<Result<(), AttachError>>| {
            let (mut kernel, placement) = (LinuxKernel::new(signals), Placement::prefer_tracer());
            let cost = calibrate(&mut kernel);
            let mut engine = Engine::new(settings, event, shared, kernel, placement, cost);
            let attached = engine.attach(&ids, whole_processes);
            let failed = attached.is_err();
            let _ = result.send(attached);
            if failed { engine.nothing() } else { engine.run() }
        })
    }

    /// Takes the bursts that timers start in a command that is about to begin, which has the environment of `preload`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn by_timers(
        settings: Settings,
        bursts: Arc<TimedBursts>,
        preload: PreloadFile,
    ) -> Result<Self, TraceError> {
        Self::begin(TRACER_THREAD, move |shared, signals, result: Sender<Result<(), TraceError>>| {
            let engine = TimerEngine::new(settings, bursts, preload, shared, LinuxKernel::new(signals));
            let _ = result.send(Ok(()));
            engine.run()
        })
    }

    /// Takes bursts by agents, or by visits where these are not asked for, in a command that is about to begin, or in what runs already, and
    /// in what comes from it.
    ///
    /// # Errors
    /// No agent can be made here, or nothing tells of processes.
    pub(crate) fn by_visits(
        settings: Settings,
        event: BurstEvent,
        cpus: CpuList,
        running: Running,
    ) -> Result<Self, TraceError> {
        Self::begin(TRACER_THREAD, move |shared, signals, result: Sender<Result<(), TraceError>>| {
            let kernel = LinuxKernel::new(signals);
            let made = AgentEngine::new(settings.clone(), event, shared, kernel, &cpus, running);
            match made {
                Ok(engine) => {
                    let _ = result.send(Ok(()));
                    engine.run()
                }
                Err(error) => {
                    let _ = result.send(Err(TraceError::of(settings.kind, error.to_string())));
                    TracerStatistics::new(&settings, StopCost::built_in("there is no agent"))
                }
            }
        })
    }
}

impl<F: Send + 'static> Follower<F> {
    /// Starts the thread, which is to say by the channel whether it could attach.
    pub(crate) fn begin<E: From<AttachError> + Send + 'static>(
        name: &str,
        work: impl FnOnce(Arc<Shared>, WaitSet, Sender<Result<(), E>>) -> F + Send + 'static,
    ) -> Result<Self, E> {
        let failed = |errno: Errno| E::from(AttachError { thread: 0, errno });
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

    /// From now on threads are sampled.
    pub(crate) fn start(&self) {
        self.shared.started.store(true, Ordering::Release);
        self.shared.wake_tracer();
    }

    /// Ends: the threads go on untraced. Returns what was done; `None` if the tracer failed.
    pub(crate) fn stop(mut self) -> Option<F> {
        self.end()
    }

    fn end(&mut self) -> Option<F> {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.wake_tracer();
        self.thread.take()?.join().ok()
    }
}

impl<F> Drop for Follower<F> {
    fn drop(&mut self) {
        self.end();
    }
}
