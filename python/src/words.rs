//! Arguments and exceptions: what passes between Python's words and ours.

use std::io;

use pyo3::exceptions::{PyException, PyFileNotFoundError, PyPermissionError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};

create_exception!(
    hbbp,
    HbbpError,
    PyException,
    "A file that cannot be read or analysed. The text is the sentence that `hbbp` prints."
);

/// One text, or several.
#[derive(FromPyObject)]
pub enum Texts {
    /// `"function,mnemonic"`
    One(String),
    /// `["function", "mnemonic"]`
    Many(Vec<String>),
}

impl Texts {
    /// Each of them.
    pub fn all(self) -> Vec<String> {
        match self {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        }
    }

    /// Names: one text may have several, with commas between them.
    pub fn names(self) -> Vec<String> {
        match self {
            Texts::One(text) if text.trim().is_empty() => Vec::new(),
            Texts::One(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
            Texts::Many(names) => names,
        }
    }
}

/// The exception of an error: of a file that is not there, or not to be read, Python's own.
pub fn raised(error: &anyhow::Error) -> PyErr {
    let sentence = reports::sentence(error);
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::NotFound) => PyFileNotFoundError::new_err(sentence),
        Some(io::ErrorKind::PermissionDenied) => PyPermissionError::new_err(sentence),
        _ => HbbpError::new_err(sentence),
    }
}

/// The exception of arguments that mean nothing, with the sentence of the command. Its options are called as arguments are: `per` for `--per`.
pub fn refused(sentence: &str) -> PyErr {
    PyValueError::new_err(sentence.trim_start_matches("--").to_owned())
}

/// The same of one argument.
pub fn wrong(option: &str, why: impl std::fmt::Display) -> PyErr {
    refused(&format!("{option}: {why}"))
}

/// Says sentences as warnings of Python, where the caller is.
pub fn warn(py: Python<'_>, sentences: &[String]) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    sentences.iter().try_for_each(|sentence| {
        let sentence = std::ffi::CString::new(sentence.replace('\0', "\\0"))?;
        PyErr::warn(py, &category, &sentence, 1)
    })
}
