//! Where the files of profiles are in the recording.
//!
//! Profiles state addresses as files do, so those of two files are often the same. In the recording each file has a place of its own, in
//! all processes the same, and an address is there what its offset in the file says:
//! ```text
//! 0x0000'0000'0000'0000   what no mapping explains
//! 0x0000'0010'0000'0000   first file: 64 GiB, the upper half for what has no offset
//! 0x0000'0020'0000'0000   second file ..
//! 0x8000'0000'0000'0000   the kernel's code that no mapping explains
//! 0xffff'8000'0000'0000   kernel modules and BPF programs: 4 GiB each
//! 0xffff'ffff'8100'0000   the kernel
//! ```

use std::collections::HashMap;
use std::rc::Rc;

use perfdata::{Avma, BuildId, CpuMode, MappedFile, Mmap};

/// Bytes of the place of a file, and of what is made in the kernel.
const FILE: u64 = 1 << 36;
const KERNEL_PIECE: u64 = 1 << 32;
/// What has no offset in its file is at its address in this half.
const WITHOUT_OFFSET: u64 = FILE / 2;
/// How many places there are.
const MOST_FILES: u64 = 1 << 26;
const MOST_PIECES: u64 = 0x7000;

/// Where addresses of the kernel begin.
pub(crate) const KERNEL_HALF: u64 = 1 << 63;
const PIECES: u64 = 0xffff_8000_0000_0000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const KERNEL_SIZE: u64 = 0x3f00_0000;
/// What the kernel is called, with the symbol that is at its beginning.
const KERNEL_NAME: &str = "[kernel.kallsyms]_text";
/// Its process.
const KERNEL_PID: u32 = u32::MAX;

/// Code that samples are in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Code {
    /// A file, or memory without one, of a process.
    File { path: Rc<str>, build_id: Option<BuildId> },
    /// The kernel itself.
    Kernel { build_id: Option<BuildId> },
    /// A module of the kernel, or code that was made in it: its name.
    InKernel { name: Rc<str> },
}

/// Where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// At this offset in the file; of the kernel and its modules, so far from the beginning of their code.
    Offset(u64),
    /// The offset is not known.
    Address(u64),
}

/// Where a code is in the recording.
#[derive(Debug)]
pub(crate) struct Place {
    id: usize,
    code: Code,
    start: u64,
    size: u64,
    /// The offset at its start, or what stands there.
    pgoff: u64,
}

/// The places that are taken.
#[derive(Default)]
pub(crate) struct Places {
    places: HashMap<Code, Rc<Place>>,
    files: u64,
    pieces: u64,
    /// The build of the kernel that has its place: the first one.
    kernel: Option<Code>,
}

impl Places {
    /// The place of a code; `None` if all are taken, or if it is another kernel than the first one.
    pub(crate) fn of(&mut self, code: &Code) -> Option<Rc<Place>> {
        if let Some(known) = self.places.get(code) {
            return Some(known.clone());
        }
        let (start, size, pgoff) = match code {
            Code::File { .. } => {
                self.files = (self.files < MOST_FILES).then_some(self.files + 1)?;
                (self.files * FILE, FILE, 0)
            }
            Code::Kernel { .. } => {
                if self.kernel.get_or_insert_with(|| code.clone()) != code {
                    return None;
                }
                (KERNEL, KERNEL_SIZE, KERNEL)
            }
            Code::InKernel { .. } => {
                self.pieces = (self.pieces < MOST_PIECES).then_some(self.pieces + 1)?;
                let start = PIECES + (self.pieces - 1) * KERNEL_PIECE;
                (start, KERNEL_PIECE, start)
            }
        };
        let place = Rc::new(Place { id: self.places.len(), code: code.clone(), start, size, pgoff });
        self.places.insert(code.clone(), place.clone());
        Some(place)
    }
}

impl Place {
    /// What tells it from others.
    pub(crate) fn id(&self) -> usize {
        self.id
    }

    /// Whether it is in the kernel.
    pub(crate) fn is_kernel(&self) -> bool {
        !matches!(self.code, Code::File { .. })
    }

    /// The address in the recording.
    pub(crate) fn address(&self, at: At) -> Avma {
        let offset = match (at, self.is_kernel()) {
            (At::Offset(offset), false) if offset < WITHOUT_OFFSET => offset,
            (At::Offset(offset) | At::Address(offset), false) => WITHOUT_OFFSET + offset % WITHOUT_OFFSET,
            (At::Offset(offset), true) if offset < self.size => offset,
            (At::Offset(address) | At::Address(address), true) => return of_kernel(address),
        };
        Avma(self.start + offset)
    }

    /// Its mapping in a process; the kernel's is in all.
    pub(crate) fn mmap(&self, pid: u32) -> Mmap<'_> {
        let (path, build_id) = match &self.code {
            Code::File { path, build_id } => (&**path, build_id),
            Code::Kernel { build_id } => (KERNEL_NAME, build_id),
            Code::InKernel { name } => (&**name, &None),
        };
        let (cpu_mode, pid) = if self.is_kernel() { (CpuMode::Kernel, KERNEL_PID) } else { (CpuMode::User, pid) };
        const READ_EXECUTE: u32 = 5;
        const PRIVATE: u32 = 2;
        Mmap {
            cpu_mode,
            pid,
            tid: pid,
            start: Avma(self.start),
            len: self.size,
            pgoff: self.pgoff,
            file: build_id.map_or(MappedFile::Unknown, MappedFile::BuildId),
            prot: READ_EXECUTE,
            flags: PRIVATE,
            path: path.as_bytes(),
            ..Mmap::default()
        }
    }
}

/// Where code of the kernel is that no mapping explains.
pub(crate) fn of_kernel(address: u64) -> Avma {
    Avma(KERNEL_HALF + address % (1 << 47))
}

/// Where code is that no mapping explains.
pub(crate) fn unknown(address: u64) -> Avma {
    Avma(address % FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_place_of_its_own() {
        let mut places = Places::default();
        let file = |path: &str| Code::File { path: path.into(), build_id: None };
        let mut ends = Vec::new();
        for code in [file("/a"), file("/b"), Code::InKernel { name: "[a]".into() }, Code::Kernel { build_id: None }] {
            let place = places.of(&code).unwrap();
            assert_eq!(place.id(), places.of(&code).unwrap().id());
            ends.push((place.start, place.start + place.size));
            for at in [At::Offset(0), At::Offset(FILE - 1), At::Offset(u64::MAX), At::Address(u64::MAX)] {
                let address = place.address(at).0;
                let is_there = (place.start..place.start + place.size).contains(&address);
                assert!(is_there || place.is_kernel() && (KERNEL_HALF..PIECES).contains(&address), "{at:?} {place:?}");
            }
        }
        assert!(ends.is_sorted() && ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
        let other = Code::Kernel { build_id: BuildId::new(&[1]) };
        assert!(places.of(&other).is_none());
    }
}
