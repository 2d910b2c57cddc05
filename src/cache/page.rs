//! Pages that are kept whole, with what must be as it was.

use std::borrow::Cow;

use analyzer::annotate::SourceFiles;
use analyzer::{Analysis, BinarySearch, Searched};
use serde::{Deserialize, Serialize};

use super::Cache;
use super::entry::{self, Entry};
use super::key::Key;

/// A page of a recording, and what was said when it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page {
    pub html: String,
    pub said: Vec<String>,
}

/// A page and what it depends on beside its key.
#[derive(Serialize, Deserialize)]
struct KeptPage<'a> {
    searched: Searched<'a>,
    files: Cow<'a, SourceFiles>,
    page: Cow<'a, Page>,
}

/// Where a page is kept.
pub struct PlaceOfPage<'a> {
    pub(super) cache: Cache<'a>,
    pub(super) key: Key,
    pub(super) search: BinarySearch,
}

impl PlaceOfPage<'_> {
    /// The page, if it would be made again as it is.
    pub fn find(&self) -> Option<Page> {
        let (folder, name) = (&self.cache.folder, self.key.name());
        let KeptPage { searched, files, page } = Entry::open(&self.key, folder.open(&name)?)?.value.get()?;
        let is_same = files.are_the_same() && searched.is_found_again(&self.search, self.cache.threads);
        is_same.then(|| {
            folder.was_used(&name);
            page.into_owned()
        })
    }

    /// Keeps a page of an analysis that was made since the cache was asked for it, unless what it shows may have changed meanwhile. `files`: those
    /// of the source.
    pub fn keep(&self, page: &Page, analysis: &Analysis, files: &SourceFiles) {
        let _ = self.try_to_keep(page, analysis, files);
    }

    fn try_to_keep(&self, page: &Page, analysis: &Analysis, files: &SourceFiles) -> Option<()> {
        let began = self.cache.began;
        if analysis.summary.has_trace() || !files.tell_changes_after(began) {
            return None;
        }
        let searched = Searched::of(analysis, began)?;
        let kept = KeptPage { searched, files: Cow::Borrowed(files), page: Cow::Borrowed(page) };
        self.cache.is_unchanged()?.then_some(())?;
        self.cache.folder.write(&self.key.name(), &entry::written(&self.key, &kept, &[])?)
    }
}
