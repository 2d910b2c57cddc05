//! The memory of the program that the agent is in, read where it is.

use std::arch::naked_asm;
use std::ptr::NonNull;

use addresses::Avma;
use lookahead::{Fault, InPlace, Memory, PAGE, Page};

use crate::layout::REGION;

/// Ends of what a program can have: the kernel's half of the addresses is refused without asking.
const END: u64 = 1 << 56;

/// The program's own memory. The first touch of each page is a probe, whose fault the agent's handler takes (see [`super::faults`]).
pub(crate) struct OwnMemory;

impl Memory for OwnMemory {
    fn read_page(&mut self, _: Avma, _: &mut Page) -> Result<(), Fault> {
        Err(Fault)
    }

    fn in_place(&mut self, address: Avma) -> Result<Option<InPlace>, Fault> {
        let page = NonNull::new(address.0 as *mut Page).filter(|_| is_programs(address)).ok_or(Fault)?;
        // SAFETY: a fault of the probe is taken by the agent's handler, which is installed while bursts run.
        if !unsafe { probe_read(address.0) } {
            return Err(Fault);
        }
        // SAFETY: the page was readable just now. If another thread unmaps it during the burst, the handler gives the burst up.
        Ok(Some(unsafe { InPlace::new(page) }))
    }

    fn writable(&mut self, address: Avma) -> bool {
        // SAFETY: as above; the probe changes no bit, whatever other threads write meanwhile.
        is_programs(address) && unsafe { probe_write(address.0) }
    }
}

/// Whether the page can be the program's: the agent's own memory is not.
fn is_programs(page: Avma) -> bool {
    page.0 < END && page.0.is_multiple_of(PAGE as u64) && !REGION.contains(&page.0)
}

/// Copies what can be read of the program's memory from an address on; returns how much. The handlers of faults are installed.
pub(crate) fn copy(address: u64, to: &mut [u8]) -> usize {
    let mut copied = 0;
    while copied < to.len() {
        let from = address.wrapping_add(copied as u64);
        let page = from & !(PAGE as u64 - 1);
        // SAFETY: a fault of the probe is taken by the agent's handler, which is installed.
        if !is_programs(Avma(page)) || !unsafe { probe_read(from) } {
            break;
        }
        let part = (to.len() - copied).min((page + PAGE as u64 - from) as usize);
        // SAFETY: the page was readable just now.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to[copied..].as_mut_ptr(), part) };
        copied += part;
    }
    copied
}

/// Whether a byte can be read. Its first instruction is the one that may fault.
///
/// # Safety
/// The agent's fault handler is installed.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn probe_read(_address: u64) -> bool {
    naked_asm!("mov al, byte ptr [rdi]", "mov eax, 1", "ret")
}

/// Whether a byte can be written: what is there is written again, as one operation.
///
/// # Safety
/// The agent's fault handler is installed.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn probe_write(_address: u64) -> bool {
    naked_asm!("lock or byte ptr [rdi], 0", "mov eax, 1", "ret")
}

/// Where a probe that faults goes on.
///
/// # Safety
/// Only from a probe.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn probe_failed() -> bool {
    naked_asm!("xor eax, eax", "ret")
}
