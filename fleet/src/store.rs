//! A store on disk: which of its files count.
//!
//! ```text
//! STORE/hbbp-fleet.json                     the version of all that follows
//! STORE/lock, STORE/readers                 empty: who writes, who reads
//! STORE/day=2026-11-26/i-<hash>.flow.parquet         written first
//!                      i-<hash>.modules.parquet
//!                      i-<hash>.recordings.parquet   the commit: without it the others count nothing
//!                      c-<hash>.*.parquet            made by `compact` and `remove`; its recordings name the batches that it replaces
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chrono::NaiveDate;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::file::serialized_reader::ReadOptionsBuilder;
use tempfile::NamedTempFile;

use crate::evidence::id_of;
use crate::tables::Table;

/// The version that this program writes, and the newest that it reads.
const VERSION: u64 = 1;

/// What the file of the version is called.
const MARK: &str = "hbbp-fleet.json";

/// As the text in it begins.
const SCHEMA: &str = "hbbp-fleet/";

/// What files are called until they are complete.
const UNFINISHED: &str = ".unfinished-";

/// The key of a Parquet file's metadata under which a batch names those that it replaces.
pub const REPLACES: &str = "hbbp-fleet.replaces";

/// The key under which a batch has the contents of its other files: BLAKE3 of each, as `flow=HASH modules=HASH`.
pub const HASHES: &str = "hbbp-fleet.hashes";

/// The key under which a batch has when it was written: no two have the same name, whatever is in them. What replaces one means no later one.
pub const WRITTEN: &str = "hbbp-fleet.written";

/// So many digits of the hash of a table of recordings are in the name of its batch.
pub const HASH_IN_NAME: usize = 40;

/// A folder with the profiles of many machines.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Recordings that came into the store together, with what ran in them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Batch {
    /// The day of its recordings.
    pub day: NaiveDate,
    /// The beginning of the names of its files.
    pub name: String,
}

/// Nobody else writes while it lives.
#[derive(Debug)]
pub struct Writing(#[allow(dead_code)] File);

/// Nobody removes files while it lives.
#[derive(Debug)]
pub struct Reading(#[allow(dead_code)] Option<File>);

impl Store {
    /// Opens a store that is there.
    ///
    /// # Errors
    /// There is none, or one of a newer version.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let mark = folder.join(MARK);
        let text = match fs::read_to_string(&mark) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("{} is no store of recordings: make one with `hbbp-fleet ingest {0} FILE..`", folder.display())
            }
            text => text.with_context(|| mark.display().to_string())?,
        };
        let number = text.split(SCHEMA).nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).collect());
        match number.and_then(|number: String| number.parse::<u64>().ok()) {
            Some(version) if version <= VERSION => Ok(Store { folder: folder.to_owned() }),
            Some(version) => bail!(
                "{} is a store of version {version}, and this hbbp-fleet reads up to version {VERSION}: take a newer hbbp-fleet",
                folder.display()
            ),
            None => bail!("{}: expected {{\"schema\":\"{SCHEMA}{VERSION}\"}}", mark.display()),
        }
    }

    /// Opens a store, or makes one of an empty folder or of none.
    ///
    /// # Errors
    /// It cannot be made, there is something else in the folder, or it is of a newer version.
    pub fn open_or_make(folder: &Path) -> anyhow::Result<Self> {
        let name = || folder.display().to_string();
        fs::create_dir_all(folder).with_context(name)?;
        let mark = folder.join(MARK);
        if !mark.exists() {
            let mut inside = fs::read_dir(folder).with_context(name)?;
            // Another one that is made at this moment is no reason to stop.
            let strange = inside.find_map(|entry| {
                let name = entry.ok()?.file_name().to_string_lossy().into_owned();
                (name != MARK && !name.starts_with(UNFINISHED)).then_some(name)
            });
            if let Some(strange) = strange.filter(|_| !mark.exists()) {
                bail!("{} has other files ({strange}): name an empty folder, or one that is not there", name());
            }
            // One that has made it meanwhile, and writes, removes what is unfinished.
            if let Err(error) = Self::make(&mark)
                && !mark.exists()
            {
                return Err(error);
            }
        }
        Self::open(folder)
    }

    /// Makes the file of the version, and with it the store.
    fn make(mark: &Path) -> anyhow::Result<()> {
        let unfinished = Unfinished::begin(folder_of(mark))?;
        writeln!(unfinished.writer()?, "{{\"schema\":\"{SCHEMA}{VERSION}\"}}")
            .with_context(|| mark.display().to_string())?;
        unfinished.finish(mark.to_owned())
    }

    /// Waits until nobody writes, and removes what one left that was killed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self) -> anyhow::Result<Writing> {
        let path = self.folder.join("lock");
        let name = || path.display().to_string();
        let lock = File::create(&path).with_context(name)?;
        if lock.try_lock().is_err() {
            eprintln!("hbbp-fleet: waiting for another that writes to {}", self.folder.display());
            lock.lock().with_context(name)?;
        }
        let writing = Writing(lock);
        for folder in self.days()?.into_iter().map(|day| self.folder_of(day)).chain([self.folder.clone()]) {
            for file in files_in(&folder)? {
                if file.starts_with(UNFINISHED) {
                    let _ = fs::remove_file(folder.join(file));
                }
            }
        }
        Ok(writing)
    }

    /// Keeps others from removing files. Where the store cannot be written, nobody does.
    pub fn read(&self) -> Reading {
        let path = self.folder.join("readers");
        let file = File::open(&path).or_else(|_| File::create(&path));
        let is_locked = |file: &File| {
            file.try_lock_shared().is_ok() || {
                eprintln!("hbbp-fleet: waiting for a compaction of {} to remove files", self.folder.display());
                file.lock_shared().is_ok()
            }
        };
        Reading(file.ok().filter(is_locked))
    }

    /// The batches that count, by day. A batch that another one replaces does not.
    ///
    /// # Errors
    /// The folder cannot be read, or a file in it is damaged.
    pub fn batches(&self) -> anyhow::Result<Vec<Batch>> {
        let mut batches = BTreeSet::new();
        for day in self.days()? {
            let commit = Table::Recordings.ending();
            let names = files_in(&self.folder_of(day))?.into_iter();
            batches.extend(
                names
                    .filter(|name| !name.starts_with('.'))
                    .filter_map(|name| Some(Batch { day, name: name.strip_suffix(&commit)?.to_owned() })),
            );
        }
        for batch in batches.iter().filter(|batch| batch.is_compacted()).cloned().collect::<Vec<_>>() {
            for replaced in self.replaced_by(&batch)? {
                batches.remove(&replaced);
            }
        }
        Ok(batches.into_iter().collect())
    }

    /// The batches that a batch replaces.
    fn replaced_by(&self, batch: &Batch) -> anyhow::Result<Vec<Batch>> {
        let names = self.note_of(batch, REPLACES)?.unwrap_or_default();
        Ok(names.split_whitespace().filter_map(Batch::from_text).collect())
    }

    /// What a table of recordings says of its batch under a key.
    fn note_of(&self, batch: &Batch, key: &str) -> anyhow::Result<Option<String>> {
        let entries = self.footer_of(batch)?.file_metadata().key_value_metadata().cloned().unwrap_or_default();
        Ok(entries.into_iter().find(|entry| entry.key == key).and_then(|entry| entry.value))
    }

    /// What a table of recordings says of itself.
    fn footer_of(&self, batch: &Batch) -> anyhow::Result<ParquetMetaData> {
        let path = self.file(batch, Table::Recordings);
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        let reader = SerializedFileReader::new_with_options(file, ReadOptionsBuilder::new().build());
        Ok(reader.with_context(|| damaged(&path))?.metadata().clone())
    }

    /// Whether a batch has no recordings: it is there only to replace others.
    fn is_empty(&self, batch: &Batch) -> anyhow::Result<bool> {
        Ok(self.footer_of(batch)?.file_metadata().num_rows() == 0)
    }

    /// Refuses files of these tables that are not what was written. Older stores do not say what that was.
    ///
    /// # Errors
    /// One is damaged, and named.
    pub fn check(&self, batch: &Batch, tables: &[Table]) -> anyhow::Result<()> {
        let own = batch.name.get(2..).unwrap_or_default();
        if own.len() < HASH_IN_NAME {
            return Ok(());
        }
        // The table of recordings has the hashes of the others, and its name its own.
        let hashes = if tables == [Table::Recordings] { None } else { self.note_of(batch, HASHES)? };
        let hashes = hashes.unwrap_or_default();
        let of = |table: Table| {
            let begin = format!("{}=", table.name());
            let noted = hashes.split_whitespace().find_map(|noted| noted.strip_prefix(begin.as_str()));
            if table == Table::Recordings { own } else { noted.unwrap_or_default() }
        };
        for &table in tables.iter().rev() {
            let path = self.file(batch, table);
            let (hash, expected) = (id_of(&path)?, of(table));
            if expected.len() < HASH_IN_NAME || !hash.starts_with(expected) {
                bail!("its content is not what was written: {}", damaged(&path));
            }
        }
        Ok(())
    }

    /// The file of a batch with a part of a table.
    pub fn file(&self, batch: &Batch, table: Table) -> PathBuf {
        self.folder_of(batch.day).join(format!("{}{}", batch.name, table.ending()))
    }

    /// Where the files of a day are.
    pub fn folder_of(&self, day: NaiveDate) -> PathBuf {
        self.folder.join(format!("day={day}"))
    }

    /// Removes files that count no more, or never did, when nobody reads. While somebody does it waits, or removes nothing: the next one will.
    ///
    /// # Errors
    /// The folder cannot be read, or written.
    pub fn clean(&self, _: &Writing, wait: bool) -> anyhow::Result<usize> {
        let path = self.folder.join("readers");
        let readers = File::create(&path).with_context(|| path.display().to_string())?;
        if readers.try_lock().is_err() {
            if !wait {
                eprintln!("hbbp-fleet: somebody reads: the next compaction removes the files that were replaced");
                return Ok(0);
            }
            eprintln!("hbbp-fleet: waiting for those who read {}", self.folder.display());
            readers.lock().with_context(|| path.display().to_string())?;
        }
        let (mut kept, mut removed) = (BTreeSet::new(), 0);
        for batch in self.batches()? {
            kept.extend(Table::ALL.map(|table| self.file(&batch, table)));
        }
        // What names the replaced ones goes last of all: until then, they do not count.
        for ending in [Table::Recordings, Table::Modules, Table::Flow].map(Table::ending) {
            for day in self.days()? {
                let folder = self.folder_of(day);
                for name in files_in(&folder)?.into_iter().filter(|name| name.ends_with(&ending)) {
                    let file = folder.join(name);
                    if !kept.contains(&file) {
                        fs::remove_file(&file).with_context(|| file.display().to_string())?;
                        removed += 1;
                    }
                }
            }
        }
        // What replaced all of a day by nothing is of no use once that is gone.
        for batch in self.batches()?.into_iter().filter(Batch::is_compacted) {
            if self.is_empty(&batch)? {
                for table in Table::ALL.into_iter().rev() {
                    let file = self.file(&batch, table);
                    fs::remove_file(&file).with_context(|| file.display().to_string())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn days(&self) -> anyhow::Result<Vec<NaiveDate>> {
        let names = files_in(&self.folder)?;
        let days = names.iter().filter_map(|name| name.strip_prefix("day=")?.parse().ok());
        // Other things may be called so.
        Ok(days.filter(|day| self.folder_of(*day).is_dir()).collect())
    }
}

impl Batch {
    /// Whether `compact` or `remove` made it.
    pub fn is_compacted(&self) -> bool {
        self.name.starts_with("c-")
    }

    /// As a batch is named in the metadata of another.
    pub fn text(&self) -> String {
        format!("{}/{}", self.day, self.name)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (day, name) = text.split_once('/')?;
        Some(Batch { day: day.parse().ok()?, name: name.to_owned() })
    }
}

/// What is said of a file that cannot be what was written.
fn damaged(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let batch = name.split('.').next().unwrap_or_default();
    format!(
        "{} is damaged: restore it, or remove the three files {batch}.* beside it and ingest their recordings again",
        path.display()
    )
}

/// A file that is there as a whole or not at all, whatever happens.
#[derive(Debug)]
pub struct Unfinished {
    file: NamedTempFile,
}

impl Unfinished {
    /// Begins a file in a folder that is there.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin(folder: &Path) -> anyhow::Result<Self> {
        // Temporary files are for one user only; those of a store are for whom the folder is for.
        Self::begin_as(folder, fs::Permissions::from_mode(0o644))
    }

    /// Begins a file that these may read.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin_as(folder: &Path, permissions: fs::Permissions) -> anyhow::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(UNFINISHED).permissions(permissions);
        let file = builder.tempfile_in(folder).with_context(|| folder.display().to_string())?;
        Ok(Unfinished { file })
    }

    /// Another handle to write it.
    ///
    /// # Errors
    /// The system has no more of them.
    pub fn writer(&self) -> anyhow::Result<File> {
        self.file.as_file().try_clone().with_context(|| self.file.path().display().to_string())
    }

    /// BLAKE3 of what it has.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn hash(&self) -> anyhow::Result<String> {
        id_of(self.file.path())
    }

    /// It is complete: from now on it is there, in the same folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self, path: PathBuf) -> anyhow::Result<()> {
        let name = || path.display().to_string();
        self.file.as_file().sync_all().with_context(name)?;
        self.file.persist(&path).with_context(name)?;
        File::open(folder_of(&path)).and_then(|folder| folder.sync_all()).with_context(name)
    }
}

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn files_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let name = || folder.display().to_string();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(name)? {
        names.extend(entry.with_context(name)?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each makes it, and writes at once.
    #[test]
    fn a_store_is_made_by_several_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..100 {
            let store = folder.path().join(round.to_string());
            let start = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                let made = || {
                    start.wait();
                    Store::open_or_make(&store).and_then(|store| store.write().map(|_| ()))
                };
                for one in [(); 4].map(|()| scope.spawn(made)) {
                    one.join().unwrap().unwrap();
                }
            });
        }
    }
}
