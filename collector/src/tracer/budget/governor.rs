//! Keeps recording within its budget by adapting how often threads are stopped.

use std::time::Duration;

use crate::tracer::budget::stop_cost::FIRST_BURST;

/// Periods between bursts of one thread, ns of its CPU time.
const SHORTEST: f64 = 50_000.0;
const LONGEST: f64 = 10e9;
/// How far back is looked, ns of CPU time, if that is ten bursts or more.
const MEMORY: f64 = 5e9;
/// Over so much CPU time, ns, it is made up for what was spent at once.
const SPREAD: f64 = 3e9;
/// CPU time that is taken to have passed on budget when a program begins, ns: its first moments are no reason for extremes.
const GRACE: f64 = 1e9;
/// The same where the program is running already, with many threads perhaps that may all cost something at once.
const HEAD_START: f64 = 0.25e9;

/// CPU time, ns, that counts as all in user space before anything is known.
const CERTAIN: f64 = 0.2e9;
/// Periods vary by chance: what is known of user space may be so much too little.
const TOLERANCE: f64 = 1.1;
/// Bursts do not come more often than this makes them, whatever part of the time the kernel takes.
const LEAST_USER_SHARE: f64 = 0.05;
/// How far back is looked for what is spent on anything but bursts, ns of CPU time, if that is two looks at it or more. It costs much to begin,
/// and to write the many bursts of the first seconds, and none of that goes on.
const OTHERS_MEMORY: f64 = 1e9;
/// Before a burst was seen, what one costs is a guess: of the credit no more than this share of the CPU time is spent.
const GUESSED: f64 = 0.05;
/// In so much CPU time, ns, two thirds of what is left of the start credit are spent. Bursts become rarer bit by bit: where they do at once, few of
/// them stand for most of the time of a program of some seconds.
const CREDIT_SPREAD: f64 = 1e9;

/// What came in lumps and is taken off in parts, ns.
#[derive(Clone, Debug, Default)]
struct Lumps {
    left: f64,
    /// The part that each ns of CPU time takes.
    per_ns: f64,
}

impl Lumps {
    fn add(&mut self, lump: f64) {
        self.left += lump;
        self.per_ns = self.left / SPREAD;
    }

    /// Takes off so much, or what is left; returns how much it was.
    fn take(&mut self, most: f64) -> f64 {
        let part = most.min(self.left);
        self.left -= part;
        part
    }

    /// Takes off what so much CPU time does.
    fn passed(&mut self, time: f64) -> f64 {
        self.take(self.per_ns * time)
    }
}

/// Decides how much CPU time is to pass between two bursts of a thread.
///
/// Let o be the share of CPU time that may be spent, k the credit that is left per second of CPU time, e the share that is spent on anything but
/// bursts (threads that begin and are looked for, signals of the program, writing), c what a burst costs on average, u the share of user space in
/// the CPU time. A burst every c u / (o + k - e) of CPU time in user space keeps the budget; where the costs change, the ratio of what was spent to
/// what could have been spent makes up for it. The sums fade over the last seconds. Until somebody looks how much CPU time passed, it is as much
/// as bursts stood for.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    budget: f64,
    burst_cost: f64,
    bursts: u32,
    /// Sums that fade with CPU time, ns.
    spent: f64,
    passed: f64,
    /// What of it is known by bursts alone, ns: who looks how much CPU time passed is told of that, too,
    passed_by_bursts: f64,
    /// and was told of so much the last time.
    looked_at: f64,
    /// CPU time that bursts stood for, ns: that of user space, which clocks count.
    stood_for: f64,
    last_stood_for: f64,
    /// What was spent lately and not on bursts, ns: how much of it there is fades within [`OTHERS_MEMORY`].
    others: f64,
    /// Threads that have clocks and may compute.
    pub(crate) threads: usize,
    /// What was spent at once, and is still to be taken off.
    at_once: Lumps,
    /// What writing bursts took, and is still to be taken off: by the bursts, too.
    written: Lumps,
    /// What may be spent on top, ns, and what time has given of it, which fades as the sums do.
    credit: f64,
    credited: f64,
    /// As if so much CPU time had passed on budget before.
    grace: f64,
    random: fastrand::Rng,
}

impl Governor {
    /// `budget`: the share of the threads' CPU time that may be spent, 0.01 for 1 %. `credit`: what may be spent on top in the first seconds
    /// of CPU time.
    pub(crate) fn new(budget: f64, credit: Duration, seed: u64) -> Self {
        Self {
            budget: budget.max(1e-6),
            burst_cost: FIRST_BURST.as_nanos() as f64,
            bursts: 0,
            spent: 0.0,
            passed: 0.0,
            passed_by_bursts: 0.0,
            looked_at: 0.0,
            stood_for: 0.0,
            last_stood_for: 0.0,
            others: 0.0,
            threads: 1,
            at_once: Lumps::default(),
            written: Lumps::default(),
            credit: credit.as_nanos() as f64,
            credited: 0.0,
            grace: GRACE,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Recording took this much CPU time.
    pub(crate) fn spent(&mut self, time: Duration) {
        self.add_spent(time.as_nanos() as f64);
    }

    fn add_spent(&mut self, time: f64) {
        self.spent += time;
        // While a program computes nothing, nothing fades: more than leaves no room for bursts makes no difference but how long that lasts.
        self.others = (self.others + time).min(2.0 * self.budget * self.others_memory() + self.credit);
    }

    fn others_memory(&self) -> f64 {
        OTHERS_MEMORY.max(2.0 * self.looked_at)
    }

    /// Preparing took this much, while the program was running.
    pub(crate) fn prepared(&mut self, time: Duration) {
        self.spread(time);
        self.grace = HEAD_START;
    }

    /// So much was spent at once. It is taken off what may be spent over the next seconds of CPU time: all at once, there would be no
    /// bursts for as long.
    pub(crate) fn spread(&mut self, time: Duration) {
        self.at_once.add(time.as_nanos() as f64);
    }

    /// Writing what bursts left took this much, of many bursts at once. Each burst takes off as much as it costs, beside what time does: what
    /// comes again and again does not pile up.
    pub(crate) fn written(&mut self, time: Duration) {
        self.written.add(time.as_nanos() as f64);
    }

    /// Threads ran for this long since this was told last.
    pub(crate) fn passed(&mut self, time: Duration) {
        let time = time.as_nanos() as f64;
        self.looked_at = time;
        let known = self.passed_by_bursts;
        self.advance((time - known).max(0.0));
        // Each thread's last burst may have stood for some of what comes next.
        self.passed_by_bursts = (known - time).clamp(0.0, self.last_stood_for * self.threads as f64);
    }

    /// So much CPU time passes.
    fn advance(&mut self, time: f64) {
        self.passed += time;
        self.others *= (-time / self.others_memory()).exp();
        let lumps = self.at_once.passed(time) + self.written.passed(time);
        self.add_spent(lumps);
        let credited = self.credit * -(-time / CREDIT_SPREAD).exp_m1();
        self.credit -= credited;
        self.credited += credited;
        let memory = MEMORY.max(10.0 * self.burst_cost / self.budget);
        if self.passed > memory {
            let fade = memory / self.passed;
            self.passed *= fade;
            self.stood_for *= fade;
            self.spent *= fade;
            self.credited *= fade;
        }
    }

    /// A burst has ended that cost so much in all, which [`spent`](Self::spent) was told, too, and stood for so much CPU time in user
    /// space, ns. So much has passed, then: to look costs too much to do it often, and in its first moments a program would seem to stand
    /// still, for which nothing may be spent.
    pub(crate) fn burst(&mut self, cost: Duration, stood_for: f64) {
        let cost = cost.as_nanos() as f64;
        self.others -= cost;
        // A program can have written anything.
        let stood_for = stood_for.min(2.0 * LONGEST);
        self.advance(stood_for);
        self.passed_by_bursts += stood_for;
        self.stood_for += stood_for;
        self.last_stood_for = stood_for;
        let written = self.written.take(cost);
        self.add_spent(written);
        // The first ones of a program find everything cold: no reason to wait long for the next.
        let cost = cost.min(3.0 * self.burst_cost);
        // The guess counts as one burst.
        self.bursts = (self.bursts + 1).min(15);
        self.burst_cost += (cost - self.burst_cost) / f64::from(self.bursts + 1);
    }

    /// What was spent in units of what could have been.
    fn ratio(&self) -> f64 {
        (self.spent + self.budget * self.grace) / (self.budget * (self.passed + self.grace) + self.credited)
    }

    /// The part of the CPU time that bursts can come in: what the kernel does for a program is not counted by its clocks.
    fn user_share(&self) -> f64 {
        // The next burst of each thread is on its way, by half a period on average.
        let known = self.stood_for + self.last_stood_for * self.threads as f64 / 2.0 + CERTAIN;
        (TOLERANCE * known / (self.passed + CERTAIN)).clamp(LEAST_USER_SHARE, 1.0)
    }

    /// CPU time in user space between two bursts, ns, without jitter.
    pub(crate) fn period(&self) -> f64 {
        let others = self.others.max(0.0) / self.others_memory();
        let credit = self.credit / CREDIT_SPREAD;
        let credit = if self.bursts == 0 { credit.min(GUESSED) } else { credit };
        let left = (self.budget + credit - others).max(self.budget / 20.0);
        (self.burst_cost / left * self.user_share() * self.ratio().clamp(0.5, 4.0)).clamp(SHORTEST, LONGEST)
    }

    /// Whether something that costs so much, and can wait, may be done now: what was spent with it would be within what may be.
    pub(crate) fn affords(&self, cost: Duration) -> bool {
        self.spent + cost.as_nanos() as f64 <= self.budget * (self.passed + HEAD_START) + self.credited
    }

    /// Whether so much was spent that what is not for bursts must become less, too.
    pub(crate) fn exceeded(&self) -> bool {
        self.ratio() > 1.5
    }

    /// Whether there is room for it again.
    pub(crate) fn has_room(&self) -> bool {
        self.ratio() < 1.2
    }

    /// A factor from 0.5 to 1.5, so that bursts do not fall in step with the program.
    pub(crate) fn jitter(&mut self) -> f64 {
        0.5 + self.random.f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_tell_that_time_passes_before_anyone_looks() {
        const BUDGET: f64 = 0.01;
        let cost = Duration::from_micros(200);
        let mut governor = Governor::new(BUDGET, Duration::from_millis(50), 7);
        // What begins with the program.
        governor.spent(Duration::from_millis(5));
        let (mut now, mut spent) = (0.0, 0.0);
        while now < 0.8e9 {
            let period = governor.period();
            now += period;
            governor.spent(cost);
            governor.burst(cost, period);
            spent += cost.as_nanos() as f64;
        }
        let allowed = BUDGET * now + 0.55 * 50e6 - 5e6;
        assert!((0.9..1.1).contains(&(spent / allowed)), "{spent} of {allowed}");

        // What was passed is told once: by the bursts, or by who looks.
        let before = governor.clone();
        governor.passed(Duration::from_nanos(now as u64));
        assert!((governor.passed - before.passed).abs() < 1e3 && governor.passed_by_bursts < 1.0, "{governor:?}");
        governor.passed(Duration::from_millis(100));
        assert!((governor.passed - before.passed - 100e6).abs() < 1e3, "{governor:?}");
        // A burst that stood for more than there was yet.
        governor.burst(cost, 50e6);
        governor.passed(Duration::from_millis(20));
        governor.passed(Duration::from_millis(40));
        assert!((governor.passed - before.passed - 160e6).abs() < 1e3, "{governor:?}");
        // What bursts can have stood for too early has a limit.
        (0..10).for_each(|_| governor.burst(cost, 50e6));
        governor.passed(Duration::ZERO);
        assert!((governor.passed_by_bursts - 50e6).abs() < 1e3, "{governor:?}");
    }

    /// A tick of a machine with 64 busy CPUs, told at once, is no more than it is.
    #[test]
    fn what_many_cpus_do_between_two_looks_does_not_hide_what_is_left_for_bursts() {
        const BUDGET: f64 = 0.01;
        let mut governor = Governor::new(BUDGET, Duration::ZERO, 7);
        for _ in 0..100 {
            for _ in 0..800 {
                governor.spent(Duration::from_micros(300));
                governor.burst(Duration::from_micros(300), 32e6);
            }
            governor.passed(Duration::from_millis(25_600));
            governor.spent(Duration::from_millis(10));
        }
        // 300 us / 1 % with 10 ms in 25.6 s beside them.
        assert!((25e6..40e6).contains(&governor.period()), "{governor:?}");
    }

    #[test]
    fn an_idle_program_that_wakes_up_has_bursts_soon() {
        const BUDGET: f64 = 0.01;
        let mut governor = Governor::new(BUDGET, Duration::ZERO, 7);
        (0..10_000).for_each(|_| governor.spent(Duration::from_micros(60)));
        let cost = Duration::from_micros(200);
        let (mut now, mut bursts) = (0.0, 0);
        while now < 5e9 {
            let period = governor.period();
            now += next_burst(&mut governor, cost, period, 1.0);
            bursts += 1;
        }
        assert!(bursts > 20, "{bursts}");
    }

    /// A burst of this cost after so much CPU time in user space, ns, which is this share of all. Returns how much CPU time passed.
    fn next_burst(governor: &mut Governor, cost: Duration, stood_for: f64, user: f64) -> f64 {
        let passed = stood_for / user;
        governor.passed(Duration::from_nanos(passed as u64));
        governor.spent(cost);
        governor.burst(cost, stood_for);
        passed
    }

    /// Runs a thread for `seconds` of CPU time, `user` of it in user space; returns the share spent.
    fn simulate(budget: f64, cost: Duration, other: Duration, user: f64, seconds: u64) -> f64 {
        let mut governor = Governor::new(budget, Duration::ZERO, 7);
        let (mut now, mut spent) = (0.0, Duration::ZERO);
        while now < seconds as f64 * 1e9 {
            let stood_for = governor.period() * governor.jitter();
            let period = next_burst(&mut governor, cost, stood_for, user);
            now += period;
            // Other stops come with time, not with bursts.
            let others = other.mul_f64(period / 1e9);
            governor.spent(others);
            spent += cost + others;
        }
        spent.as_nanos() as f64 / now
    }

    #[test]
    fn the_budget_is_kept() {
        for budget in [0.001, 0.01, 0.05, 0.5] {
            for cost in [40, 250, 3000] {
                let share = simulate(budget, Duration::from_micros(cost), Duration::ZERO, 1.0, 200);
                assert!((0.8..1.1).contains(&(share / budget)), "{budget} {cost}: {share}");
            }
        }
    }

    #[test]
    fn other_stops_are_made_up_for() {
        let share = simulate(0.01, Duration::from_micros(250), Duration::from_millis(5), 1.0, 200);
        assert!((0.008..0.0125).contains(&share), "{share}");
    }

    /// What writing bursts takes comes in lumps, and is made up for before the next one comes.
    #[test]
    fn what_comes_with_bursts_does_not_pile_up() {
        const BUDGET: f64 = 0.05;
        let (cost, of_recorder) = (Duration::from_micros(300), Duration::from_micros(240));
        let mut governor = Governor::new(BUDGET, Duration::ZERO, 7);
        let (mut now, mut spent, mut waiting) = (0.0, Duration::ZERO, Duration::ZERO);
        for bursts in 1.. {
            let period = governor.period();
            now += next_burst(&mut governor, cost, period, 1.0);
            waiting += of_recorder;
            spent += cost + of_recorder;
            if bursts % 25 == 0 {
                governor.written(std::mem::take(&mut waiting));
            }
            if now > 6e9 {
                break;
            }
        }
        let share = spent.as_nanos() as f64 / now / BUDGET;
        assert!((0.9..1.15).contains(&share), "{share}");
    }

    #[test]
    fn what_the_kernel_does_for_a_program_is_budget_for_its_bursts() {
        for user in [0.1, 0.3, 0.7] {
            let share = simulate(0.01, Duration::from_micros(250), Duration::ZERO, user, 200);
            assert!((0.8..1.1).contains(&(share / 0.01)), "{user}: {share}");
        }
    }

    #[test]
    fn what_was_spent_at_once_is_made_up_for_over_the_next_seconds() {
        const BUDGET: f64 = 0.01;
        let (cost, at_once) = (Duration::from_millis(1), Duration::from_millis(30));
        let mut governor = Governor::new(BUDGET, Duration::ZERO, 7);
        governor.prepared(at_once);
        let (mut now, mut bursts, mut in_first_seconds) = (0.0, 0, 0);
        while now < 10e9 {
            let period = governor.period();
            now += next_burst(&mut governor, cost, period, 1.0);
            bursts += 1;
            in_first_seconds += u32::from(now < 3e9);
        }
        let allowed = BUDGET * 10e9 - at_once.as_nanos() as f64;
        let share = f64::from(bursts) * 1e6 / allowed;
        assert!((0.8..1.2).contains(&share), "{bursts} bursts, {share}");
        assert!(in_first_seconds >= 5, "there are bursts while it is made up for: {in_first_seconds}");
    }

    #[test]
    fn a_start_credit_is_spent_in_the_first_seconds_and_not_after() {
        const BUDGET: f64 = 0.01;
        let (cost, credit) = (Duration::from_micros(200), Duration::from_millis(50));
        // What it costs to begin, and to write what bursts left.
        let (beginning, writing) = (Duration::from_millis(10), Duration::from_micros(40));
        let mut governor = Governor::new(BUDGET, credit, 7);
        governor.spent(beginning);
        let (mut now, mut spent, mut longest) = (0.0, [beginning.as_nanos() as f64, 0.0, 0.0], 0.0_f64);
        while now < 13e9 {
            let period = governor.period();
            longest = longest.max(period);
            now += next_burst(&mut governor, cost, period, 1.0);
            governor.written(writing);
            spent[if now > 4e9 { 2 } else { usize::from(now > 1e9) }] += (cost + writing).as_nanos() as f64;
        }
        let [first, next, rest] = spent;
        let of_credit = |share: f64| 50e6 * share;
        assert!((0.9..1.1).contains(&(first / (BUDGET * 1e9 + of_credit(0.63)))), "{spent:?}");
        assert!((0.9..1.1).contains(&(next / (BUDGET * 3e9 + of_credit(0.35)))), "{spent:?}");
        assert!((0.9..1.1).contains(&(rest / (BUDGET * 9e9))), "{spent:?}");
        // A burst every 24 ms keeps the budget: none stands for much more.
        assert!(longest < 40e6, "{longest}");
    }

    #[test]
    fn jitter_is_spread_evenly() {
        let mut governor = Governor::new(0.01, Duration::ZERO, 99);
        let factors: Vec<f64> = (0..10_000).map(|_| governor.jitter()).collect();
        let mean = factors.iter().sum::<f64>() / 10_000.0;
        assert!((0.99..1.01).contains(&mean), "{mean}");
        assert!(factors.iter().all(|factor| (0.5..1.5).contains(factor)));
    }
}
