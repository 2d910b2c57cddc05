//! Flows as files: [`formats::flow`] says of which shape.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::io::{Read, Write};

use formats::flow::{FlowBranch, FlowDocument, FlowDocumentError, FlowModule, FlowPart, FlowRange, FlowSample};

use crate::build_id::BuildId;
use crate::flow::{BranchCount, ExactCount, Flow, FlowBuilder, IpCount, ModuleAddress, ModuleFlow, RangeCount};
use crate::recording::Module;

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
        document.slices = self.slices.iter().map(|modules| document_slice(modules)).collect();
        document
    }
}

fn document_slice(modules: &[ModuleFlow]) -> Vec<FlowPart> {
    let ran = modules.iter().enumerate().filter(|(_, of)| !of.ranges.is_empty() || !of.samples.is_empty());
    ran.map(|(module, of)| FlowPart { module, ranges: document_ranges(of), samples: document_samples(of) }).collect()
}

fn document_ranges(of: &ModuleFlow) -> Vec<FlowRange> {
    let range = |&RangeCount { first, last, count }: &RangeCount| FlowRange { first, last, count };
    of.ranges.iter().map(range).collect()
}

fn document_samples(of: &ModuleFlow) -> Vec<FlowSample> {
    of.samples.iter().map(|&IpCount { at, count }| FlowSample { at, count }).collect()
}

fn document_module(of: &ModuleFlow) -> FlowModule {
    let branch = |&BranchCount { from, to: ModuleAddress { module, at: to }, count, mispredicted }: &BranchCount| {
        FlowBranch { from, module, to, count, mispredicted }
    };
    FlowModule {
        path: of.module.path.clone(),
        build_id: of.module.build_id.as_ref().map(BuildId::to_string),
        read: of.read,
        ranges: document_ranges(of),
        branches: of.branches.iter().map(branch).collect(),
        samples: document_samples(of),
    }
}

/// The flow that a document which was checked describes.
fn of_document(document: &FlowDocument) -> Flow {
    let mut builder = FlowBuilder::default();
    (builder.seen, builder.left_out) = (ExactCount::of(document.seen), document.left_out.into());
    let indexes = add_modules(&mut builder, document);
    for (of, &index) in document.modules.iter().zip(&indexes) {
        add_counts(&mut builder, index, &of.ranges, &of.samples);
        for &FlowBranch { from, module, to, count, mispredicted } in &of.branches {
            // That there is such a module was checked before.
            let Some(&module) = indexes.get(module) else { continue };
            let to = ModuleAddress { module, at: to };
            builder.add_branch(index, BranchCount { from, to, count, mispredicted });
        }
    }
    let slice = |parts: &Vec<FlowPart>| {
        let mut builder = FlowBuilder::default();
        let indexes = add_modules(&mut builder, document);
        for FlowPart { module, ranges, samples } in parts {
            let Some(&index) = indexes.get(*module) else { continue };
            add_counts(&mut builder, index, ranges, samples);
        }
        builder.finish(document.executions).modules
    };
    let slices = document.slices.iter().map(slice).collect();
    Flow { inputs: document.inputs, slices, ..builder.finish(document.executions) }
}

/// The indexes that the modules of a document have in a flow that grows.
fn add_modules(builder: &mut FlowBuilder, document: &FlowDocument) -> Vec<usize> {
    let mut index = |module: &FlowModule| {
        let build_id = module.build_id.as_deref().and_then(BuildId::from_hex);
        builder.module(&Module::named(module.path.clone(), build_id), module.read)
    };
    document.modules.iter().map(&mut index).collect()
}

fn add_counts(builder: &mut FlowBuilder, index: usize, ranges: &[FlowRange], samples: &[FlowSample]) {
    for &FlowRange { first, last, count } in ranges {
        builder.add_range(index, RangeCount { first, last, count });
    }
    for &FlowSample { at, count } in samples {
        builder.add_sample(index, IpCount { at, count });
    }
}
