//! `hbbp-fleet push`: finished recordings go to where all are collected.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt};
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use crate::evidence::id_of;
use crate::places::{Place, is_recording, is_url, sent_name};

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

/// Sends all that is finished.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let (files, notes) = finished_in(&args.folder)?;
    notes.iter().for_each(|note| eprintln!("hbbp-fleet: {note}"));
    if !is_url(&args.destination) {
        fs::create_dir_all(&args.destination).with_context(|| args.destination.display().to_string())?;
    }
    let place = Place::open(&args.destination)?;
    let (mut sent, mut before) = (0, 0);
    let all = files.len();
    let mut outcomes = futures::stream::iter(files).map(|file| sent_once(&place, file)).buffered(TOGETHER);
    let stopped = loop {
        match outcomes.try_next().await {
            Ok(Some(Outcome::Sent)) => sent += 1,
            Ok(Some(Outcome::Before)) => before += 1,
            Ok(Some(Outcome::Gone)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let there = if before > 0 { format!("; {before} were there before") } else { String::new() };
    eprintln!("hbbp-fleet: {sent} of {all} recordings sent to {}{there}", args.destination.display());
    match stopped {
        Some(error) => Err(error.context("not all was sent: run it again to go on")),
        None => Ok(()),
    }
}

/// The recordings in a folder that are finished, in the order of their names, and what is to be said of others.
fn finished_in(folder: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<String>)> {
    let context = || folder.display().to_string();
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !is_recording(&name) || !path.is_file() {
            continue;
        }
        match state_of(&path) {
            Ok(State::Finished) => files.push(path),
            // What a recorder that was killed has left is called so by the next one.
            Ok(State::Unfinished) if name.ends_with(".cut.data") => files.push(path),
            Ok(State::Unfinished) => {
                notes.push(format!("{} is being written, or its recorder was killed: it stays here", path.display()))
            }
            Ok(State::Other) => notes.push(format!("{} is no recording: it stays here", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
    files.sort();
    notes.sort();
    Ok((files, notes))
}

/// Whether a recorder is done with a file.
enum State {
    Finished,
    Unfinished,
    Other,
}

fn state_of(file: &Path) -> std::io::Result<State> {
    let mut begin = Vec::new();
    File::open(file)?.take(56).read_to_end(&mut begin)?;
    let number = |at: usize| begin.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    Ok(match () {
        () if begin.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => State::Finished,
        () if !begin.starts_with(b"PERFILE2") => State::Other,
        // Of a pipe: nothing says that it is whole.
        () if number(8) == Some(16) => State::Finished,
        // The size of the data is written last.
        () if number(48).is_none_or(|bytes| bytes == 0) => State::Unfinished,
        () => State::Finished,
    })
}

/// Sends a file if it is not there.
async fn sent_once(place: &Place, file: PathBuf) -> anyhow::Result<Outcome> {
    let context = || file.display().to_string();
    let opened = match File::open(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::Gone),
        opened => opened.with_context(context)?,
    };
    let bytes = opened.metadata().with_context(context)?.len();
    let id = match id_of(&file) {
        Err(_) if !file.exists() => return Ok(Outcome::Gone),
        id => id?,
    };
    let location = place.location(&sent_name(&file.file_name().unwrap_or_default().to_string_lossy(), &id));
    match place.objects.head(&location).await {
        Ok(there) if there.size == bytes => return Ok(Outcome::Before),
        Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
        // Who may only write is not told what is there.
        Err(object_store::Error::PermissionDenied { .. }) => {}
        Err(error) => return Err(error).with_context(context),
    }
    if bytes <= PIECE {
        let content = piece_of(&opened, PIECE + 1).with_context(context)?;
        check(blake3::hash(&content), &id).with_context(context)?;
        place.objects.put(&location, PutPayload::from(content)).await.with_context(context)?;
    } else {
        let size = PIECE.max(bytes / MOST_PIECES);
        let mut upload = place.objects.put_multipart(&location).await.with_context(context)?;
        if let Err(error) = in_pieces(upload.as_mut(), &opened, size, &id).await {
            // What is not complete counts nowhere; if this fails, too, the store's own rules remove it.
            let _ = upload.abort().await;
            return Err(error).with_context(context);
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
