//! Files of modules that were put together with a recording, on the machine where it was made.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::debug_file::DebugFile;
use super::{Binary, BinarySearch, Elsewhere, NoCode, open_with_code, other_build};
use crate::build_id::BuildId;
use crate::code::{Image, ImageError};
use crate::recording::{Module, ModuleKind};

/// What the search for the files of the modules found on that machine, and where they are on this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedFiles {
    /// The folder that stands for the `/` of that machine.
    root: PathBuf,
    modules: BTreeMap<(String, Option<BuildId>), Result<PackedFile, String>>,
    /// Where lists of functions are, of modules without a file.
    names: BTreeMap<(String, Option<BuildId>), PathBuf>,
}

/// The file of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFile {
    /// Where it was found on that machine: its name in what is said of it.
    pub file: PathBuf,
    /// Where it is now.
    pub place: PathBuf,
    /// Where its separate debug file is now, if it has one.
    pub debug_file: Option<PathBuf>,
    /// That it is of another build than was recorded, as a sentence.
    pub other_build: Option<String>,
}

impl PackedFiles {
    /// None, below this folder.
    pub fn below(root: PathBuf) -> Self {
        PackedFiles { root, ..Self::default() }
    }

    /// The module of this recorded path and build id has this file, or none, for a reason that is said in one sentence.
    pub fn insert(&mut self, path: String, build_id: Option<BuildId>, found: Result<PackedFile, String>) {
        self.modules.insert((path, build_id), found);
    }

    /// The functions of the module of this recorded path and build id are in this list (`kallsyms`).
    pub fn insert_names(&mut self, path: String, build_id: Option<BuildId>, list: PathBuf) {
        self.names.insert((path, build_id), list);
    }

    /// Where a list of a module's functions is.
    pub(super) fn names(&self, module: &Module) -> Option<&Path> {
        self.names.get(&(module.path.clone(), module.build_id.clone())).map(PathBuf::as_path)
    }

    /// `None` if nobody looked for the module's file.
    fn of(&self, module: &Module) -> Option<Result<&PackedFile, &str>> {
        let found = self.modules.get(&(module.path.clone(), module.build_id.clone()))?;
        Some(found.as_ref().map_err(String::as_str))
    }

    fn binary(&self, found: &PackedFile, module: &Module) -> Result<Binary, NoCode> {
        let image = open_with_code(&found.place, module.kind).map_err(|why| NoCode::Refused(vec![why]))?;
        // That the user named it all the same is stated. A copy of the kernel's memory has no build id: it was the recorded one when it was packed.
        let is_copy = module.kind.is_kernel() && image.is_core();
        let has_to_be_of_build = found.other_build.is_none() && !is_copy;
        let why = if has_to_be_of_build { other_build(&found.file, &image, module) } else { None };
        if let Some(why) = why {
            return Err(NoCode::Refused(vec![why]));
        }
        let debug_file = found.debug_file.as_ref().and_then(|path| match Image::open_debug(path) {
            Ok(image) => Some(DebugFile { path: path.clone(), image }),
            Err(ImageError::NotElf(_)) if module.kind == ModuleKind::Kernel => DebugFile::of_list(path, &image),
            Err(_) => None,
        });
        Ok(Binary {
            file: found.file.clone(),
            place: found.place.clone(),
            debug_file: debug_file.or_else(|| DebugFile::compressed_in(&found.place, &image)),
            image,
            symfs: Some(self.root.clone()),
            other_build: found.other_build.clone(),
            is_recorded: false,
            slide: 0,
            beside: Vec::new(),
            elsewhere: Elsewhere::default(),
        })
    }
}

/// The file of a module in any of these; `None` if nobody looked for it.
pub(super) fn open(packed: &[Arc<PackedFiles>], module: &Module) -> Option<Result<Binary, NoCode>> {
    let mut found = packed.iter().filter_map(|packed| Some((packed, packed.of(module)?.ok()?)));
    let Some((of, first)) = found.next() else {
        let why = packed.iter().find_map(|packed| packed.of(module)?.err())?;
        return Some(Err(NoCode::NotPacked(why.to_owned())));
    };
    // Nothing else tells builds of one path from each other.
    if module.build_id.is_none() && !found.all(|(_, other)| same(&first.place, &other.place)) {
        let why = "the archives have different builds of it, and none has a build id: link it with --build-id";
        return Some(Err(NoCode::NotPacked(why.to_owned())));
    }
    Some(of.binary(first, module))
}

/// Whether two files have the same bytes.
fn same(one: &Path, other: &Path) -> bool {
    let open = |file: &Path| Some(BufReader::new(File::open(file).ok()?).bytes().map(Result::ok));
    let length = |file: &Path| file.metadata().ok().map(|metadata| metadata.len());
    length(one) == length(other)
        && match (open(one), open(other)) {
            (Some(one), Some(other)) => one.eq(other),
            _ => false,
        }
}

impl BinarySearch {
    /// The search for modules that were recorded on another machine, and whose files came with the recording: where nothing else is named,
    /// files of this machine stand for none of them.
    pub fn of_packed(self, packed: Arc<PackedFiles>) -> Self {
        BinarySearch { packed: vec![packed], packed_only: true, ..self }
    }
}
