//! What recorders found in the code of programs and libraries, kept for the next recording.
//!
//! ```text
//! start of the machine, this executable -- key --> files in their states, findings     ~/.cache/hbbp/searches
//! ```
//!
//! It holds until the machine is started again: only while it runs does a number of a device mean the same file system, and does nobody change files
//! unseen, from another system or by an image that is put in place of the disk. Another build of `hbbp` may search for something else.

use std::collections::HashSet;
use std::fs;

use analyzer::FileIdentity;
use collector::tracer::{SearchedFile, SearchedFiles};

use super::entry::{self, Entry};
use super::folder::Folder;
use super::key::Key;

/// Files of an entry; those that were of use lately stay. A machine has some thousand programs and libraries.
const MOST_FILES: usize = 4096;

/// Where it is kept.
pub struct Searches {
    folder: Folder,
    key: Key,
}

impl Searches {
    /// `None` if the user has no folder for it, or if the kernel does not tell when it was started.
    pub fn of_user() -> Option<Self> {
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Searches { folder: Folder::of_searches()?, key: Key::of_searches(start.trim())? })
    }

    /// What is known.
    pub fn known(&self) -> SearchedFiles {
        let kept = self.kept();
        if !kept.is_empty() {
            self.folder.was_used(&self.key.name());
        }
        SearchedFiles::with(kept)
    }

    /// Keeps what a recording found. Of two recorders that end at the same moment, one's may be lost: it is found again.
    pub fn keep(&self, searched: &SearchedFiles) {
        let Some(files) = searched.worth_keeping() else { return };
        let _ = self.keep_files(files);
    }

    fn keep_files(&self, mut files: Vec<SearchedFile>) -> Option<()> {
        let new: HashSet<(FileIdentity, u64)> = files.iter().map(|new| (new.file, new.mount)).collect();
        // Others may have kept more meanwhile.
        files.extend(self.kept().into_iter().filter(|before| !new.contains(&(before.file, before.mount))));
        files.truncate(MOST_FILES);
        self.folder.write(&self.key.name(), &entry::written(&self.key, &files, &[])?)
    }

    fn kept(&self) -> Vec<SearchedFile> {
        let entry = || Entry::open(&self.key, self.folder.open(&self.key.name())?)?.value.get();
        entry().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::tests::folder;
    use super::*;

    /// Bytes of a folder.
    const MOST_OF_TEST: u64 = 1 << 21;

    fn searches(start: &str, folder: Folder) -> Searches {
        Searches { folder, key: Key::of_searches(start).unwrap() }
    }

    fn file(inode: u64, makes_filters: bool) -> SearchedFile {
        let fields = (u64::MAX, inode, u64::MAX, (i64::MIN, i64::MIN), (i64::MIN, i64::MIN), u64::MAX, makes_filters);
        postcard::from_bytes(&postcard::to_stdvec(&fields).unwrap()).unwrap()
    }

    /// Since one start of the machine, as another recorder sees it.
    fn again(searches: &Searches) -> Searches {
        Searches { folder: searches.folder.again(), key: searches.key }
    }

    #[test]
    fn what_recorders_found_adds_up_and_the_latest_is_first() {
        let (_place, folder) = folder(MOST_OF_TEST);
        let one = searches("start", folder);
        let other = again(&one);
        assert_eq!((one.kept(), other.kept()), (vec![], vec![]));
        one.keep_files(vec![file(1, false), file(2, true)]).unwrap();
        other.keep_files(vec![file(3, true), file(2, true)]).unwrap();
        let expected = [file(3, true), file(2, true), file(1, false)];
        assert_eq!((one.kept(), other.kept()), (expected.to_vec(), expected.to_vec()));
        // What has no news writes nothing.
        one.keep(&one.known());
        assert_eq!(one.kept(), expected);
    }

    #[test]
    fn what_was_of_use_lately_stays() {
        let (_place, folder) = folder(MOST_OF_TEST);
        let searches = searches("start", folder);
        let most = MOST_FILES as u64;
        searches.keep_files((0..most).map(|inode| file(u64::MAX - inode, false)).collect()).unwrap();
        searches.keep_files(vec![file(1, true), file(2, false)]).unwrap();
        let kept = searches.kept();
        assert_eq!((kept.len(), kept[0], kept[2]), (MOST_FILES, file(1, true), file(u64::MAX, false)));
        assert_eq!(kept[MOST_FILES - 1], file(u64::MAX - (most - 3), false));
    }

    #[test]
    fn another_start_of_the_machine_knows_nothing() {
        let (_place, folder) = folder(MOST_OF_TEST);
        let before = searches("start", folder);
        before.keep_files(vec![file(1, false)]).unwrap();
        assert_eq!(searches("another", before.folder.again()).kept(), []);
    }

    #[test]
    fn a_damaged_entry_is_no_entry_and_the_next_takes_its_place() {
        let (_place, folder) = folder(MOST_OF_TEST);
        let searches = searches("start", folder);
        searches.keep_files(vec![file(1, false), file(2, false)]).unwrap();
        let name = searches.key.name();
        let whole = searches.folder.read(&name).unwrap();
        let other = Key::of_searches("another").unwrap();
        let mut damaged = vec![
            Vec::new(),
            b"hbbpkept".to_vec(),
            entry::written(&other, &vec![file(1, false)], &[]).unwrap(),
            entry::written(&searches.key, &"another form", &[]).unwrap(),
            entry::written(&searches.key, &u64::MAX, &[]).unwrap(),
        ];
        damaged.extend((0..whole.len()).step_by(7).map(|length| whole[..length].to_vec()));
        damaged.extend((0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            bytes
        }));
        for bytes in damaged {
            searches.folder.write(&name, &bytes).unwrap();
            assert_eq!(searches.kept(), [], "{} bytes", bytes.len());
        }
        searches.keep_files(vec![file(3, true)]).unwrap();
        assert_eq!(searches.kept(), [file(3, true)]);
    }
}
