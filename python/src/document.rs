//! Reports that commands printed with `--format json`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use arrow_array::NullArray;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use reports::Kind;
use serde_json::{Map, Value};

use crate::columns::Columns;
use crate::table::{Table, raised as of_arrow};
use crate::values::python_of;
use crate::words::{raised, raised_of};

/// A report that was printed with `--format json`: its lists as tables, and what it says beside them.
#[pyclass(frozen, module = "hbbp")]
pub struct Report {
    document: Map<String, Value>,
    /// Bytes of the document.
    bytes: usize,
}

/// Reads what a command printed with `--format json`: `hbbp mix`, `blocks`, `annotate`, `diff`, `vectorization`, `paths`, `validate`, ...
///
/// Raises:
///     FileNotFoundError, PermissionError, HbbpError: it cannot be read, or is none.
#[pyfunction]
pub fn read_report(py: Python<'_>, path: PathBuf) -> PyResult<Report> {
    py.detach(|| Report::read(&path)).map_err(|error| raised_of(&error, [&*path]))
}

impl Report {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let name = || file.display().to_string();
        if matches!(Kind::of(file), Kind::Recording | Kind::Archive | Kind::Otlp | Kind::Truth | Kind::Flow) {
            bail!("{} is no report: use hbbp.open", name());
        }
        let text = fs::read(file).with_context(name)?;
        let document: Value = serde_json::from_slice(&text)
            .with_context(|| format!("{} is no report, which a command prints with --format json", name()))?;
        let schema = document.get("schema").and_then(Value::as_str).unwrap_or_default();
        ensure!(
            schema.starts_with("hbbp-"),
            "{} is JSON, but no report: its schema is {schema:?}, expected `hbbp-mix/1` or another of hbbp's",
            name()
        );
        match document {
            Value::Object(document) => Ok(Report { document, bytes: text.len() }),
            _ => bail!("{} is JSON, but no report", name()),
        }
    }

    /// The list of a name: those in objects have a dot in theirs.
    fn list(&self, name: &str) -> Option<&Vec<Value>> {
        let mut names = name.split('.');
        let outer = self.document.get(names.next()?)?;
        names.try_fold(outer, |value, name| value.as_object()?.get(name))?.as_array()
    }
}

#[pymethods]
impl Report {
    /// The format of the document: `hbbp-mix/1`. The pages of docs/formats say what is in each.
    #[getter]
    fn schema(&self) -> &str {
        self.document.get("schema").and_then(Value::as_str).unwrap_or_default()
    }

    /// Names of the lists that are tables: those of objects. Lists in objects have a dot in their names: `hot.paths`.
    #[getter]
    fn tables(&self) -> Vec<String> {
        let mut tables = Vec::new();
        for_each_field("", &self.document, Some(HEAD), &mut |name, value| {
            tables.extend(rows(value).filter(|rows| !rows.is_empty()).map(|_| name));
        });
        tables
    }

    /// All that is no table, as dictionaries, lists, texts and numbers. Empty lists are here, for they do not say what they are of.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &Value::Object(facts(&self.document, true)))
    }

    /// A list as a table; an empty one has no columns. Fields of objects in it are columns of names with a dot (`names.before`); lists within rows are JSON.
    ///
    /// Raises:
    ///     KeyError: there is no such list.
    fn table(&self, name: &str) -> PyResult<Table> {
        let Some(rows) = self.list(name).and_then(|list| objects(list)) else {
            let tables = self.tables().join(", ");
            return Err(PyKeyError::new_err(format!("there is no table {name:?}; there are {tables}")));
        };
        let cells = Cells::of(&rows, self.bytes).map_err(|error| raised(&error))?;
        cells.columns().batch().map(Table::new).map_err(of_arrow)
    }

    fn __repr__(&self) -> String {
        format!("<hbbp.Report {} with {}>", self.schema(), self.tables().join(", "))
    }
}

/// What counts are made of: all of it are facts.
const HEAD: &str = "head";

/// The objects of a list, if it is one of objects alone.
fn objects(list: &[Value]) -> Option<Vec<&Map<String, Value>>> {
    list.iter().map(Value::as_object).collect()
}

/// The same of any value.
fn rows(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    objects(value.as_array()?)
}

/// Hands over the fields of an object, and in place of objects in it theirs, with a dot in their names; not in place of those that are `whole`.
fn for_each_field<'a>(
    before: &str,
    object: &'a Map<String, Value>,
    whole: Option<&str>,
    take: &mut impl FnMut(String, &'a Value),
) {
    for (name, value) in object {
        let is_whole = whole == Some(name.as_str());
        let name = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
        match value {
            Value::Object(object) if !is_whole => for_each_field(&name, object, whole, take),
            value => take(name, value),
        }
    }
}

/// An object without its tables.
fn facts(object: &Map<String, Value>, is_document: bool) -> Map<String, Value> {
    let is_table = |value: &Value| rows(value).is_some_and(|rows| !rows.is_empty());
    let kept = object.iter().filter(|(_, value)| !is_table(value));
    let kept = kept.map(|(name, value)| match value {
        Value::Object(object) if !is_document || name != HEAD => (name.clone(), Value::Object(facts(object, false))),
        value => (name.clone(), value.clone()),
    });
    kept.collect()
}

/// The values of rows, by column.
struct Cells<'a> {
    rows: usize,
    /// In the order in which they were met.
    columns: Vec<(String, Vec<Option<&'a Value>>)>,
}

impl<'a> Cells<'a> {
    /// Those of rows that so many bytes of a document hold.
    fn of(rows: &[&'a Map<String, Value>], bytes: usize) -> anyhow::Result<Self> {
        let mut cells = Cells { rows: rows.len(), columns: Vec::new() };
        let mut places = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            let mut fields = Vec::new();
            for_each_field("", row, None, &mut |name, value| fields.push((name, value)));
            for (name, value) in fields {
                let place = match places.get(&name) {
                    Some(place) => *place,
                    None => {
                        // Reports have the same fields in all rows: a cell that is not there takes memory, too.
                        let needed = (cells.columns.len() + 1).saturating_mul(rows.len());
                        ensure!(
                            needed <= bytes,
                            "row {at} has a field {name:?} that others have not: this is no report of hbbp"
                        );
                        places.insert(name.clone(), cells.columns.len());
                        cells.columns.push((name, vec![None; rows.len()]));
                        cells.columns.len() - 1
                    }
                };
                cells.columns[place].1[at] = Some(value).filter(|value| !value.is_null());
            }
        }
        Ok(cells)
    }

    /// As columns of the type that all their values have.
    fn columns(self) -> Columns {
        let mut columns = Columns::default();
        for (name, values) in self.columns {
            let all = |has: fn(&Value) -> bool| values.iter().flatten().all(|value| has(value));
            let values = || values.iter().copied();
            if values().all(|value| value.is_none()) {
                columns.add(name, Arc::new(NullArray::new(self.rows)));
            } else if all(Value::is_boolean) {
                columns.flags(name, values().map(|value| value?.as_bool()));
            } else if all(Value::is_u64) {
                columns.counts(name, values().map(|value| value?.as_u64()));
            } else if all(Value::is_i64) {
                columns.integers(name, values().map(|value| value?.as_i64()));
            } else if all(Value::is_number) {
                columns.numbers(name, values().map(|value| value?.as_f64()));
            } else {
                columns.texts(name, values().map(|value| value.map(text)));
            }
        }
        columns
    }
}

/// A text as it is, and all else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
