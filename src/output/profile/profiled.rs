//! The binary that a profile is of.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use analyzer::BinarySearch;
use analyzer::counting::AnalysedModule;
use analyzer::flow::{AnalysedFlow, Flow, ModuleFlow};
use analyzer::recording::ModuleKind;
use anyhow::bail;

use crate::output::profile::left_out;
use crate::output::share;

/// A module of a flow with its file.
pub struct Profiled<'a> {
    pub flow: &'a Flow,
    /// Its index in the flow.
    pub index: usize,
    pub module: &'a ModuleFlow,
    pub code: Arc<AnalysedModule>,
    /// The parts of the module that do not fit the file, in sentences.
    misfits: Vec<String>,
}

impl<'a> Profiled<'a> {
    /// The module that ran most of those that have a file; where files were given, of those that they are the files of. The kernel is chosen
    /// where its file is given and no program's is, a module of it where its own is.
    pub fn choose(analysed: &'a AnalysedFlow, search: &BinarySearch) -> anyhow::Result<Self> {
        let flow = analysed.flow();
        let is_kernel = |module: &ModuleFlow| module.module.kind.is_kernel();
        // Whoever names a module beside the kernel asks for the module's.
        let rank = |module: &ModuleFlow| (is_kernel(module), module.module.kind == ModuleKind::Kernel);
        let has_file = |module: &ModuleFlow| match module.module.kind {
            ModuleKind::File => true,
            ModuleKind::Kernel | ModuleKind::KernelModule => {
                !module.module.is_version && search.is_given_for(&module.module)
            }
            _ => false,
        };
        let mut files: Vec<(usize, &ModuleFlow)> = flow
            .modules
            .iter()
            .enumerate()
            .filter(|(_, module)| has_file(module) && ran(module) != (0.0, 0.0))
            .collect();
        let order = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
        files.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then(order(ran(b), ran(a))));
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
            // Who gave a program's file does not ask for the kernel's profile.
            if is_kernel(module) && !refused.is_empty() {
                break;
            }
            match analysed.code(index, search) {
                Ok(code) => {
                    let mut misfits = Vec::from_iter(analysed.other_build(index, &code));
                    misfits.extend(code.misfit(module, !module.ranges.is_empty()));
                    return Ok(Profiled { flow, index, module, code, misfits });
                }
                Err(why) => {
                    let why = analysed.why_unread(index, why, search);
                    refused.push(format!("{}: {why}", module.module.path));
                }
            }
        }
        bail!("{}; name the file with --binary", refused.join("; "))
    }

    /// What the profile is of, and what is not in it, in sentences.
    pub fn describe(&self) -> Vec<String> {
        let of = self.flow;
        // What branch records do not see, as bursts do not see the kernel, is counted by samples.
        let part = match self.module.branch_total() > 0.0 {
            true => share(self.module.branch_total(), of.branch_total() + of.left_out.branches) + " of all branches",
            false => share(self.module.sample_total(), of.sample_total() + of.left_out.samples) + " of all samples",
        };
        let mut lines = vec![format!("profile of {}: {part}", self.code.binary.file.display())];
        let name = |module: &ModuleFlow| Path::new(&module.module.path).file_name().map(OsStr::to_owned);
        let others = of.modules.iter().enumerate().filter(|(index, _)| *index != self.index).map(|(_, module)| module);
        let builds: Vec<&ModuleFlow> =
            others.filter(|module| name(module) == name(self.module) && ran(module) != (0.0, 0.0)).collect();
        if !builds.is_empty() {
            let size = |module: &ModuleFlow| if of.range_total() > 0.0 { ran(module).0 } else { ran(module).1 };
            let others: f64 = builds.iter().copied().map(size).sum();
            let part = share(others, others + size(self.module));
            lines.push(format!("left out: {} other builds of that name, {part} of what ran of it", builds.len()));
        }
        lines.extend(self.misfits.clone());
        lines.extend(left_out(of));
        lines
    }
}

/// How much of it was seen: of its ranges, and of its samples.
fn ran(module: &ModuleFlow) -> (f64, f64) {
    (module.range_total(), module.sample_total())
}
