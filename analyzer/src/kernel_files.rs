//! Code of the kernel and of its modules that was recorded where it ran, and whose files are found: its addresses become places in the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use crate::address::Avma;
use crate::binaries::{Binary, BinarySearch, kernel_mappings, module_mappings};
use crate::counting::is_kernel;
use crate::recording::{
    AddressSpace, KERNEL_PID, Mapping, Module, ModuleId, ModuleKind, ModuleTable, Timeline, Totals,
};

/// Files that were opened to see where their code was: unpacking them takes too long to do it twice.
#[derive(Default)]
pub(crate) struct Opened(Mutex<HashMap<ModuleId, Binary>>);

impl Opened {
    /// That of a module, once.
    pub fn take(&self, module: ModuleId) -> Option<Binary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&module)
    }
}

/// Maps the files of what ran of the kernel. A file that is not found leaves its code unread.
pub(crate) fn place_kernel(
    timeline: &mut Timeline,
    modules: &ModuleTable,
    totals: &Totals,
    search: &BinarySearch,
) -> Opened {
    let seen = totals.ips.iter().map(|hits| hits.ip).chain(totals.streams.iter().map(|stream| stream.from));
    let seen: BTreeSet<Avma> = seen.filter(|&at| is_kernel(at)).collect();
    if seen.is_empty() {
        return Opened::default();
    }
    let mut opened = HashMap::new();
    let is_wanted = |module: &Module| module.kind == ModuleKind::Kernel && module.kernel.is_some();
    if let Some((id, kernel)) = modules.iter().find(|(_, module)| is_wanted(module))
        && let Ok(binary) = search.open(kernel)
        && !binary.is_recorded
    {
        timeline.map_kernel(kernel_mappings(&binary, id));
        opened.insert(id, Ok(binary));
    }
    let mut space = AddressSpace::default();
    timeline.for_each_epoch(KERNEL_PID, 0, |_, last| space = last.clone());
    let is_wanted = |module: &Module| module.kind == ModuleKind::KernelModule && module.code.is_none();
    let hit = seen.iter().filter_map(|&at| space.find(at));
    let hit = hit.filter(|mapping| is_wanted(modules.get(mapping.module)));
    let hit: BTreeMap<Avma, Mapping> = hit.map(|mapping| (mapping.start, *mapping)).collect();
    for mapping in hit.into_values() {
        let file = opened.entry(mapping.module).or_insert_with(|| search.open(modules.get(mapping.module)));
        if let Ok(binary) = file {
            timeline.map_kernel(module_mappings(binary, mapping));
        }
    }
    let found = opened.into_iter().filter_map(|(id, binary)| Some((id, binary.ok()?)));
    Opened(Mutex::new(found.collect()))
}
