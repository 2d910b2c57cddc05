//! The kernel's code as the recording has it: the functions in which samples fell, copied when it ended, and what changed before (`changes`).
//!
//! Each module of the kernel, and the image itself, becomes an ELF file in memory of what was copied of it:
//!
//! ```text
//! mappings   [kernel.kallsyms]              ext4.ko                 nf_tables.ko
//! copied        [f]     [g][h]                [i]
//!                |       |                     |
//! files      at their addresses            from 0 on, as in the module; it is elsewhere after each load
//! ```

mod changes;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use perfdata::{Ksymbol, TextPoke};

use crate::address::{Avma, FileOffset};
use crate::code::{MadeFunction, made_elf};
use crate::recording::kernel_code::changes::{Code, End, Function, Made, Poke, Symbol, changes};
use crate::recording::kernel_epochs::KernelChange;
use crate::recording::pages::{PAGE, pages};
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
    /// What is not of the end: BPF programs, symbols that came and went, patches.
    made: Vec<Made>,
    symbols: Vec<Symbol>,
    pokes: Vec<Poke>,
}

/// What the recording has of the kernel: what is mapped in the end, what instead of it before, and how many pieces are left out.
#[derive(Debug, Default)]
pub(crate) struct KernelMappings {
    pub of_end: Vec<(u64, TaskEvent)>,
    pub before: Vec<KernelChange>,
    pub left_out: u64,
}

/// The code of one module: runs of bytes by address, and what is taken off addresses.
#[derive(Debug, Default)]
struct Copied {
    runs: Vec<(u64, Vec<u8>)>,
    base: u64,
}

impl KernelCode {
    /// Takes in a piece: of the end if `time` is 0, or else one that is there from then on.
    pub fn add(&mut self, time: u64, at: u64, bytes: &[u8]) {
        let is_of_kernel = at >= KERNEL_HALF && at.checked_add(bytes.len() as u64).is_some();
        if is_of_kernel && !bytes.is_empty() && time > 0 {
            self.made.push(Made { time, code: Code { at, bytes: bytes.to_vec() } });
        } else if is_of_kernel && !bytes.is_empty() {
            self.pieces.push((at, self.bytes.len(), bytes.len()));
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Takes in that a symbol came or went.
    pub fn symbol(&mut self, time: u64, symbol: &Ksymbol<'_>) {
        let Ksymbol { addr, unregister, name, .. } = symbol;
        self.symbols.push(Symbol { time, at: addr.0, came: !unregister, name: name.to_vec() });
    }

    /// Takes in a patch.
    pub fn poke(&mut self, time: u64, poke: &TextPoke<'_>) {
        let TextPoke { addr, old, new, .. } = poke;
        if addr.0 >= KERNEL_HALF {
            self.pokes.push(Poke { time, at: addr.0, old: old.to_vec(), new: new.to_vec() });
        }
    }

    /// Gives the kernel's modules their code. `names`: of functions, by address, with their ends.
    pub fn finish(
        mut self,
        modules: &mut ModuleTable,
        events: &[(u64, TaskEvent)],
        names: &BTreeMap<u64, (u64, &[u8])>,
    ) -> KernelMappings {
        let made_symbols: BTreeSet<ModuleId> =
            self.symbols.iter().filter(|symbol| symbol.came).map(|symbol| modules.intern(&symbol.name, None)).collect();
        let space = mapped(events, &made_symbols);
        know_functions(modules, &space, names);
        self.cut();
        let (made, symbols, pokes) =
            (std::mem::take(&mut self.made), std::mem::take(&mut self.symbols), std::mem::take(&mut self.pokes));
        let (before, no_room) = match made.is_empty() && pokes.is_empty() {
            true => Default::default(),
            false => {
                let of_end = AtEnd { code: &self, names, modules: &*modules, space: &space, runs: self.runs() };
                let versions = changes(made, &symbols, pokes, &of_end, MADE);
                versions.finish(modules)
            }
        };
        let mut copied: BTreeMap<ModuleId, Copied> = BTreeMap::new();
        let mut left_out = no_room;
        for (at, first, length) in self.pieces {
            let bytes = self.bytes.get(first..).and_then(|rest| rest.get(..length)).unwrap_or_default();
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
        KernelMappings { of_end: events, before, left_out }
    }

    /// Makes the pieces ascend, and disjoint: of those that overlap the first one holds.
    fn cut(&mut self) {
        self.pieces.sort_unstable();
        let mut known_to = 0;
        self.pieces.retain_mut(|(at, first, length)| {
            let end = *at + *length as u64;
            let again = (end.min(known_to).max(*at) - *at) as usize;
            (*at, *first, *length) = (*at + again as u64, *first + again, *length - again);
            known_to = known_to.max(end);
            *length > 0
        });
    }

    /// The addresses that the pieces have, which ascend and are disjoint: those of adjacent ones are one.
    fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (at, _, length) in &self.pieces {
            let end = at + *length as u64;
            match runs.last_mut() {
                Some(last) if *at == last.end => last.end = end,
                _ => runs.push(*at..end),
            }
        }
        runs
    }
}

/// What was copied in the end.
struct AtEnd<'a> {
    code: &'a KernelCode,
    names: &'a BTreeMap<u64, (u64, &'a [u8])>,
    modules: &'a ModuleTable,
    space: &'a AddressSpace,
    runs: Vec<Range<u64>>,
}

impl AtEnd<'_> {
    fn run(&self, at: u64) -> Option<&Range<u64>> {
        let before = self.runs.partition_point(|run| run.start <= at);
        self.runs.get(before.checked_sub(1)?).filter(|run| run.contains(&at))
    }

    /// The bytes of a range that is within a run.
    fn bytes(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let pieces = &self.code.pieces;
        let mut bytes = Vec::new();
        let begin = pieces.partition_point(|(at, _, length)| *at + *length as u64 <= range.start);
        for (at, first, length) in pieces.get(begin..)?.iter().take_while(|(at, ..)| *at < range.end) {
            let piece = self.code.bytes.get(*first..)?.get(..*length)?;
            let within =
                |address: u64| usize::try_from(address.saturating_sub(*at)).map_or(*length, |at| at.min(*length));
            bytes.extend_from_slice(piece.get(within(range.start)..within(range.end))?);
        }
        Some(bytes)
    }
}

impl End for AtEnd<'_> {
    fn holds(&self, at: u64) -> bool {
        self.run(at).is_some()
    }

    fn function(&self, at: u64) -> Option<Function> {
        let run = self.run(at)?;
        let before = self.names.range(..=at).next_back();
        let (range, name) = match before.filter(|(_, (end, _))| *end > at) {
            Some((start, (end, name))) => (*start..*end, name.to_vec()),
            None => {
                let page = at - at % PAGE;
                let begin = before.map_or(0, |(_, (end, _))| *end).max(page);
                let end = self.names.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
                (begin..end.min(page.saturating_add(PAGE)), Vec::new())
            }
        };
        let range = range.start.max(run.start)..range.end.min(run.end);
        let mapping = self.space.find(Avma(at));
        let module = mapping.map(|mapping| self.modules.get(mapping.module));
        let (module, base) = match (module, mapping) {
            (Some(module), Some(mapping)) if module.kind == ModuleKind::KernelModule => {
                (module.path.clone(), mapping.start.0.wrapping_sub(mapping.pgoff))
            }
            (Some(module), _) if module.kind == ModuleKind::Kernel => (module.path.clone(), 0),
            (Some(_), _) => return None,
            (None, _) => (name_without_mapping(at).to_owned(), 0),
        };
        let name = if name.is_empty() { format!("[{:#x}]", range.start.wrapping_sub(base)).into_bytes() } else { name };
        Some(Function { code: Code { at: range.start, bytes: self.bytes(&range)? }, name, module, base })
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
    modules.intern(name_without_mapping(at).as_bytes(), None)
}

fn name_without_mapping(at: u64) -> &'static str {
    if at < KERNEL_MODULES { KERNEL } else { MADE }
}

/// Where the kernel and its modules are in the end, without what is a symbol of code that the kernel has made.
fn mapped(events: &[(u64, TaskEvent)], made: &BTreeSet<ModuleId>) -> AddressSpace {
    let of_kernel = |event: &TaskEvent| match event {
        TaskEvent::Map { pid: KERNEL_PID, mapping } if !made.contains(&mapping.module) => Some(*mapping),
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
        let mapping = *mapped(events, &BTreeSet::new()).find(Avma(at))?;
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
        code.add(0, MODULE + 0x200, &[3; 16]);
        code.add(0, TEXT + 0x100, &[1; 16]);
        code.add(0, TEXT + 0x110, &[2; 16]);
        code.add(0, TEXT + 0x118, &[9; 16]);
        let names: BTreeMap<u64, (u64, &[u8])> = [
            (TEXT + 0x100, (TEXT + 0x110, &b"one"[..])),
            (TEXT + 0x110, (TEXT + 0x200, b"two")),
            (MODULE + 0x200, (MODULE + 0x210, b"ext4_file_read_iter")),
        ]
        .into();
        let made = code.finish(&mut modules, &events, &names).of_end;
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
            code.add(0, at, bytes);
        }
        assert!(code.finish(&mut modules, &[], &BTreeMap::new()).of_end.is_empty());
        assert_eq!(modules.iter().len(), 0);
        let mut code = KernelCode::default();
        code.add(0, u64::MAX - 8, &[1; 8]);
        code.add(0, TEXT, &[1; 8]);
        assert_eq!(code.finish(&mut modules, &[], &BTreeMap::new()).of_end.len(), 2);
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
        [MODULE, again, TEXT].iter().for_each(|at| code.add(0, *at, &[1; PAGE as usize]));
        let found = code.finish(&mut modules, &events, &BTreeMap::new());
        assert_eq!((found.of_end.len(), found.left_out), (1, 2), "a page past the last address, and a program's file");
    }

    #[test]
    fn functions_of_two_modules_that_touch_are_told_apart_and_pages_have_the_name_of_their_function() {
        let mut modules = ModuleTable::default();
        let mut events = vec![map(&mut modules, "/a.ko", MODULE, 0), map(&mut modules, "/b.ko", MODULE + 0x10_0000, 0)];
        let (last, first) = (MODULE + 0x10_0000 - 8, MODULE + 0x10_0000);
        let mut code = KernelCode::default();
        code.add(0, last, &[7; 16]);
        let names: BTreeMap<u64, (u64, &[u8])> =
            [(MODULE, (first, &b"long"[..])), (first, (first + 8, b"other"))].into();
        let made = code.finish(&mut modules, &events, &names).of_end;
        events.extend(made);
        let at = |at| code_at(&modules, &events, at).map(|(svma, name, _)| (svma, name));
        assert_eq!(at(last + 2), Some((0xf_fffa, "long".into())));
        assert_eq!(at(first + 2), Some((2, "other".into())));
    }
}
