//! A recording that comes in: what it has, with the labels that were given.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use analyzer::BinarySearch;
use analyzer::flow::{ExactCount, MOST_COUNT, Merge};
use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt64Array,
};

use super::Args;
use super::incoming::Local;
use crate::evidence::{self, Analyzing, Content, Evidence, Found};
use crate::rows::{self, Labels};
use crate::tables::Table;

/// Clocks of hosts differ by less.
const AHEAD: Duration = Duration::from_secs(3600);

/// A recording that was read.
pub struct Ingested {
    /// What tells its content from all others.
    pub id: String,
    file: String,
    time: SystemTime,
    time_is_of_file: bool,
    source: &'static str,
    weight: f64,
    cpu: Option<String>,
    command: Option<String>,
    /// What is weaker in it than it could be, a sentence on each line.
    pub weaker: Option<String>,
    /// What is said of it.
    pub labels: Labels,
    merge: Merge,
    /// Its rows of the table of modules.
    pub modules: RecordBatch,
    /// Its rows of the table of the flow.
    pub flow: RecordBatch,
}

/// What a file brings that is not known.
#[derive(Default)]
pub struct Arrived {
    /// A recording; of profiles of OpenTelemetry, one for each service on each host.
    pub recordings: Vec<Ingested>,
    /// Why others of them cannot come.
    pub failed: Vec<anyhow::Error>,
    /// What else is to be said of the file.
    pub note: Option<String>,
}

impl Arrived {
    /// What a file has that is not known.
    ///
    /// # Errors
    /// It cannot be read, changed meanwhile, or has nothing that could be counted.
    pub fn of(
        file: &Local,
        (args, search): (&Args, &BinarySearch),
        known: &HashSet<String>,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let name = || file.name.clone();
        let before = evidence::state_of(&file.path)?;
        let evidence = Evidence::open(&file.path).with_context(name)?;
        let mut arrived = Arrived::default();
        let mut take = |Content { id, part, found }| {
            let part = part.map_or_else(name, |part| format!("{}, {part}", file.name));
            match found.and_then(|found| Ingested::of(file, id, found, args)).context(part) {
                Ok(ingested) => arrived.recordings.push(ingested),
                Err(why) => arrived.failed.push(why),
            }
        };
        let note =
            evidence.read(known, Analyzing { search, damaged: args.damaged, threads }, &mut take).with_context(name)?;
        if evidence::state_of(&file.path)? != before {
            bail!("{} changed while it was read: give it again when it is complete", file.name);
        }
        Ok(Arrived { note, ..arrived })
    }

    /// What is to be said of the file, in sentences. Of several recordings, what is weaker in all of them.
    pub fn sentences(&self) -> Vec<String> {
        let lines = |recording: &Ingested| -> BTreeSet<String> {
            recording.weaker.iter().flat_map(|weaker| weaker.lines()).map(str::to_owned).collect()
        };
        let mut of_each = self.recordings.iter().map(lines);
        let mut in_all = of_each.next().unwrap_or_default();
        let mut say_more = 0;
        for of in of_each {
            say_more += usize::from(of.len() > in_all.len() || !of.is_subset(&in_all));
            in_all.retain(|line| of.contains(line));
        }
        let more = (say_more > 0).then(|| format!("its recordings differ in what is weaker in them: {ASK}"));
        in_all.into_iter().chain(more).chain(self.note.clone()).collect()
    }
}

/// Where sentences are that are not printed.
const ASK: &str = "SELECT host, service, weaker FROM recordings has it";

impl Ingested {
    fn of(file: &Local, id: String, found: Found, args: &Args) -> anyhow::Result<Self> {
        let Found { flow, source, features, service, version, ended, weaker } = found;
        let mut merge = Merge::default();
        merge.add(&flow, args.weight);
        let most = ExactCount::of(MOST_COUNT);
        let left_out = merge.builder.left_out;
        let apart = [merge.builder.seen, left_out.streams, left_out.branches, left_out.samples];
        let counts = merge.builder.sums().flat_map(|(_, _, count, mispredicted)| [count, mispredicted]);
        if counts.chain(apart).any(|count| count > most) {
            bail!("it has counts past {MOST_COUNT:e}: use a smaller --weight");
        }
        let (time, time_is_of_file) = match args.time.map(SystemTime::from).or(ended) {
            Some(time) => (time, false),
            None => (file.written.map_or_else(|| std::fs::metadata(&file.path)?.modified(), Ok)?, true),
        };
        let when = DateTime::<Utc>::from(time);
        if time.duration_since(SystemTime::now()).is_ok_and(|ahead| ahead > AHEAD)
            || when.timestamp_nanos_opt().is_none()
        {
            bail!("it says that it was recorded at {}, which is yet to come: say when with --time", when.to_rfc3339());
        }
        let labels = Labels {
            part: id.clone(),
            day: when.date_naive(),
            host: said(&args.host).or_else(|| features.hostname.clone()).filter(|host| !host.is_empty()),
            service: said(&args.service).or(service),
            version: said(&args.version).or(version),
            executions: merge.executions,
        };
        let (modules, flow) = (rows::modules_of(&merge.builder, &labels)?, rows::flow_of(&merge.builder, &labels)?);
        // Only what is not in the rows is needed any more.
        let (seen, left_out) = (merge.builder.seen, merge.builder.left_out);
        merge.builder = Default::default();
        (merge.builder.seen, merge.builder.left_out) = (seen, left_out);
        Ok(Ingested {
            id,
            file: file.name.clone(),
            time,
            time_is_of_file,
            source,
            weight: args.weight,
            cpu: features.cpu_desc.clone().filter(|cpu| !cpu.is_empty()),
            command: Some(features.cmdline.join(" ")).filter(|command| !command.is_empty()),
            weaker: Some(weaker.join("\n")).filter(|weaker| !weaker.is_empty()),
            labels,
            merge,
            modules,
            flow,
        })
    }
}

/// A label; an empty one says nothing.
fn said(label: &Option<String>) -> Option<String> {
    label.clone().filter(|label| !label.is_empty())
}

/// The rows of the table of recordings.
///
/// # Errors
/// None that could come up: the columns are those of the table.
pub fn table_of(recordings: &[Ingested]) -> anyhow::Result<RecordBatch> {
    fn texts<'a>(recordings: &'a [Ingested], text: impl Fn(&'a Ingested) -> Option<&'a str>) -> ArrayRef {
        Arc::new(recordings.iter().map(text).collect::<StringArray>())
    }
    let flags = |flag: fn(&Ingested) -> bool| -> ArrayRef {
        Arc::new(recordings.iter().map(|of| Some(flag(of))).collect::<BooleanArray>())
    };
    let counts = |count: fn(&Merge) -> ExactCount| rows::counts(recordings.iter().map(|of| count(&of.merge)));
    let nanoseconds = |of: &Ingested| DateTime::<Utc>::from(of.time).timestamp_nanos_opt().unwrap_or_default();
    let columns: Vec<ArrayRef> = vec![
        texts(recordings, |of| Some(&of.id)),
        texts(recordings, |of| Some(&of.labels.part)),
        Arc::new(TimestampNanosecondArray::from_iter_values(recordings.iter().map(nanoseconds)).with_timezone("UTC")),
        flags(|of| of.time_is_of_file),
        Arc::new(Date32Array::from_iter_values(recordings.iter().map(|of| rows::day_number(of.labels.day)))),
        texts(recordings, |of| Some(&of.file)),
        texts(recordings, |of| of.labels.host.as_deref()),
        texts(recordings, |of| of.labels.service.as_deref()),
        texts(recordings, |of| of.labels.version.as_deref()),
        texts(recordings, |of| Some(of.source)),
        texts(recordings, |of| of.cpu.as_deref()),
        texts(recordings, |of| of.command.as_deref()),
        Arc::new(Float64Array::from_iter_values(recordings.iter().map(|of| of.weight))),
        flags(|of| of.merge.executions),
        Arc::new(UInt64Array::from_iter_values(recordings.iter().map(|of| of.merge.inputs))),
        flags(|of| of.merge.seen_is_known),
        counts(|merge| merge.builder.seen)?,
        counts(|merge| merge.builder.left_out.streams)?,
        counts(|merge| merge.builder.left_out.branches)?,
        counts(|merge| merge.builder.left_out.samples)?,
        texts(recordings, |of| of.weaker.as_deref()),
    ];
    Ok(RecordBatch::try_new(Table::Recordings.schema(), columns)?)
}
