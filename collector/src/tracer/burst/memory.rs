//! The memory of a stopped thread, as the interpreter reads it.

use std::collections::HashMap;

use addresses::Avma;
use lookahead::{Fault, Memory, PAGE, Page};

use crate::tracer::burst::address_space::Layout;
use crate::tracer::kernel::ThreadMemory;

/// Pages fetched together at most.
const MOST_PAGES: usize = 256;

/// Pages that a thread's last burst touched, read in one go: the next burst is likely to need many of them.
pub(crate) struct PageReader {
    addresses: Vec<Avma>,
    pages: Vec<Page>,
    fetched: HashMap<Avma, u32>,
    /// Pages that had to be read one by one.
    pub(crate) missed: u64,
}

impl PageReader {
    pub(crate) fn new() -> Self {
        Self { addresses: Vec::new(), pages: Vec::new(), fetched: HashMap::new(), missed: 0 }
    }

    /// Reads the pages at `addresses`, as far as they can be read.
    pub(crate) fn fetch(&mut self, kernel: &impl ThreadMemory, pid: i32, addresses: &[Avma]) {
        self.missed = 0;
        self.addresses.clear();
        self.addresses.extend(addresses.iter().take(MOST_PAGES));
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
        ProcessMemory { reader: self, kernel, pid, layout }
    }
}

/// Reads the process's memory; nothing is ever written to it.
pub(crate) struct ProcessMemory<'a, K> {
    reader: &'a mut PageReader,
    kernel: &'a K,
    pid: i32,
    layout: &'a Layout,
}

impl<K: ThreadMemory> Memory for ProcessMemory<'_, K> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        if let Some(&index) = self.reader.fetched.get(&address) {
            *page = self.reader.pages[index as usize];
            return Ok(());
        }
        self.reader.missed += 1;
        if self.kernel.read_pages(self.pid, &[address], std::slice::from_mut(page)) == 1 {
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
