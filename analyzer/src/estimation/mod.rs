//! How much each burst weighs that a clock started.
//!
//! A clock starts bursts evenly in *time*, and so the more often in code the slower it is. Inside a burst the path is exact; what has to be
//! put right is how much bursts count against each other. All bursts that start in the same 16 bytes of code weigh the same:
//!
//! ```text
//! weight = share of time  /  cost of an instruction there
//!          time_share        cost: from what clock and bursts say together
//! ```

mod after_calls;
mod cost;
mod descent;
mod loops;
mod passages;
mod ran_on;
mod simulated;
mod strata;
mod time_share;

pub(crate) use ran_on::RanOn;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use simulated_core::Microarchitecture;

use crate::code::Bitness;
use crate::counting::{Located, LocatedStart, ModuleCounts};
use crate::estimation::after_calls::AfterCalls;
use crate::estimation::loops::Loops;
use crate::estimation::passages::Passages;
use crate::estimation::strata::{Strata, Stratum, Window};
use crate::estimation::time_share::{Bursts, Samples, TimeShare};
use crate::recording::{CodeKind, EventKind, ModuleTable, Sources};
use crate::uncertainty::{COSTS, CostErrors, Replicates, Slice, SliceSums};

/// How bursts were weighted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The core on which code is taken to have run.
    #[serde(with = "core_by_word")]
    pub core: Microarchitecture,
    /// What was measured of the machine is taken for it (`hbbp calibrate`).
    pub is_calibrated: bool,
    /// By [`StartId`](crate::counting::StartId): what streams of bursts that started there are multiplied by. Empty where the analysis was kept:
    /// it is in the counts.
    #[serde(skip)]
    pub weights: Vec<f64>,
    /// The same in each replicate: without a slice of the bursts and samples, or with other costs. Empty where `weights` are.
    #[serde(skip)]
    pub replicates: Vec<Replicates>,
}

/// Cores by the word that `--core` takes.
mod core_by_word {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use simulated_core::Microarchitecture;

    pub fn serialize<S: Serializer>(core: &Microarchitecture, serializer: S) -> Result<S::Ok, S::Error> {
        core.word().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Microarchitecture, D::Error> {
        let word = String::deserialize(deserializer)?;
        Microarchitecture::by_word(&word).ok_or_else(|| D::Error::custom("there is no such core"))
    }
}

/// Weighs the bursts of a recording; `None` if it has none, or they were not started by a clock. `full_burst`: instructions of a
/// burst that nothing ends. `machine`: where they ran.
pub fn estimate(
    located: &Located,
    counted: &[ModuleCounts],
    modules: &ModuleTable,
    sources: &Sources,
    full_burst: Option<u64>,
    machine: &RanOn,
) -> Option<Estimate> {
    let lbr = sources.bursts_of_clock()?;
    let starts = &located.starts;
    if starts.iter().all(|start| start.starts.bursts == 0) || !lbr.covers_user {
        return None;
    }
    // The parts of modules that could not be read come after those that could.
    let by_module = counted.iter().rev().map(|counts| (counts.module, counts)).collect();
    let mut strata = Strata { modules: by_module, loops: Loops::default() };
    strata.loops = Loops::of(&located.paths, |module, at| strata.jumps(module, at));
    let samples_show_time = sources.ebs.as_ref().is_some_and(|ebs| ebs.kind == EventKind::Clock);
    let samples = match samples_show_time {
        true => time_share::samples(located, &strata, |module| {
            strata.kind_of(module, modules) == CodeKind::User(Bitness::Bits64)
        }),
        false => Vec::new(),
    };
    let calls = AfterCalls::new(located, &strata, full_burst);
    let time = TimeShare::new(starts, &samples, &strata);
    let bursts = bursts_of(starts, None);
    let numbers: Vec<f64> = samples.iter().map(|samples| samples.number).collect();
    let shares = time.shares(&calls.that_tell_time(&bursts), &numbers);
    let of_starts: Vec<Window> = starts.iter().map(|start| strata.window_of(start.module, start.at)).collect();
    let simulated = simulated::costs(&located.paths, &strata, machine.core);
    let simulated: Vec<f64> = starts
        .iter()
        .zip(&of_starts)
        .map(|(start, (stratum, _))| simulated.at((*stratum, strata.extent(start.module, start.at))))
        .collect();
    let stand_for: Vec<f64> = shares.iter().zip(&simulated).map(|(share, cost)| share / cost).collect();
    let passages = Passages::new(starts, &of_starts, &stand_for, counted, &strata, &calls);
    let costs = cost::costs(starts, &of_starts, &simulated, &passages);
    let rates: Vec<f64> = costs.iter().map(|cost| 1.0 / cost).collect();
    let weights = relative(&bursts, &calls, &shares, &rates, 1.0);
    let mut replicates: Vec<Replicates> = weights.iter().map(|weight| Replicates::of(*weight)).collect();
    for slice in Slice::all() {
        without_slice(slice, starts, &samples, (&time, &calls), &rates, &mut replicates);
    }
    let factors = cost_factors(&of_starts, &passages, modules, &strata);
    for replicate in 0..COSTS {
        let rates: Vec<f64> = rates.iter().zip(&factors).map(|(rate, factors)| rate / factors[replicate]).collect();
        let weights = relative(&bursts, &calls, &shares, &rates, 1.0);
        let places = replicates.iter_mut().map(|replicates| &mut replicates.with_costs_mut()[replicate]);
        places.zip(weights).for_each(|(place, weight)| *place = weight);
    }
    Some(Estimate { core: machine.microarchitecture, is_calibrated: machine.is_calibrated, weights, replicates })
}

/// The bursts of each place, or those that are not in that slice.
fn bursts_of(starts: &[LocatedStart], without: Option<Slice>) -> Vec<Bursts> {
    let kept = |by_slice: &SliceSums| without.map_or(1.0, |slice| kept(by_slice, slice));
    let bursts = |LocatedStart { starts, .. }: &LocatedStart| Bursts {
        number: starts.bursts as f64 * kept(&starts.bursts_by_slice),
        periods: starts.periods as f64 * kept(&starts.periods_by_slice),
        shown: starts.shown as f64 * kept(&starts.periods_by_slice),
    };
    starts.iter().map(bursts).collect()
}

/// Which part of a sum is not in a slice, 0 to 1.
fn kept(sums: &SliceSums, without: Slice) -> f64 {
    let mut kept = 1.0;
    sums.for_each_part(|slice, part| {
        if slice == without {
            kept = 1.0 - part;
        }
    });
    kept
}

/// Weighs the bursts that are not in a slice by the samples that are not in it.
fn without_slice(
    slice: Slice,
    starts: &[LocatedStart],
    samples: &[Samples],
    (time, calls): (&TimeShare, &AfterCalls),
    rates: &[f64],
    replicates: &mut [Replicates],
) {
    let bursts = bursts_of(starts, Some(slice));
    let tell_time = calls.that_tell_time(&bursts);
    if tell_time.iter().all(|bursts| bursts.number == 0.0) {
        return;
    }
    let samples: Vec<f64> = samples.iter().map(|samples| samples.number * kept(&samples.slices, slice)).collect();
    let shares = time.shares(&tell_time, &samples);
    let all = |periods: &mut dyn Iterator<Item = f64>| periods.sum::<f64>();
    let left = all(&mut bursts.iter().map(|bursts| bursts.shown));
    let whole = all(&mut starts.iter().map(|start| start.starts.shown as f64));
    let weights = relative(&bursts, calls, &shares, rates, if left > 0.0 { whole / left } else { 1.0 });
    replicates.iter_mut().zip(weights).for_each(|(replicates, weight)| *replicates.without_mut(slice) = weight);
}

/// By place of start: what its cost is multiplied by in each replicate with other costs.
fn cost_factors(
    of_starts: &[Window],
    passages: &Passages,
    modules: &ModuleTable,
    strata: &Strata<'_>,
) -> Vec<[f64; COSTS]> {
    let name = |stratum: &Stratum| match *stratum {
        Stratum::Function(module, function) => {
            let code = strata.code(module);
            code.map_or(String::new(), |code| code.functions.name(crate::code::FunctionId(function)).into_owned())
        }
        Stratum::Region(module, region) => format!("{} {region:#x}", modules.get(module).path),
    };
    let errors: Vec<CostErrors> =
        passages.windows.keys().map(|(stratum, part)| CostErrors::of(&name(stratum), *part)).collect();
    let of_others = CostErrors::of("", 0);
    let executed = |row: &BTreeMap<Option<usize>, f64>| {
        let parts = row.iter().map(|(to, part)| (to.map_or(&of_others, |to| &errors[to]), *part));
        CostErrors::of_passage(parts)
    };
    let of_windows: Vec<[f64; COSTS]> =
        errors.iter().zip(&passages.rows).map(|(errors, row)| errors.factors(&executed(row))).collect();
    of_starts.iter().map(|window| of_windows[passages.windows[window]]).collect()
}

/// What to multiply streams with, which weigh what their bursts' periods say, so that bursts weigh share x rate; on the average so much.
fn relative(starts: &[Bursts], calls: &AfterCalls, shares: &[f64], rates: &[f64], mean: f64) -> Vec<f64> {
    let all: f64 = starts.iter().map(|start| start.shown).sum();
    let stand_for: Vec<f64> = shares.iter().zip(rates).map(|(share, rate)| share * rate).collect();
    let wanted: f64 = stand_for.iter().sum();
    let factor = |(start, shown): (&Bursts, f64)| {
        if start.shown > 0.0 && wanted > 0.0 { shown / wanted * all / start.shown * mean } else { 0.0 }
    };
    starts.iter().zip(calls.spread(&stand_for)).map(factor).collect()
}
