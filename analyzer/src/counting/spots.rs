//! Where an address of a process is: in which module, and where in its file.

use std::cell::Cell;

use crate::address::{Avma, FileOffset};
use crate::recording::{
    AddressSpace, GUEST, KERNEL, KERNEL_PID, KernelEpochs, Mapping, ModuleId, ModuleTable, Timeline, UNKNOWN, VSYSCALL,
    VSYSCALL_PAGE,
};

/// Where an address is: the module, the address its first byte would have (two loads of one module differ in it), the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub module: ModuleId,
    pub base: u64,
    pub offset: FileOffset,
}

impl Spot {
    fn of(mapping: &Mapping, avma: Avma) -> Self {
        Spot {
            module: mapping.module,
            base: mapping.start.0.wrapping_sub(mapping.pgoff),
            offset: FileOffset(mapping.file_offset(avma)),
        }
    }
}

/// The addresses that a process, or a guest, had at a time.
pub struct View<'a> {
    space: &'a AddressSpace,
    /// The epoch of the kernel's code.
    kernel: u32,
    guest: bool,
    /// The last mapping of a file that was found: the next address is mostly in it, too.
    last: Cell<Option<Mapping>>,
}

impl<'a> View<'a> {
    /// With this address space, and the kernel of this epoch.
    pub fn new(space: &'a AddressSpace, kernel: u32, guest: bool) -> Self {
        View { space, kernel, guest, last: Cell::new(None) }
    }

    fn find(&self, avma: Avma) -> Option<Mapping> {
        let last = self.last.get().filter(|mapping| mapping.is_of_file_at(avma));
        last.or_else(|| {
            let found = self.space.find(avma).copied();
            self.last.set(found);
            found
        })
    }
}

/// Finds them.
pub struct Spots {
    /// The kernel as it was in the end, and over time where it was another.
    kernel: AddressSpace,
    before: KernelEpochs,
    kernel_module: ModuleId,
    unknown_module: ModuleId,
    guest_module: ModuleId,
    vsyscall_module: ModuleId,
}

impl Spots {
    /// With the kernel as it was at the end of the recording, but where it is known that it was another before.
    pub fn new(timeline: &Timeline, modules: &mut ModuleTable) -> Self {
        let mut kernel = AddressSpace::default();
        timeline.for_each_epoch(KERNEL_PID, 0, |_, space| kernel = space.clone());
        Spots {
            kernel,
            before: timeline.kernel().clone(),
            kernel_module: modules.intern(KERNEL.as_bytes(), None),
            unknown_module: modules.intern(UNKNOWN.as_bytes(), None),
            guest_module: modules.intern(GUEST.as_bytes(), None),
            vsyscall_module: modules.intern(VSYSCALL.as_bytes(), None),
        }
    }

    /// The module of what no mapping explains.
    pub fn unknown(&self) -> ModuleId {
        self.unknown_module
    }

    /// Where a stream begins and ends, which is at `last` as far as that is known. Where some code in it is not known any more, for it was rewritten
    /// at that time, all of it is memory whose code is unread.
    pub fn of_stream(&self, start: Avma, (end, last): (Avma, Spot), view: &View<'_>) -> (Spot, Spot) {
        if view.guest || is_kernel(start) || start > end || !view.space.any_unknown(start, end) {
            return (self.of(start, view), last);
        }
        let unread = |avma: Avma| match view.space.find_unread(avma) {
            Some(mapping) => Spot::of(mapping, avma),
            None => Spot { module: self.unknown_module, base: 0, offset: FileOffset(avma.0) },
        };
        (unread(start), unread(end))
    }

    /// Where an address is.
    pub fn of(&self, avma: Avma, view: &View<'_>) -> Spot {
        let without_mapping = |module| Spot { module, base: 0, offset: FileOffset(avma.0) };
        if view.guest {
            return without_mapping(self.guest_module);
        }
        let (found, fallback) = if is_kernel(avma) {
            let before = self.before.space(view.kernel).and_then(|before| before.find(avma));
            (before.or_else(|| self.kernel.find(avma)).copied(), self.kernel_module)
        } else if VSYSCALL_PAGE.contains(&avma.0) {
            (self.kernel.find(avma).copied(), self.vsyscall_module)
        } else {
            (view.find(avma), self.unknown_module)
        };
        match found {
            Some(mapping) => Spot::of(&mapping, avma),
            None => without_mapping(fallback),
        }
    }
}

/// On x86-64 and AArch64 the upper half of the address space is the kernel's, but for the page of the vsyscalls.
pub fn is_kernel(avma: Avma) -> bool {
    avma.0 >> 63 == 1 && !VSYSCALL_PAGE.contains(&avma.0)
}
