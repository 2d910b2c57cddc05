//! Flows as files: [`formats::flow`] says of which shape.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::io::{Read, Write};

use formats::flow::{FlowBranch, FlowDocument, FlowDocumentError, FlowModule, FlowRange, FlowSample, FlowSlice};

use crate::build_id::BuildId;
use crate::flow::{
    BranchCount, Evidence, ExactCount, Flow, FlowBuilder, IpCount, ModuleAddress, ModuleFlow, RangeCount, SliceFlow,
};
use crate::recording::Module;
use crate::uncertainty::Slice;

impl Flow {
    /// Checks that it is such as [`Self::read_json`] takes: sums can become too large.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn check_counts(&self) -> Result<(), FlowDocumentError> {
        self.document().check()
    }

    /// Writes it as one line of JSON.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write_json(&self, out: &mut dyn Write) -> std::io::Result<()> {
        self.document().write(out)
    }

    /// Reads what [`Self::write_json`] wrote. Memory grows with the size of the file.
    ///
    /// # Errors
    /// It is something else, or says what cannot be.
    pub fn read_json(input: impl Read) -> Result<Self, FlowDocumentError> {
        Ok(of_document(&FlowDocument::read(input)?))
    }

    fn document(&self) -> FlowDocument {
        let mut document = FlowDocument::new(self.executions, self.inputs, self.seen, self.left_out);
        document.modules = self.modules.iter().map(document_module).collect();
        document
    }
}

fn document_ranges(ranges: &[RangeCount]) -> Vec<FlowRange> {
    ranges.iter().map(|&RangeCount { first, last, count }| FlowRange { first, last, count }).collect()
}

fn document_samples(samples: &[IpCount]) -> Vec<FlowSample> {
    samples.iter().map(|&IpCount { at, count }| FlowSample { at, count }).collect()
}

fn document_module(of: &ModuleFlow) -> FlowModule {
    let branch = |&BranchCount { from, to: ModuleAddress { module, at: to }, count, mispredicted }: &BranchCount| {
        FlowBranch { from, module, to, count, mispredicted }
    };
    let slice = |of: &SliceFlow| FlowSlice {
        slice: of.slice.index(),
        ranges: document_ranges(&of.ranges),
        samples: document_samples(&of.samples),
    };
    FlowModule {
        path: of.module.path.clone(),
        build_id: of.module.build_id.as_ref().map(BuildId::to_string),
        read: of.read,
        ranges: document_ranges(&of.ranges),
        branches: of.branches.iter().map(branch).collect(),
        samples: document_samples(&of.samples),
        slices: of.slices.iter().map(slice).collect(),
    }
}

/// The flow that a document which was checked describes.
fn of_document(document: &FlowDocument) -> Flow {
    let mut builder = FlowBuilder::default();
    (builder.seen, builder.left_out) = (ExactCount::of(document.seen), document.left_out.into());
    let mut index = |module: &FlowModule| {
        let build_id = module.build_id.as_deref().and_then(BuildId::from_hex);
        builder.module(&Module::named(module.path.clone(), build_id), module.read)
    };
    let indexes: Vec<usize> = document.modules.iter().map(&mut index).collect();
    for (of, &index) in document.modules.iter().zip(&indexes) {
        for (seen, count) in evidence(&of.ranges, &of.samples) {
            builder.add(index, seen, count, ExactCount::default());
        }
        for &FlowBranch { from, module, to, count, mispredicted } in &of.branches {
            // That there is such a module was checked before.
            let Some(&module) = indexes.get(module) else { continue };
            let to = ModuleAddress { module, at: to };
            builder.add_branch(index, BranchCount { from, to, count, mispredicted });
        }
        for FlowSlice { slice, ranges, samples } in &of.slices {
            // That there is such a slice, too.
            let Some(slice) = Slice::of_index(*slice) else { continue };
            for (seen, count) in evidence(ranges, samples) {
                builder.add_in_slice(slice, index, seen, count);
            }
        }
    }
    Flow { inputs: document.inputs, ..builder.finish(document.executions) }
}

fn evidence(ranges: &[FlowRange], samples: &[FlowSample]) -> impl Iterator<Item = (Evidence, ExactCount)> {
    let range = |of: &FlowRange| (Evidence::Range(of.first, of.last), ExactCount::of(of.count));
    let sample = |of: &FlowSample| (Evidence::Sample(of.at), ExactCount::of(of.count));
    ranges.iter().map(range).chain(samples.iter().map(sample))
}
