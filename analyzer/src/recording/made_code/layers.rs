//! The layers that the code of a program is put together in: which page is in which from when on.
//!
//! The bytes of a process are put together in *layers*, which are modules. A layer has one byte for each address. Where code is rewritten, it
//! goes to the next layer, with the pages into which it runs on; from then on its addresses mean that layer, and an epoch begins:
//!
//! ```text
//! address  0x7f00_0000        0x7f00_0040
//! time 1   [ f ]                                   layer 0: f
//!      2                      [ g ]                layer 0: f, g
//!      3   [ h ], over f                           layer 1: h, g      an epoch begins
//! ```
//!
//! Pages are a *run* where the bytes on both sides of the edges between them are known: code may go straight on there. The pages of a run are in one
//! layer. A patch so costs the pages of its run, and not all that is near.
//!
//! A layer has one name for each address, too: where code gets another one, its run goes to the next layer as well.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::MADE_CODE;
use super::functions::{Functions, functions};
use super::names::{NamesInForce, Naming};
use super::page::{Page, parts};
use crate::address::Avma;
use crate::code::MadeElf;
use crate::recording::pages::PAGE;
use crate::recording::{Mapping, ModuleKind, ModuleTable, TaskEvent};

/// Runs of pages end at these edges.
const AREA: u64 = 1 << 16;
const PAGES_OF_AREA: usize = (AREA / PAGE) as usize;
/// The code of one program of a process.
#[derive(Debug, Default)]
pub(super) struct Layers<'a> {
    layers: Vec<BTreeMap<u64, Page>>,
    /// The names that hold in a page of a layer, once it has another layer.
    named: HashMap<(usize, u64), NamesInForce<'a>>,
    /// The names that hold now.
    pub names: NamesInForce<'a>,
    areas: HashMap<u64, Area>,
    /// From these times on, pages mean a layer; or nothing, where there was no room.
    changes: Vec<(u64, Range<u64>, Option<usize>)>,
    /// What was last seen at one time.
    burst: Burst,
    /// Pages that there is room for.
    pub room: usize,
    pub left_out: u64,
}

/// Where the pages of an area are.
#[derive(Clone, Copy, Debug, Default)]
struct Area {
    /// There was no room for a version of it: nothing is known any more.
    is_lost: bool,
    pages: [Option<InLayer>; PAGES_OF_AREA],
}

/// The layer that a page's addresses mean.
#[derive(Clone, Copy, Debug)]
struct InLayer {
    layer: usize,
    /// From when on, or when it was last seen to change.
    since: u64,
}

/// What a burst executed: the pieces of one time.
#[derive(Debug, Default)]
struct Burst {
    time: u64,
    pages: BTreeMap<u64, Page>,
    pieces: Vec<Range<u64>>,
    /// Bytes that it saw change, in any order.
    rewritten: Vec<u64>,
}

impl Burst {
    /// It executed these bytes, too.
    fn put(&mut self, at: u64, parts: &[(u64, usize, &[u8])]) {
        self.pieces.push(at..at + parts.iter().map(|(.., part)| part.len() as u64).sum::<u64>());
        for (start, first, part) in parts {
            let page = self.pages.entry(*start).or_insert_with(Page::empty);
            self.rewritten.extend(page.others(*first, part).map(|at| start + at as u64));
            page.put(*first, part);
        }
    }

    /// The pieces of which it saw a byte change, in one where they touch, by address.
    fn unclear(mut self) -> Vec<Range<u64>> {
        self.rewritten.sort_unstable();
        self.pieces.retain(|piece| {
            let next = self.rewritten.partition_point(|at| *at < piece.start);
            self.rewritten.get(next).is_some_and(|at| piece.contains(at))
        });
        self.pieces.sort_unstable_by_key(|piece| piece.start);
        let mut unclear: Vec<Range<u64>> = Vec::new();
        for piece in self.pieces {
            match unclear.last_mut() {
                Some(last) if piece.start <= last.end => last.end = last.end.max(piece.end),
                _ => unclear.push(piece),
            }
        }
        unclear
    }
}

impl<'a> Layers<'a> {
    /// None yet, with names that hold already and room for so many pages.
    pub fn new(names: NamesInForce<'a>, room: usize) -> Self {
        Layers { names, room, ..Layers::default() }
    }

    /// From then on this name holds. Times ascend, with those of bytes: names come before bytes of the same time.
    pub fn name(&mut self, naming: &Naming<'a>) {
        if self.burst.time != naming.since {
            self.end_burst(naming.since);
        }
        for Range { start, end } in self.names.replaced_by(naming) {
            for area in start / AREA..=(end - 1) / AREA {
                let range = start.max(area * AREA)..end.min((area + 1) * AREA);
                self.rename(area, &range, naming.since);
            }
        }
        self.names.put(naming);
    }

    /// Code in this range, which is in one area, has other names from a time on.
    fn rename(&mut self, area: u64, range: &Range<u64>, time: u64) {
        let Some(Area { is_lost: false, pages }) = self.areas.get(&area).copied() else { return };
        let is_older = |page: &Option<InLayer>| page.is_some_and(|page| page.since < time);
        let older = (area * AREA..).step_by(PAGE as usize).zip(&pages).filter(|(_, page)| is_older(page));
        for (page, _) in older {
            let named = range.start.max(page)..range.end.min(page + PAGE);
            // Its run may have another layer by now.
            let Some(InLayer { layer, .. }) = self.at(page).filter(|page| page.since < time) else { continue };
            if named.start < named.end
                && self.knows_any(layer, &named)
                && !self.move_to(layer + 1, self.run(page), time)
            {
                self.left_out += 1;
                return;
            }
        }
    }

    /// Whether a byte in a range is known.
    fn knows_any(&self, layer: usize, range: &Range<u64>) -> bool {
        let Some(pages) = self.layers.get(layer) else { return false };
        let mut pages = pages.range(range.start - range.start % PAGE..range.end);
        pages.any(|(page, bytes)| {
            let first = range.start.max(*page) - page;
            let end = range.end.min(page + PAGE) - page;
            (first..end).any(|at| bytes.knows(at as usize))
        })
    }

    /// From `time` on there are these bytes. Times ascend.
    pub fn put(&mut self, time: u64, at: u64, bytes: &[u8]) {
        if self.burst.time != time {
            self.end_burst(time);
        }
        let parts = parts(at, bytes);
        // Of areas without room nothing is known, whatever bursts see there.
        if parts.iter().any(|(page, ..)| !self.is_lost(*page)) {
            self.burst.put(at, &parts);
        }
        for parts in parts.chunk_by(|(one, ..), (next, ..)| one / AREA == next / AREA) {
            self.put_in_area(time, parts);
        }
    }

    /// The same of parts that are in one area.
    fn put_in_area(&mut self, time: u64, parts: &[(u64, usize, &[u8])]) {
        for (page, first, part) in parts {
            let contradicts = self.known(*page).is_some_and(|page| page.contradicts(*first, part));
            if self.is_lost(*page) || contradicts && !self.is_rewritten(*page, time) {
                self.left_out += 1;
                return;
            }
        }
        for (page, first, part) in parts {
            let Some(layer) = self.layer_for(*page, time) else {
                self.left_out += 1;
                continue;
            };
            if let Some(page) = self.layers.get_mut(layer).and_then(|pages| pages.get_mut(page)) {
                page.put(*first, part);
            }
        }
        let edges = parts.iter().flat_map(|(page, ..)| [*page, page + PAGE]);
        for edge in edges.filter(|edge| !edge.is_multiple_of(AREA)) {
            if !self.join(edge, time) {
                self.left_out += 1;
                return;
            }
        }
    }

    /// Bytes of a page are others from `time` on: its run goes to the next layer, unless it was this burst that brought it there. Returns whether
    /// there was room.
    fn is_rewritten(&mut self, page: u64, time: u64) -> bool {
        let run = self.run(page);
        let is_older = |page: u64| self.at(page).is_some_and(|page| page.since < time);
        let Some(InLayer { layer, .. }) = self.at(page) else { return true };
        !run.clone().step_by(PAGE as usize).any(is_older) || self.move_to(layer + 1, run, time)
    }

    /// The layer of a page. One that is new gets that of those beside it; `None` if there is no room.
    fn layer_for(&mut self, page: u64, time: u64) -> Option<usize> {
        if let Some(InLayer { layer, .. }) = self.at(page) {
            return Some(layer);
        }
        let area = page / AREA;
        let beside = [page.checked_sub(PAGE), page.checked_add(PAGE)].into_iter().flatten();
        let beside = beside.filter(|beside| beside / AREA == area).filter_map(|beside| self.at(beside));
        let layer = beside.map(|beside| beside.layer).max().unwrap_or(0);
        self.room = self.room.checked_sub(1)?;
        if self.layers.len() <= layer {
            self.layers.resize_with(layer + 1, BTreeMap::new);
        }
        self.layers.get_mut(layer)?.insert(page, Page::empty());
        self.set(page, InLayer { layer, since: time });
        self.changes.push((time, page..page + PAGE, Some(layer)));
        Some(layer)
    }

    /// Code runs on across this edge of two pages, if it is known on both sides: then they are in one layer from `time` on. Returns whether there
    /// was room.
    fn join(&mut self, edge: u64, time: u64) -> bool {
        let (Some(before), Some(after)) = (self.at(edge - PAGE), self.at(edge)) else { return true };
        if before.layer == after.layer || !self.runs_on(edge) {
            return true;
        }
        let lower = if before.layer < after.layer { edge - PAGE } else { edge };
        let run = self.run(lower);
        self.move_to(before.layer.max(after.layer), run, time)
    }

    /// Whether the bytes on both sides of this edge of two pages are known.
    fn runs_on(&self, edge: u64) -> bool {
        let before = self.known(edge - PAGE).is_some_and(|page| page.knows(PAGE as usize - 1));
        before && self.known(edge).is_some_and(|page| page.knows(0))
    }

    /// The pages that code of a page runs into, or comes from, and that are in its layer.
    fn run(&self, page: u64) -> Range<u64> {
        let layer = |page: u64| self.at(page).map(|page| page.layer);
        let goes_on = |edge: u64| !edge.is_multiple_of(AREA) && layer(edge - PAGE) == layer(edge) && self.runs_on(edge);
        let (mut start, mut end) = (page, page + PAGE);
        while goes_on(start) {
            start -= PAGE;
        }
        while goes_on(end) {
            end += PAGE;
        }
        start..end
    }

    fn is_lost(&self, page: u64) -> bool {
        self.areas.get(&(page / AREA)).is_some_and(|area| area.is_lost)
    }

    /// Where a page is.
    fn at(&self, page: u64) -> Option<InLayer> {
        let area = self.areas.get(&(page / AREA)).filter(|area| !area.is_lost)?;
        *area.pages.get((page % AREA / PAGE) as usize)?
    }

    fn set(&mut self, page: u64, to: InLayer) {
        let pages = &mut self.areas.entry(page / AREA).or_default().pages;
        if let Some(at) = pages.get_mut((page % AREA / PAGE) as usize) {
            *at = Some(to);
        }
    }

    /// What is known of a page.
    fn known(&self, page: u64) -> Option<&Page> {
        self.layers.get(self.at(page)?.layer)?.get(&page)
    }

    /// The burst has ended, and the next one is at `next`. Its pieces that were rewritten in the middle of it mean nothing at its time, for it may
    /// have executed both versions.
    fn end_burst(&mut self, next: u64) {
        let burst = std::mem::replace(&mut self.burst, Burst { time: next, ..Burst::default() });
        if burst.rewritten.is_empty() {
            return;
        }
        let (time, mut known_again) = (burst.time, Vec::new());
        for Range { start, end } in burst.unclear() {
            for page in (start - start % PAGE..end).step_by(PAGE as usize) {
                let Some(InLayer { layer, .. }) = self.at(page) else { continue };
                self.changes.push((time, start.max(page)..end.min(page + PAGE), None));
                known_again.extend(time.checked_add(1).map(|after| (after, page..page + PAGE, Some(layer))));
            }
        }
        known_again.dedup();
        self.changes.extend(known_again);
    }

    /// From `time` on the pages of a run are in another layer, which has never had them. If there is no room, their area means nothing any more, and
    /// `false` is returned.
    fn move_to(&mut self, to: usize, run: Range<u64>, time: u64) -> bool {
        let Some(InLayer { layer, .. }) = self.at(run.start) else { return true };
        let count = ((run.end - run.start) / PAGE) as usize;
        let Some(room) = self.room.checked_sub(count) else {
            let area = run.start / AREA;
            self.areas.entry(area).or_default().is_lost = true;
            self.changes.push((time, area * AREA..(area + 1) * AREA, None));
            return false;
        };
        self.room = room;
        if self.layers.len() <= to {
            self.layers.resize_with(to + 1, BTreeMap::new);
        }
        let copies: Vec<(u64, Page)> = match self.layers.get(layer) {
            Some(pages) => pages.range(run.clone()).map(|(page, bytes)| (*page, bytes.clone())).collect(),
            None => Vec::new(),
        };
        for (page, bytes) in copies {
            self.named.insert((layer, page), self.names.clone());
            self.set(page, InLayer { layer: to, since: time });
            if let Some(pages) = self.layers.get_mut(to) {
                pages.insert(page, bytes);
            }
        }
        self.changes.push((time, run, Some(to)));
        true
    }

    /// Makes a module of each layer.
    pub fn finish(mut self, pid: u32, modules: &mut ModuleTable) -> Vec<(u64, TaskEvent)> {
        self.end_burst(u64::MAX);
        let mut made = Vec::new();
        for (layer, pages) in std::mem::take(&mut self.layers).into_iter().enumerate() {
            let mut stretches: Vec<(u64, Vec<u8>)> = Vec::new();
            for (start, Page(page)) in &pages {
                let page = &page.bytes;
                match stretches.last_mut() {
                    Some((first, bytes)) if *first + bytes.len() as u64 == *start => bytes.extend(page),
                    _ => stretches.push((*start, page.to_vec())),
                }
            }
            let Functions { whole, parts } =
                functions(&pages, |page| self.named.get(&(layer, page)).unwrap_or(&self.names));
            let (file, offsets) = MadeElf { runs: &stretches, functions: &whole, parts: &parts, sections: &[] }.write();
            let starts: BTreeMap<u64, u64> = stretches.iter().map(|(start, _)| *start).zip(offsets).collect();
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
