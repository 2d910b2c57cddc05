//! Recordings that are known again without a look at all of their bytes.
//!
//! ```text
//! state of the file (device, inode, size, mtime, ctime) -- key --> content, glimpse     ~/.cache/hbbp/contents
//! ```
//!
//! To read and digest a large recording takes longer than all else that a second report of it needs. As the index of git does, this trusts
//! what the file system says of a file that was read before, with two differences. `ctime` is part of it, which nobody can set: one byte that is
//! written in place, with `mtime` put back, is another state. And some of the bytes are looked at all the same: a file system that was rolled
//! back, or that says nothing of changes, would show the old state.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use analyzer::FileIdentity;
use blake3::Hasher;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::entry::{self, Entry};
use super::folder::Folder;
use super::key::Key;

/// What is known of a file in its state.
#[derive(Serialize, Deserialize)]
struct Known {
    content: Content,
    glimpse: [u8; 32],
}

/// The content of a file in that state, which it has for so many threads to read. `None` if it cannot be read, or is changing.
///
/// A file that changed within the last two seconds is read, and is read again the next time: it could change once more, and its state look the
/// same.
pub fn content(file: &File, state: FileIdentity, threads: usize) -> Option<Content> {
    let began = SystemTime::now();
    let (length, folder) = (state.size(), Folder::of_contents());
    let key = Key::of_file(&state);
    let known = || Entry::open(&key, folder.as_ref()?.open(&key.name())?)?.value.get::<Known>();
    if let Some(known) = known()
        && known.content.length() == length
        && glimpse(file, length).ok()? == known.glimpse
    {
        folder.iter().for_each(|folder| folder.was_used(&key.name()));
        return Some(known.content);
    }
    let content = Content::of(file, length, threads).ok()?;
    let glimpse = glimpse(file, length).ok()?;
    if state.tells_changes_after(began)
        && FileIdentity::of(&file.metadata().ok()?) == state
        && let Some(folder) = folder
        && let Some(bytes) = entry::written(&key, &Known { content, glimpse }, &[])
    {
        let _ = folder.write(&key.name(), &bytes);
    }
    Some(content)
}

/// A digest of a file's first and last bytes, and of some between them.
fn glimpse(file: &File, length: u64) -> io::Result<[u8; 32]> {
    /// Header, attributes; features, metadata.
    const ENDS: u64 = 1 << 16;
    const BETWEEN: u64 = 30;
    const PIECE: u64 = 1 << 12;
    let ends = [(0, ENDS), (length.saturating_sub(ENDS), ENDS)];
    let between = (1..=BETWEEN).map(|index| (length / (BETWEEN + 1) * index, PIECE));
    let (mut digest, mut buffer) = (Hasher::new(), vec![0; ENDS as usize]);
    for (start, size) in ends.into_iter().chain(between) {
        let bytes = &mut buffer[..size.min(length - start) as usize];
        file.read_exact_at(bytes, start)?;
        digest.update(bytes);
    }
    Ok(*digest.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_glimpse_sees_both_ends_and_some_of_the_rest() {
        for length in [0_u64, 1, 5000, 1 << 20] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![7; length as usize]).unwrap();
            let before = glimpse(&file, length).unwrap();
            for at in [0, length / 31, length.saturating_sub(1)].into_iter().filter(|at| *at < length) {
                file.write_all_at(&[8], at).unwrap();
                assert_ne!(glimpse(&file, length).unwrap(), before, "byte {at} of {length}");
                file.write_all_at(&[7], at).unwrap();
            }
            assert_eq!(glimpse(&file, length).unwrap(), before);
            assert!(glimpse(&file, length + 1).is_err(), "it got shorter");
        }
    }
}
