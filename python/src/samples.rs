//! Samples and branch stacks, as they were recorded: streams of batches, of recordings of any size.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arrow_array::builder::{BooleanBuilder, Int32Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchReader, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use perfdata::{Branch, Chunk, Recording, Sample};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::table::{schema_capsule, stream_capsule, to_pandas, to_polars};

/// Rows of a batch, about: a sample may have many branches.
const ROWS: usize = 1 << 16;

/// Batches that wait for those who take them.
const WAITING: usize = 4;

/// What each row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A sample.
    Samples,
    /// A branch of a sample's stack.
    Branches,
}

/// Rows that are read from a recording while they are taken, in the order in which they were recorded.
///
/// It has Arrow's PyCapsule interface: `polars.DataFrame(stream)`, `pyarrow.table(stream)`. DuckDB and `pyarrow.RecordBatchReader` take one batch
/// after the other. Each time that it is taken, the recording is read anew.
#[pyclass(frozen, module = "hbbp")]
pub struct Stream {
    recording: Arc<Recording>,
    rows: Rows,
}

impl Stream {
    /// The rows of a recording.
    pub fn new(recording: Arc<Recording>, rows: Rows) -> Self {
        Stream { recording, rows }
    }
}

#[pymethods]
impl Stream {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.rows.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<hbbp.Stream of {}>", self.columns().join(", "))
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
        schema_capsule(py, &self.rows.schema())
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
        stream_capsule(py, Box::new(Batches::read(Arc::clone(&self.recording), self.rows)))
    }
}

impl Rows {
    /// The columns, with their types.
    fn schema(self) -> SchemaRef {
        let column = |name: &str, kind: DataType| Field::new(name, kind, true);
        let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let columns = match self {
            Rows::Samples => vec![
                column("event", text),
                column("time", DataType::UInt64),
                column("pid", DataType::UInt32),
                column("tid", DataType::UInt32),
                column("cpu", DataType::UInt32),
                column("ip", DataType::UInt64),
                column("period", DataType::UInt64),
                column("branches", DataType::UInt64),
            ],
            Rows::Branches => vec![
                column("sample", DataType::UInt64),
                column("position", DataType::UInt64),
                column("from", DataType::UInt64),
                column("to", DataType::UInt64),
                column("mispredicted", DataType::Boolean),
                column("cycles", DataType::UInt32),
            ],
        };
        Arc::new(Schema::new(columns))
    }
}

/// Batches that another thread reads.
struct Batches {
    schema: SchemaRef,
    /// The end of the reading comes as `None`.
    read: Option<Receiver<Result<Option<RecordBatch>, ArrowError>>>,
}

impl Batches {
    fn read(recording: Arc<Recording>, rows: Rows) -> Self {
        let (send, read) = sync_channel(WAITING);
        // It ends when nobody takes more.
        thread::spawn(move || {
            let end = read_rows(&recording, rows, &send).map(|()| None);
            let _ = send.send(end);
        });
        Batches { schema: rows.schema(), read: Some(read) }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let lost = || Err(ArrowError::ExternalError("reading the recording ended before its end".into()));
        let next = self.read.as_ref()?.recv().unwrap_or_else(|_| lost());
        if !matches!(next, Ok(Some(_))) {
            self.read = None;
        }
        next.transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Nobody takes more.
struct Ended;

type Sender = SyncSender<Result<Option<RecordBatch>, ArrowError>>;

/// Reads a recording, and sends its rows. What is damaged is the end of them; the head of every report says so.
fn read_rows(recording: &Recording, rows: Rows, send: &Sender) -> Result<(), ArrowError> {
    let (mut samples, mut branches) = (SampleRows::of(recording), BranchRows::default());
    let (mut reader, mut chunk, mut number) = (recording.chunks(), Chunk::new(), 0);
    let read = |error: perfdata::Error| ArrowError::ExternalError(Box::new(error));
    while reader.next_into(&mut chunk).map_err(read)? {
        for raw in chunk.records().filter(|raw| raw.is_sample()) {
            // One that cannot be read is counted among the malformed.
            let Ok(sample) = recording.sample(&raw) else { continue };
            let full = match rows {
                Rows::Samples => samples.add(&sample),
                Rows::Branches => branches.add(number, &sample),
            };
            number += 1;
            if full && give(rows, (&mut samples, &mut branches), send)?.is_err() {
                return Ok(());
            }
        }
    }
    let _ = give(rows, (&mut samples, &mut branches), send)?;
    Ok(())
}

/// Sends the rows so far, if there are any.
fn give(
    rows: Rows,
    (samples, branches): (&mut SampleRows, &mut BranchRows),
    send: &Sender,
) -> Result<Result<(), Ended>, ArrowError> {
    let arrays = match rows {
        Rows::Samples => samples.take()?,
        Rows::Branches => branches.take(),
    };
    let batch = RecordBatch::try_new(rows.schema(), arrays)?;
    match batch.num_rows() {
        0 => Ok(Ok(())),
        _ => Ok(send.send(Ok(Some(batch))).map_err(|_| Ended)),
    }
}

struct SampleRows {
    rows: usize,
    /// By the number of each event: its name among `names`, and its period, where that is fixed.
    events: Vec<(i32, Option<u64>)>,
    /// Each name once. All batches have the same, so that whoever puts batches together need not make them agree.
    names: ArrayRef,
    event: Int32Builder,
    time: UInt64Builder,
    pid: UInt32Builder,
    tid: UInt32Builder,
    cpu: UInt32Builder,
    ip: UInt64Builder,
    period: UInt64Builder,
    branches: UInt64Builder,
}

impl SampleRows {
    /// No rows yet, of the events of a recording.
    fn of(recording: &Recording) -> Self {
        let (mut names, mut places) = (Vec::new(), HashMap::new());
        let mut place = |name| {
            *places.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() as i32 - 1
            })
        };
        let events = recording.events().iter();
        let events = events.map(|event| (place(event.name.as_str()), event.attr.sample_period())).collect();
        SampleRows {
            rows: 0,
            events,
            names: Arc::new(StringArray::from(names)),
            event: Int32Builder::new(),
            time: UInt64Builder::new(),
            pid: UInt32Builder::new(),
            tid: UInt32Builder::new(),
            cpu: UInt32Builder::new(),
            ip: UInt64Builder::new(),
            period: UInt64Builder::new(),
            branches: UInt64Builder::new(),
        }
    }

    /// Adds a sample, and says whether there are enough for a batch.
    fn add(&mut self, sample: &Sample<'_>) -> bool {
        let (name, period) = self.events.get(sample.event).copied().unzip();
        self.event.append_option(name);
        self.time.append_option(sample.time);
        self.pid.append_option(sample.pid);
        self.tid.append_option(sample.tid);
        self.cpu.append_option(sample.cpu);
        self.ip.append_option(sample.ip.map(|ip| ip.0));
        // Where it is fixed, samples do not say it.
        self.period.append_option(sample.period.or(period.flatten()));
        self.branches.append_option(sample.branch_stack.map(|stack| stack.len() as u64));
        self.rows += 1;
        self.rows >= ROWS
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.rows = 0;
        Ok(vec![
            Arc::new(DictionaryArray::try_new(self.event.finish(), Arc::clone(&self.names))?),
            Arc::new(self.time.finish()),
            Arc::new(self.pid.finish()),
            Arc::new(self.tid.finish()),
            Arc::new(self.cpu.finish()),
            Arc::new(self.ip.finish()),
            Arc::new(self.period.finish()),
            Arc::new(self.branches.finish()),
        ])
    }
}

#[derive(Default)]
struct BranchRows {
    rows: usize,
    sample: UInt64Builder,
    position: UInt64Builder,
    from: UInt64Builder,
    to: UInt64Builder,
    mispredicted: BooleanBuilder,
    cycles: UInt32Builder,
}

impl BranchRows {
    /// Adds the branches of a sample, and says whether there are enough for a batch.
    fn add(&mut self, sample: u64, of: &Sample<'_>) -> bool {
        let stack = of.branch_stack.iter().flat_map(|stack| stack.iter());
        for (position, Branch { from, to, flags }) in stack.enumerate() {
            let is_known = flags.predicted() || flags.mispredicted();
            self.sample.append_value(sample);
            self.position.append_value(position as u64);
            self.from.append_value(from.0);
            self.to.append_value(to.0);
            self.mispredicted.append_option(is_known.then(|| flags.mispredicted()));
            self.cycles.append_option(Some(u32::from(flags.cycles())).filter(|cycles| *cycles > 0));
            self.rows += 1;
        }
        self.rows >= ROWS
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        vec![
            Arc::new(self.sample.finish()),
            Arc::new(self.position.finish()),
            Arc::new(self.from.finish()),
            Arc::new(self.to.finish()),
            Arc::new(self.mispredicted.finish()),
            Arc::new(self.cycles.finish()),
        ]
    }
}
