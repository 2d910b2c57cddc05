//! Batches as Parquet files.

use std::fs::{self, File};

use anyhow::{Context, bail};
use chrono::{NaiveDate, SecondsFormat, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::metadata::{KeyValue, SortingColumn};
use datafusion::parquet::file::properties::WriterProperties;

use crate::rows::column;
use crate::store::{Batch, HASH_IN_NAME, HASHES, REPLACES, Store, Unfinished, WRITTEN};
use crate::tables::Table;

/// Rows that a reader takes or leaves together: those of one build are found without reading the others.
const ROWS_IN_GROUP: usize = 65_536;

/// A part of a table while it is written.
pub struct TableFile {
    unfinished: Unfinished,
    writer: ArrowWriter<File>,
}

impl TableFile {
    /// Begins a file with a part of a table. `notes`: what its metadata says.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn begin(store: &Store, day: NaiveDate, table: Table, notes: &[(&str, String)]) -> anyhow::Result<Self> {
        let folder = store.folder_of(day);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let schema = table.schema();
        let sorting = table.sorted_by().iter().map(|name| {
            let index = schema.index_of(name)?;
            Ok(SortingColumn { column_idx: index as i32, descending: false, nulls_first: true })
        });
        let sorting = sorting.collect::<anyhow::Result<Vec<_>>>()?;
        let notes = notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_max_row_group_row_count(Some(ROWS_IN_GROUP))
            .set_sorting_columns(Some(sorting))
            .set_key_value_metadata(Some(notes))
            .build();
        let unfinished = Unfinished::begin(&folder)?;
        let writer = ArrowWriter::try_new(unfinished.writer()?, schema, Some(properties))?;
        Ok(TableFile { unfinished, writer })
    }

    /// Adds rows, which are in order.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.writer.write(rows)?)
    }

    /// It is complete, but has no name.
    fn close(self) -> anyhow::Result<(Unfinished, String)> {
        self.writer.close()?;
        let hash = self.unfinished.hash()?;
        Ok((self.unfinished, hash))
    }
}

/// A batch while it is written: what ran and modules are there, its recordings come last.
pub struct BatchFiles<'a> {
    store: &'a Store,
    day: NaiveDate,
    others: Vec<(Table, Unfinished, String)>,
}

impl<'a> BatchFiles<'a> {
    /// Begins a batch of a day.
    pub fn begin(store: &'a Store, day: NaiveDate) -> Self {
        BatchFiles { store, day, others: Vec::new() }
    }

    /// Adds a table that is not that of recordings.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, table: Table, file: TableFile) -> anyhow::Result<()> {
        let (unfinished, hash) = file.close()?;
        self.others.push((table, unfinished, hash));
        Ok(())
    }

    /// Begins the table of recordings, with what it says of the others, and of those batches that the whole replaces.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn recordings(&self, replaces: &[Batch]) -> anyhow::Result<TableFile> {
        let hashes: Vec<_> = self.others.iter().map(|(table, _, hash)| format!("{}={hash}", table.name())).collect();
        let written = Utc::now().to_rfc3339_opts(SecondsFormat::Nanos, true);
        let mut notes = vec![(HASHES, hashes.join(" ")), (WRITTEN, written)];
        if !replaces.is_empty() {
            notes.push((REPLACES, replaces.iter().map(Batch::text).collect::<Vec<_>>().join(" ")));
        }
        TableFile::begin(self.store, self.day, Table::Recordings, &notes)
    }

    /// From now on it counts. Its name is made of its content: that of the recordings, which have that of the others.
    ///
    /// # Errors
    /// It cannot be written. Then it does not count.
    pub fn finish(self, kind: char, recordings: TableFile) -> anyhow::Result<Batch> {
        let (recordings, hash) = recordings.close()?;
        let batch = Batch { day: self.day, name: format!("{kind}-{}", &hash[..HASH_IN_NAME]) };
        for (table, unfinished, _) in self.others {
            unfinished.finish(self.store.file(&batch, table))?;
        }
        recordings.finish(self.store.file(&batch, Table::Recordings))?;
        Ok(batch)
    }
}

/// Writes a batch: the rows of each table in the order of [`Table::ALL`], the one that makes it count last. `kind`: as its name begins.
///
/// # Errors
/// The store cannot be written. Then the batch does not count.
pub fn write_batch(
    store: &Store,
    day: NaiveDate,
    kind: char,
    tables: [Vec<RecordBatch>; 3],
    replaces: &[Batch],
) -> anyhow::Result<Batch> {
    let mut files = BatchFiles::begin(store, day);
    for (table, parts) in Table::ALL.into_iter().zip(tables) {
        let rows = sorted(table, &parts)?;
        if table == Table::Recordings {
            let mut file = files.recordings(replaces)?;
            file.write(&rows)?;
            return files.finish(kind, file);
        }
        let mut file = TableFile::begin(store, day, table, &[])?;
        file.write(&rows)?;
        files.add(table, file)?;
    }
    bail!("a batch has no table of recordings")
}

/// All rows in the order of the table.
fn sorted(table: Table, parts: &[RecordBatch]) -> anyhow::Result<RecordBatch> {
    let rows = concat_batches(&table.schema(), parts)?;
    let by =
        table.sorted_by().iter().map(|name| Ok(SortColumn { values: column(&rows, name)?.clone(), options: None }));
    let order = lexsort_to_indices(&by.collect::<anyhow::Result<Vec<_>>>()?, None)?;
    Ok(take_record_batch(&rows, &order)?)
}
