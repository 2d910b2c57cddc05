//! Which part of the time functions took, where samples tell it beside what branch stacks tell of instructions.

use std::collections::HashMap;

use crate::Analysis;
use crate::address::Svma;
use crate::counting::Code;
use crate::uncertainty::Interval;

/// The part of the time that a function took, or any other code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeShare {
    /// Of all samples of the clock, or of cycles, 0 to 1.
    pub share: f64,
    /// Half the width of its interval, 95 %, as of samples that come at random.
    pub error: f64,
}

impl TimeShare {
    /// Of so many samples and their periods, and those of all.
    pub fn of((samples, periods): (f64, f64), (all_samples, all_periods): (f64, f64)) -> Self {
        /// 97.5 % of a normal distribution are below it.
        const NORMAL: f64 = 1.960;
        /// The upper limit, at 95 %, of a count of which nothing was seen.
        const NONE: f64 = 3.689;
        let share = periods / all_periods;
        // Parts of samples, of code that shares them, are no more than one.
        let is_none_or_all = samples < 1.0 || all_samples - samples < 1.0;
        let deviation = NORMAL * (share * (1.0 - share).max(0.0) / all_samples).sqrt();
        let error = if is_none_or_all { deviation.max(NONE / all_samples) } else { deviation };
        TimeShare { share, error: error.min(1.0) }
    }

    /// How uncertain the share is.
    pub fn interval(&self) -> Interval {
        Interval { half_width: Some(self.error), by_chance: Some(self.error), rests_on_little: false }
    }

    /// How many times as long an instruction of it took as one of all code does, of code with that share of the instructions
    /// (0 to 1) and that interval of it. `None` where either share may be none.
    ///
    /// Example: with 18 % of the time and 5 % of the instructions, 3.6.
    pub fn per_instruction(&self, instructions: f64, interval: Interval) -> Option<f64> {
        let is_some = instructions > interval.half_width.unwrap_or(0.0) && self.share > self.error;
        is_some.then(|| self.share / instructions)
    }
}

/// The samples of time of all functions, and of what was not read.
pub struct Times {
    samples: u64,
    periods: f64,
    /// By index of the module in [`Analysis::counted`] and symbol: samples, and their periods. `None` is all of a module that was not read.
    of_functions: HashMap<(usize, Option<Svma>), (u64, f64)>,
}

impl Times {
    /// Of an analysis that counts by branch stacks alone, and has samples of a clock or of cycles; `None` of another.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        if !analysis.tells_time() {
            return None;
        }
        let mut times = Times { samples: 0, periods: 0.0, of_functions: HashMap::new() };
        for (index, module) in analysis.counted.iter().enumerate() {
            for (_, block, sums) in module.counts.sums.iter().filter(|(_, _, sums)| sums.ebs_samples > 0) {
                let periods = sums.ebs_periods as f64;
                times.samples += sums.ebs_samples;
                times.periods += periods;
                let symbol = module.function_symbol(*block);
                if symbol.is_none() && matches!(module.counts.code, Code::Read(_)) {
                    continue;
                }
                let of = times.of_functions.entry((index, symbol)).or_default();
                of.0 += sums.ebs_samples;
                of.1 += periods;
            }
        }
        (times.periods > 0.0).then_some(times)
    }

    /// Of the function of a module with that symbol; without one, of a module that was not read.
    pub fn of_function(&self, module: usize, symbol: Option<Svma>) -> TimeShare {
        let (samples, periods) = self.of_functions.get(&(module, symbol)).copied().unwrap_or_default();
        TimeShare::of((samples as f64, periods), (self.samples as f64, self.periods))
    }
}
