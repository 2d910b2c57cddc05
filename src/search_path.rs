//! Programs of others, in the folders of PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folders of PATH, in its order.
pub fn folders() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The program of that name, or else the one with the greatest number after it, as distributions name them:
/// `llvm-bolt-19`.
pub fn newest(name: &str) -> Option<PathBuf> {
    newest_in(folders(), name)
}

fn newest_in(folders: Vec<PathBuf>, name: &str) -> Option<PathBuf> {
    let numbered = |file: &str| file.strip_prefix(name)?.strip_prefix('-')?.parse::<u32>().ok();
    let mut newest: Option<(u32, PathBuf)> = None;
    for folder in folders {
        let plain = folder.join(name);
        if can_run(&plain) {
            return Some(plain);
        }
        for file in folder.read_dir().into_iter().flatten().flatten() {
            let Some(number) = file.file_name().to_str().and_then(numbered) else { continue };
            if newest.as_ref().is_none_or(|(newest, _)| number > *newest) && can_run(&file.path()) {
                newest = Some((number, file.path()));
            }
        }
    }
    newest.map(|(_, file)| file)
}

/// Whether somebody may run it: a shell takes no other.
fn can_run(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::newest_in;

    fn program(folder: &Path, name: &str) {
        fs::write(folder.join(name), "").unwrap();
        fs::set_permissions(folder.join(name), Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_name_without_a_number_comes_first_and_then_the_greatest_number() {
        let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let find = || newest_in(vec![one.path().join("none"), one.path().into(), other.path().into()], "bolt");
        assert_eq!(find(), None);
        for name in ["bolt-9", "bolt-diff-20", "bolt-", "bolt-x", "bolts-30"] {
            program(one.path(), name);
        }
        // These cannot be run.
        symlink("nowhere", one.path().join("bolt-21")).unwrap();
        fs::create_dir(one.path().join("bolt-22")).unwrap();
        fs::write(one.path().join("bolt-23"), "").unwrap();
        fs::write(one.path().join("bolt"), "").unwrap();
        assert_eq!(find(), Some(one.path().join("bolt-9")));
        program(other.path(), "bolt-19");
        assert_eq!(find(), Some(other.path().join("bolt-19")));
        program(other.path(), "bolt");
        assert_eq!(find(), Some(other.path().join("bolt")));
    }
}
