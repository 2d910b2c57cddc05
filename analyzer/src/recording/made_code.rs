//! Code that is in no file: from the pieces that bursts executed, or that were found where samples fell, to modules that can be read.

mod functions;
mod layers;
mod names;
mod page;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use formats::made_code::MadeCode;
use perfdata::Record;

use crate::address::Avma;
use crate::code::{MadeFunction, made_elf};
use crate::recording::kernel_code::{KernelCode, KernelMappings};
use crate::recording::kernel_epochs::KernelEpochs;
use crate::recording::modules::{VDSO, VDSO_32};
use crate::recording::pages::PAGE;
use crate::recording::{KERNEL_HALF, KERNEL_PID, Mapping, ModuleTable, TaskEvent, VSYSCALL, VSYSCALL_PAGE};
use layers::Layers;
use names::{Name, NamesInForce, namings};

/// The name of modules of such code.
pub const MADE_CODE: &str = "[jit]";

/// Pages of all layers: 128 MiB. What finds no room is unread.
const MOST_PAGES: usize = 32_768;

/// What the records of a recording say of code that is in no file.
#[derive(Debug, Default)]
pub(crate) struct MadeCodes {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    /// By process, in the order of the records.
    names: BTreeMap<u32, Vec<Name>>,
    /// By name.
    vdsos: BTreeMap<&'static str, Vec<u8>>,
    /// The page of the vsyscalls, where it could be read.
    vsyscall: Option<Vec<u8>>,
    kernel: KernelCode,
}

/// What modules were made of it.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// What is mapped when.
    pub mapped: Vec<(u64, TaskEvent)>,
    /// What is mapped of the kernel instead, before the end.
    pub kernel: KernelEpochs,
    /// Pieces that are left out.
    pub left_out: u64,
}

/// Code that a burst executed.
#[derive(Clone, Copy, Debug)]
struct Piece {
    time: u64,
    pid: u32,
    at: u64,
    /// Where its bytes begin, and how many they are.
    first: usize,
    length: usize,
}

impl MadeCodes {
    /// Takes in a record.
    pub fn add(&mut self, record: MadeCode<'_>) {
        match record {
            MadeCode::Executed { pid: KERNEL_PID, pieces, time } => {
                for (at, bytes) in pieces {
                    let is_vsyscall = at == VSYSCALL_PAGE.start && bytes.len() as u64 == PAGE;
                    match is_vsyscall {
                        true => self.vsyscall = Some(bytes.to_vec()),
                        false => self.kernel.add(time, at, bytes),
                    }
                }
            }
            MadeCode::Executed { time, pid, pieces } => {
                // The kernel's half of the addresses is none of a process.
                let in_process =
                    |at: u64, bytes: &[u8]| at.checked_add(bytes.len() as u64).is_some_and(|end| end < KERNEL_HALF);
                for (at, bytes) in pieces.into_iter().filter(|(at, bytes)| in_process(*at, bytes)) {
                    self.pieces.push(Piece { time, pid, at, first: self.bytes.len(), length: bytes.len() });
                    self.bytes.extend_from_slice(bytes);
                }
            }
            MadeCode::Named { since, pid, names } => {
                let names =
                    names.into_iter().map(|(start, size, name)| Name { since, start, size, name: name.to_vec() });
                self.names.entry(pid).or_default().extend(names);
            }
            MadeCode::Vdso(file) => {
                const ELFCLASS32: u8 = 1;
                let name = if file.get(4) == Some(&ELFCLASS32) { VDSO_32 } else { VDSO };
                self.vdsos.insert(name, file.to_vec());
            }
        }
    }

    /// Takes in what the kernel says of its own code.
    pub fn of_kernel(&mut self, time: u64, record: &Record<'_>) {
        match record {
            Record::Ksymbol(symbol) => self.kernel.symbol(time, symbol),
            Record::TextPoke(poke) => self.kernel.poke(time, poke),
            _ => {}
        }
    }

    /// Adds the modules of the code. `events` say when processes begin anew.
    pub fn finish(mut self, modules: &mut ModuleTable, events: &[(u64, TaskEvent)]) -> Made {
        let begins = beginnings(events);
        for (name, file) in std::mem::take(&mut self.vdsos) {
            modules.has_code(name, &Arc::from(file));
        }
        self.pieces.sort_by_key(|piece| (piece.pid, piece.time));
        let names_of = |pid: u32| namings(self.names.get(&pid).map_or(&[][..], Vec::as_slice));
        let mut of_kernel = NamesInForce::default();
        names_of(KERNEL_PID).iter().for_each(|naming| of_kernel.put(naming));
        let names = of_kernel.by_address();
        let KernelMappings { of_end: mut made, before, mut left_out } = self.kernel.finish(modules, events, &names);
        made.extend(self.vsyscall.take().and_then(|page| vsyscall(page, modules)));
        let mut room = MOST_PAGES;
        for pieces in self.pieces.chunk_by(|one, next| one.pid == next.pid) {
            let Some(pid) = pieces.first().map(|piece| piece.pid) else { continue };
            let namings = names_of(pid);
            let mut namings = namings.iter().peekable();
            let mut names = NamesInForce::default();
            let begins = begins.get(&pid).map_or(&[][..], Vec::as_slice);
            // What a program had is not what the next one of the process has, at the same addresses.
            let program = |piece: &Piece| begins.partition_point(|begins| *begins <= piece.time);
            for pieces in pieces.chunk_by(|one, next| program(one) == program(next)) {
                let next_begins =
                    pieces.first().and_then(|piece| begins.get(program(piece))).copied().unwrap_or(u64::MAX);
                let mut layers = Layers::new(names, room);
                for piece in pieces {
                    while let Some(naming) = namings.next_if(|naming| naming.since <= piece.time) {
                        layers.name(naming);
                    }
                    let bytes = self.bytes.get(piece.first..).and_then(|rest| rest.get(..piece.length));
                    layers.put(piece.time, piece.at, bytes.unwrap_or_default());
                }
                while let Some(naming) = namings.next_if(|naming| naming.since < next_begins) {
                    layers.name(naming);
                }
                (room, left_out, names) = (layers.room, left_out + layers.left_out, layers.names.clone());
                made.extend(layers.finish(pid, modules));
            }
        }
        Made { mapped: made, kernel: KernelEpochs::new(before), left_out }
    }
}

/// The page of the vsyscalls as a module. It has three functions, which are as far apart as they were in the first kernels that had it.
fn vsyscall(page: Vec<u8>, modules: &mut ModuleTable) -> Option<(u64, TaskEvent)> {
    const APART: u64 = 1024;
    let at = VSYSCALL_PAGE.start;
    let function = |(index, name): (u64, &'static [u8])| (at + index * APART, APART, Cow::Borrowed(name));
    let functions: Vec<MadeFunction<'_>> =
        (0..).zip([&b"gettimeofday"[..], b"time", b"getcpu"]).map(function).collect();
    let (file, offsets) = made_elf(&[(at, page)], &functions);
    let module = modules.intern(VSYSCALL.as_bytes(), None);
    modules.set_code(module, file);
    let mapping = Mapping::new(Avma(at), PAGE, *offsets.first()?, module)?;
    Some((0, TaskEvent::Map { pid: KERNEL_PID, mapping }))
}

/// When processes have another program than before: an exec, or a process that has the number of one that ended. In order.
fn beginnings(events: &[(u64, TaskEvent)]) -> HashMap<u32, Vec<u64>> {
    let mut begins: HashMap<u32, Vec<u64>> = HashMap::new();
    for (time, event) in events {
        if let TaskEvent::Comm { pid, exec: true, .. } | TaskEvent::Fork { pid, .. } | TaskEvent::Exit { pid } = event {
            begins.entry(*pid).or_default().push(*time);
        }
    }
    begins.values_mut().for_each(|times| times.sort_unstable());
    begins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::FunctionTable;
    use crate::recording::{ModuleId, Timeline};

    const AT: u64 = 0x7f00_0000_1ff8;

    fn executed(codes: &mut MadeCodes, pid: u32, time: u64, pieces: &[(u64, &[u8])]) {
        codes.add(MadeCode::Executed { time, pid, pieces: pieces.to_vec() });
    }

    /// The bytes at an address of a process at a time, and the name of the function; `None` where no code is known.
    fn code_at(timeline: &Timeline, modules: &ModuleTable, pid: u32, time: u64, at: u64) -> Option<(Vec<u8>, String)> {
        let (place, _) = timeline.place(pid, time);
        let mut found = None;
        timeline.for_each_epoch(pid, place.incarnation, |epoch, space| {
            if epoch == place.epoch {
                found = space.find(Avma(at)).copied();
            }
        });
        let found = found?;
        let image = modules.get(found.module).recorded_image()?.ok()?;
        let svma = image.svma_of_file_offset(found.file_offset(Avma(at)))?;
        assert_eq!(svma.0, at, "addresses are those in the process");
        let functions = FunctionTable::of(&image);
        let name = functions.name(functions.at(svma)?).into_owned();
        Some((image.bytes_up_to(svma, 3).to_vec(), name))
    }

    fn anonymous(pid: u32, start: u64, len: u64) -> TaskEvent {
        let mapping = Mapping::new(Avma(start), len, 0, ModuleId(0)).map(Mapping::anonymous).unwrap();
        TaskEvent::Map { pid, mapping }
    }

    fn build(codes: MadeCodes, mut events: Vec<(u64, TaskEvent)>) -> (Timeline, ModuleTable, u64) {
        let mut modules = ModuleTable::default();
        modules.intern(b"//anon", None);
        let Made { mapped, left_out, .. } = codes.finish(&mut modules, &events);
        events.extend(mapped);
        (Timeline::new(events), modules, left_out)
    }

    #[test]
    fn rewritten_code_is_told_apart_by_time() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 30, &[(AT, &[0x48, 0x01, 0xc8, 0xc3])]);
        executed(&mut codes, 7, 20, &[(AT, &[0x48, 0x29, 0xc8, 0xc3]), (AT + 0x40, &[0x90, 0x90, 0xc3])]);
        executed(&mut codes, 8, 25, &[(AT, &[0x0f, 0x0b, 0xc3])]);
        let (timeline, modules, left_out) = build(codes, vec![(10, anonymous(7, 0x7f00_0000_0000, 0x10000))]);
        let bytes = |pid, time, at| code_at(&timeline, &modules, pid, time, at).map(|(bytes, _)| bytes);
        assert_eq!(bytes(7, 10, AT), Some(vec![0x48, 0x29, 0xc8]), "before it was first seen, too");
        assert_eq!(bytes(7, 29, AT), Some(vec![0x48, 0x29, 0xc8]));
        assert_eq!(bytes(7, 30, AT), Some(vec![0x48, 0x01, 0xc8]));
        assert_eq!(bytes(7, 30, AT + 0x40), Some(vec![0x90, 0x90, 0xc3]), "what stays is in both layers");
        assert_eq!(bytes(8, 26, AT), Some(vec![0x0f, 0x0b, 0xc3]));
        assert_eq!(bytes(7, 26, 0x7f00_0000_8000), None, "a page of which nothing was executed");
        assert_eq!(left_out, 0);
    }

    #[test]
    fn what_changes_in_the_middle_of_a_burst_is_unread_in_it() {
        let mut codes = MadeCodes::default();
        let beside = AT + 0x40;
        executed(&mut codes, 7, 20, &[(AT, &[1, 2]), (beside, &[7, 8])]);
        // A block that changes, twice, one that reaches into what changes, and one that begins where they end.
        let both: [(u64, &[u8]); 5] =
            [(AT, &[1, 2]), (AT, &[3, 4]), (AT - 2, &[6, 6, 1]), (AT, &[1, 2]), (AT + 2, &[5])];
        executed(&mut codes, 7, 30, &both);
        executed(&mut codes, 7, 30, &[(beside, &[7, 8])]);
        executed(&mut codes, 7, 40, &[(AT, &[3, 4])]);
        let (timeline, modules, _) = build(codes, vec![(10, anonymous(7, 0x7f00_0000_0000, 0x10000))]);
        let first = |time, at| code_at(&timeline, &modules, 7, time, at).map(|(bytes, _)| bytes[0]);
        let at = |at| [29, 30, 31, 40].map(|time| first(time, at));
        assert_eq!(at(AT), [Some(1), None, Some(1), Some(3)]);
        assert_eq!(at(AT + 1), [Some(2), None, Some(2), Some(4)]);
        assert_eq!([AT - 2, AT - 1].map(|at| first(30, at)), [None; 2], "the instruction may have either byte");
        assert_eq!(at(AT + 2)[1..], [Some(5); 3], "what did not change is read");
        assert_eq!(at(beside), [Some(7); 4], "before, too");
    }

    /// A burst of which everything changes, again and again: the ranges that mean nothing are those of its pieces.
    #[test]
    fn bursts_that_change_everything_are_unread() {
        let mut codes = MadeCodes::default();
        for time in 1..200_u8 {
            for version in [2 * u64::from(time), 2 * u64::from(time) + 1] {
                let pieces: Vec<(u64, [u8; 8])> =
                    (0..512).map(|at| (0x10_0000 + 8 * at, version.to_le_bytes())).collect();
                let pieces: Vec<(u64, &[u8])> = pieces.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
                executed(&mut codes, 7, u64::from(time) * 2, &pieces);
            }
        }
        let (timeline, modules, left_out) = build(codes, Vec::new());
        assert_eq!(left_out, 0);
        for time in 1..200 {
            let [burst, after] = [2 * time, 2 * time + 1].map(|time| code_at(&timeline, &modules, 7, time, 0x10_0000));
            assert_eq!((burst, after.unwrap().0[0]), (None, (2 * time + 1) as u8));
        }
    }

    #[test]
    fn a_file_that_is_mapped_there_has_the_addresses() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 20, &[(0x5000, &[0x90; 8])]);
        let file = TaskEvent::Map { pid: 7, mapping: Mapping::new(Avma(0x5000), 0x1000, 16, ModuleId(0)).unwrap() };
        let (timeline, modules, _) = build(codes, vec![(30, file), (40, anonymous(7, 0x5000, 0x1000))]);
        assert!(code_at(&timeline, &modules, 7, 29, 0x5000).is_some());
        assert!(code_at(&timeline, &modules, 7, 30, 0x5000).is_none());
        assert!(code_at(&timeline, &modules, 7, 40, 0x5000).is_some(), "protected otherwise, or mapped anew");
    }

    #[test]
    fn functions_have_the_names_of_the_map_or_their_addresses() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 20, &[(AT, &[0x90; 16]), (0x7f00_0000_2100, &[0x90; 16])]);
        let names: Vec<(u64, u64, &[u8])> = vec![
            (AT - 0x100, 0x200, b"freed"),
            (AT - 0x20, 0x28, b"first"),
            (AT + 8, 8, b"second"),
            (AT, u64::MAX, b"absurd"),
            (0, 1 << 63, b"everything"),
        ];
        codes.add(MadeCode::Named { since: 0, pid: 7, names });
        let (timeline, modules, _) = build(codes, Vec::new());
        let name = |at| code_at(&timeline, &modules, 7, 20, at).unwrap().1;
        assert_eq!((name(AT), name(AT - 0x10), name(AT + 8)), ("first".into(), "first".into(), "second".into()));
        assert_eq!(name(0x7f00_0000_2108), "[jit 0x7f0000002100]");
    }

    fn named(codes: &mut MadeCodes, since: u64, names: &[(u64, u64, &str)]) {
        let names = names.iter().map(|(start, size, name)| (*start, *size, name.as_bytes())).collect();
        codes.add(MadeCode::Named { since, pid: 7, names });
    }

    #[test]
    fn code_has_the_name_of_its_time() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 20, &[(AT, &[1; 8]), (AT + 0x40, &[1; 8])]);
        executed(&mut codes, 7, 40, &[(AT, &[2; 8])]);
        named(&mut codes, 60, &[(AT, 8, "third")]);
        named(&mut codes, 10, &[(AT, 8, "first"), (AT + 0x40, 8, "other")]);
        named(&mut codes, 40, &[(AT, 8, "second")]);
        let (timeline, modules, left_out) = build(codes, Vec::new());
        let at = |time, at| code_at(&timeline, &modules, 7, time, at).map(|(bytes, name)| (bytes[0], name));
        let names = [5, 39, 40, 59, 60, u64::MAX].map(|time| at(time, AT).unwrap());
        let expected = [(1, "first"), (1, "first"), (2, "second"), (2, "second"), (2, "third"), (2, "third")];
        assert_eq!(names, expected.map(|(byte, name)| (byte, name.to_owned())));
        assert!([5, 40, 60].iter().all(|time| at(*time, AT + 0x40) == Some((1, "other".into()))));
        assert_eq!(left_out, 0);
    }

    #[test]
    fn a_name_that_comes_late_is_that_of_all_versions_before() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 20, &[(AT, &[1; 8])]);
        executed(&mut codes, 7, 40, &[(AT, &[2; 8])]);
        named(&mut codes, 60, &[(AT, 8, "late")]);
        let (timeline, modules, _) = build(codes, Vec::new());
        for time in [20, 40, 60] {
            assert_eq!(code_at(&timeline, &modules, 7, time, AT).unwrap().1, "late");
        }
        assert_eq!(modules.iter().len(), 3, "//anon, and the versions");
    }

    #[test]
    fn functions_across_areas_may_have_names_of_different_times() {
        let edge = 0x7f00_0001_0000;
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 20, &[(edge - 8, &[1; 16]), (edge + 0x100, &[1; 8])]);
        // One function, and code without a name, across the edge of two areas.
        named(&mut codes, 10, &[(edge - 8, 0x100, "long"), (edge + 0x100, 8, "other")]);
        executed(&mut codes, 7, 20, &[(edge * 2 - 8, &[1; 16])]);
        named(&mut codes, 30, &[(edge + 0x100, 8, "renamed")]);
        named(&mut codes, 40, &[(edge + 4, 8, "inside")]);
        let (timeline, modules, _) = build(codes, Vec::new());
        let name = |time, at| code_at(&timeline, &modules, 7, time, at).unwrap().1;
        for (time, at, expected) in [
            (20, edge - 8, "long"),
            (20, edge + 4, "long"),
            (35, edge - 8, "long"),
            (35, edge + 4, "long"),
            (35, edge + 0x100, "renamed"),
            (20, edge + 0x100, "other"),
            (45, edge + 4, "inside"),
            (45, edge - 8, "[jit 0x7f000000fff8]"),
            (45, edge * 2 - 8, "[jit 0xfe000001fff8]"),
            (45, edge * 2 + 4, "[jit 0xfe000001fff8]"),
        ] {
            assert_eq!(name(time, at), expected, "{time} {at:x}");
        }
    }

    #[test]
    fn names_that_change_again_and_again_end_where_there_is_no_room() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 1, &[(0x10_0000, &[0x90; 16 * PAGE as usize])]);
        (0..10_000_u64).for_each(|time| named(&mut codes, 2 + time, &[(0x10_0000, 8, ["a", "b"][time as usize % 2])]));
        let (timeline, modules, left_out) = build(codes, Vec::new());
        assert_eq!(left_out, 1);
        assert_eq!(code_at(&timeline, &modules, 7, 3, 0x10_0000).unwrap().1, "b");
        assert!(code_at(&timeline, &modules, 7, u64::MAX, 0x10_0000).is_none(), "it would be wrong");
    }

    #[test]
    fn what_changes_again_and_again_ends_where_there_is_no_room() {
        let mut codes = MadeCodes::default();
        // A run of 16 pages, of which one is rewritten each time.
        executed(&mut codes, 7, 1, &[(0x10_0000, &[0x90; 16 * PAGE as usize])]);
        (0..10_000_u64).for_each(|time| executed(&mut codes, 7, 2 + time, &[(0x10_0000, &time.to_le_bytes())]));
        let (timeline, modules, left_out) = build(codes, Vec::new());
        assert_eq!(left_out, 10_000 - (MOST_PAGES as u64 - 16) / 16);
        assert!(modules.iter().len() <= 1 + MOST_PAGES / 16);
        assert!(code_at(&timeline, &modules, 7, 100, 0x10_0000).is_some());
        assert!(code_at(&timeline, &modules, 7, u64::MAX, 0x10_0000).is_none(), "it would be wrong");
    }

    /// What a version costs is the pages that code runs on into, and no others.
    #[test]
    fn pages_near_what_changes_stay_in_their_layer() {
        let mut codes = MadeCodes::default();
        let at = |page: u64| 0x10_0000 + page * PAGE;
        (0..16).for_each(|page| executed(&mut codes, 7, 1, &[(at(page), &[0x90; 8])]));
        (0..10_000_u64).for_each(|time| executed(&mut codes, 7, 2 + time, &[(at(5), &time.to_le_bytes())]));
        let (timeline, modules, left_out) = build(codes, Vec::new());
        assert_eq!((left_out, modules.iter().len()), (0, 1 + 10_001));
        let code = |time: u64, page: u64| code_at(&timeline, &modules, 7, time, at(page)).unwrap().0;
        for time in [2, 5000, 10_001] {
            assert_eq!(code(time, 5), (time - 2).to_le_bytes()[..3]);
            assert_eq!(code(time, 4), [0x90; 3]);
        }
        let bytes: usize =
            modules.iter().filter_map(|(_, module)| Some(module.recorded_image()?.ok()?.bytes().len())).sum();
        assert!(bytes < 10_017 * (PAGE as usize + 1024), "{bytes}");
    }

    /// The module that an address means at a time.
    fn module_at(timeline: &Timeline, time: u64, at: u64) -> ModuleId {
        let (place, _) = timeline.place(7, time);
        let mut found = None;
        timeline.for_each_epoch(7, place.incarnation, |epoch, space| {
            if epoch == place.epoch {
                found = space.find(Avma(at)).map(|mapping| mapping.module);
            }
        });
        found.unwrap()
    }

    #[test]
    fn code_that_runs_on_into_the_next_page_is_in_its_layer() {
        let mut codes = MadeCodes::default();
        let edge = 0x10_1000;
        executed(&mut codes, 7, 10, &[(edge - 16, &[1; 8]), (edge, &[1; 8]), (edge + PAGE, &[1; 8])]);
        executed(&mut codes, 7, 20, &[(edge - 16, &[2; 8])]);
        // A burst goes on across the edge.
        executed(&mut codes, 7, 30, &[(edge - 8, &[3; 8])]);
        executed(&mut codes, 7, 40, &[(edge, &[4; 8])]);
        // And across the next one.
        executed(&mut codes, 7, 50, &[(edge + 8, &[5; PAGE as usize - 8])]);
        let (timeline, modules, left_out) = build(codes, Vec::new());
        let together =
            |time, one: u64, other: u64| module_at(&timeline, time, one) == module_at(&timeline, time, other);
        let edges = |time| (together(time, edge - 1, edge), together(time, edge, edge + PAGE));
        assert_eq!(
            [10, 20, 30, 40, 50].map(edges),
            [(true, true), (false, true), (true, false), (true, false), (true, true)]
        );
        let first = |time, at| code_at(&timeline, &modules, 7, time, at).unwrap().0[0];
        assert_eq!([10, 20, 30, 40, 50].map(|time| first(time, edge - 16)), [1, 2, 2, 2, 2]);
        assert_eq!([10, 20, 30, 40, 50].map(|time| first(time, edge)), [1, 1, 1, 4, 4]);
        assert_eq!([10, 30, 50].map(|time| first(time, edge + PAGE)), [1; 3]);
        assert_eq!((first(50, edge - 8), first(50, edge + 8), left_out), (3, 5, 0));
    }

    #[test]
    fn another_program_at_the_same_addresses_has_its_own_code() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 2, &[(0x10_0000, &[1; 8])]);
        executed(&mut codes, 7, 12, &[(0x10_0000, &[1; 8])]);
        let exec = TaskEvent::Comm { pid: 7, tid: 7, exec: true, name: "other".into() };
        let events = vec![(1, anonymous(7, 0x10_0000, PAGE)), (10, exec), (11, anonymous(7, 0x10_0000, PAGE))];
        let (timeline, modules, _) = build(codes, events);
        for time in [5, 20] {
            assert!(code_at(&timeline, &modules, 7, time, 0x10_0000).is_some(), "{time}");
        }
    }

    #[test]
    fn absurd_addresses_are_no_code_of_a_process() {
        let mut codes = MadeCodes::default();
        executed(&mut codes, 7, 1, &[(u64::MAX - 3, &[1; 8]), (1 << 63, &[1; 8]), ((1 << 63) - 4, &[1; 8]), (5, &[])]);
        let (_, modules, left_out) = build(codes, Vec::new());
        assert_eq!((modules.iter().len(), left_out), (1, 0));
    }
}
