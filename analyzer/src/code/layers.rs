//! From overlapping claims on addresses to sorted, disjoint ranges.
//!
//! Symbols nest, overlap and share addresses; unwind entries cover what symbols leave out; regions cover the rest.
//! Each is first made disjoint by itself ([`flatten`]), then laid under the better one ([`fill`]):
//! ```text
//! symbols   |--a--|      |----b----|
//! unwind    |--1--||--2--|--3--|         |-4-|
//! regions  [================================== .text ===]
//! result    |--a--||--2--|----b----|gap  |-4-|   gap    |
//! ```

use super::candidate::Candidate;
use super::function::{Function, Origin};
use super::names::{Name, NameBytes};
use super::region::Region;
use crate::address::Svma;

/// One candidate per start address: the best name, and the longest extent that any of the aliases states.
pub(super) fn merge_aliases(mut candidates: Vec<Candidate>, names: &NameBytes) -> Vec<Candidate> {
    candidates.sort_by_key(|candidate| (candidate.start, candidate.rank));
    candidates
        .chunk_by(|a, b| a.start == b.start)
        .filter_map(|aliases| {
            let rank = aliases.first()?.rank;
            let best = aliases.iter().take_while(|alias| alias.rank == rank);
            let mut merged = match aliases {
                [only] => *only,
                _ => *best.min_by_key(|alias| names.alias_order(alias.name))?,
            };
            merged.end = aliases.iter().map(|alias| alias.end).max()?;
            merged.has_known_end = aliases.iter().any(|alias| alias.has_known_end);
            Some(merged)
        })
        .collect()
}

/// Gives candidates without a size one: up to the next candidate, the end of the unwind entry or region they are in. Those
/// inside a candidate with a size are labels in it, and go. The candidates must be sorted by distinct starts,
/// the unwind ranges sorted and disjoint.
pub(super) fn bound_unsized(candidates: &mut Vec<Candidate>, unwind: &[Function], regions: &[Region]) {
    let mut covered = Svma(0);
    candidates.retain(|candidate| {
        let label = candidate.start == candidate.end && candidate.start < covered;
        covered = covered.max(candidate.end);
        !label
    });
    let mut next = None;
    for candidate in candidates.iter_mut().rev() {
        if candidate.start == candidate.end {
            let after = unwind.partition_point(|entry| entry.start <= candidate.start);
            let entry = after
                .checked_sub(1)
                .and_then(|index| Some(unwind.get(index)?.end))
                .filter(|&end| end > candidate.start);
            let region = Region::holding(regions, candidate.start).map(|region| region.end);
            candidate.end = [next, entry, region].into_iter().flatten().min().unwrap_or(candidate.start);
            candidate.has_known_end = entry == Some(candidate.end);
        }
        next = Some(candidate.start);
    }
    candidates.retain(|candidate| candidate.start < candidate.end);
}

/// Sorted, disjoint ranges: where candidates overlap, the one that starts last has the address. A candidate that another
/// one interrupts continues after it, as a range of its own with the same name. The candidates must be sorted by
/// distinct starts.
/// ```text
/// outer |------------------|          outer |----|          |-----|
/// inner      |----------|       ->    inner      |----------|
/// ```
pub(super) fn flatten(candidates: &[Candidate]) -> Vec<Function> {
    let mut ranges = Vec::with_capacity(candidates.len());
    // Candidates that have begun, the innermost last.
    let mut open: Vec<&Candidate> = Vec::new();
    let ends = candidates.iter().skip(1).map(|next| Some(next.start)).chain([None]);
    for (candidate, limit) in candidates.iter().zip(ends) {
        open.push(candidate);
        let mut position = candidate.start;
        while let Some(&inner) = open.last() {
            let end = limit.map_or(inner.end, |limit| inner.end.min(limit));
            if position < end {
                ranges.push(Function {
                    start: position,
                    end,
                    symbol: inner.start,
                    origin: inner.origin,
                    has_known_end: inner.has_known_end,
                    name: inner.name,
                });
                position = end;
            }
            if limit.is_some_and(|limit| limit <= position) {
                break;
            }
            open.pop();
        }
    }
    ranges
}

/// `upper`, with the holes between its ranges filled by what `lower` has there. Both sorted and disjoint.
pub(super) fn fill(upper: Vec<Function>, lower: &[Function]) -> Vec<Function> {
    let mut filled = Vec::with_capacity(upper.len() + lower.len());
    let mut below = lower.iter().peekable();
    let mut free = Svma(0);
    let bounds = upper.into_iter().map(Some).chain([None]);
    for above in bounds {
        let limit = above.as_ref().map_or(Svma(u64::MAX), |range| range.start);
        while let Some(range) = below.peek() {
            if range.start >= limit {
                break;
            }
            let (start, end) = (range.start.max(free), range.end.min(limit));
            if start < end {
                // A gap is named by where it starts; a part of a function by the function.
                let symbol = if range.origin == Origin::Gap { start } else { range.symbol };
                filled.push(Function { start, end, symbol, ..**range });
            }
            if range.end > limit {
                break;
            }
            below.next();
        }
        if let Some(range) = above {
            free = range.end;
            filled.push(range);
        }
    }
    filled
}

/// The regions themselves as ranges, for [`fill`].
pub(super) fn gaps(regions: &[Region]) -> Vec<Function> {
    (0..)
        .zip(regions)
        .map(|(index, region)| Function {
            start: region.start,
            end: region.end,
            symbol: region.start,
            origin: Origin::Gap,
            has_known_end: false,
            name: Name::Place(index),
        })
        .collect()
}
