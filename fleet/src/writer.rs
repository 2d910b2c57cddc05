//! Batches as Parquet files.

use std::fs::{self, File};

use anyhow::Context;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::metadata::{KeyValue, SortingColumn};
use datafusion::parquet::file::properties::WriterProperties;

use crate::rows::column;
use crate::store::{Batch, REPLACES, Store, Unfinished};
use crate::tables::Table;

/// Rows that a reader takes or leaves together: those of one build are found without reading the others.
const ROWS_IN_GROUP: usize = 65_536;

/// A part of a table while it is written.
pub struct TableFile {
    unfinished: Unfinished,
    writer: ArrowWriter<File>,
}

impl TableFile {
    /// Begins the file of a batch with a part of a table. `replaces`: the batches that count no more when it is finished, if it is the
    /// table of recordings.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn begin(store: &Store, batch: &Batch, table: Table, replaces: &[Batch]) -> anyhow::Result<Self> {
        let folder = store.folder_of(batch.day);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let schema = table.schema();
        let sorting = table.sorted_by().iter().map(|name| {
            let index = schema.index_of(name)?;
            Ok(SortingColumn { column_idx: index as i32, descending: false, nulls_first: true })
        });
        let sorting = sorting.collect::<anyhow::Result<Vec<_>>>()?;
        let names: Vec<String> = replaces.iter().map(Batch::text).collect();
        let replaces = (!names.is_empty()).then(|| vec![KeyValue::new(REPLACES.to_owned(), names.join(" "))]);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_max_row_group_row_count(Some(ROWS_IN_GROUP))
            .set_sorting_columns(Some(sorting))
            .set_key_value_metadata(replaces)
            .build();
        let unfinished = Unfinished::begin(store.file(batch, table))?;
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

    /// It is complete.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        self.writer.close()?;
        self.unfinished.finish()
    }
}

/// Writes a batch: the rows of each table in the order of [`Table::ALL`], the one that makes it count last.
///
/// # Errors
/// The store cannot be written. Then the batch does not count.
pub fn write_batch(
    store: &Store,
    batch: &Batch,
    tables: [Vec<RecordBatch>; 3],
    replaces: &[Batch],
) -> anyhow::Result<()> {
    for (table, parts) in Table::ALL.into_iter().zip(tables) {
        let replaces = if table == Table::Recordings { replaces } else { &[] };
        let mut file = TableFile::begin(store, batch, table, replaces)?;
        file.write(&sorted(table, &parts)?)?;
        file.finish()?;
    }
    Ok(())
}

/// All rows in the order of the table.
fn sorted(table: Table, parts: &[RecordBatch]) -> anyhow::Result<RecordBatch> {
    let rows = concat_batches(&table.schema(), parts)?;
    let by =
        table.sorted_by().iter().map(|name| Ok(SortColumn { values: column(&rows, name)?.clone(), options: None }));
    let order = lexsort_to_indices(&by.collect::<anyhow::Result<Vec<_>>>()?, None)?;
    Ok(take_record_batch(&rows, &order)?)
}
