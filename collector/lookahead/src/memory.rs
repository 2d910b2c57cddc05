//! The world outside: the memory of the thread that is looked ahead of.

use addresses::Avma;

use crate::InPlace;

/// Bytes of a page, the unit in which memory is read.
pub const PAGE: usize = 4096;

/// One page of memory.
pub type Page = [u8; PAGE];

/// The address could not be read, or must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

/// Memory of the stopped thread. It is only ever read; what the interpreted code writes stays in the [`Overlay`](crate::Overlay).
///
/// The implementation decides what is readable. It should refuse what the thread itself could not read (`process_vm_readv`
/// does, `/proc/PID/mem` does not): runtimes use guard pages to redirect their threads.
pub trait Memory {
    /// Reads the whole page at `address` (a multiple of [`PAGE`]) into `page`.
    ///
    /// # Errors
    /// The thread could not read it.
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault>;

    /// Where the page at `address` can be read as it is, if it belongs to the process that runs the interpreter: lines of it are copied
    /// only when it was written to, and [`read_page`](Self::read_page) is not asked. Asked once per page and burst, before the first use.
    ///
    /// # Errors
    /// The thread could not read it.
    fn in_place(&mut self, address: Avma) -> Result<Option<InPlace>, Fault> {
        let _ = address;
        Ok(None)
    }

    /// Whether the thread may write to the page at `address`; asked once per page and burst, before the first write.
    /// A write to a page that is not writable ends the burst with a fault.
    fn writable(&mut self, address: Avma) -> bool {
        let _ = address;
        true
    }
}
