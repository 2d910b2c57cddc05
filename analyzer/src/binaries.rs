//! Where the code of a recorded module is found on disk.

mod kcore;
mod kernel;

pub(crate) use kernel::kernel_mappings;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::address::{Avma, Svma};
use crate::build_id::{BuildId, folder_and_name};
use crate::code::{FunctionTable, Image, ImageError};
use crate::recording::{Module, ModuleKind};

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
}

impl BinaryOverride {
    /// Stands `file` in for the recorded module of that path or base name, even if it is of another build: that is said of it then
    /// ([`Binary::other_build`]). A file that cannot be read is reported when a module wants it.
    pub fn new(recorded: Option<String>, file: PathBuf) -> Self {
        let build_id = Image::open(&file).ok().and_then(|image| image.build_id().cloned());
        BinaryOverride { for_other_builds: recorded.is_some(), recorded, file, build_id }
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
}

/// A file that was found for a module.
#[derive(Debug)]
pub struct Binary {
    /// Where it was found.
    pub file: PathBuf,
    /// The ELF file itself, opened.
    pub image: Image,
    /// Its separate debug file, where the file itself has no symbols or no debug information, and the debug file is installed.
    pub debug_file: Option<Image>,
    /// The folder that stands for `/`, where files are not looked for at their recorded paths.
    pub symfs: Option<PathBuf>,
    /// That the file is of another build than was recorded, as a sentence: the user named it all the same.
    pub other_build: Option<String>,
    /// There is no file: the recording has the code.
    pub is_recorded: bool,
    /// Of the kernel: how far it ran from the addresses that the file states, modulo 2^64.
    pub slide: u64,
}

impl Binary {
    /// Its functions, with the names of the debug file if there is one.
    pub fn functions(&self) -> FunctionTable {
        match &self.debug_file {
            Some(debug_file) => FunctionTable::with_debug_file(&self.image, debug_file),
            None => FunctionTable::of(&self.image),
        }
    }

    /// Why neither the file nor its debug file has debug information; `None` if one of them has.
    pub fn missing_debug_information(&self) -> Option<MissingDebugInformation> {
        if [Some(&self.image), self.debug_file.as_ref()].into_iter().flatten().any(Image::has_debug_information) {
            return None;
        }
        Some(if self.image.is_stripped() {
            MissingDebugInformation::WithSymbols
        } else if self.image.comments().iter().any(|comment| comment.starts_with("rustc ")) {
            MissingDebugInformation::OfRust
        } else {
            MissingDebugInformation::Unknown
        })
    }
}

/// Why the code of a module is not known.
#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    /// It is the kernel's, of which there is no file.
    #[error("the kernel's file was not found; say --binary '[kernel.kallsyms]=VMLINUX'")]
    NoKernel,
    /// It is the kernel's, which is elsewhere after each boot.
    #[error("the recording does not say where the kernel was: record as root, or with kernel.kptr_restrict=0")]
    KernelHidden,
    /// It was made while the program ran.
    #[error("it has no file, and the recording has no code of it")]
    NoFile,
    /// No module has these addresses.
    #[error("no mapping explains these addresses")]
    Unmapped,
    /// It was recorded under a name that is none of a file.
    #[error("its recorded name is not a path")]
    NoPath,
    /// Its files may be found now, but its addresses are those of an unknown one.
    #[error("its code was not read when the flow was made")]
    NotReadBefore,
    /// None of the files that were found is it.
    #[error("{}", joined(.0))]
    Refused(Vec<Refused>),
}

/// Why a file is not the binary of a module.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It does not exist.
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(ImageError),
    /// It is no program and no library.
    #[error("{} has no executable segment: where its code is loaded is not in it", .0.display())]
    NotExecutable(PathBuf),
    /// It is the kernel as it is booted.
    #[error(
        "{} is compressed: unpack it with scripts/extract-vmlinux of Linux, or install the kernel's debug symbols",
        .0.display()
    )]
    CompressedKernel(PathBuf),
    /// It is a copy of a kernel's memory that nothing identifies.
    #[error("of {} nothing tells that it is the recorded kernel: kallsyms beside it does not say where its code begins", .0.display())]
    UnknownKernel(PathBuf),
    /// It is a core file with more code than a kernel has.
    #[error("{} has more than 256 MiB of kernel code: only copies of `perf record --kcore` are read", .0.display())]
    TooMuchCode(PathBuf),
    /// It is a kernel whose code was not where the recorded kernel's was.
    #[error("{} is another kernel: its code begins at {linked}, that of the recorded one at {recorded}", file.display())]
    OtherAddresses {
        /// The file that was looked at.
        file: PathBuf,
        /// Where its code begins.
        linked: Svma,
        /// Where the code of the recorded kernel began.
        recorded: Avma,
    },
    /// It was built from something else.
    #[error("{} has build id {}, recorded was {}", file.display(), found.as_ref().map_or("none".to_string(), BuildId::to_string), recorded)]
    OtherBuild {
        /// The file that was looked at.
        file: PathBuf,
        /// Its build id, if it has one.
        found: Option<BuildId>,
        /// That of the binary that ran.
        recorded: BuildId,
    },
}

fn joined(refused: &[Refused]) -> String {
    refused.iter().map(Refused::to_string).collect::<Vec<_>>().join("; ")
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
        // What was patched is in the recording alone, so a file takes its place only if it is asked for.
        let instead = module.kind == ModuleKind::Kernel && self.is_given_for(module);
        if let Some(Ok(image)) = module.recorded_image().filter(|_| !instead) {
            let (file, symfs) = (PathBuf::from(&module.path), self.symfs.clone());
            return Ok(Binary { file, image, debug_file: None, symfs, other_build: None, is_recorded: true, slide: 0 });
        }
        match module.kind {
            ModuleKind::File | ModuleKind::KernelModule => {}
            ModuleKind::Kernel => return self.open_kernel(module),
            ModuleKind::Anonymous => return Err(NoCode::NoFile),
            ModuleKind::Unknown => return Err(NoCode::Unmapped),
        }
        let mut refused = Vec::new();
        let mut of_other_build = None;
        for Candidate { file, for_other_builds } in self.candidates(module) {
            match open_with_code(&file).map(|image| (other_build(&file, &image, module), image)) {
                Ok((None, image)) => return Ok(self.with_debug_file(file, image, None)),
                Ok((Some(why), image)) if for_other_builds && of_other_build.is_none() => {
                    of_other_build = Some((file, image, why));
                }
                Ok((Some(why), _)) | Err(why) => refused.push(why),
            }
        }
        if let Some((file, image, why)) = of_other_build {
            let why = format!("{why}: it stands for {} all the same, for --binary says so", module.path);
            return Ok(self.with_debug_file(file, image, Some(why)));
        }
        Err(if refused.is_empty() { NoCode::NoPath } else { NoCode::Refused(refused) })
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
        Binary { file, image, debug_file, symfs: self.symfs.clone(), other_build, is_recorded: false, slide: 0 }
    }

    /// Distributions install debug files by build id; where a file names its own (`.gnu_debuglink`), that is beside it, in `.debug`, or
    /// under `/usr/lib/debug` in a folder of the same name.
    fn debug_file_of(&self, file: &Path, image: &Image) -> Option<Image> {
        let root = self.symfs.as_deref().unwrap_or(Path::new("/"));
        let installed = root.join("usr/lib/debug");
        let by_id = image.build_id().and_then(|id| {
            let (folder, name) = folder_and_name(id.as_bytes())?;
            let path = installed.join(".build-id").join(folder).join(name + ".debug");
            Image::open_debug(&path).ok().filter(|debug_file| debug_file.build_id() == image.build_id())
        });
        by_id.or_else(|| {
            let (name, checksum) = image.debug_link()?;
            let folder = std::path::absolute(file).ok()?.parent()?.to_owned();
            let same_folder = folder.strip_prefix(root).or_else(|_| folder.strip_prefix("/")).ok()?;
            let places =
                [folder.join(&name), folder.join(".debug").join(&name), installed.join(same_folder).join(&name)];
            places.iter().filter(|place| *place != file).find_map(|place| {
                let debug_file = Image::open_debug(place).ok()?;
                (debug_file.checksum() == checksum).then_some(debug_file)
            })
        })
    }

    fn candidates(&self, module: &Module) -> Vec<Candidate> {
        let candidate =
            |given: &BinaryOverride| Candidate { file: given.file.clone(), for_other_builds: given.for_other_builds };
        let given: Vec<Candidate> =
            self.overrides.iter().filter(|given| answers(given, module)).map(candidate).collect();
        if !given.is_empty() {
            return given;
        }
        let recorded = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
        if recorded.starts_with('[') {
            return Vec::new();
        }
        let mut files = Vec::new();
        match &self.symfs {
            Some(root) => {
                files.push(root.join(recorded.trim_start_matches('/')));
                if let Some(name) = base_name(recorded) {
                    files.push(root.join(name));
                }
            }
            None => files.push(PathBuf::from(recorded)),
        }
        files.extend(module.build_id.iter().flat_map(in_build_id_cache));
        files.into_iter().map(|file| Candidate { file, for_other_builds: false }).collect()
    }
}

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

fn base_name(path: &str) -> Option<&str> {
    Path::new(path).file_name()?.to_str()
}

fn open_with_code(file: &Path) -> Result<Image, Refused> {
    let image = Image::open(file).map_err(|error| match error {
        ImageError::Read { source, .. } if source.kind() == ErrorKind::NotFound => Refused::Missing(file.to_owned()),
        other => Refused::Unreadable(other),
    })?;
    if !image.segments().iter().any(|segment| segment.executable) {
        return Err(Refused::NotExecutable(file.to_owned()));
    }
    Ok(image)
}

/// That a file is not of the recorded build. A module without a recorded build id takes any file of its name.
fn other_build(file: &Path, image: &Image, module: &Module) -> Option<Refused> {
    let recorded = module.build_id.as_ref()?;
    let found = image.build_id();
    (found != Some(recorded)).then(|| {
        let (file, found, recorded) = (file.to_owned(), found.cloned(), recorded.clone());
        Refused::OtherBuild { file, found, recorded }
    })
}

/// The copies that `perf buildid-cache` (and every `perf record`) keeps under `~/.debug`: of the build id, and of those that it is
/// where zeros fill it up.
fn in_build_id_cache(build_id: &BuildId) -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME") else { return Vec::new() };
    let ids = Path::new(&home).join(".debug/.build-id");
    let file = |id: &[u8]| {
        let (folder, name) = folder_and_name(id)?;
        let file = ids.join(folder).join(name).join("elf");
        file.exists().then_some(file)
    };
    build_id.spellings().filter_map(file).collect()
}
