//! Where the code of a recorded module is found on disk.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use formats::file_identity::FileIdentity;

use crate::build_id::BuildId;
use crate::code::{FunctionTable, Image, ImageError};
use crate::recording::{Module, ModuleKind};

mod build_id_cache;
mod debug_file;
mod elsewhere;
mod kallsyms;
mod kcore;
mod kernel;
mod kernel_module;
mod lines;
mod packed;
mod refused;

use build_id_cache::in_build_id_cache;
pub use debug_file::DebugFile;
use debug_file::linked_by_id;
pub use elsewhere::{ByBuildId, Elsewhere, Wanted};
pub use kallsyms::LARGEST_LIST;
pub use kcore::KernelCopies;
pub(crate) use kernel::kernel_mappings;
pub(crate) use kernel_module::module_mappings;
pub use packed::{PackedFile, PackedFiles};
pub use refused::{NoCode, Refused};

/// A file given by the user for a recorded module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryOverride {
    /// Recorded path or base name; without it the file is for the module of the same build id or base name.
    pub recorded: Option<String>,
    /// The file to read instead.
    pub file: PathBuf,
    build_id: Option<BuildId>,
    /// Whether it stands for a module of another build, too.
    for_other_builds: bool,
    /// It is a copy of memory.
    is_core: bool,
}

impl BinaryOverride {
    /// Stands `file` in for the recorded module of that path or base name, even if it is of another build: that is said of it then
    /// ([`Binary::other_build`]). A file that cannot be read is reported when a module wants it.
    pub fn new(recorded: Option<String>, file: PathBuf) -> Self {
        let image = open_or_unpack(&file).ok();
        let is_core = image.as_ref().is_some_and(Image::is_core);
        let build_id = image.and_then(|image| image.build_id().cloned());
        BinaryOverride { for_other_builds: recorded.is_some(), recorded, file, build_id, is_core }
    }

    /// The same of an option of the command line: `RECORDED=FILE`, or `FILE` alone, which may have `=` in its name if it is there.
    pub fn of_option(text: &str) -> Self {
        match text.split_once('=') {
            Some((recorded, file)) if !Path::new(text).exists() => Self::new(Some(recorded.to_owned()), file.into()),
            _ => Self::new(None, text.into()),
        }
    }

    fn is_build_of(&self, module: &Module) -> bool {
        self.build_id.is_some() && self.build_id == module.build_id
    }
}

/// Where to look for binaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinarySearch {
    /// Directory under which recorded absolute paths are looked up, instead of under `/`.
    pub symfs: Option<PathBuf>,
    /// Files that stand for recorded modules; they go before anything else.
    pub overrides: Vec<BinaryOverride>,
    /// Where files come from that are not on this machine; they go after anything else.
    pub elsewhere: Elsewhere,
    /// Files that came with recordings: for modules of which no file is named.
    pub packed: Vec<Arc<PackedFiles>>,
    /// All modules are of a recording with which files came: where no folder is named, the files of this machine are not theirs.
    pub packed_only: bool,
    /// Copies of the kernel that ran: that of the recording is there without being named.
    pub kernel_copies: KernelCopies,
}

/// A file that was found for a module.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Where it was found: its name in what is said of it.
    pub file: PathBuf,
    /// Where it is read: the same, if it is not from an archive.
    pub place: PathBuf,
    /// The ELF file itself, opened.
    pub image: Image,
    /// Its separate debug file, where the file itself has no symbols or no debug information, and there is one.
    pub debug_file: Option<DebugFile>,
    /// The folder that stands for `/`, where files are not looked for at their recorded paths.
    pub symfs: Option<PathBuf>,
    /// That the file is of another build than was recorded, as a sentence: the user named it all the same.
    pub other_build: Option<String>,
    /// There is no file: the recording has the code.
    pub is_recorded: bool,
    /// Of the kernel: how far it ran from the addresses that the file states, modulo 2^64.
    pub slide: u64,
    /// Of what was made of a copy of the kernel: its other files.
    pub beside: Vec<FileIdentity>,
    /// Where what `dwz` moved comes from, if it is not on this machine.
    pub elsewhere: Elsewhere,
}

impl Binary {
    /// Its functions, with the names of the debug file if there is one.
    pub fn functions(&self) -> FunctionTable {
        match &self.debug_file {
            Some(debug_file) => FunctionTable::with_debug_file(&self.image, &debug_file.image),
            None => FunctionTable::of(&self.image),
        }
    }

    /// Its files: its own, and its debug file.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        [Some(&self.image), self.debug_file.as_ref().map(|debug_file| &debug_file.image)].into_iter().flatten()
    }

    /// Why neither the file nor its debug file has debug information; `None` if one of them has.
    pub fn missing_debug_information(&self) -> Option<MissingDebugInformation> {
        if self.images().any(Image::has_debug_information) {
            return None;
        }
        Some(if self.images().all(Image::is_stripped) {
            MissingDebugInformation::WithSymbols
        } else if self.image.comments().iter().any(|comment| comment.starts_with("rustc ")) {
            MissingDebugInformation::OfRust
        } else {
            MissingDebugInformation::Unknown
        })
    }
}

/// Why a file has no debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingDebugInformation {
    /// The file is stripped: its symbols are missing, too.
    WithSymbols,
    /// The file is stripped, but of its symbols: it is Rust's, whose standard library comes with debug information.
    OfRust,
    /// It was built without, or stripped.
    Unknown,
}

impl BinarySearch {
    /// Finds and opens the file of a module.
    ///
    /// # Errors
    /// It has no file, or none that was found is a binary of the recorded build.
    pub fn open(&self, module: &Module) -> Result<Binary, NoCode> {
        let recorded = module.recorded_image().and_then(Result::ok);
        let recorded =
            recorded.map(|image| Binary { is_recorded: true, ..self.binary(PathBuf::from(&module.path), image) });
        match (module.kind, recorded) {
            (ModuleKind::Kernel, recorded) => return self.open_kernel(module, recorded),
            (_, Some(recorded)) => return Ok(recorded),
            (ModuleKind::File | ModuleKind::KernelModule, None) => {}
            (ModuleKind::Anonymous, None) if module.is_vdso() => {}
            (ModuleKind::Anonymous, None) => return Err(NoCode::NoFile),
            (ModuleKind::Unknown, None) => return Err(NoCode::Unmapped),
        }
        if let Some(packed) = self.packed(module) {
            return packed;
        }
        let mut refused = Vec::new();
        let mut of_other_build = None;
        if module.is_unidentified && self.symfs.is_none() && !self.is_given_for(module) {
            return Err(NoCode::Unidentified);
        }
        // A file does not have what was patched.
        if module.kind == ModuleKind::KernelModule && !self.is_given_for(module) {
            match self.module_in_copy(module) {
                Some(Ok(binary)) => return Ok(binary),
                Some(Err(why)) => refused.push(why),
                None => {}
            }
        }
        let no_copy = refused.first().map(Refused::to_string);
        let instead_of_copy = |file: &Path| no_copy.as_deref().map(|why| instead(why, file.display()));
        for Candidate { file, for_other_builds } in self.candidates(module) {
            match open_with_code(&file, module.kind).map(|image| (other_build(&file, &image, module), image)) {
                Ok((None, image)) => {
                    let why = instead_of_copy(&file);
                    return Ok(self.with_debug_file(file, image, why));
                }
                Ok((Some(why), image)) if for_other_builds && of_other_build.is_none() => {
                    of_other_build = Some((file, image, why));
                }
                Ok((Some(why), _)) | Err(why) => refused.push(why),
            }
        }
        if let Some((file, image, why)) = of_other_build {
            let option = if self.is_given_for(module) { "--binary" } else { "--symfs" };
            let why = format!("{why}: it stands for {} all the same, for {option} says so", module.path);
            let why = instead_of_copy(&file).into_iter().chain([why]).collect::<Vec<_>>().join("; ");
            return Ok(self.with_debug_file(file, image, Some(why)));
        }
        if let Some((file, image)) = self.got_elsewhere(module) {
            let why = instead_of_copy(&file);
            return Ok(self.with_debug_file(file, image, why));
        }
        Err(if module.kind == ModuleKind::Anonymous && refused.is_empty() {
            NoCode::NoFile
        } else if refused.is_empty() {
            NoCode::NoPath
        } else {
            NoCode::Refused(refused)
        })
    }

    /// What came with a recording, where the user named no file.
    fn packed(&self, module: &Module) -> Option<Result<Binary, NoCode>> {
        if self.packed.is_empty() || self.is_given_for(module) {
            return None;
        }
        match packed::open(&self.packed, module) {
            Some(Ok(binary)) => Some(Ok(binary)),
            // There may be one in the folder that was named.
            _ if self.symfs.is_some() => None,
            Some(Err(why)) => Some(Err(why)),
            None => self.packed_only.then(|| Err(NoCode::NotPacked("its file is not in the archive".to_owned()))),
        }
    }

    /// The file of the recorded build, where the user named none.
    fn got_elsewhere(&self, module: &Module) -> Option<(PathBuf, Image)> {
        let file = self.get_elsewhere(module, Wanted::Executable)?;
        let build_id = module.build_id.as_ref()?;
        let image = open_with_code(&file, module.kind).ok().filter(|image| image.build_id() == Some(build_id))?;
        Some((file, image))
    }

    /// A file of the recorded build, where the user named none. No server has what has no build id, or what the kernel makes itself.
    fn get_elsewhere(&self, module: &Module, wanted: Wanted) -> Option<PathBuf> {
        let is_asked_for = module.kind != ModuleKind::Anonymous && !self.is_given_for(module);
        let build_id = module.build_id.as_ref().filter(|id| is_asked_for && !id.is_of_bytes() && !id.is_unknown())?;
        self.elsewhere.get(build_id, wanted)
    }

    /// The same for modules that were recorded together: a file stands for another build only where its own was not recorded.
    pub fn among<'a>(&self, modules: impl Iterator<Item = &'a Module>) -> Self {
        let mut search = self.clone();
        for module in modules {
            for given in search.overrides.iter_mut().filter(|given| answers(given, module)) {
                given.for_other_builds &= !given.is_build_of(module);
            }
        }
        search
    }

    /// Whether a file is given for the module.
    pub fn is_given_for(&self, module: &Module) -> bool {
        self.overrides.iter().any(|given| answers(given, module))
    }

    /// The overrides that no module of the recording answers to.
    pub fn unused<'a>(&'a self, modules: &[&Module]) -> Vec<&'a BinaryOverride> {
        self.overrides.iter().filter(|given| !modules.iter().any(|module| answers(given, module))).collect()
    }

    fn with_debug_file(&self, file: PathBuf, image: Image, other_build: Option<String>) -> Binary {
        let wanting = image.is_stripped() || !image.has_debug_information();
        let debug_file = if wanting { self.debug_file_of(&file, &image) } else { None };
        let debug_file = debug_file.or_else(|| DebugFile::compressed_in(&file, &image));
        Binary { debug_file, other_build, ..self.binary(file, image) }
    }

    fn binary(&self, file: PathBuf, image: Image) -> Binary {
        let (place, symfs, elsewhere) = (file.clone(), self.symfs.clone(), self.elsewhere.clone());
        Binary {
            file,
            place,
            image,
            debug_file: None,
            symfs,
            other_build: None,
            is_recorded: false,
            slide: 0,
            beside: Vec::new(),
            elsewhere,
        }
    }

    fn candidates(&self, module: &Module) -> Vec<Candidate> {
        // Builds without a build id are told apart by all their bytes, and are the same for the user with symbols and without.
        let of_bytes = module.build_id.as_ref().is_some_and(BuildId::is_of_bytes);
        let candidate = |given: &BinaryOverride| Candidate {
            file: given.file.clone(),
            for_other_builds: given.for_other_builds || of_bytes,
        };
        let given: Vec<Candidate> =
            self.overrides.iter().filter(|given| answers(given, module)).map(candidate).collect();
        if !given.is_empty() {
            return given;
        }
        let recorded = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
        // It is no path, but what has a build id may be kept by it.
        if recorded.starts_with('[') {
            return self.by_build_id(module);
        }
        let here = match &self.symfs {
            Some(root) => {
                let by_name = base_name(recorded).map(|name| root.join(name));
                [Some(root.join(recorded.trim_start_matches('/'))), by_name]
            }
            None => [Some(PathBuf::from(recorded)), None],
        };
        // Profilers have names alone, which build ids tell apart.
        let has_name_alone = !recorded.contains('/') && module.build_id.as_ref().is_some_and(|id| !id.is_unknown());
        let installed = has_name_alone.then(|| INSTALLED.map(|folder| self.root().join(folder).join(recorded)));
        let here = here.into_iter().flatten().chain(installed.into_iter().flatten());
        let here = here.flat_map(|file| match module.kind {
            ModuleKind::KernelModule => kernel_module::files(&file),
            _ => vec![file],
        });
        let mut candidates: Vec<Candidate> =
            here.map(|file| Candidate { file, for_other_builds: of_bytes && self.symfs.is_some() }).collect();
        candidates.extend(self.by_build_id(module));
        candidates
    }

    fn by_build_id(&self, module: &Module) -> Vec<Candidate> {
        let Some(build_id) = &module.build_id else { return Vec::new() };
        let kept = in_build_id_cache(build_id, if module.is_vdso() { "vdso" } else { "elf" });
        let files = linked_by_id(self.root(), build_id).into_iter().chain(kept);
        files.map(|file| Candidate { file, for_other_builds: false }).collect()
    }
}

/// Where programs and libraries are installed.
const INSTALLED: [&str; 9] = [
    "usr/bin",
    "usr/sbin",
    "usr/local/bin",
    "usr/local/lib",
    "usr/lib",
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib32",
    "usr/lib/i386-linux-gnu",
];

/// A file that may be a module's.
struct Candidate {
    file: PathBuf,
    for_other_builds: bool,
}

fn answers(given: &BinaryOverride, module: &Module) -> bool {
    if matches!(module.kind, ModuleKind::Anonymous | ModuleKind::Unknown) {
        return false;
    }
    match &given.recorded {
        Some(recorded) if kernel::is_name_of(recorded, module) => true,
        Some(recorded) => *recorded == module.path || Some(recorded.as_str()) == base_name(&module.path),
        None => {
            let same_name = given.file.file_name().and_then(|name| name.to_str()) == base_name(&module.path);
            same_name || given.is_build_of(module)
        }
    }
}

/// That code is not taken from where it would be, and from where it is, as a sentence.
fn instead(why: impl fmt::Display, from: impl fmt::Display) -> String {
    format!("{why}: its code is taken from {from}")
}

fn base_name(path: &str) -> Option<&str> {
    Path::new(path).file_name()?.to_str()
}

/// A file as it is, or what is packed in it.
fn open_or_unpack(file: &Path) -> Result<Image, ImageError> {
    Image::open(file).or_else(|why| match why {
        ImageError::NotElf(_) => Image::open_packed(file),
        why => Err(why),
    })
}

/// Files of the kernel may be packed, and those of its modules are loaded.
fn open_with_code(file: &Path, kind: ModuleKind) -> Result<Image, Refused> {
    let image = if kind.is_kernel() { open_or_unpack(file) } else { Image::open(file) };
    let image = match image {
        Ok(module) if kind == ModuleKind::KernelModule && module.is_relocatable() => module.loaded_module(),
        image => image,
    };
    let image = image.map_err(|error| match error {
        ImageError::Read { source, .. } if source.kind() == ErrorKind::NotFound => Refused::Missing(file.to_owned()),
        other => Refused::of_image(file, other),
    })?;
    if !image.segments().iter().any(|segment| segment.executable) {
        return Err(Refused::NotExecutable(file.to_owned()));
    }
    Ok(image)
}

/// That a file is not of the recorded build. A module without a recorded build id takes any file of its name.
fn other_build(file: &Path, image: &Image, module: &Module) -> Option<Refused> {
    let recorded = module.build_id.as_ref()?;
    (!image.is_of(recorded)).then(|| {
        let (file, found, recorded) = (file.to_owned(), image.build_id().cloned(), recorded.clone());
        match recorded.is_of_bytes() {
            true => Refused::OtherBytes(file),
            false => Refused::OtherBuild { file, found, recorded },
        }
    })
}
