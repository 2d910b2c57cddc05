//! Files of the kernel's modules, and where their code was while it ran.

use std::path::{Path, PathBuf};

use super::Binary;
use crate::address::Avma;
use crate::code::Segment;
use crate::recording::Mapping;

/// How distributions pack them.
const PACKED: [&str; 4] = ["", ".xz", ".zst", ".gz"];

/// The file of a module that was recorded at this path, and those that are there instead: packed in another way, and under `/usr` or not,
/// which are the same where one is a link to the other.
pub(super) fn files(recorded: &Path) -> Vec<PathBuf> {
    let others = others(recorded).into_iter().filter(|file| file.is_file());
    [recorded.to_owned()].into_iter().chain(others).collect()
}

fn others(recorded: &Path) -> Vec<PathBuf> {
    let Some(path) = recorded.to_str() else { return Vec::new() };
    let plain = PACKED.iter().find_map(|how| path.strip_suffix(how).filter(|path| path.ends_with(".ko")));
    let Some(plain) = plain else { return Vec::new() };
    let elsewhere = match plain.rsplit_once("/usr/lib/modules/") {
        Some((root, rest)) => Some(format!("{root}/lib/modules/{rest}")),
        None => plain.rsplit_once("/lib/modules/").map(|(root, rest)| format!("{root}/usr/lib/modules/{rest}")),
    };
    let plain = [Some(plain.to_owned()), elsewhere].into_iter().flatten();
    let files = plain.flat_map(|plain| PACKED.map(|how| PathBuf::from(format!("{plain}{how}"))));
    files.filter(|file| file != recorded).collect()
}

/// Where the code of a module's file was. `recorded`: a mapping of the module, or what others left of it. Of that, what is not in the file is
/// unread from now on.
pub(crate) fn module_mappings(binary: &Binary, recorded: Mapping) -> Vec<Mapping> {
    let base = recorded.start.0.wrapping_sub(recorded.pgoff);
    let end = recorded.start.0.saturating_add(recorded.len);
    let mapping = |segment: &Segment| {
        let at = base.checked_add(segment.start.0)?;
        let (from, to) = (at.max(recorded.start.0), at.saturating_add(segment.size).min(end));
        let size = to.checked_sub(from).filter(|&size| size > 0)?;
        Mapping::new(Avma(from), size, segment.file_offset + (from - at), recorded.module)
    };
    let code = binary.image.segments().iter().filter(|segment| segment.executable);
    // At an offset that no file has.
    let unread = Mapping::new(recorded.start, recorded.len, recorded.start.0, recorded.module);
    unread.into_iter().chain(code.filter_map(mapping)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_looked_for_packed_and_below_usr() {
        let shown =
            |path: &str| others(Path::new(path)).iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
        let found = shown("/root/lib/modules/6.1/kernel/fs/ext4.ko.xz");
        assert_eq!(found.len(), 7);
        assert!(found.contains(&"/root/lib/modules/6.1/kernel/fs/ext4.ko".to_owned()));
        assert!(found.contains(&"/root/usr/lib/modules/6.1/kernel/fs/ext4.ko.zst".to_owned()));
        assert!(shown("/usr/lib/modules/6.1/a.ko").contains(&"/lib/modules/6.1/a.ko.gz".to_owned()));
        assert_eq!(shown("a.ko"), ["a.ko.xz", "a.ko.zst", "a.ko.gz"]);
        assert_eq!(shown("/tmp/module"), [""; 0]);
        // Those that are not there are not named.
        assert_eq!(files(Path::new("/none/a.ko")), [Path::new("/none/a.ko")]);
    }
}
