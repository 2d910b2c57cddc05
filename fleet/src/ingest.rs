//! `hbbp-fleet ingest`: recordings come into a store.

mod incoming;
mod recording;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use analyzer::{BinaryOverride, BinarySearch};
use anyhow::{anyhow, bail};
use chrono::{DateTime, NaiveDate, Utc};
use futures::{StreamExt, TryStreamExt};

use crate::engine::{Engine, MOST_MEMORY, check};
use crate::output::say;
use crate::store::{Batch, Store};
use crate::tables::Table;
use crate::writer::write_batch;
use incoming::{Incoming, Local};
use recording::{Arrived, Ingested, table_of};

/// Put recordings into a store
///
/// Each recording counts once, however often it is given: its content tells. What ran in it (ranges, branches, samples) is read as `hbbp merge`
/// reads it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the store; it is made if it is not there
    store: PathBuf,

    /// Recordings, archives of them, profiles of OpenTelemetry, merged files, or exact counts (from `hbbp truth`); folders and s3://BUCKET/PREFIX stand for all in
    /// them that is called *.data or *.tar.zst
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// What service they are of [default: the one that profiles of OpenTelemetry name]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Which version of the service ran [default: the one that profiles of OpenTelemetry name]
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
  hbbp-fleet ingest profiles incoming --keep-going --weight 10
  hbbp-fleet ingest profiles s3://bucket/incoming --keep-going";

/// Rows that are kept in memory until they are written.
const MOST_ROWS: usize = 150_000;

/// Copies of a bucket that are made at once.
const COPIES: usize = 8;

/// Reads files, a few at once, and writes what they have by day. The store can be written by others while they are read.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    if !(args.weight.is_finite() && args.weight > 0.0) {
        bail!("--weight is {}, expected more than 0", args.weight);
    }
    let store = Store::open_or_make(&args.store)?;
    let mut arriving = Arriving { store: &store, known: Known::default(), waiting: BTreeMap::new(), rows: 0, twice: 0 };
    arriving.known.update(&store).await?;
    let (mut files, mut read, mut recordings, mut skipped, mut days) = (0, 0, 0, 0, HashSet::new());
    let threads = args.threads.map(usize::from);
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let search = search(args);
    // How many files each was said of.
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    let mut incoming = incoming::all(&args.files);
    loop {
        // What is read at once is in memory at once.
        let mut together = Vec::new();
        while together.len() < threads.saturating_mul(4) {
            let Some(next) = incoming.try_next().await? else { break };
            files += 1;
            match next.id() {
                // It need not come here to be known.
                Some(id) if arriving.known.ids.contains(id) => arriving.twice += 1,
                _ => together.push(next),
            }
        }
        if together.is_empty() {
            break;
        }
        let local: Vec<_> = futures::stream::iter(&together).map(Incoming::local).buffered(COPIES).collect().await;
        for found in read_together(&local, (args, &search), &arriving.known.ids, threads) {
            match found {
                Ok(arrived) => {
                    let of_recordings = arrived.recordings.iter().flat_map(|found| &found.weaker);
                    // Recordings of one file say the same of it.
                    let said: BTreeSet<&str> = of_recordings
                        .flat_map(|weaker| weaker.lines())
                        .chain(arrived.notes.iter().map(String::as_str))
                        .collect();
                    said.into_iter().for_each(|note| *notes.entry(note.to_owned()).or_default() += 1);
                    days.extend(arrived.recordings.iter().map(|found| found.labels.day));
                    let came = arriving.add(arrived.recordings);
                    recordings += came;
                    match came {
                        0 => arriving.twice += 1,
                        _ => read += 1,
                    }
                }
                Err(error) if args.keep_going => {
                    skipped += 1;
                    say(&format!("left out: {error:#}"));
                }
                Err(error) => {
                    read -= arriving.write().await?;
                    let before = match read {
                        0 => String::new(),
                        1 => "1 file before it is in the store; ".to_owned(),
                        several => format!("{several} files before it are in the store; "),
                    };
                    bail!("{error:#} ({before}--keep-going leaves out what cannot be read)");
                }
            }
            if arriving.rows > MOST_ROWS {
                read -= arriving.write().await?;
            }
        }
    }
    read -= arriving.write().await?;
    notes.iter().for_each(|(note, of)| say(&format!("{of} of {files} files: {note}")));
    let were_there = if arriving.twice > 0 { format!("; {} were there before", arriving.twice) } else { String::new() };
    let left_out = if skipped > 0 { format!("; {skipped} left out") } else { String::new() };
    // Profiles of OpenTelemetry have several.
    let several = if recordings > read { format!(", {recordings} recordings") } else { String::new() };
    eprintln!(
        "hbbp-fleet: {read} of {files} files put into {}{several}, of {} days{were_there}{left_out}",
        args.store.display(),
        days.len()
    );
    if skipped == files && skipped > 0 {
        bail!("none of the files could be read");
    }
    Ok(())
}

/// The recordings of a store, by what tells their contents.
#[derive(Default)]
struct Known {
    ids: HashSet<String>,
    batches: BTreeSet<Batch>,
}

impl Known {
    /// Adds those that came since.
    async fn update(&mut self, store: &Store) -> anyhow::Result<()> {
        let reading = store.read();
        let mut new = store.batches()?;
        new.retain(|batch| !self.batches.contains(batch));
        if !new.is_empty() {
            // A damaged id would be that of no recording, and the recording would come in again.
            check(store, &new, &[Table::Recordings])?;
            self.batches.extend(new.iter().cloned());
            self.ids.extend(Engine::of_batches(store, reading, new, MOST_MEMORY)?.ids().await?);
        }
        Ok(())
    }
}

/// Recordings that were read, until they are written.
struct Arriving<'a> {
    store: &'a Store,
    /// Those of the store, and those that wait.
    known: Known,
    waiting: BTreeMap<NaiveDate, Vec<Ingested>>,
    /// Rows of those that wait.
    rows: usize,
    /// How many files were known.
    twice: usize,
}

impl Arriving<'_> {
    /// Takes the recordings of a file. How many of them were not known: it may have been given twice.
    fn add(&mut self, mut recordings: Vec<Ingested>) -> usize {
        recordings.retain(|recording| self.known.ids.insert(recording.id.clone()));
        let new = recordings.len();
        for recording in recordings {
            self.rows += recording.flow.num_rows() + recording.modules.num_rows();
            self.waiting.entry(recording.labels.day).or_default().push(recording);
        }
        new
    }

    /// Writes what waits: a batch for each day. How many files another has put in meanwhile, which are left out.
    async fn write(&mut self) -> anyhow::Result<usize> {
        self.rows = 0;
        if self.waiting.is_empty() {
            return Ok(0);
        }
        let _writing = self.store.write()?;
        let mut others = Known { ids: HashSet::new(), batches: std::mem::take(&mut self.known.batches) };
        others.update(self.store).await?;
        let mut meanwhile = 0;
        for (day, mut recordings) in std::mem::take(&mut self.waiting) {
            let is_known = |recording: &Ingested| others.ids.contains(&recording.id);
            meanwhile += recordings.iter().filter(|recording| recording.is_first && is_known(recording)).count();
            recordings.retain(|recording| !is_known(recording));
            if recordings.is_empty() {
                continue;
            }
            let modules = recordings.iter().map(|recording| recording.modules.clone()).collect();
            let flow = recordings.iter().map(|recording| recording.flow.clone()).collect();
            let batch = write_batch(self.store, day, 'i', [flow, modules, vec![table_of(&recordings)?]], &[])?;
            others.batches.insert(batch);
        }
        self.twice += meanwhile;
        self.known.batches = others.batches;
        self.known.ids.extend(others.ids);
        Ok(meanwhile)
    }
}

/// What each file has, if it is not in the store, in their order. A thread reads a whole file; one file is read by all of them.
fn read_together(
    files: &[anyhow::Result<Local>],
    of: (&Args, &BinarySearch),
    known: &HashSet<String>,
    threads: usize,
) -> Vec<anyhow::Result<Arrived>> {
    let read = |file: &anyhow::Result<Local>, threads| match file {
        Ok(file) => Arrived::of(file, of, known, threads),
        Err(error) => Err(anyhow!("{error:#}")),
    };
    if let [file] = files {
        return vec![read(file, threads)];
    }
    let next = AtomicUsize::new(0);
    let read_all = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return found };
            found.push((index, read(file, 1)));
        }
    };
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(files.len())).map(|_| scope.spawn(read_all)).collect();
        let mut found = read_all();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    });
    found.sort_unstable_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Which files to take for recorded ones, as in all commands of `hbbp`.
fn search(args: &Args) -> BinarySearch {
    BinarySearch {
        symfs: args.symfs.clone(),
        overrides: args.binaries.iter().map(|text| BinaryOverride::of_option(text)).collect(),
        ..BinarySearch::default()
    }
}
