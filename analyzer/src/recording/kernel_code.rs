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

use crate::address::Avma;
use crate::code::{MadeFunction, made_elf};
use crate::recording::{AddressSpace, KERNEL, KERNEL_PID, Mapping, ModuleId, ModuleKind, ModuleTable, TaskEvent};

/// Where the kernel's half of all addresses begins.
const KERNEL_HALF: u64 = 1 << 63;

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

    /// Gives the kernel's modules their code. `names`: of functions, by address, with their ends. Returns what is mapped where.
    pub fn finish(
        mut self,
        modules: &mut ModuleTable,
        events: &[(u64, TaskEvent)],
        names: &BTreeMap<u64, (u64, &[u8])>,
    ) -> Vec<(u64, TaskEvent)> {
        if self.pieces.is_empty() {
            return Vec::new();
        }
        let space = mapped(events);
        let kernel = modules.intern(KERNEL.as_bytes(), None);
        self.pieces.sort_unstable();
        let mut copied: BTreeMap<ModuleId, Copied> = BTreeMap::new();
        let mut known_to = 0;
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
            let mapping = space.find(Avma(at));
            let module = mapping.map_or(kernel, |mapping| mapping.module);
            let base = match mapping {
                Some(mapping) if modules.get(module).kind == ModuleKind::KernelModule => {
                    mapping.start.0.wrapping_sub(mapping.pgoff)
                }
                _ => 0,
            };
            let Copied { runs, base } = copied.entry(module).or_insert(Copied { runs: Vec::new(), base });
            let at = at.wrapping_sub(*base);
            match runs.last_mut() {
                Some((start, run)) if *start + run.len() as u64 == at => run.extend(bytes),
                _ => runs.push((at, bytes.to_vec())),
            }
        }
        copied.into_iter().flat_map(|(module, copied)| copied.finish(module, modules, names)).collect()
    }
}

impl Copied {
    fn finish(
        self,
        module: ModuleId,
        modules: &mut ModuleTable,
        names: &BTreeMap<u64, (u64, &[u8])>,
    ) -> Vec<(u64, TaskEvent)> {
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
            for (at, (end, name)) in names.range(first..after) {
                functions.push((at.wrapping_sub(base), end - at, Cow::Borrowed(name)));
            }
        }
        let (file, offsets) = made_elf(&runs, &functions);
        modules.set_code(module, file);
        let mapping = |((start, bytes), offset): (&(u64, Vec<u8>), u64)| {
            let mapping = Mapping::new(Avma(start.wrapping_add(base)), bytes.len() as u64, offset, module)?;
            Some((u64::MAX, TaskEvent::Map { pid: KERNEL_PID, mapping }))
        };
        runs.iter().zip(offsets).filter_map(mapping).collect()
    }
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
        let made = code.finish(&mut modules, &events, &names);
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
        assert!(code.finish(&mut modules, &[], &BTreeMap::new()).is_empty());
        assert_eq!(modules.iter().len(), 0);
        let mut code = KernelCode::default();
        code.add(u64::MAX - 8, &[1; 8]);
        assert_eq!(code.finish(&mut modules, &[], &BTreeMap::new()).len(), 1, "without a mapping it is the kernel's");
    }
}
