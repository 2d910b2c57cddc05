//! What one file has: the flow of a recording, of a file of `hbbp merge`, or of exact counts, as `hbbp merge` reads them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use analyzer::counting::Detail;
use analyzer::flow::{Flow, SCHEMA};
use analyzer::recording::{Subset, metadata_of};
use analyzer::truth::{DocumentError, Truth};
use analyzer::{BinarySearch, Options, analyze};
use anyhow::{Context, bail};
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
    if file.is_dir() {
        bail!("{} is a directory", file.display());
    }
    let mut hasher = blake3::Hasher::new();
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    hasher.update_reader(opened).with_context(|| file.display().to_string())?;
    Ok(hasher.finalize().to_string())
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, is none of these, or has nothing to count.
pub fn read(file: &Path, search: &BinarySearch, threads: usize) -> anyhow::Result<Found> {
    let name = || file.display().to_string();
    let mut begin = Vec::new();
    let open = || File::open(file).with_context(name);
    open()?.take(256).read_to_end(&mut begin).with_context(name)?;
    if !begin.trim_ascii_start().starts_with(b"{") {
        return of_recording(&Recording::open(file).with_context(name)?, search, threads).with_context(name);
    }
    let features = Features::default();
    match Truth::read_json(BufReader::new(open()?)) {
        Err(DocumentError::Schema(schema)) if schema == SCHEMA => {
            let flow = Flow::read_json(BufReader::new(open()?)).with_context(name)?.placed(search);
            Ok(Found { flow, source: "flow", features, ended: None, weaker: Vec::new() })
        }
        truth => {
            let (flow, weaker) = Flow::of_truth(&truth.with_context(name)?, search);
            Ok(Found { flow, source: "exact", features, ended: None, weaker })
        }
    }
}

fn of_recording(recording: &Recording, search: &BinarySearch, threads: usize) -> anyhow::Result<Found> {
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
    let mut weaker: Vec<String> = recording.notes().to_vec();
    weaker.extend(summary.records.damage.iter().map(|damage| format!("the recording is damaged: {damage}")));
    if summary.records.malformed > 0 {
        weaker.push(format!("{} records could not be read", summary.records.malformed));
    }
    let lost = summary.records.lost_in_all();
    if lost > 0 {
        weaker.push(format!("{lost} samples were lost"));
    }
    weaker.extend(summary.shortcomings.iter().chain(&summary.degradations).cloned());
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
