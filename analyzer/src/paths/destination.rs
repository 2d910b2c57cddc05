//! Places that paths lead to, and what happens to branches at their end.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use perfdata::BranchFlags;

use crate::address::Svma;
use crate::code::demangle;
use crate::counting::{AnalysedModule, Code};
use crate::mix::{Dimension, Filter};
use crate::recording::base_name;
use crate::walks::BlockKey;
use crate::{Analysis, CountedModule};

/// What the branch records say happened to a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchEvent {
    /// It went another way than was predicted.
    Mispredicted,
    /// It is the abort of a transaction.
    Abort,
}

impl BranchEvent {
    pub(super) fn is_of(self, flags: BranchFlags) -> bool {
        match self {
            Self::Mispredicted => flags.mispredicted(),
            Self::Abort => flags.abort(),
        }
    }
}

/// A place in code, or the branches to which something happened.
///
/// Example: `main` and `std::sort*` are functions, where they begin; `main+0x24`, `libc.so.6+0x9d2f0` and `0x401016` are instructions, and
/// `loop.c:12` is a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    text: String,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// An instruction of a module, or of the only one that has it.
    Address(Svma),
    /// So many bytes after the begin of a function or of a module's addresses.
    Offset(String, u64),
    Line(String, u32),
    Function(String),
    Event(BranchEvent),
}

/// Why there is no such place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDestination {
    /// What was asked for, and what is wrong with it.
    pub why: String,
    /// If it is the name of a function: the functions that were seen.
    pub functions: Vec<String>,
}

impl fmt::Display for NoDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Destination {
    /// What a text says; a name that has none of the other forms is that of a function.
    pub fn read(text: &str) -> Self {
        let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let address = || text.strip_prefix("0x").and_then(hexadecimal);
        let offset = || text.rsplit_once("+0x").and_then(|(base, digits)| Some((base, hexadecimal(digits)?)));
        let line = || {
            let (file, line) = text.rsplit_once(':')?;
            Some((file, line.parse().ok().filter(|_| !file.is_empty() && !file.ends_with(':'))?))
        };
        let what = if let Some(address) = address() {
            What::Address(Svma(address))
        } else if let Some((base, offset)) = offset() {
            What::Offset(base.to_owned(), offset)
        } else if let Some((file, line)) = line() {
            What::Line(file.to_owned(), line)
        } else {
            What::Function(text.to_owned())
        };
        Destination { text: text.to_owned(), what }
    }

    /// All branches to which that happened: each is the last of the branches that lead there.
    pub fn of_event(event: BranchEvent) -> Self {
        let text = match event {
            BranchEvent::Mispredicted => "a mispredicted branch",
            BranchEvent::Abort => "the abort of a transaction",
        };
        Destination { text: text.to_owned(), what: What::Event(event) }
    }

    /// What has to happen to a branch, if it is no place.
    pub(super) fn event(&self) -> Option<BranchEvent> {
        if let What::Event(event) = self.what { Some(event) } else { None }
    }

    /// As it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The blocks that it stands for, of those that ran. Threads read debug information.
    pub(super) fn blocks(&self, analysis: &Analysis, threads: usize) -> Result<HashSet<BlockKey>, NoDestination> {
        let none = |why: String| NoDestination { why, functions: Vec::new() };
        let text = &self.text;
        let blocks = match &self.what {
            What::Event(_) => return Ok(HashSet::new()),
            What::Address(at) => {
                let found = at_address(analysis, *at, |_| true);
                let modules: BTreeSet<_> = found.iter().map(|key| key.module).collect();
                if modules.len() > 1 {
                    let name = |module: &_| base_name(&analysis.modules.get(*module).path);
                    let names: Vec<String> = modules.iter().map(name).collect();
                    let (all, first) = (names.join(" and "), names.first().cloned().unwrap_or_default());
                    return Err(none(format!("{text} is in {all}: say which, as {first}+{text}")));
                }
                found
            }
            What::Offset(base, offset) => {
                let of_module = at_address(analysis, Svma(*offset), |path| path == base || base_name(path) == *base);
                let of_functions = || {
                    let (starts, _) = functions(analysis, base);
                    let at = |(module, start): &(usize, Svma)| {
                        let at = Svma(start.0.checked_add(*offset)?);
                        let counted = analysis.counted.get(*module)?;
                        let functions = &read_code(counted)?.functions;
                        // After its end another function begins, or none.
                        let key =
                            block_at(analysis, *module, at).filter(|_| functions.at(at) == functions.at(*start))?;
                        counted.blocks.binary_search_by_key(&key.index, |block| block.index).is_ok().then_some(key)
                    };
                    starts.iter().filter_map(at).collect()
                };
                if of_module.is_empty() { of_functions() } else { of_module }
            }
            What::Line(file, line) => {
                let found = of_line(analysis, file, *line, threads);
                if let Err(without_lines) = found {
                    let why = if without_lines { ": no line of the source is known (build with -g)" } else { "" };
                    return Err(none(format!("no code that ran is of line {text}{why}")));
                }
                found.unwrap_or_default()
            }
            What::Function(name) => {
                let (starts, existing) = functions(analysis, name);
                if starts.is_empty() {
                    return Err(NoDestination { why: format!("no function {name:?} ran"), functions: existing });
                }
                starts.iter().filter_map(|(module, start)| block_at(analysis, *module, *start)).collect()
            }
        };
        if blocks.is_empty() { Err(none(format!("no code that ran is at {text}"))) } else { Ok(blocks) }
    }
}

fn read_code(module: &CountedModule) -> Option<&AnalysedModule> {
    match &module.counts.code {
        Code::Read(code) => Some(code),
        Code::Unread { .. } => None,
    }
}

fn block_at(analysis: &Analysis, module: usize, at: Svma) -> Option<BlockKey> {
    let module = analysis.counted.get(module)?;
    let index = read_code(module)?.blocks.block_at(at)?;
    Some(BlockKey { module: module.counts.module, index: index as u32 })
}

/// The blocks around an address that ran, in all modules with such a path.
fn at_address(analysis: &Analysis, at: Svma, is_wanted: impl Fn(&str) -> bool) -> HashSet<BlockKey> {
    let ran = |(counted, module): (usize, &CountedModule)| {
        is_wanted(&analysis.modules.get(module.counts.module).path).then_some(())?;
        let key = block_at(analysis, counted, at)?;
        module.blocks.binary_search_by_key(&key.index, |block| block.index).is_ok().then_some(key)
    };
    analysis.counted.iter().enumerate().filter_map(ran).collect()
}

/// Where functions of that name begin, by index of the module; the names of all that ran.
fn functions(analysis: &Analysis, name: &str) -> (Vec<(usize, Svma)>, Vec<String>) {
    let mut named: Vec<(usize, Svma, String)> = Vec::new();
    for (index, module) in analysis.counted.iter().enumerate() {
        let Some(code) = read_code(module) else { continue };
        let symbols = module.blocks.iter().filter_map(|block| module.function_symbol(block.index));
        for symbol in symbols.collect::<BTreeSet<Svma>>() {
            if let Some(id) = code.functions.at(symbol) {
                named.push((index, symbol, demangle(&code.functions.name(id))));
            }
        }
    }
    let existing: BTreeSet<String> = named.iter().map(|(.., name)| name.clone()).collect();
    let mut filter = Filter::any_of(Dimension::Function, &[name.to_owned()]);
    filter.resolve(&existing);
    let found = named.into_iter().filter(|(.., name)| filter.keeps(name)).map(|(index, start, _)| (index, start));
    (found.collect(), existing.into_iter().collect())
}

/// The blocks that hold the first instructions of a line; the error says whether no line is known at all.
fn of_line(analysis: &Analysis, file: &str, line: u32, threads: usize) -> Result<HashSet<BlockKey>, bool> {
    let ends_with = |path: &str| path == file || path.strip_suffix(file).is_some_and(|before| before.ends_with('/'));
    let (mut found, mut without_lines) = (HashSet::new(), true);
    for (index, module) in analysis.counted.iter().enumerate() {
        let Some(source) = module.source(threads) else { continue };
        without_lines &= source.spans().is_empty();
        let is_of = |span: &&crate::lines::Span| {
            span.position.line == line && source.file(span.position.file).is_some_and(ends_with)
        };
        let mut last_end = None;
        for span in source.spans().iter().filter(is_of) {
            // Code of one line that is cut in pieces is entered once.
            if last_end != Some(span.start) {
                found.extend(block_at(analysis, index, span.start));
            }
            last_end = Some(span.end);
        }
    }
    if found.is_empty() { Err(without_lines) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_they_are() {
        let what = |text: &str| Destination::read(text).what;
        assert_eq!(what("0x401016"), What::Address(Svma(0x40_1016)));
        assert_eq!(what("main+0x24"), What::Offset("main".into(), 0x24));
        assert_eq!(what("libc.so.6+0x9d2f0"), What::Offset("libc.so.6".into(), 0x9d2f0));
        assert_eq!(what("src/loop.c:12"), What::Line("src/loop.c".into(), 12));
        for function in ["main", "std::sort*", "a::b", "0xyz", "operator+", "f:", "::12"] {
            assert_eq!(what(function), What::Function(function.into()), "{function}");
        }
    }
}
