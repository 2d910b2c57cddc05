//! Tables that `hbbp` makes of slices: a question about mix, functions or blocks has them made of each version of each service.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, Schema, SchemaRef};

use crate::engine::{Engine, labelled};
use crate::output::{say, say_how_far};
use crate::reports::{Programs, make, write_flow};
use crate::rows::{column, flags, texts};
use crate::selection::{Selection, Slices, sum};
use crate::tables::count_type;

/// What the tables mix, functions and blocks are made of.
#[derive(clap::Args)]
#[command(next_help_heading = "Tables that hbbp makes: mix, functions, blocks")]
pub struct ReportTables {
    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    programs: Programs,
}

/// A report as a table.
struct Report {
    table: &'static str,
    /// The command of `hbbp`.
    command: &'static str,
    options: &'static [&'static str],
    /// Those of its columns that are in the table.
    columns: &'static [(&'static str, DataType)],
}

/// As in the table of the flow: its sums have no order.
const COUNT: DataType = count_type();

/// Half the width of the interval that holds the true count at 95 %, NULL where it is not known, and whether it rests on too little to be known
/// well.
const COUNT_ERROR: (&str, DataType) = ("count_error", DataType::Float64);
const RESTS_ON_LITTLE: (&str, DataType) = ("rests_on_little", DataType::Boolean);

const REPORTS: [Report; 3] = [
    Report {
        table: "mix",
        command: "mix",
        options: &["--rows", "module,function,mnemonic,category,isa,packing,width"],
        columns: &[
            ("module", DataType::Utf8),
            ("function", DataType::Utf8),
            ("mnemonic", DataType::Utf8),
            ("category", DataType::Utf8),
            ("isa", DataType::Utf8),
            ("packing", DataType::Utf8),
            ("width", DataType::Int64),
            ("count", COUNT),
            COUNT_ERROR,
            RESTS_ON_LITTLE,
        ],
    },
    Report {
        table: "functions",
        command: "mix",
        options: &["--rows", "module,function"],
        columns: &[
            ("module", DataType::Utf8),
            ("function", DataType::Utf8),
            ("count", COUNT),
            COUNT_ERROR,
            RESTS_ON_LITTLE,
        ],
    },
    Report {
        table: "blocks",
        command: "blocks",
        options: &[],
        columns: &[
            ("module", DataType::Utf8),
            ("start", DataType::Utf8),
            ("end", DataType::Utf8),
            ("instructions", DataType::Int64),
            ("function", DataType::Utf8),
            ("count", COUNT),
            COUNT_ERROR,
            RESTS_ON_LITTLE,
        ],
    },
];

/// What each table has before the columns of its report.
const LABELS: [(&str, DataType); 4] = [
    ("service", DataType::Utf8),
    ("version", DataType::Utf8),
    ("executions", DataType::Boolean),
    ("source", DataType::Utf8),
];

/// What `hbbp mix` has in place of what nobody could read.
const UNREADABLE: &str = "[unreadable]";

impl Report {
    fn schema(&self) -> SchemaRef {
        let columns = LABELS.iter().chain(self.columns);
        Arc::new(Schema::new(columns.map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>()))
    }
}

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
    /// It is no question, the slices cannot be made, or `hbbp` makes no report of one.
    pub async fn make(&self, engine: &Engine, sql: &str) -> anyhow::Result<()> {
        let named = engine.tables(sql)?;
        let wanted = REPORTS.iter().filter(|report| named.iter().any(|name| name == report.table));
        let wanted: Vec<&Report> = wanted.collect();
        if wanted.is_empty() {
            if self.selection != Selection::default() || self.programs != Programs::default() {
                bail!(
                    "the question is about none of mix, functions and blocks, and that is what options such as --service choose: say `WHERE service = ..` in place of them"
                );
            }
            return Ok(());
        }
        if self.selection.build.is_some() {
            bail!("--build is for reports: these tables have a row for each module, and --version chooses versions");
        }
        // A mistake is told before minutes of work.
        for report in &wanted {
            engine.name_all(report.table, report.schema(), Vec::new())?;
        }
        engine.check(sql).await?;
        let groups = self.groups(engine).await?;
        if groups.is_empty() {
            bail!("no recording is of that slice");
        }
        let folder = tempfile::tempdir()?;
        let (mut tables, mut notes) = (vec![Vec::new(); wanted.len()], BTreeSet::new());
        for (number, group) in groups.iter().enumerate() {
            say_how_far(number, groups.len(), "versions of services are made");
            let made = self.tables(engine, group, &wanted, folder.path(), &mut notes).await;
            for (table, rows) in tables.iter_mut().zip(made.with_context(|| group.name())?) {
                table.extend(rows);
            }
        }
        notes.iter().for_each(|note| say(note));
        for (report, rows) in wanted.iter().zip(tables) {
            say_unreadable(report, &rows)?;
            engine.name_all(report.table, report.schema(), rows)?;
        }
        engine.forget("selected")
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
            let text = |text: Option<&str>| text.map(str::to_owned);
            for ((service, version), executions) in services.iter().zip(versions).zip(executions.values()) {
                groups.push(Group { service: text(service), version: text(version), executions });
            }
        }
        Ok(groups)
    }

    /// The rows of each report of a group.
    async fn tables(
        &self,
        engine: &Engine,
        group: &Group,
        wanted: &[&Report],
        folder: &Path,
        notes: &mut BTreeSet<String>,
    ) -> anyhow::Result<Vec<Vec<RecordBatch>>> {
        let selection = Selection { only: Some(group.condition()), ..self.selection.clone() };
        let (flow, _) = sum(engine, &selection, Slices::Apart).await?;
        let has_ranges = flow.range_total() > 0.0;
        if !has_ranges && flow.modules.iter().all(|of| of.samples.is_empty()) {
            notes.insert(format!("{}: nothing in it is in any code", group.name()));
            return Ok(vec![Vec::new(); wanted.len()]);
        }
        let slice = folder.join("slice.flow");
        write_flow(&flow, &slice)?;
        let source = if has_ranges { "lbr" } else { "ebs" };
        wanted.iter().map(|report| self.table(report, group, source, &slice, notes)).collect()
    }

    /// The rows of a report of a slice.
    fn table(
        &self,
        report: &Report,
        group: &Group,
        source: &str,
        slice: &Path,
        notes: &mut BTreeSet<String>,
    ) -> anyhow::Result<Vec<RecordBatch>> {
        let csv = slice.with_extension("csv");
        let options = [report.options, &["--format", "csv"]].concat();
        let said = make(report.command, &[slice], &options, &self.programs, &csv)?;
        notes.extend(said.iter().map(|line| format!("{}: {line}", group.name())));
        let texts = report.columns.iter().filter(|(name, kind)| *kind == DataType::Utf8 || *name == "width");
        let texts: Vec<&str> = texts.map(|(name, _)| *name).collect();
        let rows = crate::parquet::read(File::open(&csv)?, &texts)?;
        let schema = report.schema();
        rows.map(|rows| group.label(&rows?, report, &schema, source)).collect()
    }
}

/// Says how much of what ran is in code that was not there to be read: a question about its instructions finds nothing.
fn say_unreadable(report: &Report, rows: &[RecordBatch]) -> anyhow::Result<()> {
    if report.table != "mix" {
        return Ok(());
    }
    let (mut all, mut unreadable) = (0.0, 0.0);
    for rows in rows {
        let counts = column(rows, "count")?.as_primitive::<Decimal128Type>();
        for (mnemonic, count) in texts(rows, "mnemonic")?.iter().zip(counts.values()) {
            all += *count as f64;
            unreadable += if mnemonic == Some(UNREADABLE) { *count as f64 } else { 0.0 };
        }
    }
    if unreadable > 0.0 {
        say(&format!(
            "{:.2} % of the counts are of code that could not be read: {UNREADABLE} in place of a mnemonic, and no isa",
            100.0 * unreadable / all
        ));
    }
    Ok(())
}

impl Group {
    /// What its recordings and all rows of its flow have, in SQL.
    fn condition(&self) -> String {
        let (service, version) =
            (labelled("service", self.service.as_deref()), labelled("version", self.version.as_deref()));
        format!("{service} AND {version} AND executions = {}", self.executions)
    }

    fn name(&self) -> String {
        let service = self.service.as_deref().unwrap_or("what has no service");
        let version = self.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        format!("{service}{version} ({})", if self.executions { "executions" } else { "relative" })
    }

    /// Rows of a report as those of its table.
    fn label(
        &self,
        rows: &RecordBatch,
        report: &Report,
        schema: &SchemaRef,
        source: &str,
    ) -> anyhow::Result<RecordBatch> {
        let text = |text: Option<&str>| Arc::new(StringArray::from(vec![text; rows.num_rows()])) as ArrayRef;
        // Samples are no executions, whatever else was in the recordings.
        let executions = BooleanArray::from(vec![self.executions && source == "lbr"; rows.num_rows()]);
        let mut columns = vec![
            text(self.service.as_deref()),
            text(self.version.as_deref()),
            Arc::new(executions),
            text(Some(source)),
        ];
        for (name, kind) in report.columns {
            // A width can be none, or unknown; a count is a number.
            let options = CastOptions { safe: *name == "width", ..CastOptions::default() };
            columns.push(cast_with_options(column(rows, name)?, kind, &options)?);
        }
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }
}
