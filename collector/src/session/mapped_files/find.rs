//! The file of a mapping: at its path, if that is it, or else what the process has.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sys::process::{Mapping, each_mapping, place_of, proc_path};
use crate::sys::{inode_generation, is_file_of, open_regular};

/// Which file is mapped, as the kernel's record tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) path: Vec<u8>,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    /// Of the inode, whose number another file may have had; 0 where it is not known.
    pub(super) generation: u64,
}

/// What the kernel writes after the path of a file that is in no folder any more.
const DELETED: &[u8] = b" (deleted)";

impl Key {
    /// The path without what says that the file is in no folder.
    pub(super) fn name(&self) -> &[u8] {
        self.path.strip_suffix(DELETED).unwrap_or(&self.path)
    }

    /// The file, if it is at its path for the recorder.
    pub(super) fn open_here(&self) -> Option<File> {
        self.open_if_it_is(Path::new(OsStr::from_bytes(&self.path)))
    }

    /// The file, from a process that has it mapped.
    pub(super) fn open_of(&self, pid: u32) -> Option<File> {
        let process = proc_path(pid);
        let is_it = |path: &[u8]| path == self.path || path.strip_suffix(DELETED).unwrap_or(path) == self.name();
        let is_its = |map: &Mapping| map.inode == self.inode && (map.device == self.device || is_it(&map.path));
        let map = each_mapping(pid).find(is_its)?;
        let mapped = open_regular(&place_of(pid as i32, &map), |_, _| true).ok();
        // Meanwhile another file may have been mapped there. (The inode of `stat` would not do: that of overlayfs may be another one.)
        let is_still = |now: Mapping| (now.start, now.end) == (map.start, map.end) && is_its(&now);
        let mapped = mapped.filter(|_| each_mapping(pid).any(is_still));
        // Only those who may do much are shown what is mapped.
        let named = || [process.join("exe"), self.path_of(pid)].iter().find_map(|path| self.open_if_it_is(path));
        mapped.filter(|file| self.is_of_generation(file)).or_else(named)
    }

    /// The path, in the root of a process.
    pub(super) fn path_of(&self, pid: u32) -> PathBuf {
        proc_path(pid).join("root").join(OsStr::from_bytes(self.path.strip_prefix(b"/").unwrap_or(&self.path)))
    }

    /// The file at a path, if it is this one.
    fn open_if_it_is(&self, path: &Path) -> Option<File> {
        let file = open_regular(path, |file, stat| is_file_of(file, stat, self.device, self.inode)).ok()?;
        self.is_of_generation(&file).then_some(file)
    }

    /// Whether nothing tells that the file is a later one with the same inode number.
    fn is_of_generation(&self, file: &File) -> bool {
        self.generation == 0 || inode_generation(file.as_fd()).is_none_or(|generation| generation == self.generation)
    }
}
