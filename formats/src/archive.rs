//! What is in an archive of a recording and the files of its programs: JSON of the schema `hbbp-archive/1`, the first file of it.
//!
//! ```text
//! {"schema":"hbbp-archive/1","recording":{"name":"run.data","bytes":8192},
//!  "files":[{"name":"root/bin/x","bytes":4096},..],
//!  "modules":[{"path":"/bin/x","build_id":"01ab..","found":{"file":"/bin/x","name":"root/bin/x"}},..]}
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-archive/1";
/// The name of the document in an archive.
pub const DOCUMENT: &str = "hbbp-archive.json";
/// The name of the recording in an archive.
pub const RECORDING: &str = "recording.data";
/// The folder of all other files: it stands for `/`.
pub const ROOT: &str = "root";

/// The most bytes of a document: it has some 200 for each file and each module.
pub const LARGEST_DOCUMENT: u64 = 8 << 20;
/// The most bytes of a name: those of a path on Linux.
pub const LONGEST_NAME: usize = 4096;
/// The most parts of a name.
pub const MOST_PARTS: usize = 64;
/// The bytes that a file or a folder takes beside what is in it.
const EACH: u64 = 4096;

/// What is in an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    schema: String,
    /// The recording.
    pub recording: Entry,
    /// All other files, sorted by name, each once.
    pub files: Vec<Entry>,
    /// The modules of the recording whose files were looked for.
    pub modules: Vec<Module>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the archive, below [`ROOT`]; of the recording, the name that it had.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// A module, and what was found of it on the machine where the archive was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its recorded path.
    pub path: String,
    /// Its recorded build id, as hexadecimal digits.
    pub build_id: Option<String>,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Why it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The name in the archive of a list of its functions, where there is no code of it: of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
}

/// The file of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where it was found.
    pub file: String,
    /// Its name in the archive.
    pub name: String,
    /// The name of its separate debug file in the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug_file: Option<String>,
    /// That it is of another build than was recorded, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_build: Option<String>,
}

/// Why a text is not what an archive begins with.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// It is no JSON, or JSON of another shape.
    #[error("{DOCUMENT} is not as `hbbp archive` writes it: {0}")]
    Json(#[from] serde_json::Error),
    /// It says that it is something else.
    #[error("{DOCUMENT} is of the schema `{0}`, expected `{SCHEMA}`")]
    Schema(String),
    /// A file that it names has no place in an archive.
    #[error(
        "{DOCUMENT} names {0:?}: files of an archive are below {ROOT}/, no part of a name is . or .., \
         and it has at most {MOST_PARTS} parts and {LONGEST_NAME} bytes"
    )]
    Name(String),
    /// It names a file twice, or one that has to be a folder for another.
    #[error("{DOCUMENT} names {0:?} twice")]
    Twice(String),
    /// A module has a file that the list of files does not have.
    #[error("{DOCUMENT} says that {0:?} is a module's file, and does not list it")]
    Unlisted(String),
}

/// Only what says whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    schema: String,
}

impl Contents {
    /// The document of these.
    pub fn new(recording: Entry, mut files: Vec<Entry>, modules: Vec<Module>) -> Self {
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Self { schema: SCHEMA.to_owned(), recording, files, modules }
    }

    /// Reads a document of the schema `hbbp-archive/1`, whose names are such that files of these can be made below a folder.
    ///
    /// # Errors
    /// It is something else, or a name is not that of a file in an archive.
    pub fn read(json: &[u8]) -> Result<Self, ContentsError> {
        let Kind { schema } = serde_json::from_slice(json)?;
        if schema != SCHEMA {
            return Err(ContentsError::Schema(schema));
        }
        let contents: Self = serde_json::from_slice(json)?;
        let mut sizes = BTreeMap::new();
        for Entry { name, bytes } in &contents.files {
            if !is_name(name) {
                return Err(ContentsError::Name(name.clone()));
            }
            if sizes.insert(name.as_str(), *bytes).is_some() {
                return Err(ContentsError::Twice(name.clone()));
            }
        }
        for Module { found, names, .. } in &contents.modules {
            let of_found = found.iter().flat_map(|found| [Some(&found.name), found.debug_file.as_ref()]);
            for name in of_found.chain([names.as_ref()]).flatten() {
                if !sizes.contains_key(name.as_str()) {
                    return Err(ContentsError::Unlisted(name.clone()));
                }
            }
        }
        Ok(contents)
    }

    /// All files together, in bytes; at most [`u64::MAX`].
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(self.recording.bytes, |sum, file| sum.saturating_add(file.bytes))
    }

    /// The same with what the files and their folders take beside that on a disk.
    pub fn bytes_on_disk(&self) -> u64 {
        let names = self.files.iter().map(|file| file.name.as_str());
        let folders: BTreeSet<&str> =
            names.flat_map(|name| name.match_indices('/').map(|(end, _)| name.get(..end).unwrap_or(name))).collect();
        let number = (self.files.len() as u64).saturating_add(folders.len() as u64);
        self.bytes().saturating_add(number.saturating_mul(EACH))
    }
}

/// Whether a file of an archive may have this name: relative, below [`ROOT`], with no way out, and not too long.
pub fn is_name(name: &str) -> bool {
    if name.len() > LONGEST_NAME || name.split('/').count() > MOST_PARTS {
        return false;
    }
    let rest = name.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(names: &[&str], module: Option<&str>) -> Contents {
        let entry = |name: &&str| Entry { name: (*name).to_owned(), bytes: 7 };
        let found = |name: &str| Found { file: "/x".into(), name: name.into(), debug_file: None, other_build: None };
        let module = module.map(|name| Module {
            path: "/x".into(),
            build_id: None,
            found: Some(found(name)),
            missing: None,
            names: None,
        });
        Contents::new(entry(&"run.data"), names.iter().map(entry).collect(), module.into_iter().collect())
    }

    fn read(contents: &Contents) -> Result<Contents, String> {
        Contents::read(&serde_json::to_vec(contents).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let contents = contents(&["root/usr/bin/x", "root/a"], Some("root/a"));
        assert_eq!(read(&contents).as_ref(), Ok(&contents));
        assert_eq!(contents.bytes(), 21);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            "root",
            "root/",
            "/root/x",
            "x",
            "root/../x",
            "root/./x",
            "root//x",
            "root/x/..",
            "rootx/y",
            "root/a\0b",
        ] {
            let error = read(&contents(&[name], None)).unwrap_err();
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
        assert!(read(&contents(&["root/...", "root/..x"], None)).is_ok());
        let deep = |parts: usize| format!("root{}", "/x".repeat(parts - 1));
        assert!(is_name(&deep(64)) && !is_name(&deep(65)));
        let long = |bytes: usize| format!("root/{}", "x".repeat(bytes - 5));
        assert!(is_name(&long(4096)) && !is_name(&long(4097)));
    }

    #[test]
    fn files_and_folders_take_room() {
        // root, root/a, root/a/b, and two files.
        let contents = contents(&["root/a/b/x", "root/a/y"], None);
        assert_eq!(contents.bytes_on_disk(), 21 + 5 * 4096);
    }

    #[test]
    fn names_are_unique_and_listed() {
        assert_eq!(
            read(&contents(&["root/a", "root/a"], None)).unwrap_err(),
            "hbbp-archive.json names \"root/a\" twice"
        );
        assert!(read(&contents(&["root/a"], Some("root/b"))).unwrap_err().contains("does not list it"));
    }

    #[test]
    fn other_documents_are_refused() {
        let error = |json: &[u8]| Contents::read(json).unwrap_err().to_string();
        assert_eq!(
            error(br#"{"schema":"hbbp-flow/1"}"#),
            "hbbp-archive.json is of the schema `hbbp-flow/1`, expected `hbbp-archive/1`"
        );
        assert!(error(b"{}").contains("schema ``"));
        assert!(error(b"hello").contains("as `hbbp archive` writes it"));
    }
}
