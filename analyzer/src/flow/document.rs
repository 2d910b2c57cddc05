//! Flows as files: [`formats::flow`] says of which shape.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::io::{Read, Write};

use formats::flow::{FlowBranch, FlowDocument, FlowDocumentError, FlowModule, FlowRange, FlowSample};

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
        document
    }
}

fn document_module(of: &ModuleFlow) -> FlowModule {
    let range = |&RangeCount { first, last, count }: &RangeCount| FlowRange { first, last, count };
    let branch = |&BranchCount { from, to: ModuleAddress { module, at: to }, count, mispredicted }: &BranchCount| {
        FlowBranch { from, module, to, count, mispredicted }
    };
    let sample = |&IpCount { at, count }: &IpCount| FlowSample { at, count };
    FlowModule {
        path: of.module.path.clone(),
        build_id: of.module.build_id.as_ref().map(BuildId::to_string),
        read: of.read,
        ranges: of.ranges.iter().map(range).collect(),
        branches: of.branches.iter().map(branch).collect(),
        samples: of.samples.iter().map(sample).collect(),
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
        for &FlowRange { first, last, count } in &of.ranges {
            builder.add_range(index, RangeCount { first, last, count });
        }
        for &FlowBranch { from, module, to, count, mispredicted } in &of.branches {
            // That there is such a module was checked before.
            let Some(&module) = indexes.get(module) else { continue };
            let to = ModuleAddress { module, at: to };
            builder.add_branch(index, BranchCount { from, to, count, mispredicted });
        }
        for &FlowSample { at, count } in &of.samples {
            builder.add_sample(index, IpCount { at, count });
        }
    }
    Flow { inputs: document.inputs, ..builder.finish(document.executions) }
}
