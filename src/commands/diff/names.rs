//! What modules are called where two sides are compared.

use std::collections::HashMap;

use analyzer::flow::Comparison;

/// The modules of a comparison: files are called by their base names, and versions of one program by both, `a|b`.
pub struct ModuleNames<'a> {
    /// By base name, that of both versions.
    versions: HashMap<&'a str, &'a str>,
}

impl<'a> ModuleNames<'a> {
    /// Of a comparison.
    pub fn of(comparison: &'a Comparison) -> Self {
        let names = comparison.functions.iter().map(|moved| moved.what.module.as_str());
        let versions = names.filter_map(|name| name.split_once('|').map(|(before, after)| ([before, after], name)));
        ModuleNames { versions: versions.flat_map(|(two, name)| two.map(|version| (version, name))).collect() }
    }

    /// What the module of a path is called on both sides.
    pub fn name<'b>(&self, path: &'b str) -> &'b str
    where
        'a: 'b,
    {
        let base = path.rsplit('/').next().unwrap_or(path);
        self.versions.get(base).copied().unwrap_or(base)
    }
}
