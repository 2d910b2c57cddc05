//! What analyses found, kept for the next report; and what recorders found, for the next recording ([`Searches`]).
//!
//! ```text
//! recording  -- content --+                       ~/.cache/hbbp/analyses/<key>
//! options, models       --+-- key -- folder -->   entry: checksum, findings
//! this executable       --+                         |
//! binaries  <----------- found and compared again (`analyzer::Findings`)
//! ```
//!
//! Pages of `hbbp report` are kept in the same way, with the source that they show ([`Page`]).
//!
//! See docs/design/cache.md. Nothing here is ever an error of a report: what cannot be kept is found anew.

mod content;
mod entry;
mod folder;
mod key;
mod known;
mod page;
mod searches;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use analyzer::counting::Detail;
use analyzer::{Analysis, BinarySearch, FileIdentity, Findings, Options};
use perfdata::Recording;

use content::Content;
use entry::Entry;
use folder::Folder;
use key::Key;
pub use page::{Page, PlaceOfPage};
pub use searches::Searches;

/// Recordings that are shorter, in bytes, are analysed about as fast as their analysis is found.
const LEAST_BYTES: u64 = 1 << 20;

/// Where the analysis of a recording is kept, if it is.
pub struct Cache<'a> {
    folder: Folder,
    recording: &'a Recording,
    file: &'a File,
    state: FileIdentity,
    content: Content,
    threads: usize,
    began: SystemTime,
}

impl<'a> Cache<'a> {
    /// Of a recording. `None` if it is too short for that to pay, if it is not there for long (a command was recorded for one report, or a
    /// stream was read), if it changes at this moment, or if the user has no folder for it.
    pub fn of(recording: &'a Recording, threads: usize) -> Option<Self> {
        let began = SystemTime::now();
        let (file, opened) = recording.file()?;
        let now = file.metadata().ok()?;
        let state = FileIdentity::of(opened);
        if opened.len() < LEAST_BYTES || now.nlink() == 0 || state != FileIdentity::of(&now) {
            return None;
        }
        let folder = Folder::of_analyses()?;
        let content = known::content(file, state, threads)?;
        Some(Cache { folder, recording, file, state, content, threads, began })
    }

    /// The analysis with these options, if it was made before with the same executable, and the binaries are the same. `models`: what
    /// `options.rules` are made of.
    pub fn find(&self, options: &Options<'_>, models: &[String]) -> Option<Analysis> {
        // What has calling contexts has branches, too, and what has these has blocks.
        let details = [Detail::Blocks, Detail::Branches, Detail::Calls];
        details.into_iter().filter(|detail| *detail >= options.detail).find_map(|detail| {
            let key = Key::of(&self.content, options, detail, models)?;
            let entry = Entry::open(&key, self.folder.open(&key.name())?)?;
            let mut analysis = self.found(entry, &options.search)?;
            if options.detail < Detail::Branches {
                analysis.flow = None;
            }
            if options.detail < Detail::Calls {
                analysis.calls = None;
            }
            self.folder.was_used(&key.name());
            Some(analysis)
        })
    }

    fn found(&self, Entry { value, replicates }: Entry<File>, search: &BinarySearch) -> Option<Analysis> {
        std::thread::scope(|scope| {
            let read = || replicates.read();
            // They are the larger part.
            let read: Box<dyn FnOnce() -> _> = if self.threads > 1 {
                let reader = scope.spawn(read);
                Box::new(|| reader.join().ok()?)
            } else {
                Box::new(read)
            };
            let findings: Findings<'_> = value.get()?;
            findings.into_analysis(self.recording, search, self.threads, read)
        })
    }

    /// Keeps an analysis that was made after [`Self::of`], unless the recording or a binary may have changed meanwhile.
    pub fn keep(&self, analysis: &Analysis, options: &Options<'_>, models: &[String]) {
        let _ = self.try_to_keep(analysis, options, models);
    }

    fn try_to_keep(&self, analysis: &Analysis, options: &Options<'_>, models: &[String]) -> Option<()> {
        // Of code that was not there when a trace was followed, nothing would be found in it when it is.
        if analysis.summary.has_trace() {
            return None;
        }
        let key = Key::of(&self.content, options, options.detail, models)?;
        let replicates = Findings::replicates(analysis);
        let lengths: Vec<usize> = replicates.iter().map(|list| list.len()).collect();
        if entry::bytes_of(&lengths)? as u64 > self.folder.largest() {
            return None;
        }
        let findings = Findings::of(analysis, self.began)?;
        if !self.is_unchanged()? {
            return None;
        }
        self.folder.write(&key.name(), &entry::written(&key, &findings, &replicates)?)
    }

    /// Where the page is kept that is made with these options, and with what `of` says.
    pub fn place_of_page(self, options: Options<'_>, models: &[String], of: &str) -> Option<PlaceOfPage<'a>> {
        let key = Key::of(&self.content, &options, options.detail, models)?.of_page(of);
        Some(PlaceOfPage { cache: self, key, search: options.search })
    }

    /// Whether the recording is what it was before the analysis. It is read again if the file system would not tell.
    fn is_unchanged(&self) -> Option<bool> {
        let is_same = FileIdentity::of(&self.file.metadata().ok()?) == self.state;
        if is_same && self.state.tells_changes_after(self.began) {
            return Some(true);
        }
        Some(Content::of(self.file, self.content.length(), self.threads).ok()? == self.content)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use analyzer::counting::Code;
    use analyzer::mix::{Dimension, Key, Query, mix};
    use analyzer::recording::Subset;
    use analyzer::uncertainty::Rows;
    use analyzer::{BinaryOverride, BinarySearch, analyze};
    use model::Rules;
    use testing::Fixture;

    use super::*;
    use crate::output::Head;

    /// A digest can be right and the rest wrong: where somebody made it so.
    #[test]
    fn findings_that_lie_are_refused_or_harmless() {
        let fixture = Fixture::bursts("threads");
        let recording = Recording::open(&fixture.recording).unwrap();
        let named = BinaryOverride::new(Some(fixture.recorded_as.into()), fixture.binary.clone());
        let search = BinarySearch { overrides: vec![named], ..BinarySearch::default() };
        let rows = [Dimension::Function, Dimension::BranchSite, Dimension::Mnemonic].map(Key::from).to_vec();
        let query = Query { rows, ..Query::default() };
        let mut random = fastrand::Rng::with_seed(1);
        for detail in [Detail::Branches, Detail::Calls] {
            let options = Options {
                search: search.clone(),
                subset: Subset::Whole,
                group_by: Default::default(),
                detail,
                core: None,
                threads: 1,
                rules: &Rules::default(),
            };
            let analysis = analyze(&recording, &options, &|_| ()).unwrap();
            let later = SystemTime::now() + Duration::from_secs(60);
            let bytes = postcard::to_stdvec(&Findings::of(&analysis, later).unwrap()).unwrap();
            let replicates = || Some(Findings::replicates(&analysis).into_iter().map(<[_]>::to_vec).collect());
            let mut used = 0;
            for _ in 0..300 {
                let mut other = bytes.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..other.len());
                    other[at] = random.u8(..);
                }
                let Ok((findings, _)) = postcard::take_from_bytes::<Findings<'_>>(&other) else { continue };
                let Some(analysis) = findings.into_analysis(&recording, &search, 1, replicates) else { continue };
                used += 1;
                assert!(mix(&analysis, &query).is_ok());
                for module in &analysis.counted {
                    let Code::Read(code) = &module.counts.code else { continue };
                    assert!(code.functions.iter().all(|(id, _)| code.functions.name(id).len() < 1 << 20));
                }
                let _ = (Rows::of(&analysis), Head::of(&analysis));
                if let Some(calls) = &analysis.calls {
                    assert!(calls.contexts().len() < 1 << 20);
                }
                let _ = analysis.into_flow_by_choice();
            }
            assert!(used > 0, "most changes are of numbers that may have any value");
        }
    }
}
