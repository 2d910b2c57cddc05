//! The text of the source.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use formats::file_identity::FileIdentity;
use serde::{Deserialize, Serialize};

/// Files of source, read when a line of them is asked for.
#[derive(Debug, Default)]
pub struct SourceTexts {
    symfs: Option<PathBuf>,
    files: HashMap<String, Option<Text>>,
    /// Bytes that were read.
    bytes: u64,
    looked_for: SourceFiles,
}

/// Files of source that were looked for, and the state of each; `None` if there was none, or it could not be read: who may read it can change,
/// and its state stay.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceFiles(Vec<(PathBuf, Option<FileIdentity>)>);

impl SourceFiles {
    /// Whether all are as they were.
    pub fn are_the_same(&self) -> bool {
        self.0.iter().all(|(path, state)| FileIdentity::at(path) == *state)
    }

    /// Whether any later change of one can be told.
    pub fn tell_changes_after(&self, time: SystemTime) -> bool {
        self.0.iter().filter_map(|(_, state)| *state).all(|state| state.tells_changes_after(time))
    }
}

/// A file and where its lines are.
#[derive(Debug)]
struct Text {
    text: String,
    lines: Vec<Range<usize>>,
}

/// All files together; what would be more is not read.
const MOST_BYTES: u64 = 64 << 20;
/// Characters of a line; the rest is cut off, for many instructions may be of one line.
const MOST_OF_LINE: usize = 512;

impl SourceTexts {
    /// Files are looked for at their recorded paths, under `symfs` if there is one.
    pub fn below(symfs: Option<PathBuf>) -> Self {
        SourceTexts { symfs, ..Self::default() }
    }

    /// The text of a line, counted from 1, without spaces before and after it and at most 512 characters of it; `None` where it cannot be read.
    pub fn line(&mut self, path: &str, line: u32) -> Option<&str> {
        if !self.files.contains_key(path) {
            let text = self.read(path);
            self.files.insert(path.to_owned(), text);
        }
        let text = self.files.get(path)?.as_ref()?;
        let range = text.lines.get((line as usize).checked_sub(1)?)?;
        text.text.get(range.clone())
    }

    /// The files that were looked for.
    pub fn looked_for(self) -> SourceFiles {
        self.looked_for
    }

    fn read(&mut self, path: &str) -> Option<Text> {
        let path = Path::new(path);
        let found = match &self.symfs {
            Some(symfs) => symfs.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        };
        // Asked before opening: opening a pipe waits for its other end. A file without a length may be the kernel's,
        // and wait, too.
        let metadata = std::fs::metadata(&found).ok();
        self.looked_for.0.push((found.clone(), metadata.as_ref().map(FileIdentity::of)));
        let metadata = metadata.filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
        let allowed = MOST_BYTES.checked_sub(self.bytes)?;
        if metadata.len() > allowed {
            return None;
        }
        let mut bytes = Vec::new();
        let read = File::open(found).and_then(|file| file.take(metadata.len()).read_to_end(&mut bytes));
        if read.is_err() {
            self.looked_for.0.last_mut()?.1 = None;
            return None;
        }
        self.bytes += bytes.len() as u64;
        let text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut start = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let begin = start + line.len() - line.trim_start().len();
            let text = line.trim();
            let range = begin..begin + text.char_indices().nth(MOST_OF_LINE).map_or(text.len(), |(at, _)| at);
            start += line.len();
            range
        });
        let lines = lines.collect();
        Some(Text { text, lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("min.js");
        std::fs::write(&path, format!("  a\t\n\t{}\n", "ä".repeat(1 << 20))).unwrap();
        let (mut texts, path) = (SourceTexts::below(None), path.to_str().unwrap());
        assert_eq!(texts.line(path, 1), Some("a"));
        assert_eq!(texts.line(path, 2), Some("ä".repeat(MOST_OF_LINE).as_str()));
    }

    #[test]
    fn lines_are_counted_from_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("loop.c"), b"one\r\n\n  \xff three").unwrap();
        let path = folder.path().join("loop.c").display().to_string();
        let mut texts = SourceTexts::below(None);
        let found: Vec<Option<String>> = (0..5).map(|line| texts.line(&path, line).map(str::to_owned)).collect();
        assert_eq!(found, [None, Some("one".into()), Some("".into()), Some("\u{fffd} three".into()), None]);
        let mut below = SourceTexts::below(Some(folder.path().to_owned()));
        assert_eq!(below.line("/loop.c", 1), Some("one"));
        assert_eq!(below.line(&path, 1), None);
    }

    #[test]
    fn what_is_no_file_of_source_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large.c");
        File::create(&large).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let mut texts = SourceTexts::below(None);
        for path in ["/dev/zero", "/proc/self/maps", "/", "", "no.c", &large.display().to_string()] {
            assert_eq!(texts.line(path, 1), None, "{path}");
        }
    }
}
