//! A table, and how others take it.

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator};
use arrow_array::{NullArray, RecordBatchReader, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};

use crate::words::HbbpError;

/// Rows in columns of numbers and texts.
///
/// It has Arrow's PyCapsule interface, so `polars.DataFrame(table)`, `pyarrow.table(table)`, DuckDB and pandas take it without a copy.
#[pyclass(frozen, module = "hbbp")]
pub struct Table {
    batch: RecordBatch,
    /// Executed instructions in all, in the unit of the recording; `None` where rows are not of instructions.
    #[pyo3(get)]
    instructions: Option<f64>,
    /// How right the largest rows are, in a sentence; `None` where it is not known.
    #[pyo3(get)]
    quality: Option<String>,
    /// What there is to say of the rows; it was said as warnings.
    #[pyo3(get)]
    notes: Vec<String>,
}

impl Table {
    /// A table of these columns.
    pub fn new(batch: RecordBatch) -> Self {
        Table { batch, instructions: None, quality: None, notes: Vec::new() }
    }

    /// With what is known of it beside its rows.
    pub fn with(self, instructions: f64, quality: Option<String>, notes: Vec<String>) -> Self {
        Table { instructions: Some(instructions), quality, notes, ..self }
    }

    /// With something more to say of the rows, if there is.
    pub fn with_note(mut self, note: Option<String>) -> Self {
        self.notes.extend(note);
        self
    }

    /// What there is to say of the rows.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The rows as dictionaries, one after the other: `pandas.DataFrame(table)` takes them, too.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_dicts(py)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<hbbp.Table: {} rows of {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// The rows as dictionaries: for small tables, without any other package.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for row in 0..self.batch.num_rows() {
            let dict = PyDict::new(py);
            for (field, array) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
                dict.set_item(field.name(), value(py, array, row)?)?;
            }
            rows.append(dict)?;
        }
        Ok(rows)
    }

    /// A data frame of polars, which must be installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_polars(slf.as_any())
    }

    /// A data frame of pandas, which must be installed, with pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(slf.as_any())
    }

    /// Arrow's schema, as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.batch.schema_ref())
    }

    /// Arrow's stream, as a capsule. Types are those of the schema, whatever `requested_schema` asks for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows for types that are not those asked for.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        stream_capsule(py, Box::new(batches))
    }
}

/// The value of a row in Python.
fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let array = array.as_any();
    if let Some(array) = array.downcast_ref::<StringArray>() {
        Ok(array.is_valid(row).then(|| array.value(row)).into_pyobject(py)?.into_any())
    } else if let Some(array) = array.downcast_ref::<Float64Array>() {
        Ok(array.is_valid(row).then(|| array.value(row)).into_pyobject(py)?.into_any())
    } else if let Some(array) = array.downcast_ref::<UInt64Array>() {
        Ok(array.is_valid(row).then(|| array.value(row)).into_pyobject(py)?.into_any())
    } else if let Some(array) = array.downcast_ref::<Int64Array>() {
        Ok(array.is_valid(row).then(|| array.value(row)).into_pyobject(py)?.into_any())
    } else if let Some(array) = array.downcast_ref::<BooleanArray>() {
        Ok(array.is_valid(row).then(|| array.value(row)).into_pyobject(py)?.into_any())
    } else if array.is::<NullArray>() {
        Ok(py.None().into_bound(py))
    } else {
        Err(HbbpError::new_err("no table has a column of this type"))
    }
}

/// What polars makes of Arrow's stream.
pub fn to_polars<'py>(of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    of.py().import("polars")?.getattr("DataFrame")?.call1((of,))
}

/// What pandas makes of it, by pyarrow: not all versions of pandas take a stream.
pub fn to_pandas<'py>(of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    of.py().import("pyarrow")?.getattr("table")?.call1((of,))?.call_method0("to_pandas")
}

/// Arrow's schema as a capsule, which others empty or drop.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(raised)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Arrow's stream as a capsule, which others empty or drop.
pub fn stream_capsule<'py>(
    py: Python<'py>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}

/// The exception of an error of Arrow's.
pub fn raised(error: ArrowError) -> PyErr {
    HbbpError::new_err(error.to_string())
}
