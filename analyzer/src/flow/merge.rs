//! Adding flows up, one at a time: memory grows with what is different in them, not with their number.

use crate::address::Svma;
use crate::flow::{BranchCount, Flow, FlowBuilder, IpCount, ModuleAddress, RangeCount};
use crate::recording::{Module, ModuleKind};

/// A sum of flows, of recordings of different hosts and times. It does not depend on their order.
#[derive(Debug)]
pub struct Merge {
    /// What is added up.
    pub builder: FlowBuilder,
    /// All of the flows are in executions.
    pub executions: bool,
    /// How many recordings or exact counts they are the sum of.
    pub inputs: u64,
    /// All of them say how many streams were seen.
    pub seen_is_known: bool,
}

impl Default for Merge {
    fn default() -> Self {
        Merge { builder: FlowBuilder::default(), executions: true, inputs: 0, seen_is_known: true }
    }
}

impl Merge {
    /// Adds a flow, so many times, and none of its slices. Code without a file (the kernel, which is elsewhere after each boot, what it has made, JIT) has no addresses
    /// that mean the same in another recording: it is left out, and counted there.
    pub fn add(&mut self, flow: &Flow, weight: f64) {
        self.executions &= flow.executions;
        self.inputs = self.inputs.saturating_add(flow.inputs);
        self.seen_is_known &= flow.seen > 0.0;
        let builder = &mut self.builder;
        builder.seen += flow.seen * weight;
        builder.left_out.add(&flow.left_out, weight);
        let has_file = |of: &Module| match of.kind {
            ModuleKind::File => true,
            ModuleKind::KernelModule => !of.is_version && !of.is_made_by_kernel(),
            _ => false,
        };
        let indexes: Vec<usize> = flow.modules.iter().map(|of| builder.module(&of.module, of.read)).collect();
        for (of, &index) in flow.modules.iter().zip(&indexes) {
            if !has_file(&of.module) {
                builder.left_out.streams += of.range_total() * weight;
                builder.left_out.branches += of.branch_total() * weight;
                builder.left_out.samples += of.sample_total() * weight;
                continue;
            }
            for range in &of.ranges {
                builder.add_range(index, RangeCount { count: range.count * weight, ..*range });
            }
            for branch in &of.branches {
                let at = if has_file(&flow.modules[branch.to.module].module) { branch.to.at } else { Svma(0) };
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
        let mut sum = Flow { inputs: self.inputs, seen, ..sum };
        // One slice alone differs from nothing.
        if sum.slices().len() < 2 {
            sum.modules.iter_mut().for_each(|of| of.slices.clear());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build_id::BuildId;
    use crate::recording::Module;

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

    #[test]
    fn the_order_does_not_matter() {
        let flow = |count: f64, path: &str, build_id: &[u8]| {
            let mut builder = FlowBuilder::default();
            let module = Module::named(path.to_owned(), BuildId::new(build_id));
            let index = builder.module(&module, true);
            let (first, last, mispredicted) = (Svma(1), Svma(2), count / 7.0);
            let to = ModuleAddress { module: index, at: first };
            builder.add_range(index, RangeCount { first, last, count });
            builder.add_branch(index, BranchCount { from: last, to, count, mispredicted });
            builder.add_sample(index, IpCount { at: first, count });
            builder.left_out.streams += count;
            builder.seen += count;
            builder.finish(true)
        };
        // Sums of floating-point numbers would differ, and so would names.
        let flows = [
            flow(1e17, "/b", &[1, 0]),
            flow(0.1, "/b", &[1]),
            flow(0.2, "/c", &[1, 0, 0]),
            flow(0.3, "/b", &[1, 0, 0]),
            flow(1.7, "/d", &[2]),
        ];
        let merged = |order: &[usize]| {
            let mut merge = Merge::default();
            order.iter().for_each(|&index| merge.add(&flows[index], 1.0 / (index as f64 + 3.0)));
            merge.finish()
        };
        let expected = merged(&[0, 1, 2, 3, 4]);
        assert_eq!(expected.modules[0].module.build_id.as_ref().map(BuildId::as_bytes), Some(&[1][..]));
        for order in [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 3, 0, 4, 2]] {
            let other = merged(&order);
            assert_eq!(other, expected);
            assert_eq!(format!("{other:?}"), format!("{expected:?}"), "equal build ids may be spelled in several ways");
        }
    }
}
