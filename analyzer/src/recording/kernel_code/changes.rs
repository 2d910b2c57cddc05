//! What the kernel's code was before the end: functions that were patched, and code that it made and threw away.
//!
//! ```text
//! time        10        20        30      end
//! patches          old->new   new->old
//! function   |  end     | other   |  end        the copy is of the end; patches undone backwards tell what was before
//! program         |  made       | gone          its code is of when it came; patches go on from there
//! ```
//!
//! What is at an address at two times and has the same bytes is one version: a static key that goes to and fro makes two.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::Range;

use crate::address::Avma;
use crate::code::{MadeFunction, made_elf};
use crate::recording::kernel_epochs::KernelChange;
use crate::recording::{Mapping, ModuleKind, ModuleTable};

/// Bytes of all versions, and what each takes beside them; what finds no room is left out, and counted: at its times the code of the end is read.
const MOST: usize = 128 << 20;
const OF_VERSION: usize = 1 << 10;

/// Bytes at an address.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// Code that came at a time (ns), and what it is of.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub time: u64,
    pub code: Code,
}

/// A patch.
#[derive(Clone, Debug)]
pub(super) struct Poke {
    pub time: u64,
    pub at: u64,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// A symbol that came or went.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub time: u64,
    pub at: u64,
    pub came: bool,
    pub name: Vec<u8>,
}

/// What of the end has the address of a patch: the function, or as much as is known of it.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub code: Code,
    pub name: Vec<u8>,
    /// The name of its module, and what is taken off addresses there.
    pub module: String,
    pub base: u64,
}

/// Code as it was from a time to another.
#[derive(Debug)]
struct State {
    times: Range<u64>,
    /// Which version; `None`: that of the end.
    version: Option<usize>,
}

/// Code of a function at some times.
#[derive(Debug)]
struct Version {
    code: Code,
    name: Vec<u8>,
    module: String,
    base: u64,
}

impl Version {
    /// Its address in the module.
    fn start(&self) -> u64 {
        self.code.at.wrapping_sub(self.base)
    }

    fn function(&self) -> MadeFunction<'_> {
        (self.start(), self.code.bytes.len() as u64, Cow::Borrowed(&self.name))
    }
}

/// All versions, and when they were.
#[derive(Debug, Default)]
pub(super) struct Versions {
    versions: Vec<Version>,
    states: Vec<State>,
    /// Those of made code, by name: what is loaded again and again often has the same address.
    made: HashMap<Vec<u8>, Known>,
    bytes: usize,
    left_out: u64,
}

/// The code of the end.
pub(super) trait End {
    /// Whether there is some at an address.
    fn holds(&self, at: u64) -> bool;

    /// The function at an address, or as much as is known. Those of two addresses are the same, or do not overlap.
    fn function(&self, at: u64) -> Option<Function>;
}

/// What was before the end. `made`, `symbols` and `pokes` are in any order; made code is of the module of that name.
pub(super) fn changes(
    made: Vec<Made>,
    symbols: &[Symbol],
    mut pokes: Vec<Poke>,
    of_end: &impl End,
    made_module: &str,
) -> Versions {
    pokes.sort_by_key(|poke| poke.time);
    let mut versions = Versions::default();
    let mut of_functions: BTreeMap<u64, (Function, Vec<&Poke>)> = BTreeMap::new();
    let lives = lives(made, symbols, &pokes, of_end);
    for poke in lives.others {
        let starts = of_functions.range(..=poke.at).next_back().filter(|(_, (held, _))| held.code.holds(poke.at));
        let start = starts.map(|(start, _)| *start);
        match start.and_then(|start| of_functions.get_mut(&start)) {
            Some((_, pokes)) => pokes.push(poke),
            None => {
                if let Some(function) = of_end.function(poke.at) {
                    of_functions.insert(function.code.at, (function, vec![poke]));
                }
            }
        }
    }
    of_functions.into_values().for_each(|(function, pokes)| versions.undo(function, &pokes));
    let names = Names::new(symbols);
    for life in lives.made {
        let name = names.of(life.code.at, life.times.start);
        versions.go_on(life, name, made_module);
    }
    versions
}

/// Code that was made, from when to when it was there, and patches of it.
#[derive(Debug)]
struct Life<'a> {
    code: Code,
    times: Range<u64>,
    pokes: Vec<&'a Poke>,
}

/// Made code, and the patches that are of none.
struct Lives<'a> {
    made: Vec<Life<'a>>,
    others: Vec<&'a Poke>,
}

/// What happens to made code, in order of time; of the same time in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Went(usize),
    Came(usize),
    Patched(usize),
}

/// Follows made code from when it came to when it went, or something else came there.
fn lives<'a>(made: Vec<Made>, symbols: &[Symbol], pokes: &'a [Poke], of_end: &impl End) -> Lives<'a> {
    let mut made = joined(made, symbols);
    // A patch of nothing is code that is new, unless it is in what the end has.
    let new = pokes.iter().filter(|poke| poke.old.is_empty() && !poke.new.is_empty() && !of_end.holds(poke.at));
    made.extend(new.map(|poke| Made { time: poke.time, code: Code { at: poke.at, bytes: poke.new.clone() } }));
    let came = made.iter().enumerate().map(|(index, made)| (made.time, Happening::Came(index)));
    let went = symbols.iter().enumerate().filter(|(_, symbol)| !symbol.came);
    let went = went.map(|(index, symbol)| (symbol.time, Happening::Went(index)));
    let patched = pokes.iter().enumerate().map(|(index, poke)| (poke.time, Happening::Patched(index)));
    let mut happenings: Vec<(u64, Happening)> = came.chain(went).chain(patched).collect();
    happenings.sort_unstable();
    let mut all: Vec<Life<'a>> = Vec::new();
    let mut there: BTreeMap<u64, usize> = BTreeMap::new();
    let mut others = Vec::new();
    let mut codes: Vec<Option<Code>> = made.into_iter().map(|made| Some(made.code)).collect();
    for (time, happening) in happenings {
        match happening {
            Happening::Went(symbol) => {
                let life = symbols.get(symbol).and_then(|symbol| there.remove(&symbol.at));
                end(&mut all, life, time);
            }
            Happening::Came(index) => {
                let Some(code) = codes.get_mut(index).and_then(Option::take) else { continue };
                let before = there.range(..code.end()).rev();
                let is_covered = |life: &usize| all.get(*life).is_some_and(|life| life.code.end() > code.at);
                let covered: Vec<u64> = before.take_while(|(_, life)| is_covered(life)).map(|(at, _)| *at).collect();
                for at in covered {
                    let life = there.remove(&at);
                    end(&mut all, life, time);
                }
                there.insert(code.at, all.len());
                all.push(Life { code, times: time..u64::MAX, pokes: Vec::new() });
            }
            Happening::Patched(index) => {
                let Some(poke) = pokes.get(index) else { continue };
                let life = there.range(..=poke.at).next_back().map(|(_, life)| *life);
                match life.and_then(|life| all.get_mut(life)).filter(|life| life.code.holds(poke.at)) {
                    Some(life) => life.pokes.push(poke),
                    None => others.push(poke),
                }
            }
        }
    }
    Lives { made: all, others }
}

fn end(all: &mut [Life<'_>], life: Option<usize>, time: u64) {
    if let Some(life) = life.and_then(|life| all.get_mut(life)) {
        life.times.end = time;
    }
}

/// Pieces of one function are one: they came at the same time, one after the other, and no symbol begins between.
fn joined(mut made: Vec<Made>, symbols: &[Symbol]) -> Vec<Made> {
    let mut begins: Vec<u64> = symbols.iter().filter(|symbol| symbol.came).map(|symbol| symbol.at).collect();
    begins.sort_unstable();
    made.sort_by_key(|made| (made.time, made.code.at));
    let mut joined: Vec<Made> = Vec::new();
    for piece in made {
        match joined.last_mut() {
            Some(last)
                if last.time == piece.time
                    && last.code.end() == piece.code.at
                    && begins.binary_search(&piece.code.at).is_err() =>
            {
                last.code.bytes.extend(piece.code.bytes);
            }
            _ => joined.push(piece),
        }
    }
    joined
}

/// Names of made code.
struct Names<'a>(BTreeMap<(u64, u64), &'a [u8]>);

impl<'a> Names<'a> {
    fn new(symbols: &'a [Symbol]) -> Self {
        let came = symbols.iter().filter(|symbol| symbol.came);
        Self(came.map(|symbol| ((symbol.at, symbol.time), symbol.name.as_slice())).collect())
    }

    /// The last one of the address up to a time, or the first one after.
    fn of(&self, at: u64, time: u64) -> Vec<u8> {
        let before = self.0.range((at, 0)..=(at, time)).next_back();
        let name = before.or_else(|| self.0.range((at, time)..=(at, u64::MAX)).next());
        name.map_or_else(|| format!("[made {at:#x}]").into_bytes(), |(_, name)| name.to_vec())
    }
}

impl Code {
    fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes.len() as u64)
    }

    fn holds(&self, at: u64) -> bool {
        (self.at..self.end()).contains(&at)
    }
}

/// Bytes that are patched, and a sum of them that is the same when they are.
struct Patched {
    code: Code,
    sum: u64,
}

/// Address, length and sum of a version.
type Sum = (u64, usize, u64);

/// The versions of one name.
type Known = HashMap<Sum, Option<usize>>;

impl Patched {
    fn new(code: Code) -> Self {
        let sum = code.bytes.iter().enumerate().fold(0, |sum, (place, byte)| sum ^ mixed(place, *byte));
        Self { code, sum }
    }

    fn of(&self) -> Sum {
        (self.code.at, self.code.bytes.len(), self.sum)
    }

    /// Puts bytes at an address, as far as they are within.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let Some(first) = at.checked_sub(self.code.at).and_then(|first| usize::try_from(first).ok()) else { return };
        for ((place, held), new) in self.code.bytes.iter_mut().enumerate().skip(first).zip(bytes) {
            self.sum ^= mixed(place, *held) ^ mixed(place, *new);
            *held = *new;
        }
    }
}

/// A byte and where it is, with the bits of both all over (the finalizer of MurmurHash3).
fn mixed(place: usize, byte: u8) -> u64 {
    let mut bits = (place as u64) << 8 | u64::from(byte);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        bits = (bits ^ bits >> 33).wrapping_mul(factor);
    }
    bits ^ bits >> 33
}

impl Versions {
    /// Of a function of the end: what was before its patches, the last one first.
    fn undo(&mut self, function: Function, pokes: &[&Poke]) {
        let Function { code, name, module, base } = function;
        let mut now = Patched::new(code);
        let mut known = Known::from([(now.of(), None)]);
        let mut end = u64::MAX;
        for poke in pokes.iter().rev() {
            // What the record says goes before the copy: there may have been patches that nobody told.
            now.put(poke.at, &poke.new);
            let of = (name.as_slice(), module.as_str(), base);
            self.state(poke.time..end, &now, of, &mut known);
            now.put(poke.at, &poke.old);
            end = poke.time.min(end);
        }
        self.state(0..end, &now, (&name, &module, base), &mut known);
    }

    /// Of code that was made: what became of it.
    fn go_on(&mut self, life: Life<'_>, name: Vec<u8>, module: &str) {
        let Life { code, times, pokes } = life;
        // What was there before the recording was so before all samples.
        let mut begin = if times.start <= 1 { 0 } else { times.start };
        let mut now = Patched::new(code);
        let mut known = self.made.remove(&name).unwrap_or_default();
        let of = (name.as_slice(), module, 0);
        for poke in pokes {
            self.state(begin..poke.time.min(times.end), &now, of, &mut known);
            now.put(poke.at, &poke.new);
            begin = poke.time;
        }
        self.state(begin..times.end, &now, of, &mut known);
        self.made.insert(name, known);
    }

    fn state(&mut self, times: Range<u64>, now: &Patched, (name, module, base): (&[u8], &str, u64), known: &mut Known) {
        if times.is_empty() {
            return;
        }
        let sum = now.of();
        // Both names are in the version's file, too.
        let size = now.code.bytes.len() + 2 * (name.len() + module.len()) + OF_VERSION;
        let version = match known.get(&sum) {
            Some(version) => *version,
            None if self.bytes + size > MOST => {
                self.left_out += 1;
                return;
            }
            None => {
                self.bytes += size;
                let (name, module) = (name.to_vec(), module.to_owned());
                self.versions.push(Version { code: now.code.clone(), name, module, base });
                let version = Some(self.versions.len() - 1);
                known.insert(sum, version);
                version
            }
        };
        if version.is_some() {
            self.states.push(State { times, version });
        }
    }

    /// Makes modules of versions that do not overlap. Returns what is mapped when, and how many versions there was no room for.
    pub(super) fn finish(self, modules: &mut ModuleTable) -> (Vec<KernelChange>, u64) {
        let Self { versions, states, mut left_out, .. } = self;
        let mut order: Vec<usize> = (0..versions.len()).collect();
        order.sort_by_key(|index| versions.get(*index).map(|version| (&version.module, version.base, version.code.at)));
        let mut mapped: Vec<Option<Mapping>> = vec![None; versions.len()];
        let of_one_module = |one: &usize, next: &usize| {
            let module = |index: &usize| versions.get(*index).map(|version| (&version.module, version.base));
            module(one) == module(next)
        };
        for of_module in order.chunk_by(of_one_module) {
            for layer in layers(of_module, &versions) {
                let versions: Vec<&Version> = layer.iter().filter_map(|index| versions.get(*index)).collect();
                let Some(first) = versions.first() else { continue };
                let runs: Vec<(u64, Vec<u8>)> =
                    versions.iter().map(|version| (version.start(), version.code.bytes.clone())).collect();
                let functions: Vec<MadeFunction<'_>> = versions.iter().map(|version| version.function()).collect();
                let (file, offsets) = made_elf(&runs, &functions);
                left_out += (runs.len() - offsets.len()) as u64;
                let module = modules.add_code(&first.module, ModuleKind::KernelModule, file);
                for ((index, version), offset) in layer.iter().zip(versions).zip(offsets) {
                    let length = version.code.bytes.len() as u64;
                    if let Some(mapped) = mapped.get_mut(*index) {
                        *mapped = Mapping::new(Avma(version.code.at), length, offset, module);
                    }
                }
            }
        }
        let mut changes: Vec<KernelChange> = Vec::new();
        for State { times, version } in states {
            let Some(mapping) = version.and_then(|version| *mapped.get(version)?) else { continue };
            let range = mapping.start..Avma(mapping.start.0.saturating_add(mapping.len));
            if times.end < u64::MAX {
                changes.push((times.end, range.clone(), None));
            }
            changes.push((times.start, range, Some(mapping)));
        }
        (changes, left_out)
    }
}

/// Versions, which ascend by address, in as few lists as there are at one address, none of which has two that overlap.
fn layers(ascending: &[usize], versions: &[Version]) -> Vec<Vec<usize>> {
    let mut layers: Vec<Vec<usize>> = Vec::new();
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for index in ascending {
        let Some(version) = versions.get(*index) else { continue };
        let free = ends.peek().filter(|Reverse((end, _))| *end <= version.code.at).map(|Reverse((_, layer))| *layer);
        let layer = match free {
            Some(layer) => {
                ends.pop();
                layer
            }
            None => {
                layers.push(Vec::new());
                layers.len() - 1
            }
        };
        ends.push(Reverse((version.code.end(), layer)));
        if let Some(layer) = layers.get_mut(layer) {
            layer.push(*index);
        }
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::kernel_epochs::KernelEpochs;

    const TEXT: u64 = 0xffff_ffff_9f00_0000;
    const MADE: u64 = 0xffff_ffff_c000_0000;

    /// A function of 16 nops at `TEXT`, and no other.
    struct OneFunction;

    impl End for OneFunction {
        fn holds(&self, at: u64) -> bool {
            (TEXT..TEXT + 16).contains(&at)
        }

        fn function(&self, at: u64) -> Option<Function> {
            let code = Code { at: TEXT, bytes: vec![0x90; 16] };
            let function = Function { code, name: b"f".to_vec(), module: "[kernel.kallsyms]".into(), base: 0 };
            self.holds(at).then_some(function)
        }
    }

    fn poke(time: u64, at: u64, old: &[u8], new: &[u8]) -> Poke {
        Poke { time, at, old: old.to_vec(), new: new.to_vec() }
    }

    fn made(time: u64, at: u64, byte: u8) -> Made {
        Made { time, code: Code { at, bytes: vec![byte; 8] } }
    }

    fn symbol(time: u64, at: u64, came: bool, name: &str) -> Symbol {
        Symbol { time, at, came, name: name.into() }
    }

    /// The byte at an address at a time, of what is not as in the end; and how many modules there are.
    fn found(made: Vec<Made>, symbols: &[Symbol], pokes: Vec<Poke>) -> (impl Fn(u64, u64) -> Option<u8>, usize) {
        let mut modules = ModuleTable::default();
        let (changes, left_out) = changes(made, symbols, pokes, &OneFunction, "[kernel.jit]").finish(&mut modules);
        assert_eq!(left_out, 0);
        let (epochs, number) = (KernelEpochs::new(changes), modules.iter().len());
        let byte = move |time, at| {
            let mapping = *epochs.space(epochs.at(time).0)?.find(Avma(at))?;
            let image = modules.get(mapping.module).recorded_image()?.ok()?;
            let svma = image.svma_of_file_offset(mapping.file_offset(Avma(at)))?;
            Some(image.bytes_at(svma, 1)?[0])
        };
        (byte, number)
    }

    #[test]
    fn patches_are_undone_and_the_same_bytes_are_one_version() {
        let to_and_fro = (0..100).flat_map(|turn| {
            let time = 10 + 20 * turn;
            [poke(time, TEXT + 4, &[0x90], &[0xc3]), poke(time + 10, TEXT + 4, &[0xc3], &[0x90])]
        });
        let (byte, modules) = found(Vec::new(), &[], to_and_fro.collect());
        assert_eq!(modules, 1);
        assert_eq!(
            [9, 10, 19, 20, 30].map(|time| byte(time, TEXT + 4)),
            [None, Some(0xc3), Some(0xc3), None, Some(0xc3)]
        );
        assert_eq!(byte(10, TEXT), Some(0x90), "the rest of the function is as it was");
        // At the edges of the function, and beyond.
        let (byte, _) =
            found(Vec::new(), &[], vec![poke(10, TEXT + 15, &[1, 2], &[0x90, 4]), poke(20, TEXT + 16, &[1], &[2])]);
        assert_eq!((byte(9, TEXT + 15), byte(10, TEXT + 15), byte(20, TEXT + 16)), (Some(1), None, None));
    }

    #[test]
    fn made_code_is_there_until_its_symbol_goes_or_other_code_comes() {
        let symbols = [symbol(10, MADE, true, "a"), symbol(20, MADE, false, "a"), symbol(30, MADE, true, "b")];
        let all = vec![made(10, MADE, 1), made(30, MADE, 2), made(40, MADE + 4, 3), made(1, MADE + 0x100, 4)];
        let (byte, modules) = found(all, &symbols, Vec::new());
        let at = [9, 10, 20, 30, 40].map(|time| byte(time, MADE));
        assert_eq!(at, [None, Some(1), None, Some(2), None]);
        assert_eq!((byte(40, MADE + 4), byte(0, MADE + 0x100), byte(50, MADE + 0x100)), (Some(3), Some(4), Some(4)));
        assert_eq!(modules, 3, "three are at one address");
    }

    #[test]
    fn a_patch_of_nothing_is_new_code() {
        let (byte, _) =
            found(Vec::new(), &[], vec![poke(10, MADE, &[], &[0xcc, 0xc3]), poke(20, MADE, &[0xcc], &[0x90])]);
        assert_eq!([9, 10, 20].map(|time| byte(time, MADE)), [None, Some(0xcc), Some(0x90)]);
    }

    #[test]
    fn much_at_one_address_takes_no_longer_than_much_elsewhere() {
        let many: Vec<Made> = (0..50_000).map(|time| made(2 + time, MADE, (time % 251) as u8)).collect();
        let pokes = (0..50_000).map(|time| poke(2 + time, MADE, &[1], &[(time % 7) as u8])).collect();
        let (byte, _) = found(many, &[], pokes);
        assert_eq!(byte(1, MADE), None);
        assert!(byte(60_000, MADE).is_some());
    }
}
