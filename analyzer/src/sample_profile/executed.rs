//! How often each address was executed.

use crate::address::Svma;
use crate::counting::sum_over_addresses;
use crate::flow::{IpCount, ModuleFlow, RangeCount};

/// Addresses `[start, end)` that were executed equally often. Each holds the first byte of an instruction at its start; the last one
/// may end inside an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Executed {
    pub start: Svma,
    pub end: Svma,
    /// Of samples without branches: what they stand for.
    pub count: f64,
}

/// Parts of an execution that counts are added up in: sums of such numbers are exact, so code that did not run has 0.
const PARTS: f64 = (1_u64 << 20) as f64;

/// What ran, sorted and disjoint: from ranges, or where there are none, of samples.
pub(super) fn executed(module: &ModuleFlow) -> Vec<Executed> {
    if module.ranges.is_empty() {
        let of = |sample: &IpCount| Executed {
            start: sample.at,
            end: Svma(sample.at.0.saturating_add(1)),
            count: sample.count,
        };
        return module.samples.iter().map(of).collect();
    }
    let parts = |range: &RangeCount| (range.first.0, range.last.0.saturating_add(1), (range.count * PARTS) as i128);
    let mut executed = Vec::new();
    sum_over_addresses(module.ranges.iter().map(parts), |start, end, parts| {
        if parts > 0 {
            executed.push(Executed { start: Svma(start), end: Svma(end), count: parts as f64 / PARTS });
        }
    });
    executed
}
