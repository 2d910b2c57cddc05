//! A traced thread: the clock that stops it, the breakpoint it may have, the burst it is in.

pub(crate) mod action;
pub(crate) mod event;
pub(crate) mod state;
pub(crate) mod system_call_restart;
pub(crate) mod table;

use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, Avma, EventAttr};

use crate::errno::Errno;
use crate::sys::{POLL_HUP, POLL_IN, SignalInfo, realtime_signal};
use crate::tracer::burst::ThreadId;
use crate::tracer::burst::path::Path;
use crate::tracer::kernel::{Kernel, ThreadEvent};
use crate::tracer::notice::Notice;
use crate::tracer::thread::event::Stop;
use crate::tracer::thread::state::{Phase, ThreadState};

/// Counts of a clock until a burst that is due is tried again.
const SOON: u64 = 1000;

/// A traced thread, with what its next burst needs.
pub(crate) struct Thread<E> {
    pub(crate) id: ThreadId,
    pub(crate) state: ThreadState,
    pub(crate) clock: E,
    notice: Option<Notice>,
    breakpoint: Option<E>,
    /// The signal of the breakpoint.
    breakpoint_signal: i32,
    breakpoint_is_set: bool,
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
    /// Where it is followed to.
    pub(crate) path: Path,
    /// What the burst has cost so far.
    pub(crate) cost: Duration,
}

/// What happened since the last look.
pub(crate) struct Progress {
    /// Counts of the clock.
    pub(crate) counts: u64,
    /// Time that the clock ran, ns.
    pub(crate) ran: u64,
}

/// The event of a breakpoint. A limit of overflows would be simpler than taking it away, but Linux 6.16 and later leave one dead that has
/// reached its limit.
pub(crate) fn breakpoint_at(address: Avma) -> EventAttr {
    EventAttr {
        kind: sys::PERF_TYPE_BREAKPOINT,
        sample_period_or_freq: 1,
        bp_type: sys::HW_BREAKPOINT_X,
        config1: address.0,
        config2: size_of::<libc::c_long>() as u64,
        flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..EventAttr::default()
    }
}

impl<E: ThreadEvent> Thread<E> {
    /// Opens the thread's clock, which does not run yet.
    ///
    /// # Errors
    /// What the kernel says: the thread is gone, or there are too many open files.
    pub(crate) fn new(id: ThreadId, clock: &EventAttr, kernel: &mut impl Kernel<Event = E>) -> Result<Self, Errno> {
        let clock = kernel.open(clock, id.tid)?;
        Ok(Self {
            id,
            state: ThreadState::new(),
            clock,
            notice: None,
            breakpoint: None,
            breakpoint_signal: 0,
            breakpoint_is_set: false,
            period: 0,
            due: u64::MAX,
            overdue: false,
            earliest: kernel.now(),
            soon: SOON,
            counted: 0,
            ran: 0,
            path: Path::default(),
            cost: Duration::ZERO,
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

    /// Lets the clock overflow once, after `count`, which does not happen before `earliest`.
    ///
    /// # Errors
    /// What the kernel says: the thread is gone.
    pub(crate) fn arm(&mut self, period: u64, count: u64, earliest: Instant) -> Result<(), Errno> {
        self.period = period;
        self.progress();
        (self.due, self.overdue) = (self.counted.saturating_add(count), false);
        self.earliest = earliest;
        self.soon = SOON;
        self.clock.set_period(count)?;
        self.clock.once()
    }

    /// Lets the clock overflow once more for the same burst: soon, and later every time it is to no avail.
    ///
    /// # Errors
    /// What the kernel says: the thread is gone.
    pub(crate) fn arm_again(&mut self) -> Result<(), Errno> {
        self.clock.set_period(self.soon)?;
        self.soon = (2 * self.soon).min(self.period.max(SOON));
        self.clock.once()
    }

    /// Whether the clock seemed to have overflowed when this was asked last, and its signal waits still.
    pub(crate) fn blocks_its_signal(&mut self, kernel: &impl Kernel) -> bool {
        let (Phase::Sampling, Some(signal)) = (self.state.phase, self.signal()) else { return false };
        if self.overdue {
            // It counts in the kernel too, and overflows in the program only: a thread that computes little is overdue for long.
            let (pending, blocked) = kernel.signals_pending_and_blocked(self.id.tid);
            return pending & blocked & 1 << (signal - 1) != 0;
        }
        // Reading the clock of a thread that runs interrupts it.
        if kernel.now() < self.earliest {
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

    /// Whether no signal comes through to it.
    pub(crate) fn needs_interrupt(&self) -> bool {
        self.notice == Some(Notice::Interrupt)
    }

    /// How the overflow is to make the thread stop.
    ///
    /// # Errors
    /// What the kernel says: the thread is gone.
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
    pub(crate) fn break_at(&mut self, address: Avma, kernel: &mut impl Kernel<Event = E>) -> Result<(), Errno> {
        let Some(signal) = self.signal() else { return Err(Errno(libc::EAGAIN)) };
        let attr = breakpoint_at(address);
        let breakpoint = match self.breakpoint.take() {
            Some(breakpoint) => breakpoint.modify(&attr).map(|()| breakpoint)?,
            None => {
                self.breakpoint_signal = 0;
                kernel.open(&attr, self.id.tid)?
            }
        };
        if self.breakpoint_signal != signal {
            breakpoint.signal_to(self.id.tid, signal)?;
            self.breakpoint_signal = signal;
        }
        self.breakpoint = Some(breakpoint);
        self.breakpoint_is_set = true;
        Ok(())
    }

    /// Its id has changed: signals have to be addressed anew.
    pub(crate) fn forget_owner(&mut self) {
        (self.notice, self.breakpoint, self.breakpoint_signal, self.breakpoint_is_set) = (None, None, 0, false);
    }

    /// Takes the breakpoint away.
    pub(crate) fn unbreak(&mut self) {
        if let Some(breakpoint) = self.breakpoint.as_ref().filter(|_| self.breakpoint_is_set) {
            let _ = breakpoint.disable();
        }
        self.breakpoint_is_set = false;
    }

    /// Stops its clock and its breakpoint for good.
    pub(crate) fn silence(&mut self) {
        self.clock.silence();
        if let Some(breakpoint) = &self.breakpoint {
            breakpoint.silence();
        }
        self.breakpoint_is_set = false;
    }

    /// Which of its events has sent a signal, if one has.
    pub(crate) fn owner_of(&self, info: SignalInfo) -> Option<Stop> {
        if info.fd == self.clock.number() && info.code == POLL_HUP {
            Some(Stop::Clock)
        } else if self.breakpoint.as_ref().is_some_and(|it| it.number() == info.fd) && info.code == POLL_IN {
            Some(Stop::Breakpoint)
        } else {
            None
        }
    }
}
