//! What the tracer knows of a process: its mappings, its decoded code, where no breakpoint may be.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use addresses::Avma;
use lookahead::{CodeCache, PAGE};

use crate::sys::process::{Mapping, proc_path};
use crate::tracer::kernel::{Kernel, Processes, ThreadMemory};

/// Decoded instructions kept per process, about 70 bytes each.
const CODE: usize = 1 << 17;
/// Mappings are read again when what that costs is this small a share of the time since,
const SHARE: u32 = 1000;
/// or a smaller one, if as much is mapped as before,
const SHARE_IF_SAME_SIZE: u32 = 20_000;
/// but not for longer than this.
const LONGEST_IF_SAME_SIZE: Duration = Duration::from_secs(1);

/// The address space of a process, as of a moment ago.
pub(crate) struct AddressSpace {
    pid: i32,
    read: Option<(Instant, Duration)>,
    sizes: Option<Sizes>,
    pub(crate) code: CodeCache,
    pub(crate) layout: Layout,
}

/// How much a process has mapped: cheaper to read than what.
struct Sizes {
    statm: File,
    /// In all, and data and stack: fields 1 and 6 of statm in proc(5).
    last: Option<(u64, u64)>,
}

impl Sizes {
    fn of(pid: u32) -> Option<Self> {
        Some(Self { statm: File::open(proc_path(pid).join("statm")).ok()?, last: None })
    }

    fn have_changed(&mut self) -> bool {
        let mut text = [0; 160];
        let read = self.statm.read_at(&mut text, 0).unwrap_or(0);
        let mut fields =
            text[..read].trim_ascii().split(|&byte| byte == b' ').map(|field| str::from_utf8(field).ok()?.parse().ok());
        let sizes = fields.next().flatten().zip(fields.nth(4).flatten());
        let same = sizes.is_some() && sizes == self.last;
        self.last = sizes;
        !same
    }
}

/// What is mapped where.
#[derive(Default)]
pub(crate) struct Layout {
    mappings: Vec<Mapping>,
    /// Restartable sequences (`rseq(2)`), by file, as far as they were looked up.
    critical: HashMap<Vec<u8>, Vec<Range<Avma>>>,
    /// Code that may be rewritten at any time: writable, or of no file.
    volatile: Vec<Range<Avma>>,
    /// The pages of the kernel's clock.
    vvar: Option<Range<u64>>,
}

impl AddressSpace {
    pub(crate) fn new(pid: i32) -> Self {
        Self { pid, read: None, sizes: None, code: CodeCache::new(CODE), layout: Layout::default() }
    }

    /// Forgets everything: the process has another program now.
    pub(crate) fn forget(&mut self) {
        (self.read, self.sizes) = (None, None);
        self.layout = Layout::default();
        self.code.clear();
    }

    /// Looks again what is mapped, if that is due, and forgets decoded code that may have changed.
    pub(crate) fn refresh(&mut self, kernel: &impl Kernel) {
        self.forget_volatile();
        let now = kernel.now();
        if let Some((at, cost)) = self.read
            && (now - at < cost * SHARE
                || now - at < (cost * SHARE_IF_SAME_SIZE).min(LONGEST_IF_SAME_SIZE) && !self.size_has_changed())
        {
            return;
        }
        self.look(kernel);
    }

    /// Looks again what is mapped if code that was decoded since there were `blocks` is in nothing that was: then it was mapped since.
    pub(crate) fn refresh_if_unknown(&mut self, kernel: &impl Kernel, blocks: usize) {
        if self.layout.lacks(self.code.decoded_since(blocks)) {
            self.look(kernel);
        }
    }

    fn look(&mut self, kernel: &impl Kernel) {
        let (now, began) = (kernel.now(), kernel.own_time());
        self.reread(kernel, self.pid, |_| {});
        self.read = Some((now, kernel.own_time().saturating_sub(began)));
    }

    /// Forgets decoded code that may have been rewritten.
    pub(crate) fn forget_volatile(&mut self) {
        for range in &self.layout.volatile {
            self.code.invalidate(range.clone());
        }
    }

    /// Looks again what is mapped, and forgets decoded code that is not there any more; `before_code_goes` sees where it was. `thread` is one
    /// of the process that lives: the first may have ended.
    pub(crate) fn reread(&mut self, kernel: &impl Processes, thread: i32, before_code_goes: impl FnOnce(&Layout)) {
        let new = kernel.mappings(thread);
        if new == self.layout.mappings {
            return;
        }
        if self.layout.gone(&new).next().is_some() {
            before_code_goes(&self.layout);
        }
        for range in self.layout.replace(new) {
            self.code.invalidate(range);
        }
    }

    /// Whether `address` is in a restartable sequence, where a breakpoint would make it restart for ever.
    pub(crate) fn is_critical<K: ThreadMemory + Processes>(&mut self, kernel: &K, address: Avma) -> bool {
        self.layout.is_critical(kernel, self.pid, address)
    }

    /// Whether another amount is mapped, or is data, than when this was asked last.
    fn size_has_changed(&mut self) -> bool {
        if self.sizes.is_none() {
            self.sizes = Sizes::of(self.pid as u32);
        }
        self.sizes.as_mut().is_none_or(Sizes::have_changed)
    }
}

impl Layout {
    /// Puts `new` in place of what was mapped. Returns where code was that is not there any more.
    fn replace(&mut self, new: Vec<Mapping>) -> Vec<Range<Avma>> {
        let gone = self.gone(&new).map(|map| Avma(map.start)..Avma(map.end)).collect();
        let executable = |map: &&Mapping| map.prot & 4 != 0;
        let same_code =
            self.mappings.iter().filter(executable).map(extent).eq(new.iter().filter(executable).map(extent));
        self.mappings = new;
        let is_volatile = |map: &&Mapping| map.prot & 6 == 6 || !map.has_code_elsewhere();
        let volatile = self.mappings.iter().filter(executable).filter(is_volatile);
        self.volatile = volatile.map(|map| Avma(map.start)..Avma(map.end)).collect();
        self.vvar = self.mappings.iter().find(|map| map.path.starts_with(b"[vvar")).map(|map| map.start..map.end);
        if !same_code {
            self.critical.clear();
        }
        gone
    }

    /// Mappings of code that are not among `new`.
    fn gone<'a>(&'a self, new: &'a [Mapping]) -> impl Iterator<Item = &'a Mapping> {
        self.mappings.iter().filter(|map| map.prot & 4 != 0).filter(|old| !new.contains(old))
    }

    /// The name of what is mapped at `address`, and the offset in it.
    #[cfg(feature = "simulated-pmu")]
    pub(crate) fn place_in_file(&self, address: Avma) -> Option<(&[u8], u64)> {
        let map = self.mapping(address)?;
        Some((&map.path, map.offset + (address.0 - map.start)))
    }

    /// Whether there is code that is in no file.
    pub(crate) fn has_made_code(&self) -> bool {
        !self.volatile.is_empty()
    }

    /// Whether the code at `address` is in no file.
    pub(crate) fn is_made_code(&self, address: Avma) -> bool {
        self.volatile.iter().any(|range| range.contains(&address))
            && self.mapping(address).is_some_and(|map| !map.has_code_elsewhere())
    }

    /// Whether one of these addresses is in no code.
    fn lacks(&self, mut addresses: impl Iterator<Item = Avma>) -> bool {
        addresses.any(|address| self.mapping(address).is_none_or(|map| map.prot & 4 == 0))
    }

    /// What is mapped at `address`.
    pub(crate) fn mapping(&self, address: Avma) -> Option<&Mapping> {
        mapping_at(&self.mappings, address)
    }

    /// Whether the process may write to this page.
    pub(crate) fn writable(&self, address: Avma) -> bool {
        // What is not there was mapped since, which new memory usually is to be written.
        self.mapping(address).is_none_or(|map| map.prot & 2 != 0)
    }

    /// The offset into the pages of the kernel's clock, if `address` is one of them.
    pub(crate) fn vvar_offset(&self, address: Avma) -> Option<u64> {
        self.vvar.as_ref().filter(|range| range.contains(&address.0)).map(|range| address.0 - range.start)
    }

    /// Whether `address` is in a restartable sequence, where a breakpoint would make it restart for ever. They are looked up in the file
    /// that the code there is of, once.
    fn is_critical<K: ThreadMemory + Processes>(&mut self, kernel: &K, pid: i32, address: Avma) -> bool {
        let index = self.mappings.partition_point(|map| map.end <= address.0);
        let Some(map) = self.mappings.get(index).filter(|map| map.start <= address.0 && map.inode != 0) else {
            return false;
        };
        if !self.critical.contains_key(&map.path) {
            let sequences = self.critical_sections(kernel, pid, map);
            self.critical.insert(map.path.clone(), sequences);
        }
        let of_file = self.mappings.get(index).and_then(|map| self.critical.get(&map.path));
        of_file.is_some_and(|ranges| ranges.iter().any(|range| range.contains(&address)))
    }

    /// Restartable sequences are described by `struct rseq_cs`, which programs put into a section `__rseq_cs` (`linux/rseq.h`).
    fn critical_sections<K: ThreadMemory + Processes>(&self, kernel: &K, pid: i32, map: &Mapping) -> Vec<Range<Avma>> {
        let Some((offset, size)) = kernel.section_of_sequences(pid, map) else { return Vec::new() };
        let holds = |other: &&Mapping| {
            other.path == map.path && (other.offset..other.offset + (other.end - other.start)).contains(&offset)
        };
        // The file is mapped with overlaps at segment ends; data is where it can be relocated.
        let Some(data) = self.mappings.iter().filter(holds).max_by_key(|other| other.offset) else { return Vec::new() };
        let (mut bytes, start) = (vec![0; size.min(1 << 20)], data.start + (offset - data.offset));
        let pages: Vec<Avma> =
            (start & !(PAGE as u64 - 1)..start + bytes.len() as u64).step_by(PAGE).map(Avma).collect();
        let mut present = vec![true; pages.len()];
        if kernel.server(pid, data).is_some() {
            kernel.present(pid, &pages, &mut present);
        }
        if present.contains(&false) || !kernel.read_memory(pid, Avma(start), &mut bytes) {
            return Vec::new();
        }
        // u32 version, flags; u64 start_ip, post_commit_offset, abort_ip.
        let sequence = |sequence: &[u8]| {
            let (words, _) = sequence.as_chunks::<8>();
            let start = u64::from_le_bytes(words[1]);
            Avma(start)..Avma(start.saturating_add(u64::from_le_bytes(words[2])))
        };
        bytes.chunks_exact(32).map(sequence).collect()
    }
}

/// The one of ascending mappings that `address` is in.
pub(crate) fn mapping_at(mappings: &[Mapping], address: Avma) -> Option<&Mapping> {
    mappings.get(mappings.partition_point(|map| map.end <= address.0)).filter(|map| map.start <= address.0)
}

fn extent(map: &Mapping) -> (u64, u64, u64, u64) {
    (map.start, map.end, map.inode, map.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, prot: u32) -> Mapping {
        let path = b"/usr/bin/node".to_vec();
        Mapping { start, end: start + 0x1000, prot, shared: false, offset: 0, device: (0, 0), inode: 7, path }
    }

    #[test]
    fn code_outside_of_all_that_is_known_was_mapped_since() {
        let mut layout = Layout::default();
        layout.replace(vec![map(0x1000, 5), map(0x2000, 3)]);
        let lacks = |addresses: &[u64]| layout.lacks(addresses.iter().copied().map(Avma));
        assert!(!lacks(&[0x1000, 0x1fff]) && !lacks(&[]));
        assert!(lacks(&[0x1000, 0x3000]) && lacks(&[0x2000]), "nothing, or data until now");
    }
}
