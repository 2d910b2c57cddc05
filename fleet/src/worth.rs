//! What the evidence of older builds is worth to the newest: `hbbp diff` compares what ran of both, by function and by code.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use analyzer::flow::{Flow, OF_MERGED};
use anyhow::Context;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use futures::TryStreamExt;
use serde::Deserialize;

use crate::engine::{Engine, labelled, literal};
use crate::output::{say, say_how_far};
use crate::reports::{HasFailed, Programs, make, write_flow};
use crate::rows::{column, texts};
use crate::selection::{BUILDS, Builds, Selected, Selection, Slices, Wanted, selected, sum_of};

/// The table of [`compare`].
pub const COMPARED: &str = "compared";

/// Of each side of a comparison, so much must be in functions with names, of code that was read, 0 to 1.
const LEAST_READ: f64 = 0.5;

/// How builds are compared.
#[derive(clap::Args)]
pub struct WorthArgs {
    /// Compare what ran of older builds with what ran of the newest, for the rows that are printed
    ///
    /// Adds columns: which percent of what ran of older builds is in functions that ran in the newest, too, by name (percent_same_functions), and
    /// in blocks whose code these functions still have, whatever their addresses are (percent_same_code); how far what ran of both overlaps, as the
    /// sum of the smaller shares of each function (percent_overlap); and whether a new profile is worth building (new_profile: yes, no, unknown).
    #[arg(long)]
    pub compare: bool,

    /// A new profile is worth building if the overlap is less than that, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 80.0, value_parser = percent, requires = "compare")]
    least: f64,

    #[command(flatten)]
    programs: Programs,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// A row of `hbbp-fleet stale`.
struct Row {
    service: Option<String>,
    path: String,
    newest: String,
    executions: bool,
    /// All that ran of it was its newest build.
    is_new: bool,
}

/// What a comparison says. Parts are percent of what was read; `None`: it is not known, or there is no older build.
#[derive(Clone, Debug, Default, PartialEq)]
struct Worth {
    same_functions: Option<f64>,
    same_code: Option<f64>,
    overlap: Option<f64>,
    new_profile: Option<&'static str>,
}

const UNKNOWN: Worth = Worth { same_functions: None, same_code: None, overlap: None, new_profile: Some("unknown") };

/// Compares older builds with the newest in each row that answers `sql`, and names the rows with the columns of the comparison [`COMPARED`].
///
/// # Errors
/// The store cannot be read, or `hbbp` cannot compare.
pub async fn compare(engine: &Engine, selection: &Selection, sql: &str, args: &WorthArgs) -> anyhow::Result<()> {
    let answer = engine.ask(sql).await?;
    let nothing = RecordBatch::new_empty(answer.schema());
    let mut batches: Vec<RecordBatch> = answer.try_collect().await?;
    if batches.is_empty() {
        batches.push(nothing);
    }
    let rows = batches.iter().map(rows_of).collect::<anyhow::Result<Vec<_>>>()?;
    let all = rows.iter().map(Vec::len).sum();
    let folder = tempfile::tempdir()?;
    let (mut compared, mut notes) = (Vec::new(), BTreeSet::new());
    let mut number = 0;
    for (batch, rows) in batches.iter().zip(rows) {
        let mut worth = Vec::new();
        for row in rows {
            say_how_far(number, all, "files are compared");
            number += 1;
            let of_row = row.worth(engine, selection, args, folder.path(), &mut notes).await;
            worth.push(of_row.with_context(|| row.name())?);
        }
        compared.push(with_columns(batch, &worth)?);
    }
    notes.iter().for_each(|note| say(note));
    let schema = compared.first().context("no rows")?.schema();
    engine.name_all(COMPARED, schema, compared)
}

fn rows_of(rows: &RecordBatch) -> anyhow::Result<Vec<Row>> {
    let [services, paths, newest, counts] = ["service", "path", "newest", "counts"].map(|name| texts(rows, name));
    let (services, paths, newest, counts) = (services?, paths?, newest?, counts?);
    let builds = column(rows, "builds")?.as_primitive_opt::<Int64Type>().context("builds are no numbers")?;
    let of_newest =
        column(rows, "percent_of_newest")?.as_primitive_opt::<Float64Type>().context("percents are no numbers")?;
    let row = |at: usize| Row {
        service: services.is_valid(at).then(|| services.value(at).to_owned()),
        path: paths.value(at).to_owned(),
        newest: newest.value(at).to_owned(),
        executions: counts.value(at) == "executions",
        is_new: builds.value(at) == 1 && of_newest.value(at) > 0.0,
    };
    Ok((0..rows.num_rows()).map(row).collect())
}

fn with_columns(rows: &RecordBatch, worth: &[Worth]) -> anyhow::Result<RecordBatch> {
    let numbers = |of: fn(&Worth) -> Option<f64>| {
        let rounded = worth.iter().map(|worth| of(worth).map(|percent| (100.0 * percent).round() / 100.0));
        Arc::new(rounded.collect::<Float64Array>()) as ArrayRef
    };
    let answers = worth.iter().map(|worth| worth.new_profile).collect::<StringArray>();
    let more: [(&str, DataType, ArrayRef); 4] = [
        ("percent_same_functions", DataType::Float64, numbers(|worth| worth.same_functions)),
        ("percent_same_code", DataType::Float64, numbers(|worth| worth.same_code)),
        ("percent_overlap", DataType::Float64, numbers(|worth| worth.overlap)),
        ("new_profile", DataType::Utf8, Arc::new(answers)),
    ];
    let (mut fields, mut columns) = (rows.schema().fields().to_vec(), rows.columns().to_vec());
    for (name, kind, column) in more {
        fields.push(Arc::new(Field::new(name, kind, true)));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

impl Row {
    fn name(&self) -> String {
        let service = self.service.as_deref().unwrap_or("what has no service");
        format!("{service} {} ({})", self.path, if self.executions { "executions" } else { "relative" })
    }

    async fn worth(
        &self,
        engine: &Engine,
        selection: &Selection,
        args: &WorthArgs,
        folder: &Path,
        notes: &mut BTreeSet<String>,
    ) -> anyhow::Result<Worth> {
        if self.is_new {
            return Ok(Worth::default());
        }
        let mut note = |text: &str| {
            notes.insert(format!("{}: {text}", self.name()));
        };
        let [older, newest] = self.flows(engine, selection).await?;
        if older.range_total() <= 0.0 {
            return Ok(Worth::default());
        }
        if newest.range_total() <= 0.0 {
            note("nothing of the newest build ran in these recordings");
            return Ok(UNKNOWN);
        }
        let files = [folder.join("older.flow"), folder.join("newest.flow")];
        for (flow, file) in [older, newest].iter().zip(&files) {
            write_flow(flow, file)?;
        }
        let report = folder.join("diff.json");
        let slices = files.each_ref().map(|file| file.as_path());
        let said = match make("diff", &slices, &["--format", "json"], &args.programs, &report) {
            Ok(said) => said,
            // What fits no code of one file is no reason to say nothing of the others.
            Err(error) if error.is::<HasFailed>() => {
                note(&format!("{error:#}"));
                return Ok(UNKNOWN);
            }
            Err(error) => return Err(error),
        };
        let report = BufReader::new(File::open(report)?);
        let report: Report = serde_json::from_reader(report).context("`hbbp diff` is of another version")?;
        let in_folder = format!("{}/", folder.display());
        // What is weaker in every slice says nothing of this one.
        let said = said.iter().chain(&report.degraded);
        said.filter(|line| !line.ends_with(OF_MERGED)).for_each(|line| note(&line.replace(&in_folder, "")));
        for (side, builds) in [(&report.before, "older builds"), (&report.after, "the newest build")] {
            if side.unread > 0.0 {
                note(&format!(
                    "{:.2} % of what ran of {builds} is in code that could not be read",
                    100.0 * side.unread
                ));
            }
        }
        Ok(of_report(&report, args.least))
    }

    /// What ran of older builds, and of the newest.
    async fn flows(&self, engine: &Engine, selection: &Selection) -> anyhow::Result<[Flow; 2]> {
        let only = format!("{} AND executions = {}", labelled("service", self.service.as_deref()), self.executions);
        let selection = Selection { only: Some(only), ..selection.clone() };
        let mut said = Vec::new();
        let Selected { of_parts, .. } = selected(engine, &selection, &mut said).await?;
        let (newest, older): (Builds, Builds) =
            self.builds(engine).await?.into_iter().partition(|(_, module)| *module == self.newest);
        let mut flows = [Flow::default(), Flow::default()];
        for (sum, builds) in flows.iter_mut().zip([older, newest]) {
            let wanted = Wanted::Builds(builds);
            let flow = sum_of(engine, (&selection, Slices::Together), &of_parts, wanted, &mut said).await?;
            // Some ranges begin where bursts did: such are no blocks of either build.
            *sum = Flow { seen: flow.seen.max(1.0), ..flow };
        }
        Ok(flows)
    }

    /// The builds of the file in the parts that are `selected`.
    async fn builds(&self, engine: &Engine) -> anyhow::Result<Builds> {
        let mut builds = Builds::new();
        let of_path = format!("SELECT of_part, of_module FROM ({BUILDS}) WHERE path = {}", literal(&self.path));
        for rows in engine.rows(&of_path).await? {
            let (parts, modules) = (texts(&rows, "of_part")?, texts(&rows, "of_module")?);
            let pairs = parts.iter().flatten().zip(modules.iter().flatten());
            builds.extend(pairs.map(|(part, module)| (part.to_owned(), module.to_owned())));
        }
        Ok(builds)
    }
}

/// What is read of what `hbbp diff` says: blocks and lines can be many.
#[derive(Debug, Deserialize)]
struct Report {
    before: Side,
    after: Side,
    degraded: Vec<String>,
    functions: Vec<Function>,
}

/// Shares of a side, 0 to 1.
#[derive(Debug, Deserialize)]
struct Side {
    unread: f64,
    same_code: f64,
}

/// Its share of each side, 0 to 1.
#[derive(Debug, Deserialize)]
struct Function {
    function: Option<String>,
    before: f64,
    after: f64,
}

/// What a comparison of `hbbp diff` says, of the part of each side that was read.
fn of_report(report: &Report, least: f64) -> Worth {
    // Code that is in no function with a name is called by its place, such as `[.text+0x1230]`: that says nothing of another build.
    let has_name = |of: &&Function| of.function.as_ref().is_some_and(|name| !name.starts_with('['));
    let named = || report.functions.iter().filter(has_name);
    let read = [named().map(|of| of.before).sum::<f64>(), named().map(|of| of.after).sum()];
    if read.iter().any(|read| *read < LEAST_READ) {
        return UNKNOWN;
    }
    let (mut same_functions, mut overlap) = (0.0, 0.0);
    for of in named() {
        let [before, after] = [of.before / read[0], of.after / read[1]];
        same_functions += if after > 0.0 { before } else { 0.0 };
        overlap += before.min(after);
    }
    // Code without a name can be the same, too.
    let same_code = (report.before.same_code / read[0]).min(1.0);
    let [same_functions, same_code, overlap] = [same_functions, same_code, overlap].map(|part| Some(100.0 * part));
    let new_profile = Some(if overlap < Some(least) { "yes" } else { "no" });
    Worth { same_functions, same_code, overlap, new_profile }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that was not read has no name, nor has code in no function.
    fn report(functions: &[(Option<&str>, f64, f64)]) -> Report {
        let function = |&(name, before, after): &(Option<&str>, f64, f64)| Function {
            function: name.map(str::to_owned),
            before,
            after,
        };
        let [before, after] = [0.3, 0.1].map(|same_code| Side { unread: 0.0, same_code });
        Report { before, after, degraded: Vec::new(), functions: functions.iter().map(function).collect() }
    }

    #[test]
    fn parts_are_of_what_was_read() {
        let functions = [
            (Some("same"), 0.3, 0.4),
            (Some("gone"), 0.3, 0.0),
            (Some("new"), 0.0, 0.6),
            (None, 0.3, 0.0),
            (Some("[.text+0x10]"), 0.1, 0.0),
        ];
        let worth = |least| of_report(&report(&functions), least);
        let close = |part: Option<f64>, expected: f64| (part.unwrap() - expected).abs() < 1e-9;
        let found = worth(40.0);
        assert!(
            close(found.same_functions, 50.0) && close(found.same_code, 50.0) && close(found.overlap, 40.0),
            "{found:?}"
        );
        assert_eq!([60.0, 30.0].map(|least| worth(least).new_profile), [Some("yes"), Some("no")]);
    }

    #[test]
    fn what_was_not_read_is_not_known() {
        let unread = [(Some("same"), 0.4, 1.0), (None, 0.6, 0.0)];
        let stripped = [(Some("same"), 1.0, 0.4), (Some("[.text+0x1230]"), 0.0, 0.6)];
        assert_eq!([&unread, &stripped].map(|functions| of_report(&report(functions), 80.0)), [UNKNOWN; 2]);
    }
}
