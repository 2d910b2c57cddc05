//! The copies of files that `perf` keeps by build id, each in a folder of the file's name, to which a link leads.
//!
//! ```text
//! ~/.debug/usr/bin/server/0123abcd../elf
//! ~/.debug/[vdso]/4567cdef../vdso
//! ~/.debug/.build-id/01/23abcd.. -> ../../usr/bin/server/0123abcd..
//! ```

use std::env::var_os;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::build_id::{BuildId, folder_and_name};

/// Bytes of settings that are read: people write some hundred.
const MOST_SETTINGS: u64 = 1 << 20;

/// The copies of this build that `perf buildid-cache` (and every `perf record`) keeps, or what `perf archive` packed of these: of the build id, and
/// of those that it is where zeros fill it up. A link leads to a folder that has files of this name (`elf`, `debug`, `kallsyms`, `vdso`); before
/// Linux 4.10 it led to the program.
pub(super) fn in_build_id_cache(build_id: &BuildId, name: &str) -> Vec<PathBuf> {
    let in_folder = |folder: &Path, id: &[u8]| {
        let (first, rest) = folder_and_name(id)?;
        let link = folder.join(".build-id").join(first).join(rest);
        let in_folder = link.join(name);
        if in_folder.is_file() {
            return Some(in_folder);
        }
        (name == "elf" && link.is_file()).then_some(link)
    };
    let folders = folders().into_iter();
    folders.flat_map(|folder| build_id.spellings().filter_map(move |id| in_folder(&folder, id))).collect()
}

/// Where copies are kept: as `perf --buildid-dir` tells the commands that it starts (`PERF_BUILDID_DIR`), as perf-config(1) has it (`buildid.dir`),
/// and the usual place, where `hbbp record` puts those of its own.
fn folders() -> Vec<PathBuf> {
    // It is asked for with each module.
    static CONFIGURED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = |name| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = path("HOME");
    let settings = || path("PERF_CONFIG").or_else(|| Some(home.as_ref()?.join(".perfconfig")));
    let configured = CONFIGURED.get_or_init(|| configured(&beginning(&settings()?)?)).clone();
    let usual = home.as_ref().map(|home| home.join(".debug"));
    let mut folders = Vec::new();
    for folder in [path("PERF_BUILDID_DIR"), configured, usual].into_iter().flatten() {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The beginning of a file that is read as text; devices and pipes may wait for ever.
fn beginning(file: &Path) -> Option<String> {
    fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(MOST_SETTINGS).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of `buildid.dir` in a file of perf-config(1), whose last one counts. Names are the same in small letters and in capitals.
fn configured(settings: &str) -> Option<PathBuf> {
    let (mut section, mut folder) = ("", None);
    for line in settings.lines().map(str::trim) {
        let line = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, rest)) => {
                section = name.trim();
                rest.trim()
            }
            None => line,
        };
        let Some((key, value)) = line.split_once('=') else { continue };
        if section.eq_ignore_ascii_case("buildid") && key.trim().eq_ignore_ascii_case("dir") {
            folder = Some(PathBuf::from(unquoted(value.trim()))).filter(|folder| !folder.as_os_str().is_empty());
        }
    }
    folder
}

/// A value without the comment after it, its quotation marks, and the backslashes before characters of the value.
fn unquoted(value: &str) -> String {
    let (mut text, mut is_quoted, mut blanks) = (String::new(), false, 0);
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
        blanks = if character.is_whitespace() && !is_quoted { blanks + character.len_utf8() } else { 0 };
    }
    text.truncate(text.len() - blanks.min(text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_read_from_the_settings_of_perf() {
        for (settings, expected) in [
            ("[buildid]\n\tdir = /var/copies\n", Some("/var/copies")),
            ("# dir = /no\n[report]\ndir = /no\n[BuildId]\nDir=/yes # a comment\n[ui]\ndir = /no", Some("/yes")),
            ("[buildid] dir = \"/with a # and \\\" \" ; a comment", Some("/with a # and \" ")),
            ("[buildid]\ndir = /one\ndir = /two", Some("/two")),
            ("[buildid]\ndir =\n", None),
            ("[buildid]\ndir\n", None),
            ("dir = /no\n[buildid", None),
        ] {
            assert_eq!(configured(settings), expected.map(PathBuf::from), "{settings}");
        }
    }
}
