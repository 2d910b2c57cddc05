//! What is to be done with a thread, as its state says.

use addresses::Avma;

use crate::tracer::notice::Notice;

/// Something to be done with a thread, before it is let run if it stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Have a system call made again that this stop has interrupted.
    RestartSystemCall,
    /// From now on it stops when it starts others, or does not.
    TellOfNewThreads(bool),
    /// Begin a burst. The answer: [`NoBurst`](super::event::Answer::NoBurst), `Complete` or `GoesOnAt`.
    BeginBurst,
    /// Read the registers at a breakpoint. The answer: `StandsAt`.
    LookWhereItStands,
    /// Go on with the burst from there. The answer: `Complete` or `GoesOnAt`.
    GoOnWithBurst,
    /// A breakpoint at this address, in place of the one before. The answer: `BreakpointSet` or `NoBreakpoint`.
    SetBreakpoint(Avma),
    /// Take the breakpoint away.
    RemoveBreakpoint,
    /// A breakpoint was given up.
    CountMissedBreakpoint,
    /// Write the burst, which ended for this reason.
    WriteBurst(&'static str),
    /// The burst and its stops are over: the next one may be planned by what they cost.
    ChargeBurst,
    /// Decide by its signal mask how its clock is to stop it; it stands still.
    ChooseNotice,
    /// Its clock is to stop it in this way.
    NotifyBy(Notice),
    /// Start the clock for the next burst.
    StartClock,
    /// Start the clock once more for the same burst.
    StartClockAgain,
    /// Stop its clock and its breakpoint for good: no signal of theirs comes after that.
    Silence,
    /// What was known of its program is void, and its id may be another.
    ForgetProgram,
    /// Let the signals of its events through that it blocks: it takes them.
    LetSignalsThrough,
    /// Ask it to stop. The answer, if that cannot be: `NotInterrupted`.
    AskToStop,
}

/// How a thread that stands still goes on, when its actions are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// It runs, and gets this signal first (0: none).
    Run(i32),
    /// It executes one instruction, and gets this signal first (0: none).
    #[cfg(feature = "simulated-pmu")]
    Step(i32),
    /// It stays stopped until job control lets it run.
    StayStopped,
    /// It runs untraced, and gets this signal first. If that cannot be, it runs as with `Run`.
    LetGo(i32),
}
