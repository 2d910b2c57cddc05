//! Whole lives of threads, as scripts: what happens to them, and what the tracer asks of the kernel then.

use std::sync::Arc;

use perfdata::{AttrFlags, EventAttr, SampleFormat};

use crate::tracer::budget::stop_cost::StopCost;
use crate::tracer::burst::BurstEvent;
use crate::tracer::engine::Engine;
use crate::tracer::kernel::scripted::Input::{
    self, Appears, Blocks, Breakpoint, Clock, ClockTellsTracer, Clone, Ends, Exec, Interrupt, JobControl, Pends,
    PendsNone, PendsOwn, Returns, Signal, Sleeps, StandsAt, Start, Starts, Stop, Time,
};
use crate::tracer::kernel::scripted::{CODE, ScriptedKernel};
use crate::tracer::options::{BurstEnd, TracerKind};
use crate::tracer::placement::Placement;
use crate::tracer::settings::Settings;
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;

/// `inc rax`, and round again: a burst ends with its instructions.
const LOOP: &[u8] = &[0x48, 0xff, 0xc0, 0xeb, 0xfb];
/// `inc rax`, a system call, and round again: a burst has to let the thread make the call.
const CALLS: &[u8] = &[0x48, 0xff, 0xc0, 0x0f, 0x05, 0xeb, 0xf9];
/// After the call.
const AFTER: u64 = CODE + 5;
/// `nop`, and a conditional jump to itself and on: a branch to be evaluated, where breakpoints are all there is.
const BRANCHES: &[u8] = &[0x90, 0x74, 0xfd, 0x90, 0xeb, 0xfa];

/// What the thread that is traced says, and what the tracer then asks for.
type Round = (Input, &'static [&'static str]);

struct Replay {
    settings: Settings,
    threads: Vec<(i32, i32)>,
    code: &'static [u8],
}

impl Replay {
    fn of(code: &'static [u8]) -> Self {
        let settings = Settings::of_test(BurstEnd::Instructions { instructions: 100 }, 100.0);
        Self { settings, threads: vec![(7, 7)], code }
    }

    /// Traces process 7 through the rounds, and checks what is asked for after each of them.
    fn check(self, rounds: &[Round]) -> TracerStatistics {
        let shared = Arc::new(Shared::new().unwrap());
        let inputs: Vec<Input> = rounds.iter().map(|&(input, _)| input).collect();
        let kernel = ScriptedKernel::new(&self.threads, self.code, &inputs, &shared);
        let attr = EventAttr {
            sample_format: SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME,
            flags: AttrFlags(0),
            ..EventAttr::default()
        };
        let event = BurstEvent { attr, id: 1 };
        let mut engine = Engine::new(
            self.settings,
            event,
            shared,
            kernel.clone(),
            Placement::afar(),
            StopCost::built_in("a script"),
        );
        let mut ids: Vec<u32> = self.threads.iter().map(|&(_, pid)| pid as u32).collect();
        ids.dedup();
        engine.attach(&ids, true).unwrap();
        let statistics = engine.run();
        let mut world = kernel.world();
        // What is asked for after the last wait is not followed by another one.
        let mut asked = std::mem::take(&mut world.rounds);
        asked.push(world.unheard());
        for (index, (input, expected)) in rounds.iter().enumerate() {
            assert_eq!(asked[index + 1], *expected, "after {input:?}, the {}th of {inputs:?}", index + 1);
        }
        statistics
    }
}

const STARTS: Round = (Start, &["clock of 7 sends 28 to 7", "clock of 7 started"]);
const BURST: Round = (Clock(7), &["clock of 7 started", "run 7"]);
const TO_CALL: Round = (Clock(7), &["breakpoint of 7 at 0x401005", "breakpoint of 7 sends 28 to 7", "run 7"]);
const TO_CALL_AGAIN: Round = (Clock(7), &["breakpoint of 7 at 0x401005", "run 7"]);
const ENDS: Round = (Stop, &["clock of 7 silent"]);
const ENDS_AFTER_BREAKPOINT: Round = (Stop, &["clock of 7 silent", "breakpoint of 7 silent"]);
const GIVEN_UP: &[&str] = &["breakpoint of 7 off", "clock of 7 started", "run 7"];

#[test]
fn a_clock_overflows_and_a_burst_is_taken() {
    let done = Replay::of(LOOP).check(&[STARTS, BURST, BURST, ENDS]);
    assert_eq!((done.bursts, done.instructions, done.sampling_stops, done.other_stops), (2, 200, 2, 0));
    assert_eq!(done.ends["instruction budget"], 2);
}

#[test]
fn an_overflow_while_the_signals_are_blocked_is_told_to_the_tracer() {
    let blocked = 1 << (libc::SIGWINCH - 1) | 1 << (libc::SIGURG - 1);
    let done = Replay::of(LOOP).check(&[
        STARTS,
        (Blocks(7, blocked), &[]),
        // The first burst finds that they are blocked from now on.
        (Clock(7), &["clock of 7 tells the tracer", "clock of 7 started", "run 7"]),
        (ClockTellsTracer(7), &["interrupt 7"]),
        (Interrupt(7), &["clock of 7 started", "run 7"]),
        // They are not blocked any more: soon again, and by a signal.
        (Blocks(7, 0), &[]),
        (ClockTellsTracer(7), &["clock of 7 sends 28 to 7", "clock of 7 started"]),
        BURST,
        ENDS,
    ]);
    assert_eq!(done.bursts, 3);
}

#[test]
fn a_thread_that_waits_in_a_system_call_is_not_interrupted() {
    Replay::of(LOOP).check(&[
        (Blocks(7, u64::MAX), &[]),
        (Start, &["clock of 7 tells the tracer", "clock of 7 started"]),
        (Sleeps(7), &[]),
        (ClockTellsTracer(7), &["clock of 7 started"]),
        ENDS,
    ]);
}

#[test]
fn a_signal_that_is_blocked_is_found_and_the_tracer_is_told_instead() {
    Replay::of(LOOP).check(&[
        STARTS,
        (Blocks(7, 1 << (libc::SIGWINCH - 1)), &[]),
        (Pends(7, libc::SIGWINCH), &[]),
        // Its clock is overdue, and a look later its signal still waits.
        (Time(20_000), &[]),
        (Time(300), &["clock of 7 tells the tracer", "clock of 7 started"]),
        (ClockTellsTracer(7), &["clock of 7 sends 23 to 7", "clock of 7 started"]),
        // The signal is not to be left to whoever waits for it.
        (Stop, &["clock of 7 silent", "interrupt 7"]),
    ]);
}

#[test]
fn a_breakpoint_after_a_system_call_is_reached() {
    let done = Replay::of(CALLS).check(&[
        STARTS,
        TO_CALL,
        (Breakpoint(7, AFTER), &["breakpoint of 7 at 0x401005", "run 7"]),
        (Breakpoint(7, AFTER), &["breakpoint of 7 at 0x401005", "run 7"]),
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!((done.breakpoints, done.breakpoints_missed, done.bursts), (2, 0, 1), "written when the recording ends");
    assert_eq!((done.continued["system call"], done.ends["end of the recording"]), (3, 1));
}

#[test]
fn a_breakpoint_reached_elsewhere_ends_the_burst() {
    let done = Replay::of(CALLS).check(&[STARTS, TO_CALL, (Breakpoint(7, CODE), GIVEN_UP), ENDS_AFTER_BREAKPOINT]);
    assert_eq!((done.breakpoints, done.breakpoints_missed), (1, 1));
    assert_eq!(done.ends["breakpoint reached elsewhere"], 1);
}

#[test]
fn a_breakpoint_that_is_not_reached_is_given_up_after_a_while() {
    let done = Replay::of(CALLS).check(&[
        STARTS,
        TO_CALL,
        (Time(100), &[]),
        (Time(600), &["breakpoint of 7 off", "clock of 7 started"]),
        // It comes after all: nobody waits for it.
        (Breakpoint(7, AFTER), &["run 7"]),
        TO_CALL_AGAIN,
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!((done.breakpoints, done.breakpoints_missed, done.ends["breakpoint not reached"]), (0, 1, 1));
}

#[test]
fn a_breakpoint_where_the_thread_stands_is_meant_the_second_time() {
    let to = &["breakpoint of 7 at 0x401005", "run 7"];
    let done = Replay::of(CALLS).check(&[
        STARTS,
        (StandsAt(7, AFTER), &[]),
        // The way back to the call goes round the loop: the thread stands where it is to stop after it.
        TO_CALL,
        (Breakpoint(7, AFTER), &["run 7"]),
        (Breakpoint(7, AFTER), to),
        // Reached by the breakpoint, it is not hit again at once.
        (Breakpoint(7, AFTER), to),
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!(done.breakpoints_missed, 0);
}

#[test]
fn branches_by_breakpoints_alone() {
    let mut replay = Replay::of(BRANCHES);
    replay.settings.kind = TracerKind::Breakpoint;
    replay.settings.end = BurstEnd::Branches { branches: 2 };
    let done = replay.check(&[
        STARTS,
        (Clock(7), &["breakpoint of 7 at 0x401001", "breakpoint of 7 sends 28 to 7", "run 7"]),
        (Breakpoint(7, CODE + 1), &["breakpoint of 7 at 0x401001", "run 7"]),
        (Breakpoint(7, CODE + 1), GIVEN_UP),
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!((done.ends["branch depth"], done.taken_branches, done.static_branches), (1, 2, 2));
}

#[test]
fn exec_ends_a_burst_and_begins_anew() {
    let done = Replay::of(CALLS).check(&[
        STARTS,
        TO_CALL,
        (Exec(7, 7), &["breakpoint of 7 off", "clock of 7 started", "run 7"]),
        TO_CALL_AGAIN,
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!((done.ends["exec"], done.other_stops, done.threads, done.processes), (1, 1, 1, 1));
}

#[test]
fn exec_of_another_thread_takes_the_place_of_the_first() {
    let mut replay = Replay::of(CALLS);
    replay.threads = vec![(7, 7), (8, 7)];
    let done = replay.check(&[
        (
            Start,
            &[
                "clock of 7 sends 28 to 7",
                "clock of 7 started",
                "seize 8",
                "clock of 8 sends 28 to 8",
                "clock of 8 started",
            ],
        ),
        // The clock of the first thread goes with it, in whatever order they were started.
        (Exec(7, 8), &["clock of 8 sends 28 to 7", "run 7"]),
        (Stop, &["clock of 8 silent"]),
    ]);
    assert_eq!((done.threads, done.other_stops), (2, 1));
}

#[test]
fn a_new_thread_is_seized_by_its_clone() {
    let done = Replay::of(LOOP).check(&[
        STARTS,
        (Clone(7), &["run 7"]),
        (Appears(8, 7), &["clock of 8 sends 28 to 8", "clock of 8 started", "run 8"]),
        (Clock(8), &["clock of 8 started", "run 8"]),
        (Appears(9, 9), &["clock of 9 sends 28 to 9", "clock of 9 started", "run 9"]),
        (Ends(8, 0), &[]),
        (Ends(9, 256), &[]),
        ENDS,
    ]);
    assert_eq!((done.threads, done.processes, done.bursts, done.other_stops), (3, 2, 1, 3));
}

#[test]
fn job_control_stops_a_thread_that_stays_so() {
    let done = Replay::of(CALLS).check(&[
        STARTS,
        (Signal(7, libc::SIGTSTP), &["run 7 with 20"]),
        (JobControl(7, libc::SIGTSTP), &["listen 7"]),
        // SIGCONT: the stop has ended.
        (Interrupt(7), &["run 7"]),
        TO_CALL,
        (JobControl(7, libc::SIGSTOP), &["listen 7"]),
        (Interrupt(7), &["run 7"]),
        (Breakpoint(7, AFTER), &["breakpoint of 7 at 0x401005", "run 7"]),
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!((done.other_stops, done.breakpoints), (5, 1));
}

#[test]
fn a_signal_of_the_program_on_the_way_to_a_breakpoint_is_passed_on() {
    let done = Replay::of(CALLS).check(&[
        STARTS,
        TO_CALL,
        (Signal(7, libc::SIGUSR1), &["run 7 with 10"]),
        // One of the same kind as the tracer's, but nobody's clock sent it.
        (Signal(7, libc::SIGWINCH), &["run 7 with 28"]),
        (Breakpoint(7, AFTER), &["breakpoint of 7 at 0x401005", "run 7"]),
        ENDS_AFTER_BREAKPOINT,
    ]);
    assert_eq!((done.breakpoints, done.breakpoints_missed, done.backed_off), (1, 0, 0));
}

#[test]
fn another_stop_takes_the_place_of_the_one_that_was_asked_for() {
    let done = Replay::of(LOOP).check(&[
        (Blocks(7, u64::MAX >> 1), &[]),
        (Start, &["clock of 7 tells the tracer", "clock of 7 started"]),
        (ClockTellsTracer(7), &["interrupt 7"]),
        (Signal(7, libc::SIGUSR1), &["interrupt 7", "run 7 with 10"]),
        (Clone(7), &["interrupt 7", "run 7"]),
        (Exec(7, 7), &["interrupt 7", "run 7"]),
        (Interrupt(7), &["clock of 7 started", "run 7"]),
        // A signal from before is passed over.
        (Clock(7), &["run 7"]),
        ENDS,
    ]);
    assert_eq!(done.bursts, 1);
}

#[test]
fn a_thread_ends_in_a_burst() {
    let done = Replay::of(CALLS).check(&[STARTS, TO_CALL, (Ends(7, 0), &["breakpoint of 7 off"]), (Stop, &[])]);
    assert_eq!((done.bursts, done.ends["end of the thread"]), (1, 1));
}

#[test]
fn a_system_call_that_a_stop_interrupted_is_restarted() {
    let eintr = -i64::from(libc::EINTR);
    Replay::of(LOOP).check(&[
        STARTS,
        (Returns(7, eintr, libc::SYS_epoll_wait), &[]),
        (Signal(7, libc::SIGCHLD), &["restart the call of 7 (-514)", "run 7 with 17"]),
        // `nanosleep` tells how much is left: it knows what to do with EINTR.
        (Returns(7, eintr, libc::SYS_nanosleep), &[]),
        (Signal(7, libc::SIGCHLD), &["run 7 with 17"]),
        // Not at all interrupted.
        (Returns(7, 3, libc::SYS_epoll_wait), &[]),
        (Signal(7, libc::SIGCHLD), &["run 7 with 17"]),
        ENDS,
    ]);
}

#[test]
fn no_burst_begins_in_a_system_call_that_the_kernel_restarts() {
    let done = Replay::of(LOOP).check(&[
        STARTS,
        (Returns(7, -512, libc::SYS_read), &[]),
        (Clock(7), &["clock of 7 started", "run 7"]),
        ENDS,
    ]);
    assert_eq!((done.bursts, done.sampling_stops, done.ends["interrupted system call"]), (0, 1, 1));
}

#[test]
fn threads_that_were_there_are_traced_one_after_the_other_and_children_that_were_are_not() {
    let shared = Arc::new(Shared::new().unwrap());
    let script = [Starts(10, 7), Start, Time(100), Time(100), Time(100)];
    let kernel = ScriptedKernel::new(&[(7, 7), (8, 7), (9, 9)], LOOP, &script, &shared);
    let event = BurstEvent { attr: EventAttr::default(), id: 1 };
    let (settings, cost) = (Replay::of(LOOP).settings, StopCost::built_in("a script"));
    let mut engine = Engine::new(settings, event, shared, kernel.clone(), Placement::afar(), cost);
    engine.attach(&[7], true).unwrap();
    assert_eq!(kernel.world().unheard(), ["seize 7"], "one is enough to know that it can be");
    let done = engine.run();
    let asked = kernel.world().all_asked();
    let seized: Vec<&String> = asked.iter().filter(|request| request.starts_with("seize")).collect();
    assert_eq!(seized, ["seize 8", "seize 10"], "the last was started before thread 8 was traced");
    assert_eq!((done.threads, done.processes, done.starting.threads), (3, 1, 3));
}

/// What is asked for when the recording of a program that has handlers for the signals of clocks has ended.
fn asked_at_the_end(script: &[Input]) -> Vec<String> {
    let shared = Arc::new(Shared::new().unwrap());
    let kernel = ScriptedKernel::new(&[(7, 7)], LOOP, script, &shared);
    kernel.world().caught = BOTH;
    let event = BurstEvent { attr: EventAttr::default(), id: 1 };
    let (settings, cost) = (Replay::of(LOOP).settings, StopCost::built_in("a script"));
    let mut engine = Engine::new(settings, event, shared, kernel.clone(), Placement::afar(), cost);
    engine.attach(&[7], true).unwrap();
    assert_eq!(engine.run().bursts, 0);
    let asked = kernel.world().all_asked();
    let end = asked.iter().position(|request| request == "clock of 7 silent").unwrap();
    asked[end + 1..].to_vec()
}

const BOTH: u64 = 1 << (libc::SIGWINCH - 1) | 1 << (libc::SIGURG - 1);

#[test]
fn a_clock_that_overflows_at_the_end_is_swallowed() {
    let asked = asked_at_the_end(&[Start, Pends(7, libc::SIGWINCH), Stop, Clock(7)]);
    assert_eq!(asked, ["run 7"], "it never gets the signal");
}

#[test]
fn a_signal_that_is_blocked_at_the_end_is_taken_before_the_thread_is_let_go() {
    let blocked = [Start, Blocks(7, BOTH), Pends(7, libc::SIGWINCH)];
    let ends = |then: &[Input]| asked_at_the_end(&[&blocked[..], then].concat());
    let takes = ["interrupt 7", "let through 7", "run 7"];
    assert_eq!(ends(&[Stop, Interrupt(7), Clock(7)]), [&takes[..], &["run 7"]].concat());
    // Another signal comes before it. Its handler is to have the mask that the program has chosen.
    let (before, after) = ([Stop, Interrupt(7), Signal(7, libc::SIGUSR1)], [Interrupt(7), Clock(7)]);
    let asked = ends(&[&before[..], &[Time(1); 20], &after].concat());
    assert_eq!(asked, [&takes[..], &["run 7 with 10"], &takes, &["run 7"]].concat());
    // It is ignored meanwhile: the thread is stopped again, so that it blocks it again.
    let none = [Stop, Interrupt(7), PendsNone(7)];
    let asked = ends(&[&none[..], &[Time(1); 20], &[Interrupt(7)]].concat());
    assert_eq!(asked, [&takes[..], &["interrupt 7", "run 7"]].concat());
    // A thread that ends has nothing to block.
    assert_eq!(ends(&[Stop, Interrupt(7), Ends(7, 0)]), takes);
    // A thread that waits in a system call is not interrupted.
    assert!(ends(&[Sleeps(7), Stop]).is_empty());
}

#[test]
fn a_signal_of_the_program_that_is_blocked_at_the_end_stays() {
    let script = [Start, Blocks(7, BOTH), PendsOwn(7, libc::SIGWINCH), Stop, Interrupt(7)];
    let asked = asked_at_the_end(&[&script[..], &[Time(1000)]].concat());
    assert_eq!(asked, ["interrupt 7", "run 7"]);
}
