//! `hbbp-fleet ingest`: recordings come into a store.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use analyzer::flow::{ExactCount, MOST_COUNT, Merge};
use analyzer::{BinaryOverride, BinarySearch};
use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, Utc};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt64Array,
};

use crate::engine::Engine;
use crate::evidence::{self, Found};
use crate::rows::{self, Labels};
use crate::store::{Batch, Store};
use crate::tables::Table;
use crate::writer::write_batch;

/// Put recordings into a store
///
/// Each recording counts once, however often it is given: its content tells. What ran in it (ranges, branches, samples) is read as `hbbp merge`
/// reads it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the store; it is made if it is not there
    store: PathBuf,

    /// Recordings, merged files, or exact counts (from `hbbp truth`)
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// What service they are of
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Which version of the service ran
    #[arg(long, value_name = "NAME")]
    version: Option<String>,

    /// Where they were recorded [default: the host that a recording names]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// When they were recorded, such as 2026-11-26T12:00:00Z [default: what a recording says, or else when its file was written]
    #[arg(long, value_name = "TIME")]
    time: Option<DateTime<Utc>>,

    /// How often each counts
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0, allow_negative_numbers = true)]
    weight: f64,

    /// Leave out files that cannot be read, and go on
    #[arg(long)]
    keep_going: bool,

    /// Take recordings that are cut short or damaged as far as they go; the whole file would count beside them
    #[arg(long)]
    damaged: bool,

    /// Look for binaries under this directory instead of under /
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// Read this binary instead of the recorded one; it is matched by build id or name, or stands for RECORDED (a path or name)
    #[arg(long = "binary", value_name = "[RECORDED=]FILE")]
    binaries: Vec<String>,

    /// Threads to work with; the result is the same for any number [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp-fleet ingest profiles web1.data web2.data --service web --version 4.2
  hbbp-fleet ingest profiles incoming/*.data --keep-going --weight 10";

/// Rows that are kept in memory until they are written.
const MOST_ROWS: usize = 150_000;

/// Clocks of hosts differ by less.
const AHEAD: Duration = Duration::from_secs(3600);

/// A recording that was read.
struct Ingested {
    id: String,
    file: String,
    time: SystemTime,
    time_is_of_file: bool,
    source: &'static str,
    weight: f64,
    cpu: Option<String>,
    command: Option<String>,
    weaker: Option<String>,
    labels: Labels,
    merge: Merge,
    modules: RecordBatch,
    flow: RecordBatch,
}

/// Reads files, a few at once, and writes what they have by day.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    if !(args.weight.is_finite() && args.weight > 0.0) {
        bail!("--weight is {}, expected more than 0", args.weight);
    }
    let store = Store::open_or_make(&args.store)?;
    let _writing = store.write()?;
    let known = Engine::of(&store).await?.ids().await?;
    let (mut waiting, mut rows) = (BTreeMap::<NaiveDate, Vec<Ingested>>::new(), 0);
    let (mut ingested, mut twice, mut skipped, mut days) = (0, 0, 0, HashSet::new());
    let threads = args.threads.map(usize::from);
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let (mut new, search) = (HashSet::new(), search(args));
    // How many files each was said of.
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    // What is read at once is in memory at once.
    let together = args.files.chunks(threads.saturating_mul(4));
    for found in together.flat_map(|files| read_together(files, (args, &search), &known, threads)) {
        match found {
            Ok(None) => twice += 1,
            // It was given twice.
            Ok(Some(found)) if !new.insert(found.id.clone()) => twice += 1,
            Ok(Some(found)) => {
                ingested += 1;
                let weaker = found.weaker.iter().flat_map(|weaker| weaker.lines());
                weaker.for_each(|note| *notes.entry(note.to_owned()).or_default() += 1);
                rows += found.flow.num_rows() + found.modules.num_rows();
                days.insert(found.labels.day);
                waiting.entry(found.labels.day).or_default().push(found);
            }
            Err(error) if args.keep_going => {
                skipped += 1;
                eprintln!("hbbp-fleet: left out: {error:#}");
            }
            Err(error) => {
                write(&store, &mut waiting)?;
                let before = match ingested {
                    0 => String::new(),
                    1 => "1 file before it is in the store; ".to_owned(),
                    several => format!("{several} files before it are in the store; "),
                };
                bail!("{error:#} ({before}--keep-going leaves out what cannot be read)");
            }
        }
        if rows > MOST_ROWS {
            write(&store, &mut waiting)?;
            rows = 0;
        }
    }
    write(&store, &mut waiting)?;
    notes.iter().for_each(|(note, files)| eprintln!("hbbp-fleet: {files} of {} files: {note}", args.files.len()));
    let were_there = if twice > 0 { format!("; {twice} were there before") } else { String::new() };
    let left_out = if skipped > 0 { format!("; {skipped} left out") } else { String::new() };
    eprintln!(
        "hbbp-fleet: {ingested} of {} files put into {}, of {} days{were_there}{left_out}",
        args.files.len(),
        args.store.display(),
        days.len()
    );
    if skipped == args.files.len() {
        bail!("none of the files could be read");
    }
    Ok(())
}

/// What each file has, if it is not in the store, in their order. A thread reads a whole file; one file is read by all of them.
fn read_together(
    files: &[PathBuf],
    (args, search): (&Args, &BinarySearch),
    known: &HashSet<String>,
    threads: usize,
) -> Vec<anyhow::Result<Option<Ingested>>> {
    if let [file] = files {
        return vec![ingested_once(file, (args, search), known, threads)];
    }
    let next = AtomicUsize::new(0);
    let read = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return found };
            found.push((index, ingested_once(file, (args, search), known, 1)));
        }
    };
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(files.len())).map(|_| scope.spawn(read)).collect();
        let mut found = read();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    });
    found.sort_unstable_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, found)| found).collect()
}

/// What a file has, if it is not in the store.
fn ingested_once(
    file: &Path,
    (args, search): (&Args, &BinarySearch),
    known: &HashSet<String>,
    threads: usize,
) -> anyhow::Result<Option<Ingested>> {
    let before = evidence::state_of(file)?;
    let id = evidence::id_of(file)?;
    if known.contains(&id) {
        return Ok(None);
    }
    let found = evidence::read(file, search, args.damaged, threads)?;
    if evidence::state_of(file)? != before {
        bail!("{} changed while it was read: give it again when it is complete", file.display());
    }
    ingest(file, id, found, args).with_context(|| file.display().to_string()).map(Some)
}

fn ingest(file: &Path, id: String, found: Found, args: &Args) -> anyhow::Result<Ingested> {
    let Found { flow, source, features, ended, weaker } = found;
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
        None => (std::fs::metadata(file)?.modified()?, true),
    };
    let when = DateTime::<Utc>::from(time);
    if time.duration_since(SystemTime::now()).is_ok_and(|ahead| ahead > AHEAD) || when.timestamp_nanos_opt().is_none() {
        bail!("it says that it was recorded at {}, which is yet to come: say when with --time", when.to_rfc3339());
    }
    let labels = Labels {
        part: id.clone(),
        day: when.date_naive(),
        host: said(&args.host).or_else(|| features.hostname.clone()).filter(|host| !host.is_empty()),
        service: said(&args.service),
        version: said(&args.version),
        executions: merge.executions,
    };
    let (modules, flow) = (rows::modules_of(&merge.builder, &labels)?, rows::flow_of(&merge.builder, &labels)?);
    // Only what is not in the rows is needed any more.
    let (seen, left_out) = (merge.builder.seen, merge.builder.left_out);
    merge.builder = Default::default();
    (merge.builder.seen, merge.builder.left_out) = (seen, left_out);
    Ok(Ingested {
        id,
        file: file.display().to_string(),
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

/// A label; an empty one says nothing.
fn said(label: &Option<String>) -> Option<String> {
    label.clone().filter(|label| !label.is_empty())
}

/// Writes what waits: a batch for each day.
fn write(store: &Store, waiting: &mut BTreeMap<NaiveDate, Vec<Ingested>>) -> anyhow::Result<()> {
    for (day, recordings) in std::mem::take(waiting) {
        let mut ids: Vec<&str> = recordings.iter().map(|recording| recording.id.as_str()).collect();
        ids.sort_unstable();
        let batch = Batch { day, name: format!("i-{}", &blake3::hash(ids.concat().as_bytes()).to_hex()[..32]) };
        let modules = recordings.iter().map(|recording| recording.modules.clone()).collect();
        let flow = recordings.iter().map(|recording| recording.flow.clone()).collect();
        write_batch(store, &batch, [flow, modules, vec![table_of(&recordings)?]], &[])?;
    }
    Ok(())
}

/// The rows of the table of recordings.
fn table_of(recordings: &[Ingested]) -> anyhow::Result<RecordBatch> {
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

/// Which files to take for recorded ones, as in all commands of `hbbp`.
fn search(args: &Args) -> BinarySearch {
    BinarySearch {
        symfs: args.symfs.clone(),
        overrides: args.binaries.iter().map(|text| BinaryOverride::of_option(text)).collect(),
        ..BinarySearch::default()
    }
}
