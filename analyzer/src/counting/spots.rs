//! Where an address of a process is: in which module, and where in its file.

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
    pub fn of_stream(
        &self,
        start: Avma,
        (end, last): (Avma, Spot),
        guest: bool,
        (space, epoch): (&AddressSpace, u32),
    ) -> (Spot, Spot) {
        if guest || is_kernel(start) || start > end || !space.any_unknown(start, end) {
            return (self.of(start, guest, (space, epoch)), last);
        }
        let unread = |avma: Avma| match space.find_unread(avma) {
            Some(mapping) => Spot::of(mapping, avma),
            None => Spot { module: self.unknown_module, base: 0, offset: FileOffset(avma.0) },
        };
        (unread(start), unread(end))
    }

    /// Where an address is of a process with this address space and this epoch of the kernel, or of a guest.
    pub fn of(&self, avma: Avma, guest: bool, (space, epoch): (&AddressSpace, u32)) -> Spot {
        let without_mapping = |module| Spot { module, base: 0, offset: FileOffset(avma.0) };
        if guest {
            return without_mapping(self.guest_module);
        }
        let (space, fallback) = match is_kernel(avma) {
            true => (&self.kernel, self.kernel_module),
            false if VSYSCALL_PAGE.contains(&avma.0) => (&self.kernel, self.vsyscall_module),
            false => (space, self.unknown_module),
        };
        let before = self.before.space(epoch).filter(|_| is_kernel(avma)).and_then(|before| before.find(avma));
        match before.or_else(|| space.find(avma)) {
            Some(mapping) => Spot::of(mapping, avma),
            None => without_mapping(fallback),
        }
    }
}

/// On x86-64 and AArch64 the upper half of the address space is the kernel's, but for the page of the vsyscalls.
pub fn is_kernel(avma: Avma) -> bool {
    avma.0 >> 63 == 1 && !VSYSCALL_PAGE.contains(&avma.0)
}
