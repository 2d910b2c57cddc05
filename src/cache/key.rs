//! What an analysis depends on, but for the binaries; and the state of a file.

use std::path::Path;

use analyzer::counting::Detail;
use analyzer::{FileIdentity, Options};
use blake3::{Hash, hash};

use super::content::Content;
use super::entry::VERSION;

/// Names an entry. Two analyses that differ in anything that a result may depend on have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(Hash);

impl Key {
    /// Of a recording with these options. `models`: those that are in files. `None` if it is not known which executable this is.
    pub fn of(content: &Content, options: &Options<'_>, detail: Detail, models: &[String]) -> Option<Self> {
        // Threads change no result, and models have no other form that tells them apart.
        let Options { search, subset, group_by, detail: _, core, threads: _, rules: _ } = options;
        let (version, executable) = build()?;
        // Their debugging form has all fields, those of later versions, too.
        let text = format!(
            "{version:?} {executable:?} {content:?} {search:?} {subset:?} {group_by:?} {detail:?} {core:?} {models:?}"
        );
        Some(Key(hash(text.as_bytes())))
    }

    /// Of a page of what this is the key of, made with what a text says.
    pub fn of_page(self, of: &str) -> Self {
        Key(hash(format!("page {} {of}", self.0).as_bytes()))
    }

    /// Of a file in its state.
    pub fn of_file(file: &FileIdentity) -> Self {
        Key(hash(format!("{VERSION:?} {file:?}").as_bytes()))
    }

    /// Of what this build finds in the code of files while the machine runs that was started so.
    pub fn of_searches(start: &str) -> Option<Self> {
        let (version, executable) = build()?;
        Some(Key(hash(format!("searches {version:?} {executable:?} {start:?}").as_bytes())))
    }

    /// The name of its entry: 64 hexadecimal digits.
    pub fn name(&self) -> String {
        self.0.to_string()
    }

    /// All of it.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// No two builds share anything: formats, rules, searches and tables are of one build.
fn build() -> Option<((u32, &'static str), FileIdentity)> {
    let executable = FileIdentity::at(Path::new("/proc/self/exe"))?;
    Some(((VERSION, env!("CARGO_PKG_VERSION")), executable))
}

#[cfg(test)]
mod tests {
    use analyzer::counting::{GroupBy, TaskGroups};
    use analyzer::recording::Subset;
    use analyzer::{BinaryOverride, BinarySearch, Microarchitecture};
    use model::Rules;

    use super::*;

    #[test]
    fn whatever_changes_a_result_changes_the_key_and_threads_do_not() {
        let rules = Rules::default();
        let file = tempfile::tempfile().unwrap();
        file.set_len(1).unwrap();
        let content = Content::of(&file, 1, 1).unwrap();
        let options = || Options {
            search: BinarySearch::default(),
            subset: Subset::Whole,
            group_by: GroupBy::default(),
            detail: Detail::Blocks,
            core: None,
            threads: 1,
            rules: &rules,
        };
        let key = |options: Options<'_>| Key::of(&content, &options, options.detail, &[]).unwrap();
        let given = |recorded: Option<&str>| BinarySearch {
            overrides: vec![BinaryOverride::new(recorded.map(str::to_owned), "/f".into())],
            ..BinarySearch::default()
        };
        let mut keys = vec![
            key(options()),
            key(Options { search: BinarySearch { symfs: Some("/a".into()), ..BinarySearch::default() }, ..options() }),
            key(Options { search: given(None), ..options() }),
            key(Options { search: given(Some("a")), ..options() }),
            key(Options { subset: Subset::FirstHalf, ..options() }),
            key(Options { group_by: GroupBy { tasks: TaskGroups::Process, ..GroupBy::default() }, ..options() }),
            key(Options { group_by: GroupBy { phases: true, ..GroupBy::default() }, ..options() }),
            key(Options { detail: Detail::Branches, ..options() }),
            key(Options { core: Some(Microarchitecture::Zen2), ..options() }),
            Key::of(&content, &options(), Detail::Blocks, &["{}".into()]).unwrap(),
            Key::of(&Content::of(&file, 0, 1).unwrap(), &options(), Detail::Blocks, &[]).unwrap(),
        ];
        assert_eq!(keys[0], key(Options { threads: 7, ..options() }));
        let all = keys.len();
        keys.sort_by_key(Key::name);
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
