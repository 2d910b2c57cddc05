//! How often each instruction was executed, exactly: JSON of the schema `hbbp-executions/1`.
//!
//! ```text
//! {"schema":"hbbp-executions/1","instructions":[{"path":"/bin/x","file_offset":4096,"count":17},..]}
//! ```

use addresses::FileOffset;
use serde::{Deserialize, Serialize};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-executions/1";

/// Exact executions of a run, by instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executions {
    schema: String,
    /// Sorted by path and offset, each once.
    pub instructions: Vec<CountedInstruction>,
}

/// An instruction that was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedInstruction {
    /// The mapped file; `//anon` or `[vdso]` where there is none.
    pub path: String,
    /// Where in it, or its address where there is no file.
    pub file_offset: FileOffset,
    /// How often it was executed.
    pub count: u64,
}

/// Why a text is no list of executions.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionsError {
    /// It is no JSON, or JSON of another shape.
    #[error("it is no list of executions as `hbbp record --truth` writes it: {0}")]
    Json(#[from] serde_json::Error),
    /// It says that it is something else.
    #[error(
        "its schema is `{0}`, expected `{SCHEMA}`: make it with `hbbp record --pmu simulated --truth FILE -- COMMAND`"
    )]
    Schema(String),
}

/// Only what says whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    schema: String,
}

impl Executions {
    /// The document of these.
    pub fn new(instructions: Vec<CountedInstruction>) -> Self {
        Self { schema: SCHEMA.to_owned(), instructions }
    }

    /// Reads a document of the schema `hbbp-executions/1`.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(text: &[u8]) -> Result<Self, ExecutionsError> {
        let Kind { schema } = serde_json::from_slice(text)?;
        if schema != SCHEMA {
            return Err(ExecutionsError::Schema(schema));
        }
        Ok(serde_json::from_slice(text)?)
    }
}
