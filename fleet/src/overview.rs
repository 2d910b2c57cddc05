//! `hbbp-fleet top` and `stale`: where the instructions of a fleet go, and whether its builds are new.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;

use crate::cluster::ClusterArgs;
use crate::engine::Engine;
use crate::query::{AnswerArgs, answer};
use crate::rows::column;
use crate::selection::{BUILDS, Selected, Selection, selected};
use crate::store::Store;
use crate::worth::{COMPARED, WorthArgs, compare};

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

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Say how much of what ran of each file was its newest build
///
/// The newest build of a file is the one that was recorded last in that service. Instructions are estimated as by `hbbp-fleet top`. With
/// --compare, `hbbp` says what evidence of older builds is worth to it, and reads their binaries.
#[derive(clap::Args)]
#[command(mut_arg("binary", |files| files.requires("compare")), mut_arg("symfs", |folder| folder.requires("compare")))]
pub struct StaleArgs {
    /// Folder of the store
    store: PathBuf,

    #[command(flatten)]
    selection: Selection,

    /// Rows to print; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    #[command(flatten)]
    worth: WorthArgs,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
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

/// Bytes of ranges and four for each execution, so four times an estimate of instructions: a sum of decimals, which has no order. With six
/// digits after the point, sums of all that a store can hold are far from 38 digits; no range of code has more than 4 MB.
const BYTES: &str =
    "sum(CAST(count AS DECIMAL(32, 6)) * CAST(least(to_address - from_address + 4, 4000000) AS DECIMAL(7, 0)))";

/// Prints where they go.
pub async fn top(args: &TopArgs) -> anyhow::Result<()> {
    let by = &args.by;
    if let Some(twice) = by.iter().enumerate().find_map(|(at, column)| by[..at].contains(column).then_some(column)) {
        bail!("--by has {} twice: name each once", twice.name());
    }
    let (engine, of_parts) = begun(&args.store, &args.selection, &args.cluster).await?;
    let names: Vec<&str> = by.iter().map(|by| by.name()).collect();
    let key = names.join(", ");
    let shown = key.replace("module", "path, module");
    let sql = format!(
        "WITH ran AS (SELECT {key}, executions, {BYTES} AS bytes FROM flow WHERE {} GROUP BY {key}, executions), \
         names AS (SELECT module AS named, min(path) AS path FROM modules WHERE {of_parts} GROUP BY module) \
         SELECT {shown}, CASE WHEN executions THEN 'executions' ELSE 'relative' END AS counts, \
         round(CAST(bytes AS DOUBLE) / 4) AS instructions, \
         round(100 * CAST(bytes AS DOUBLE) / CAST(sum(bytes) OVER (PARTITION BY executions) AS DOUBLE), 2) AS percent \
         FROM ran {} ORDER BY instructions DESC, {key} {}",
        ranges(&args.selection, &of_parts),
        if by.contains(&By::Module) { "JOIN names ON module = named" } else { "" },
        limit(args.top)
    );
    answer(&engine, &sql, &args.answer).await
}

/// Of the rows of `stale`.
const ORDER: &str = "ORDER BY instructions DESC, service, path, counts";

/// Prints how new the builds are.
pub async fn stale(args: &StaleArgs) -> anyhow::Result<()> {
    let (engine, of_parts) = begun(&args.store, &args.selection, &args.cluster).await?;
    let sql = format!(
        "WITH ran AS (SELECT part, module, {BYTES} AS bytes FROM flow WHERE {} GROUP BY part, module), \
         parts AS (SELECT part AS whole, executions FROM recordings GROUP BY part, executions), \
         aged AS (SELECT service, path, module, newest, executions, sum(bytes) AS bytes FROM ran JOIN parts ON part = whole \
                  JOIN ({BUILDS}) ON part = of_part AND module = of_module GROUP BY service, path, module, newest, executions) \
         SELECT service, path, newest, count(*) AS builds, CASE WHEN executions THEN 'executions' ELSE 'relative' END AS counts, \
         round(CAST(sum(bytes) AS DOUBLE) / 4) AS instructions, \
         round(100 * CAST(sum(CASE WHEN module = newest THEN bytes ELSE 0 END) AS DOUBLE) / CAST(sum(bytes) AS DOUBLE), 2) \
         AS percent_of_newest \
         FROM aged GROUP BY service, path, newest, executions {ORDER} {}",
        ranges(&args.selection, &of_parts),
        limit(args.top)
    );
    if !args.worth.compare {
        return answer(&engine, &sql, &args.answer).await;
    }
    compare(&engine, &args.selection, &sql, &args.worth).await?;
    answer(&engine, &format!("SELECT * FROM {COMPARED} {ORDER}"), &args.answer).await
}

/// Which rows of the flow are looked at, in SQL.
fn ranges(selection: &Selection, of_parts: &str) -> String {
    format!("kind = 'range' AND {of_parts} AND {}", selection.of_flow())
}

fn limit(top: usize) -> String {
    if top == 0 { String::new() } else { format!("LIMIT {top}") }
}

/// Finds the recordings, and says how many of them have nothing that could be looked at. That a row is of them, in SQL.
async fn begun(store: &Path, selection: &Selection, cluster: &ClusterArgs) -> anyhow::Result<(Engine, String)> {
    if selection.build.is_some() {
        bail!("--build is for reports: this one is about all builds");
    }
    let engine = Engine::of(&Store::open(store)?).await?.on(cluster.cluster()?);
    let mut notes = Vec::new();
    let Selected { of_parts, .. } = selected(&engine, selection, &mut notes).await?;
    let sampled =
        "SELECT count(*) AS parts FROM selected WHERE part NOT IN (SELECT part FROM flow WHERE kind = 'range')";
    for rows in engine.rows(sampled).await? {
        let parts = column(&rows, "parts")?.as_primitive_opt::<Int64Type>().context("no number")?;
        if let Some(parts) = parts.values().first().filter(|parts| **parts > 0) {
            notes.push(format!("{parts} parts have samples alone, and no branches: they are not in it"));
        }
    }
    notes.iter().for_each(|note| crate::output::say(note));
    Ok((engine, of_parts))
}
