//! Where in the source instructions are: keys of a mix that need debug information.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Analysis;
use crate::CountedModule;
use crate::address::Svma;
use crate::counting::Code;
use crate::lines::{FileId, SourceIndex, joined};
use crate::mix::Dimension;
use crate::recording::ModuleId;

/// Value of keys of the source where no debug information names any.
pub const NO_SOURCE: &str = "[no source]";

/// The source of all modules that ran.
#[derive(Default)]
pub(super) struct Sources {
    of_modules: HashMap<ModuleId, SourceIndex>,
    /// What files are called, by path: as much of its end as no other file has.
    names: BTreeMap<String, String>,
}

impl Sources {
    /// Reads the debug information of what ran.
    pub fn read(analysis: &Analysis, threads: usize) -> Self {
        let mut of_modules = HashMap::new();
        let mut paths = BTreeSet::new();
        for module in &analysis.counted {
            let Code::Read(code) = &module.counts.code else { continue };
            let ran = joined(module.blocks.iter().map(|block| block.start..block.end));
            let index = SourceIndex::read(&code.binary, &ran, threads.max(1));
            let named = index.spans().iter().filter_map(|span| index.file(span.position.file));
            paths.extend(named.map(str::to_owned));
            of_modules.insert(module.counts.module, index);
        }
        Self { of_modules, names: short_names(&paths) }
    }

    /// The source of one module.
    pub fn of(&self, module: &CountedModule) -> SourceOf<'_> {
        SourceOf { index: self.of_modules.get(&module.counts.module), names: &self.names }
    }

    /// What was damaged or missing, each once, in words.
    pub fn notes(&self) -> Vec<String> {
        let notes: BTreeSet<&String> = self.of_modules.values().flat_map(SourceIndex::notes).collect();
        notes.into_iter().cloned().collect()
    }
}

/// The source of one module.
pub(super) struct SourceOf<'a> {
    index: Option<&'a SourceIndex>,
    names: &'a BTreeMap<String, String>,
}

/// What decides the value of a key of the source, within a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    None,
    Line(FileId, u32),
    File(FileId),
    /// Index of a function of the source.
    Function(u32),
}

impl SourceOf<'_> {
    /// Of the instruction at an address.
    pub fn place(&self, key: Dimension, address: Svma) -> Place {
        let Some((index, span)) = self.index.and_then(|index| Some((index, index.at(address)?))) else {
            return Place::None;
        };
        let has_name = index.file(span.position.file).is_some();
        match key {
            Dimension::Line if has_name && span.position.line > 0 => {
                Place::Line(span.position.file, span.position.line)
            }
            Dimension::File if has_name => Place::File(span.position.file),
            Dimension::SourceFunction => Place::Function(index.scope(span.scope).function),
            _ => Place::None,
        }
    }

    /// The value of a place: `loop.c:12`, `loop.c`, `matmul(int)`.
    pub fn value(&self, place: Place, address: Svma) -> String {
        let value = self.index.and_then(|index| match place {
            Place::None => None,
            Place::Line(file, line) => Some(format!("{}:{line}", self.name(index, file)?)),
            Place::File(file) => self.name(index, file).map(str::to_owned),
            Place::Function(_) => index.function(index.scope(index.at(address)?.scope)).demangled(),
        });
        value.unwrap_or_else(|| NO_SOURCE.to_owned())
    }

    fn name(&self, index: &SourceIndex, file: FileId) -> Option<&str> {
        self.names.get(index.file(file)?).map(String::as_str)
    }
}

/// As much of the end of each path as no other has: `loop.c`, or `a/loop.c` and `b/loop.c`.
fn short_names(paths: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut left: Vec<&String> = paths.iter().collect();
    let mut parts = 1;
    while !left.is_empty() {
        let mut ends: HashMap<&str, u32> = HashMap::new();
        left.iter().for_each(|path| *ends.entry(end(path, parts)).or_default() += 1);
        left.retain(|path| {
            let own = end(path, parts);
            // The whole path is its own, even where another one ends with it.
            let is_decided = ends[own] == 1 || own.len() == path.len();
            if is_decided {
                names.insert((*path).clone(), own.to_owned());
            }
            !is_decided
        });
        parts += 1;
    }
    names
}

/// The last so many parts of a path; all of it where it has no more.
fn end(path: &str, parts: usize) -> &str {
    let slashes = path.rmatch_indices('/').map(|(at, _)| at);
    slashes.take(parts).nth(parts - 1).map_or(path, |at| path.get(at + 1..).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let short = short_names(&paths.iter().map(|path| (*path).to_owned()).collect());
        paths.iter().map(|path| short[*path].clone()).collect()
    }

    #[test]
    fn files_have_as_short_names_as_tell_them_apart() {
        assert_eq!(names(&["/src/loop.c", "/src/main.c"]), ["loop.c", "main.c"]);
        assert_eq!(names(&["/src/a/loop.c", "/src/b/loop.c", "/x.c"]), ["a/loop.c", "b/loop.c", "x.c"]);
        // One that is the end of another.
        assert_eq!(names(&["a/loop.c", "/src/a/loop.c"]), ["a/loop.c", "src/a/loop.c"]);
        assert_eq!(names(&["loop.c", "/loop.c"]), ["loop.c", "/loop.c"]);
        assert_eq!(names(&["", "/"]), ["", "/"]);
        assert_eq!(names(&[]), Vec::<String>::new());
    }
}
