//! Code that could not be read where a flow was made, and can be where it is used.

use crate::address::Svma;
use crate::binaries::BinarySearch;
use crate::code::Image;
use crate::flow::{
    BranchCount, Evidence, ExactCount, Flow, FlowBuilder, IpCount, ModuleAddress, ModuleFlow, RangeCount, SliceFlow,
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
        let mut builder = FlowBuilder::default();
        (builder.seen, builder.left_out) = (ExactCount::of(self.seen), self.left_out.into());
        let modules = self.modules.iter().zip(&images);
        let indexes: Vec<usize> =
            modules.map(|(of, image)| builder.module(&of.module, of.read || image.is_some())).collect();
        let place_range = |module: usize, range: &RangeCount| {
            let ends = place(module, range.first).zip(place(module, range.last));
            ends.filter(|(first, last)| first <= last)
        };
        for (module, (of, &index)) in self.modules.iter().zip(&indexes).enumerate() {
            for range in &of.ranges {
                match place_range(module, range) {
                    Some((first, last)) => builder.add_range(index, RangeCount { first, last, count: range.count }),
                    None => builder.left_out.streams += range.count,
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
            for SliceFlow { slice, ranges, samples } in &of.slices {
                for range in ranges {
                    let Some((first, last)) = place_range(module, range) else { continue };
                    builder.add_in_slice(*slice, index, Evidence::Range(first, last), ExactCount::of(range.count));
                }
                for sample in samples {
                    let Some(at) = place(module, sample.at) else { continue };
                    builder.add_in_slice(*slice, index, Evidence::Sample(at), ExactCount::of(sample.count));
                }
            }
        }
        Flow { inputs: self.inputs, ..builder.finish(self.executions) }
    }
}
