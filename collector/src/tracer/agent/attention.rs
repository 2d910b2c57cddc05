//! When to look what processes do: at once, or now and then.
//!
//! Each fork, exec and exit that is looked at when it happens wakes the tracer. Where processes live for milliseconds that would take
//! more than the budget. Then it is done in a part of the time only, windows chosen by chance, and what begins in a window gets its first
//! burst as much sooner: on average every process gets as many as its CPU time gives it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::errno::Errno;
use crate::sys::{SignalFd, SignalInfo, realtime_signal};
use crate::tracer::agent::sideband::Sideband;

/// The part of the budget that looking at processes may take.
const SHARE: f64 = 0.25;
/// The least part of the time that is looked at.
const LEAST: f64 = 0.02;
/// How much a window tells of the next.
const WEIGHT: f64 = 0.25;

const SIGNALS: EventData = EventData::new_u64(0);
const HAPPENINGS: EventData = EventData::new_u64(1);
const TURNS: EventData = EventData::new_u64(2);

/// What has come that was waited for, besides signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// Something happened to a process.
    pub(crate) happenings: bool,
    /// The clock of a CPU has overflowed.
    pub(crate) turns: bool,
}

/// What the tracer waits for.
pub(crate) struct Attention {
    signals: SignalFd,
    /// Signals alone, and what happens to processes as well.
    quiet: OwnedFd,
    full: OwnedFd,
    /// The part of the time in which processes are looked at,
    part: f64,
    /// and whether this is such a time.
    looks: bool,
    /// What a window of looking costs, ns.
    cost: f64,
    random: fastrand::Rng,
}

impl Attention {
    /// Of the calling thread. `turns`: the clocks of CPUs, if there are any.
    pub(crate) fn new<'a>(
        sideband: &Sideband,
        turns: impl Iterator<Item = BorrowedFd<'a>>,
        seed: u64,
    ) -> Result<Self, Errno> {
        let signals = SignalFd::block(&[libc::SIGCHLD, libc::SIGIO, realtime_signal()])?;
        let (quiet, full) = (epoll::create(CreateFlags::CLOEXEC)?, epoll::create(CreateFlags::CLOEXEC)?);
        epoll::add(&quiet, &signals, SIGNALS, EventFlags::IN)?;
        epoll::add(&full, &signals, SIGNALS, EventFlags::IN)?;
        for ring in sideband.polled() {
            // Told of once. An event whose threads have all ended has hung up for good.
            epoll::add(&full, ring, HAPPENINGS, EventFlags::IN | EventFlags::ET)?;
        }
        for clock in turns {
            epoll::add(&quiet, clock, TURNS, EventFlags::IN | EventFlags::ET)?;
            epoll::add(&full, clock, TURNS, EventFlags::IN | EventFlags::ET)?;
        }
        Ok(Self { signals, quiet, full, part: 1.0, looks: true, cost: 0.0, random: fastrand::Rng::with_seed(seed) })
    }

    /// Waits at most so long.
    pub(crate) fn wait(&self, timeout: Duration) -> Came {
        self.wait_on(if self.looks { self.full.as_fd() } else { self.quiet.as_fd() }, timeout)
    }

    fn wait_on(&self, fd: BorrowedFd<'_>, timeout: Duration) -> Came {
        let mut events = [epoll::Event { flags: EventFlags::empty(), data: SIGNALS }; 8];
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let count = epoll::wait(fd, &mut events[..], Some(&timeout)).unwrap_or(0);
        let has = |of: EventData| events[..count].iter().any(|event| event.data.u64() == of.u64());
        Came { happenings: has(HAPPENINGS), turns: has(TURNS) }
    }

    /// Waits at most so long for a signal alone.
    pub(crate) fn wait_for_signal(&self, timeout: Duration) {
        self.wait_on(self.quiet.as_fd(), timeout);
    }

    /// A signal that has come.
    pub(crate) fn next_signal(&self) -> Option<(i32, SignalInfo)> {
        self.signals.next_info()
    }

    /// The part of a period that the first burst of a process comes in that began now.
    pub(crate) fn part(&self) -> f64 {
        if self.looks { self.part } else { 1.0 }
    }

    /// Whether all that happens to processes is looked at.
    pub(crate) fn looks_always(&self) -> bool {
        self.part >= 1.0
    }

    /// A window ends, in which looking at processes cost `cost` and so much of the budget passed; chooses what the next one is.
    pub(crate) fn next_window(&mut self, cost: Duration, budget: Duration) {
        if self.looks {
            self.cost += (cost.as_nanos() as f64 - self.cost) * WEIGHT;
        }
        let allowed = budget.as_nanos() as f64 * SHARE;
        self.part = if self.cost <= allowed { 1.0 } else { (allowed / self.cost).max(LEAST) };
        self.looks = self.part >= 1.0 || self.random.f64() < self.part;
    }
}
