//! A slice of a store, and what ran in it.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use analyzer::flow::{Flow, FlowBuilder, MOST_COUNT, Merge};
use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Date32Type, Int64Type, UInt64Type};
use futures::StreamExt;

use crate::engine::{Engine, literal};
use crate::rows::{Places, add_flow, column, count_in, flags, texts};

/// Which recordings, and what of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
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

    /// Of these recordings, those of which this holds: in SQL, about labels and `executions`
    #[arg(skip)]
    pub only: Option<String>,
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
            only: other.only.or(mine.only),
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
        // Names of files have so many bytes.
        let title = &title[..title.floor_char_boundary(100)];
        let title: String = title.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        if title.is_empty() { "fleet".to_owned() } else { title }
    }

    /// What rows of the recordings must have, in SQL.
    pub fn of_recordings(&self) -> String {
        let moment = |sign: &str, of: &Option<Moment>| {
            let nanoseconds = of.as_ref()?.time.timestamp_nanos_opt()?;
            Some(format!("CAST(time AS BIGINT) {sign} {nanoseconds}"))
        };
        self.labels_and([moment(">=", &self.since), moment("<", &self.until)])
    }

    /// What all rows of the flow have that are of such recordings, in SQL: whole files are left out by it.
    pub fn of_flow(&self) -> String {
        let day =
            |sign: &str, of: &Option<Moment>| Some(format!("day {sign} DATE '{}'", of.as_ref()?.time.date_naive()));
        self.labels_and([day(">=", &self.since), day("<=", &self.until)])
    }

    /// The labels and these conditions, in SQL.
    fn labels_and(&self, others: [Option<String>; 2]) -> String {
        let labels = [("service", &self.service), ("version", &self.version), ("host", &self.host)]
            .map(|(name, label)| Some(format!("{name} = {}", literal(label.as_ref()?))));
        let all = labels.into_iter().chain(others).chain([self.only.clone()]).flatten();
        all.fold("true".to_owned(), |condition, next| format!("{condition} AND {next}"))
    }
}

/// Whether a sum says what slices of it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slices {
    /// It does not: it is what `hbbp merge` makes.
    Together,
    /// It does, so that reports have their ±.
    Apart,
}

/// Which of 16 slices a part is in, in SQL: the last digit of its name, which is a hash of its content.
const SLICE: &str = "right(part, 1)";

/// The sum of all that ran in a slice, as `hbbp merge` would have made it of the same recordings, and what is to be said of it.
///
/// # Errors
/// There is nothing in it, it is part of what was put together, or the store cannot be read.
pub async fn sum(engine: &Engine, selection: &Selection, with: Slices) -> anyhow::Result<(Flow, Vec<String>)> {
    let mut notes = Vec::new();
    let Selected { merge, of_parts } = selected(engine, selection, &mut notes).await?;
    let wanted = match &selection.build {
        None => Wanted::All(merge),
        Some(build) => Wanted::Builds(builds(engine, build, &mut notes).await?),
    };
    Ok((sum_of(engine, (selection, with), &of_parts, wanted, &mut notes).await?, notes))
}

/// Parts, each with a module that ran in it and has a build id.
pub type Builds = Vec<(String, String)>;

/// What is added up of the recordings of a slice.
pub enum Wanted {
    /// All that ran, with what is known of the recordings as a whole.
    All(Merge),
    /// What ran in these builds.
    Builds(Builds),
}

/// The sum of what is wanted of these parts.
///
/// # Errors
/// The store cannot be read, or no reader takes so large a sum.
pub async fn sum_of(
    engine: &Engine,
    (selection, with): (&Selection, Slices),
    of_parts: &str,
    wanted: Wanted,
    notes: &mut Vec<String>,
) -> anyhow::Result<Flow> {
    let is_apart = with == Slices::Apart && !is_exact(engine, &selection.of_recordings()).await?;
    let (mut merge, of_build) = match wanted {
        Wanted::All(merge) => (merge, "true".to_owned()),
        Wanted::Builds(builds) => {
            let (parts, modules): (Vec<_>, Vec<_>) = builds.into_iter().unzip();
            // Who reads the files knows nothing of the table.
            let of_modules = engine.among("module", &BTreeSet::from_iter(&modules));
            let of_modules = of_modules.unwrap_or_else(|| "true".to_owned());
            let [parts, modules] = [parts, modules].map(|texts| Arc::new(StringArray::from(texts)) as _);
            engine.name("builds", RecordBatch::try_from_iter([("of_part", parts), ("of_module", modules)])?)?;
            // Of the others, nothing ran in it. What a recording has in all of its modules, or in none, is not told apart by build.
            let condition = format!("{} AND part IN (SELECT of_part FROM builds)", selection.of_recordings());
            let (wholes, [executions, relative]) = wholes(engine, &condition).await?;
            let merge = Merge { builder: FlowBuilder::default(), seen_is_known: false, ..wholes };
            notes.push(format!(
                "{} recordings have it; what is in no module is not counted, for it is of no build",
                executions + relative
            ));
            (
                merge,
                format!("{of_modules} AND EXISTS (SELECT 1 FROM builds WHERE part = of_part AND module = of_module)"),
            )
        }
    };
    let mut places = Places::default();
    let modules = format!("SELECT DISTINCT module, read, build_id, path FROM modules WHERE {of_parts}");
    for rows in engine.rows(&modules).await? {
        places.add(&mut merge.builder, &rows)?;
    }
    let key = "module, read, kind, from_address, to_address, target, target_read";
    let [slice, by_slice] =
        if is_apart { [format!(", {SLICE} AS slice"), format!(", {SLICE}")] } else { Default::default() };
    let flow = format!(
        "SELECT {key}{slice}, sum(count) AS count, sum(mispredicted) AS mispredicted FROM flow \
         WHERE {of_parts} AND {of_build} AND {} GROUP BY {key}{by_slice}",
        selection.of_flow()
    );
    let mut answer = engine.ask(&flow).await?;
    while let Some(rows) = answer.next().await {
        add_flow(&mut merge.builder, &places, &rows?)?;
    }
    let flow = merge.finish();
    flow.check_counts().context("the sum is larger than any reader of profiles takes")?;
    Ok(flow)
}

/// The recordings of a slice.
pub struct Selected {
    /// What is known of each as a whole, added up.
    merge: Merge,
    /// That a row is of one of their parts, in SQL.
    pub of_parts: String,
}

/// Finds the recordings, and names their parts `selected`.
///
/// # Errors
/// There is none, a part is wanted in part, or the store cannot be read.
pub async fn selected(engine: &Engine, selection: &Selection, notes: &mut Vec<String>) -> anyhow::Result<Selected> {
    let condition = selection.of_recordings();
    let check = || async {
        // A sum would have a recording twice that is there twice.
        engine.ids().await?;
        check_counts(engine).await
    };
    engine.is_checked.get_or_try_init(check).await?;
    let (merge, [executions, relative]) = wholes(engine, &condition).await?;
    let recordings = executions + relative;
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
    let of_parts = engine.among("part", &BTreeSet::from_iter(&names));
    let of_parts = of_parts.unwrap_or_else(|| "part IN (SELECT part FROM selected)".to_owned());
    engine.name("selected", RecordBatch::try_from_iter([("part", Arc::new(StringArray::from(names)) as _)])?)?;
    notes.push(format!("a slice of {recordings} recordings"));
    if executions > 0 && relative > 0 {
        notes.push(format!(
            "{executions} of them count executions, {relative} only what is proportional to them: the sum has no unit"
        ));
    }
    Ok(Selected { merge, of_parts })
}

/// Whether all recordings are exact counts, which have no ±, however they differ.
async fn is_exact(engine: &Engine, condition: &str) -> anyhow::Result<bool> {
    let sampled = format!("SELECT id FROM recordings WHERE {condition} AND source <> 'exact' LIMIT 1");
    Ok(engine.rows(&sampled).await?.iter().all(|rows| rows.num_rows() == 0))
}

/// What is known of each recording as a whole, added up, and how many count executions, and how many do not.
async fn wholes(engine: &Engine, condition: &str) -> anyhow::Result<(Merge, [u64; 2])> {
    let mut merge = Merge::default();
    let (mut executions, mut relative) = (0, 0);
    let wholes = format!(
        "SELECT executions, seen_is_known, inputs, seen, left_out_streams, left_out_branches, left_out_samples \
         FROM recordings WHERE {condition}"
    );
    let mut answer = engine.ask(&wholes).await?;
    while let Some(rows) = answer.next().await {
        let rows = rows?;
        let inputs = column(&rows, "inputs")?.as_primitive_opt::<UInt64Type>().context("inputs are no numbers")?;
        let (in_executions, seen_is_known) = (flags(&rows, "executions")?, flags(&rows, "seen_is_known")?);
        for row in 0..rows.num_rows() {
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
    Ok((merge, [executions, relative]))
}

/// Refuses a store with counts that nobody can have written who counted.
///
/// # Errors
/// There is one, or the store cannot be read.
pub async fn check_counts(engine: &Engine) -> anyhow::Result<()> {
    let columns = [
        ("flow", &["count", "mispredicted"][..]),
        ("recordings", &["seen", "left_out_streams", "left_out_branches", "left_out_samples"]),
    ];
    for (table, columns) in columns {
        // What files say of their least and largest counts is enough, as long as all is well.
        let odd = |name: &&str| format!("{name} < 0 OR {name} > CAST('{MOST_COUNT}' AS DECIMAL(38, 9))");
        let odd = columns.iter().map(odd).collect::<Vec<_>>().join(" OR ");
        for rows in engine.rows(&format!("SELECT day, part FROM {table} WHERE {odd} LIMIT 1")).await? {
            if rows.num_rows() > 0 {
                let (day, part) = (column(&rows, "day")?.as_primitive::<Date32Type>(), texts(&rows, "part")?);
                let day = day.value_as_date(0).map(|day| day.to_string()).unwrap_or_default();
                bail!(
                    "the table {table} of day={day} has a count below 0 or above {MOST_COUNT:e} in the part {}: its file is damaged; \
                     remove the batch, and ingest its recordings again",
                    part.value(0)
                );
            }
        }
    }
    Ok(())
}

/// A row for each module with a build id of each part of the slice: `of_part`, `of_module`, the `service` and `path` that it ran as, and the
/// `newest` build of that service and path, which is the one that was recorded last.
pub const BUILDS: &str = "\
    SELECT of_part, of_module, service, path, \
           first_value(of_module) OVER (PARTITION BY service, path ORDER BY seen DESC, of_module DESC) AS newest \
    FROM (SELECT of_part, of_module, service, path, max(time) OVER (PARTITION BY service, path, of_module) AS seen \
          FROM (SELECT part AS of_part, module AS of_module, min(path) AS path FROM modules \
                WHERE build_id IS NOT NULL AND part IN (SELECT part FROM selected) GROUP BY part, module) \
          JOIN (SELECT part AS timed, service, max(time) AS time FROM recordings GROUP BY part, service) ON of_part = timed)";

/// The parts and modules that are of a build.
async fn builds(engine: &Engine, build: &str, notes: &mut Vec<String>) -> anyhow::Result<Builds> {
    let wanted = build.to_ascii_lowercase();
    let mut builds = BTreeSet::new();
    for rows in engine.rows(BUILDS).await? {
        let (parts, modules, newest) = (texts(&rows, "of_part")?, texts(&rows, "of_module")?, texts(&rows, "newest")?);
        for ((part, module), newest) in parts.iter().flatten().zip(modules.iter().flatten()).zip(newest) {
            if if build == LATEST { newest == Some(module) } else { module.starts_with(&wanted) } {
                builds.insert((part.to_owned(), module.to_owned()));
            }
        }
    }
    let modules: BTreeSet<&str> = builds.iter().map(|(_, module)| module.as_str()).collect();
    let modules: Vec<&str> = modules.into_iter().collect();
    match modules.len() {
        0 if build == LATEST => bail!("no module of that slice has a build id"),
        0 => bail!("no module of that slice has a build id that begins with {build}"),
        1 => notes.push(format!("only what ran in the build {}", modules[0])),
        _ if build == LATEST => {
            notes.push("only what ran in the newest build of each file, of each service".to_owned());
        }
        several => {
            bail!("{several} modules of that slice have build ids that begin with {build}: {}", modules.join(", "))
        }
    }
    Ok(builds.into_iter().collect())
}

const LATEST: &str = "latest";
