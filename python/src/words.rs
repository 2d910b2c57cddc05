//! Arguments and exceptions: what passes between Python's words and ours.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyException, PyFileNotFoundError, PyPermissionError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};
use reports::models::OtherSources;

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

/// An argument that means nothing, which is seen when the question is answered.
#[derive(Debug)]
pub struct Meaningless(pub String);

impl std::error::Error for Meaningless {}

impl fmt::Display for Meaningless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The exception of an error: of an argument that means nothing, a `ValueError`.
pub fn raised(error: &anyhow::Error) -> PyErr {
    let sentence = reports::sentence(error);
    match error.is::<Meaningless>() || error.is::<OtherSources>() {
        true => refused(&sentence),
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
