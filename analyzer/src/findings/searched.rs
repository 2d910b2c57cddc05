//! Where the code of an analysis was found, to be kept beside a report that was made of it.

use std::borrow::Cow;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::are_rests;
use super::code::{FoundFile, is_missed_again};
use crate::Analysis;
use crate::binaries::BinarySearch;
use crate::counting::Code;
use crate::lines::{has_package, is_in_more_files};
use crate::parallel::in_parallel;
use crate::recording::{ModuleId, ModuleKind, ModuleTable};

/// What the search for the files of all modules found: a report that shows code, and nothing that is in other files, is what it was as long
/// as that is found.
#[derive(Serialize, Deserialize)]
pub struct Searched<'a> {
    modules: Cow<'a, ModuleTable>,
    found: Vec<(ModuleId, Found<'a>)>,
}

#[derive(Serialize, Deserialize)]
enum Found<'a> {
    File(Box<FoundFile<'a>>),
    /// None, and why.
    Nothing(Cow<'a, str>),
}

impl<'a> Searched<'a> {
    /// Of an analysis that began at that time. `None` where a later change of a file could not be told, as for
    /// [`Findings`](super::Findings), and where names or lines come from more files than are compared: code of the kernel, and debug
    /// information that is split or was moved by `dwz`.
    pub fn of(analysis: &'a Analysis, began: SystemTime) -> Option<Self> {
        let mut found: Vec<(ModuleId, Found<'a>)> = Vec::new();
        let is_rest = are_rests(analysis.counted.iter().map(|module| module.counts.module));
        for (module, is_rest) in analysis.counted.iter().zip(is_rest) {
            let id = module.counts.module;
            match &module.counts.code {
                Code::Read(code) => {
                    let kind = analysis.modules.get(id).kind;
                    let is_of_kernel = matches!(kind, ModuleKind::Kernel | ModuleKind::KernelModule);
                    if is_of_kernel || has_package(&code.binary) || is_in_more_files(&code.binary) {
                        return None;
                    }
                    found.push((id, Found::File(Box::new(FoundFile::of_files_before(&code.binary, began)?))));
                }
                // Their names are from a list that is not compared.
                Code::Unread { functions, .. }
                    if !functions.is_empty() && analysis.modules.get(id).functions.is_empty() =>
                {
                    return None;
                }
                Code::Unread { .. } if is_rest => {}
                Code::Unread { why, .. } => found.push((id, Found::Nothing(Cow::Borrowed(why)))),
            }
        }
        Some(Searched { modules: Cow::Borrowed(&analysis.modules), found })
    }

    /// Whether a search finds the same.
    pub fn is_found_again(self, search: &BinarySearch, threads: usize) -> bool {
        let Searched { modules, found } = self;
        let known = modules.iter().len();
        if found.iter().any(|(module, _)| module.0 as usize >= known) {
            return false;
        }
        let search = search.among(modules.iter().map(|(_, module)| module));
        let is_same = |(module, found): (ModuleId, Found<'_>)| match found {
            Found::File(file) => file.again(modules.get(module), &search).is_some_and(|binary| !has_package(&binary)),
            Found::Nothing(why) => is_missed_again(&why, modules.get(module), &search),
        };
        in_parallel(found, threads, is_same).into_iter().all(|is_same| is_same)
    }
}
