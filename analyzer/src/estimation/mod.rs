//! How much each burst weighs that a clock started.
//!
//! A clock starts bursts evenly in *time*, and so the more often in code the slower it is. Inside a burst the path is exact; what has to be
//! put right is how much bursts count against each other. All bursts that start in the same 16 bytes of code weigh the same:
//!
//! ```text
//! weight = share of time  /  cost of an instruction there
//!          time_share        cost: from what clock and bursts say together
//! ```

mod cost;
mod descent;
mod simulated_core;
mod strata;
mod time_share;

use crate::counting::{Located, LocatedStart, ModuleCounts};
use crate::estimation::strata::{Strata, Window};
use crate::recording::{EventKind, ModuleTable, Sources};

/// How bursts were weighted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// By [`StartId`](crate::counting::StartId): what streams of bursts that started there are multiplied by.
    pub weights: Vec<f64>,
}

/// Weighs the bursts of a recording; `None` if it has none, or they were not started by a clock.
pub fn estimate(
    located: &Located,
    counted: &[ModuleCounts],
    modules: &ModuleTable,
    sources: &Sources,
) -> Option<Estimate> {
    let lbr = sources.lbr.as_ref().filter(|lbr| lbr.has_bursts && lbr.kind == EventKind::Clock)?;
    let starts = &located.starts;
    if starts.iter().all(|start| start.starts.bursts == 0) || !lbr.covers_user {
        return None;
    }
    // The parts of modules that could not be read come after those that could.
    let by_module = counted.iter().rev().map(|counts| (counts.module, counts)).collect();
    let strata = Strata { modules: by_module };
    let samples_show_time = sources.ebs.as_ref().is_some_and(|ebs| ebs.kind == EventKind::Clock);
    let samples = match samples_show_time {
        true => time_share::samples(located, |module| !modules.get(module).kind.is_kernel()),
        false => Vec::new(),
    };
    let shares = time_share::shares(starts, &samples, &strata);
    let of_starts: Vec<Window> = starts.iter().map(|start| strata.window_of(start.module, start.at)).collect();
    let simulated = simulated_core::costs(&located.paths, &strata);
    let costs = cost::costs(starts, &of_starts, &shares, counted, &strata, &simulated);
    let rates: Vec<f64> = costs.iter().map(|cost| 1.0 / cost).collect();
    let weights = relative(starts, &shares, &rates);
    Some(Estimate { weights })
}

/// What to multiply streams with, which weigh what their bursts' periods say, so that bursts weigh share x rate; 1 on the average.
fn relative(starts: &[LocatedStart], shares: &[f64], rates: &[f64]) -> Vec<f64> {
    let all: f64 = starts.iter().map(|start| start.starts.periods as f64).sum();
    let wanted: f64 = shares.iter().zip(rates).map(|(share, rate)| share * rate).sum();
    let factor = |((start, share), rate): ((&LocatedStart, &f64), &f64)| {
        let periods = start.starts.periods as f64;
        if periods > 0.0 && wanted > 0.0 { share * rate / wanted * all / periods } else { 0.0 }
    };
    starts.iter().zip(shares).zip(rates).map(factor).collect()
}
