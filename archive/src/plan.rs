//! Which files go into an archive, and under which names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use analyzer::code::Image;
use analyzer::lines::Companions;
use analyzer::recording::{Module, ModuleKind};
use analyzer::{Binary, BinarySearch, BuildId, LARGEST_LIST};
use anyhow::Context;
use formats::archive::{Contents, Entry, Found, Module as PackedModule, RECORDING, ROOT, is_name};

/// What goes into an archive.
pub struct Plan {
    /// What it says of itself.
    pub contents: Contents,
    /// The files. The recording is the first.
    pub files: Vec<PlannedFile>,
    /// How many programs and libraries there are.
    pub binaries: usize,
    /// How many files of debug information there are.
    pub debug_files: usize,
}

/// A file of an archive.
pub struct PlannedFile {
    /// Its name in the archive.
    pub name: String,
    /// Where it is, or what it was made of.
    pub place: PathBuf,
    /// How many bytes of it are packed.
    pub bytes: u64,
    /// It, if it was made.
    pub made: Option<Image>,
}

/// How many files of one name and no other place there may be.
const MOST_OF_ONE_NAME: usize = 1 << 16;

/// Files by their names in the archive.
#[derive(Default)]
struct Names(BTreeMap<String, PlannedFile>);

/// Looks for the files of modules. `named`: those in whose functions samples fell that are known by name alone.
///
/// # Errors
/// The recording cannot be read.
pub fn plan<'a>(
    recording: &Path,
    modules: impl Iterator<Item = &'a Module>,
    named: impl Fn(&Module) -> bool,
    search: &BinarySearch,
) -> anyhow::Result<Plan> {
    let bytes = fs::metadata(recording).with_context(|| recording.display().to_string())?.len();
    let name = recording.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names = Names::default();
    let (mut binaries, mut debug_files) = (0, 0);
    let mut packed = Vec::new();
    for module in modules {
        let (mut found, mut missing, mut list) = (None, None, None);
        match search.open(module) {
            Ok(Binary { is_recorded: true, other_build, .. }) => missing = other_build,
            Ok(binary) => {
                let before = names.0.len();
                match names.binary(module, &binary) {
                    Some(of_module) => found = Some(of_module),
                    None => missing = Some(format!("{} cannot be read", binary.file.display())),
                }
                let added = names.0.len() - before;
                binaries += added.min(1);
                debug_files += added.saturating_sub(1);
            }
            Err(why) => {
                missing = Some(why.to_string());
                list = search.list_of_functions(module).filter(|_| named(module));
            }
        }
        let list = list.and_then(|list| names.list(&list));
        let build_id = module.build_id.as_ref().map(BuildId::to_string);
        packed.push(PackedModule { path: module.path.clone(), build_id, found, missing, names: list });
    }
    let entry = |file: &PlannedFile| Entry { name: file.name.clone(), bytes: file.bytes };
    let contents = Contents::new(Entry { name, bytes }, names.0.values().map(entry).collect(), packed);
    let mut files = vec![PlannedFile { name: RECORDING.to_owned(), place: recording.to_owned(), bytes, made: None }];
    files.extend(names.0.into_values());
    Ok(Plan { contents, files, binaries, debug_files })
}

impl Names {
    /// The file of a module, and what belongs to it. `None` if it cannot be read.
    fn binary(&mut self, module: &Module, binary: &Binary) -> Option<Found> {
        let recorded = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
        let build_id = binary.image.build_id();
        // `--symfs` finds by build id alone what has no path, and the kernel's among debug files.
        let is_kernel = module.kind == ModuleKind::Kernel;
        let has_path = !recorded.starts_with('[');
        // Of a copy of the kernel's memory, which has some GB, the kernel's code and its names, and so of each module.
        let made = binary.image.bytes_in_memory().filter(|_| module.kind.is_kernel() && binary.image.is_core());
        if let Some(bytes) = made {
            let made = Some(binary.image.clone());
            let (name, bytes) = (self.name_of_made(recorded)?, bytes.len() as u64);
            let name = self.insert(PlannedFile { name, place: binary.place.clone(), bytes, made });
            let file = binary.file.to_string_lossy().into_owned();
            return Some(Found { file, name, debug_file: None, other_build: binary.other_build.clone() });
        }
        let by_path =
            below(Path::new(ROOT), Path::new(recorded)).filter(|name| has_path && self.is_free(name, &binary.place));
        // Two builds of one path: the second is found by its build id.
        let name =
            by_path.or_else(|| self.other_name(&binary.place, build_id, if is_kernel { ".debug" } else { "" }))?;
        let name = self.add(name, &binary.place)?;
        let debug_file = binary.debug_file.as_ref().filter(|debug_file| debug_file.path != binary.place);
        let debug_file = debug_file.and_then(|debug_file| {
            // One that is named by a link needs no build id.
            let id = debug_file.image.build_id();
            let name = self.other_name(&debug_file.path, id, ".debug")?;
            self.add(name, &debug_file.path)
        });
        let Companions { alternate, package, parts } = Companions::of(binary);
        if let Some(alternate) = alternate {
            let name = self.other_name(&alternate.path, alternate.image.alternate_id().as_ref(), ".debug");
            name.and_then(|name| self.add(name, &alternate.path));
        }
        if let Some(package) = package {
            self.add(format!("{name}.dwp"), &package);
        }
        for (recorded, place) in parts {
            let beside = || Some(Path::new(&name).parent()?.join(recorded.file_name()?).to_str()?.to_owned());
            let part = if recorded.is_absolute() { below(Path::new(ROOT), &recorded) } else { beside() };
            part.and_then(|part| self.add(part, &place));
        }
        let file = binary.file.to_string_lossy().into_owned();
        Some(Found { file, name, debug_file, other_build: binary.other_build.clone() })
    }

    /// A list of the functions of a module without a file. `None` if it cannot be read, or has more than is read of one.
    fn list(&mut self, place: &Path) -> Option<String> {
        place.metadata().ok().filter(|list| list.len() <= LARGEST_LIST)?;
        self.add(self.other_name(place, None, "")?, place)
    }

    fn is_free(&self, name: &str, place: &Path) -> bool {
        is_name(name) && self.0.get(name).is_none_or(|known| known.place == place)
    }

    /// A name that no file has for what was made of a module of this path or name.
    fn name_of_made(&self, recorded: &str) -> Option<String> {
        let file = Path::new(recorded.trim_matches(['[', ']'])).file_name()?.to_str()?;
        let mut names = (1..).map(|number| format!("{ROOT}/copied/{number}/{file}")).take(MOST_OF_ONE_NAME);
        names.find(|name| !self.0.contains_key(name)).filter(|name| is_name(name))
    }

    /// The name by build id, as distributions have it; or one that no file has.
    fn other_name(&self, place: &Path, build_id: Option<&BuildId>, suffix: &str) -> Option<String> {
        let by_id = build_id.map(|id| {
            let digits = id.to_string();
            let (folder, rest) = digits.split_at_checked(2).unwrap_or((&digits, ""));
            format!("{ROOT}/usr/lib/debug/.build-id/{folder}/{rest}{suffix}")
        });
        let file = place.file_name()?.to_str()?;
        let numbered = (1..).map(|number| format!("{ROOT}/others/{number}/{file}"));
        by_id.into_iter().chain(numbered.take(MOST_OF_ONE_NAME)).find(|name| self.is_free(name, place))
    }

    /// Adds a file if it can be read, and its name is free. What is its own is there already.
    fn add(&mut self, name: String, place: &Path) -> Option<String> {
        let bytes = fs::metadata(place).ok().filter(|metadata| metadata.is_file())?.len();
        if !self.is_free(&name, place) {
            return None;
        }
        Some(self.insert(PlannedFile { name, place: place.to_owned(), bytes, made: None }))
    }

    fn insert(&mut self, file: PlannedFile) -> String {
        let name = file.name.clone();
        self.0.insert(name.clone(), file);
        name
    }
}

/// The name of a path below a folder, without ways out of it.
fn below(folder: &Path, path: &Path) -> Option<String> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    let name = parts.fold(folder.to_owned(), |name, part| name.join(part));
    (name != folder).then(|| name.to_str().map(str::to_owned))?
}
