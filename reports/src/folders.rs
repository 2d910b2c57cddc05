//! Folders of a user.

use std::path::PathBuf;

/// An absolute path that the environment names.
pub fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Where what belongs to a user is kept: below `XDG_DATA_HOME`, by default `~/.local/share`. `None` if neither is known.
pub fn data_folder() -> Option<PathBuf> {
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("hbbp"))
}
