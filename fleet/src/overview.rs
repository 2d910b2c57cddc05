//! `hbbp-fleet top` and `stale`: where the instructions of a fleet go, and whether its builds are new.

use std::path::PathBuf;

use anyhow::{Context, bail};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;

use crate::engine::Engine;
use crate::query::{AnswerArgs, answer};
use crate::rows::column;
use crate::selection::{BUILDS, Selection, selected};
use crate::store::Store;

/// Say where the instructions go
///
/// Instructions are estimated by the length of what ran (4 bytes each), so that no binary is needed; `hbbp-fleet mix` counts them. Executions
/// and relative counts have shares of their own.
#[derive(clap::Args)]
pub struct TopArgs {
    /// Folder of the store
    store: PathBuf,

    #[command(flatten)]
    selection: Selection,

    /// What has a row, several with commas between them
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Service, By::Version])]
    by: Vec<By>,

    /// Rows to print; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// Say how much of what ran of each file was its newest build
///
/// The newest build of a file is the one that was recorded last in that service. Instructions are estimated as by `hbbp-fleet top`.
#[derive(clap::Args)]
pub struct StaleArgs {
    /// Folder of the store
    store: PathBuf,

    #[command(flatten)]
    selection: Selection,

    /// Rows to print; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// What has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// The service
    Service,
    /// Its version
    Version,
    /// The host
    Host,
    /// The day
    Day,
    /// The module
    Module,
}

impl By {
    /// The column of the table of the flow.
    fn name(self) -> &'static str {
        match self {
            By::Service => "service",
            By::Version => "version",
            By::Host => "host",
            By::Day => "day",
            By::Module => "module",
        }
    }
}

/// Instructions of a range, an estimate.
const INSTRUCTIONS: &str = "sum(CAST(count AS DOUBLE) * ((to_address - from_address) / 4 + 1))";

/// Prints where they go.
pub async fn top(args: &TopArgs) -> anyhow::Result<()> {
    let by = &args.by;
    if let Some(twice) = by.iter().enumerate().find_map(|(at, column)| by[..at].contains(column).then_some(column)) {
        bail!("--by has {} twice: name each once", twice.name());
    }
    let engine = begun(&args.store, &args.selection).await?;
    let names: Vec<&str> = by.iter().map(|by| by.name()).collect();
    let key = names.join(", ");
    let shown = key.replace("module", "path, module");
    let sql = format!(
        "WITH ran AS (SELECT {key}, executions, {INSTRUCTIONS} AS instructions FROM flow WHERE {} GROUP BY {key}, executions), \
         names AS (SELECT module AS named, min(path) AS path FROM modules WHERE part IN (SELECT part FROM selected) GROUP BY module) \
         SELECT {shown}, CASE WHEN executions THEN 'executions' ELSE 'relative' END AS counts, round(instructions) AS instructions, \
         round(100 * instructions / sum(instructions) OVER (PARTITION BY executions), 2) AS percent \
         FROM ran {} ORDER BY instructions DESC, {key} {}",
        ranges(&args.selection),
        if by.contains(&By::Module) { "JOIN names ON module = named" } else { "" },
        limit(args.top)
    );
    answer(&engine, &sql, &args.answer).await
}

/// Prints how new the builds are.
pub async fn stale(args: &StaleArgs) -> anyhow::Result<()> {
    let engine = begun(&args.store, &args.selection).await?;
    let sql = format!(
        "WITH ran AS (SELECT part, module, {INSTRUCTIONS} AS instructions FROM flow WHERE {} GROUP BY part, module), \
         parts AS (SELECT part AS whole, executions FROM recordings GROUP BY part, executions), \
         aged AS (SELECT service, path, module, newest, executions, sum(instructions) AS instructions FROM ran JOIN parts ON part = whole \
                  JOIN ({BUILDS}) ON part = of_part AND module = of_module GROUP BY service, path, module, newest, executions) \
         SELECT service, path, newest, count(*) AS builds, CASE WHEN executions THEN 'executions' ELSE 'relative' END AS counts, \
         round(sum(instructions)) AS instructions, \
         round(100 * sum(CASE WHEN module = newest THEN instructions ELSE 0 END) / sum(instructions), 2) AS percent_of_newest \
         FROM aged GROUP BY service, path, newest, executions ORDER BY instructions DESC, service, path {}",
        ranges(&args.selection),
        limit(args.top)
    );
    answer(&engine, &sql, &args.answer).await
}

/// Which rows of the flow are looked at, in SQL.
fn ranges(selection: &Selection) -> String {
    format!("kind = 'range' AND part IN (SELECT part FROM selected) AND {}", selection.of_flow())
}

fn limit(top: usize) -> String {
    if top == 0 { String::new() } else { format!("LIMIT {top}") }
}

/// Finds the recordings, and says how many of them have nothing that could be looked at.
async fn begun(store: &std::path::Path, selection: &Selection) -> anyhow::Result<Engine> {
    if selection.build.is_some() {
        bail!("--build is for reports: this one is about all builds");
    }
    let engine = Engine::of(&Store::open(store)?).await?;
    let mut notes = Vec::new();
    selected(&engine, selection, &mut notes).await?;
    let sampled =
        "SELECT count(*) AS parts FROM selected WHERE part NOT IN (SELECT part FROM flow WHERE kind = 'range')";
    for rows in engine.rows(sampled).await? {
        let parts = column(&rows, "parts")?.as_primitive_opt::<Int64Type>().context("no number")?;
        if let Some(parts) = parts.values().first().filter(|parts| **parts > 0) {
            notes.push(format!("{parts} parts have samples alone, and no branches: they are not in it"));
        }
    }
    notes.iter().for_each(|note| crate::output::say(note));
    Ok(engine)
}
