//! Adding flows up, one at a time: memory grows with what is different in them, not with their number.

use crate::address::Svma;
use crate::flow::{BranchCount, Flow, FlowBuilder, IpCount, ModuleAddress, RangeCount};
use crate::recording::ModuleKind;

/// A sum of flows, of recordings of different hosts and times.
#[derive(Debug)]
pub struct Merge {
    builder: FlowBuilder,
    executions: bool,
    inputs: u64,
    /// All of them say how many streams were seen.
    seen_is_known: bool,
}

impl Default for Merge {
    fn default() -> Self {
        Merge { builder: FlowBuilder::default(), executions: true, inputs: 0, seen_is_known: true }
    }
}

impl Merge {
    /// Adds a flow, so many times. Code without a file (the kernel, which is elsewhere after each boot, JIT) has no addresses that
    /// mean the same in another recording: it is left out, and counted there.
    pub fn add(&mut self, flow: &Flow, weight: f64) {
        self.executions &= flow.executions;
        self.inputs = self.inputs.saturating_add(flow.inputs);
        self.seen_is_known &= flow.seen > 0.0;
        let builder = &mut self.builder;
        builder.seen += flow.seen * weight;
        builder.left_out.add(&flow.left_out, weight);
        let has_file = |kind| matches!(kind, ModuleKind::File | ModuleKind::KernelModule);
        let indexes: Vec<usize> = flow.modules.iter().map(|of| builder.module(&of.module, of.read)).collect();
        for (of, &index) in flow.modules.iter().zip(&indexes) {
            if !has_file(of.module.kind) {
                builder.left_out.streams += of.range_total() * weight;
                builder.left_out.branches += of.branch_total() * weight;
                builder.left_out.samples += of.sample_total() * weight;
                continue;
            }
            for range in &of.ranges {
                builder.add_range(index, RangeCount { count: range.count * weight, ..*range });
            }
            for branch in &of.branches {
                let at = if has_file(flow.modules[branch.to.module].module.kind) { branch.to.at } else { Svma(0) };
                let to = ModuleAddress { module: indexes[branch.to.module], at };
                let (count, mispredicted) = (branch.count * weight, branch.mispredicted * weight);
                builder.add_branch(index, BranchCount { from: branch.from, to, count, mispredicted });
            }
            for sample in &of.samples {
                builder.add_sample(index, IpCount { count: sample.count * weight, ..*sample });
            }
        }
    }

    /// The sum. It is in executions if all of the flows are; how many streams were seen is known if it is of all of them.
    pub fn finish(self) -> Flow {
        let sum = self.builder.finish(self.executions);
        let seen = if self.seen_is_known { sum.seen } else { 0.0 };
        Flow { inputs: self.inputs, seen, ..sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_known_of_all_or_not_at_all() {
        let flow = |seen: f64| Flow { seen, ..FlowBuilder::default().finish(false) };
        let seen_of = |flows: &[Flow]| {
            let mut merge = Merge::default();
            flows.iter().for_each(|flow| merge.add(flow, 2.0));
            merge.finish().seen
        };
        assert_eq!(seen_of(&[flow(3.0), flow(4.0)]), 14.0);
        assert_eq!(seen_of(&[flow(3.0), flow(0.0)]), 0.0);
    }
}
