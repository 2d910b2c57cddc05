//! A traced thread: the event that stops it, the breakpoint it may have, the burst it is in.

use std::time::{Duration, Instant};

use lookahead::Registers;
use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, Avma, EventAttr};

use crate::errno::Errno;
use crate::sys::process::signals_pending_and_blocked;
use crate::sys::{EventFd, Scope, SignalInfo, realtime_signal};
use crate::tracer::burst::{Burst, ThreadId};
use crate::tracer::comparison::Prediction;
use crate::tracer::working_set::WorkingSet;

/// `si_code` of an event that has overflowed, and of one that has used up its limit of overflows.
const POLL_IN: i32 = 1;
const POLL_HUP: i32 = 6;

/// Counts of a clock until a burst that is due is tried again.
const SOON: u64 = 1000;

/// How the overflow of a thread's clock makes it stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The thread gets this signal, and stops before it is delivered.
    Signal(i32),
    /// The tracer gets a signal, and interrupts the thread: for threads that block the signals that could be used.
    Interrupt,
}

/// One thread.
pub(crate) struct Thread {
    pub(crate) id: ThreadId,
    pub(crate) clock: EventFd,
    notice: Option<Notice>,
    breakpoint: Option<EventFd>,
    /// The signal of the breakpoint.
    breakpoint_signal: i32,
    /// What the next burst will stand for.
    pub(crate) period: u64,
    /// The count at which the clock will overflow, and whether it was seen there.
    due: u64,
    overdue: bool,
    /// Before that, it has hardly overflowed: a clock cannot have, an event is taken to be as frequent as before.
    earliest: Instant,
    /// Counts until a burst is tried again that is due.
    soon: u64,
    /// Counts of the clock, and time it counted, as last seen.
    counted: u64,
    ran: u64,
    pub(crate) phase: Phase,
    pub(crate) burst: Burst,
    /// What the burst has cost so far.
    pub(crate) cost: Duration,
    pub(crate) working_set: WorkingSet,
    /// It stops when it starts others.
    pub(crate) follows: bool,
    /// What the interpreter found, where both tracers are compared.
    pub(crate) prediction: Option<Box<Prediction>>,
}

/// What a thread does.
pub(crate) enum Phase {
    /// Runs until its clock overflows.
    Sampling,
    /// Its clock has overflowed, the tracer has asked it to stop.
    Interrupted,
    /// In a burst, on its way to a breakpoint.
    Underway(Box<Underway>),
}

/// What is expected of a thread at its breakpoint.
pub(crate) struct Underway {
    pub(crate) address: Avma,
    /// The thread stood there: it is hit at once, which is not meant.
    pub(crate) again: bool,
    pub(crate) since: Instant,
    pub(crate) goal: Goal,
}

/// What the breakpoint is for.
pub(crate) enum Goal {
    /// To look ahead from there; registers are known but for those a system call returns values in.
    BehindSystemCall(Registers),
    /// To look ahead from there; registers that the instruction does not write are known, bit n for register n.
    BehindInstruction { before: Registers, kept: u16 },
    /// To evaluate a branch, with the stack pointer there if it is known.
    Branch { instructions: u64, stack: Option<u64> },
}

/// What happened since the last look.
pub(crate) struct Progress {
    /// Counts of the clock.
    pub(crate) counts: u64,
    /// Time, ns.
    pub(crate) ran: u64,
}

impl Thread {
    /// Opens the thread's clock, which does not run yet.
    pub(crate) fn new(id: ThreadId, clock: &EventAttr) -> Result<Self, Errno> {
        let clock = EventFd::open(clock, Scope::Thread(id.tid, None))?;
        Ok(Self {
            id,
            clock,
            notice: None,
            breakpoint: None,
            breakpoint_signal: 0,
            period: 0,
            due: u64::MAX,
            overdue: false,
            earliest: Instant::now(),
            soon: SOON,
            counted: 0,
            ran: 0,
            phase: Phase::Sampling,
            burst: Burst::default(),
            cost: Duration::ZERO,
            working_set: WorkingSet::default(),
            follows: true,
            prediction: None,
        })
    }

    /// What the clock counted since the last look.
    pub(crate) fn progress(&mut self) -> Progress {
        let mut words = [0; 2];
        if self.clock.read(&mut words).is_err() {
            return Progress { counts: 0, ran: 0 };
        }
        let progress =
            Progress { counts: words[0].saturating_sub(self.counted), ran: words[1].saturating_sub(self.ran) };
        (self.counted, self.ran) = (words[0], words[1]);
        progress
    }

    /// Lets the clock overflow once, after `count`, which takes a thread `least` at least.
    pub(crate) fn arm(&mut self, period: u64, count: u64, least: Duration) -> Result<(), Errno> {
        self.period = period;
        self.phase = Phase::Sampling;
        self.progress();
        (self.due, self.overdue) = (self.counted.saturating_add(count), false);
        self.earliest = Instant::now() + least;
        self.soon = SOON;
        self.clock.set_period(count)?;
        self.clock.once()
    }

    /// Lets the clock overflow once more for the same burst: soon, and later every time it is to no avail.
    pub(crate) fn arm_again(&mut self) -> Result<(), Errno> {
        self.clock.set_period(self.soon)?;
        self.soon = (2 * self.soon).min(self.period.max(SOON));
        self.clock.once()
    }

    /// Since when it is on its way to a breakpoint.
    pub(crate) fn underway_since(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Underway(underway) => Some(underway.since),
            Phase::Sampling | Phase::Interrupted => None,
        }
    }

    /// Whether it has a burst that is not written yet.
    pub(crate) fn is_in_burst(&self) -> bool {
        matches!(self.phase, Phase::Underway(_))
    }

    /// Whether the clock seemed to have overflowed when this was asked last, and its signal waits still.
    pub(crate) fn blocks_its_signal(&mut self) -> bool {
        let (Phase::Sampling, Some(signal)) = (&self.phase, self.signal()) else { return false };
        if self.overdue {
            // It counts in the kernel too, and overflows in the program only: a thread that computes little is overdue for long.
            let (pending, blocked) = signals_pending_and_blocked(self.id.tid as u32);
            return pending & blocked & 1 << (signal - 1) != 0;
        }
        // Reading the clock of a thread that runs interrupts it.
        if Instant::now() < self.earliest {
            return false;
        }
        let mut words = [0; 2];
        self.overdue = self.clock.read(&mut words).is_ok() && words[0] >= self.due;
        false
    }

    /// The signal of its clock.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self.notice {
            Some(Notice::Signal(signal)) => Some(signal),
            Some(Notice::Interrupt) | None => None,
        }
    }

    /// Whether a signal of that number waits for the thread to take it, which it does at once.
    pub(crate) fn gets_its_signal(&self) -> bool {
        self.signal().is_some_and(|signal| {
            let (pending, blocked) = signals_pending_and_blocked(self.id.tid as u32);
            pending & !blocked & 1 << (signal - 1) != 0
        })
    }

    /// Whether a signal of its clock is one that was left over from before the tracer interrupted it.
    pub(crate) fn is_left_over(&self) -> bool {
        self.notice == Some(Notice::Interrupt) && matches!(self.phase, Phase::Sampling)
    }

    /// How the overflow is to make the thread stop.
    pub(crate) fn notify_by(&mut self, notice: Notice, tracer: i32) -> Result<(), Errno> {
        if self.notice == Some(notice) {
            return Ok(());
        }
        match notice {
            Notice::Signal(signal) => self.clock.signal_to(self.id.tid, signal)?,
            Notice::Interrupt => self.clock.signal_to(tracer, realtime_signal())?,
        }
        self.notice = Some(notice);
        Ok(())
    }

    /// Whether its clock was never started.
    pub(crate) fn is_new(&self) -> bool {
        self.period == 0
    }

    /// Whether it was never said how the thread is to be stopped.
    pub(crate) fn has_no_notice(&self) -> bool {
        self.notice.is_none()
    }

    /// A breakpoint at `address`, in place of the one before.
    ///
    /// # Errors
    /// `EAGAIN` if the thread blocks the signals that could tell of it; what the kernel says.
    pub(crate) fn break_at(&mut self, address: Avma) -> Result<(), Errno> {
        let Some(signal) = self.signal() else { return Err(Errno(libc::EAGAIN)) };
        let attr = EventAttr {
            kind: sys::PERF_TYPE_BREAKPOINT,
            sample_period_or_freq: 1,
            bp_type: sys::HW_BREAKPOINT_X,
            config1: address.0,
            config2: size_of::<libc::c_long>() as u64,
            flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..EventAttr::default()
        };
        // A limit of overflows would be simpler, but Linux 6.16 and later leave a breakpoint dead that has reached its limit.
        let breakpoint = match self.breakpoint.take() {
            Some(breakpoint) => breakpoint.modify(&attr).map(|()| breakpoint)?,
            None => {
                self.breakpoint_signal = 0;
                EventFd::open(&attr, Scope::Thread(self.id.tid, None))?
            }
        };
        if self.breakpoint_signal != signal {
            breakpoint.signal_to(self.id.tid, signal)?;
            self.breakpoint_signal = signal;
        }
        self.breakpoint = Some(breakpoint);
        Ok(())
    }

    /// Its id has changed: signals have to be addressed anew.
    pub(crate) fn forget_owner(&mut self) {
        (self.notice, self.breakpoint, self.breakpoint_signal) = (None, None, 0);
    }

    /// Takes the breakpoint away.
    pub(crate) fn unbreak(&self) {
        if let Some(breakpoint) = &self.breakpoint {
            let _ = breakpoint.disable();
        }
    }

    /// Whether a signal came from this descriptor.
    pub(crate) fn owner_of(&self, info: SignalInfo) -> Option<Event> {
        if info.fd == self.clock.number() && info.code == POLL_HUP {
            Some(Event::Clock)
        } else if self.breakpoint.as_ref().is_some_and(|it| it.number() == info.fd) && info.code == POLL_IN {
            Some(Event::Breakpoint)
        } else {
            None
        }
    }
}

/// One of a thread's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Clock,
    Breakpoint,
}

/// Signals that nothing happens on by default, so that one that is left over does no harm.
pub(crate) const SIGNALS: [i32; 2] = [libc::SIGWINCH, libc::SIGURG];

/// Whether nothing at all comes through. Programs cannot block the signals that the C library has for itself; the library does, for a
/// moment, when it begins or ends a thread.
pub(crate) fn blocks_all(blocked: u64) -> bool {
    blocked | 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1) == u64::MAX
}

/// How a thread is best stopped, given the signals it blocks and those its process has handlers for; a signal that is pending while the program sends
/// another of its kind would swallow that one.
pub(crate) fn best_notice(blocked: u64, caught: u64) -> Notice {
    let free = |set: u64| SIGNALS.into_iter().find(|signal| set & 1 << (signal - 1) == 0);
    match free(blocked | caught).or_else(|| free(blocked)) {
        Some(signal) => Notice::Signal(signal),
        None => Notice::Interrupt,
    }
}
