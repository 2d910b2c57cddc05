//! Where recordings are sent to and come from: a folder, or a bucket of an object store that speaks S3.

#[cfg(feature = "s3")]
mod s3;

#[cfg(not(feature = "s3"))]
mod s3 {
    /// There are none in this build.
    pub fn bucket(_: &str) -> anyhow::Result<std::sync::Arc<dyn object_store::ObjectStore>> {
        anyhow::bail!(
            "this hbbp-fleet was built without its feature s3: build it with `cargo build --release` in fleet/"
        )
    }
}

use std::io::Write;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

/// How names of recordings end, and those of archives of them.
pub const ENDINGS: [&str; 2] = [".data", ".tar.zst"];

/// Where recordings are.
#[derive(Clone, Debug)]
pub enum Place {
    /// A folder, by its canonical path.
    Folder(PathBuf),
    /// A bucket, or what has a prefix in it.
    Bucket(Bucket),
}

/// A bucket with recordings in it.
#[derive(Clone, Debug)]
pub struct Bucket {
    name: String,
    /// What is in it.
    pub objects: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Place {
    /// A folder that is there, or the URL of a bucket.
    ///
    /// # Errors
    /// There is no such folder, or it is another kind of URL.
    pub fn open(word: &FilePath) -> anyhow::Result<Self> {
        let text = &*word.to_string_lossy();
        let folder = |path: &FilePath| path.canonicalize().map(Place::Folder).with_context(|| text.to_owned());
        match text.split_once("://") {
            _ if !is_url(word) => folder(word),
            Some(("file", path)) => folder(FilePath::new(path)),
            Some(("s3" | "s3a", bucket)) => Bucket::open(bucket, text).map(Place::Bucket),
            Some((scheme, _)) => {
                bail!("{text}: {scheme}:// is not known, expected a folder or s3://BUCKET/PREFIX")
            }
            None => folder(word),
        }
    }

    /// Whether a text names a place, and not a file.
    pub fn is_named_by(word: &FilePath) -> bool {
        is_url(word) || word.is_dir()
    }
}

impl Bucket {
    fn open(bucket: &str, text: &str) -> anyhow::Result<Self> {
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        if bucket.is_empty() {
            bail!("{text}: expected s3://BUCKET/PREFIX");
        }
        let prefix = Path::parse(prefix.trim_matches('/')).with_context(|| text.to_owned())?;
        let objects = s3::bucket(bucket).with_context(|| text.to_owned())?;
        Ok(Bucket { name: text.trim_end_matches('/').to_owned(), objects, prefix })
    }

    /// Where a file of that name is.
    pub fn location(&self, file: &str) -> Path {
        self.prefix.clone().join(file)
    }

    /// All that is in it, in folders below it, too.
    pub fn all(&self) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.objects.list(Some(&self.prefix))
    }

    /// What a file in it is called in messages, and where it came from in tables.
    pub fn name_of(&self, location: &Path) -> String {
        let below = location.as_ref().strip_prefix(self.prefix.as_ref()).unwrap_or(location.as_ref());
        format!("{}/{}", self.name, below.trim_start_matches('/'))
    }

    /// Copies a file of it.
    ///
    /// # Errors
    /// It is not there, the store does not answer, or `out` cannot be written.
    pub async fn copy(&self, location: &Path, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        let mut content = self.objects.get(location).await?.into_stream();
        while let Some(bytes) = content.next().await {
            out.write_all(&bytes?)?;
        }
        Ok(())
    }
}

/// Whether it is no path.
pub fn is_url(word: &FilePath) -> bool {
    word.to_str().is_some_and(|text| text.contains("://"))
}

/// The name under which a recording is sent: its content is in it, so that it is there once, and is told without being read. One that was sent
/// before keeps its name.
pub fn sent_name(file: &str, id: &str) -> String {
    if id_in(file) == Some(id) {
        return file.to_owned();
    }
    let ending = ending_of(file).unwrap_or_default();
    format!("{}.{id}{ending}", &file[..file.len() - ending.len()])
}

/// The content of a file that was sent, by its name.
pub fn id_in(name: &str) -> Option<&str> {
    let (_, id) = name.strip_suffix(ending_of(name)?)?.rsplit_once('.')?;
    let is_id = id.len() == 2 * blake3::OUT_LEN && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then_some(id)
}

/// Whether a name is that of a recording that is finished: it is hidden before.
pub fn is_recording(name: &str) -> bool {
    !name.starts_with('.') && ending_of(name).is_some()
}

fn ending_of(name: &str) -> Option<&'static str> {
    ENDINGS.into_iter().find(|ending| name.len() > ending.len() && name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_content_in_them() {
        let id = blake3::hash(b"content").to_string();
        for file in ["web.2026-11-26T23-10-00Z.data", "a.tar.zst", "b.cut.data"] {
            let sent = sent_name(file, &id);
            assert!(is_recording(file) && is_recording(&sent) && sent.ends_with(ending_of(file).unwrap()), "{sent}");
            assert_eq!((id_in(&sent), id_in(file)), (Some(&*id), None));
            assert_eq!(sent_name(&sent, &id), sent);
        }
        for other in [".web.data.partial", ".hidden.data", ".data", "web.json", ""] {
            assert!(!is_recording(other), "{other}");
        }
        assert_eq!(id_in(&format!("a.{}.data", id.to_uppercase())), None);
        assert_eq!(id_in(&format!("a.{}.data", &id[1..])), None);
    }

    #[test]
    fn what_is_no_place_is_an_error() {
        let error = |text: &str| format!("{:#}", Place::open(FilePath::new(text)).unwrap_err());
        assert!(error("s3://").contains("expected s3://BUCKET/PREFIX"));
        assert!(error("gopher://x").contains("gopher:// is not known"));
        assert!(error("/nonexistent").contains("/nonexistent"));
        if cfg!(feature = "s3") {
            let place = Place::open(FilePath::new("s3://bucket/a/b/")).unwrap();
            let Place::Bucket(bucket) = place else { panic!("{place:?}") };
            assert_eq!(bucket.location("file").as_ref(), "a/b/file");
            assert_eq!(bucket.name_of(&bucket.location("file")), "s3://bucket/a/b/file");
        } else {
            assert!(error("s3://bucket/a/b/").contains("without its feature s3"));
        }
    }
}
