//! The ELF files that the kernel maps into all processes (vdso(7)): one into those of 64 bits, another one into those of 32. And the page of the
//! vsyscalls, where it can be read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use perf_event_open_sys::bindings as sys;

use crate::session::record_layout::{RecordBytes, path_of_mapping, word};
use crate::sys::is_of_i386;
use crate::sys::process::{each_mapping, proc_path};

const NAME: &[u8] = b"[vdso]";
/// No vDSO has so many bytes.
const MOST: u64 = 1 << 20;

/// That of processes of 64 bits.
pub(crate) fn vdso() -> Option<&'static [u8]> {
    static VDSO: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let own = std::process::id();
    let read = || {
        let map = each_mapping(own).find(|map| map.path == NAME)?;
        read(own, map.start, map.end - map.start)
    };
    VDSO.get_or_init(read).as_deref()
}

/// Where the page of the vsyscalls is, and what it has; `None` if it is not there, or may only be executed (`vsyscall=xonly`, as Linux has it by
/// default): then nobody reads it.
pub(crate) fn vsyscall() -> Option<(u64, Vec<u8>)> {
    const READABLE: u32 = 1;
    let own = std::process::id();
    let map = each_mapping(own).find(|map| map.path == b"[vsyscall]" && map.prot & READABLE != 0)?;
    let mut memory = File::open(proc_path(own).join("mem")).ok()?;
    // An offset of that size is none to pread(2).
    memory.seek(SeekFrom::Start(map.start)).ok()?;
    let mut page = vec![0; (map.end - map.start).min(MOST) as usize];
    memory.read_exact(&mut page).ok()?;
    Some((map.start, page))
}

/// That of processes of 32 bits: there once one of them is recorded.
#[derive(Debug, Default)]
pub(crate) struct Vdso32 {
    is_mapped: bool,
    file: Option<Vec<u8>>,
    is_written: bool,
}

impl Vdso32 {
    /// Takes in a record that has just come: its process may end soon.
    pub(crate) fn see(&mut self, record: &RecordBytes<'_>) {
        if record.kind == sys::PERF_RECORD_MMAP2
            && self.file.is_none()
            && let Some((pid, start, length)) = mapping(record.body)
        {
            let file = read(pid, start, length);
            // That of x32 has code of 64 bits. One whose process has ended is not known.
            self.is_mapped |= file.as_ref().is_none_or(|file| is_of_i386(file));
            self.file = file.filter(|file| is_of_i386(file));
        }
    }

    /// Whether a process of 32 bits is recorded.
    pub(crate) fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    /// Another file begins, which is to have it, too.
    pub(crate) fn write_again(&mut self) {
        self.is_written = false;
    }

    /// What is to be written.
    pub(crate) fn take_new(&mut self) -> Option<&[u8]> {
        let file = self.file.as_deref().filter(|_| !self.is_written)?;
        self.is_written = true;
        Some(file)
    }
}

/// The process, the start and the length, if a process of 32 bits has it there.
fn mapping(body: &[u8]) -> Option<(u32, u64, u64)> {
    // pid, tid, start, length.
    let (pid, start, length) = (word(body, 0)? as u32, word(body, 8)?, word(body, 16)?);
    // In processes of 64 bits it is near the stack, which is above.
    (start < 1 << 32 && path_of_mapping(body)? == NAME).then_some((pid, start, length))
}

fn read(process: u32, start: u64, length: u64) -> Option<Vec<u8>> {
    let memory = File::open(proc_path(process).join("mem")).ok()?;
    let mut file = vec![0; length.min(MOST) as usize];
    memory.read_exact_at(&mut file, start).ok()?;
    Some(file)
}
