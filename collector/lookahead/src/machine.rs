//! The state an instruction works on.

use addresses::Avma;

use crate::code_lines::{Resident, mask};
use crate::context::Context;
use crate::exit::{Exit, Step};
use crate::flags::{Flags, STATUS, status_of};
use crate::line_tables::Table;
use crate::memory::{Memory, PAGE};
use crate::native::{PageBytes, Quirks, quirks};
use crate::operand::{Address, FS, GS, ZERO};
use crate::outcome::StopReason;
use crate::overlay::{LINE, Miss, Overlay};
use crate::registers::Registers;

const SLOTS: u64 = 256;

/// How many of `count` bytes from `address` on are in its page.
#[inline(always)]
fn in_page(address: u64, count: usize) -> usize {
    (PAGE - (address & 0xfff) as usize).min(count)
}

/// Whether `N` bytes from an offset in a page on are in one line.
#[inline(always)]
fn is_within_line<const N: usize>(at: usize) -> bool {
    at % LINE <= LINE - N
}

/// Registers and memory during a burst.
pub(crate) struct Machine<'m> {
    pub(crate) context: Context,
    pub(crate) flags: Flags,
    /// The status flags are in the context, as compiled blocks have them, and not in `flags`.
    pub(crate) status_is_saved: bool,
    /// Flags that no arithmetic changes.
    pub(crate) other_flags: u64,
    /// Where a taken branch goes.
    pub(crate) target: u64,
    /// Why [`Exit::Stop`] was returned.
    pub(crate) stop: StopReason,
    /// Something other than general registers and flags may have changed since this was last cleared.
    pub(crate) changed: bool,
    /// Repetitions a string instruction may still do, so that a burst is bounded in time.
    pub(crate) repetitions: u64,
    pub(crate) quirks: Quirks,
    pub(crate) shadow_stack: bool,
    pub(crate) overlay: &'m mut Overlay,
    pub(crate) memory: &'m mut dyn Memory,
    pub(crate) resident: Resident,
}

impl<'m> Machine<'m> {
    pub(crate) fn new(
        registers: &Registers,
        overlay: &'m mut Overlay,
        memory: &'m mut dyn Memory,
        resident: Resident,
    ) -> Self {
        let mut context = Context { vector: registers.vector.clone(), ..Context::default() };
        context.registers[..16].copy_from_slice(&registers.general);
        context.registers[usize::from(FS)] = registers.fs_base;
        context.registers[usize::from(GS)] = registers.gs_base;
        Self {
            context,
            flags: Flags::from_rflags(registers.rflags),
            status_is_saved: false,
            other_flags: registers.rflags & !STATUS,
            target: 0,
            stop: StopReason::Fuel,
            changed: false,
            repetitions: 0,
            quirks: quirks(),
            shadow_stack: registers.shadow_stack,
            overlay,
            memory,
            resident,
        }
    }

    pub(crate) fn save(&self, rip: u64, registers: &mut Registers) {
        registers.general.copy_from_slice(&self.context.registers[..16]);
        registers.fs_base = self.context.registers[usize::from(FS)];
        registers.gs_base = self.context.registers[usize::from(GS)];
        registers.rip = rip;
        registers.rflags = self.rflags();
        registers.vector.clone_from(&self.context.vector);
    }

    pub(crate) fn rflags(&self) -> u64 {
        let status = if self.status_is_saved { status_of(self.context.hot.status) } else { self.flags.status() };
        status | self.other_flags
    }

    /// The status flags are where operations of the interpreter look for them.
    #[inline(always)]
    pub(crate) fn interpreter_has_status(&mut self) {
        if self.status_is_saved {
            self.flags = Flags::from_saved(self.context.hot.status);
            self.status_is_saved = false;
        }
    }

    /// The status flags are where compiled blocks look for them.
    #[inline(always)]
    pub(crate) fn blocks_have_status(&mut self) {
        if !self.status_is_saved {
            self.context.hot.status = self.flags.saved();
            self.status_is_saved = true;
        }
    }

    /// A table gets the line that has `address`, if it is open for that.
    pub(crate) fn put_line(&mut self, address: u64, table: Table) {
        let slot = &self.overlay.slots[(address >> 12) as usize % SLOTS as usize];
        self.resident.tables.put(address, slot, table);
    }

    #[inline(always)]
    pub(crate) fn reg(&self, number: u8) -> u64 {
        self.context.registers[usize::from(number & 31)]
    }

    #[inline(always)]
    pub(crate) fn set_reg(&mut self, number: u8, value: u64) {
        debug_assert!(number & 31 != ZERO);
        self.context.registers[usize::from(number & 31)] = value;
    }

    /// The low `N` bytes of a register (or the second byte), zero-extended.
    #[inline(always)]
    pub(crate) fn get<const N: usize>(&self, number: u8) -> u64 {
        let value = self.reg(number);
        match N {
            1 => (value >> ((number >> 5) * 8)) & 0xff,
            2 => value & 0xffff,
            4 => value & 0xffff_ffff,
            _ => value,
        }
    }

    /// Writes a register as an instruction with an `N`-byte operand does: 4 bytes clear the upper half.
    #[inline(always)]
    pub(crate) fn set<const N: usize>(&mut self, number: u8, value: u64) {
        let value = match N {
            1 => {
                let shift = (number >> 5) * 8;
                (self.reg(number) & !(0xff << shift)) | ((value & 0xff) << shift)
            }
            2 => (self.reg(number) & !0xffff) | (value & 0xffff),
            4 => value & 0xffff_ffff,
            _ => value,
        };
        self.set_reg(number, value);
    }

    #[inline(always)]
    pub(crate) fn address(&self, at: &Address) -> u64 {
        self.offset(at).wrapping_add(self.reg(at.segment))
    }

    /// The address without its segment, as `lea` has it.
    #[inline(always)]
    pub(crate) fn offset(&self, at: &Address) -> u64 {
        let offset = self.reg(at.base).wrapping_add(self.reg(at.index) << (at.scale & 3)).wrapping_add(at.displacement);
        if at.short { offset & 0xffff_ffff } else { offset }
    }

    /// Reads `N` bytes (little-endian).
    #[inline(always)]
    pub(crate) fn load<const N: usize>(&mut self, address: u64) -> Result<u64, Exit> {
        let page = address >> 12;
        let at = (address & 0xfff) as usize;
        let slot = &self.overlay.slots[(page % SLOTS) as usize];
        if slot.page == page && is_within_line::<N>(at) && slot.readable >> (at / LINE) & 1 != 0 {
            let mut bytes = [0; 8];
            bytes[..N].copy_from_slice(&slot.bytes.load::<N>(at));
            return Ok(u64::from_le_bytes(bytes));
        }
        self.load_slow::<N>(address)
    }

    #[cold]
    fn load_slow<const N: usize>(&mut self, address: u64) -> Result<u64, Exit> {
        let mut bytes = [0; 8];
        self.load_bytes(address, &mut bytes[..N])?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes the low `N` bytes.
    #[inline(always)]
    pub(crate) fn store<const N: usize>(&mut self, address: u64, value: u64) -> Step {
        let page = address >> 12;
        let at = (address & 0xfff) as usize;
        let slot = &self.overlay.slots[(page % SLOTS) as usize];
        if slot.page == page && is_within_line::<N>(at) && slot.writable >> (at / LINE) & 1 != 0 {
            let place = &mut self.overlay.frames[slot.frame as usize][at..at + N];
            let bytes = value.to_le_bytes();
            self.changed |= *place != bytes[..N];
            place.copy_from_slice(&bytes[..N]);
            return Ok(());
        }
        self.store_slow::<N>(address, value)
    }

    #[cold]
    fn store_slow<const N: usize>(&mut self, address: u64, value: u64) -> Step {
        self.store_bytes(address, &value.to_le_bytes()[..N])
    }

    /// Reads any number of bytes.
    pub(crate) fn load_bytes(&mut self, address: u64, bytes: &mut [u8]) -> Step {
        let mut done = 0;
        while done < bytes.len() {
            let from = address.wrapping_add(done as u64);
            let count = in_page(from, bytes.len() - done);
            let (page, at) = self.readable(from, count)?;
            page.copy(at, &mut bytes[done..done + count]);
            done += count;
        }
        Ok(())
    }

    /// Whether these bytes are there.
    pub(crate) fn has_bytes(&mut self, address: u64, bytes: &[u8]) -> bool {
        let mut done = 0;
        while done < bytes.len() {
            let from = address.wrapping_add(done as u64);
            let count = in_page(from, bytes.len() - done);
            match self.readable(from, count) {
                Ok((page, at)) if page.has(at, &bytes[done..done + count]) => done += count,
                _ => return false,
            }
        }
        true
    }

    /// Writes all bytes or none.
    pub(crate) fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> Step {
        self.check_writable(address, bytes.len())?;
        let mut done = 0;
        while done < bytes.len() {
            let to = address.wrapping_add(done as u64);
            let at = (to & 0xfff) as usize;
            let count = in_page(to, bytes.len() - done);
            let frame = self.writable(to, count)?;
            let place = &mut self.overlay.frames[frame][at..at + count];
            self.changed |= *place != bytes[done..done + count];
            place.copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
        Ok(())
    }

    /// Whether `count` bytes could be written, for instructions that change something else first.
    #[inline]
    pub(crate) fn check_writable(&mut self, address: u64, count: usize) -> Step {
        let mut done = 0;
        while done < count {
            let to = address.wrapping_add(done as u64);
            let here = in_page(to, count - done);
            self.writable(to, here)?;
            done += here;
        }
        Ok(())
    }

    /// The page that has `address`, and the offset in it. The next `count` bytes (which do not leave the page) may be read.
    #[inline]
    pub(crate) fn readable(&mut self, address: u64, count: usize) -> Result<(PageBytes, usize), Exit> {
        let page = address >> 12;
        let lines = mask(address, count);
        let slot = &self.overlay.slots[(page % SLOTS) as usize];
        let bytes = if slot.page == page && lines & !slot.readable == 0 {
            slot.bytes
        } else {
            match self.overlay.open(page, lines, self.memory, &mut self.resident.tables) {
                Ok(bytes) => bytes,
                Err(miss) => return self.missed(miss, address),
            }
        };
        Ok((bytes, (address & 0xfff) as usize))
    }

    /// Frame that holds `address`, in which the next `count` bytes (which do not leave the page) may be written.
    #[inline]
    pub(crate) fn writable(&mut self, address: u64, count: usize) -> Result<usize, Exit> {
        let page = address >> 12;
        let slot = &self.overlay.slots[(page % SLOTS) as usize];
        let lines = mask(address, count);
        if slot.page == page && slot.writable != 0 && lines & !slot.writable == 0 {
            return Ok(slot.frame as usize);
        }
        let code = self.resident.lines.lines_of(page);
        if code & lines != 0 {
            self.stop = StopReason::SelfModifying;
            return Err(Exit::Stop);
        }
        match self.overlay.open_for_writing(page, lines, code == 0, self.memory, &mut self.resident.tables) {
            Ok(frame) => Ok(frame as usize),
            Err(miss) => self.missed(miss, address),
        }
    }

    #[cold]
    fn missed<T>(&mut self, miss: Miss, address: u64) -> Result<T, Exit> {
        self.stop = match miss {
            Miss::Fault(_) => StopReason::Fault { address: Avma(address) },
            Miss::Full => StopReason::OverlayFull,
        };
        Err(Exit::Stop)
    }

    #[cold]
    pub(crate) fn stopped<T>(&mut self, reason: StopReason) -> Result<T, Exit> {
        self.stop = reason;
        Err(Exit::Stop)
    }
}
