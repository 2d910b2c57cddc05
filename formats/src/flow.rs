//! What ran, by module: JSON of the schema `hbbp-flow/1`, as `hbbp merge` writes it.
//!
//! ```text
//! {"schema":"hbbp-flow/1","executions":true,"inputs":2,"seen":9.0,"left_out":{"streams":0.0,"branches":0.0,"samples":0.0},
//!  "modules":[{"path":"/bin/x","build_id":"01ab..","read":true,
//!    "ranges":[[first,last,count],..],"branches":[[from,module,to,count,mispredicted],..],"samples":[[at,count],..],
//!    "slices":[{"slice":0,"ranges":[[first,last,count],..],"samples":[[at,count],..]},..]},..]}
//! ```

use std::io::{Read, Write};

use addresses::Svma;
use serde::{Deserialize, Serialize};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-flow/1";

/// So many slices there are at most.
pub const MOST_SLICES: usize = 20;

/// No honest count is larger: a thousand years of executions at 10 GHz.
pub const MOST_COUNT: f64 = 3e20;

/// Flows of all modules, and what is in none of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowDocument {
    schema: String,
    /// The counts are numbers of executions; otherwise they are only proportional to them, or to time.
    pub executions: bool,
    /// How many recordings or exact counts it is the sum of.
    pub inputs: u64,
    /// How many streams were seen, those left out included; 0 where it is not known.
    #[serde(default)]
    pub seen: f64,
    /// What is in no module.
    pub left_out: LeftOut,
    /// Branches name modules by their place in this list.
    pub modules: Vec<FlowModule>,
}

/// What is in no module's flow, in executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Streams that the code cannot have run along: their branches may be good.
    pub streams: f64,
    /// Branches from what is no branch in the file, or from addresses that no mapping explains.
    pub branches: f64,
    /// What samples stand for at addresses that no mapping explains, or that are no code of the file.
    pub samples: f64,
}

/// A module of the document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowModule {
    /// Path of its file, as recorded.
    pub path: String,
    /// Its build id in hexadecimal.
    pub build_id: Option<String>,
    /// Its code was read. If not, addresses are offsets in its file, and nothing was checked against the code.
    pub read: bool,
    /// What ran one instruction after the other.
    pub ranges: Vec<FlowRange>,
    /// What was not the next instruction.
    pub branches: Vec<FlowBranch>,
    /// Samples by instruction.
    pub samples: Vec<FlowSample>,
    /// What slices of the recordings have of the ranges and samples: how they differ says how uncertain the counts are. Empty where that is not
    /// known, or nothing ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<FlowSlice>,
}

/// What a slice of the recordings has of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSlice {
    /// Which slice: below [`MOST_SLICES`].
    pub slice: usize,
    /// What ran one instruction after the other.
    pub ranges: Vec<FlowRange>,
    /// Samples by instruction.
    pub samples: Vec<FlowSample>,
}

/// Executions of a straight line, written as `[first,last,count]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(Svma, Svma, f64)", into = "(Svma, Svma, f64)")]
pub struct FlowRange {
    /// Address of the first instruction.
    pub first: Svma,
    /// Address of the last instruction, not before `first`.
    pub last: Svma,
    /// Executions, 0 to 3e20.
    pub count: f64,
}

/// Executions of a taken branch, written as `[from,module,to,count,mispredicted]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(Svma, usize, Svma, f64, f64)", into = "(Svma, usize, Svma, f64, f64)")]
pub struct FlowBranch {
    /// Address of the branch instruction.
    pub from: Svma,
    /// Index of the module that it leads to, in [`FlowDocument::modules`].
    pub module: usize,
    /// Address that it leads to, in that module.
    pub to: Svma,
    /// Executions, 0 to 3e20.
    pub count: f64,
    /// How many of them were mispredicted.
    pub mispredicted: f64,
}

/// Samples at an instruction, written as `[at,count]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(Svma, f64)", into = "(Svma, f64)")]
pub struct FlowSample {
    /// Address of the instruction.
    pub at: Svma,
    /// What the samples stand for, 0 to 3e20.
    pub count: f64,
}

impl From<(Svma, Svma, f64)> for FlowRange {
    fn from((first, last, count): (Svma, Svma, f64)) -> Self {
        Self { first, last, count }
    }
}

impl From<FlowRange> for (Svma, Svma, f64) {
    fn from(FlowRange { first, last, count }: FlowRange) -> Self {
        (first, last, count)
    }
}

impl From<(Svma, usize, Svma, f64, f64)> for FlowBranch {
    fn from((from, module, to, count, mispredicted): (Svma, usize, Svma, f64, f64)) -> Self {
        Self { from, module, to, count, mispredicted }
    }
}

impl From<FlowBranch> for (Svma, usize, Svma, f64, f64) {
    fn from(FlowBranch { from, module, to, count, mispredicted }: FlowBranch) -> Self {
        (from, module, to, count, mispredicted)
    }
}

impl From<(Svma, f64)> for FlowSample {
    fn from((at, count): (Svma, f64)) -> Self {
        Self { at, count }
    }
}

impl From<FlowSample> for (Svma, f64) {
    fn from(FlowSample { at, count }: FlowSample) -> Self {
        (at, count)
    }
}

/// Why a text is no flow.
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
        /// The index that the branch states.
        module: usize,
        /// How many there are.
        modules: usize,
    },
    /// A slice that cannot be.
    #[error("{path} has counts of slice {slice}, expected less than {MOST_SLICES}")]
    Slice {
        /// Path of the module.
        path: String,
        /// The slice that it states.
        slice: usize,
    },
    /// A build id that is none.
    #[error("{path} has the build id `{build_id}`, expected an even number of hexadecimal digits")]
    BuildId {
        /// Path of the module.
        path: String,
        /// The text that it has in place of one.
        build_id: String,
    },
    /// A count that cannot be.
    #[error("{path} has a count of {count:e}, expected 0 to {MOST_COUNT:e}")]
    Count {
        /// The module, or what else it counts.
        path: String,
        /// The count that is stated.
        count: f64,
    },
    /// A range that ends before it starts.
    #[error("{path} has a range from {first} to {last}")]
    Range {
        /// Path of the module.
        path: String,
        /// The address that it states for the first instruction.
        first: Svma,
        /// The one for the last, which is lower.
        last: Svma,
    },
}

/// Only what says whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    schema: String,
}

impl FlowDocument {
    /// A document without modules.
    pub fn new(executions: bool, inputs: u64, seen: f64, left_out: LeftOut) -> Self {
        Self { schema: SCHEMA.to_owned(), executions, inputs, seen, left_out, modules: Vec::new() }
    }

    /// Writes it as one line of JSON.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Reads what [`Self::write`] wrote, and checks it. Memory grows with the size of the file.
    ///
    /// # Errors
    /// It cannot be read, is something else, or says what cannot be.
    pub fn read(mut input: impl Read) -> Result<Self, FlowDocumentError> {
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(serde_json::Error::io)?;
        let Kind { schema } = serde_json::from_slice(&text)?;
        if schema != SCHEMA {
            return Err(FlowDocumentError::Schema(schema));
        }
        let document: Self = serde_json::from_slice(&text)?;
        document.check()?;
        Ok(document)
    }

    /// Whether it says what can be: sums can become too large.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn check(&self) -> Result<(), FlowDocumentError> {
        let LeftOut { streams, branches, samples } = self.left_out;
        possible("what was seen", self.seen)?;
        for count in [streams, branches, samples] {
            possible("what is left out", count)?;
        }
        for FlowModule { path, build_id, .. } in &self.modules {
            if let Some(build_id) = build_id.as_ref().filter(|text| !is_hex(text)) {
                return Err(FlowDocumentError::BuildId { path: path.clone(), build_id: build_id.clone() });
            }
        }
        self.modules.iter().try_for_each(|module| module.check(self.modules.len()))
    }
}

impl FlowModule {
    /// `modules`: how many there are to lead to.
    fn check(&self, modules: usize) -> Result<(), FlowDocumentError> {
        let path = &self.path;
        check_ranges(path, &self.ranges)?;
        for &FlowBranch { module, count, mispredicted, .. } in &self.branches {
            if module >= modules {
                return Err(FlowDocumentError::Module { path: path.clone(), module, modules });
            }
            possible(path, count)?;
            possible(path, mispredicted)?;
        }
        for FlowSlice { slice, ranges, samples } in &self.slices {
            if *slice >= MOST_SLICES {
                return Err(FlowDocumentError::Slice { path: path.clone(), slice: *slice });
            }
            check_ranges(path, ranges)?;
            check_samples(path, samples)?;
        }
        check_samples(path, &self.samples)
    }
}

fn check_ranges(path: &str, ranges: &[FlowRange]) -> Result<(), FlowDocumentError> {
    ranges.iter().try_for_each(|&FlowRange { first, last, count }| {
        if first > last {
            return Err(FlowDocumentError::Range { path: path.to_owned(), first, last });
        }
        possible(path, count)
    })
}

fn check_samples(path: &str, samples: &[FlowSample]) -> Result<(), FlowDocumentError> {
    samples.iter().try_for_each(|sample| possible(path, sample.count))
}

fn possible(path: &str, count: f64) -> Result<(), FlowDocumentError> {
    let is_possible = (0.0..=MOST_COUNT).contains(&count);
    is_possible.then_some(()).ok_or_else(|| FlowDocumentError::Count { path: path.to_owned(), count })
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.len().is_multiple_of(2) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}
