//! The state of a traced thread: what an event makes of it, and what is to be done then. No system calls, no clock, no ptrace.
//!
//! ```text
//!            Begin              clock, or the interrupt asked for
//!    Idle ----------> Sampling ----------------------------------> InBurst
//!                      ^    |                                      |  ^  |
//!                      |    | overflow told to the tracer          |  |  | goes on at an address:
//!                      |    v                                      |  |  v breakpoint
//!                      |  Interrupted -----------------------------|->| Underway
//!                      |                                           |  |  |
//!                      +-------------------------------------------+  +--+ Arrived
//!                        complete, given up, exec
//!    RecordingEnds, Ended: from everywhere to Over
//! ```
//!
//! A state says nothing of how a thread was stopped, or that it is traced while it runs: events tell of stops, and every stop has one
//! [`Release`].

use std::time::{Duration, Instant};

use addresses::Avma;

use crate::tracer::notice::Notice;
use crate::tracer::thread::action::{Action, Release};
use crate::tracer::thread::event::{Answer, Event, Stop};

/// How long a breakpoint is waited for. A thread that blocks in a system call, or leaves a signal handler by `longjmp`, is sampled anew
/// after that.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadState {
    pub(crate) phase: Phase,
    /// It stops when it starts others.
    pub(crate) tells_of_new: bool,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Runs; its clock was never started.
    Idle,
    /// Runs until its clock overflows.
    Sampling,
    /// Its clock has overflowed, the tracer has asked it to stop.
    Interrupted,
    /// Stands still while its burst is taken.
    InBurst,
    /// The same, while a breakpoint is set for it.
    Departing(Underway, &'static str),
    /// In a burst, on its way to a breakpoint.
    Underway(Underway),
    /// Stands still at the breakpoint, or so its signal says.
    Arrived(Underway),
    /// Its events are taken away; what still comes of them is passed over.
    Over,
}

/// Where a thread is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Underway {
    pub(crate) address: Avma,
    /// The thread stands there: it is hit at once, which is not meant.
    pub(crate) again: bool,
    pub(crate) since: Instant,
}

/// What matters of everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(crate) now: Instant,
    /// Threads are sampled: the recording has begun.
    pub(crate) recording: bool,
    /// No signal comes through to this thread: the tracer has to interrupt it.
    pub(crate) needs_interrupt: bool,
    /// So much was spent that what is not for bursts must become less.
    pub(crate) over_budget: bool,
    /// There is room again for what was left out then.
    pub(crate) has_room: bool,
    /// It can be found later, and no signal of its events could reach a handler of the program's meanwhile.
    pub(crate) may_be_let_go: bool,
}

/// What an event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) state: ThreadState,
    /// To be done in this order. One that has an answer is the last.
    pub(crate) actions: Vec<Action>,
    /// How the thread goes on then; `None` if it runs, or if an answer is waited for.
    pub(crate) release: Option<Release>,
}

impl ThreadState {
    /// A thread that was found or has begun.
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Idle, tells_of_new: true }
    }

    /// Whether it has a burst that is not written yet.
    pub(crate) fn is_in_burst(self) -> bool {
        matches!(self.phase, Phase::InBurst | Phase::Departing(..) | Phase::Underway(_) | Phase::Arrived(_))
    }

    /// Why it needs the breakpoint that is being set.
    pub(crate) fn departs_because(self) -> Option<&'static str> {
        match self.phase {
            Phase::Departing(_, why) => Some(why),
            _ => None,
        }
    }

    /// Whether a stop is one for its burst, and not one that only passes by.
    pub(crate) fn is_own(self, stop: Stop) -> bool {
        matches!(stop, Stop::Clock | Stop::Breakpoint) || stop == Stop::Interrupt && self.phase == Phase::Interrupted
    }

    /// What `event` leads to.
    pub(crate) fn on(self, event: Event, around: &Surroundings) -> Transition {
        match event {
            Event::Stopped(stop) => {
                let mut to = self.stopped(stop, around);
                if !self.tells_of_new && around.has_room {
                    // After an exec, it has its new id first.
                    let renamed = to.actions.iter().position(|&action| action == Action::ForgetProgram);
                    to.actions.insert(renamed.map_or(0, |index| index + 1), Action::TellOfNewThreads(true));
                    to.state.tells_of_new = true;
                }
                to.actions.insert(0, Action::RestartSystemCall);
                to
            }
            Event::Answer(answer) => self.answered(answer, around),
            _ => self.running(event, around),
        }
    }

    fn to(self, phase: Phase, actions: impl Into<Vec<Action>>, release: Option<Release>) -> Transition {
        Transition { state: Self { phase, ..self }, actions: actions.into(), release }
    }

    /// Nothing changes; the thread runs on.
    fn run(self, signal: i32) -> Transition {
        self.to(self.phase, self.stop_again(), Some(Release::Run(signal)))
    }

    /// A stop for another reason takes the place of the one that was asked for (`ptrace_stop`, kernel/signal.c).
    fn stop_again(self) -> Vec<Action> {
        if self.phase == Phase::Interrupted { vec![Action::AskToStop] } else { Vec::new() }
    }

    fn stopped(self, stop: Stop, around: &Surroundings) -> Transition {
        let passed_over = |state: Self| state.to(state.phase, [], Some(Release::Run(0)));
        match (stop, self.phase) {
            // With the notice by interrupt, a signal is one that was left over from before.
            (Stop::Clock, Phase::Sampling) if around.needs_interrupt => passed_over(self),
            (Stop::Clock, Phase::Sampling | Phase::Interrupted) | (Stop::Interrupt, Phase::Interrupted) => {
                self.to(Phase::InBurst, [Action::BeginBurst], None)
            }
            (Stop::Breakpoint, Phase::Underway(underway)) => {
                self.to(Phase::Arrived(underway), [Action::LookWhereItStands], None)
            }
            (Stop::Interrupt, Phase::Over) => self.to(Phase::Over, [Action::LetSignalsThrough], Some(Release::Run(0))),
            // Left over from before something else ended its purpose.
            (Stop::Clock | Stop::Breakpoint | Stop::Interrupt, _) => passed_over(self),
            (Stop::Signal(signal), _) if around.over_budget && around.may_be_let_go => {
                self.to(self.phase, [Action::Silence], Some(Release::LetGo(signal)))
            }
            (Stop::Signal(signal), _) => self.run(signal),
            (Stop::JobControl, _) => self.to(self.phase, [], Some(Release::StayStopped)),
            (Stop::Exec, _) => self.exec(around),
            (Stop::StartedAnother, _) if around.over_budget => {
                let mut to = Self { tells_of_new: false, ..self }.run(0);
                to.actions.insert(0, Action::TellOfNewThreads(false));
                to
            }
            (Stop::StartedAnother, _) => self.run(0),
        }
    }

    fn exec(self, around: &Surroundings) -> Transition {
        let run = Some(Release::Run(0));
        let mut actions = Vec::new();
        if self.is_in_burst() {
            actions.extend([Action::RemoveBreakpoint, Action::WriteBurst("exec")]);
        }
        actions.push(Action::ForgetProgram);
        if !around.recording || self.phase == Phase::Over {
            let phase = if self.is_in_burst() { Phase::Over } else { self.phase };
            return self.to(phase, actions, run);
        }
        actions.push(Action::ChooseNotice);
        if matches!(self.phase, Phase::Sampling | Phase::Interrupted) {
            // Started anew, the clock would spare programs that live shorter than a period.
            actions.extend(self.stop_again());
            return self.to(self.phase, actions, run);
        }
        actions.push(Action::StartClock);
        self.to(Phase::Sampling, actions, run)
    }

    fn running(self, event: Event, around: &Surroundings) -> Transition {
        match (event, self.phase) {
            (Event::Begin { standing: true }, Phase::Idle) => {
                self.to(Phase::Sampling, [Action::ChooseNotice, Action::StartClock], None)
            }
            (Event::Begin { standing: false }, Phase::Idle) => self.to(Phase::Sampling, [Action::StartClock], None),
            (Event::OverflowTold { notice: Notice::Interrupt, can_be_interrupted: true }, Phase::Sampling) => {
                self.to(Phase::Interrupted, [Action::AskToStop], None)
            }
            // Many system calls fail with EINTR if a thread that waits in one is interrupted.
            (Event::OverflowTold { notice, .. }, Phase::Sampling) => {
                self.to(Phase::Sampling, [Action::NotifyBy(notice), Action::StartClockAgain], None)
            }
            (Event::SignalIsBlocked, Phase::Sampling) => {
                self.to(Phase::Sampling, [Action::NotifyBy(Notice::Interrupt), Action::StartClockAgain], None)
            }
            (Event::PeriodHasGrown, Phase::Sampling) => self.to(Phase::Sampling, [Action::StartClock], None),
            (Event::Look, Phase::Underway(underway)) if around.now.duration_since(underway.since) > PATIENCE => self
                .to(
                    Phase::Sampling,
                    [
                        Action::RemoveBreakpoint,
                        Action::CountMissedBreakpoint,
                        Action::WriteBurst("breakpoint not reached"),
                        Action::ChargeBurst,
                        Action::StartClock,
                    ],
                    None,
                ),
            (Event::Ended, _) if self.is_in_burst() => {
                self.to(Phase::Over, [Action::WriteBurst("end of the thread")], None)
            }
            (Event::Ended, _) => self.to(Phase::Over, [], None),
            (Event::RecordingEnds, _) => {
                let mut actions = vec![Action::Silence];
                actions.extend(self.is_in_burst().then_some(Action::WriteBurst("end of the recording")));
                self.to(Phase::Over, actions, None)
            }
            _ => self.to(self.phase, [], None),
        }
    }

    fn answered(self, answer: Answer, around: &Surroundings) -> Transition {
        let run = Some(Release::Run(0));
        match (answer, self.phase) {
            (Answer::NoBurst, Phase::InBurst) => {
                self.to(Phase::Sampling, [Action::ChooseNotice, Action::StartClock, Action::ChargeBurst], run)
            }
            (Answer::Complete(why), Phase::InBurst) => self.complete([], why),
            (Answer::GoesOnAt { address, again, otherwise }, Phase::InBurst) => {
                let underway = Underway { address, again, since: around.now };
                self.to(Phase::Departing(underway, otherwise), [Action::SetBreakpoint(address)], None)
            }
            (Answer::BreakpointSet, Phase::Departing(underway, _)) => {
                self.to(Phase::Underway(Underway { since: around.now, ..underway }), [], run)
            }
            (Answer::NoBreakpoint, Phase::Departing(_, otherwise)) => self.complete([], otherwise),
            (Answer::StandsAt(None), Phase::Arrived(_)) => self.complete([], "breakpoint without registers"),
            (Answer::StandsAt(Some(at)), Phase::Arrived(underway)) if at != underway.address => {
                self.complete([Action::CountMissedBreakpoint], "breakpoint reached elsewhere")
            }
            (Answer::StandsAt(_), Phase::Arrived(underway)) if underway.again => {
                self.to(Phase::Underway(Underway { again: false, ..underway }), [], run)
            }
            (Answer::StandsAt(_), Phase::Arrived(_)) => self.to(Phase::InBurst, [Action::GoOnWithBurst], None),
            (Answer::NotInterrupted, Phase::Interrupted) => self.to(Phase::Sampling, [], None),
            // An answer that nobody waits for any more.
            _ => self.to(self.phase, [], None),
        }
    }

    /// The burst is complete: it is written, and the clock started for the next.
    fn complete<const N: usize>(self, first: [Action; N], why: &'static str) -> Transition {
        let last = [Action::WriteBurst(why), Action::ChooseNotice, Action::StartClock, Action::ChargeBurst];
        self.to(Phase::Sampling, [&first[..], &last].concat(), Some(Release::Run(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Avma = Avma(0x40_1000);

    fn around() -> Surroundings {
        Surroundings {
            now: Instant::now(),
            recording: true,
            needs_interrupt: false,
            over_budget: false,
            has_room: true,
            may_be_let_go: true,
        }
    }

    fn all_phases(now: Instant) -> [Phase; 8] {
        let underway = Underway { address: AT, again: false, since: now };
        [
            Phase::Idle,
            Phase::Sampling,
            Phase::Interrupted,
            Phase::InBurst,
            Phase::Departing(underway, "system call"),
            Phase::Underway(underway),
            Phase::Arrived(underway),
            Phase::Over,
        ]
    }

    const STOPS: [Stop; 7] = [
        Stop::Clock,
        Stop::Breakpoint,
        Stop::Interrupt,
        Stop::Signal(libc::SIGUSR1),
        Stop::JobControl,
        Stop::Exec,
        Stop::StartedAnother,
    ];

    /// Whether an action has an answer that is waited for.
    fn is_asked(action: Action) -> bool {
        matches!(
            action,
            Action::BeginBurst | Action::LookWhereItStands | Action::GoOnWithBurst | Action::SetBreakpoint(_)
        )
    }

    /// The answers an action can have.
    fn answers(action: Action) -> Vec<Answer> {
        let goes_on = Answer::GoesOnAt { address: AT, again: false, otherwise: "system call" };
        match action {
            Action::BeginBurst => vec![Answer::NoBurst, Answer::Complete("branch depth"), goes_on],
            Action::GoOnWithBurst => vec![Answer::Complete("branch depth"), goes_on],
            Action::LookWhereItStands => [None, Some(AT), Some(Avma(1))].map(Answer::StandsAt).to_vec(),
            Action::SetBreakpoint(_) => vec![Answer::BreakpointSet, Answer::NoBreakpoint],
            _ => Vec::new(),
        }
    }

    /// Follows every answer to its end; `releases` have come so far since the stop.
    fn follow(transition: &Transition, around: &Surroundings, releases: usize, depth: usize) {
        let releases = releases + usize::from(transition.release.is_some());
        let (asked, last) = (transition.actions.iter().filter(|&&action| is_asked(action)), transition.actions.last());
        match last.filter(|&&action| is_asked(action)) {
            Some(&action) => {
                assert_eq!(
                    (asked.count(), releases),
                    (1, 0),
                    "an answer comes before the thread goes on: {transition:?}"
                );
                assert!(depth < 8, "endless: {transition:?}");
                for answer in answers(action) {
                    follow(&transition.state.on(Event::Answer(answer), around), around, releases, depth + 1);
                }
            }
            None => {
                assert_eq!((asked.count(), releases), (0, 1), "{transition:?}");
                let stands =
                    matches!(transition.state.phase, Phase::InBurst | Phase::Departing(..) | Phase::Arrived(_));
                assert!(!stands, "it runs, and is in {:?}", transition.state);
            }
        }
    }

    #[test]
    fn a_thread_that_stops_goes_on_once_whatever_comes_of_it() {
        let around = around();
        for phase in [0, 1, 2, 5, 7].map(|index| all_phases(around.now)[index]) {
            for stop in STOPS {
                for over_budget in [false, true] {
                    let around = Surroundings { over_budget, has_room: !over_budget, ..around };
                    for tells_of_new in [false, true] {
                        let state = ThreadState { phase, tells_of_new };
                        let transition = state.on(Event::Stopped(stop), &around);
                        assert_eq!(transition.actions[0], Action::RestartSystemCall);
                        follow(&transition, &around, 0, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn what_comes_without_a_stop_lets_nothing_go_on() {
        let around = around();
        let told = |notice, can_be_interrupted| Event::OverflowTold { notice, can_be_interrupted };
        let events = [
            Event::Begin { standing: true },
            Event::Begin { standing: false },
            told(Notice::Interrupt, true),
            told(Notice::Interrupt, false),
            told(Notice::Signal(libc::SIGURG), true),
            Event::SignalIsBlocked,
            Event::PeriodHasGrown,
            Event::Look,
            Event::Ended,
            Event::RecordingEnds,
        ];
        for phase in all_phases(around.now) {
            for event in events {
                let transition = ThreadState { phase, tells_of_new: true }.on(event, &around);
                assert_eq!(transition.release, None, "{event:?} in {phase:?}");
                assert!(!transition.actions.iter().copied().any(is_asked), "{event:?} in {phase:?}");
            }
        }
    }

    #[test]
    fn a_burst_is_written_once_before_the_state_forgets_it() {
        let around = around();
        let all = STOPS.map(Event::Stopped).into_iter().chain([Event::Ended, Event::RecordingEnds, Event::Look]);
        for event in all {
            for phase in all_phases(around.now) {
                let before = ThreadState { phase, tells_of_new: true };
                let to = before.on(event, &around);
                let written = to.actions.iter().filter(|action| matches!(action, Action::WriteBurst(_))).count();
                let lost = before.is_in_burst() && !to.state.is_in_burst();
                assert_eq!(written, usize::from(lost), "{event:?} in {phase:?}: {to:?}");
            }
        }
    }

    #[test]
    fn a_breakpoint_is_waited_for_with_patience() {
        let around = around();
        let underway = Phase::Underway(Underway { address: AT, again: false, since: around.now });
        let state = ThreadState { phase: underway, tells_of_new: true };
        let at = |since_then| Surroundings { now: around.now + since_then, ..around };
        assert_eq!(state.on(Event::Look, &at(PATIENCE)).state, state);
        let given_up = state.on(Event::Look, &at(PATIENCE + Duration::from_millis(1)));
        assert_eq!(given_up.state.phase, Phase::Sampling);
        assert!(given_up.actions.contains(&Action::WriteBurst("breakpoint not reached")));
    }

    #[test]
    fn over_budget_new_threads_are_left_out_and_signals_cost_the_tracing() {
        let over = Surroundings { over_budget: true, has_room: false, ..around() };
        let state = ThreadState { phase: Phase::Sampling, tells_of_new: true };
        let silent = state.on(Event::Stopped(Stop::StartedAnother), &over);
        assert_eq!((silent.state.tells_of_new, silent.actions[1]), (false, Action::TellOfNewThreads(false)));
        let let_go = state.on(Event::Stopped(Stop::Signal(10)), &over);
        assert_eq!(let_go.release, Some(Release::LetGo(10)));
        // Where nobody would find them again, for example, they are kept.
        let kept = state.on(Event::Stopped(Stop::Signal(10)), &Surroundings { may_be_let_go: false, ..over });
        assert_eq!(kept.release, Some(Release::Run(10)));
        // With room again, the next stop of any kind makes it tell of new ones.
        let tells = silent.state.on(Event::Stopped(Stop::Signal(10)), &around());
        assert_eq!((tells.state.tells_of_new, tells.actions[1]), (true, Action::TellOfNewThreads(true)));
    }
}
