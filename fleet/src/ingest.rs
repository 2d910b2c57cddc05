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
    let mut arriving = Arriving::in_store(&store);
    arriving.known.update(&store).await?;
    let (mut files, mut skipped, mut days) = (0, 0, HashSet::new());
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
                Some(id) if arriving.known.ids.contains(id) => arriving.add(Vec::new()),
                _ => together.push(next),
            }
        }
        if together.is_empty() {
            break;
        }
        let local: Vec<_> = futures::stream::iter(&together).map(Incoming::local).buffered(COPIES).collect().await;
        for found in read_together(&local, (args, &search), &arriving.known.ids, threads) {
            let found = found.and_then(|mut arrived| match arrived.failed.is_empty() || args.keep_going {
                true => Ok(arrived),
                false => Err(arrived.failed.swap_remove(0)),
            });
            match found {
                Ok(arrived) => {
                    arrived.sentences().into_iter().for_each(|note| *notes.entry(note).or_default() += 1);
                    say_some(&arrived.failed);
                    days.extend(arrived.recordings.iter().map(|found| found.labels.day));
                    match arrived.recordings.is_empty() && !arrived.failed.is_empty() {
                        true => skipped += 1,
                        false => arriving.add(arrived.recordings),
                    }
                }
                Err(error) if args.keep_going => {
                    skipped += 1;
                    say(&format!("left out: {error:#}"));
                }
                Err(error) => {
                    arriving.write().await?;
                    let before = match arriving.files().0 {
                        0 => String::new(),
                        1 => "1 file before it is in the store; ".to_owned(),
                        several => format!("{several} files before it are in the store; "),
                    };
                    bail!("{error:#} ({before}--keep-going leaves out what cannot be read)");
                }
            }
            if arriving.rows > MOST_ROWS {
                arriving.write().await?;
            }
        }
    }
    arriving.write().await?;
    notes.iter().for_each(|(note, of)| say(&format!("{of} of {files} files: {note}")));
    let ((read, twice), recordings) = (arriving.files(), arriving.recordings());
    let were_there = if twice > 0 { format!("; {twice} were there before") } else { String::new() };
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
    /// By day, each with the number of its file.
    waiting: BTreeMap<NaiveDate, Vec<(usize, Ingested)>>,
    /// Rows of those that wait.
    rows: usize,
    /// How many recordings of each file came in.
    of_files: Vec<usize>,
}

impl<'a> Arriving<'a> {
    fn in_store(store: &'a Store) -> Self {
        Arriving { store, known: Known::default(), waiting: BTreeMap::new(), rows: 0, of_files: Vec::new() }
    }

    /// Files of which something came in, and those of which nothing was new.
    fn files(&self) -> (usize, usize) {
        let came = self.of_files.iter().filter(|recordings| **recordings > 0).count();
        (came, self.of_files.len() - came)
    }

    /// How many recordings came in.
    fn recordings(&self) -> usize {
        self.of_files.iter().sum()
    }

    /// Takes the recordings of a file. Those that are known may have come with the same file, given twice.
    fn add(&mut self, mut recordings: Vec<Ingested>) {
        recordings.retain(|recording| self.known.ids.insert(recording.id.clone()));
        let file = self.of_files.len();
        self.of_files.push(recordings.len());
        for recording in recordings {
            self.rows += recording.flow.num_rows() + recording.modules.num_rows();
            self.waiting.entry(recording.labels.day).or_default().push((file, recording));
        }
    }

    /// Writes what waits: a batch for each day. What another has put in meanwhile is left out.
    async fn write(&mut self) -> anyhow::Result<()> {
        self.rows = 0;
        if self.waiting.is_empty() {
            return Ok(());
        }
        let _writing = self.store.write()?;
        let mut others = Known { ids: HashSet::new(), batches: std::mem::take(&mut self.known.batches) };
        others.update(self.store).await?;
        for (day, waiting) in std::mem::take(&mut self.waiting) {
            let mut recordings = Vec::new();
            for (file, recording) in waiting {
                match others.ids.contains(&recording.id) {
                    true => self.of_files[file] -= 1,
                    false => recordings.push(recording),
                }
            }
            if recordings.is_empty() {
                continue;
            }
            let modules = recordings.iter().map(|recording| recording.modules.clone()).collect();
            let flow = recordings.iter().map(|recording| recording.flow.clone()).collect();
            let batch = write_batch(self.store, day, 'i', [flow, modules, vec![table_of(&recordings)?]], &[])?;
            others.batches.insert(batch);
        }
        self.known.batches = others.batches;
        self.known.ids.extend(others.ids);
        Ok(())
    }
}

/// Says what of a file is left out: of much, the first.
fn say_some(failed: &[anyhow::Error]) {
    const MOST: usize = 5;
    failed.iter().take(MOST).for_each(|why| say(&format!("left out: {why:#}")));
    if let Some(more) = failed.len().checked_sub(MOST).filter(|more| *more > 0) {
        say(&format!("left out: {more} more parts of the same file"));
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
