//! How counts of a profile are distributed: which count makes a block hot (llvm/lib/ProfileData/ProfileSummaryBuilder.cpp).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use analyzer::sample_profile::{FunctionSamples, SampleProfile};

/// Shares of the sum of all counts, in millionths, that compilers ask for.
const CUTOFFS: [u32; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000, 950_000, 990_000, 999_000,
    999_900, 999_990, 999_999,
];

/// The distribution of the counts of all positions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub total: u64,
    pub largest: u64,
    /// Calls of the function that was called most.
    pub most_calls: u64,
    /// Positions.
    pub counts: u64,
    pub functions: u64,
    pub cutoffs: Vec<Cutoff>,
}

/// The largest counts that together make up a share of the total.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cutoff {
    /// In millionths.
    pub share: u32,
    /// The smallest of them.
    pub smallest: u64,
    /// How many they are.
    pub counts: u64,
}

impl Summary {
    pub fn of(profile: &SampleProfile) -> Self {
        let mut summary = Self { functions: profile.functions.len() as u64, ..Self::default() };
        let mut frequencies: BTreeMap<Reverse<u64>, u64> = BTreeMap::new();
        for function in profile.functions.values() {
            summary.most_calls = summary.most_calls.max(function.head);
            add(function, &mut frequencies);
        }
        for (&Reverse(count), &times) in &frequencies {
            summary.total = summary.total.saturating_add(count.saturating_mul(times));
            summary.largest = summary.largest.max(count);
            summary.counts += times;
        }
        let mut largest = frequencies.into_iter();
        let (mut sum, mut smallest, mut counts) = (0_u64, 0, 0);
        for share in CUTOFFS {
            let wanted = (u128::from(summary.total) * u128::from(share) / 1_000_000) as u64;
            while sum < wanted {
                let Some((Reverse(count), times)) = largest.next() else { break };
                sum = sum.saturating_add(count.saturating_mul(times));
                smallest = count;
                counts += times;
            }
            summary.cutoffs.push(Cutoff { share, smallest, counts });
        }
        summary
    }
}

fn add(function: &FunctionSamples, frequencies: &mut BTreeMap<Reverse<u64>, u64>) {
    for sample in function.body.values() {
        *frequencies.entry(Reverse(sample.count)).or_default() += 1;
    }
    function.inlined.values().for_each(|inlined| add(inlined, frequencies));
}
