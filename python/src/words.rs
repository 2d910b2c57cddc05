//! Arguments and exceptions: what passes between Python's words and ours.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyException, PyFileNotFoundError, PyPermissionError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};
use reports::{Argument, Arguments};

create_exception!(
    hbbp,
    HbbpError,
    PyException,
    "A file that cannot be read or analysed. The text is the sentence that `hbbp` prints."
);

/// What may be asked of reports, as arguments of Python's functions.
pub struct Keywords;

impl Arguments for Keywords {
    fn name(&self, argument: Argument) -> &'static str {
        match argument {
            Argument::Rows => "rows",
            Argument::Columns => "columns",
            Argument::Filter => "filter",
            Argument::Per => "per",
            Argument::Values => "values",
            Argument::Sort => "sort",
            Argument::Subtotals => "subtotals",
            Argument::Binaries => "binaries",
            Argument::Symfs => "symfs",
        }
    }

    fn values_of(&self, key: &str) -> String {
        format!("mix(rows='{key}')")
    }
}

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

/// One path, or several: texts, or what `os.fspath` takes.
#[derive(FromPyObject)]
pub enum Paths {
    /// `"app"`, `Path("app")`
    One(PathBuf),
    /// `["app", Path("libapp.so")]`
    Many(Vec<PathBuf>),
}

impl Paths {
    /// Each of them.
    pub fn all(paths: Option<Self>) -> Vec<PathBuf> {
        match paths {
            None => Vec::new(),
            Some(Paths::One(path)) => vec![path],
            Some(Paths::Many(paths)) => paths,
        }
    }
}

/// Arguments that mean nothing, in a sentence: a `ValueError`.
#[derive(Debug)]
pub struct Meaningless(pub String);

impl Meaningless {
    /// One of them, and why.
    pub fn argument(name: &str, why: impl fmt::Display) -> Self {
        Meaningless(format!("{name}: {why}"))
    }
}

impl From<Meaningless> for PyErr {
    fn from(Meaningless(sentence): Meaningless) -> Self {
        PyValueError::new_err(sentence)
    }
}

impl std::error::Error for Meaningless {}

impl fmt::Display for Meaningless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The exception of an error: of an argument that means nothing, a `ValueError`.
pub fn raised(error: &anyhow::Error) -> PyErr {
    let sentence = reports::sentence(error);
    match error.is::<Meaningless>() {
        true => PyValueError::new_err(sentence),
        false => HbbpError::new_err(sentence),
    }
}

/// The same where files were named: of one that is not there, or not to be read, Python's own, with its number and the file's name.
pub fn raised_of<'a>(error: &anyhow::Error, files: impl IntoIterator<Item = &'a Path>) -> PyErr {
    let failed = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    let is_there = |file: &&Path| File::open(file).is_ok();
    let file = files.into_iter().find(|file| !is_there(file)).map(|file| file.as_os_str().to_owned());
    let Some((failed, number, file)) = failed.zip(file).and_then(|(of, file)| Some((of, of.raw_os_error()?, file)))
    else {
        return raised(error);
    };
    let words = (number, reports::sentence(error), file);
    match failed.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(words),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(words),
        _ => raised(error),
    }
}

/// Says sentences as warnings of Python, where the caller is.
pub fn warn(py: Python<'_>, sentences: &[String]) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    sentences.iter().try_for_each(|sentence| {
        let sentence = std::ffi::CString::new(sentence.replace('\0', "\\0"))?;
        PyErr::warn(py, &category, &sentence, 1)
    })
}
