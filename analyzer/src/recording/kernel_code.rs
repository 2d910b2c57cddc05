//! The kernel's code as the recording has it: the functions in which samples fell, copied when it ended.
//!
//! Each module of the kernel, and the image itself, becomes an ELF file in memory of what was copied of it:
//!
//! ```text
//! mappings   [kernel.kallsyms]              ext4.ko                 nf_tables.ko
//! copied        [f]     [g][h]                [i]
//!                |       |                     |
//! files      at their addresses            from 0 on, as in the module; it is elsewhere after each load
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::address::{Avma, FileOffset};
use crate::code::{MadeFunction, made_elf};
use crate::recording::pages::pages;
use crate::recording::{
    AddressSpace, KERNEL, KERNEL_HALF, KERNEL_MODULES, KERNEL_PID, KnownFunction, KnownFunctions, Mapping, ModuleId,
    ModuleKind, ModuleTable, TaskEvent,
};

/// The name of code that the kernel has made.
const MADE: &str = "[kernel.jit]";

/// What records say of it.
#[derive(Debug, Default)]
pub(crate) struct KernelCode {
    /// Addresses, where the bytes begin, how many they are.
    pieces: Vec<(u64, usize, usize)>,
    bytes: Vec<u8>,
}

/// The code of one module: runs of bytes by address, and what is taken off addresses.
#[derive(Debug, Default)]
struct Copied {
    runs: Vec<(u64, Vec<u8>)>,
    base: u64,
}

impl KernelCode {
    /// Takes in a piece.
    pub fn add(&mut self, at: u64, bytes: &[u8]) {
        let is_of_kernel = at >= KERNEL_HALF && at.checked_add(bytes.len() as u64).is_some();
        if is_of_kernel && !bytes.is_empty() {
            self.pieces.push((at, self.bytes.len(), bytes.len()));
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Gives the kernel's modules their code. `names`: of functions, by address, with their ends. Returns what is mapped where, and how many
    /// pieces are left out.
    pub fn finish(
        mut self,
        modules: &mut ModuleTable,
        events: &[(u64, TaskEvent)],
        names: &BTreeMap<u64, (u64, &[u8])>,
    ) -> (Vec<(u64, TaskEvent)>, u64) {
        let space = mapped(events);
        know_functions(modules, &space, names);
        self.pieces.sort_unstable();
        let mut copied: BTreeMap<ModuleId, Copied> = BTreeMap::new();
        let (mut known_to, mut left_out) = (0, 0);
        for (at, first, length) in self.pieces {
            // Of pieces that overlap the first one holds.
            let again = known_to.max(at) - at;
            let bytes = self.bytes.get(first..).and_then(|rest| rest.get(..length)).unwrap_or_default();
            let Some(bytes) = usize::try_from(again).ok().and_then(|again| bytes.get(again..)) else { continue };
            if bytes.is_empty() {
                continue;
            }
            let at = at + again;
            known_to = at + bytes.len() as u64;
            // Of functions that are one after the other the second may be another module's; nothing smaller than a page is mapped.
            for (at, bytes) in pages(at, bytes) {
                let mapping = space.find(Avma(at));
                let module = mapping.map_or_else(|| without_mapping(at, modules), |mapping| mapping.module);
                let base = match (modules.get(module).kind, mapping) {
                    (ModuleKind::KernelModule, Some(mapping)) => mapping.start.0.wrapping_sub(mapping.pgoff),
                    (ModuleKind::Kernel | ModuleKind::KernelModule, _) => 0,
                    _ => {
                        left_out += 1;
                        continue;
                    }
                };
                let Copied { runs, base } = copied.entry(module).or_insert(Copied { runs: Vec::new(), base });
                let at = at.wrapping_sub(*base);
                if at.checked_add(bytes.len() as u64).is_none() {
                    left_out += 1;
                    continue;
                }
                match runs.last_mut() {
                    Some((start, run)) if *start + run.len() as u64 == at => run.extend(bytes),
                    _ => runs.push((at, bytes.to_vec())),
                }
            }
        }
        let mut events = Vec::new();
        for (module, copied) in copied {
            let (mapped, without_room) = copied.finish(module, modules, names);
            events.extend(mapped);
            left_out += without_room;
        }
        (events, left_out)
    }
}

impl Copied {
    fn finish(
        self,
        module: ModuleId,
        modules: &mut ModuleTable,
        names: &BTreeMap<u64, (u64, &[u8])>,
    ) -> (Vec<(u64, TaskEvent)>, u64) {
        let Self { mut runs, base } = self;
        // Where a module was loaded twice, addresses may go back.
        runs.sort_unstable_by_key(|(start, _)| *start);
        let mut end = 0;
        runs.retain(|(start, bytes)| {
            let is_free = *start >= end;
            end = if is_free { start.saturating_add(bytes.len() as u64) } else { end };
            is_free
        });
        let mut functions: Vec<MadeFunction<'_>> = Vec::new();
        for (start, bytes) in &runs {
            let first = start.wrapping_add(base);
            let after = first.saturating_add(bytes.len() as u64);
            // Of a long one only the pages are there that were hit.
            let before = names.range(..first).next_back().filter(|(_, (end, _))| *end > first);
            for (at, (end, name)) in before.into_iter().chain(names.range(first..after)) {
                let at = first.max(*at);
                functions.push((at.wrapping_sub(base), end - at, Cow::Borrowed(name)));
            }
        }
        let (file, offsets) = made_elf(&runs, &functions);
        modules.set_code(module, file);
        let without_room = runs.len() - offsets.len();
        let mapping = |((start, bytes), offset): (&(u64, Vec<u8>), u64)| {
            let mapping = Mapping::new(Avma(start.wrapping_add(base)), bytes.len() as u64, offset, module)?;
            Some((u64::MAX, TaskEvent::Map { pid: KERNEL_PID, mapping }))
        };
        (runs.iter().zip(offsets).filter_map(mapping).collect(), without_room as u64)
    }
}

/// Gives the kernel's modules the names of their functions: what has no code has them all the same.
fn know_functions(modules: &mut ModuleTable, space: &AddressSpace, names: &BTreeMap<u64, (u64, &[u8])>) {
    let mut known: BTreeMap<ModuleId, Vec<KnownFunction>> = BTreeMap::new();
    for (&at, &(end, name)) in names.range(KERNEL_HALF..) {
        let (module, base) = match space.find(Avma(at)) {
            Some(mapping) => (mapping.module, mapping.start.0.wrapping_sub(mapping.pgoff)),
            // As samples there are.
            None => (modules.intern(KERNEL.as_bytes(), None), 0),
        };
        if modules.get(module).kind.is_kernel() {
            let [start, end] = [at, end].map(|at| FileOffset(at.wrapping_sub(base)));
            let name = String::from_utf8_lossy(name).into_owned();
            known.entry(module).or_default().push(KnownFunction { start, end, name });
        }
    }
    known.into_iter().for_each(|(module, functions)| modules.set_functions(module, KnownFunctions::new(functions)));
}

/// The module of code that nothing is mapped at: the kernel's image below its modules, and above what the kernel has made, BPF programs and trampolines.
fn without_mapping(at: u64, modules: &mut ModuleTable) -> ModuleId {
    modules.intern(if at < KERNEL_MODULES { KERNEL } else { MADE }.as_bytes(), None)
}

/// Where the kernel and its modules are in the end.
fn mapped(events: &[(u64, TaskEvent)]) -> AddressSpace {
    let of_kernel = |event: &TaskEvent| match event {
        TaskEvent::Map { pid: KERNEL_PID, mapping } => Some(*mapping),
        _ => None,
    };
    let mut mappings: Vec<(u64, Mapping)> =
        events.iter().filter_map(|(time, event)| Some((*time, of_kernel(event)?))).collect();
    mappings.sort_by_key(|(time, _)| *time);
    let mut space = AddressSpace::default();
    mappings.into_iter().for_each(|(_, mapping)| {
        space.map(mapping);
    });
    space
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::FunctionTable;
    use crate::recording::pages::PAGE;

    const TEXT: u64 = 0xffff_ffff_9f00_0000;
    const MODULE: u64 = 0xffff_ffff_c040_0000;

    fn map(modules: &mut ModuleTable, name: &str, start: u64, pgoff: u64) -> (u64, TaskEvent) {
        let module = modules.intern(name.as_bytes(), None);
        let mapping = Mapping::new(Avma(start), 0x10_0000, pgoff, module).unwrap();
        (0, TaskEvent::Map { pid: KERNEL_PID, mapping })
    }

    /// The address as the file states it, the function and the first byte there.
    fn code_at(modules: &ModuleTable, events: &[(u64, TaskEvent)], at: u64) -> Option<(u64, String, u8)> {
        let mapping = *mapped(events).find(Avma(at))?;
        let image = modules.get(mapping.module).recorded_image()?.ok()?;
        let svma = image.svma_of_file_offset(mapping.file_offset(Avma(at)))?;
        let functions = FunctionTable::of(&image);
        let name = functions.name(functions.at(svma)?).into_owned();
        Some((svma.0, name, image.bytes_at(svma, 1)?[0]))
    }

    #[test]
    fn code_belongs_to_the_module_that_is_mapped_there() {
        let mut modules = ModuleTable::default();
        let mut events = vec![
            map(&mut modules, KERNEL, TEXT, TEXT),
            map(&mut modules, "/lib/modules/6.1/kernel/fs/ext4/ext4.ko", MODULE, 0),
        ];
        let mut code = KernelCode::default();
        code.add(MODULE + 0x200, &[3; 16]);
        code.add(TEXT + 0x100, &[1; 16]);
        code.add(TEXT + 0x110, &[2; 16]);
        code.add(TEXT + 0x118, &[9; 16]);
        let names: BTreeMap<u64, (u64, &[u8])> = [
            (TEXT + 0x100, (TEXT + 0x110, &b"one"[..])),
            (TEXT + 0x110, (TEXT + 0x200, b"two")),
            (MODULE + 0x200, (MODULE + 0x210, b"ext4_file_read_iter")),
        ]
        .into();
        let (made, _) = code.finish(&mut modules, &events, &names);
        events.extend(made);
        let at = |at| code_at(&modules, &events, at);
        assert_eq!(at(TEXT + 0x10f), Some((TEXT + 0x10f, "one".into(), 1)));
        assert_eq!(at(TEXT + 0x11f), Some((TEXT + 0x11f, "two".into(), 2)), "the first piece holds");
        assert_eq!(at(TEXT + 0x127), Some((TEXT + 0x127, "two".into(), 9)));
        assert_eq!(at(MODULE + 0x208), Some((0x208, "ext4_file_read_iter".into(), 3)), "as in the module");
        assert_eq!((at(TEXT + 0x128), at(TEXT)), (None, None));
    }

    #[test]
    fn absurd_pieces_are_left_out() {
        let mut modules = ModuleTable::default();
        let mut code = KernelCode::default();
        for (at, bytes) in [(0x40_1000, &[1; 8][..]), (u64::MAX - 3, &[1; 8]), (TEXT, &[])] {
            code.add(at, bytes);
        }
        assert!(code.finish(&mut modules, &[], &BTreeMap::new()).0.is_empty());
        assert_eq!(modules.iter().len(), 0);
        let mut code = KernelCode::default();
        code.add(u64::MAX - 8, &[1; 8]);
        code.add(TEXT, &[1; 8]);
        assert_eq!(code.finish(&mut modules, &[], &BTreeMap::new()).0.len(), 2);
        let names: Vec<&str> = modules.iter().map(|(_, module)| module.path.as_str()).collect();
        assert_eq!(names, [KERNEL, MADE], "without a mapping it is the kernel's, or made by it");
    }

    #[test]
    fn mappings_that_cannot_be_are_counted() {
        let mut modules = ModuleTable::default();
        let again = MODULE + 0x1f_f000;
        let absurd = [("/m.ko", MODULE, 0xffff_ffff_ffe0_0000), ("/m.ko", again, 0), ("/usr/bin/program", TEXT, 0)];
        let events = absurd.map(|(name, start, pgoff)| map(&mut modules, name, start, pgoff));
        let mut code = KernelCode::default();
        [MODULE, again, TEXT].iter().for_each(|at| code.add(*at, &[1; PAGE as usize]));
        let (made, left_out) = code.finish(&mut modules, &events, &BTreeMap::new());
        assert_eq!((made.len(), left_out), (1, 2), "a page past the last address, and a program's file");
    }

    #[test]
    fn functions_of_two_modules_that_touch_are_told_apart_and_pages_have_the_name_of_their_function() {
        let mut modules = ModuleTable::default();
        let mut events = vec![map(&mut modules, "/a.ko", MODULE, 0), map(&mut modules, "/b.ko", MODULE + 0x10_0000, 0)];
        let (last, first) = (MODULE + 0x10_0000 - 8, MODULE + 0x10_0000);
        let mut code = KernelCode::default();
        code.add(last, &[7; 16]);
        let names: BTreeMap<u64, (u64, &[u8])> =
            [(MODULE, (first, &b"long"[..])), (first, (first + 8, b"other"))].into();
        let (made, _) = code.finish(&mut modules, &events, &names);
        events.extend(made);
        let at = |at| code_at(&modules, &events, at).map(|(svma, name, _)| (svma, name));
        assert_eq!(at(last + 2), Some((0xf_fffa, "long".into())));
        assert_eq!(at(first + 2), Some((2, "other".into())));
    }
}
