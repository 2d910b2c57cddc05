//! The binary that a profile is of.

use analyzer::flow::{Flow, ModuleFlow};
use analyzer::recording::ModuleKind;
use analyzer::{Binary, BinarySearch};
use anyhow::bail;

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
    /// The module that ran most of those that have a file; where files were given, of those that they are the files of.
    pub fn choose(flow: &'a Flow, search: &BinarySearch) -> anyhow::Result<Self> {
        let is_file = |module: &ModuleFlow| module.module.kind == ModuleKind::File && ran(module) > 0.0;
        let mut files: Vec<(usize, &ModuleFlow)> =
            flow.modules.iter().enumerate().filter(|(_, module)| is_file(module)).collect();
        files.sort_by(|a, b| ran(b.1).total_cmp(&ran(a.1)));
        let is_given = !search.overrides.is_empty();
        let candidates = || files.iter().filter(|(_, module)| !is_given || search.is_given_for(&module.module));
        if candidates().next().is_none() {
            let names: Vec<&str> = files.iter().map(|(_, module)| module.module.path.as_str()).collect();
            bail!(match names.is_empty() {
                true => "nothing that has a file was seen running".to_string(),
                false => format!("--binary: no such file was seen running; there are: {}", names.join(", ")),
            });
        }
        let mut refused = Vec::new();
        // Several builds can be of one name: the file is of one of them.
        for &(index, module) in candidates().take(if is_given { usize::MAX } else { 1 }) {
            match search.open(&module.module) {
                Ok(binary) => return Ok(Profiled { flow, index, module, binary }),
                Err(why) => refused.push(format!("{}: {why}", module.module.path)),
            }
        }
        bail!("{}; name the file with --binary", refused.join("; "))
    }

    /// What the profile is of, and what is not in it, in sentences.
    pub fn describe(&self) -> Vec<String> {
        let of = self.flow;
        let part = match of.branch_total() > 0.0 {
            true => share(self.module.branch_total(), of.branch_total() + of.left_out.branches) + " of all branches",
            false => share(ran(self.module), of.modules.iter().map(ran).sum()) + " of what ran",
        };
        let mut lines = vec![format!("profile of {}: {part}", self.binary.file.display())];
        lines.extend(left_out(of));
        lines
    }
}

/// What is in no module's flow, in sentences.
pub fn left_out(flow: &Flow) -> Vec<String> {
    let parts = [
        ("branches that are of no code of a file", flow.left_out.branches, flow.branch_total()),
        ("streams that no code of a file can have run along", flow.left_out.streams, flow.range_total()),
        ("samples that are in no code of a file", flow.left_out.samples, flow.sample_total()),
    ];
    let some = parts.into_iter().filter(|(_, out, _)| *out > 0.0);
    some.map(|(what, out, kept)| format!("left out: {what} ({} of all)", share(out, out + kept))).collect()
}

/// How much of it was seen: of its ranges, or where it has none, its samples.
fn ran(module: &ModuleFlow) -> f64 {
    let ranges = module.range_total();
    if ranges > 0.0 { ranges } else { module.sample_total() }
}
