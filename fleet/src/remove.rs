//! `hbbp-fleet remove`: recordings go, and with them what they are of all sums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, bail};
use chrono::NaiveDate;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Date32Type;

use crate::engine::{Engine, MOST_MEMORY, check, literal};
use crate::rewrite::{Group, rewrite};
use crate::rows::{column, flags, texts};
use crate::store::{Batch, Store};
use crate::tables::Table;

/// Remove recordings from a store
///
/// Those that all of the options name. Sums are then as if they had never been put in; put in again, they count again. Of recordings that
/// `compact` put together, all go or none.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the store
    store: PathBuf,

    /// Those with these ids (the first 8 digits are enough), with commas between them
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = id)]
    id: Vec<String>,

    /// Those of this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Those of this version
    #[arg(long, value_name = "NAME")]
    version: Option<String>,

    /// Those of this host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Those of days before this one, such as 2026-11-26
    #[arg(long, value_name = "DAY")]
    before: Option<NaiveDate>,

    /// Say how many they are, and remove none
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  hbbp-fleet remove profiles --before 2026-01-01
  hbbp-fleet remove profiles --service web --host web3 --dry-run
  hbbp-fleet remove profiles --id 5f9c3b1a";

/// Digits of an id that tell it from others.
const FEWEST_DIGITS: usize = 8;

fn id(text: &str) -> Result<String, String> {
    let is_id = text.len() >= FEWEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase()).ok_or(format!("expected {FEWEST_DIGITS} or more hexadecimal digits"))
}

impl Args {
    /// What all that go have in common, in SQL. `None`: nothing was said.
    fn condition(&self) -> Option<String> {
        let labels = [("service", &self.service), ("version", &self.version), ("host", &self.host)];
        let labels = labels.map(|(name, label)| Some(format!("{name} = {}", literal(label.as_ref()?))));
        let before = self.before.map(|day| format!("day < DATE '{day}'"));
        let ids = self.id.iter().map(|id| format!("id LIKE '{id}%'")).collect::<Vec<_>>().join(" OR ");
        let ids = (!ids.is_empty()).then(|| format!("({ids})"));
        let all: Vec<String> = labels.into_iter().flatten().chain(before).chain(ids).collect();
        (!all.is_empty()).then(|| all.join(" AND "))
    }
}

/// The parts of a day: how many recordings of each go, and how many it has.
type Parts = BTreeMap<String, (usize, usize)>;

/// Rewrites the days that have some of them, without them.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let Some(condition) = args.condition() else {
        bail!("say which recordings: --id, --service, --version, --host, --before");
    };
    let store = Store::open(&args.store)?;
    let writing = store.write()?;
    let engine = Engine::of(&store).await?;
    for id in &args.id {
        let found = engine.rows(&format!("SELECT DISTINCT id FROM recordings WHERE id LIKE '{id}%'")).await?;
        match found.iter().map(|rows| rows.num_rows()).sum() {
            0 => bail!("no recording has an id that begins with {id}"),
            1 => {}
            several => bail!("{several} recordings have ids that begin with {id}: give more digits"),
        }
    }
    let days = parts_by_day(&engine, &condition).await?;
    drop(engine);
    let all: usize = days.values().flat_map(Parts::values).map(|(going, _)| going).sum();
    if all == 0 {
        bail!(
            "no recording is so: `hbbp-fleet query STORE \"SELECT id, service, version, host, day FROM recordings\"` says which there are"
        );
    }
    for (day, parts) in &days {
        if let Some((part, (going, of))) = parts.iter().find(|(_, (going, of))| *going > 0 && going < of) {
            bail!(
                "{going} of the {of} recordings that `compact` put together as {part} on {day} would go: they cannot be told apart any more; \
                 name all of them (SELECT * FROM recordings WHERE part = '{part}')"
            );
        }
    }
    let of_days = days.values().filter(|parts| parts.values().any(|(going, _)| *going > 0)).count();
    if args.dry_run {
        eprintln!("hbbp-fleet: {all} recordings of {of_days} days would be removed");
        return Ok(());
    }
    // What was replaced before goes before another batch replaces that one, as in `compact`.
    store.clean(&writing, true)?;
    let mut batches: BTreeMap<NaiveDate, Vec<Batch>> = BTreeMap::new();
    for batch in store.batches()? {
        batches.entry(batch.day).or_default().push(batch);
    }
    for (day, parts) in days {
        if parts.values().all(|(going, _)| *going == 0) {
            continue;
        }
        let batches = batches.remove(&day).unwrap_or_default();
        check(&store, &batches, &Table::ALL)?;
        let engine = Engine::of_batches(&store, store.read(), batches.clone(), MOST_MEMORY)?;
        let hosts = hosts(&engine).await?;
        let stays = |(part, (going, _)): (String, (usize, usize))| {
            let group = Group { host: hosts.get(&part).cloned().flatten(), part: part.clone() };
            (going == 0).then_some((part, group))
        };
        let groups = parts.into_iter().filter_map(stays).collect();
        rewrite(&store, &engine, day, &batches, &groups).await.with_context(|| format!("day={day} stays as it is"))?;
    }
    store.clean(&writing, false)?;
    eprintln!("hbbp-fleet: {all} recordings of {of_days} days removed");
    Ok(())
}

async fn parts_by_day(engine: &Engine, condition: &str) -> anyhow::Result<BTreeMap<NaiveDate, Parts>> {
    let mut days: BTreeMap<NaiveDate, Parts> = BTreeMap::new();
    let question = format!("SELECT day, part, coalesce({condition}, false) AS going FROM recordings");
    for rows in engine.rows(&question).await? {
        let (parts, going) = (texts(&rows, "part")?, flags(&rows, "going")?);
        let day = column(&rows, "day")?.as_primitive_opt::<Date32Type>().context("days are no dates")?;
        for row in 0..rows.num_rows() {
            let day = day.value_as_date(row).context("a day is no date")?;
            let counts = days.entry(day).or_default().entry(parts.value(row).to_owned()).or_default();
            counts.0 += usize::from(going.value(row));
            counts.1 += 1;
        }
    }
    Ok(days)
}

/// The host of each part, if it is one: as its flow has it.
async fn hosts(engine: &Engine) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let (mut hosts, mut several) = (BTreeMap::new(), BTreeSet::new());
    for rows in engine.rows("SELECT part, host FROM recordings GROUP BY part, host").await? {
        let (parts, found) = (texts(&rows, "part")?, texts(&rows, "host")?);
        for (part, host) in parts.iter().flatten().zip(found) {
            if hosts.insert(part.to_owned(), host.map(str::to_owned)).is_some() {
                several.insert(part.to_owned());
            }
        }
    }
    several.into_iter().for_each(|part| {
        hosts.insert(part, None);
    });
    Ok(hosts)
}
