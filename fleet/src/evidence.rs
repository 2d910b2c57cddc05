//! What one file has: the flow of a recording (in an archive or not), of a file of `hbbp merge`, or of exact counts, as `hbbp merge` reads them;
//! of profiles of OpenTelemetry, the flow of each service on each host.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ::reports::recordings_of_owners;
use analyzer::counting::Detail;
use analyzer::flow::{Counted, Flow};
use analyzer::recording::{Subset, metadata_of};
use analyzer::{BinarySearch, Options, Origin, analyze};
use anyhow::{Context, bail};
use archive::{Opened, is_archive};
use model::Rules;
use otlp::{OfOwner, is_otlp};
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
    /// What service it is of, if it says so.
    pub service: Option<String>,
    /// Which version of the service, if it says so.
    pub version: Option<String>,
    /// When the recording ended, if it says so.
    pub ended: Option<SystemTime>,
    /// What is weaker than it could be, in sentences.
    pub weaker: Vec<String>,
}

/// What a file has that was not known.
#[derive(Debug, Default)]
pub struct New {
    /// Each content, by what tells it from all others.
    pub found: Vec<(String, Found)>,
    /// What else is to be said of the file.
    pub notes: Vec<String>,
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
    /// Profiles of OpenTelemetry.
    Profiles(PathBuf),
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
            false if is_otlp(file) => Ok(Evidence::Profiles(file.to_owned())),
            false => Ok(Evidence::File(file.to_owned())),
        }
    }

    /// Reads what is not among the `known` contents: a recording counts once, in an archive and out of it. `damaged`: a recording that is
    /// cut short or damaged is taken as far as it goes.
    ///
    /// # Errors
    /// It cannot be read, is none of these, or has nothing to count.
    pub fn read(
        &self,
        known: &HashSet<String>,
        search: &BinarySearch,
        damaged: bool,
        threads: usize,
    ) -> anyhow::Result<New> {
        let (place, analyzing) = (self.place(), Analyzing { search, damaged, threads });
        let id = id_of(&place)?;
        if known.contains(&id) {
            return Ok(New::default());
        }
        let found = match self {
            Evidence::Profiles(_) => return analyzing.profiles(&place, &id, known),
            Evidence::File(_) if begin_of(&place)?.trim_ascii_start().starts_with(b"{") => counted(&place, search)?,
            Evidence::File(_) => analyzing.recording(&Recording::open(&place)?)?,
            Evidence::Archive(opened) => {
                let search = &opened.search(search.clone());
                let mut found = Analyzing { search, ..analyzing }.recording(&Recording::open(&place)?)?;
                found.weaker.extend_from_slice(opened.notes());
                found
            }
        };
        Ok(New { found: vec![(id, found)], notes: Vec::new() })
    }

    fn place(&self) -> PathBuf {
        match self {
            Evidence::File(file) | Evidence::Profiles(file) => file.clone(),
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

/// What a merged file has, or a file of exact counts.
fn counted(file: &Path, search: &BinarySearch) -> anyhow::Result<Found> {
    let Counted { flow, origin, notes } = Counted::read(file, search)?;
    let source = if origin == Origin::Exact { "exact" } else { "flow" };
    Ok(Found { flow, source, features: Features::default(), service: None, version: None, ended: None, weaker: notes })
}

/// How recordings are read.
#[derive(Clone, Copy)]
struct Analyzing<'a> {
    search: &'a BinarySearch,
    damaged: bool,
    threads: usize,
}

impl Analyzing<'_> {
    fn recording(&self, recording: &Recording) -> anyhow::Result<Found> {
        // A flow is of all that was seen: no source is chosen for any block.
        let rules = Rules::default();
        let options = Options {
            search: self.search.clone(),
            subset: Subset::Whole,
            group_by: Default::default(),
            detail: Detail::Branches,
            core: None,
            threads: self.threads,
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
        if !self.damaged && (is_damaged || weaker.iter().any(|note| note.ends_with(CUT_SHORT))) {
            bail!("{}: give the whole file, or take what there is with --damaged", weaker.join("; "));
        }
        let lost = summary.records.lost_in_all();
        if lost > 0 {
            weaker.push(format!("{lost} samples were lost"));
        }
        let others =
            summary.shortcomings.iter().chain(&summary.degradations).filter(|sentence| !weaker.contains(sentence));
        weaker.extend(others.cloned().collect::<Vec<_>>());
        let (source, features) = (analysis.source(), recording.features().clone());
        let (flow, ended) = (analysis.flow.unwrap_or_default().into_flow(), ended(recording)?);
        Ok(Found { flow, source, features, service: None, version: None, ended, weaker })
    }

    /// What each service did on each host, of profiles with this id.
    fn profiles(&self, file: &Path, id: &str, known: &HashSet<String>) -> anyhow::Result<New> {
        let owners = recordings_of_owners(file, self.search)?;
        let (mut new, all, mut nothing) = (New::default(), owners.len(), None);
        for owner in owners {
            let id = id_of_owner(id, &owner);
            match owner.recording {
                Ok(_) if known.contains(&id) => {}
                Ok(bytes) => {
                    let found = self.recording(&Recording::from_bytes(bytes)?)?;
                    new.found.push((id, Found { service: owner.service, version: owner.version, ..found }));
                }
                Err(why) => {
                    let names: Vec<String> = [owner.service, owner.version, owner.host].into_iter().flatten().collect();
                    let whose = if names.is_empty() { "nobody named".to_owned() } else { names.join(", ") };
                    new.notes.push(format!("of its profiles, those of {whose}: {why}"));
                    nothing.get_or_insert(why);
                }
            }
        }
        match nothing {
            Some(why) if new.notes.len() == all => Err(why.into()),
            _ => Ok(new),
        }
    }
}

/// What tells what a service did on a host from all others, of a file with this id.
fn id_of_owner(file: &str, owner: &OfOwner) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(file.as_bytes());
    for name in [&owner.host, &owner.service, &owner.version] {
        // No name has a byte that UTF-8 has not.
        hasher.update(b"\xff").update(name.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.finalize().to_string()
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
