//! Bursts that end at system calls, and those that start right after them.
//!
//! **Time.** The kernel cannot be interrupted on its way back to the program. A clock that is due meanwhile starts its burst at the first
//! instruction after the system call, where hardly any time of the program passes. So these starts, and samples there, say nothing of time.
//!
//! **Paths.** A burst that ends at a call has seen too little of what comes after it, and what comes before would count too much. What is left of
//! it is what bursts show that start right after this call. With L instructions in a full burst, one of weight w that ended after n of them
//! keeps w n / L, and the bursts right after the call share w (L - n) / L. If they end too early in turn, it goes on with those after that
//! call.

use std::collections::{BTreeMap, HashMap};

use iced_x86::{FlowControl, Mnemonic};

use crate::address::FileOffset;
use crate::counting::{Located, granule_of};
use crate::estimation::strata::Strata;
use crate::estimation::time_share::Bursts;
use crate::recording::ModuleId;

/// How far from the last taken branch of a burst the call is looked for, in bytes.
const NEAR: u64 = 512;
/// What is left after so many calls, one after the other, is small.
const MOST_CALLS: usize = 1000;
/// The part of all that is too small to follow.
const REST: f64 = 1e-6;

/// Which bursts go on where others ended.
pub(super) struct AfterCalls {
    /// By place of start.
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    after_call: bool,
    /// Those of its bursts that ended at a call after which others start.
    ended: Vec<Ended>,
}

/// Bursts of one place that ended at one call.
struct Ended {
    /// Where others go on: an index of places.
    at: usize,
    /// Their part of what all bursts of the place stand for, 0 to 1.
    part: f64,
    /// Instructions of one, as a part of a full burst.
    length: f64,
}

/// What bursts stand for that is to be shown by those of a place.
#[derive(Clone, Copy, Default)]
struct Left {
    /// Instructions, in full bursts,
    amount: f64,
    /// and of how many bursts.
    bursts: f64,
}

impl AfterCalls {
    /// `full`: instructions of a burst that nothing ends; without it nothing is known of those that ended.
    pub fn new(located: &Located, strata: &Strata<'_>, full: Option<u64>) -> Self {
        let starts = &located.starts;
        let mut places: Vec<Place> =
            starts.iter().map(|start| Place { after_call: start.after_call, ended: Vec::new() }).collect();
        // Where nothing else starts, the time is all there.
        let knows_time = starts.iter().any(|start| !start.after_call && start.starts.bursts > 0);
        if !knows_time {
            places.iter_mut().for_each(|place| place.after_call = false);
            return Self { places };
        }
        let after: HashMap<(ModuleId, FileOffset), usize> = (0..)
            .zip(starts)
            .filter(|(_, start)| start.after_call)
            .map(|(index, start)| ((start.module, start.at), index))
            .collect();
        let mut calls: BTreeMap<(ModuleId, FileOffset), Option<usize>> = BTreeMap::new();
        for cut in &located.cuts {
            let call = calls.entry((cut.module, cut.from)).or_insert_with(|| {
                let at = after_next_call(strata, cut.module, cut.from)?;
                after.get(&(cut.module, granule_of(at))).copied()
            });
            let (Some(at), Some(full)) = (*call, full.filter(|full| *full > 0)) else { continue };
            let of_place = starts[cut.start.0 as usize].starts.periods as f64;
            let (periods, instructions) = (cut.sums.periods as f64, cut.sums.instructions as f64);
            if of_place > 0.0 && periods > 0.0 {
                let (part, length) = ((periods / of_place).min(1.0), instructions / periods / full as f64);
                places[cut.start.0 as usize].ended.push(Ended { at, part, length });
            }
        }
        Self { places }
    }

    /// Of the bursts by place of start, those that tell where time goes.
    pub fn that_tell_time(&self, bursts: &[Bursts]) -> Vec<Bursts> {
        const NONE: Bursts = Bursts { number: 0.0, periods: 0.0, shown: 0.0 };
        let tells = |(place, bursts): (&Place, &Bursts)| if place.after_call { NONE } else { *bursts };
        self.places.iter().zip(bursts).map(tells).collect()
    }

    /// What the bursts of each place show, if those that are not right after a call stand for so much.
    pub fn spread(&self, stand_for: &[f64]) -> Vec<f64> {
        let mut shown = vec![0.0; stand_for.len()];
        self.follow(stand_for.iter().copied().enumerate(), |place, amount| shown[place] += amount);
        shown
    }

    /// Which places show what the bursts of one stand for; the parts add up to 1. A place may be there several times.
    pub fn shown_by(&self, place: usize) -> Vec<(usize, f64)> {
        let mut shown = Vec::new();
        self.follow(std::iter::once((place, 1.0)), |place, part| shown.push((place, part)));
        shown
    }

    fn follow(&self, stand_for: impl Iterator<Item = (usize, f64)>, mut show: impl FnMut(usize, f64)) {
        let mut left: BTreeMap<usize, Left> =
            stand_for.map(|(place, amount)| (place, Left { amount, bursts: amount })).collect();
        let all: f64 = left.values().map(|left| left.amount).sum();
        for _ in 0..MOST_CALLS {
            let mut next: BTreeMap<usize, Left> = BTreeMap::new();
            for (place, Left { amount, bursts }) in left {
                if amount <= 0.0 || bursts <= 0.0 {
                    continue;
                }
                // Of a full burst.
                let each = amount / bursts;
                let mut rest = amount;
                for Ended { at, part, length } in self.places[place].ended.iter().filter(|ended| ended.length < each) {
                    let onward = amount * part * (1.0 - length / each);
                    rest -= onward;
                    let sum = next.entry(*at).or_default();
                    sum.amount += onward;
                    sum.bursts += bursts * part;
                }
                show(place, rest.max(0.0));
            }
            left = next;
            if left.values().map(|left| left.amount).sum::<f64>() <= REST * all {
                break;
            }
        }
        for (place, Left { amount, .. }) in left {
            show(place, amount);
        }
    }
}

/// Where code goes on after the next system call, if it comes to it straight on.
fn after_next_call(strata: &Strata<'_>, module: ModuleId, from: FileOffset) -> Option<FileOffset> {
    let image = &strata.code(module)?.binary.image;
    let start = image.svma_of_file_offset(from.0)?;
    let mut decoder = image.decoder(start, NEAR);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => {}
            _ if instruction.mnemonic() == Mnemonic::Syscall => {
                return Some(FileOffset(from.0 + (instruction.next_ip() - start.0)));
            }
            _ => return None,
        }
    }
    None
}

/// Whether the instruction there comes right after a system call.
pub(super) fn follows_call(strata: &Strata<'_>, module: ModuleId, at: FileOffset) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let bytes = || {
        let image = &strata.code(module)?.binary.image;
        let before = image.svma_of_file_offset(at.0.checked_sub(SYSCALL.len() as u64)?)?;
        Some(image.bytes_at(before, SYSCALL.len() as u64)? == SYSCALL)
    };
    bytes().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(after_call: bool, ended: &[(usize, f64, f64)]) -> Place {
        let ended = ended.iter().map(|&(at, part, length)| Ended { at, part, length }).collect();
        Place { after_call, ended }
    }

    fn spread(places: Vec<Place>, stand_for: &[f64]) -> Vec<f64> {
        AfterCalls { places }.spread(stand_for)
    }

    #[test]
    fn full_bursts_show_all_they_stand_for() {
        assert_eq!(spread(vec![place(false, &[]), place(true, &[])], &[3.0, 0.0]), [3.0, 0.0]);
    }

    #[test]
    fn what_is_left_of_a_burst_is_shown_by_those_after_the_call() {
        // Half of the bursts ended after a quarter.
        let shown = spread(vec![place(false, &[(1, 0.5, 0.25)]), place(true, &[])], &[8.0, 0.0]);
        assert_eq!(shown, [5.0, 3.0]);
    }

    #[test]
    fn bursts_after_calls_that_end_at_calls_are_gone_on_with_in_turn() {
        // A server: every burst ends at the one call, after a half on the average, and one that starts after it after a tenth of a full burst.
        let shown = spread(vec![place(false, &[(1, 1.0, 0.05)]), place(true, &[(1, 1.0, 0.1)])], &[1.0, 0.0]);
        assert!((shown[0] - 0.05).abs() < 1e-9 && (shown[1] - 0.95).abs() < 1e-9, "{shown:?}");
        // Two calls in turn, with different work after them.
        let turns = [place(false, &[(1, 1.0, 0.0)]), place(true, &[(2, 1.0, 0.1)]), place(true, &[(1, 1.0, 0.3)])];
        let shown = spread(turns.into(), &[1.0, 0.0, 0.0]);
        assert!((shown[1] - 0.3).abs() < 1e-9 && (shown[2] - 0.7).abs() < 1e-9, "{shown:?}");
    }
}
