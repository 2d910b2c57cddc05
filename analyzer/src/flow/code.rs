//! The code that a flow ran through: functions, blocks, and what fell through from one to the next.

use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::{BlockMap, FunctionTable, Observed, Terminator};
use crate::flow::{Flow, ModuleFlow};

/// The code of one module of a flow.
#[derive(Debug)]
pub struct FlowCode {
    /// Its functions.
    pub functions: FunctionTable,
    /// The blocks of those that ran.
    pub blocks: BlockMap,
}

/// Executions of the straight way from one block into the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FallThrough {
    /// The last instruction of the block.
    pub from: Svma,
    /// How the block ends.
    pub terminator: Terminator,
    /// The first instruction of the next one.
    pub to: Svma,
    /// How often.
    pub count: f64,
}

impl FlowCode {
    /// Cuts the code of the module with that index, whose file is `binary`, where the flow shows that blocks start and end.
    pub fn of(flow: &Flow, module: usize, binary: &Binary) -> Self {
        let of = &flow.modules[module];
        let firsts = of.ranges.iter().map(|range| range.first);
        let ips = firsts.chain(of.samples.iter().map(|sample| sample.at)).collect();
        let branches = flow.modules.iter().flat_map(|module| &module.branches);
        let targets = branches.filter(|branch| branch.to.module == module).map(|branch| branch.to.at).collect();
        let sources = of.branches.iter().map(|branch| branch.from).collect();
        let functions = binary.functions();
        let blocks = BlockMap::build(&binary.image, &functions, &Observed::new(ips, targets, sources));
        FlowCode { functions, blocks }
    }

    /// How often control fell through from each block into the next along the ranges of a module, by address.
    pub fn fall_throughs(&self, of: &ModuleFlow) -> Vec<FallThrough> {
        let blocks = self.blocks.blocks();
        // steps[i]: what is added to the sum at the end of block i. A sum over differences is off in its last digits only, and would be
        // more than nothing where nothing ran; so it counts as well how many ranges there are.
        let mut steps = vec![(0_i64, 0.0); blocks.len() + 1];
        for range in &of.ranges {
            let (Some(first), Some(last)) = (self.blocks.block_at(range.first), self.blocks.block_at(range.last))
            else {
                continue;
            };
            if first < last {
                steps[first].0 += 1;
                steps[first].1 += range.count;
                steps[last].0 -= 1;
                steps[last].1 -= range.count;
            }
        }
        let (mut ranges, mut count) = (0, 0.0);
        let mut found = Vec::new();
        for (index, pair) in blocks.windows(2).enumerate() {
            ranges += steps[index].0;
            count += steps[index].1;
            let [block, next] = pair else { continue };
            if ranges > 0 && block.end == next.start {
                found.push(FallThrough { from: block.last, terminator: block.terminator, to: next.start, count });
            }
            if ranges == 0 {
                count = 0.0;
            }
        }
        found
    }
}
