//! Adding flows up, one at a time: memory grows with what is different in them, not with their number.

use crate::address::Svma;
use crate::flow::{BranchCount, Flow, FlowBuilder, IpCount, Place, RangeCount};
use crate::recording::ModuleKind;

/// A sum of flows, of recordings of different hosts and times.
#[derive(Debug)]
pub struct Merge {
    builder: FlowBuilder,
    executions: bool,
    inputs: u64,
}

impl Default for Merge {
    fn default() -> Self {
        Merge { builder: FlowBuilder::default(), executions: true, inputs: 0 }
    }
}

impl Merge {
    /// Adds a flow, so many times. Code without a file (the kernel, which is elsewhere after each boot, JIT) has no addresses that
    /// mean the same in another recording: it is left out, and counted there.
    pub fn add(&mut self, flow: &Flow, weight: f64) {
        self.executions &= flow.executions;
        self.inputs = self.inputs.saturating_add(flow.inputs);
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
                let to = Place { module: indexes[branch.to.module], at };
                let (count, mispredicted) = (branch.count * weight, branch.mispredicted * weight);
                builder.add_branch(index, BranchCount { from: branch.from, to, count, mispredicted });
            }
            for sample in &of.samples {
                builder.add_sample(index, IpCount { count: sample.count * weight, ..*sample });
            }
        }
    }

    /// The sum. It is in executions if all of the flows are.
    pub fn finish(self) -> Flow {
        Flow { inputs: self.inputs, ..self.builder.finish(self.executions) }
    }
}
