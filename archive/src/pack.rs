//! Writes an archive.

use std::fs::File;
use std::io::{self, Read, Write};

use analyzer::code::Image;
use anyhow::{Context, bail};
use formats::archive::{DOCUMENT, LARGEST_DOCUMENT};
use tar::{Builder, EntryType, Header};
use zstd::Encoder;

use crate::{Plan, PlannedFile};

/// Files and a recording become a quarter with it; higher ones take much longer for little.
/// `packaging/make` leaves out of zstd what higher ones take.
const LEVEL: i32 = 3;

/// Writes what is planned; the same files give the same bytes. `progress` is called with the bytes that were read, and all of them.
///
/// # Errors
/// A file cannot be read, is shorter than it was, or the archive cannot be written.
pub fn write(plan: &Plan, out: &mut dyn Write, progress: &dyn Fn(u64, u64)) -> anyhow::Result<()> {
    let mut tar = Builder::new(Encoder::new(out, LEVEL)?);
    let document = serde_json::to_vec(&plan.contents)?;
    if document.len() as u64 > LARGEST_DOCUMENT {
        bail!(
            "its {} modules are too many: {DOCUMENT} would have {} bytes, at most {LARGEST_DOCUMENT} are read; \
             without --all there are fewer",
            plan.contents.modules.len(),
            document.len()
        );
    }
    tar.append_data(&mut header(document.len() as u64), DOCUMENT, &*document)?;
    let (mut done, all) = (0, plan.contents.bytes());
    for PlannedFile { name, place, bytes, made } in &plan.files {
        progress(done, all);
        let context = || place.display().to_string();
        let from: Box<dyn Read> = match made.as_ref().and_then(Image::bytes_in_memory) {
            Some(made) => Box::new(made),
            None => Box::new(File::open(place).with_context(context)?),
        };
        let mut left = Exactly { from, left: *bytes };
        match tar.append_data(&mut header(*bytes), name, &mut left) {
            Err(error) if left.left > 0 && error.kind() == io::ErrorKind::UnexpectedEof => {
                bail!("{} changed while it was read: begin again", place.display())
            }
            other => other?,
        }
        done += bytes;
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

/// Nothing in it depends on the machine or the time.
fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// As many bytes as were announced, whatever happens to the file meanwhile.
struct Exactly<'a> {
    from: Box<dyn Read + 'a>,
    left: u64,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let bytes = Read::by_ref(&mut self.from).take(self.left).read(buffer)?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= bytes as u64;
        Ok(bytes)
    }
}
