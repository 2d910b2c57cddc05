//! What bursts execute, by the window they start in.

use std::collections::BTreeMap;

use crate::counting::{LocatedStart, ModuleCounts, StartSums};
use crate::estimation::after_calls::AfterCalls;
use crate::estimation::strata::{Strata, Window};

/// The windows that bursts start in, and what these bursts execute.
pub(super) struct Passages {
    /// Their numbers.
    pub windows: BTreeMap<Window, usize>,
    /// Which share of all bursts those of a window stand for, by its number.
    pub shares: Vec<f64>,
    /// By number, which part of what they execute is in each window, 0 to 1; `None` for all windows in which no burst starts.
    pub rows: Vec<BTreeMap<Option<usize>, f64>>,
}

impl Passages {
    /// Of bursts whose places of start stand for these shares. `of_start`: the windows of the starts.
    pub fn new(
        starts: &[LocatedStart],
        of_start: &[Window],
        shares_of_starts: &[f64],
        counted: &[ModuleCounts],
        strata: &Strata<'_>,
        calls: &AfterCalls,
    ) -> Self {
        let windows = numbered(of_start.iter().copied());
        let mut shares = vec![0.0; windows.len()];
        for (window, share) in of_start.iter().zip(shares_of_starts) {
            shares[windows[window]] += share;
        }
        let mut executed = executed(starts, counted, strata, &windows);
        for row in &mut executed {
            let all: f64 = row.values().sum();
            if all <= 0.0 {
                row.clear();
            }
            row.values_mut().for_each(|instructions| *instructions /= all);
        }
        // Each place of start with its share.
        let mut rows: Vec<BTreeMap<Option<usize>, f64>> = vec![BTreeMap::new(); windows.len()];
        let places = of_start.iter().zip(shares_of_starts).enumerate();
        for (place, (window, share)) in places.filter(|(_, (_, share))| **share > 0.0) {
            let from = windows[window];
            for (shows, part) in calls.shown_by(place) {
                for (to, instructions) in &executed[shows] {
                    *rows[from].entry(*to).or_default() += part * instructions * share / shares[from];
                }
            }
        }
        Passages { windows, shares, rows }
    }
}

/// All that are there, each once, with numbers from 0 on in their order.
pub(super) fn numbered<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut numbers: BTreeMap<T, usize> = all.map(|one| (one, 0)).collect();
    numbers.values_mut().enumerate().for_each(|(index, number)| *number = index);
    numbers
}

/// By place of start: the instructions that its bursts executed, by window; `None` for all windows in which no burst starts.
fn executed(
    starts: &[LocatedStart],
    counted: &[ModuleCounts],
    strata: &Strata<'_>,
    windows: &BTreeMap<Window, usize>,
) -> Vec<BTreeMap<Option<usize>, f64>> {
    let mut executed = vec![BTreeMap::new(); starts.len()];
    for module in counted {
        let mut last: Option<(u32, Option<usize>)> = None;
        for StartSums { start, block, sums, .. } in &module.by_start {
            let window = match last {
                Some((same, window)) if same == *block => window,
                _ => windows.get(&strata.window_of_block(module, *block)).copied(),
            };
            last = Some((*block, window));
            // Lengths of code that was not read are estimates; that they agree with each other is enough.
            const BYTES_PER_INSTRUCTION: f64 = 4.0;
            let instructions = module.size_of(*block, BYTES_PER_INSTRUCTION).instructions * sums.lbr_weight.to_f64();
            *executed[start.0 as usize].entry(window).or_default() += instructions;
        }
    }
    executed
}
