//! Counts with their replicates, and what follows from these.

use serde::{Deserialize, Serialize};

use crate::counting::{CountScale, ModuleCounts};
use crate::uncertainty::interval::{NORMAL, events, rare, student, unseen};
use crate::uncertainty::{COSTS, Interval, Replicates, SLICES, Slice, SliceSet, SliceSums};

/// What a count would be in each replicate, and the slices of the recording that it was seen in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// In the unit of the count.
    pub replicates: Replicates,
    /// The slices that have a burst, or sample, of it.
    pub seen: SliceSet,
}

impl Sampled {
    /// Adds another one so many times.
    pub fn add(&mut self, other: &Sampled, times: f64) {
        self.replicates.add(&other.replicates, times);
        self.seen = self.seen.or(other.seen);
    }

    /// It as bytes, after others: those of the replicates, then those of the slices.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        self.replicates.append_to(bytes);
        bytes.extend(self.seen.bits().to_le_bytes());
    }

    /// That of [`Self::append_to`].
    pub fn of_bytes(bytes: &[u8; Sampled::BYTES]) -> Self {
        let (replicates, seen) = bytes.split_at(Replicates::BYTES);
        let seen = seen.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Sampled { replicates: Replicates::of_bytes(replicates), seen: SliceSet::of_bits(seen) }
    }

    /// How many bytes it is.
    pub const BYTES: usize = Replicates::BYTES + size_of::<u32>();
}

/// What counts are, as far as their uncertainty goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountKind {
    /// Estimates from a recording, with replicates.
    #[default]
    Sampled,
    /// Exact.
    Exact,
    /// Estimates, and it is not known how good they are.
    Unknown,
}

impl CountKind {
    /// The interval of everything, where replicates do not tell.
    fn interval(self) -> Option<Interval> {
        let width = match self {
            CountKind::Sampled => return None,
            CountKind::Exact => Some(0.0),
            CountKind::Unknown => None,
        };
        Some(Interval { half_width: width, by_chance: width, rests_on_little: false })
    }
}

/// How the replicates of an analysis are made: what their differences mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// What the counts are. What is kept is of samples.
    #[serde(skip)]
    pub kind: CountKind,
    /// The slices that have any bursts, or samples.
    pub slices: SliceSet,
    /// How many bursts, or samples, counts rest on.
    pub observations: u64,
}

impl Design {
    /// The interval of a number of that value. Its variance by chance is that of the delete-a-group jackknife (Wolter, "Introduction to
    /// Variance Estimation", chapter 4): with n slices, (n - 1) / n times the sum of the squared differences. What was seen in few slices is
    /// at least as uncertain as a count of rare events. The variance by wrong costs is the mean of the squared differences.
    pub fn interval(&self, value: f64, sampled: &Sampled) -> Interval {
        if let Some(interval) = self.kind.interval() {
            return interval;
        }
        let slices = self.slices.len();
        let rests_on_little = sampled.seen.len() < Interval::FEW;
        let Some(deviations) = student(slices) else {
            return Interval { half_width: None, by_chance: None, rests_on_little: true };
        };
        let squared = |replicate: f64| (replicate - value) * (replicate - value);
        let without: f64 = Slice::all().map(|slice| squared(sampled.replicates.without(slice))).sum();
        let jackknife = deviations * (without * (slices - 1) as f64 / slices as f64).sqrt();
        let by_chance = jackknife.max(value.abs() * rare(sampled.seen.len(), slices));
        let costs: f64 = sampled.replicates.with_costs().iter().map(|replicate| squared(*replicate)).sum();
        let by_costs = NORMAL * (costs / COSTS as f64).sqrt();
        Interval { half_width: Some(by_chance.hypot(by_costs)), by_chance: Some(by_chance), rests_on_little }
    }

    /// The interval of the share that a part has of a whole. Both come with their values. It is at least what code that was never seen can
    /// take away from it.
    pub fn share(&self, part: (f64, &Sampled), whole: (f64, &Sampled)) -> Interval {
        if let Some(interval) = self.kind.interval() {
            return interval;
        }
        let replicates = part.1.replicates.zip(&whole.1.replicates, ratio);
        let value = ratio(part.0, whole.0);
        let interval = self.interval(value, &Sampled { replicates, seen: part.1.seen });
        let (Some(half_width), Some(by_chance)) = (interval.half_width, interval.by_chance) else { return interval };
        let least = value * unseen(self.observations);
        let (more, less) = (by_chance.max(least), by_chance);
        let half_width = (half_width * half_width - less * less + more * more).sqrt();
        Interval { half_width: Some(half_width), by_chance: Some(more), ..interval }
    }

    /// Which share code may have that was never seen, at 95 %: 0 where counts are exact.
    pub fn unseen(&self) -> f64 {
        if self.kind == CountKind::Exact { 0.0 } else { unseen(self.observations) }
    }

    /// The interval of the part that one of two kinds of the same code has of both, where `rest` is the other one. That both were seen seldom does
    /// not matter as far as they were seen together: what was only ever of one kind is wholly of it. It is at least what code of both that was
    /// never seen can take away from it, or add to it, by as many bursts, or samples, as both rest on.
    pub fn part(&self, part: (f64, &Sampled), rest: (f64, &Sampled)) -> Interval {
        if let Some(interval) = self.kind.interval() {
            return interval;
        }
        let both = part.1.replicates.zip(&rest.1.replicates, |one, other| one + other);
        let value = ratio(part.0, part.0 + rest.0);
        let replicates = part.1.replicates.zip(&both, |part, both| if both > 0.0 { part / both } else { value });
        // All slices are said to have seen it, so that the width is that of the replicates alone.
        let interval = self.interval(value, &Sampled { replicates, seen: self.slices });
        let seen = part.1.seen.or(rest.1.seen);
        let rests_on_little = seen.len() < Interval::FEW;
        let (Some(half_width), Some(jackknife)) = (interval.half_width, interval.by_chance) else {
            return Interval { rests_on_little, ..interval };
        };
        let slices = self.slices.len();
        let seldom = [part.1, rest.1].map(|sampled| rare(sampled.seen.len(), slices));
        let by_seldom = value * (1.0 - value) * seldom[0].hypot(seldom[1]);
        let rests_on = events(seen.len(), slices).map_or(self.observations, |events| self.observations.min(events));
        let by_chance = jackknife.max(by_seldom).max(value.max(1.0 - value) * unseen(rests_on));
        let half_width = (half_width * half_width - jackknife * jackknife + by_chance * by_chance).sqrt();
        Interval { half_width: Some(half_width), by_chance: Some(by_chance), rests_on_little }
    }
}

/// How the replicates of counts are made from the sums of a recording.
pub(crate) struct Resampling {
    /// By slice, what makes up for its samples where they are left out.
    ebs: [f64; SLICES],
    /// The same for branch stacks that are no bursts.
    lbr: [f64; SLICES],
    /// What brings both sources to one unit, in each replicate.
    scale_ebs: Replicates,
    scale_lbr: Replicates,
    /// The slices with samples, and with branch stacks.
    pub seen: [SliceSet; 2],
}

/// The part of a whole, 0 where there is none.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// By slice, what makes up for its part of a sum.
pub(crate) fn made_up(sums: &[u64; SLICES]) -> [f64; SLICES] {
    let all: f64 = sums.iter().map(|sum| *sum as f64).sum();
    sums.map(|sum| if all > sum as f64 { all / (all - sum as f64) } else { 1.0 })
}

impl Resampling {
    /// Of a recording whose counts have that scale. `common` calls its argument with each row of sums that both sources see and its number
    /// of instructions.
    pub fn new(
        counted: &[ModuleCounts],
        scale: &CountScale,
        common: impl Fn(&mut dyn FnMut(&ModuleCounts, usize, f64)),
    ) -> Self {
        let (mut ebs, mut lbr, mut seen) = ([0; SLICES], [0; SLICES], [SliceSet::default(); 2]);
        for sums in counted.iter().flat_map(|module| &module.sliced) {
            sums.ebs.add_to(&mut ebs);
            sums.lbr.add_to(&mut lbr);
            seen[0] = seen[0].or(sums.ebs.slices());
            seen[1] = seen[1]
                .or(sums.lbr.slices())
                .or(sums.bursts.as_ref().map_or(SliceSet::default(), |bursts| bursts.seen));
        }
        let one = Replicates::of(1.0);
        let mut resampling =
            Resampling { ebs: made_up(&ebs), lbr: made_up(&lbr), scale_ebs: one.clone(), scale_lbr: one, seen };
        if (scale.ebs, scale.lbr) == (1.0, 1.0) {
            return resampling;
        }
        let (mut by_ebs, mut by_lbr) = (Replicates::default(), Replicates::default());
        common(&mut |module, row, instructions| {
            by_ebs.add(&resampling.periods(module, row).replicates, 1.0);
            by_lbr.add(&resampling.weights(module, row).replicates, instructions);
        });
        if scale.lbr == 1.0 {
            resampling.scale_ebs = by_lbr.zip(&by_ebs, ratio);
        } else {
            resampling.scale_lbr = by_ebs.zip(&by_lbr, ratio);
        }
        resampling
    }

    /// The executions of a row by one of the sources.
    pub fn executions(&self, source: model::Source, module: &ModuleCounts, row: usize, instructions: f64) -> Sampled {
        match source {
            model::Source::Ebs => {
                let Sampled { replicates, seen } = self.periods(module, row);
                let executions = |periods: f64, scale: f64| periods / instructions.max(1.0) * scale;
                Sampled { replicates: replicates.zip(&self.scale_ebs, executions), seen }
            }
            model::Source::Lbr => {
                let Sampled { replicates, seen } = self.weights(module, row);
                Sampled { replicates: replicates.zip(&self.scale_lbr, |weight, scale| weight * scale), seen }
            }
        }
    }

    /// The periods of the samples of a row.
    fn periods(&self, module: &ModuleCounts, row: usize) -> Sampled {
        resampled(module.sums[row].2.ebs_periods as f64, &module.sliced[row].ebs, &self.ebs)
    }

    /// The weight of the streams of a row.
    fn weights(&self, module: &ModuleCounts, row: usize) -> Sampled {
        match &module.sliced[row].bursts {
            Some(bursts) => (**bursts).clone(),
            None => resampled(module.sums[row].2.lbr_weight.to_f64(), &module.sliced[row].lbr, &self.lbr),
        }
    }
}

/// A sum without each of its slices, which others make up for.
fn resampled(value: f64, sums: &SliceSums, made_up: &[f64; SLICES]) -> Sampled {
    let mut replicates = Replicates::of(value);
    for slice in Slice::all() {
        *replicates.without_mut(slice) *= made_up[slice.index()];
    }
    sums.for_each_part(|slice, part| *replicates.without_mut(slice) *= 1.0 - part);
    Sampled { replicates, seen: sums.slices() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What so many slices saw, each of the others making up for it.
    fn sampled(count: f64, slices: usize) -> Sampled {
        let mut sampled = Sampled { replicates: Replicates::of(count), seen: SliceSet::default() };
        for slice in Slice::all().take(slices) {
            sampled.seen.insert(slice);
        }
        sampled
    }

    #[test]
    fn bytes_are_the_same_again() {
        let mut one = sampled(1.5, 3);
        one.replicates.with_costs_mut()[COSTS - 1] = f64::MIN_POSITIVE;
        let mut bytes = Vec::new();
        one.append_to(&mut bytes);
        assert_eq!(Sampled::of_bytes(bytes[..].try_into().unwrap()), one);
        assert_eq!(Sampled::of_bytes(&[0xff; Sampled::BYTES]).seen.len(), SLICES, "there are no more slices");
    }

    #[test]
    fn parts_are_as_certain_as_what_they_rest_on() {
        let design = Design { slices: sampled(0.0, SLICES).seen, observations: 1_000_000, ..Design::default() };
        let width = |part: (f64, usize), rest: (f64, usize)| {
            let interval = design.part((part.0, &sampled(part.0, part.1)), (rest.0, &sampled(rest.0, rest.1)));
            (interval.half_width.unwrap(), interval.rests_on_little)
        };
        let near = |(width, _): (f64, bool), expected: f64| assert!((width - expected).abs() < 1e-3, "{width}");
        // Three bursts saw one kind only: that of the others can be as much as three can miss.
        near(width((100.0, 3), (0.0, 0)), unseen(3));
        near(width((100.0, 10), (0.0, 0)), unseen(14));
        near(width((0.0, 0), (100.0, 20)), 0.0);
        near(width((50.0, 20), (50.0, 20)), 0.0);
        // Half of it, of which five slices saw one part: 120 % of a quarter.
        near(width((50.0, 5), (50.0, 20)), 0.25 * rare(5, SLICES));
        assert!(width((100.0, 3), (0.0, 0)).1 && !width((100.0, 3), (1.0, 9)).1);
        assert_eq!(Design::default().part((1.0, &sampled(1.0, 1)), (0.0, &sampled(0.0, 0))).half_width, None);
    }
}
