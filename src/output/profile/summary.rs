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
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub total: u64,
    pub largest: u64,
    /// Calls of the function that was called most.
    pub most_calls: u64,
    /// How many positions there are.
    pub counts: u64,
    pub functions: u64,
    pub cutoffs: Vec<Cutoff>,
}

/// The largest counts that together make up a share of the total.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cutoff {
    /// The share of all counts, in millionths.
    pub share: u32,
    /// The smallest of them.
    pub smallest: u64,
    /// How many they are.
    pub counts: u64,
}

impl Summary {
    /// With the cutoffs of LLVM, and of GCC from 16.
    pub fn of(profile: &SampleProfile) -> Self {
        Self::with_cutoffs(profile, &CUTOFFS)
    }

    /// With these cutoffs, in millionths, rising.
    pub fn with_cutoffs(profile: &SampleProfile, shares: &[u32]) -> Self {
        let mut frequencies: BTreeMap<Reverse<u64>, u64> = BTreeMap::new();
        profile.functions.values().for_each(|function| add(function, &mut frequencies));
        let sum_of = |(Reverse(count), times): (&Reverse<u64>, &u64)| count.saturating_mul(*times);
        let total = frequencies.iter().map(sum_of).fold(0, u64::saturating_add);
        let largest = frequencies.keys().next().map_or(0, |Reverse(count)| *count);
        let positions = frequencies.values().sum();
        let mut remaining = frequencies.into_iter();
        let (mut sum, mut smallest, mut counts) = (0_u64, 0, 0);
        let cutoff = |&share: &u32| {
            let wanted = (u128::from(total) * u128::from(share) / 1_000_000) as u64;
            while sum < wanted {
                let Some((Reverse(count), times)) = remaining.next() else { break };
                sum = sum.saturating_add(count.saturating_mul(times));
                smallest = count;
                counts += times;
            }
            Cutoff { share, smallest, counts }
        };
        Summary {
            total,
            largest,
            most_calls: profile.functions.values().map(|function| function.head).max().unwrap_or(0),
            counts: positions,
            functions: profile.functions.len() as u64,
            cutoffs: shares.iter().map(cutoff).collect(),
        }
    }
}

fn add(function: &FunctionSamples, frequencies: &mut BTreeMap<Reverse<u64>, u64>) {
    for sample in function.body.values() {
        *frequencies.entry(Reverse(sample.count)).or_default() += 1;
    }
    function.inlined.values().for_each(|inlined| add(inlined, frequencies));
}
