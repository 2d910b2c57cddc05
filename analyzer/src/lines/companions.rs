//! The files in which the debug information of a program is, beside its own and its debug file.

use std::path::{Path, PathBuf};

use super::sections::Sections;
use super::split::{SplitFiles, SplitPart, package_of};
use super::units::DebugFile as OpenDebugFile;
use crate::binaries::{Binary, DebugFile};
use crate::code::Image;

/// What [`SourceIndex::read`](super::SourceIndex::read) looks at beside the program and its debug file.
#[derive(Debug, Default)]
pub struct Companions {
    /// What `dwz` moved to another file.
    pub alternate: Option<DebugFile>,
    /// The package beside the program, `PROGRAM.dwp`.
    pub package: Option<PathBuf>,
    /// `.dwo` files: their recorded paths, and where they are.
    pub parts: Vec<(PathBuf, PathBuf)>,
}

impl Companions {
    /// Those of a binary that are there.
    pub fn of(binary: &Binary) -> Self {
        let Some(image) = binary.images().find(|image| image.has_debug_information()) else { return Self::default() };
        let package = Some(package_of(&binary.place)).filter(|path| is_debug_file(path));
        let alternate = binary.alternate(image).and_then(Result::ok);
        let folder = binary.place.parent().unwrap_or(Path::new("")).to_owned();
        let split = SplitFiles { folder, symfs: binary.symfs.clone(), package: None };
        let Ok(sections) = Sections::of(image) else { return Companions { alternate, package, parts: Vec::new() } };
        let file = OpenDebugFile::of(sections.dwarf());
        let part = |index| SplitPart::of(&file, &file.open(index).ok()?);
        let mut parts: Vec<_> = (0..file.units.len())
            .filter_map(part)
            .filter_map(|part| {
                let place = split.places(&part).find(|place| is_debug_file(place))?;
                Some((part.path, place))
            })
            .collect();
        parts.sort();
        parts.dedup();
        Companions { alternate, package, parts }
    }
}

/// Whether debug information of a binary is in more files than its own and its debug file, or would be if they were there; a
/// [package](has_package) apart.
pub(crate) fn is_in_more_files(binary: &Binary) -> bool {
    let Some(image) = binary.images().find(|image| image.has_debug_information()) else { return false };
    let Ok(sections) = Sections::of(image) else { return false };
    let file = OpenDebugFile::of(sections.dwarf());
    let is_split = |index| file.open(index).is_ok_and(|unit| SplitPart::of(&file, &unit).is_some());
    image.alternate_debug_file().is_some() || (0..file.units.len()).any(is_split)
}

/// Whether there is a package beside a binary. It is read even if nothing of the debug information is in it.
pub(crate) fn has_package(binary: &Binary) -> bool {
    package_of(&binary.place).is_file()
}

/// Debug information may name any file: only object files are of it.
fn is_debug_file(file: &Path) -> bool {
    file.is_file() && Image::open_debug(file).is_ok()
}
