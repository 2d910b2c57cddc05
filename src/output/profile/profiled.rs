//! The binary that a profile is of.

use analyzer::flow::{Flow, ModuleFlow};
use analyzer::recording::ModuleKind;
use analyzer::{Binary, BinarySearch};
use anyhow::{anyhow, bail};

use crate::output::share;

/// A module of a flow with its file.
pub struct Profiled<'a> {
    pub flow: &'a Flow,
    /// Its index in the flow.
    pub index: usize,
    pub module: &'a ModuleFlow,
    pub binary: Binary,
}

impl<'a> Profiled<'a> {
    /// The module that a file was given for, of several the one that ran most; without any, the one that ran most of all that have a
    /// file.
    pub fn choose(flow: &'a Flow, search: &BinarySearch) -> anyhow::Result<Self> {
        let is_file = |module: &ModuleFlow| module.module.kind == ModuleKind::File;
        let files = || flow.modules.iter().enumerate().filter(|(_, module)| is_file(module) && ran(module) > 0.0);
        let most = |candidates: &mut dyn Iterator<Item = (usize, &'a ModuleFlow)>| {
            candidates.reduce(|best, next| if ran(next.1) > ran(best.1) { next } else { best })
        };
        let chosen = match search.overrides.is_empty() {
            true => most(&mut files()),
            false => most(&mut files().filter(|(_, module)| search.is_given_for(&module.module))),
        };
        let Some((index, module)) = chosen else {
            let names: Vec<&str> = files().map(|(_, module)| module.module.path.as_str()).collect();
            bail!(match names.is_empty() {
                true => "nothing that has a file was seen running".to_string(),
                false => format!("--binary: no such file was seen running; there are: {}", names.join(", ")),
            });
        };
        let path = &module.module.path;
        let binary =
            search.open(&module.module).map_err(|why| anyhow!("{path}: {why}; name the file with --binary"))?;
        Ok(Profiled { flow, index, module, binary })
    }

    /// What the profile is of, and what is not in it, in sentences.
    pub fn describe(&self) -> Vec<String> {
        let of = self.flow;
        let part = match of.branch_total() > 0.0 {
            true => share(self.module.branch_total(), of.branch_total() + of.left_out.branches) + " of all branches",
            false => share(ran(self.module), of.modules.iter().map(ran).sum()) + " of what ran",
        };
        let mut lines = vec![format!("profile of {}: {part}", self.binary.file.display())];
        let left_out = [
            ("branches that could not be placed", of.left_out.branches, of.branch_total()),
            ("streams that the code cannot have run along", of.left_out.streams, of.range_total()),
            ("samples that could not be placed", of.left_out.samples, of.sample_total()),
        ];
        for (what, count, placed) in left_out.into_iter().filter(|(_, count, _)| *count > 0.0) {
            lines.push(format!("left out: {what} ({} of all)", share(count, count + placed)));
        }
        lines
    }
}

/// How much of it was seen: of its ranges, or where it has none, its samples.
fn ran(module: &ModuleFlow) -> f64 {
    let ranges = module.range_total();
    if ranges > 0.0 { ranges } else { module.sample_total() }
}
