//! Recordings that are made of profiles of OpenTelemetry, which analyses read like others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use analyzer::address::Svma;
use analyzer::code::Image;
use analyzer::recording::Module;
use analyzer::{BinarySearch, BuildId};
use anyhow::Context;
use formats::mapped_files::{ID_BYTES, id_of_bytes};
use otlp::{Files, OfOwner, Unpacked, convert, convert_apart};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

/// The recording that is made of such a file, in a file of its own. `search` finds the programs that were profiled.
///
/// # Errors
/// What is wrong with the profiles.
pub fn recording_of(file: &Path, search: &BinarySearch) -> anyhow::Result<NamedTempFile> {
    let recording = NamedTempFile::new().context("a file for the recording that is made of profiles")?;
    convert(file, &Found::by(search), BufWriter::new(recording.as_file())).context(PROFILES)?;
    Ok(recording)
}

/// The recordings that are made of what such a file has, one for each service on each host, in memory.
///
/// # Errors
/// What is wrong with the profiles.
pub fn recordings_of_owners(profiles: &Unpacked, search: &BinarySearch) -> anyhow::Result<Vec<OfOwner>> {
    convert_apart(profiles, &Found::by(search)).context(PROFILES)
}

const PROFILES: &str = "as OTLP profiles";

/// The programs that were profiled, as far as they are found.
struct Found<'a> {
    search: &'a BinarySearch,
    images: RefCell<Images>,
}

/// Programs by path and build id; none where nothing was found.
type Images = HashMap<(String, Option<perfdata::BuildId>), Option<Image>>;

impl<'a> Found<'a> {
    fn by(search: &'a BinarySearch) -> Self {
        Found { search, images: RefCell::default() }
    }
}

impl Files for Found<'_> {
    fn offset(&self, path: &str, build_id: Option<&perfdata::BuildId>, address: u64) -> Option<u64> {
        let mut images = self.images.borrow_mut();
        let image = images.entry((path.to_owned(), build_id.copied())).or_insert_with(|| {
            let id = build_id.and_then(|id| BuildId::new(id.as_bytes()));
            self.search.open(&Module::named(path.to_owned(), id)).ok().map(|binary| binary.image)
        });
        image.as_ref().filter(|image| image.is_executable(Svma(address)))?.file_offset_of_svma(Svma(address))
    }

    fn id_of(&self, path: &str, htlhash: &str) -> Option<[u8; ID_BYTES]> {
        let name = Path::new(path).file_name()?;
        let places: Vec<PathBuf> = match &self.search.symfs {
            Some(folder) => vec![folder.join(path.trim_start_matches('/')), folder.join(name)],
            None => vec![PathBuf::from(path)],
        };
        places.iter().filter(|place| place.is_file()).find_map(|place| {
            let mut file = File::open(place).ok()?;
            (htlhash_of(&mut file).ok()? == htlhash.to_ascii_lowercase()).then_some(())?;
            file.seek(SeekFrom::Start(0)).ok()?;
            id_of_bytes(file).ok()
        })
    }
}

/// What OpenTelemetry tells files by that have no build id (`process.executable.build_id.htlhash`).
fn htlhash_of(file: &mut File) -> std::io::Result<String> {
    const PART: u64 = 4096;
    const KEPT: usize = 16;
    let mut parts = Vec::new();
    let length = file.seek(SeekFrom::End(0))?;
    for from in [0, length.saturating_sub(PART)] {
        file.seek(SeekFrom::Start(from))?;
        file.take(PART).read_to_end(&mut parts)?;
    }
    parts.extend(length.to_be_bytes());
    Ok(Sha256::digest(&parts).iter().take(KEPT).map(|byte| format!("{byte:02x}")).collect())
}
