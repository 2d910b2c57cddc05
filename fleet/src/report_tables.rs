//! Tables that `hbbp` makes of slices: a question about instructions, functions or blocks has them made of each version of each service.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, bail};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::engine::{Engine, literal};
use crate::output::say;
use crate::reports::{hbbp, is_not_there, write_slice};
use crate::rows::{flags, texts};
use crate::selection::Selection;

/// What the tables mix, functions and blocks are made of.
#[derive(clap::Args)]
#[command(next_help_heading = "Tables that hbbp makes: mix, functions, blocks")]
pub struct ReportTables {
    #[command(flatten)]
    selection: Selection,

    /// As of `hbbp mix`: read this binary in place of the recorded one
    #[arg(long, value_name = "[RECORDED=]FILE")]
    binary: Vec<PathBuf>,

    /// As of `hbbp mix`: look for binaries under this directory in place of under /
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,
}

/// A report as a table.
struct Report {
    table: &'static str,
    /// The command of `hbbp`, and its options.
    command: &'static [&'static str],
    /// Columns that are texts, whatever is in them.
    texts: &'static [&'static str],
}

const REPORTS: [Report; 2] = [
    Report {
        table: "mix",
        command: &["mix", "--rows", "module,function,mnemonic,category,isa,packing,width"],
        texts: &["module", "function", "mnemonic", "category", "isa", "packing", "width", "rests_on_little"],
    },
    Report {
        table: "blocks",
        command: &["blocks"],
        texts: &["module", "start", "end", "function", "chosen", "bias", "rests_on_little"],
    },
];

/// The sums of `mix`.
const FUNCTIONS: &str = "SELECT service, version, executions, module, function, sum(count) AS instructions \
                         FROM mix GROUP BY service, version, executions, module, function";

/// Recordings whose counts can be added up, and whose programs are the same.
struct Group {
    service: Option<String>,
    version: Option<String>,
    executions: bool,
}

impl ReportTables {
    /// Makes the tables that a question is about.
    ///
    /// # Errors
    /// The slices cannot be made, or `hbbp` makes no report of one.
    pub async fn make(&self, engine: &Engine, sql: &str) -> anyhow::Result<()> {
        let named = engine.tables(sql)?;
        let is_named = |table: &str| named.iter().any(|name| name == table);
        let needs_functions = is_named("functions");
        let wanted = |report: &&Report| is_named(report.table) || (needs_functions && report.table == "mix");
        let wanted: Vec<&Report> = REPORTS.iter().filter(wanted).collect();
        if wanted.is_empty() {
            if self.selection != Selection::default() || !self.binary.is_empty() || self.symfs.is_some() {
                bail!(
                    "the question is about none of mix, functions and blocks, and that is what options such as --service choose: say `WHERE service = ..` in place of them"
                );
            }
            return Ok(());
        }
        let folder = tempfile::tempdir()?;
        let mut tables: Vec<Vec<RecordBatch>> = vec![Vec::new(); wanted.len()];
        let groups = self.groups(engine).await?;
        if groups.is_empty() {
            bail!("no recording is of that slice");
        }
        for group in groups {
            let file = folder.path().join("slice.flow");
            let only = Some(group.condition());
            write_slice(engine, &Selection { only, ..self.selection.clone() }, &file).await?;
            for (report, rows) in wanted.iter().zip(&mut tables) {
                rows.extend(self.table(report, &group, &file, folder.path())?);
            }
        }
        for (report, rows) in wanted.iter().zip(tables) {
            let schema = rows.first().map(RecordBatch::schema).context("no code ran in that slice")?;
            engine.name_all(report.table, schema, rows)?;
        }
        if needs_functions {
            engine.name_view("functions", FUNCTIONS).await?;
        }
        Ok(())
    }

    /// What has a report of its own.
    async fn groups(&self, engine: &Engine) -> anyhow::Result<Vec<Group>> {
        let sql = format!(
            "SELECT DISTINCT service, version, executions FROM recordings WHERE {} ORDER BY service, version, executions",
            self.selection.of_recordings()
        );
        let mut groups = Vec::new();
        for rows in engine.rows(&sql).await? {
            let (services, versions, executions) =
                (texts(&rows, "service")?, texts(&rows, "version")?, flags(&rows, "executions")?);
            for row in 0..rows.num_rows() {
                let text = |of: &StringArray| (!of.is_null(row)).then(|| of.value(row).to_owned());
                groups.push(Group {
                    service: text(services),
                    version: text(versions),
                    executions: executions.value(row),
                });
            }
        }
        Ok(groups)
    }

    /// The rows of a report of a slice.
    fn table(&self, report: &Report, group: &Group, slice: &Path, folder: &Path) -> anyhow::Result<Vec<RecordBatch>> {
        let csv = folder.join("rows.csv");
        let mut hbbp = hbbp();
        let (command, options) = report.command.split_first().context("a report without a command")?;
        hbbp.arg(command).arg(slice).args(options).args(["--format", "csv", "--color", "never"]);
        hbbp.args(self.binary.iter().flat_map(|binary| ["--binary".as_ref(), binary.as_os_str()]));
        hbbp.args(self.symfs.iter().flat_map(|folder| ["--symfs".as_ref(), folder.as_os_str()]));
        let output = hbbp.stdin(Stdio::null()).stdout(File::create(&csv)?).stderr(Stdio::piped()).output();
        let output = output.map_err(|error| is_not_there(&hbbp, error))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("{}: hbbp {command} has failed: {}", group.name(), said.trim_end());
        }
        said.lines().for_each(|line| say(&format!("{}: {}", group.name(), line.trim_start_matches("hbbp: "))));
        let rows = crate::parquet::read(File::open(&csv)?, report.texts)?;
        let schema = group.schema(&rows.schema());
        rows.map(|rows| group.label(&rows?, &schema)).collect()
    }
}

impl Group {
    /// What its recordings and all rows of its flow have, in SQL.
    fn condition(&self) -> String {
        let label = |name: &str, label: &Option<String>| match label {
            Some(label) => format!("{name} = {}", literal(label)),
            None => format!("{name} IS NULL"),
        };
        let (service, version) = (label("service", &self.service), label("version", &self.version));
        format!("{service} AND {version} AND executions = {}", self.executions)
    }

    fn name(&self) -> String {
        let words = [self.service.as_deref().unwrap_or("no service"), self.version.as_deref().unwrap_or_default()];
        words.join(" ").trim_end().to_owned()
    }

    /// The columns of a report, after those that say of what it is.
    fn schema(&self, of_report: &Schema) -> SchemaRef {
        let labels = [("service", DataType::Utf8), ("version", DataType::Utf8), ("executions", DataType::Boolean)];
        let labels = labels.map(|(name, kind)| Field::new(name, kind, true));
        let columns = of_report.fields().iter().map(|field| match &**field.name() {
            // As in the table of the flow: their sums have no order.
            "count" | "ebs" | "lbr" => Field::new(field.name(), DataType::Decimal128(38, 9), true),
            _ => (**field).clone(),
        });
        Arc::new(Schema::new(labels.into_iter().chain(columns).collect::<Vec<_>>()))
    }

    fn label(&self, rows: &RecordBatch, schema: &SchemaRef) -> anyhow::Result<RecordBatch> {
        let text =
            |text: &Option<String>| Arc::new(StringArray::from(vec![text.as_deref(); rows.num_rows()])) as ArrayRef;
        let executions = Arc::new(BooleanArray::from(vec![self.executions; rows.num_rows()])) as ArrayRef;
        let labels = [text(&self.service), text(&self.version), executions].into_iter();
        let columns = labels.chain(rows.columns().iter().cloned()).zip(schema.fields());
        let columns = columns.map(|(column, field)| cast(&column, field.data_type())).collect::<Result<_, _>>()?;
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }
}
