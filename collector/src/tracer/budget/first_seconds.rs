//! What tracing costs in its first seconds, where a program runs already.

use std::sync::Arc;
use std::time::Duration;

use perfdata::EventAttr;

use crate::tracer::budget::stop_cost::StopCost;
use crate::tracer::burst::BurstEvent;
use crate::tracer::engine::Engine;
use crate::tracer::kernel::scripted::ScriptedKernel;
use crate::tracer::options::{BurstSize, TracerKind};
use crate::tracer::placement::Placement;
use crate::tracer::settings::Settings;
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;

/// Budget for bursts and all else that the governor sees, of the CPU time.
const BUDGET: f64 = 0.01;

/// A program of so many threads, which together use `cpus` CPUs.
struct Program {
    threads: i32,
    cpus: f64,
    /// CPU time of the tracer before it begins.
    preparing: Duration,
    /// CPU time of the recorder before tracing begins, and as much once more in the first moments.
    recorder: Duration,
    /// What its first bursts cost, and then all of them.
    bursts: Vec<Duration>,
}

impl Program {
    /// Records so many seconds of it; time passes in pieces of 5 ms. Returns what was done, and the spent share of CPU time.
    fn record(&self, seconds: u64) -> (TracerStatistics, f64) {
        self.record_with(0, seconds)
    }

    /// The same, with this jitter of periods.
    fn record_with(&self, seed: u64, seconds: u64) -> (TracerStatistics, f64) {
        let settings = Settings::of_test(BurstSize::default().end(TracerKind::Lookahead), 100.0 * BUDGET);
        let shared = Arc::new(Shared::new().unwrap());
        let threads: Vec<(i32, i32)> = (0..self.threads).map(|index| (100 + index, 100)).collect();
        let kernel = ScriptedKernel::new(&threads, &[0x48, 0xff, 0xc0, 0xeb, 0xfb], &[], &shared);
        {
            let mut world = kernel.world();
            world.seed = seed;
            world.work = self.preparing;
            world.recorder = self.recorder;
            world.cost = Duration::from_micros(5);
            world.burst_costs.clone_from(&self.bursts);
            let share = self.cpus / f64::from(self.threads);
            let recorder = self.recorder;
            world.at_wait = Some(Box::new(move |world, timeout| {
                world.recorder = 2 * recorder;
                world.pass(timeout.min(Duration::from_millis(5)), share);
                world.elapsed < Duration::from_secs(seconds)
            }));
        }
        let event = BurstEvent { attr: EventAttr::default(), id: 1 };
        let cost = StopCost::built_in("a script");
        let mut engine = Engine::new(settings, event, shared.clone(), kernel, Placement::afar(), cost);
        engine.attach(&[100], true).unwrap();
        shared.started.store(true, std::sync::atomic::Ordering::Release);
        let done = engine.run();
        let share = done.time.spent().as_secs_f64() / done.time.application.as_secs_f64();
        (done, share)
    }
}

const fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

#[test]
fn many_threads_that_do_little_keep_the_budget_from_the_beginning() {
    // As a virtual machine of Java: its first bursts find everything cold.
    let bursts = [vec![us(4000); 2], vec![us(2000); 10], vec![us(1200)]].concat();
    for (threads, cpus) in [(26, 0.25), (26, 1.0), (60, 0.5), (200, 2.0)] {
        let program = Program { threads, cpus, preparing: us(2000), recorder: us(0), bursts: bursts.clone() };
        for seconds in [4, 8] {
            let (done, share) = program.record(seconds);
            // Preparing is spread over three seconds of CPU time, what is left of it comes on top; a burst may be too many.
            let used = done.time.application.as_secs_f64();
            let ahead = 0.002 + 0.0022 + 0.25 * BUDGET;
            assert!(
                share * used < BUDGET * used * 1.15 + ahead,
                "{threads} threads, {cpus} CPUs, {seconds} s: {:.2} % of {used:.2} s, {:?} {:?}",
                share * 100.0,
                done.time,
                done.starting,
            );
            assert!(done.bursts > 0, "{threads} threads, {cpus} CPUs, {seconds} s");
        }
    }
}

#[test]
fn all_threads_are_traced_in_the_end_one_after_the_other() {
    let program = Program { threads: 26, cpus: 0.5, preparing: us(1000), recorder: us(0), bursts: vec![us(300)] };
    let (done, _) = program.record(6);
    assert_eq!((done.threads, done.starting.threads), (26, 26));
    assert!(done.starting.took >= us(1000) && done.starting.lasted >= Duration::from_millis(20), "{:?}", done.starting);
}

#[test]
fn of_a_program_that_does_nothing_few_threads_are_traced() {
    let program = Program { threads: 400, cpus: 0.0, preparing: us(1000), recorder: us(0), bursts: vec![us(300)] };
    let (done, _) = program.record(4);
    assert!((1..200).contains(&done.threads), "{}", done.threads);
    let cost = done.time.spent().saturating_sub(us(1000));
    assert!(cost < Duration::from_millis(20), "{cost:?}");
}

/// How much the jitter of periods lets one recording spend is chance: 1.07 to 1.22 of the budget. What is kept to is the mean.
#[test]
fn what_the_recorder_takes_is_charged_and_said_and_bursts_come_all_the_same() {
    const RECORDINGS: u64 = 64;
    let program = Program { threads: 1, cpus: 1.0, preparing: us(5000), recorder: us(4000), bursts: vec![us(1000)] };
    let (mut shares, mut bursts) = (0.0, 0);
    for seed in 0..RECORDINGS {
        let (done, share) = program.record_with(seed, 4);
        assert!(done.starting.took >= us(13_000), "{:?}", done.starting);
        assert!(done.time.other >= us(13_000), "{:?}", done.time);
        shares += share / BUDGET;
        bursts += done.bursts;
    }
    // 40 ms may be spent, of which 13 are not for bursts.
    let (share, bursts) = (shares / RECORDINGS as f64, bursts / RECORDINGS);
    assert!((0.8..1.15).contains(&share), "{share}");
    assert!((18..=28).contains(&bursts), "{bursts}");
}
