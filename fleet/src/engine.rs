//! A store as tables of the engine that answers SQL: Apache DataFusion, in this process, or with a cluster that reads the files.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::TryStreamExt;
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::rows::texts;
use crate::store::{Batch, Reading, Store};
use crate::tables::Table;

/// Memory that queries may take; what does not fit in goes to temporary files.
pub const MOST_MEMORY: usize = 512 << 20;

/// Memory that each thread of a query has at least.
const MEMORY_OF_PARTITION: usize = 128 << 20;

/// Texts that a question lists.
const MOST_TEXTS: usize = 20_000;

/// Answers questions about the batches of a store that were there when it was made.
pub struct Engine {
    context: SessionContext,
    cluster: Option<Cluster>,
    /// Its recordings are there once, and its counts can be.
    pub is_checked: OnceCell<()>,
    _reading: Reading,
}

impl Engine {
    /// Of all batches of a store, after a look at whether their files are what was written.
    ///
    /// # Errors
    /// The store cannot be read, or a file of it is damaged.
    pub async fn of(store: &Store) -> anyhow::Result<Self> {
        let reading = store.read();
        let batches = store.batches()?;
        check(store, &batches, &Table::ALL)?;
        Self::of_batches(store, reading, batches, MOST_MEMORY)
    }

    /// Of these batches of a store, with so many bytes of memory.
    ///
    /// # Errors
    /// The store has no place that the engine could name.
    pub fn of_batches(store: &Store, reading: Reading, batches: Vec<Batch>, memory: usize) -> anyhow::Result<Self> {
        let mut config = SessionConfig::new().with_information_schema(true);
        let options = config.options_mut();
        options.execution.parquet.schema_force_view_types = false;
        options.sql_parser.map_string_types_to_utf8view = false;
        // Each partition of a sort has its share of the memory: too many have too little.
        let most = memory / MEMORY_OF_PARTITION;
        options.execution.target_partitions = options.execution.target_partitions.clamp(1, most.max(1));
        // Of rows that are not asked for, only the columns are decoded that say so.
        options.execution.parquet.pushdown_filters = true;
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory))).build_arc()?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        for table in Table::ALL {
            let file = |batch: &Batch| {
                let path = std::path::absolute(store.file(batch, table))?;
                // The engine would pass over an empty file, and over what ran in it.
                let is_there = std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() > 0);
                if !is_there {
                    bail!("{} is damaged: it is empty, or not there", path.display());
                }
                let path = path.to_str().with_context(|| format!("{} is no UTF-8", path.display()))?;
                // A path could be taken for a pattern, a URL is none.
                Ok(ListingTableUrl::parse(format!("file://{}", in_url(path)))?)
            };
            let files = batches.iter().map(file).collect::<anyhow::Result<Vec<_>>>()?;
            if files.is_empty() {
                context.register_table(table.name(), Arc::new(EmptyTable::new(table.schema())))?;
                continue;
            }
            let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
            let config = ListingTableConfig::new_with_multi_paths(files);
            let config = config.with_listing_options(options).with_schema(table.schema());
            context.register_table(table.name(), Arc::new(ListingTable::try_new(config)?))?;
        }
        Ok(Engine { context, cluster: None, is_checked: OnceCell::new(), _reading: reading })
    }

    /// The same with a cluster that reads the files, if one is asked for.
    #[must_use]
    pub fn on(self, cluster: Option<Cluster>) -> Self {
        if cluster.is_some() {
            Cluster::prepare(self.context.state_ref().write().config_mut().options_mut());
        }
        Engine { cluster, ..self }
    }

    /// The answer to a question, as its rows come. Nothing can be changed by one.
    ///
    /// # Errors
    /// It is no SQL, or about what is not there. In the stream: a file of the store cannot be read, or the cluster does not answer.
    pub async fn ask(&self, sql: &str) -> anyhow::Result<SendableRecordBatchStream> {
        let question = self.plan(sql).await?;
        let context = question.task_ctx();
        let mut plan = question.create_physical_plan().await?;
        if let Some(cluster) = &self.cluster {
            plan = cluster.spread(plan, &context)?;
        }
        Ok(execute_stream(plan, context.into())?)
    }

    async fn plan(&self, sql: &str) -> anyhow::Result<DataFrame> {
        let reading = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        Ok(self.context.sql_with_options(sql, reading).await?)
    }

    /// All rows of an answer.
    ///
    /// # Errors
    /// As of [`Self::ask`], and of its stream.
    pub async fn rows(&self, sql: &str) -> anyhow::Result<Vec<RecordBatch>> {
        Ok(self.ask(sql).await?.try_collect().await?)
    }

    /// The recordings that are there, by what names their content.
    ///
    /// # Errors
    /// A file of the store cannot be read, or a recording is there twice.
    pub async fn ids(&self) -> anyhow::Result<HashSet<String>> {
        let mut ids = HashSet::new();
        for rows in self.rows("SELECT id FROM recordings").await? {
            for id in texts(&rows, "id")?.iter().flatten() {
                if !ids.insert(id.to_owned()) {
                    bail!(
                        "the recording {id} is in the store twice: take it out with `hbbp-fleet remove --id {id}`, and put it in again"
                    );
                }
            }
        }
        Ok(ids)
    }

    /// With a cluster, that a column has one of these texts, in SQL: whoever reads the files knows of no table that was [named](Self::name).
    /// None if there is no cluster, or if the texts are too many for a question.
    pub fn among(&self, column: &str, texts: &BTreeSet<&String>) -> Option<String> {
        let is_for_cluster = self.cluster.is_some() && texts.len() <= MOST_TEXTS;
        let list = || texts.iter().map(|text| literal(text)).collect::<Vec<_>>().join(", ");
        is_for_cluster.then(|| if texts.is_empty() { "false".to_owned() } else { format!("{column} IN ({})", list()) })
    }

    /// The tables of this store that a question is about; [names](Self::name) are among them, whether there is such a table or not.
    ///
    /// # Errors
    /// It is no SQL.
    pub fn tables(&self, sql: &str) -> anyhow::Result<Vec<String>> {
        let state = self.context.state();
        let statement = state.sql_to_statement(sql, &state.config().options().sql_parser.dialect)?;
        let tables = state.resolve_table_references(&statement)?;
        let here = tables.iter().filter(|table| table.schema().is_none_or(|schema| schema == "public"));
        Ok(here.map(|table| table.table().to_owned()).collect())
    }

    /// Whether a question could be answered.
    ///
    /// # Errors
    /// As of [`Self::ask`].
    pub async fn check(&self, sql: &str) -> anyhow::Result<()> {
        self.plan(sql).await.map(drop)
    }

    /// Names rows, so that questions can be about them; what had that name before has it no more.
    ///
    /// # Errors
    /// They are no table.
    pub fn name(&self, name: &str, rows: RecordBatch) -> anyhow::Result<()> {
        self.name_all(name, rows.schema(), vec![rows])
    }

    /// The same of rows in several pieces.
    ///
    /// # Errors
    /// They are no table, or have other columns.
    pub fn name_all(&self, name: &str, schema: SchemaRef, rows: Vec<RecordBatch>) -> anyhow::Result<()> {
        self.context.deregister_table(name)?;
        self.context.register_table(name, Arc::new(MemTable::try_new(schema, vec![rows])?))?;
        Ok(())
    }

    /// A name that was [given](Self::name) is one no more.
    ///
    /// # Errors
    /// It is none that a table could have.
    pub fn forget(&self, name: &str) -> anyhow::Result<()> {
        self.context.deregister_table(name)?;
        Ok(())
    }
}

/// Refuses batches with files of these tables that are not what was written: a damaged one could be a wrong sum.
///
/// # Errors
/// One is damaged, and named.
pub fn check(store: &Store, batches: &[Batch], tables: &[Table]) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(batches.len().max(1));
    std::thread::scope(|scope| {
        let check_some =
            |first| batches.iter().skip(first).step_by(threads).try_for_each(|batch| store.check(batch, tables));
        let others: Vec<_> = (1..threads).map(|first| scope.spawn(move || check_some(first))).collect();
        let mut checked = check_some(0);
        for other in others {
            checked = checked.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        checked
    })
}

/// A text as SQL writes one.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// That a column has a label, or none, in SQL.
pub fn labelled(column: &str, label: Option<&str>) -> String {
    label.map_or_else(|| format!("{column} IS NULL"), |label| format!("{column} = {}", literal(label)))
}

/// A path as a URL has it.
fn in_url(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.bytes().fold(String::new(), |mut url, byte| {
        if is_plain(byte) {
            url.push(byte.into());
        } else {
            url += &format!("%{byte:02X}");
        }
        url
    })
}
