//! Keeps recording within its budget by adapting how often threads are stopped.

use std::time::Duration;

/// Periods between bursts of one thread, ns of its CPU time.
const SHORTEST: f64 = 50_000.0;
const LONGEST: f64 = 10e9;
/// How far back is looked, ns of CPU time, if that is ten bursts or more.
const MEMORY: f64 = 5e9;
/// What a burst is taken to cost before one was seen, ns.
const GUESS: f64 = 250_000.0;

/// Decides how much CPU time is to pass between two bursts of a thread.
///
/// Let o be the share of CPU time that may be spent, e the share that stops take which are not for bursts (threads that begin and are
/// looked for, signals of the program), c what a burst costs on average. A burst every c / (o - e) keeps the budget; where the costs
/// change, the ratio of what was spent to what could have been spent makes up for it. All of it fades over the last seconds.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    budget: f64,
    burst_cost: f64,
    bursts: u32,
    /// Fading sums, ns.
    spent: f64,
    spent_on_bursts: f64,
    passed: f64,
    random: fastrand::Rng,
}

impl Governor {
    /// `budget`: the share of the threads' CPU time that may be spent, 0.01 for 1 %.
    pub(crate) fn new(budget: f64, seed: u64) -> Self {
        Self {
            budget: budget.max(1e-6),
            burst_cost: GUESS,
            bursts: 0,
            spent: 0.0,
            spent_on_bursts: 0.0,
            passed: 0.0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Recording took this much CPU time.
    pub(crate) fn spent(&mut self, time: Duration) {
        self.spent += time.as_nanos() as f64;
    }

    /// Threads ran for this long.
    pub(crate) fn passed(&mut self, time: Duration) {
        self.passed += time.as_nanos() as f64;
        let memory = MEMORY.max(10.0 * self.burst_cost / self.budget);
        if self.passed > memory {
            let fade = memory / self.passed;
            self.passed *= fade;
            self.spent *= fade;
            self.spent_on_bursts *= fade;
        }
    }

    /// A burst has ended that cost so much in all, which [`spent`](Self::spent) was told, too.
    pub(crate) fn burst(&mut self, cost: Duration) {
        let cost = cost.as_nanos() as f64;
        self.spent_on_bursts += cost;
        // The first ones of a program find everything cold: no reason to wait long for the next.
        let cost = cost.min(3.0 * self.burst_cost);
        // The guess counts as one burst.
        self.bursts = (self.bursts + 1).min(15);
        self.burst_cost += (cost - self.burst_cost) / f64::from(self.bursts + 1);
    }

    /// What was spent in units of what could have been.
    fn ratio(&self) -> f64 {
        // As if a second had passed on budget: the first moments of a program are no reason for extremes.
        let allowed = self.budget * (self.passed + 1e9);
        (self.spent + self.budget * 1e9) / allowed
    }

    /// CPU time between two bursts, ns, without jitter.
    pub(crate) fn period(&self) -> f64 {
        let others = (self.spent - self.spent_on_bursts).max(0.0) / (self.passed + 1e9);
        let left = (self.budget - others).max(self.budget / 20.0);
        (self.burst_cost / left * self.ratio().clamp(0.5, 4.0)).clamp(SHORTEST, LONGEST)
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

    /// Runs a thread for `seconds` of CPU time; returns the share spent.
    fn simulate(budget: f64, cost: Duration, other: Duration, seconds: u64) -> f64 {
        let mut governor = Governor::new(budget, 7);
        let (mut now, mut spent) = (0.0, Duration::ZERO);
        while now < seconds as f64 * 1e9 {
            let period = governor.period() * governor.jitter();
            now += period;
            governor.passed(Duration::from_nanos(period as u64));
            governor.spent(cost);
            governor.burst(cost);
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
                let share = simulate(budget, Duration::from_micros(cost), Duration::ZERO, 200);
                assert!((0.8..1.1).contains(&(share / budget)), "{budget} {cost}: {share}");
            }
        }
    }

    #[test]
    fn other_stops_are_made_up_for() {
        let share = simulate(0.01, Duration::from_micros(250), Duration::from_millis(5), 200);
        assert!((0.008..0.0125).contains(&share), "{share}");
    }

    #[test]
    fn jitter_is_spread_evenly() {
        let mut governor = Governor::new(0.01, 99);
        let factors: Vec<f64> = (0..10_000).map(|_| governor.jitter()).collect();
        let mean = factors.iter().sum::<f64>() / 10_000.0;
        assert!((0.99..1.01).contains(&mean), "{mean}");
        assert!(factors.iter().all(|factor| (0.5..1.5).contains(factor)));
    }
}
