//! The memory of a stopped thread, as the interpreter reads it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use addresses::Avma;
use lookahead::{Fault, Memory, PAGE, Page};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::sys::process::mappings;
use crate::sys::{copy_own_page, read_pages};
use crate::tracer::address_space::Layout;

/// Pages fetched together at most.
const MOST_PAGES: usize = 256;

/// Pages that a thread's last burst touched, read in one go: the next burst is likely to need many of them.
pub(crate) struct PageReader {
    addresses: Vec<Avma>,
    pages: Vec<Page>,
    places: HashMap<Avma, u32>,
    /// Pages that had to be read one by one.
    pub(crate) missed: u64,
    pipe: Option<(OwnedFd, OwnedFd)>,
    /// Where this process has the pages of the kernel's clock.
    own_vvar: Option<u64>,
}

impl PageReader {
    pub(crate) fn new() -> Self {
        let own = mappings(std::process::id()).into_iter().find(|map| map.path.starts_with(b"[vvar"));
        Self {
            addresses: Vec::new(),
            pages: Vec::new(),
            places: HashMap::new(),
            missed: 0,
            pipe: pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok(),
            own_vvar: own.map(|map| map.start),
        }
    }

    /// Reads the pages at `addresses`, as far as they can be read.
    pub(crate) fn fetch(&mut self, pid: i32, addresses: &[Avma]) {
        self.missed = 0;
        self.addresses.clear();
        self.addresses.extend(addresses.iter().take(MOST_PAGES));
        if self.pages.len() < self.addresses.len() {
            self.pages.resize(self.addresses.len(), [0; PAGE]);
        }
        self.places.clear();
        let mut start = 0;
        while start < self.addresses.len() {
            let read = read_pages(pid, &self.addresses[start..], &mut self.pages[start..]);
            let places = self.addresses[start..start + read].iter().zip(start as u32..);
            self.places.extend(places.map(|(&address, place)| (address, place)));
            // The one behind those could not be read.
            start += read + 1;
        }
    }

    /// The memory of a process, of which the fetched pages are at hand.
    pub(crate) fn memory<'a>(&'a mut self, pid: i32, layout: &'a Layout) -> ThreadMemory<'a> {
        ThreadMemory { reader: self, pid, layout }
    }
}

/// Reads the thread's memory; nothing is ever written to it.
pub(crate) struct ThreadMemory<'a> {
    reader: &'a mut PageReader,
    pid: i32,
    layout: &'a Layout,
}

impl Memory for ThreadMemory<'_> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        if let Some(&place) = self.reader.places.get(&address) {
            *page = self.reader.pages[place as usize];
            return Ok(());
        }
        self.reader.missed += 1;
        if read_pages(self.pid, &[address], std::slice::from_mut(page)) == 1 {
            return Ok(());
        }
        // The kernel shows its clock to every process, but not to others through `process_vm_readv`.
        match (self.layout.vvar_offset(address), self.reader.own_vvar, &self.reader.pipe) {
            (Some(offset), Some(own), Some(pipe)) if copy_own_page(pipe, Avma(own + offset), page) => Ok(()),
            _ => Err(Fault),
        }
    }

    fn writable(&mut self, address: Avma) -> bool {
        self.layout.writable(address)
    }
}
