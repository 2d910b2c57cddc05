//! `hbbp-fleet push`: finished recordings go to where all are collected.

mod spool;

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use futures::StreamExt;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use crate::evidence::id_of;
use crate::output::say;
use crate::places::{Bucket, Place, is_url, sent_name};
use crate::store::Unfinished;
use spool::Found;

/// Send finished recordings to a folder or an object store
///
/// Those of `hbbp record --rotate` and archives of `hbbp archive`: names that end with .data or .tar.zst. What is there already is not sent
/// again, so it can be run again at any time, after a failure, too; `hbbp-fleet ingest` counts each once. Credentials for s3:// are those of
/// the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL and so on.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder with recordings
    folder: PathBuf,

    /// Where they go: a folder, or s3://BUCKET/PREFIX
    destination: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  hbbp-fleet push /var/lib/hbbp s3://profiles/incoming
  hbbp-fleet push /var/lib/hbbp /mnt/profiles/incoming
  hbbp-fleet ingest store s3://profiles/incoming --keep-going";

/// Files that are sent at once.
const TOGETHER: usize = 4;

/// Bytes that are sent in one piece; larger files are sent in pieces of this size, or of larger ones where there would be too many.
const PIECE: u64 = 8 << 20;
const MOST_PIECES: u64 = 9000;

/// A bucket that failed so often in a row is not asked for the rest: each request is made again for a minute.
const MOST_FAILURES: usize = 8;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was sent.
    Sent,
    /// It was there.
    Before,
    /// It is gone: the recorder keeps so many files only.
    Gone,
}

/// Sends all that is finished. What cannot be sent is named, and keeps nothing else from being sent.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let found = Found::in_folder(&args.folder)?;
    found.notes.iter().chain(&found.errors).for_each(|note| say(note));
    if !is_url(&args.destination) {
        fs::create_dir_all(&args.destination).with_context(|| args.destination.display().to_string())?;
    }
    let place = Place::open(&args.destination)?;
    if let Place::Folder(folder) = &place
        && fs::canonicalize(&args.folder).is_ok_and(|from| from == *folder)
    {
        bail!("{} is both the folder and the destination: name another destination", args.folder.display());
    }
    let (mut sent, mut before, mut failed, mut in_a_row) = (0, 0, found.errors.len(), 0);
    let all = found.files.len() + failed;
    let mut outcomes = futures::stream::iter(found.files).map(|file| sent_once(&place, file)).buffered(TOGETHER);
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(Outcome::Sent) => sent += 1,
            Ok(Outcome::Before) => before += 1,
            Ok(Outcome::Gone) => {}
            Err(error) => {
                failed += 1;
                say(&format!("not sent: {error:#}"));
                if error.chain().any(|cause| cause.is::<object_store::Error>()) {
                    in_a_row += 1;
                    if in_a_row == MOST_FAILURES {
                        break;
                    }
                }
                continue;
            }
        }
        in_a_row = 0;
    }
    let there = if before > 0 { format!("; {before} were there before") } else { String::new() };
    say(&format!("{sent} of {all} recordings sent to {}{there}", args.destination.display()));
    match (failed, in_a_row) {
        (0, _) => Ok(()),
        (_, MOST_FAILURES) => {
            bail!(
                "not all was sent: run it again to go on ({MOST_FAILURES} failed one after the other; the rest was not tried)"
            )
        }
        _ => bail!("not all was sent: run it again to go on ({failed} failed)"),
    }
}

/// Sends a file if it is not there.
async fn sent_once(place: &Place, file: PathBuf) -> anyhow::Result<Outcome> {
    let context = || file.display().to_string();
    let opened = match File::open(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::Gone),
        opened => opened.with_context(context)?,
    };
    let id = match id_of(&file) {
        Err(_) if !file.exists() => return Ok(Outcome::Gone),
        id => id?,
    };
    let name = sent_name(&file.file_name().unwrap_or_default().to_string_lossy(), &id);
    match place {
        Place::Folder(folder) => to_folder(folder, &name, &opened, &id).with_context(context),
        Place::Bucket(bucket) => to_bucket(bucket, &name, &opened, &id).await.with_context(context),
    }
}

/// Copies a file, if none of its content is there. Who may read it may read the copy.
fn to_folder(folder: &Path, name: &str, file: &File, id: &str) -> anyhow::Result<Outcome> {
    let there = folder.join(name);
    if there.is_file() && id_of(&there)? == id {
        return Ok(Outcome::Before);
    }
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let copy = Unfinished::begin_as(folder, fs::Permissions::from_mode(mode))?;
    let (mut out, mut hasher) = (copy.writer()?, blake3::Hasher::new());
    loop {
        let piece = piece_of(file, PIECE)?;
        if piece.is_empty() {
            break;
        }
        hasher.update(&piece);
        out.write_all(&piece).with_context(|| there.display().to_string())?;
    }
    check(hasher.finalize(), id)?;
    copy.finish(there)?;
    Ok(Outcome::Sent)
}

/// Puts a file into a bucket, if none of its name and size is there.
async fn to_bucket(bucket: &Bucket, name: &str, file: &File, id: &str) -> anyhow::Result<Outcome> {
    let (bytes, location) = (file.metadata()?.len(), bucket.location(name));
    match bucket.objects.head(&location).await {
        Ok(there) if there.size == bytes => return Ok(Outcome::Before),
        Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
        // Who may only write is not told what is there.
        Err(object_store::Error::PermissionDenied { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    if bytes <= PIECE {
        let content = piece_of(file, PIECE + 1)?;
        check(blake3::hash(&content), id)?;
        bucket.objects.put(&location, PutPayload::from(content)).await?;
    } else {
        let size = PIECE.max(bytes / MOST_PIECES);
        let mut upload = bucket.objects.put_multipart(&location).await?;
        if let Err(error) = in_pieces(upload.as_mut(), file, size, id).await {
            // What is not complete counts nowhere; if this fails, too, the store's own rules remove it.
            let _ = upload.abort().await;
            return Err(error);
        }
    }
    Ok(Outcome::Sent)
}

async fn in_pieces(upload: &mut dyn MultipartUpload, file: &File, size: u64, id: &str) -> anyhow::Result<()> {
    let mut hasher = blake3::Hasher::new();
    loop {
        let piece = piece_of(file, size)?;
        if piece.is_empty() {
            break;
        }
        hasher.update(&piece);
        upload.put_part(PutPayload::from(piece)).await?;
    }
    check(hasher.finalize(), id)?;
    upload.complete().await?;
    Ok(())
}

/// The next bytes of a file, so many if it has them.
fn piece_of(file: &File, most: u64) -> std::io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    file.take(most).read_to_end(&mut piece)?;
    Ok(piece)
}

fn check(read: blake3::Hash, id: &str) -> anyhow::Result<()> {
    if read.to_hex().as_str() != id {
        bail!("it changed while it was read: run it again when it is complete");
    }
    Ok(())
}
