//! What modules and functions are called where two sides are compared.

use std::collections::{BTreeSet, HashMap};

use analyzer::flow::Comparison;

/// The names of a comparison. Files are called by their base names, and versions of one program by both, `a|b`; functions that compilers named
/// differently are called without the suffixes.
pub struct Names<'a> {
    /// By base name, that of both versions.
    versions: HashMap<&'a str, &'a str>,
    /// Of each side, by module and name.
    functions: [HashMap<(&'a str, &'a str), &'a str>; 2],
    /// The same by name alone, where no other function has it.
    by_name: [HashMap<&'a str, &'a str>; 2],
}

impl<'a> Names<'a> {
    /// Of a comparison.
    pub fn of(comparison: &'a Comparison) -> Self {
        let names = comparison.functions.iter().map(|moved| moved.what.module.as_str());
        let versions = names.filter_map(|name| name.split_once('|').map(|(before, after)| ([before, after], name)));
        let others: BTreeSet<&str> =
            comparison.functions.iter().filter_map(|moved| moved.what.function.as_deref()).collect();
        let (mut functions, mut by_name) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
        for (joined, names) in &comparison.joined {
            let Some(base) = joined.function.as_deref() else { continue };
            for (side, names) in names.iter().enumerate() {
                functions[side].extend(names.iter().map(|name| ((joined.module.as_str(), name.as_str()), base)));
                let alone = names.iter().filter(|name| *name == base || !others.contains(name.as_str()));
                by_name[side].extend(alone.map(|name| (name.as_str(), base)));
            }
        }
        Names {
            versions: versions.flat_map(|(two, name)| two.map(|version| (version, name))).collect(),
            functions: functions.map(|names| names.into_iter().collect()),
            by_name: by_name.map(|names| names.into_iter().collect()),
        }
    }

    /// What the module of a path is called on both sides.
    pub fn module<'b>(&self, path: &'b str) -> &'b str
    where
        'a: 'b,
    {
        let base = path.rsplit('/').next().unwrap_or(path);
        self.versions.get(base).copied().unwrap_or(base)
    }

    /// What a function of a side (0 is before) is called on both; without the path of its module, if the name tells which one it is.
    pub fn function<'b>(&self, side: usize, path: Option<&str>, name: &'b str) -> &'b str
    where
        'a: 'b,
    {
        let joined = match path {
            Some(path) => self.functions[side].get(&(self.module(path), name)),
            None => self.by_name[side].get(name),
        };
        joined.copied().unwrap_or(name)
    }
}
