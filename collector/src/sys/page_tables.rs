//! Which pages of a process are in its page tables, and which the kernel can put there alone: both without waiting for anybody.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use addresses::Avma;
use lookahead::PAGE;

use crate::sys::process::proc_path;

/// Processes whose files are kept open at most.
const MOST: usize = 64;
/// Pages in between that are asked for, too: less than one more system call.
const GAP: u64 = 64;
/// An entry of `/proc/PID/pagemap` (the kernel's pagemap.rst), and its bit for a page that is present.
const ENTRY: usize = 8;
const PRESENT: u64 = 1 << 63;

/// `/proc/PID/pagemap` of processes that were asked for lately.
#[derive(Default)]
pub(crate) struct PageTables {
    open: RefCell<HashMap<i32, File>>,
    entries: RefCell<Vec<u8>>,
}

impl PageTables {
    /// Of the pages at ascending addresses, those that are present: reading them waits for nobody.
    pub(crate) fn present(&self, process: i32, addresses: &[Avma], present: &mut [bool]) {
        present.fill(false);
        let near = |one: &Avma, next: &Avma| number(*next).wrapping_sub(number(*one)) <= GAP;
        let mut done = 0;
        for run in addresses.chunk_by(near) {
            self.of_run(process, run, &mut present[done..done + run.len()]);
            done += run.len();
        }
    }

    fn of_run(&self, process: i32, run: &[Avma], present: &mut [bool]) {
        let (Some(first), Some(last)) = (run.first().copied().map(number), run.last().copied().map(number)) else {
            return;
        };
        let mut entries = self.entries.borrow_mut();
        entries.resize((last - first + 1) as usize * ENTRY, 0);
        let read = self.read(process, first * ENTRY as u64, &mut entries);
        let (words, _) = entries[..read].as_chunks::<ENTRY>();
        for (address, present) in run.iter().zip(present) {
            let entry = words.get((number(*address) - first) as usize);
            *present = entry.is_some_and(|word| u64::from_ne_bytes(*word) & PRESENT != 0);
        }
    }

    /// Reads from the process's file; nothing where there is none.
    fn read(&self, process: i32, offset: u64, bytes: &mut [u8]) -> usize {
        let mut open = self.open.borrow_mut();
        let is_kept = open.contains_key(&process);
        if is_kept
            && let Some(read) = open.get(&process).and_then(|file| file.read_at(bytes, offset).ok())
            && read > 0
        {
            return read;
        }
        // A file that was opened before is of the memory that the process had then: none is left after exec.
        if open.len() >= MOST && !is_kept {
            open.clear();
        }
        let Ok(file) = File::open(proc_path(process as u32).join("pagemap")) else { return 0 };
        let read = file.read_at(bytes, offset).unwrap_or(0);
        open.insert(process, file);
        read
    }
}

/// Whether the kernel can make a page present without asking another process, as one that serves faults (userfaultfd(2)). It does so
/// then. Through `/proc/PID/mem` such a fault is refused at once: that is read page by page, and the kernel does not let these wait.
pub(crate) fn comes_alone(process: i32, page: Avma) -> bool {
    let file = File::open(proc_path(process as u32).join("mem"));
    file.is_ok_and(|file| file.read_at(&mut [0], page.0).is_ok_and(|read| read == 1))
}

fn number(page: Avma) -> u64 {
    page.0 / PAGE as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_process() {
        let memory = vec![1_u8; 4 * PAGE];
        let page = |address: u64| Avma(address & !(PAGE as u64 - 1));
        let inside = page(memory.as_ptr() as u64 + PAGE as u64);
        let code = page(pages_of_this_process as *const () as u64);
        let (tables, own) = (PageTables::default(), std::process::id() as i32);
        let mut addresses = [Avma(0x1000), inside, code, Avma(!0xfff)];
        addresses.sort_unstable();
        let mut present = [false; 4];
        tables.present(own, &addresses, &mut present);
        for (address, present) in addresses.iter().zip(present) {
            assert_eq!(present, *address == inside || *address == code, "{address:?}");
        }
        assert!(comes_alone(own, inside) && !comes_alone(own, Avma(0x1000)));
        tables.present(i32::MAX, &addresses, &mut present);
        assert_eq!(present, [false; 4]);
    }
}
