//! The memory of a stopped thread, as the interpreter reads it.

use std::collections::HashMap;

use addresses::Avma;
use lookahead::{Fault, Memory, PAGE, Page};

use crate::sys::process::Mapping;
use crate::tracer::burst::address_space::{Layout, mapping_at};
use crate::tracer::kernel::{Processes, ThreadMemory};

/// Pages fetched together at most.
const MOST_PAGES: usize = 256;

/// Pages that a thread's last burst touched, read in one go: the next burst is likely to need many of them.
pub(crate) struct PageReader {
    addresses: Vec<Avma>,
    pages: Vec<Page>,
    present: Vec<bool>,
    fetched: HashMap<Avma, u32>,
    /// Pages that had to be read one by one.
    pub(crate) missed: u64,
    /// One was not read, as another process would have to serve it.
    pub(crate) met_served: bool,
}

impl PageReader {
    pub(crate) fn new() -> Self {
        Self {
            addresses: Vec::new(),
            pages: Vec::new(),
            present: Vec::new(),
            fetched: HashMap::new(),
            missed: 0,
            met_served: false,
        }
    }

    /// Reads the pages at `addresses`, ascending, as far as they can be read.
    pub(crate) fn fetch(&mut self, kernel: &impl ThreadMemory, pid: i32, addresses: &[Avma]) {
        (self.missed, self.met_served) = (0, false);
        let addresses = &addresses[..addresses.len().min(MOST_PAGES)];
        self.present.resize(addresses.len(), false);
        kernel.present(pid, addresses, &mut self.present);
        self.addresses.clear();
        // What is not there is read when it is used: then it is known what it is.
        let present = addresses.iter().zip(&self.present).filter(|(_, present)| **present);
        self.addresses.extend(present.map(|(address, _)| address));
        if self.pages.len() < self.addresses.len() {
            self.pages.resize(self.addresses.len(), [0; PAGE]);
        }
        self.fetched.clear();
        let mut start = 0;
        while start < self.addresses.len() {
            let read = kernel.read_pages(pid, &self.addresses[start..], &mut self.pages[start..]);
            let found = self.addresses[start..start + read].iter().zip(start as u32..);
            self.fetched.extend(found.map(|(&address, index)| (address, index)));
            // The one after those could not be read.
            start += read + 1;
        }
    }

    /// The memory of a process, of which the fetched pages are at hand.
    pub(crate) fn memory<'a, K>(&'a mut self, kernel: &'a K, pid: i32, layout: &'a Layout) -> ProcessMemory<'a, K> {
        ProcessMemory { reader: self, kernel, pid, layout, newer: None }
    }
}

/// Reads the process's memory; nothing is ever written to it.
pub(crate) struct ProcessMemory<'a, K> {
    reader: &'a mut PageReader,
    kernel: &'a K,
    pid: i32,
    layout: &'a Layout,
    /// What is mapped by now, where the layout did not say.
    newer: Option<Vec<Mapping>>,
}

impl<K: ThreadMemory + Processes> ProcessMemory<'_, K> {
    /// Whether reading a page waits for nobody: it is present, or the kernel makes it so alone. One that another process or machine has to
    /// serve first is left alone: that may be stopped, or wait for what this thread does next.
    fn can_be_had(&mut self, page: Avma) -> bool {
        let Self { reader, kernel, pid, layout, newer } = self;
        let mut present = [false];
        kernel.present(*pid, &[page], &mut present);
        if present == [true] {
            return true;
        }
        let is_readable = |map: &&Mapping| map.prot & 1 != 0;
        let known = layout.mapping(page).filter(is_readable);
        let map =
            known.or_else(|| mapping_at(newer.get_or_insert_with(|| kernel.mappings(*pid)), page).filter(is_readable));
        let Some(map) = map else { return false };
        let is_of_device = map.path.starts_with(b"/dev/") && !map.path.starts_with(b"/dev/shm/");
        let alone = is_of_device || kernel.server(*pid, map).is_none() && kernel.comes_alone(*pid, page);
        reader.met_served |= !alone;
        alone
    }
}

impl<K: ThreadMemory + Processes> Memory for ProcessMemory<'_, K> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        if let Some(&index) = self.reader.fetched.get(&address) {
            *page = self.reader.pages[index as usize];
            return Ok(());
        }
        self.reader.missed += 1;
        if self.can_be_had(address) && self.kernel.read_pages(self.pid, &[address], std::slice::from_mut(page)) == 1 {
            return Ok(());
        }
        // The kernel shows its clock to every process, but not to others through `process_vm_readv`.
        match self.layout.vvar_offset(address) {
            Some(offset) if self.kernel.read_clock_page(offset, page) => Ok(()),
            _ => Err(Fault),
        }
    }

    fn writable(&mut self, address: Avma) -> bool {
        self.layout.writable(address)
    }
}
