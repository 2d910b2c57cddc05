//! The flow of a recording, from what was located and the code it was counted in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::address::{FileOffset, Svma};
use crate::code::Terminator;
use crate::counting::{
    AnalysedModule, Code, CountScale, KernelEntries, Located, ModuleCounts, ModuleHits, StartId, TakenBranch,
};
use crate::estimation::Estimate;
use crate::flow::{AnalysedFlow, BranchCount, FallThrough, FlowBuilder, IpCount, ModuleAddress, RangeCount};
use crate::recording::{Module, ModuleId, ModuleKind, ModuleTable, Weight};

/// Makes the flow of what was located with [`Detail::Branches`](crate::counting::Detail::Branches).
pub(crate) fn of_recording(
    located: &Located,
    counted: &[ModuleCounts],
    modules: &ModuleTable,
    estimate: Option<&Estimate>,
    scale: &CountScale,
    entries: &KernelEntries,
) -> AnalysedFlow {
    let mut builder = FlowBuilder::default();
    builder.seen += located.streams as f64;
    let codes = codes_of(counted.iter());
    let mut indexes = HashMap::new();
    for (&id, code) in &codes {
        let mut module: Module = modules.get(id).clone();
        if let Some(build_id) = code.and_then(|code| code.binary.image.build_id()) {
            module.build_id = Some(build_id.clone());
        }
        indexes.insert(id, builder.module(&module, code.is_some()));
    }
    let maker = Maker { codes, indexes, estimate, scale, entries };
    for (&id, hits) in &located.modules {
        if modules.get(id).kind == ModuleKind::Unknown {
            builder.left_out.branches +=
                hits.taken.iter().map(|taken| maker.executions(taken.burst, taken.weight)).sum::<f64>();
            builder.left_out.streams +=
                hits.streams.iter().map(|line| maker.executions(line.burst, line.weight)).sum::<f64>();
            builder.left_out.samples += hits.ips.iter().map(|ip| ip.periods as f64 * scale.ebs).sum::<f64>();
            continue;
        }
        maker.add_module(id, hits, &mut builder);
    }
    builder.left_out.streams +=
        located.broken_weight.iter().map(|(burst, weight)| maker.executions(*burst, *weight)).sum::<f64>();
    let Maker { codes, indexes, .. } = maker;
    let (flow, places) = builder.finish_with_places(scale.executions);
    let indexes = indexes.into_iter().map(|(id, index)| (id, places[index])).collect();
    AnalysedFlow::of_recording(flow, indexes, &codes)
}

/// The code of each module, if it was read.
pub(crate) fn codes_of<'a>(
    counted: impl Iterator<Item = &'a ModuleCounts>,
) -> BTreeMap<ModuleId, Option<&'a Arc<AnalysedModule>>> {
    let mut codes = BTreeMap::new();
    for counts in counted {
        let code = match &counts.code {
            Code::Read(code) => Some(code),
            Code::Unread { .. } => None,
        };
        // Where a module was read, what comes after it are samples at addresses that are no code of it.
        codes.entry(counts.module).or_insert(code);
    }
    codes
}

struct Maker<'a> {
    codes: BTreeMap<ModuleId, Option<&'a Arc<AnalysedModule>>>,
    /// The builder's index of each module.
    indexes: HashMap<ModuleId, usize>,
    estimate: Option<&'a Estimate>,
    scale: &'a CountScale,
    entries: &'a KernelEntries,
}

impl Maker<'_> {
    fn executions(&self, burst: Option<StartId>, weight: Weight) -> f64 {
        let of_start = |(estimate, start): (&Estimate, StartId)| estimate.weights[start.0 as usize];
        weight.to_f64() * self.estimate.zip(burst).map_or(1.0, of_start) * self.scale.lbr
    }

    fn add_module(&self, id: ModuleId, hits: &ModuleHits, builder: &mut FlowBuilder) {
        let (Some(&index), Some(&code)) = (self.indexes.get(&id), self.codes.get(&id)) else { return };
        let lines = code.map(|code| code.lines());
        let mut ranges = Vec::with_capacity(hits.streams.len());
        for stream in &hits.streams {
            let count = self.executions(stream.burst, stream.weight);
            let executed = match &lines {
                Some(lines) => lines.executed(stream),
                None => Ok(Some((Svma(stream.start.0), Svma(stream.end.0)))),
            };
            match executed {
                Ok(Some((first, last))) => ranges.push(RangeCount { first, last, count }),
                Ok(None) => {}
                Err(_) => builder.left_out.streams += count,
            }
        }
        ranges.iter().for_each(|range| builder.add_range(index, *range));
        if let Some(code) = code.filter(|_| !self.entries.is_empty()) {
            self.add_system_calls(index, code, &ranges, builder);
        }
        for taken in &hits.taken {
            let count = self.executions(taken.burst, taken.weight);
            let mispredicted = self.executions(taken.burst, taken.mispredicted);
            match (self.branch(code, taken), self.place(taken.to_module, taken.to)) {
                (RecordedBranch::Taken(from), Some(to)) => {
                    builder.add_branch(index, BranchCount { from, to, count, mispredicted });
                }
                (RecordedBranch::Interrupt, _) => {}
                _ => builder.left_out.branches += count,
            }
        }
        for ip in &hits.ips {
            let count = ip.periods as f64 * self.scale.ebs;
            match self.place(id, ip.at) {
                Some(ModuleAddress { at, .. }) => builder.add_sample(index, IpCount { at, count }),
                None => builder.left_out.samples += count,
            }
        }
    }

    /// What runs straight through a system call has entered the kernel in between: the branch there is that of hardware stacks. Control goes on
    /// after it along the range.
    fn add_system_calls(&self, index: usize, code: &AnalysedModule, ranges: &[RangeCount], builder: &mut FlowBuilder) {
        let is_call = |way: &FallThrough| way.terminator == Terminator::SystemCall;
        for FallThrough { from, count, .. } in code.fall_throughs(ranges).into_iter().filter(is_call) {
            let entry = self.entries.of_instruction(code, from);
            if let Some(to) = entry.and_then(|entry| self.place(entry.module, entry.offset)) {
                builder.add_branch(index, BranchCount { from, to, count, mispredicted: 0.0 });
            }
        }
    }

    /// What a taken branch is in the code it comes from.
    fn branch(&self, code: Option<&Arc<AnalysedModule>>, taken: &TakenBranch) -> RecordedBranch {
        let Some(code) = code else {
            // In code that is not known nothing tells a system call from an interrupt.
            return if taken.to_kernel { RecordedBranch::Interrupt } else { RecordedBranch::Taken(Svma(taken.from.0)) };
        };
        let Some(from) = code.binary.image.svma_of_file_offset(taken.from.0) else { return RecordedBranch::Strange };
        let block = code.blocks.block_at(from).map(|block| &code.blocks.blocks()[block]);
        let terminator = block.filter(|block| block.last == from).map(|block| block.terminator);
        match terminator {
            Some(Terminator::SystemCall | Terminator::Trap) => RecordedBranch::Taken(from),
            _ if taken.to_kernel => RecordedBranch::Interrupt,
            None | Some(Terminator::FallThrough | Terminator::Observed | Terminator::Overlap) => {
                RecordedBranch::Strange
            }
            Some(_) => RecordedBranch::Taken(from),
        }
    }

    /// The place of a file offset; `None` where it is no code of the file. What no mapping explains is one place.
    fn place(&self, id: ModuleId, at: FileOffset) -> Option<ModuleAddress> {
        let module = *self.indexes.get(&id)?;
        let at = match self.codes.get(&id)? {
            Some(code) => code.binary.image.svma_of_file_offset(at.0)?,
            None => Svma(at.0),
        };
        Some(ModuleAddress { module, at })
    }
}

/// What a record of a taken branch is.
enum RecordedBranch {
    Taken(Svma),
    /// Made by no instruction of the program.
    Interrupt,
    /// From what is no branch in the file.
    Strange,
}
