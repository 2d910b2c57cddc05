//! Reads an archive: files of it go into a folder, and nothing anywhere else.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};
use formats::archive::{Contents, DOCUMENT, LARGEST_DOCUMENT, LONGEST_NAME, RECORDING};
use tar::{Archive, EntryType};
use zstd::Decoder;

/// The window of zstd, as a power of two of bytes: what `hbbp archive` needs is 2 MiB.
const LARGEST_WINDOW: u32 = 27;
/// How much larger than the archive its files may be: recordings of one loop shrink to a hundredth.
const MOST_EXPANSION: u64 = 1000;
/// What the files of any archive may have, in bytes.
const SMALL: u64 = 64 << 20;

/// Whether a file is an archive of `hbbp archive`: by its first bytes.
pub fn is_archive(file: &Path) -> bool {
    let begin = || -> io::Result<Vec<u8>> {
        let mut begin = Vec::new();
        decoder(File::open(file)?)?.take(DOCUMENT.len() as u64 + 1).read_to_end(&mut begin)?;
        Ok(begin)
    };
    begin().is_ok_and(|begin| begin.strip_prefix(DOCUMENT.as_bytes()) == Some(b"\0"))
}

/// Puts the files of an archive into an empty folder, and returns what it says of itself.
///
/// # Errors
/// It is damaged or cut off, states other files than it has or more bytes than are believed, or there is no room for them.
pub fn unpack(file: &Path, folder: &Path) -> anyhow::Result<Contents> {
    let opened = File::open(file)?;
    let packed = opened.metadata()?.len();
    let mut archive = Archive::new(decoder(opened)?);
    let mut entries = Entries { entries: archive.entries()?.raw(true) };
    let Some((name, bytes, entry)) = entries.next()? else { bail!("it is empty") };
    if name != DOCUMENT {
        bail!("it begins with {name:?}, expected {DOCUMENT}");
    }
    if bytes > LARGEST_DOCUMENT {
        bail!("{DOCUMENT} has {bytes} bytes, more than {LARGEST_DOCUMENT}");
    }
    let mut document = Vec::new();
    entry.take(bytes).read_to_end(&mut document).context(CUT_OFF)?;
    let contents = Contents::read(&document)?;
    let most = packed.saturating_mul(MOST_EXPANSION).max(SMALL);
    let needed = contents.bytes_on_disk();
    if needed > most {
        bail!("it needs {needed} bytes, packed into {packed}: more than is believed");
    }
    let mut expected: BTreeMap<&str, u64> =
        contents.files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    expected.insert(RECORDING, contents.recording.bytes);
    let mut left = expected.clone();
    while let Some(next) = left.first_key_value() {
        let Some((name, bytes, entry)) = entries.next()? else { bail!("{} is missing: {CUT_OFF}", next.0) };
        match (left.remove(name.as_str()), expected.get(name.as_str())) {
            (Some(stated), _) if stated == bytes => {
                put(entry, bytes, &folder.join(&name)).with_context(|| name.clone())?
            }
            (Some(stated), _) => bail!("{name} has {bytes} bytes, {stated} are stated"),
            (None, Some(_)) => bail!("{name} is in it twice"),
            (None, None) => bail!("{name:?} is in it, and {DOCUMENT} does not list it"),
        }
    }
    Ok(contents)
}

const CUT_OFF: &str = "it is cut off or damaged";

fn decoder(file: File) -> io::Result<Decoder<'static, BufReader<File>>> {
    let mut decoder = Decoder::new(file)?;
    decoder.window_log_max(LARGEST_WINDOW)?;
    Ok(decoder)
}

/// A new file with what an entry has.
fn put(mut entry: impl Read, bytes: u64, place: &Path) -> anyhow::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(place)?;
    let written = io::copy(&mut entry, &mut file)?;
    if written != bytes {
        bail!(CUT_OFF);
    }
    Ok(())
}

/// The files of a tar; anything else in it is refused.
struct Entries<'a, R: Read> {
    entries: tar::Entries<'a, R>,
}

impl<'a, R: Read> Entries<'a, R> {
    /// The next file: its name, its size in bytes, its bytes.
    fn next(&mut self) -> anyhow::Result<Option<(String, u64, tar::Entry<'a, R>)>> {
        let mut long = None;
        loop {
            let Some(entry) = self.entries.next() else { return Ok(None) };
            let mut entry = entry.context(CUT_OFF)?;
            let bytes = entry.header().entry_size().context(CUT_OFF)?;
            match entry.header().entry_type() {
                EntryType::Regular => {
                    let name = long.unwrap_or_else(|| entry.header().path_bytes().into_owned());
                    let name = String::from_utf8(name).context("a name in it is no UTF-8")?;
                    return Ok(Some((name, bytes, entry)));
                }
                EntryType::GNULongName if long.is_none() && bytes <= LONGEST_NAME as u64 + 1 => {
                    let mut name = Vec::new();
                    entry.read_to_end(&mut name).context(CUT_OFF)?;
                    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
                    long = Some(name);
                }
                other => {
                    let name = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
                    bail!("{name:?} in it is of the kind {other:?}: an archive has files only");
                }
            }
        }
    }
}
