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
use otlp::{OfOwner, Unpacked, is_otlp};
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

/// A content of a file: all of it, or what a service did on a host.
#[derive(Debug)]
pub struct Content {
    /// What tells it from all others.
    pub id: String,
    /// What part of the file it is, for messages.
    pub part: Option<String>,
    /// What it has, or why it cannot be read.
    pub found: anyhow::Result<Found>,
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

    /// Reads what is not among the `known` contents, and hands it to `take`: a recording counts once, in an archive and out of it.
    /// Returns what else is to be said of the file.
    ///
    /// # Errors
    /// It cannot be read, is none of these, or has nothing to count.
    pub fn read(
        &self,
        known: &HashSet<String>,
        analyzing: Analyzing<'_>,
        take: &mut dyn FnMut(Content),
    ) -> anyhow::Result<Option<String>> {
        if let Evidence::Profiles(file) = self {
            return analyzing.profiles(file, known, take);
        }
        let place = self.place();
        let id = id_of(&place)?;
        if known.contains(&id) {
            return Ok(None);
        }
        let found = match self {
            Evidence::Archive(opened) => {
                let search = &opened.search(analyzing.search.clone());
                let mut found = Analyzing { search, ..analyzing }.recording(&Recording::open(&place)?)?;
                found.weaker.extend_from_slice(opened.notes());
                found
            }
            _ if begin_of(&place)?.trim_ascii_start().starts_with(b"{") => counted(&place, analyzing.search)?,
            _ => analyzing.recording(&Recording::open(&place)?)?,
        };
        take(Content { id, part: None, found: Ok(found) });
        Ok(None)
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
pub struct Analyzing<'a> {
    /// Which files to take for recorded ones.
    pub search: &'a BinarySearch,
    /// Recordings that are cut short or damaged are taken as far as they go.
    pub damaged: bool,
    /// Threads to work with.
    pub threads: usize,
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

    /// What each service did on each host.
    fn profiles(
        &self,
        file: &Path,
        known: &HashSet<String>,
        take: &mut dyn FnMut(Content),
    ) -> anyhow::Result<Option<String>> {
        let profiles = Unpacked::read(file)?;
        // Packed in another way, they are the same.
        let of_file = blake3::hash(profiles.bytes()).to_hex();
        let owners = recordings_of_owners(&profiles, self.search)?;
        drop(profiles);
        let (all, mut without, mut first) = (owners.len(), 0, None);
        for owner in owners {
            let (id, part) = (id_of_owner(&of_file, &owner), title_of(&owner));
            let bytes = match owner.recording {
                Ok(_) if known.contains(&id) => continue,
                Ok(bytes) => bytes,
                Err(why) => {
                    without += 1;
                    first.get_or_insert_with(|| format!("{part}: {why}"));
                    continue;
                }
            };
            let found = Recording::from_bytes(bytes).map_err(anyhow::Error::from);
            let found = found.and_then(|recording| self.recording(&recording));
            let (service, version) = (owner.service, owner.version);
            take(Content { id, part: Some(part), found: found.map(|found| Found { service, version, ..found }) });
        }
        match first {
            Some(why) if all == 1 => bail!("it has no samples that count: {why}"),
            Some(why) if without == all => bail!("none of its {all} parts has samples that count; the first, {why}"),
            Some(why) => Ok(Some(format!("{without} of its {all} parts have no samples that count, as {why}"))),
            None => Ok(None),
        }
    }
}

/// What tells what a service did on a host from all others, of profiles with this id.
fn id_of_owner(profiles: &str, owner: &OfOwner) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(profiles.as_bytes());
    for name in [&owner.host, &owner.service, &owner.version] {
        // No name has a byte that UTF-8 has not.
        hasher.update(b"\xff").update(name.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.finalize().to_string()
}

/// Whose profiles they are, in words.
fn title_of(owner: &OfOwner) -> String {
    let names = [("service", &owner.service), ("version", &owner.version), ("host", &owner.host)];
    let said: Vec<String> =
        names.iter().filter_map(|(what, name)| Some(format!("{what} {:?}", name.as_ref()?))).collect();
    if said.is_empty() { "that of no named service or host".to_owned() } else { said.join(", ") }
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
