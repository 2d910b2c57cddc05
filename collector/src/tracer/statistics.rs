//! What the tracer did, for the recording and for whoever recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use addresses::Avma;
use agent::{Difference, Outcome};
use formats::metadata::{
    AgentsMetadata, ChecksMetadata, Percent, PredictionCounts, StartingMetadata, StopCostMetadata, TracerMetadata,
    TracerTimes,
};

use crate::tracer::budget::signal_cost::{Charge, SignalCost};
use crate::tracer::budget::stop_cost::{Calibration, SAMPLE, StopCost, UNSEEN_SHARE};
use crate::tracer::options::{BurstEnd, TracerKind};
use crate::tracer::settings::Settings;

/// What the tracer did.
#[derive(Clone, Debug)]
pub struct TracerStatistics {
    /// How paths were found.
    pub kind: TracerKind,
    /// Where bursts ended at the latest.
    pub end: BurstEnd,
    /// Percent of the threads' CPU time that recording was allowed to take.
    pub overhead_allowed: f64,
    /// What it was allowed to take on top of that in the first seconds of CPU time.
    pub start_credit: Duration,
    /// Percent it took, by the times below.
    pub overhead: f64,
    /// Bursts that were recorded.
    pub bursts: u64,
    /// Bursts there was no room for.
    pub lost_bursts: u64,
    /// Samples of bursts that are not in the recording because they could not be written, which is a bug.
    pub unwritable_samples: u64,
    /// Instructions executed in bursts.
    pub instructions: u64,
    /// Taken branches in bursts.
    pub taken_branches: u64,
    /// Of those, decided by their bytes: direct jumps and calls.
    pub static_branches: u64,
    /// Conditional branches that were not taken.
    pub not_taken: u64,
    /// *Break Dancing*, figure 4: of the branches not decided by their bytes, the share that was taken.
    pub taken_fraction: f64,
    /// Of the taken branches, the share that is decided by its bytes.
    pub static_fraction: f64,
    /// t / (1 - s): taken branches per branch that has to be evaluated.
    pub usefulness: f64,
    /// Pages of the threads' memory that bursts touched.
    pub pages: u64,
    /// Of those, read when they were touched; the others were read together before.
    pub pages_missed: u64,
    /// Times a thread was stopped for a burst.
    pub sampling_stops: u64,
    /// Times a thread stopped for something else: signals of the program, new threads, exec.
    pub other_stops: u64,
    /// Breakpoints that were reached.
    pub breakpoints: u64,
    /// Breakpoints given up: not reached in time, or not by the expected path.
    pub breakpoints_missed: u64,
    /// Threads and processes that were traced.
    pub threads: u64,
    /// Processes that these threads belong to.
    pub processes: u64,
    /// Times a thread was let go untraced for a while because its own signals took more than the budget.
    pub backed_off: u64,
    /// Processes that may not be traced, where there are no agents, which count them themselves.
    pub barred: u64,
    /// Processes that execute code of 32 bits, which bursts do not follow.
    pub processes_of_32_bits: u64,
    /// Threads without bursts, for a time at least, as no more files might be open.
    pub threads_without_file: u64,
    /// Why bursts ended: counts by reason.
    pub ends: BTreeMap<String, u64>,
    /// What bursts went on after, by a breakpoint.
    pub continued: BTreeMap<String, u64>,
    /// Instructions that are not interpreted.
    pub unsupported: BTreeMap<String, u64>,
    /// Registers as predicted, where the thread could be looked at again.
    pub predictions: Predictions,
    /// What came of comparing bursts with their threads, if agents did that.
    pub checks: Option<Checks>,
    /// What it took until all threads were traced that were there.
    pub starting: Starting,
    /// What agents did, if they took the bursts.
    pub agents: Option<Agents>,
    /// What a stop is charged on this machine.
    pub(crate) stop_cost: StopCost,
    /// What bursts of agents are charged on this machine.
    pub(crate) signal_cost: SignalCost,
    /// Where the CPU time of the program and of the collector went.
    pub time: Times,
    /// CPU time of the collector until tracing ended, of which all that was spent on this recording is in `time`.
    pub(crate) collector_until_end: Duration,
    /// What it took after that.
    pub(crate) ending: Duration,
}

/// What it took to prepare, and until all threads were traced that were there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Starting {
    /// CPU time of the collector.
    pub took: Duration,
    /// Threads that were there.
    pub threads: u64,
    /// From when recording began to when the last of them was traced.
    pub lasted: Duration,
}

/// What came of putting agents into processes.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// Processes that got one.
    pub injected: u64,
    /// Times it was put off: the thread was in a system call.
    pub put_off: u64,
    /// Processes that get none, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Bursts of threads without one: each was stopped for it.
    pub visited: u64,
    /// Processes that may not be traced at all.
    pub barred: u64,
    /// Processes that went on, and in which the agent stays, by reason.
    pub kept: BTreeMap<String, u64>,
    /// Signals without a burst.
    pub tally: agent::Tally,
    /// Why no agent could be made.
    pub failed: Option<String>,
}

/// Predictions compared with what happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predictions {
    /// Predictions that were compared with a stopped thread.
    pub checked: u64,
    /// Not as predicted: other threads or the kernel changed memory meanwhile, or a handler ran.
    pub diverged: u64,
}

/// What came of comparing bursts of agents with what their threads did then.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Bursts that were compared to the end, or as far as the thread went the same way.
    pub bursts: u64,
    /// Instructions that threads executed as their bursts say.
    pub instructions: u64,
    /// Taken branches among them.
    pub branches: u64,
    /// Bursts that their threads did not do, without a change of memory that would explain it.
    pub diverged: u64,
    /// Those that read memory which others changed meanwhile.
    pub raced: u64,
    /// Bursts that were not compared to the end, by reason.
    pub unfinished: BTreeMap<String, u64>,
    /// What the first ones that diverged did, in words,
    pub divergences: Vec<String>,
    /// and the first ones that read memory which others changed.
    pub races: Vec<String>,
}

impl Checks {
    const EXAMPLES: usize = 16;

    /// Adds what came of a burst of `thread`, which began at `start`.
    pub(crate) fn add(&mut self, checked: &agent::Checked, start: Avma, is_alone: bool) {
        self.instructions += checked.instructions;
        self.branches += checked.branches;
        let different = match checked.outcome {
            Outcome::Unfinished(why) => return TracerStatistics::count(&mut self.unfinished, why),
            Outcome::Same => {
                self.bursts += 1;
                return;
            }
            Outcome::Different(different) => different,
        };
        self.bursts += 1;
        let is_of_path = different.changed.is_none_or(|change| change.is_of_path);
        let is_memory = different.what == "memory";
        if is_memory && !is_of_path && !is_alone {
            // What others have stored beside what the path stores.
            return;
        }
        // Where there is one thread only, who else would write to what it writes to?
        let is_explained = different.changed.is_some() && (!is_alone || !is_of_path && !is_memory);
        let is_race = is_explained || different.is_after_atomic && !is_alone;
        *if is_race { &mut self.raced } else { &mut self.diverged } += 1;
        let examples = if is_race { &mut self.races } else { &mut self.divergences };
        if examples.len() < Self::EXAMPLES {
            let Difference { what, at, expected, found, changed, .. } = different;
            let changed = changed.map_or(String::new(), |change| format!("; memory at {:#x} has changed", change.at.0));
            let others = if is_alone { "" } else { "; several threads" };
            examples.push(format!(
                "{what} at {:#x}: {expected:#x} expected, {found:#x} found, {} instructions after {:#x}{changed}{others}",
                at.0, checked.instructions, start.0
            ));
        }
    }

    fn metadata(&self) -> ChecksMetadata {
        ChecksMetadata {
            bursts: Some(self.bursts),
            instructions: Some(self.instructions),
            branches: Some(self.branches),
            diverged: Some(self.diverged),
            raced: Some(self.raced),
            unfinished: Some(self.unfinished.clone()),
            divergences: self.divergences.clone(),
            races: self.races.clone(),
        }
    }
}

/// Where CPU time went, of the program and of the recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// CPU time of the traced threads.
    pub application: Duration,
    /// Interrupts and switches to the tracer and back: what a stop was measured to cost, with the tracer on the thread's CPU or another.
    pub stops: Duration,
    /// Reading registers and memory of stopped threads.
    pub state: Duration,
    /// Interpreting the code ahead of stopped threads.
    pub lookahead: Duration,
    /// Decoding instructions that were not decoded before.
    pub decoding: Duration,
    /// Setting breakpoints, and the stops at them.
    pub breakpoints: Duration,
    /// The rest of the CPU time of the collector, which also writes the recording.
    pub other: Duration,
    /// Event samples beside: their number times what one was measured to cost.
    pub samples: Duration,
}

pub(crate) fn nanoseconds(time: Duration) -> Option<u64> {
    Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Starting {
    fn metadata(&self) -> StartingMetadata {
        StartingMetadata {
            took_ns: nanoseconds(self.took),
            threads: Some(self.threads),
            lasted_ns: nanoseconds(self.lasted),
        }
    }
}

/// What the metadata says of the costs of stops.
fn stop_cost(cost: &StopCost) -> StopCostMetadata {
    let charged = StopCostMetadata {
        same_cpu_ns: nanoseconds(cost.charged.same),
        other_cpu_ns: nanoseconds(cost.charged.other),
        sample_ns: nanoseconds(SAMPLE),
        ..StopCostMetadata::default()
    };
    match &cost.calibration {
        Calibration::BuiltIn(why) => {
            StopCostMetadata { calibrated: Some(false), not_calibrated_because: Some(why.clone()), ..charged }
        }
        Calibration::Measured { stops, child } => StopCostMetadata {
            calibrated: Some(true),
            timed_stops: Some(*stops as u64),
            timed_same_cpu_ns: nanoseconds(child.same.median),
            timed_same_cpu_spread_ns: nanoseconds(child.same.spread),
            timed_other_cpu_ns: nanoseconds(child.other.median),
            timed_other_cpu_spread_ns: nanoseconds(child.other.spread),
            ..charged
        },
    }
}

/// `1 process`, `2 processes`.
fn counted(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

impl Agents {
    fn metadata(&self, cost: &SignalCost) -> AgentsMetadata {
        let spread = |charge: &Charge| charge.spread.as_ref().ok().copied().and_then(nanoseconds);
        AgentsMetadata {
            injected: Some(self.injected),
            put_off: Some(self.put_off),
            refused: Some(self.refused.clone()),
            visited: Some(self.visited),
            barred: Some(self.barred),
            busy: Some(self.tally.busy),
            no_room: Some(self.tally.no_slot),
            waiting: Some(self.tally.waiting),
            given_up: Some(self.tally.given_up),
            strayed: Some(self.tally.strayed),
            signal_ns: nanoseconds(cost.signal.cost),
            signal_spread_ns: spread(&cost.signal),
            system_call_ns: nanoseconds(cost.system_call.cost),
            system_call_spread_ns: spread(&cost.system_call),
            not_calibrated_because: cost.not_measured(),
            ..Self::place()
        }
    }

    /// Where agents are.
    pub(crate) fn place() -> AgentsMetadata {
        AgentsMetadata { start: Some(agent::REGION.start), end: Some(agent::REGION.end), ..AgentsMetadata::default() }
    }
}

impl Times {
    fn metadata(&self) -> TracerTimes {
        TracerTimes {
            application_ns: nanoseconds(self.application),
            stops_ns: nanoseconds(self.stops),
            state_ns: nanoseconds(self.state),
            lookahead_ns: nanoseconds(self.lookahead),
            decoding_ns: nanoseconds(self.decoding),
            breakpoints_ns: nanoseconds(self.breakpoints),
            other_ns: nanoseconds(self.other),
            samples_ns: nanoseconds(self.samples),
        }
    }

    /// The parts that are measured on their own.
    pub(crate) fn measured(&self) -> Duration {
        self.state + self.lookahead + self.decoding + self.breakpoints
    }

    /// All CPU time that recording took.
    pub fn spent(&self) -> Duration {
        self.stops + self.state + self.lookahead + self.decoding + self.breakpoints + self.other + self.samples
    }
}

/// Why there is no burst where a thread executes code of 32 bits.
pub(crate) const CODE_OF_32_BITS: &str = "32-bit code";

impl TracerStatistics {
    pub(crate) fn new(settings: &Settings, stop_cost: StopCost) -> Self {
        Self {
            kind: settings.kind,
            end: settings.end,
            overhead_allowed: settings.overhead,
            start_credit: settings.start_credit,
            overhead: 0.0,
            bursts: 0,
            lost_bursts: 0,
            unwritable_samples: 0,
            instructions: 0,
            taken_branches: 0,
            static_branches: 0,
            not_taken: 0,
            taken_fraction: 0.0,
            static_fraction: 0.0,
            usefulness: 0.0,
            pages: 0,
            pages_missed: 0,
            sampling_stops: 0,
            other_stops: 0,
            breakpoints: 0,
            breakpoints_missed: 0,
            threads: 0,
            processes: 0,
            backed_off: 0,
            barred: 0,
            processes_of_32_bits: 0,
            threads_without_file: 0,
            ends: BTreeMap::new(),
            continued: BTreeMap::new(),
            unsupported: BTreeMap::new(),
            predictions: Predictions::default(),
            checks: (settings.kind == TracerKind::AgentCheck).then(Checks::default),
            starting: Starting::default(),
            agents: None,
            stop_cost,
            signal_cost: SignalCost::built_in("only agents take signals"),
            time: Times::default(),
            collector_until_end: Duration::ZERO,
            ending: Duration::ZERO,
        }
    }

    /// What the metadata says of it.
    pub(crate) fn metadata(&self) -> TracerMetadata {
        let Predictions { checked, diverged } = self.predictions;
        TracerMetadata {
            overhead: Some(Percent(self.overhead)),
            start_credit_ns: nanoseconds(self.start_credit),
            bursts: Some(self.bursts),
            lost_bursts: Some(self.lost_bursts),
            unwritable_samples: Some(self.unwritable_samples),
            instructions: Some(self.instructions),
            taken_branches: Some(self.taken_branches),
            static_branches: Some(self.static_branches),
            not_taken: Some(self.not_taken),
            taken_fraction: Some(self.taken_fraction),
            static_fraction: Some(self.static_fraction),
            usefulness: Some(self.usefulness),
            pages: Some(self.pages),
            pages_missed: Some(self.pages_missed),
            sampling_stops: Some(self.sampling_stops),
            other_stops: Some(self.other_stops),
            breakpoints: Some(self.breakpoints),
            breakpoints_missed: Some(self.breakpoints_missed),
            threads: Some(self.threads),
            processes: Some(self.processes),
            backed_off: Some(self.backed_off),
            ends: Some(self.ends.clone()),
            continued: Some(self.continued.clone()),
            unsupported: Some(self.unsupported.clone()),
            predictions: Some(PredictionCounts { checked: Some(checked), diverged: Some(diverged) }),
            checks: self.checks.as_ref().map(Checks::metadata),
            starting: Some(self.starting.metadata()),
            ending_ns: nanoseconds(self.ending),
            agents: self.agents.as_ref().map(|agents| agents.metadata(&self.signal_cost)),
            stop_cost: Some(stop_cost(&self.stop_cost)),
            time: Some(self.time.metadata()),
            ..self.end.metadata(self.kind, self.overhead_allowed)
        }
    }

    /// What every report says if not all samples could be written, or not all processes were traced.
    pub(crate) fn degradations(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let samples = self.unwritable_samples;
        if samples > 0 {
            sentences.push(format!("{samples} samples of bursts could not be written and are lost, which is a bug"));
        }
        if let Some(agents) = &self.agents {
            if let Some(why) = &agents.failed {
                sentences.push(format!("bursts cost more than they could: no agent could be made: {why}"));
            }
            for (why, processes) in &agents.refused {
                let processes = counted(*processes, "process", "processes");
                sentences.push(match self.kind {
                    TracerKind::Timer => format!("no bursts of {processes}: {why}"),
                    _ => format!("{processes} without an agent, stopped for each burst: {why}"),
                });
            }
            for (why, processes) in &agents.kept {
                let processes = counted(*processes, "process", "processes");
                sentences.push(format!("the agent stays in {processes}, where it does nothing any more: {why}"));
            }
        }
        let barred = self.agents.as_ref().map_or(self.barred, |agents| agents.barred);
        if barred > 0 {
            let barred = counted(barred, "process", "processes");
            sentences.push(format!(
                "no bursts of {barred}: another user's, a debugger has them, or ptrace_scope forbids it"
            ));
        }
        if self.processes_of_32_bits > 0 {
            let processes = counted(self.processes_of_32_bits, "process", "processes");
            sentences.push(format!(
                "no bursts of {processes} with 32-bit code: they follow 64-bit code only. Samples of the clock count it; --tracer none takes more"
            ));
        }
        if self.ends.contains_key(CODE_OF_32_BITS) {
            // Processes that are traced all the time are not looked at, and others may change their mode.
            sentences.push(
                "bursts met 32-bit code, which they do not follow: samples of the clock count that of 32-bit programs; what 64-bit programs \
                 execute in 32-bit mode is taken for 64-bit code, and its counts are wrong"
                    .to_owned(),
            );
        }
        let threads = self.threads_without_file;
        if threads > 0 {
            let threads = counted(threads, "thread", "threads");
            sentences.push(format!(
                "no bursts of {threads}: each needs an open file, and no more are allowed: raise the limit (ulimit -n)"
            ));
        }
        sentences
    }

    /// Adds what event samples cost and what the collector did after tracing ended, and computes the shares. `collector`: its CPU time.
    pub(crate) fn complete(&mut self, samples: u64, collector: Duration) {
        self.ending = collector.saturating_sub(self.collector_until_end);
        self.time.other += self.ending;
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        self.time.samples = SAMPLE.saturating_mul(u32::try_from(samples).unwrap_or(u32::MAX));
        let application = self.time.application.as_secs_f64();
        self.overhead = if application > 0.0 { self.time.spent().as_secs_f64() / application * 100.0 } else { 0.0 };
        let evaluated = self.taken_branches - self.static_branches;
        self.taken_fraction = share(evaluated, evaluated + self.not_taken);
        self.static_fraction = share(self.static_branches, self.taken_branches);
        self.usefulness = share(self.taken_branches, evaluated + self.not_taken);
    }

    /// What starting took, in per cent of the threads' CPU time, if it is more than a tenth of the budget.
    pub fn starting_exceeded(&self) -> Option<f64> {
        let share = self.starting.took.as_secs_f64() / self.time.application.as_secs_f64() * 100.0;
        (share > self.overhead_allowed * UNSEEN_SHARE).then_some(share)
    }

    /// What agents did, and what they counted themselves.
    pub(crate) fn conclude(&mut self, agents: Agents, tally: agent::Tally) {
        self.predictions = Predictions { checked: tally.came, diverged: tally.diverged };
        self.agents = Some(Agents { tally, ..agents });
    }

    /// Adds one to a count that has a name.
    pub(crate) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
        Self::add(counts, name, 1);
    }

    /// Adds so many.
    pub(crate) fn add(counts: &mut BTreeMap<String, u64>, name: &str, more: u64) {
        match counts.get_mut(name) {
            Some(count) => *count += more,
            None => drop(counts.insert(name.to_owned(), more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use agent::{Checked, MemoryChange};

    use super::*;

    #[test]
    fn what_memory_of_others_explains_is_no_divergence() {
        let different = |what, changed: Option<bool>, is_after_atomic| {
            let changed = changed.map(|is_of_path| MemoryChange { at: Avma(64), is_of_path });
            let difference = Difference { what, at: Avma(1), expected: 2, found: 3, changed, is_after_atomic };
            Checked { instructions: 10, branches: 1, outcome: Outcome::Different(difference) }
        };
        // (diverged, raced) of a program of one thread, and of one of several.
        for (checked, alone, of_several) in [
            (different("branch", None, false), (1, 0), (1, 0)),
            (different("branch", None, true), (1, 0), (0, 1)),
            (different("branch", Some(false), false), (0, 1), (0, 1)),
            (different("rax", Some(true), false), (1, 0), (0, 1)),
            (different("memory", Some(true), false), (1, 0), (0, 1)),
            (different("memory", Some(false), false), (1, 0), (0, 0)),
        ] {
            for (is_alone, counted) in [(true, alone), (false, of_several)] {
                let mut checks = Checks::default();
                checks.add(&checked, Avma(0x1000), is_alone);
                assert_eq!((checks.diverged, checks.raced), counted, "{checked:?} {is_alone}");
                assert_eq!((checks.bursts, checks.instructions, checks.branches), (1, 10, 1));
                assert_eq!((checks.divergences.len(), checks.races.len()), (counted.0 as usize, counted.1 as usize));
            }
        }
        let mut checks = Checks::default();
        checks.add(&Checked { outcome: Outcome::Unfinished("a fault"), ..Checked::default() }, Avma(0), true);
        checks.add(&Checked { instructions: 7, ..Checked::default() }, Avma(0), true);
        assert_eq!((checks.bursts, checks.diverged, checks.unfinished["a fault"], checks.instructions), (1, 0, 1, 7));
    }
}
