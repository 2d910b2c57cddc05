//! The file of a mapping: at its path, if that is it, or else what the process has.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use perfdata::Avma;

use crate::sys::process::{Mapping, each_mapping, place_of, proc_path};
use crate::sys::{inode_generation, is_file_of, is_of_overlay, open_regular, read_memory};

/// Which file is mapped, as the kernel's record tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) path: Vec<u8>,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    /// Of the inode, whose number another file may have had; 0 where it is not known.
    pub(super) generation: u64,
}

/// Bytes of a page.
const PAGE: usize = 4096;
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
        let map = each_mapping(pid).find(|map| self.is_of(map))?;
        let mapped = open_regular(&place_of(pid as i32, &map), |_, _| true).ok();
        // Meanwhile another file may have been mapped there. (The inode of `stat` would not do: that of overlayfs may be another one.)
        let is_still = |now: Mapping| (now.start, now.end) == (map.start, map.end) && self.is_of(&now);
        let mapped = mapped.filter(|_| each_mapping(pid).any(is_still));
        // Only those who may do much are shown what is mapped.
        let named = || [process.join("exe"), self.path_of(pid)].iter().find_map(|path| self.open_if_it_is(path));
        mapped.filter(|file| self.is_of_generation(file)).or_else(named)
    }

    /// Whether nothing tells that a process has another file in its memory. Written to in its place, a file of an overlay's lower layer becomes
    /// one of the upper layer, of the same path and inode, and the memory of those who had it mapped stays what it was.
    pub(super) fn is_in_memory(&self, pid: u32, file: &File) -> bool {
        if !is_of_overlay(file) {
            return true;
        }
        let mut maps: Vec<Mapping> = each_mapping(pid).filter(|map| self.is_of(map) && map.prot & 2 == 0).collect();
        maps.sort_by_key(|map| map.offset);
        // The head of the file, as a rule: nobody writes there.
        let Some(first) = maps.first() else { return true };
        let [mut mapped, mut here] = [[0; PAGE]; 2];
        if !read_memory(pid as i32, Avma(first.start), &mut mapped) {
            return true;
        }
        read_from(file, first.offset, &mut here).is_ok() && here == mapped
    }

    /// Whether a mapping is of this file.
    fn is_of(&self, map: &Mapping) -> bool {
        let is_it = |path: &[u8]| path == self.path || path.strip_suffix(DELETED).unwrap_or(path) == self.name();
        map.inode == self.inode && (map.device == self.device || is_it(&map.path))
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

/// Fills `bytes` from a file, with zeros after its end, as memory has them.
fn read_from(file: &File, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, offset)? {
            0 => break,
            read => (offset, bytes) = (offset + read as u64, &mut bytes[read..]),
        }
    }
    Ok(())
}
