//! Counts that were made before, whatever document has them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use thiserror::Error;

use crate::flow::{Flow, FlowDocumentError, SCHEMA};
use crate::truth::{BlockList, DocumentError};
use crate::{BinarySearch, Origin};

/// What a file of `hbbp merge` has, exact counts of `hbbp truth`, or a list of `hbbp blocks --format json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// What ran.
    pub flow: Flow,
    /// [`Origin::Flow`] or [`Origin::Exact`].
    pub origin: Origin,
    /// What is weaker than it could be, in sentences.
    pub notes: Vec<String>,
}

/// Why a file has no counts.
#[derive(Debug, Error)]
pub enum CountedError {
    /// It cannot be opened.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It says that it is a merged file, and is none.
    #[error(transparent)]
    Flow(#[from] FlowDocumentError),
    /// It is no list of blocks.
    #[error(transparent)]
    Exact(#[from] DocumentError),
}

impl Counted {
    /// Reads a document. Memory grows with the size of the file.
    ///
    /// # Errors
    /// It cannot be read, is none of these, or says what cannot be.
    pub fn read(file: &Path, search: &BinarySearch) -> Result<Self, CountedError> {
        let open = || File::open(file).map(BufReader::new);
        let merged = || {
            let flow = Flow::read_json(open()?)?.placed(search);
            let notes = vec![if flow.slices().is_empty() { OF_MERGED } else { OF_SLICES }.to_owned()];
            Ok(Counted { flow, origin: Origin::Flow, notes })
        };
        let mut begin = Vec::new();
        open()?.take(BEGIN).read_to_end(&mut begin)?;
        if String::from_utf8_lossy(&begin).contains(FLOWS) {
            return merged();
        }
        match BlockList::read_json(open()?) {
            // Its members were put in another order.
            Err(DocumentError::Schema(schema)) if schema == SCHEMA => merged(),
            list => {
                let ((flow, notes), is_exact) = match &list? {
                    BlockList::Counted(truth) => (Flow::of_truth(truth, search), true),
                    BlockList::Listed(blocks) => (Flow::of_list(blocks, search), blocks.is_exact),
                };
                let origin = if is_exact { Origin::Exact } else { Origin::Flow };
                Ok(Counted { flow, origin, notes })
            }
        }
    }
}

/// What is weaker in every merged file that does not say what slices have of it.
pub const OF_MERGED: &str = "a merged file does not say what was weaker in its parts: nothing is known of its ±";

/// The same of one that says what slices have of it.
const OF_SLICES: &str = "a merged file does not say what was weaker in its parts; ± is by how slices of these differ";

/// So many bytes of a document say what it is, as `hbbp` writes it.
const BEGIN: u64 = 256;

/// As merged files say their schema, of any version; other documents may have such a text elsewhere.
const FLOWS: &str = "\"schema\":\"hbbp-flow/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truth_whose_command_is_called_like_a_flow_is_a_truth() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("truth.json");
        std::fs::write(&file, r#"{"command":"hbbp-flow/bench","schema":"hbbp-truth/99","blocks":[]}"#).unwrap();
        let error = Counted::read(&file, &BinarySearch::default()).unwrap_err();
        assert!(matches!(error, CountedError::Exact(_)), "{error}");
        std::fs::write(&file, r#"{"schema":"hbbp-flow/99","modules":[]}"#).unwrap();
        let error = Counted::read(&file, &BinarySearch::default()).unwrap_err();
        assert!(matches!(error, CountedError::Flow(_)), "{error}");
    }
}
