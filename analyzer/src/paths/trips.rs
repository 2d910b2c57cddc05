//! How often loops went around each time that they were entered.
//!
//! What a burst shows of a loop may be cut off: by its end, then the loop went around at least as often as was seen, or by its begin, then
//! it is not known how often it had gone around before. Long trips are cut off more often than short ones, so to count only those that were
//! seen from entry to exit would show loops as shorter than they are. The part of the entries that go around `n` times is therefore
//! estimated as survival is (Kaplan and Meier, "Nonparametric estimation from incomplete observations", 1958): of all trips that were seen
//! entering and still going on in the n-th iteration until that ended, the part that ended the loop. What was cut off counts as long as it was
//! seen. It is right if where a burst ends has nothing to do with how long the loop would have gone on.

use std::collections::BTreeMap;

use crate::paths::found::at_most_all;
use crate::paths::sums::Sum;
use crate::uncertainty::{Design, Interval, Replicates, Sampled, Slice, SliceSet};

/// Iterations that are told apart one by one; more are by sixteenths of powers of two.
const EXACT: u32 = 64;
const EXACT_POWER: u32 = EXACT.ilog2();
const PARTS: u32 = 16;

/// The trips of a loop that were seen.
#[derive(Clone, Debug, Default)]
pub struct TripSums {
    /// By iterations (see [`slot_of`]): those that ended the loop, and those that were cut off in that iteration.
    slots: BTreeMap<u32, Ended>,
    /// The most iterations of one that was cut off.
    longest_cut: u32,
    /// Those whose entry was not seen.
    pub without_entry: Sum,
}

#[derive(Clone, Debug, Default)]
struct Ended {
    whole: Sum,
    cut: Sum,
}

impl TripSums {
    /// The loop was entered, and left after so many iterations; at least 1.
    pub fn add_whole(&mut self, iterations: u32, sum: &Sum) {
        self.slots.entry(slot_of(iterations)).or_default().whole.plus(sum);
    }

    /// The loop was entered, and what was seen of it ends in that iteration.
    pub fn add_cut(&mut self, iterations: u32, sum: &Sum) {
        self.slots.entry(slot_of(iterations)).or_default().cut.plus(sum);
        self.longest_cut = self.longest_cut.max(iterations);
    }

    /// Adds those that another reader of the recording saw.
    pub fn merge(&mut self, other: &Self) {
        for (slot, ended) in &other.slots {
            let sums = self.slots.entry(*slot).or_default();
            sums.whole.plus(&ended.whole);
            sums.cut.plus(&ended.cut);
        }
        self.longest_cut = self.longest_cut.max(other.longest_cut);
        self.without_entry.plus(&other.without_entry);
    }

    /// What follows for the loop.
    pub fn finish(&self, design: &Design) -> LoopTrips {
        let all: Vec<(u32, [(f64, Sampled); 2])> =
            self.slots.iter().map(|(slot, ended)| (*slot, [ended.whole.sampled(), ended.cut.sampled()])).collect();
        let shares = survival(all.iter().map(|(slot, [whole, cut])| (*slot, whole.0, cut.0)));
        let without = |slice: Slice| {
            let of = |sum: &(f64, Sampled)| sum.1.replicates.without(slice).max(0.0);
            survival(all.iter().map(|(slot, [whole, cut])| (*slot, of(whole), of(cut))))
        };
        let replicates: Vec<(Slice, Shares)> = Slice::all().map(|slice| (slice, without(slice))).collect();
        // Of one kind of entries beside all others.
        let interval = |value: f64, of: &dyn Fn(&Shares) -> f64, seen: [SliceSet; 2]| {
            let (mut part, mut rest) = (Replicates::of(value), Replicates::of(1.0 - value));
            for (slice, shares) in &replicates {
                *part.without_mut(*slice) = of(shares);
                *rest.without_mut(*slice) = 1.0 - of(shares);
            }
            let [of_part, of_rest] = seen;
            let rest = Sampled { replicates: rest, seen: of_rest };
            at_most_all(design.part((value, &Sampled { replicates: part, seen: of_part }), (1.0 - value, &rest)))
        };
        let seen_in = |is_of: &dyn Fn(u32) -> bool| {
            let of = self.slots.iter().filter(|(slot, _)| is_of(**slot));
            of.fold(SliceSet::default(), |seen, (_, ended)| seen.or(ended.whole.slices.slices()))
        };
        let count = |of: &dyn Fn(&Ended) -> u64| self.slots.values().map(of).sum::<u64>();
        let mut buckets: Vec<TripBucket> = Vec::new();
        for (&bucket, &share) in &shares.buckets {
            let of_bucket = || self.slots.iter().filter(|(slot, _)| bucket_of_slot(**slot) == bucket);
            let seen =
                [seen_in(&|slot| bucket_of_slot(slot) == bucket), seen_in(&|slot| bucket_of_slot(slot) != bucket)];
            let of = |shares: &Shares| shares.buckets.get(&bucket).copied().unwrap_or(0.0);
            buckets.push(TripBucket {
                least: if bucket == 0 { 1 } else { (1_u32 << (bucket - 1)).saturating_add(1) },
                most: 1_u32.checked_shl(bucket).unwrap_or(u32::MAX),
                share,
                share_interval: interval(share, &of, seen),
                whole: of_bucket().map(|(_, ended)| ended.whole.seen).sum(),
                cut: of_bucket().map(|(_, ended)| ended.cut.seen).sum(),
            });
        }
        let cut_in = self.slots.values().fold(SliceSet::default(), |seen, ended| seen.or(ended.cut.slices.slices()));
        LoopTrips {
            buckets,
            longer: shares.rest,
            longer_interval: interval(shares.rest, &|shares| shares.rest, [cut_in, seen_in(&|_| true)]),
            at_least: self.longest_cut,
            whole: count(&|ended| ended.whole.seen),
            cut: count(&|ended| ended.cut.seen),
            without_entry: self.without_entry.seen,
        }
    }
}

/// How often a loop went around each time that it was entered.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopTrips {
    /// By iterations; those that nothing was seen of are left out.
    pub buckets: Vec<TripBucket>,
    /// The share of the entries that went around at least [`Self::at_least`] times, and nothing says how often; 0 to 1.
    pub longer: f64,
    /// How uncertain it is.
    pub longer_interval: Interval,
    /// The most iterations of a trip that was cut off; 0 if none was.
    pub at_least: u32,
    /// Trips that were seen from entry to exit.
    pub whole: u64,
    /// Trips that were seen entering, and cut off.
    pub cut: u64,
    /// Trips whose entry was not seen: nothing follows from them.
    pub without_entry: u64,
}

impl LoopTrips {
    /// It was seen entering: the shares say something.
    pub fn has_entries(&self) -> bool {
        self.whole + self.cut > 0
    }
}

/// Trips of so many iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TripBucket {
    /// The fewest iterations.
    pub least: u32,
    /// The most.
    pub most: u32,
    /// The share of the entries of the loop that have so many, 0 to 1.
    pub share: f64,
    /// How uncertain it is.
    pub share_interval: Interval,
    /// Trips with so many that were seen from entry to exit.
    pub whole: u64,
    /// Trips that were cut off when they had gone around so often.
    pub cut: u64,
}

/// The share of the entries by bucket, and what is left.
#[derive(Debug, Default)]
struct Shares {
    buckets: BTreeMap<u32, f64>,
    rest: f64,
}

/// The estimate of Kaplan and Meier. Each slot comes with what ended in it and what was cut off in it, in ascending order.
fn survival(slots: impl Iterator<Item = (u32, f64, f64)> + Clone) -> Shares {
    let mut at_risk: f64 = slots.clone().map(|(_, whole, cut)| whole + cut).sum();
    // Where no entry was seen, nothing is known of any.
    let mut shares = Shares { buckets: BTreeMap::new(), rest: if at_risk > 0.0 { 1.0 } else { 0.0 } };
    for (slot, whole, cut) in slots {
        // Of those that were cut off in an iteration, nobody knows whether it ended the loop.
        at_risk -= cut;
        let share = if whole > 0.0 { shares.rest * (whole / at_risk.max(whole)) } else { 0.0 };
        *shares.buckets.entry(bucket_of_slot(slot)).or_default() += share;
        shares.rest -= share;
        at_risk -= whole;
    }
    // What rounding leaves is nothing.
    if shares.rest < 1e-9 {
        shares.rest = 0.0;
    }
    shares
}

/// Iterations up to 64 have a slot each, more share it: 65 to 68, 69 to 72, .., 125 to 128, 129 to 136 and so on.
fn slot_of(iterations: u32) -> u32 {
    let before = iterations.saturating_sub(1);
    if before < EXACT {
        return before;
    }
    let power = before.ilog2();
    let part = (before - (1 << power)) >> (power - PARTS.ilog2());
    EXACT + (power - EXACT_POWER) * PARTS + part
}

/// 1, 2, 3 to 4, 5 to 8 and so on.
fn bucket_of_slot(slot: u32) -> u32 {
    match slot {
        0 => 0,
        slot if slot < EXACT => slot.ilog2() + 1,
        slot => (slot - EXACT) / PARTS + EXACT_POWER + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Weight;

    fn once(slice: usize) -> Sum {
        Sum::once(Weight::of_executions(1.0), Slice::all().nth(slice).unwrap_or_default())
    }

    fn finish(sums: &TripSums) -> LoopTrips {
        sums.finish(&Design::default())
    }

    fn shares(trips: &LoopTrips) -> Vec<(u32, u32, f64)> {
        let rounded = |share: f64| (share * 1e6).round() / 1e6;
        trips.buckets.iter().map(|of| (of.least, of.most, rounded(of.share))).collect()
    }

    #[test]
    fn slots_are_within_buckets() {
        let mut last = 0;
        for iterations in (1..5000).chain([1 << 20, (1 << 20) + 1, u32::MAX]) {
            let slot = slot_of(iterations);
            assert!(slot >= last);
            last = slot;
            let bucket = bucket_of_slot(slot);
            let least = if bucket == 0 { 1 } else { (1_u64 << (bucket - 1)) + 1 };
            assert!((least..=1 << bucket).contains(&u64::from(iterations)), "{iterations}: {slot} {bucket}");
        }
        assert!(slot_of(u32::MAX) < 500);
    }

    #[test]
    fn what_is_seen_whole_is_counted() {
        let mut sums = TripSums::default();
        for (iterations, times) in [(1, 1), (3, 4), (4, 1), (7, 2)] {
            (0..times).for_each(|_| sums.add_whole(iterations, &once(0)));
        }
        let trips = finish(&sums);
        assert_eq!(shares(&trips), [(1, 1, 0.125), (3, 4, 0.625), (5, 8, 0.25)]);
        assert_eq!((trips.longer, trips.at_least, trips.whole, trips.cut), (0.0, 0, 8, 0));
    }

    /// Of 4 entries 1 was cut off in its second iteration: of the 3 others, 1 ended in the first.
    #[test]
    fn what_is_cut_off_counts_as_long_as_it_was_seen() {
        let mut sums = TripSums::default();
        sums.add_whole(1, &once(0));
        sums.add_cut(2, &once(0));
        sums.add_whole(2, &once(0));
        sums.add_whole(3, &once(0));
        // 1/4 end in the first; of the 3/4 that are left, half of those that were seen to the end of the second.
        assert_eq!(shares(&finish(&sums)), [(1, 1, 0.25), (2, 2, 0.375), (3, 4, 0.375)]);
    }

    #[test]
    fn what_only_goes_on_is_at_least_as_long() {
        let mut sums = TripSums::default();
        sums.add_whole(2, &once(0));
        sums.add_cut(100, &once(1));
        sums.add_cut(40, &once(2));
        sums.without_entry.plus(&once(3));
        let trips = finish(&sums);
        assert_eq!(shares(&trips).iter().map(|of| of.2).sum::<f64>(), 0.333333);
        assert!((trips.longer - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!((trips.at_least, trips.whole, trips.cut, trips.without_entry), (100, 1, 2, 1));
        // Nothing but ends of bursts says nothing but that.
        let mut sums = TripSums::default();
        sums.add_cut(9, &once(0));
        assert_eq!((finish(&sums).longer, finish(&sums).at_least), (1.0, 9));
    }

    /// Windows at random places of a run whose loops go around 1 or 50 times show as many whole trips of 1 iteration as there are, and few of 50.
    #[test]
    fn short_trips_are_not_preferred() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut run: Vec<(u32, u32)> = Vec::new(); // Of each iteration its number, and that of all.
        for _ in 0..20_000 {
            let all = if random.bool() { 1 } else { 50 };
            run.extend((1..=all).map(|iteration| (iteration, all)));
        }
        let (mut sums, mut naive) = (TripSums::default(), [0, 0]);
        for _ in 0..4000 {
            let begin = random.usize(..run.len() - 60);
            let mut entered = false;
            let window = &run[begin..begin + 60];
            for (at, &(iteration, all)) in window.iter().enumerate() {
                entered |= iteration == 1;
                let is_last = at + 1 == window.len();
                match (entered, iteration == all, is_last) {
                    // What comes after the last is not seen: whether it ended is not known.
                    (true, _, true) => sums.add_cut(iteration, &once(0)),
                    (true, true, _) => {
                        sums.add_whole(iteration, &once(0));
                        naive[usize::from(all > 1)] += 1;
                    }
                    _ => {}
                }
            }
        }
        let found = shares(&finish(&sums));
        assert!((found[0].2 - 0.5).abs() < 0.03, "{found:?}");
        let by_whole = f64::from(naive[0]) / f64::from(naive[0] + naive[1]);
        assert!(by_whole > 0.7, "the test shows no bias: {by_whole}");
    }
}
