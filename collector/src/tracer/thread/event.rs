//! What happens to a thread, as its state hears of it.

use addresses::Avma;

use crate::tracer::notice::Notice;

/// Something that happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The thread has stopped, for this reason.
    Stopped(Stop),
    /// Its clock may begin; `standing` if the thread stands still, so that its signal mask can be read.
    Begin { standing: bool },
    /// Its clock has overflowed, of which the tracer was told and not the thread. `notice` is how it is best stopped now, and
    /// `can_be_interrupted` whether that does the program no harm.
    OverflowTold { notice: Notice, can_be_interrupted: bool },
    /// The signal of its clock waits: the thread blocks it.
    SignalIsBlocked,
    /// The time between bursts has become much longer since its clock was started.
    PeriodHasGrown,
    /// It is time to look whether it still is on its way to a breakpoint.
    Look,
    /// It has ended, or goes on untraced.
    Ended,
    /// Nothing is recorded any more.
    RecordingEnds,
    /// The answer to an action.
    Answer(Answer),
}

/// Why a thread stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The signal of its clock, which it will not get.
    Clock,
    /// The signal of its breakpoint, which it will not get.
    Breakpoint,
    /// The tracer asked for it, or a stop by job control has ended.
    Interrupt,
    /// It is about to get this signal of the program's.
    Signal(i32),
    /// Job control: it is to stay so.
    JobControl,
    /// Its process has another program now, and no other thread.
    Exec,
    /// It has started a thread or a process.
    StartedAnother,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There are no registers to begin a burst with.
    NoBurst,
    /// The burst is complete, for this reason.
    Complete(&'static str),
    /// The burst goes on at `address`, which the thread has to reach itself; if it stands there already and `again`, the second time is
    /// meant. `otherwise` is why the burst ends if no breakpoint can be there.
    GoesOnAt { address: Avma, again: bool, otherwise: &'static str },
    /// A breakpoint is where it was to be.
    BreakpointSet,
    /// None can be there.
    NoBreakpoint,
    /// Where the thread stands; `None` if its registers cannot be read.
    StandsAt(Option<Avma>),
    /// The thread could not be asked to stop.
    NotInterrupted,
}
