//! The code that was counted: which file it is in, and what was seen of it.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use formats::file_identity::FileIdentity;
use serde::{Deserialize, Serialize};

use super::ModuleFindings;
use crate::CountedModule;
use crate::binaries::{Binary, BinarySearch};
use crate::code::{BlockMap, KeptFunctions, Observed};
use crate::counting::{AnalysedModule, Code, ModuleCounts, UnreadBlock};
use crate::recording::{Module, ModuleTable};

/// The code of a module.
#[derive(Serialize, Deserialize)]
pub(super) enum CodeFindings<'a> {
    Read {
        file: Box<FoundFile<'a>>,
        functions: KeptFunctions<'a>,
        observed: Cow<'a, Observed>,
        blocks: Cow<'a, BlockMap>,
    },
    Unread {
        why: Cow<'a, str>,
        blocks: Cow<'a, [UnreadBlock]>,
    },
}

/// What the search for a module's file found.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct FoundFile<'a> {
    file: Cow<'a, Path>,
    /// `None` of code that the recording has.
    image: Option<FileIdentity>,
    debug_file: Option<FileIdentity>,
    /// Of a copy of the kernel: what else it is made of.
    beside: Cow<'a, [FileIdentity]>,
    symfs: Option<Cow<'a, Path>>,
    other_build: Option<Cow<'a, str>>,
}

impl<'a> FoundFile<'a> {
    /// `None` of what is in no file.
    fn of(binary: &'a Binary) -> Option<Self> {
        let debug_file = match &binary.debug_file {
            Some(debug_file) => Some(debug_file.image.identity()?),
            None => None,
        };
        Some(FoundFile {
            file: Cow::Borrowed(&binary.file),
            image: if binary.is_recorded { None } else { Some(binary.image.identity()?) },
            debug_file,
            beside: Cow::Borrowed(&binary.beside),
            symfs: binary.symfs.as_deref().map(Cow::Borrowed),
            other_build: binary.other_build.as_deref().map(Cow::Borrowed),
        })
    }

    /// The same. `None` also where a change after that time could not be told.
    pub(super) fn of_files_before(binary: &'a Binary, began: SystemTime) -> Option<Self> {
        Self::of(binary).filter(|found| {
            let files = [&found.image, &found.debug_file].into_iter().flatten();
            files.chain(&*found.beside).all(|file| file.tells_changes_after(began))
        })
    }

    /// The binary, if a search finds the same once more.
    pub(super) fn again(&self, module: &Module, search: &BinarySearch) -> Option<Binary> {
        let binary = search.open(module).ok()?;
        (FoundFile::of(&binary)? == *self).then_some(binary)
    }
}

/// Whether a search does not find the code of a module, for the same reason as before.
pub(super) fn is_missed_again(why: &str, module: &Module, search: &BinarySearch) -> bool {
    search.open(module).is_err_and(|error| error.to_string() == why)
}

impl<'a> ModuleFindings<'a> {
    /// `None` where a change of the module's file after that time could not be told.
    pub(super) fn of(module: &'a CountedModule, began: SystemTime) -> Option<Self> {
        let CountedModule { counts, blocks, .. } = module;
        let code = match &counts.code {
            Code::Read(code) => CodeFindings::Read {
                file: FoundFile::of_files_before(&code.binary, began).map(Box::new)?,
                functions: code.functions.kept(),
                observed: Cow::Borrowed(&code.observed),
                blocks: Cow::Borrowed(&code.blocks),
            },
            Code::Unread { why, blocks, .. } => {
                CodeFindings::Unread { why: Cow::Borrowed(why), blocks: Cow::Borrowed(blocks) }
            }
        };
        Some(ModuleFindings {
            module: counts.module,
            code,
            sums: Cow::Borrowed(&counts.sums),
            biased: Cow::Borrowed(&counts.biased),
            broken: counts.broken,
            strange_branches: counts.strange_branches,
            blocks: Cow::Borrowed(blocks),
        })
    }

    /// The module with its code, without its replicates, if the search finds what it found before. `is_rest`: the module was read, and these are the addresses that
    /// are no code of it.
    pub(super) fn with_code(
        self,
        is_rest: bool,
        modules: &ModuleTable,
        search: &BinarySearch,
    ) -> Option<CountedModule> {
        let ModuleFindings { module, code, sums, biased, broken, strange_branches, blocks } = self;
        let code = match code {
            CodeFindings::Read { file, functions, observed, blocks } => {
                let binary = file.again(modules.get(module), search)?;
                let (observed, blocks) = (observed.into_owned(), blocks.into_owned());
                Code::Read(Arc::new(AnalysedModule::of_kept(binary, functions, observed, blocks)?))
            }
            CodeFindings::Unread { why, blocks } => {
                if !is_rest && !is_missed_again(&why, modules.get(module), search) {
                    return None;
                }
                let functions = Arc::new(search.known_functions(modules.get(module)));
                Code::Unread { why: why.into_owned(), blocks: blocks.into_owned(), functions }
            }
        };
        let counts = ModuleCounts {
            module,
            code,
            sums: sums.into_owned(),
            sliced: Vec::new(),
            by_start: Vec::new(),
            biased: biased.into_owned(),
            broken,
            strange_branches,
        };
        let counted = CountedModule { counts, blocks: blocks.into_owned(), sampled: Vec::new() };
        counted.fits_its_code().then_some(counted)
    }
}
