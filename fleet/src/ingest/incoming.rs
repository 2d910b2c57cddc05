//! The files that are put in, wherever they are: named ones, those of folders and of buckets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, bail};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use tempfile::{NamedTempFile, TempPath};

use crate::evidence::id_of;
use crate::places::{Place, id_in, is_recording};

/// A file, which may be elsewhere.
pub enum Incoming {
    /// One that was named, or is in a folder.
    Here(PathBuf),
    /// One of a bucket.
    There(Arc<Place>, ObjectMeta),
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
    let place = Arc::new(Place::open(word)?);
    let found = place.all().map(|found| found.with_context(|| word.display().to_string()));
    let incoming = move |found: anyhow::Result<ObjectMeta>| {
        let place = Arc::clone(&place);
        async move {
            let found = match found {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            let is_recording = found.location.filename().is_some_and(is_recording);
            let incoming = || match place.file(&found.location) {
                Some(file) => Incoming::Here(file),
                None => Incoming::There(Arc::clone(&place), found.clone()),
            };
            is_recording.then(|| Ok(incoming()))
        }
    };
    Ok(found.filter_map(incoming).boxed())
}

impl Incoming {
    /// What tells its content from all others, if its name says it: as it was sent.
    pub fn id(&self) -> Option<&str> {
        match self {
            Incoming::Here(path) => id_in(path.file_name()?.to_str()?),
            Incoming::There(_, found) => id_in(found.location.filename()?),
        }
    }

    /// What it is called in messages and tables.
    pub fn name(&self) -> String {
        match self {
            Incoming::Here(path) => path.display().to_string(),
            Incoming::There(place, found) => place.name_of(&found.location),
        }
    }

    /// Copies it to this machine, if it is elsewhere.
    ///
    /// # Errors
    /// The store does not answer, there is no room, or it is not what its name says.
    pub async fn local(&self) -> anyhow::Result<Local> {
        let name = self.name();
        let (place, found) = match self {
            Incoming::Here(path) => {
                self.check(path)?;
                return Ok(Local { name, path: path.clone(), written: None, _kept: None });
            }
            Incoming::There(place, found) => (place, found),
        };
        let mut copy = NamedTempFile::with_prefix("hbbp-fleet-").context("a temporary file")?;
        place.copy(&found.location, &mut copy).await.with_context(|| name.clone())?;
        let kept = copy.into_temp_path();
        self.check(&kept)?;
        Ok(Local { name, path: kept.to_path_buf(), written: Some(found.last_modified.into()), _kept: Some(kept) })
    }

    /// Refuses a file that was damaged since it was sent.
    fn check(&self, copy: &Path) -> anyhow::Result<()> {
        if let Some(id) = self.id()
            && id_of(copy)? != id
        {
            bail!("{} is damaged: it has another content than its name says; send it again", self.name());
        }
        Ok(())
    }
}
