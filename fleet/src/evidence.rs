//! What one file has: the flow of a recording (in an archive or not), of a file of `hbbp merge`, or of exact counts, as `hbbp merge` reads them.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use analyzer::counting::Detail;
use analyzer::flow::{Counted, Flow};
use analyzer::recording::{Subset, metadata_of};
use analyzer::{BinarySearch, Options, Origin, analyze};
use anyhow::{Context, bail};
use archive::{Opened, is_archive};
use model::Rules;
use perfdata::{Features, Recording};

/// What a file has.
#[derive(Debug)]
pub struct Found {
    /// What ran.
    pub flow: Flow,
    /// Where the counts come from: `ebs`, `lbr`, `hybrid`, `exact` or `flow`.
    pub source: &'static str,
    /// What the recording says of itself and its machine.
    pub features: Features,
    /// When the recording ended, if it says so.
    pub ended: Option<SystemTime>,
    /// What is weaker than it could be, in sentences.
    pub weaker: Vec<String>,
}

/// A file's content in a number: BLAKE3, as `b3sum` prints it.
///
/// # Errors
/// The file cannot be read.
pub fn id_of(file: &Path) -> anyhow::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    hasher.update_reader(opened).with_context(|| file.display().to_string())?;
    Ok(hasher.finalize().to_string())
}

/// What tells a file from what it was before: it is another one, or was written.
///
/// # Errors
/// It is not there.
pub fn state_of(file: &Path) -> anyhow::Result<[i128; 5]> {
    let found = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    Ok([found.dev().into(), found.ino().into(), found.len().into(), found.mtime().into(), found.mtime_nsec().into()])
}

/// A file that was put in, opened.
pub enum Evidence {
    /// A recording, a merged file, or exact counts.
    File(PathBuf),
    /// An archive of a recording.
    Archive(Box<Opened>),
}

impl Evidence {
    /// Opens a file. Archives are unpacked.
    ///
    /// # Errors
    /// It cannot be read, or is an archive that is damaged.
    pub fn open(file: &Path) -> anyhow::Result<Self> {
        if file.is_dir() {
            bail!("it is a directory");
        }
        match begin_of(file)?.starts_with(&ZSTD) && is_archive(file) {
            true => Ok(Evidence::Archive(Box::new(Opened::new(file).context("the archive")?))),
            false => Ok(Evidence::File(file.to_owned())),
        }
    }

    /// What tells its content from all others: a recording counts once, in an archive and out of it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn id(&self) -> anyhow::Result<String> {
        id_of(&self.place())
    }

    /// Reads it. `damaged`: a recording that is cut short or damaged is taken as far as it goes.
    ///
    /// # Errors
    /// It cannot be read, is none of these, or has nothing to count.
    pub fn read(&self, search: &BinarySearch, damaged: bool, threads: usize) -> anyhow::Result<Found> {
        let place = self.place();
        if begin_of(&place)?.trim_ascii_start().starts_with(b"{") {
            let Counted { flow, origin, notes } = Counted::read(&place, search)?;
            let source = if origin == Origin::Exact { "exact" } else { "flow" };
            return Ok(Found { flow, source, features: Features::default(), ended: None, weaker: notes });
        }
        let recording = Recording::open(&place)?;
        match self {
            Evidence::File(_) => of_recording(&recording, search, damaged, threads),
            Evidence::Archive(opened) => {
                let mut found = of_recording(&recording, &opened.search(search.clone()), damaged, threads)?;
                found.weaker.extend_from_slice(opened.notes());
                Ok(found)
            }
        }
    }

    fn place(&self) -> PathBuf {
        match self {
            Evidence::File(file) => file.clone(),
            Evidence::Archive(opened) => opened.place(),
        }
    }
}

fn begin_of(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    File::open(file)?.take(256).read_to_end(&mut begin)?;
    Ok(begin)
}

/// As what zstd packed begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// As the note ends that `perfdata` makes of a file with less data than its header says.
const CUT_SHORT: &str = "it was cut short";

fn of_recording(recording: &Recording, search: &BinarySearch, damaged: bool, threads: usize) -> anyhow::Result<Found> {
    // A flow is of all that was seen: no source is chosen for any block.
    let rules = Rules::default();
    let options = Options {
        search: search.clone(),
        subset: Subset::Whole,
        group_by: Default::default(),
        detail: Detail::Branches,
        core: None,
        threads,
        rules: &rules,
    };
    let analysis = analyze(recording, &options, &|_| ())?;
    let summary = &analysis.summary;
    if summary.records.samples.iter().all(|samples| *samples == 0) {
        bail!("the recording has no samples: record something that runs longer, or sample more often");
    }
    let mut weaker: Vec<String> = summary.records.damage_in_words().into_iter().collect();
    if summary.records.malformed > 0 {
        weaker.push(format!("{} records could not be read", summary.records.malformed));
    }
    let is_damaged = !weaker.is_empty() || recording.was_cut_off();
    weaker.extend_from_slice(recording.notes());
    // The whole file has another content, and would count beside what there is of it now.
    if !damaged && (is_damaged || weaker.iter().any(|note| note.ends_with(CUT_SHORT))) {
        bail!("{}: give the whole file, or take what there is with --damaged", weaker.join("; "));
    }
    let lost = summary.records.lost_in_all();
    if lost > 0 {
        weaker.push(format!("{lost} samples were lost"));
    }
    let others = summary.shortcomings.iter().chain(&summary.degradations).filter(|sentence| !weaker.contains(sentence));
    weaker.extend(others.cloned().collect::<Vec<_>>());
    let (source, features) = (analysis.source(), recording.features().clone());
    let ended = ended(recording)?;
    Ok(Found { flow: analysis.flow.unwrap_or_default().into_flow(), source, features, ended, weaker })
}

/// When a recording ended: as `perf record -k` says it, at its last sample, or as `hbbp record` does.
fn ended(recording: &Recording) -> Result<Option<SystemTime>, perfdata::Error> {
    let features = recording.features();
    let by_perf = features.clock_data.zip(features.sample_time).and_then(|(clock, (_, last))| {
        let since = i128::from(last) - i128::from(clock.clockid_time_ns) + i128::from(clock.wall_clock_ns);
        u64::try_from(since).ok()
    });
    let since = by_perf.or(metadata_of(recording)?.ended_unix_ns());
    Ok(since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(since))))
}
