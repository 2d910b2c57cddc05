//! Records for what was there before the recording: names, parents and mappings, from `/proc`.

use std::io::Write;
use std::path::Path;

use perfdata::{Avma, Comm, CpuMode, Error, MappedFile, Mmap, SampleId, Task, Writer};

use crate::session::kernel_image::{KernelMapping, kernel_text, modules};
use crate::session::standing::sample_id;
use crate::sys::process::{Mapping, group_and_parent, mappings, thread_name, threads};

/// Protection of code: read and execute.
const CODE: u32 = 5;

/// Writes the kernel's own mappings. Returns whether the kernel showed where it is.
pub(crate) fn kernel<W: Write>(writer: &mut Writer<W>, release: &str) -> Result<bool, Error> {
    let Some(text) = kernel_text(Path::new("/proc/kallsyms")) else { return Ok(false) };
    for mapping in [text].into_iter().chain(modules(Path::new("/"), release)) {
        kernel_mapping(writer, &mapping)?;
    }
    Ok(true)
}

/// Writes a mapping of the kernel.
pub(crate) fn kernel_mapping<W: Write>(writer: &mut Writer<W>, mapping: &KernelMapping) -> Result<(), Error> {
    let KernelMapping { start, length, reference, ref name } = *mapping;
    let sample_id = sample_id(writer.events(), u32::MAX, 0);
    writer.write_mmap2(&Mmap {
        cpu_mode: CpuMode::Kernel,
        pid: u32::MAX,
        tid: 0,
        start: Avma(start),
        len: length,
        pgoff: reference,
        file: MappedFile::Unknown,
        prot: CODE,
        path: name.as_bytes(),
        sample_id,
        ..Mmap::default()
    })
}

/// Writes a process: its threads' names and beginnings, and its executable mappings.
pub(crate) fn process<W: Write>(writer: &mut Writer<W>, pid: u32) -> Result<(), Error> {
    let Some((group, parent)) = group_and_parent(pid) else { return Ok(()) };
    for tid in threads(group) {
        let Some(name) = thread_name(group, tid) else { continue };
        let sample_id = sample_id(writer.events(), group, tid);
        let (ppid, ptid) = if tid == group { (parent, parent) } else { (group, group) };
        writer.write_fork_of_running(&Task { pid: group, ppid, tid, ptid, time: 0, sample_id })?;
        writer.write_comm(&Comm { pid: group, tid, exec: false, name: &name, sample_id })?;
    }
    for map in mappings(group).iter().filter(|map| map.prot & 4 != 0) {
        mapping(writer, group, map)?;
    }
    Ok(())
}

fn mapping<W: Write>(writer: &mut Writer<W>, pid: u32, map: &Mapping) -> Result<(), Error> {
    let sample_id = sample_id(writer.events(), pid, pid);
    writer.write_mmap2(&mmap(pid, map, sample_id))
}

/// The record of a mapping of a process.
pub(crate) fn mmap(pid: u32, map: &Mapping, sample_id: SampleId) -> Mmap<'_> {
    const MAP_SHARED: u32 = 1;
    const MAP_PRIVATE: u32 = 2;
    Mmap {
        cpu_mode: CpuMode::User,
        pid,
        tid: pid,
        start: Avma(map.start),
        len: map.end - map.start,
        pgoff: map.offset,
        file: MappedFile::Inode { maj: map.device.0, min: map.device.1, ino: map.inode, generation: 0 },
        prot: map.prot,
        flags: if map.shared { MAP_SHARED } else { MAP_PRIVATE },
        path: &map.path,
        sample_id,
        ..Mmap::default()
    }
}
