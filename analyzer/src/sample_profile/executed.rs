//! How often each address was executed.

use std::collections::BTreeMap;

use crate::address::Svma;
use crate::flow::ModuleFlow;

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
        let of = |sample: &crate::flow::IpCount| Executed {
            start: sample.at,
            end: Svma(sample.at.0.saturating_add(1)),
            count: sample.count,
        };
        return module.samples.iter().map(of).collect();
    }
    let mut changes: BTreeMap<Svma, i128> = BTreeMap::new();
    for range in &module.ranges {
        let parts = (range.count * PARTS) as i128;
        *changes.entry(range.first).or_default() += parts;
        *changes.entry(Svma(range.last.0.saturating_add(1))).or_default() -= parts;
    }
    let mut executed = Vec::new();
    let mut now = 0_i128;
    let mut before = Svma(0);
    for (at, change) in changes {
        if now > 0 {
            executed.push(Executed { start: before, end: at, count: now as f64 / PARTS });
        }
        now += change;
        before = at;
    }
    executed
}
