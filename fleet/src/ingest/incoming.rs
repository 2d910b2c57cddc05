//! The files that are put in, wherever they are: named ones, those of folders and of buckets.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, bail};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use tempfile::{NamedTempFile, TempPath};
use walkdir::WalkDir;

use crate::evidence::id_of;
use crate::places::{Bucket, Place, id_in, is_recording};

/// Larger objects of buckets are not copied to this machine, which may have no room for them.
const MOST_BYTES: u64 = 16 << 30;

/// A file, which may be elsewhere.
pub enum Incoming {
    /// One that was named, or is in a folder.
    Here(PathBuf),
    /// One of a bucket.
    There(Arc<Bucket>, ObjectMeta),
    /// What is in a folder and cannot be looked at: its name, and why.
    Lost(PathBuf, String),
}

/// A file that is here.
pub struct Local {
    /// What it is called in messages and tables.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// When it was written, if that is not when this file was.
    pub written: Option<SystemTime>,
    /// It goes when it was read.
    _kept: Option<TempPath>,
}

/// All files that these words name, in their order. Of folders and buckets, those that are called like recordings and are finished.
pub fn all(words: &[PathBuf]) -> BoxStream<'_, anyhow::Result<Incoming>> {
    futures::stream::iter(words).map(|word| of_word(word)).try_flatten().boxed()
}

fn of_word(word: &Path) -> anyhow::Result<BoxStream<'_, anyhow::Result<Incoming>>> {
    if !Place::is_named_by(word) {
        return Ok(futures::stream::iter([Ok(Incoming::Here(word.to_owned()))]).boxed());
    }
    let bucket = match Place::open(word)? {
        Place::Folder(folder) => return Ok(futures::stream::iter(in_folder(&folder)).boxed()),
        Place::Bucket(bucket) => Arc::new(bucket),
    };
    let found = bucket.all().map(|found| found.with_context(|| word.display().to_string()));
    let incoming = move |found: anyhow::Result<ObjectMeta>| {
        let bucket = Arc::clone(&bucket);
        async move {
            let found = match found {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            let is_recording = found.location.filename().is_some_and(is_recording);
            is_recording.then(|| Ok(Incoming::There(bucket, found)))
        }
    };
    Ok(found.filter_map(incoming).boxed())
}

/// The recordings in a folder and in folders below it, in the order of their names. Links are followed.
fn in_folder(folder: &Path) -> impl Iterator<Item = anyhow::Result<Incoming>> + Send + use<> {
    let entries = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    entries.filter_map(|entry| match entry {
        Ok(entry) => {
            let is_recording = entry.file_type().is_file() && is_recording(&entry.file_name().to_string_lossy());
            is_recording.then(|| Ok(Incoming::Here(entry.into_path())))
        }
        // It went meanwhile, or is a link to nothing.
        Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) => None,
        Err(error) => {
            let path = error.path().unwrap_or(Path::new("")).to_owned();
            let why = match (error.loop_ancestor(), error.io_error()) {
                (Some(ancestor), _) => format!("it is a link to {}, which it is in", ancestor.display()),
                (None, Some(error)) => error.to_string(),
                (None, None) => "it cannot be looked at".to_owned(),
            };
            Some(Ok(Incoming::Lost(path, why)))
        }
    })
}

impl Incoming {
    /// What tells its content from all others, if its name says it: as it was sent.
    pub fn id(&self) -> Option<&str> {
        match self {
            Incoming::Here(path) => id_in(path.file_name()?.to_str()?),
            Incoming::There(_, found) => id_in(found.location.filename()?),
            Incoming::Lost(..) => None,
        }
    }

    /// What it is called in messages and tables.
    pub fn name(&self) -> String {
        match self {
            Incoming::Here(path) | Incoming::Lost(path, _) => path.display().to_string(),
            Incoming::There(bucket, found) => bucket.name_of(&found.location),
        }
    }

    /// Copies it to this machine, if it is elsewhere.
    ///
    /// # Errors
    /// The store does not answer, there is no room, it is not what its name says, or it cannot be looked at.
    pub async fn local(&self) -> anyhow::Result<Local> {
        let name = self.name();
        let (bucket, found) = match self {
            Incoming::Here(path) => {
                self.check(path)?;
                return Ok(Local { name, path: path.clone(), written: None, _kept: None });
            }
            Incoming::Lost(_, why) => bail!("{name}: {why}"),
            Incoming::There(bucket, found) => (bucket, found),
        };
        if found.size > MOST_BYTES {
            bail!(
                "{name} has {} bytes, and up to {MOST_BYTES} are copied from a bucket: copy it yourself, and give the file",
                found.size
            );
        }
        let mut copy = NamedTempFile::with_prefix("hbbp-fleet-").context("a temporary file")?;
        bucket.copy(&found.location, &mut copy).await.with_context(|| name.clone())?;
        let kept = copy.into_temp_path();
        self.check(&kept)?;
        Ok(Local { name, path: kept.to_path_buf(), written: Some(found.last_modified.into()), _kept: Some(kept) })
    }

    /// Refuses a file that was damaged since it was sent.
    fn check(&self, copy: &Path) -> anyhow::Result<()> {
        if let Some(id) = self.id()
            && id_of(copy)? != id
        {
            // A sender cannot tell that an object is damaged.
            let first = if matches!(self, Incoming::There(..)) { "remove it there, and " } else { "" };
            bail!("{} is damaged: it has another content than its name says; {first}send it again", self.name());
        }
        Ok(())
    }
}
