//! Where in the source instructions are: keys of a mix that need debug information.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::Analysis;
use crate::CountedModule;
use crate::address::Svma;
use crate::lines::{FileId, Position, SourceIndex, short_names};
use crate::mix::Dimension;
use crate::mix::values::NONE;
use crate::recording::ModuleId;

/// Value of keys of the source where no debug information names any.
pub const NO_SOURCE: &str = "[no source]";

/// The source of all modules that ran.
#[derive(Default)]
pub(super) struct Sources {
    of_modules: HashMap<ModuleId, Arc<SourceIndex>>,
    /// What files are called, by path: as much of its end as no other file has.
    names: BTreeMap<String, String>,
}

impl Sources {
    /// Reads the debug information of what ran.
    pub fn read(analysis: &Analysis, threads: usize) -> Self {
        let mut of_modules = HashMap::new();
        let mut paths = BTreeSet::new();
        for module in &analysis.counted {
            let Some(index) = module.source(threads) else { continue };
            let named = index.spans().iter().filter_map(|span| index.file(span.position.file));
            paths.extend(named.map(str::to_owned));
            of_modules.insert(module.counts.module, index);
        }
        Self { of_modules, names: short_names(&paths) }
    }

    /// The source of one module.
    pub fn of(&self, module: &CountedModule) -> SourceOf<'_> {
        SourceOf { index: self.of_modules.get(&module.counts.module).map(|source| &**source), names: &self.names }
    }

    /// What was damaged or missing, each once, in words.
    pub fn notes(&self) -> Vec<String> {
        let notes: BTreeSet<&String> = self.of_modules.values().flat_map(|source| source.notes()).collect();
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
    /// Debug information says that it was not inlined.
    NotInlined,
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
        let line = |at: Position| match index.file(at.file) {
            Some(_) if at.line > 0 => Place::Line(at.file, at.line),
            _ => Place::None,
        };
        match key {
            Dimension::Line => line(span.position),
            Dimension::InlinedAt => index.frames(span).nth(1).map_or(Place::NotInlined, |(_, call)| line(call)),
            Dimension::File if has_name => Place::File(span.position.file),
            Dimension::SourceFunction => Place::Function(index.scope(span.scope).function),
            _ => Place::None,
        }
    }

    /// The value of a place: `loop.c:12`, `loop.c`, `matmul(int)`.
    pub fn value(&self, place: Place, address: Svma) -> String {
        let value = self.index.and_then(|index| match place {
            Place::None => None,
            Place::NotInlined => Some(NONE.to_owned()),
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
