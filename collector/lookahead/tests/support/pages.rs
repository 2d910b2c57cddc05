//! Memory made of pages that a test fills.

use std::collections::HashMap;
use std::ptr::NonNull;

use addresses::Avma;
use lookahead::{Fault, InPlace, Memory, PAGE, Page};

#[derive(Default, Clone)]
pub struct Pages {
    pages: HashMap<u64, Box<Page>>,
    /// Pages read so far.
    pub reads: u64,
    /// They are used where they are, and not read.
    pub in_place: bool,
    /// Page numbers that may not be written to.
    pub read_only: Vec<u64>,
}

impl Pages {
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        for (index, &byte) in bytes.iter().enumerate() {
            let at = address + index as u64;
            self.pages.entry(at >> 12).or_insert_with(|| Box::new([0; PAGE]))[(at & 0xfff) as usize] = byte;
        }
    }
}

impl Memory for Pages {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        self.reads += 1;
        page.copy_from_slice(&self.pages.get(&(address.0 >> 12)).ok_or(Fault)?[..]);
        Ok(())
    }

    fn in_place(&mut self, address: Avma) -> Result<Option<InPlace>, Fault> {
        if !self.in_place {
            return Ok(None);
        }
        let page = self.pages.get(&(address.0 >> 12)).ok_or(Fault)?;
        // SAFETY: tests put no new pages in place of those that an overlay has.
        Ok(Some(unsafe { InPlace::new(NonNull::from(&**page)) }))
    }

    fn writable(&mut self, address: Avma) -> bool {
        !self.read_only.contains(&(address.0 >> 12))
    }
}
