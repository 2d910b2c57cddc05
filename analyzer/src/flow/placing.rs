//! Code that could not be read where a flow was made, and can be where it is used.

use crate::address::Svma;
use crate::binaries::BinarySearch;
use crate::code::Image;
use crate::flow::{
    BranchCount, ExactCount, ExactLeftOut, Flow, FlowBuilder, IpCount, ModuleAddress, ModuleFlow, RangeCount,
};
use crate::recording::ModuleKind;

impl Flow {
    /// Turns file offsets into addresses in the modules whose files are found by now. What is at no address of the file is left out.
    pub fn placed(self, search: &BinarySearch) -> Flow {
        let search = search.among(self.modules.iter().map(|of| &of.module));
        let found = |of: &ModuleFlow| {
            let is_open = !of.read && of.module.kind == ModuleKind::File;
            is_open.then(|| search.open(&of.module).ok()).flatten().map(|binary| binary.image)
        };
        let images: Vec<Option<Image>> = self.modules.iter().map(found).collect();
        if images.iter().all(Option::is_none) {
            return self;
        }
        let place = |module: usize, at: Svma| match &images[module] {
            Some(image) => image.svma_of_file_offset(at.0),
            None => Some(at),
        };
        let placed = |modules: &[ModuleFlow], seen: ExactCount, left_out: ExactLeftOut| {
            let mut builder = FlowBuilder::default();
            (builder.seen, builder.left_out) = (seen, left_out);
            let read = modules.iter().zip(&images);
            let indexes: Vec<usize> =
                read.map(|(of, image)| builder.module(&of.module, of.read || image.is_some())).collect();
            add_placed(&mut builder, modules, &indexes, place);
            builder.finish(self.executions)
        };
        let slices =
            self.slices.iter().map(|modules| placed(modules, ExactCount::default(), ExactLeftOut::default()).modules);
        let slices = slices.collect();
        Flow { inputs: self.inputs, slices, ..placed(&self.modules, ExactCount::of(self.seen), self.left_out.into()) }
    }
}

/// Adds what ran of modules, which have these indexes in a flow that grows, where its addresses are placed.
fn add_placed(
    builder: &mut FlowBuilder,
    modules: &[ModuleFlow],
    indexes: &[usize],
    place: impl Fn(usize, Svma) -> Option<Svma>,
) {
    for (module, (of, &index)) in modules.iter().zip(indexes).enumerate() {
        for range in &of.ranges {
            match place(module, range.first).zip(place(module, range.last)) {
                Some((first, last)) if first <= last => {
                    builder.add_range(index, RangeCount { first, last, count: range.count });
                }
                _ => builder.left_out.streams += range.count,
            }
        }
        for branch in &of.branches {
            match place(module, branch.from).zip(place(branch.to.module, branch.to.at)) {
                Some((from, at)) => {
                    let to = ModuleAddress { module: indexes[branch.to.module], at };
                    builder.add_branch(index, BranchCount { from, to, ..*branch });
                }
                None => builder.left_out.branches += branch.count,
            }
        }
        for sample in &of.samples {
            match place(module, sample.at) {
                Some(at) => builder.add_sample(index, IpCount { at, count: sample.count }),
                None => builder.left_out.samples += sample.count,
            }
        }
    }
}
