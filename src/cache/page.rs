//! Pages that are kept whole, with what must be as it was.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::SystemTime;

use analyzer::{Analysis, BinarySearch, FileIdentity, Searched};
use serde::{Deserialize, Serialize};

/// A page of a recording, and what was said when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    pub html: String,
    pub said: Vec<String>,
}

/// Files of source that were looked for, and their states: `None` where there was none.
pub type SourceFiles = [(PathBuf, Option<FileIdentity>)];

/// A page and what it depends on beside its key.
#[derive(Serialize, Deserialize)]
pub struct KeptPage<'a> {
    searched: Searched<'a>,
    files: Cow<'a, SourceFiles>,
    page: Cow<'a, Page>,
}

impl<'a> KeptPage<'a> {
    /// One that was made since `began`. `None` where a later change of a file could not be told.
    pub fn of(page: &'a Page, analysis: &'a Analysis, files: &'a SourceFiles, began: SystemTime) -> Option<Self> {
        let searched = Searched::of(analysis, began)?;
        let tells_changes =
            |(_, state): &(PathBuf, Option<FileIdentity>)| state.is_none_or(|state| state.tells_changes_after(began));
        let (files, page) = (Cow::Borrowed(files), Cow::Borrowed(page));
        files.iter().all(tells_changes).then_some(KeptPage { searched, files, page })
    }

    /// The page, if it would be made again as it is.
    pub fn current(self, search: &BinarySearch, threads: usize) -> Option<Page> {
        let is_same = self.files.iter().all(|(path, state)| FileIdentity::at(path) == *state)
            && self.searched.is_found_again(search, threads);
        is_same.then(|| self.page.into_owned())
    }
}
