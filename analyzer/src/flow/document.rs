//! Flows as files: JSON, schema `hbbp-flow/1`.
//!
//! ```text
//! {"schema":"hbbp-flow/1","executions":true,"inputs":2,"seen":9.0,"left_out":{"streams":0.0,"branches":0.0,"samples":0.0},
//!  "modules":[{"path":"/bin/x","build_id":"01ab..","read":true,
//!    "ranges":[[first,last,count],..],"branches":[[from,module,to,count,mispredicted],..],"samples":[[at,count],..]},..]}
//! ```

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::address::Svma;
use crate::binaries::hex;
use crate::flow::of_truth::bytes_of_hex;
use crate::flow::{BranchCount, Flow, FlowBuilder, IpCount, LeftOut, ModuleFlow, Place, RangeCount};
use crate::recording::Module;

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-flow/1";

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FlowDocumentError {
    /// It is no JSON, or JSON of another shape.
    #[error("it is no flow as `hbbp merge` writes it: {0}")]
    Json(#[from] serde_json::Error),
    /// It says that it is something else.
    #[error("its schema is `{0}`, expected `{SCHEMA}`: make it with `hbbp merge -o FILE RECORDING..`")]
    Schema(String),
    /// A branch leads to a module that is not there.
    #[error("a branch of {path} leads to module {module}, but there are {modules}")]
    Module {
        /// Where the branch is.
        path: String,
        /// What it says.
        module: usize,
        /// How many there are.
        modules: usize,
    },
    /// A build id that is none.
    #[error("{path} has the build id `{build_id}`, expected an even number of hexadecimal digits")]
    BuildId {
        /// The module.
        path: String,
        /// What it says.
        build_id: String,
    },
    /// A count that cannot be.
    #[error("{path} has a count of {count:e}, expected 0 to {MOST:e}")]
    Count {
        /// The module, or what else it counts.
        path: String,
        /// What it says.
        count: f64,
    },
    /// A range that ends before it starts.
    #[error("{path} has a range from {first} to {last}")]
    Range {
        /// The module.
        path: String,
        /// What it says.
        first: Svma,
        /// What it says.
        last: Svma,
    },
}

/// No honest count is larger: a thousand years of executions at 10 GHz.
const MOST: f64 = 3e20;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    executions: bool,
    inputs: u64,
    #[serde(default)]
    seen: f64,
    left_out: LeftOut,
    modules: Vec<DocumentModule>,
}

#[derive(Serialize, Deserialize)]
struct DocumentModule {
    path: String,
    build_id: Option<String>,
    read: bool,
    ranges: Vec<(Svma, Svma, f64)>,
    branches: Vec<(Svma, usize, Svma, f64, f64)>,
    samples: Vec<(Svma, f64)>,
}

/// Only what says whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    schema: String,
}

impl Flow {
    /// Checks that its counts are such as [`Self::read_json`] takes: sums can become too large.
    ///
    /// # Errors
    /// The first count that cannot be.
    pub fn check_counts(&self) -> Result<(), FlowDocumentError> {
        let LeftOut { streams, branches, samples } = self.left_out;
        possible("what was seen", self.seen)?;
        for count in [streams, branches, samples] {
            possible("what is left out", count)?;
        }
        for of in &self.modules {
            let branches = of.branches.iter().flat_map(|branch| [branch.count, branch.mispredicted]);
            let others = of.ranges.iter().map(|range| range.count).chain(of.samples.iter().map(|sample| sample.count));
            for count in branches.chain(others) {
                possible(&of.module.path, count)?;
            }
        }
        Ok(())
    }

    /// Writes it as one line of JSON.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write_json(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let module = |of: &ModuleFlow| DocumentModule {
            path: of.module.path.clone(),
            build_id: of.module.build_id.as_deref().map(hex),
            read: of.read,
            ranges: of.ranges.iter().map(|range| (range.first, range.last, range.count)).collect(),
            branches: of.branches.iter().map(row_of_branch).collect(),
            samples: of.samples.iter().map(|sample| (sample.at, sample.count)).collect(),
        };
        let document = Document {
            schema: SCHEMA.into(),
            executions: self.executions,
            inputs: self.inputs,
            seen: self.seen,
            left_out: self.left_out,
            modules: self.modules.iter().map(module).collect(),
        };
        serde_json::to_writer(&mut *out, &document)?;
        writeln!(out)
    }

    /// Reads what [`Self::write_json`] wrote. Memory grows with the size of the file.
    ///
    /// # Errors
    /// It is something else, or says what cannot be.
    pub fn read_json(mut input: impl Read) -> Result<Self, FlowDocumentError> {
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(serde_json::Error::io)?;
        let kind: Kind = serde_json::from_slice(&text)?;
        if kind.schema != SCHEMA {
            return Err(FlowDocumentError::Schema(kind.schema));
        }
        of_document(serde_json::from_slice(&text)?)
    }
}

fn row_of_branch(branch: &BranchCount) -> (Svma, usize, Svma, f64, f64) {
    (branch.from, branch.to.module, branch.to.at, branch.count, branch.mispredicted)
}

fn of_document(document: Document) -> Result<Flow, FlowDocumentError> {
    let LeftOut { streams, branches, samples } = document.left_out;
    possible("what was seen", document.seen)?;
    for count in [streams, branches, samples] {
        possible("what is left out", count)?;
    }
    let mut builder = FlowBuilder::default();
    (builder.seen, builder.left_out) = (document.seen, document.left_out);
    let mut indexes = Vec::with_capacity(document.modules.len());
    for module in &document.modules {
        let wrong =
            |build_id: &String| FlowDocumentError::BuildId { path: module.path.clone(), build_id: build_id.clone() };
        let build_id =
            module.build_id.as_ref().map(|text| bytes_of_hex(text).ok_or_else(|| wrong(text))).transpose()?;
        indexes.push(builder.module(&Module::named(module.path.clone(), build_id), module.read));
    }
    for (of, &index) in document.modules.iter().zip(&indexes) {
        for &(first, last, count) in &of.ranges {
            if first > last {
                return Err(FlowDocumentError::Range { path: of.path.clone(), first, last });
            }
            builder.add_range(index, RangeCount { first, last, count: possible(&of.path, count)? });
        }
        for &(from, module, at, count, mispredicted) in &of.branches {
            let (path, modules) = (of.path.clone(), indexes.len());
            let to = *indexes.get(module).ok_or(FlowDocumentError::Module { path, module, modules })?;
            let (count, mispredicted) = (possible(&of.path, count)?, possible(&of.path, mispredicted)?);
            builder.add_branch(index, BranchCount { from, to: Place { module: to, at }, count, mispredicted });
        }
        for &(at, count) in &of.samples {
            builder.add_sample(index, IpCount { at, count: possible(&of.path, count)? });
        }
    }
    Ok(Flow { inputs: document.inputs, ..builder.finish(document.executions) })
}

fn possible(path: &str, count: f64) -> Result<f64, FlowDocumentError> {
    let is_possible = (0.0..=MOST).contains(&count);
    is_possible.then_some(count).ok_or_else(|| FlowDocumentError::Count { path: path.to_string(), count })
}
