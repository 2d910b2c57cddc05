//! Code that is in no file: from the pieces that bursts executed to modules that can be read.
//!
//! The bytes of a process are put together in *layers*, which are modules. A layer has one byte for each address. Where code is rewritten, it
//! goes to the next layer, with what else is near; from then on its addresses mean that layer, and an epoch begins:
//!
//! ```text
//! address  0x7f00_0000        0x7f00_0040
//! time 1   [ f ]                                   layer 0: f
//!      2                      [ g ]                layer 0: f, g
//!      3   [ h ], over f                           layer 1: h, g      an epoch begins
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use formats::made_code::MadeCode;
use perfdata::Record;

use crate::address::Avma;
use crate::code::{MadeFunction, made_elf};
use crate::recording::kernel_code::{KernelCode, KernelMappings};
use crate::recording::kernel_epochs::KernelEpochs;
use crate::recording::modules::{VDSO, VDSO_32};
use crate::recording::pages::{PAGE, pages};
use crate::recording::{KERNEL_HALF, KERNEL_PID, Mapping, ModuleKind, ModuleTable, TaskEvent};

/// The name of modules of such code.
pub const MADE_CODE: &str = "[jit]";

/// Bytes that change their layer together: code runs on from page to page.
const AREA: u64 = 1 << 16;
/// Pages of all layers: 128 MiB. What finds no room is unread.
const MOST_PAGES: usize = 32_768;
/// What is not known: no instruction begins so.
const UNKNOWN: u8 = 0x06;
/// Unknown bytes within what is called a function where no name says what is one.
const GAP: u64 = 32;
/// Bytes of a function with a name.
const LONGEST_FUNCTION: u64 = 16 << 20;

/// What the records of a recording say of code that is in no file.
#[derive(Debug, Default)]
pub(crate) struct MadeCodes {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    /// By process: first address, size, name; in the order of the records.
    names: BTreeMap<u32, Vec<(u64, u64, Vec<u8>)>>,
    /// By name.
    vdsos: BTreeMap<&'static str, Vec<u8>>,
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
                pieces.into_iter().for_each(|(at, bytes)| self.kernel.add(time, at, bytes));
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
            MadeCode::Named { pid, names } => {
                let names = names.into_iter().map(|(start, size, name)| (start, size, name.to_vec()));
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
        let names = newest(self.names.get(&KERNEL_PID).map_or(&[][..], Vec::as_slice));
        let KernelMappings { of_end: mut made, before, mut left_out } = self.kernel.finish(modules, events, &names);
        let mut room = MOST_PAGES;
        for pieces in self.pieces.chunk_by(|one, next| one.pid == next.pid) {
            let Some(pid) = pieces.first().map(|piece| piece.pid) else { continue };
            let names = newest(self.names.get(&pid).map_or(&[][..], Vec::as_slice));
            let begins = begins.get(&pid).map_or(&[][..], Vec::as_slice);
            // What a program had is not what the next one of the process has, at the same addresses.
            let program = |piece: &Piece| begins.partition_point(|begins| *begins <= piece.time);
            for pieces in pieces.chunk_by(|one, next| program(one) == program(next)) {
                let mut layers = Layers { room, ..Layers::default() };
                for piece in pieces {
                    let bytes = self.bytes.get(piece.first..).and_then(|rest| rest.get(..piece.length));
                    layers.put(piece.time, piece.at, bytes.unwrap_or_default());
                }
                (room, left_out) = (layers.room, left_out + layers.left_out);
                made.extend(layers.finish(pid, &names, modules));
            }
        }
        Made { mapped: made, kernel: KernelEpochs::new(before), left_out }
    }
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

/// The code of one program of a process.
#[derive(Debug, Default)]
struct Layers {
    layers: Vec<BTreeMap<u64, Page>>,
    /// The layer of each area, and when its bytes came into it; none where there was no room.
    areas: HashMap<u64, (Option<usize>, u64)>,
    /// From these times on, pages mean a layer; or nothing, where there was no room.
    changes: Vec<(u64, Range<u64>, Option<usize>)>,
    /// What has this time: a burst.
    burst: (u64, BTreeMap<u64, Page>),
    /// Areas that mean nothing at a time, and how many changes there were then.
    hidden: HashMap<u64, (u64, usize)>,
    /// Pages that there is room for.
    room: usize,
    left_out: u64,
}

#[derive(Clone, Debug)]
struct Page(Box<PageBytes>);

#[derive(Clone, Debug)]
struct PageBytes {
    bytes: [u8; PAGE as usize],
    /// A bit for each byte.
    known: [u64; PAGE as usize / 64],
}

impl Page {
    fn empty() -> Self {
        Self(Box::new(PageBytes { bytes: [UNKNOWN; PAGE as usize], known: [0; PAGE as usize / 64] }))
    }

    fn knows(&self, at: usize) -> bool {
        self.0.known.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }

    /// Whether other bytes are known there.
    fn contradicts(&self, first: usize, bytes: &[u8]) -> bool {
        let both = (first..).zip(self.0.bytes.iter().skip(first).zip(bytes));
        both.into_iter().any(|(at, (byte, new))| byte != new && self.knows(at))
    }

    fn put(&mut self, first: usize, bytes: &[u8]) {
        for (at, (byte, new)) in (first..).zip(self.0.bytes.iter_mut().skip(first).zip(bytes)) {
            *byte = *new;
            if let Some(bits) = self.0.known.get_mut(at / 64) {
                *bits |= 1 << (at % 64);
            }
        }
    }
}

impl Layers {
    /// From `time` on there are these bytes. Times ascend.
    fn put(&mut self, time: u64, at: u64, bytes: &[u8]) {
        let parts = parts(at, bytes);
        let mut areas: Vec<u64> = parts.iter().map(|(page, ..)| page / AREA).collect();
        areas.dedup();
        for area in areas {
            let here = || parts.iter().filter(move |(page, ..)| page / AREA == area);
            let (layer, since) = self.areas.get(&area).copied().unwrap_or((Some(0), time));
            let pages = layer.and_then(|layer| self.layers.get(layer));
            let page_at = |page: &u64| pages.and_then(|pages| pages.get(page));
            let contradicts =
                here().any(|(page, first, part)| page_at(page).is_some_and(|page| page.contradicts(*first, part)));
            let layer = match layer {
                Some(layer) if contradicts && since < time => self.renew(area, layer, time),
                layer => layer,
            };
            let since = if contradicts { time } else { since };
            self.areas.insert(area, (layer, since));
            let Some(layer) = layer else {
                self.left_out += 1;
                continue;
            };
            if self.layers.len() <= layer {
                self.layers.resize_with(layer + 1, BTreeMap::new);
            }
            if self.burst.0 != time {
                self.burst = (time, BTreeMap::new());
            }
            let mut changes_in_burst = false;
            for (page, first, part) in here() {
                let page = self.burst.1.entry(*page).or_insert_with(Page::empty);
                changes_in_burst |= page.contradicts(*first, part);
                page.put(*first, part);
            }
            if changes_in_burst {
                self.hide(area, layer, time);
            }
            let Some(pages) = self.layers.get_mut(layer) else { continue };
            for (page, first, part) in here() {
                if !pages.contains_key(page) {
                    let Some(room) = self.room.checked_sub(1) else {
                        self.left_out += 1;
                        continue;
                    };
                    self.room = room;
                    pages.insert(*page, Page::empty());
                    self.changes.push((time, *page..page + PAGE, Some(layer)));
                }
                if let Some(page) = pages.get_mut(page) {
                    page.put(*first, part);
                }
            }
        }
    }

    /// An area that was rewritten in the middle of a burst means nothing at the time of this burst, which executed both.
    fn hide(&mut self, area: u64, layer: usize, time: u64) {
        // Once is enough, if nothing was mapped since.
        if self.hidden.get(&area) == Some(&(time, self.changes.len())) {
            return;
        }
        let range = area * AREA..(area + 1) * AREA;
        let pages: Vec<u64> = self
            .layers
            .get(layer)
            .map(|pages| pages.range(range.clone()).map(|(page, _)| *page).collect())
            .unwrap_or_default();
        self.changes.push((time, range, None));
        self.changes.extend(pages.into_iter().map(|page| (time.saturating_add(1), page..page + PAGE, Some(layer))));
        self.hidden.insert(area, (time, self.changes.len()));
    }

    /// Copies an area to the next layer that it has none in. If there is no room, it means nothing any more.
    fn renew(&mut self, area: u64, layer: usize, time: u64) -> Option<usize> {
        let range = area * AREA..(area + 1) * AREA;
        let copied: Vec<(u64, Page)> = match self.layers.get(layer) {
            Some(pages) if pages.range(range.clone()).count() <= self.room => {
                pages.range(range.clone()).map(|(page, bytes)| (*page, bytes.clone())).collect()
            }
            _ => {
                self.changes.push((time, range, None));
                return None;
            }
        };
        self.room -= copied.len();
        if self.layers.len() <= layer + 1 {
            self.layers.push(BTreeMap::new());
        }
        for (page, _) in &copied {
            self.changes.push((time, *page..page + PAGE, Some(layer + 1)));
        }
        self.layers.get_mut(layer + 1)?.extend(copied);
        Some(layer + 1)
    }

    /// Makes a module of each layer.
    fn finish(self, pid: u32, names: &BTreeMap<u64, (u64, &[u8])>, modules: &mut ModuleTable) -> Vec<(u64, TaskEvent)> {
        let mut made = Vec::new();
        for pages in &self.layers {
            let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
            for (start, Page(page)) in pages {
                let page = &page.bytes;
                match runs.last_mut() {
                    Some((first, bytes)) if *first + bytes.len() as u64 == *start => bytes.extend(page),
                    _ => runs.push((*start, page.to_vec())),
                }
            }
            let (file, offsets) = made_elf(&runs, &functions(pages, names));
            let starts: BTreeMap<u64, u64> = runs.iter().map(|(start, _)| *start).zip(offsets).collect();
            made.push((modules.add_code(MADE_CODE, ModuleKind::Anonymous, file), starts));
        }
        let mapping = |pages: &Range<u64>, layer: usize| {
            let (module, starts) = made.get(layer)?;
            let (start, offset) = starts.range(..=pages.start).next_back()?;
            let pgoff = offset + (pages.start - start);
            Mapping::new(Avma(pages.start), pages.end - pages.start, pgoff, *module).map(Mapping::anonymous)
        };
        let same = |one: &(u64, Range<u64>, Option<usize>), next: &(u64, Range<u64>, Option<usize>)| one.0 == next.0;
        let events = self.changes.chunk_by(same).filter_map(|changes| {
            let time = changes.first()?.0;
            let mapped = changes.iter().filter_map(|(_, pages, layer)| match layer {
                Some(layer) => Some((Avma(pages.start)..Avma(pages.end), Some(mapping(pages, *layer)?))),
                None => Some((Avma(pages.start)..Avma(pages.end), None)),
            });
            Some((time, TaskEvent::MadeCode { pid, changes: mapped.collect() }))
        });
        events.collect()
    }
}

/// The parts of `bytes` that are in one page each: its address, the first byte in it.
fn parts(at: u64, bytes: &[u8]) -> Vec<(u64, usize, &[u8])> {
    pages(at, bytes).map(|(at, part)| (at - at % PAGE, (at % PAGE) as usize, part)).collect()
}

/// Names by address, with their ends. Of those that overlap the last holds: code was freed, and other code came there.
fn newest(names: &[(u64, u64, Vec<u8>)]) -> BTreeMap<u64, (u64, &[u8])> {
    let mut newest: BTreeMap<u64, (u64, &[u8])> = BTreeMap::new();
    for (start, size, name) in names.iter().rev().filter(|(_, size, _)| (1..=LONGEST_FUNCTION).contains(size)) {
        let Some(end) = start.checked_add(*size) else { continue };
        let overlaps = newest.range(..end).next_back().is_some_and(|(_, (other, _))| other > start);
        if !overlaps {
            newest.insert(*start, (end, name));
        }
    }
    newest
}

/// The functions of a layer: those with names, and what is known beside them, called by its address.
fn functions<'a>(pages: &BTreeMap<u64, Page>, names: &BTreeMap<u64, (u64, &'a [u8])>) -> Vec<MadeFunction<'a>> {
    let mut functions: Vec<MadeFunction<'a>> = Vec::new();
    for known in known_ranges(pages) {
        let mut at = known.start;
        while at < known.end {
            // The name that holds the address, or the next one.
            let holding = names.range(..=at).next_back().filter(|(_, (end, _))| *end > at);
            match holding {
                Some((start, (end, name))) => {
                    // It may begin before what was executed.
                    let first = first_in_pages(pages, *start, at);
                    if functions.last().is_none_or(|(last, ..)| *last != first) {
                        functions.push((first, end - first, Cow::Borrowed(name)));
                    }
                    at = *end;
                }
                None => {
                    let next = names.range(at..).next().map_or(known.end, |(start, _)| known.end.min(*start));
                    functions.push((at, next - at, Cow::Owned(format!("[jit {at:#x}]").into_bytes())));
                    at = next;
                }
            }
        }
    }
    functions
}

/// The first address from `start` on that is in the same run of pages as `at`.
fn first_in_pages(pages: &BTreeMap<u64, Page>, start: u64, at: u64) -> u64 {
    let mut first = at - at % PAGE;
    while first > start && first >= PAGE && pages.contains_key(&(first - PAGE)) {
        first -= PAGE;
    }
    first.max(start)
}

/// What is known, in one where there is little between.
fn known_ranges(pages: &BTreeMap<u64, Page>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for (start, page) in pages {
        for at in (0..PAGE as usize).filter(|at| page.knows(*at)).map(|at| start + at as u64) {
            match ranges.last_mut() {
                Some(last) if at - last.end <= GAP => last.end = at + 1,
                _ => ranges.push(at..at + 1),
            }
        }
    }
    ranges
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
        executed(&mut codes, 7, 20, &[(AT, &[1, 2])]);
        executed(&mut codes, 7, 30, &[(AT, &[1, 2]), (AT, &[3, 4])]);
        let (timeline, modules, _) = build(codes, vec![(10, anonymous(7, 0x7f00_0000_0000, 0x10000))]);
        let first = |time| code_at(&timeline, &modules, 7, time, AT).map(|(bytes, _)| bytes[0]);
        assert_eq!([29, 30, 31].map(first), [Some(1), None, Some(3)]);
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
        codes.add(MadeCode::Named { pid: 7, names });
        let (timeline, modules, _) = build(codes, Vec::new());
        let name = |at| code_at(&timeline, &modules, 7, 20, at).unwrap().1;
        assert_eq!((name(AT), name(AT - 0x10), name(AT + 8)), ("first".into(), "first".into(), "second".into()));
        assert_eq!(name(0x7f00_0000_2108), "[jit 0x7f0000002100]");
    }

    #[test]
    fn what_changes_again_and_again_ends_where_there_is_no_room() {
        let mut codes = MadeCodes::default();
        // 16 pages, of which one is rewritten each time.
        (0..16).for_each(|page| executed(&mut codes, 7, 1, &[(0x10_0000 + page * PAGE, &[0x90; 8])]));
        (0..10_000_u64).for_each(|time| executed(&mut codes, 7, 2 + time, &[(0x10_0000, &time.to_le_bytes())]));
        let (timeline, modules, left_out) = build(codes, Vec::new());
        assert_eq!(left_out, 10_000 - (MOST_PAGES as u64 - 16) / 16);
        assert!(modules.iter().len() <= 1 + MOST_PAGES / 16);
        assert!(code_at(&timeline, &modules, 7, 100, 0x10_0000).is_some());
        assert!(code_at(&timeline, &modules, 7, u64::MAX, 0x10_0000).is_none(), "it would be wrong");
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
