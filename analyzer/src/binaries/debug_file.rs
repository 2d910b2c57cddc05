//! Where separate debug files are: those of programs, and what `dwz` moved from these to others.

use std::path::{Path, PathBuf};

use super::build_id_cache::in_build_id_cache;
use super::{Binary, BinarySearch, Wanted};
use crate::build_id::{BuildId, folder_and_name};
use crate::code::Image;

/// A file with symbols or debug information of another.
#[derive(Clone, Debug)]
pub struct DebugFile {
    /// Where it is; the program itself where its symbols are compressed in it (`.gnu_debugdata`).
    pub path: PathBuf,
    /// It, opened.
    pub image: Image,
}

impl DebugFile {
    /// The symbols that are compressed in a stripped program (`.gnu_debugdata`).
    pub(super) fn compressed_in(file: &Path, image: &Image) -> Option<Self> {
        let image = if image.is_stripped() { image.mini_debug_info()? } else { return None };
        Some(DebugFile { path: file.to_owned(), image })
    }

    /// The file, if it can be read and is the one that is wanted.
    fn open(path: PathBuf, is_wanted: impl Fn(&Image) -> bool) -> Option<Self> {
        let image = Image::open_debug(&path).ok().filter(is_wanted)?;
        Some(DebugFile { path, image })
    }

    /// The file, if it is one of this build.
    fn of_build(path: PathBuf, build_id: &BuildId) -> Option<Self> {
        Self::open(path, |image| image.build_id() == Some(build_id))
    }

    /// Debug information of a module of the kernel is relocatable, as its code is.
    fn loaded(self) -> Option<Self> {
        if !self.image.is_relocatable() {
            return Some(self);
        }
        Some(DebugFile { image: self.image.loaded_module().ok()?, path: self.path })
    }

    /// The file, if it is the one to which `dwz` moved something.
    fn alternate(path: PathBuf, id: &BuildId) -> Option<Self> {
        Self::open(path, |image| image.alternate_id().as_ref() == Some(id))
    }
}

impl BinarySearch {
    /// The first that there is of: what distributions install by build id, what `perf buildid-cache` has, what the file names
    /// (`.gnu_debuglink`), what is got from elsewhere.
    pub(super) fn debug_file_of(&self, file: &Path, image: &Image) -> Option<DebugFile> {
        let installed = self.root().join("usr/lib/debug");
        let by_id = image.build_id().and_then(|id| {
            let places = installed_by_id(&installed, id).into_iter().chain(in_build_id_cache(id, "debug"));
            { places }.find_map(|place| DebugFile::of_build(place, id))
        });
        let found = by_id.or_else(|| self.linked_debug_file(file, image, &installed)).or_else(|| {
            let id = image.build_id()?;
            DebugFile::of_build(self.elsewhere.get(id, Wanted::DebugFile)?, id)
        });
        found.and_then(DebugFile::loaded)
    }

    /// The file of the name that `.gnu_debuglink` states: as GDB has it, beside the program, in `.debug`, or under `/usr/lib/debug` in a
    /// folder of the same name; and the same of the file that links lead to.
    fn linked_debug_file(&self, file: &Path, image: &Image, installed: &Path) -> Option<DebugFile> {
        let (name, checksum) = image.debug_link()?;
        let seen = std::path::absolute(file).ok().zip(std::path::absolute(self.root()).ok());
        let real =
            file.canonicalize().ok().zip(self.root().canonicalize().ok()).filter(|real| Some(real) != seen.as_ref());
        [seen, real].into_iter().flatten().find_map(|(path, root)| {
            let folder = path.parent()?;
            let same = folder.strip_prefix(root).or_else(|_| folder.strip_prefix("/")).ok()?;
            let places = [folder.join(&name), folder.join(".debug").join(&name), installed.join(same).join(&name)];
            let mut others = places.into_iter().filter(|place| place != file);
            others.find_map(|place| DebugFile::open(place, |image| image.checksum() == checksum))
        })
    }

    /// The folder that stands for `/`.
    pub(super) fn root(&self) -> &Path {
        self.symfs.as_deref().unwrap_or(Path::new("/"))
    }
}

impl Binary {
    /// The file to which `dwz` moved what several debug files have in common, where the image, one of this binary's, names one. It is
    /// where it is said to be, seen from the file that names it, or where distributions install debug files by build id, or elsewhere.
    /// The error is the name of one that is not there.
    pub(crate) fn alternate(&self, image: &Image) -> Option<Result<DebugFile, String>> {
        let (name, build_id) = image.alternate_debug_file()?;
        let root = self.symfs.as_deref().unwrap_or(Path::new("/"));
        let naming = match &self.debug_file {
            Some(debug_file) if debug_file.image.has_debug_information() => &debug_file.path,
            _ => &self.place,
        };
        let stated = match Path::new(&name).strip_prefix("/") {
            Ok(absolute) => vec![root.join(absolute)],
            // The name of a debug file by build id may be a link to it, and it is the file that is meant.
            Err(_) => {
                let real = naming.canonicalize().ok();
                let files = [Some(naming), real.as_ref()].into_iter().flatten();
                files.map(|file| file.parent().unwrap_or(Path::new("")).join(&name)).collect()
            }
        };
        let installed = installed_by_id(&root.join("usr/lib/debug"), &build_id);
        let places = stated.into_iter().chain(installed);
        let found = { places }
            .find_map(|place| DebugFile::alternate(place, &build_id))
            .or_else(|| DebugFile::alternate(self.elsewhere.get(&build_id, Wanted::DebugFile)?, &build_id));
        Some(found.ok_or(name))
    }
}

/// Where distributions install the debug file of a build id.
pub(super) fn installed_by_id(installed: &Path, build_id: &BuildId) -> Option<PathBuf> {
    let (folder, name) = folder_and_name(build_id.as_bytes())?;
    Some(installed.join(".build-id").join(folder).join(name + ".debug"))
}

/// Links to programs by build id: those of debug packages, and of Fedora's packages.
pub(super) fn linked_by_id(root: &Path, build_id: &BuildId) -> Vec<PathBuf> {
    let of = |id: &[u8]| {
        let (folder, name) = folder_and_name(id)?;
        let link = Path::new(".build-id").join(folder).join(name);
        Some(["usr/lib/debug", "usr/lib"].map(|folder| root.join(folder).join(&link)))
    };
    build_id.spellings().filter_map(of).flatten().filter(|link| link.is_file()).collect()
}
