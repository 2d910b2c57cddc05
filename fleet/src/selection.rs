//! A slice of a store, and what ran in it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use analyzer::flow::{Flow, Merge};
use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Int64Type, TimestampNanosecondType, UInt64Type};
use futures::StreamExt;

use crate::engine::{Engine, literal};
use crate::rows::{Places, add_flow, column, count_in, flags, texts};

/// Which recordings, and what of them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Recordings of this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,

    /// Recordings of this version
    #[arg(long, value_name = "NAME")]
    pub version: Option<String>,

    /// Recordings of this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,

    /// Recordings from then on: a time (2026-11-26T12:00:00Z), a day (2026-11-26), or how long ago (90m, 12h, 7d, 4w)
    #[arg(long, value_name = "TIME")]
    pub since: Option<Moment>,

    /// Recordings before then
    #[arg(long, value_name = "TIME")]
    pub until: Option<Moment>,

    /// Only what ran in the module with this build id (its first digits are enough), or with `latest` in the newest build of each file
    #[arg(long, value_name = "ID|latest")]
    pub build: Option<String>,
}

/// A moment, as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    text: String,
    time: DateTime<Utc>,
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let day = || Some(text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?.and_utc());
        let time = text.parse().ok().or_else(day).or_else(|| Utc::now().checked_sub_signed(duration(text)?));
        let time = time.filter(|time: &DateTime<Utc>| time.timestamp_nanos_opt().is_some());
        let time = time
            .ok_or("expected a time such as 2026-11-26T12:00:00Z or 2026-11-26, or 90m, 12h, 7d, 4w for so long ago")?;
        Ok(Moment { text: text.to_owned(), time })
    }
}

/// So many minutes, hours, days or weeks.
fn duration(text: &str) -> Option<TimeDelta> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number = number.parse::<u32>().ok()?;
    let minutes = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 60 * 24,
        "w" => 60 * 24 * 7,
        _ => return None,
    };
    TimeDelta::try_minutes(i64::from(number) * minutes)
}

impl Selection {
    /// The same, but for what another one says.
    pub fn overridden_by(&self, other: &Selection) -> Selection {
        let (mine, other) = (self.clone(), other.clone());
        Selection {
            service: other.service.or(mine.service),
            version: other.version.or(mine.version),
            host: other.host.or(mine.host),
            since: other.since.or(mine.since),
            until: other.until.or(mine.until),
            build: other.build.or(mine.build),
        }
    }

    /// A few words that say what it is: the name of the file that reports are made of.
    pub fn title(&self) -> String {
        let moment = |of: &Option<Moment>| of.as_ref().map(|moment| moment.text.clone());
        let named = |what: &str, text: Option<String>| text.map(|text| format!("{what}-{text}"));
        let words = [
            self.service.clone(),
            self.version.clone(),
            self.host.clone(),
            named("since", moment(&self.since)),
            named("until", moment(&self.until)),
            named("build", self.build.clone()),
        ];
        let title = words.into_iter().flatten().collect::<Vec<_>>().join("-");
        let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let title: String = title.chars().take(100).map(|c| if is_plain(c) { c } else { '_' }).collect();
        if title.is_empty() { "fleet".to_owned() } else { title }
    }

    /// What rows of the recordings must have, in SQL.
    fn of_recordings(&self) -> String {
        let moment = |sign: &str, of: &Option<Moment>| {
            let nanoseconds = of.as_ref()?.time.timestamp_nanos_opt()?;
            Some(format!("CAST(time AS BIGINT) {sign} {nanoseconds}"))
        };
        let all = self
            .labels()
            .into_iter()
            .flatten()
            .chain([moment(">=", &self.since), moment("<", &self.until)].into_iter().flatten());
        all.fold("true".to_owned(), |condition, next| format!("{condition} AND {next}"))
    }

    /// What all rows of the flow have that are of such recordings, in SQL: whole files are left out by it.
    pub fn of_flow(&self) -> String {
        let day =
            |sign: &str, of: &Option<Moment>| Some(format!("day {sign} DATE '{}'", of.as_ref()?.time.date_naive()));
        let all = self
            .labels()
            .into_iter()
            .flatten()
            .chain([day(">=", &self.since), day("<=", &self.until)].into_iter().flatten());
        all.fold("true".to_owned(), |condition, next| format!("{condition} AND {next}"))
    }

    fn labels(&self) -> [Option<String>; 3] {
        [("service", &self.service), ("version", &self.version), ("host", &self.host)]
            .map(|(name, label)| Some(format!("{name} = {}", literal(label.as_ref()?))))
    }
}

/// The sum of all that ran in a slice, as `hbbp merge` would have made it of the same recordings, and what is to be said of it.
///
/// # Errors
/// There is nothing in it, it is part of what was put together, or the store cannot be read.
pub async fn sum(engine: &Engine, selection: &Selection) -> anyhow::Result<(Flow, Vec<String>)> {
    let mut notes = Vec::new();
    let mut merge = selected(engine, selection, &mut notes).await?;
    let mut places = Places::default();
    let of_parts = "part IN (SELECT part FROM selected)";
    let modules = format!("SELECT DISTINCT module, read, build_id, path FROM modules WHERE {of_parts}");
    for rows in engine.rows(&modules).await? {
        places.add(&mut merge.builder, &rows)?;
    }
    let of_build = match &selection.build {
        None => "true",
        Some(build) => {
            let builds = builds(engine, build, &mut notes).await?;
            engine
                .name("builds", RecordBatch::try_from_iter([("module", Arc::new(StringArray::from(builds)) as _)])?)?;
            "module IN (SELECT module FROM builds)"
        }
    };
    let key = "module, read, kind, from_address, to_address, target, target_read";
    let flow = format!(
        "SELECT {key}, sum(count) AS count, sum(mispredicted) AS mispredicted FROM flow \
         WHERE {of_parts} AND {of_build} AND {} GROUP BY {key}",
        selection.of_flow()
    );
    let mut answer = engine.ask(&flow).await?.execute_stream().await?;
    while let Some(rows) = answer.next().await {
        add_flow(&mut merge.builder, &places, &rows?)?;
    }
    let flow = merge.finish();
    flow.check_counts().context("the sum is larger than any reader of profiles takes")?;
    Ok((flow, notes))
}

/// Finds the recordings: names their parts `selected`, and adds up what is known of each as a whole.
///
/// # Errors
/// There is none, a part is wanted in part, or the store cannot be read.
pub async fn selected(engine: &Engine, selection: &Selection, notes: &mut Vec<String>) -> anyhow::Result<Merge> {
    let condition = selection.of_recordings();
    let (mut merge, mut recordings) = (Merge::default(), 0_u64);
    let (mut executions, mut relative) = (0_u64, 0_u64);
    let wholes = format!(
        "SELECT executions, seen_is_known, inputs, seen, left_out_streams, left_out_branches, left_out_samples \
         FROM recordings WHERE {condition}"
    );
    let mut answer = engine.ask(&wholes).await?.execute_stream().await?;
    while let Some(rows) = answer.next().await {
        let rows = rows?;
        let inputs = column(&rows, "inputs")?.as_primitive_opt::<UInt64Type>().context("inputs are no numbers")?;
        let (in_executions, seen_is_known) = (flags(&rows, "executions")?, flags(&rows, "seen_is_known")?);
        for row in 0..rows.num_rows() {
            recordings += 1;
            *(if in_executions.value(row) { &mut executions } else { &mut relative }) += 1;
            merge.executions &= in_executions.value(row);
            merge.seen_is_known &= seen_is_known.value(row);
            merge.inputs = merge.inputs.saturating_add(inputs.value(row));
            merge.builder.seen += count_in(column(&rows, "seen")?, row)?;
            let left_out = &mut merge.builder.left_out;
            left_out.streams += count_in(column(&rows, "left_out_streams")?, row)?;
            left_out.branches += count_in(column(&rows, "left_out_branches")?, row)?;
            left_out.samples += count_in(column(&rows, "left_out_samples")?, row)?;
        }
    }
    if recordings == 0 {
        bail!(
            "no recording is of that slice: `hbbp-fleet query STORE \"SELECT service, version, host, min(time), max(time) FROM recordings GROUP BY 1, 2, 3\"` says which there are"
        );
    }
    let parts = format!(
        "SELECT part, count(*) AS recordings, count(*) FILTER (WHERE {condition}) AS selected FROM recordings \
         GROUP BY part HAVING count(*) FILTER (WHERE {condition}) > 0"
    );
    let mut names = Vec::new();
    for rows in engine.rows(&parts).await? {
        let number = |name| {
            let numbers = column(&rows, name)?.as_primitive_opt::<Int64Type>().context("counts of rows are no numbers");
            numbers.cloned()
        };
        let (of, wanted) = (number("recordings")?, number("selected")?);
        for (row, part) in texts(&rows, "part")?.iter().flatten().enumerate() {
            if wanted.value(row) < of.value(row) {
                bail!(
                    "{} of the {} recordings that `compact` put together as {part} are of that slice: they cannot be told apart any more; \
                     ask for a slice that has all of them (SELECT * FROM recordings WHERE part = '{part}')",
                    wanted.value(row),
                    of.value(row)
                );
            }
            names.push(part.to_owned());
        }
    }
    engine.name("selected", RecordBatch::try_from_iter([("part", Arc::new(StringArray::from(names)) as _)])?)?;
    notes.push(format!("a slice of {recordings} recordings"));
    if executions > 0 && relative > 0 {
        notes.push(format!(
            "{executions} of them count executions, {relative} only what is proportional to them: the sum has no unit"
        ));
    }
    Ok(merge)
}

/// The modules that are of a build.
async fn builds(engine: &Engine, build: &str, notes: &mut Vec<String>) -> anyhow::Result<Vec<String>> {
    let newest = "SELECT path, module, max(time) AS time FROM modules JOIN \
                  (SELECT part AS part_of, max(time) AS time FROM recordings GROUP BY part) ON part = part_of \
                  WHERE part IN (SELECT part FROM selected) AND build_id IS NOT NULL GROUP BY path, module";
    let mut newest_of: BTreeMap<String, (i64, String)> = BTreeMap::new();
    let mut builds = Vec::new();
    for rows in engine.rows(newest).await? {
        let times = column(&rows, "time")?.as_primitive_opt::<TimestampNanosecondType>().context("no times")?;
        for (row, (path, module)) in texts(&rows, "path")?.iter().zip(texts(&rows, "module")?).enumerate() {
            let (Some(path), Some(module)) = (path, module) else { continue };
            if build != LATEST {
                builds.extend(module.starts_with(&build.to_ascii_lowercase()).then(|| module.to_owned()));
                continue;
            }
            let newer = (times.value(row), module.to_owned());
            let known = newest_of.entry(path.to_owned()).or_insert_with(|| newer.clone());
            if newer > *known {
                *known = newer;
            }
        }
    }
    builds.extend(newest_of.into_values().map(|(_, module)| module));
    builds.sort();
    builds.dedup();
    match builds.len() {
        0 => bail!("no module of that slice has a build id that begins with {build}"),
        1 => notes.push(format!("only what ran in the build {}", builds[0])),
        _ if build == LATEST => notes.push("only what ran in the newest build of each file".to_owned()),
        several => {
            bail!("{several} modules of that slice have build ids that begin with {build}: {}", builds.join(", "))
        }
    }
    Ok(builds)
}

const LATEST: &str = "latest";
