//! Where the kernel's code is found, and how far it ran from the addresses that its file states.
//!
//! ```text
//! recorded   [kernel.kallsyms]_text  0xffffffff9f000000      the address of a symbol when it ran
//! vmlinux    _text                   0xffffffff81000000      the same as linked
//! slide                                      0x1e000000      the same for all code: KASLR
//! ```

use std::path::{Path, PathBuf};

use super::build_id_cache::in_build_id_cache;
use super::debug_file::installed_by_id;
use super::kallsyms::Symbols;
use super::{Binary, BinarySearch, DebugFile, NoCode, Refused, Wanted, answers, instead, open_with_code, other_build};
use crate::address::{Avma, FileOffset, Svma};
use crate::code::{Image, ImageError, MadeFunction};
use crate::recording::{
    KERNEL, KERNEL_HALF, KERNEL_MODULES, KernelPlace, KnownFunction, KnownFunctions, Mapping, Module, ModuleId,
    ModuleKind,
};

/// The kernel is moved by whole pages.
const PAGE: u64 = 4096;

impl BinarySearch {
    /// Finds the code of the kernel: its file, or what the recording has of it. What was patched is in the recording alone, so a file takes its
    /// place only if it is named, or was when it was packed; if that one is refused, what is recorded stays, and says why.
    pub(super) fn open_kernel(&self, module: &Module, recorded: Option<Binary>) -> Result<Binary, NoCode> {
        let packed = self.packed(module);
        let Some(recorded) = recorded else {
            return packed.map_or_else(|| self.open_file_of_kernel(module), |packed| in_place(packed?, module));
        };
        let named = match packed {
            _ if self.is_given_for(module) => self.open_file_of_kernel(module),
            Some(Ok(packed)) => in_place(packed, module),
            _ => return Ok(recorded),
        };
        Ok(named.unwrap_or_else(|why| {
            let other_build = Some(instead(format!("{}: {why}", module.path), "the recording"));
            Binary { other_build, ..recorded }
        }))
    }

    /// The file that was given, or one of the recorded build: at the usual places, or from elsewhere. What distributions build as a debug file is a
    /// whole kernel; one without code has the names of the executable.
    fn open_file_of_kernel(&self, module: &Module) -> Result<Binary, NoCode> {
        let given = self.overrides.iter().filter(|given| answers(given, module));
        let mut files: Vec<PathBuf> = given.map(|given| given.file.clone()).collect();
        let copy = self.kernel_copies.of_recording().filter(|_| files.is_empty());
        if files.is_empty() {
            // What ran goes before what is on this machine.
            files.extend(copy.map(Path::to_owned));
            files.extend(self.usual_places(module).into_iter().filter(|file| file.is_file()));
        }
        let place = module.kernel.as_ref().ok_or(NoCode::KernelHidden)?;
        let elsewhere = [Wanted::DebugFile, Wanted::Executable].into_iter();
        let elsewhere = elsewhere.filter_map(|wanted| self.get_elsewhere(module, wanted));
        let mut refused = Vec::new();
        for file in files.into_iter().chain(elsewhere) {
            match self.open_vmlinux(file, module, place) {
                Ok(binary) => {
                    let why = copy.and_then(|_| refused.first());
                    let why = why.map(|why| instead(why, binary.file.display()));
                    return Ok(Binary { other_build: binary.other_build.or(why), ..binary });
                }
                Err(why) => refused.push(why),
            }
        }
        Err(if refused.is_empty() { NoCode::NoKernel } else { NoCode::Refused(refused) })
    }

    fn open_vmlinux(&self, file: PathBuf, module: &Module, place: &KernelPlace) -> Result<Binary, Refused> {
        let image = open_with_code(&file, module.kind).map_err(|why| match why {
            // Of a boot image, which is a program for the firmware, too, or of another way to pack.
            Refused::Malformed { why: ImageError::NotElf(bytes), .. } if bytes.starts_with(b"MZ") => {
                Refused::CompressedKernel(file.clone())
            }
            why => why,
        })?;
        if image.is_core() {
            return self.kernel_in_copy(file, place);
        }
        // Code of another kernel is elsewhere: counts in it would mean nothing.
        if let Some(why) = other_build(&file, &image, module) {
            return Err(why);
        }
        let binary = self.with_debug_file(file, image, None);
        let slide = slide(&binary, place)?;
        let has_names = binary.images().any(|image| !image.is_stripped());
        let names = if has_names { None } else { self.names_of_kernel(&binary.image, module) };
        Ok(Binary { slide, debug_file: names.or(binary.debug_file), ..binary })
    }

    /// The functions of a module of which no code is found: those that the recording names, or else those of the kernel that `perf record` keeps
    /// of the recorded build, or that came with the recording.
    pub fn known_functions(&self, module: &Module) -> KnownFunctions {
        if !module.functions.is_empty() {
            return module.functions.clone();
        }
        self.list_of_kernel(module).map(|(_, functions)| functions).unwrap_or_default()
    }

    /// The file that [`Self::known_functions`] are from; `None` if they are from the recording, or there are none.
    pub fn list_of_functions(&self, module: &Module) -> Option<PathBuf> {
        let is_recorded = !module.functions.is_empty();
        self.list_of_kernel(module).filter(|_| !is_recorded).map(|(list, _)| list)
    }

    /// The list may be of another boot of that build, when it was elsewhere.
    fn list_of_kernel(&self, module: &Module) -> Option<(PathBuf, KnownFunctions)> {
        let place = module.kernel.as_ref().filter(|_| module.kind == ModuleKind::Kernel)?;
        let kept = module.build_id.as_ref().filter(|_| !self.packed_only);
        let kept = kept.map(|build_id| in_build_id_cache(build_id, "kallsyms")).unwrap_or_default();
        let packed = self.packed.iter().filter_map(|packed| packed.names(module)).map(Path::to_owned);
        packed.chain(kept).find_map(|list| {
            let symbols = Symbols::read(&list).ok()?;
            let of_name = place.symbol.as_deref().and_then(|symbol| symbols.address(symbol));
            let text = of_name.or_else(|| symbols.address("_text")).or_else(|| symbols.address("_stext"))?;
            let below = text.wrapping_sub(place.address.0);
            let known = |(start, size, name): MadeFunction<'_>| KnownFunction {
                start: FileOffset(start),
                end: FileOffset(start.saturating_add(size)),
                name: String::from_utf8_lossy(&name).into_owned(),
            };
            let functions = || KnownFunctions::new(symbols.functions(below).into_iter().map(known));
            below.is_multiple_of(PAGE).then(|| (list, functions()))
        })
    }

    /// The names of a kernel without symbols, as it is in boot images: what `perf record` keeps of the build that it found, or what is
    /// installed with the kernel of that version.
    fn names_of_kernel(&self, image: &Image, module: &Module) -> Option<DebugFile> {
        let kept = module.build_id.as_ref().map(|build_id| in_build_id_cache(build_id, "kallsyms")).unwrap_or_default();
        let release = release(module).unwrap_or_default();
        let installed = installed(
            self.root(),
            release,
            &[
                "boot/System.map-R",
                "usr/lib/debug/boot/System.map-R",
                "lib/modules/R/System.map",
                "lib/modules/R/build/System.map",
            ],
        );
        kept.into_iter().chain(installed).find_map(|list| DebugFile::of_list(&list, image))
    }

    /// Where distributions and `perf` put it. None without a recorded build id: nothing could tell whether it is the same kernel.
    fn usual_places(&self, module: &Module) -> Vec<PathBuf> {
        let Some(build_id) = &module.build_id else { return Vec::new() };
        let root = self.root();
        let mut places = [in_build_id_cache(build_id, "vmlinux"), in_build_id_cache(build_id, "elf")].concat();
        places.extend(installed_by_id(&root.join("usr/lib/debug"), build_id));
        places.extend(installed(
            root,
            release(module).unwrap_or_default(),
            &[
                "boot/vmlinux-R",
                "usr/lib/debug/boot/vmlinux-R",
                "usr/lib/debug/lib/modules/R/vmlinux",
                "lib/modules/R/build/vmlinux",
                "boot/vmlinux-R.xz",
                "boot/vmlinux-R.gz",
                "boot/vmlinuz-R",
                "lib/modules/R/vmlinuz",
            ],
        ));
        places
    }
}

/// The version of the recorded kernel. It is input.
fn release(module: &Module) -> Option<&str> {
    module.kernel.as_ref()?.release.as_deref().filter(|release| !release.is_empty() && !release.contains('/'))
}

/// Files by the version of the kernel, which stands for `R`; none without one.
fn installed(root: &Path, release: &str, names: &[&str]) -> Vec<PathBuf> {
    let names = names.iter().filter(|_| !release.is_empty());
    names.map(|name| root.join(name.replace('R', release))).collect()
}

/// The file of a kernel that came with a recording, with how far it ran from where it was linked.
fn in_place(binary: Binary, module: &Module) -> Result<Binary, NoCode> {
    if binary.image.is_core() {
        // Made of a copy of memory when it was packed: its addresses are those where the code ran.
        return Ok(binary);
    }
    let place = module.kernel.as_ref().ok_or(NoCode::KernelHidden)?;
    let slide = slide(&binary, place).map_err(|why| NoCode::Refused(vec![why]))?;
    Ok(Binary { slide, ..binary })
}

/// How far the kernel ran from where it was linked.
fn slide(binary: &Binary, place: &KernelPlace) -> Result<u64, Refused> {
    let symbol = || binary.images().find_map(|file| file.symbol_address(place.symbol.as_deref()?));
    // All of these symbols are where code begins, for files without symbols.
    let linked = symbol().unwrap_or_else(|| first_code(&binary.image));
    let slide = place.address.0.wrapping_sub(linked.0);
    if slide.is_multiple_of(PAGE) {
        return Ok(slide);
    }
    let (file, recorded) = (binary.file.clone(), place.address);
    Err(Refused::OtherAddresses { file, linked, recorded })
}

fn first_code(image: &Image) -> Svma {
    image.segments().iter().find(|segment| segment.executable).map_or(Svma(0), |segment| segment.start)
}

/// Where the code of a kernel's file was while it ran. The first mapping is for what the file does not have: it is the kernel's, and unread.
pub(crate) fn kernel_mappings(binary: &Binary, module: ModuleId) -> Vec<Mapping> {
    let code = binary.image.segments().iter().filter(|segment| segment.executable);
    let mapping = |segment: &crate::code::Segment| {
        let start = segment.start.0.wrapping_add(binary.slide);
        let in_image = (KERNEL_HALF..KERNEL_MODULES).contains(&start);
        let size = segment.size.min(KERNEL_MODULES.saturating_sub(start));
        in_image.then(|| Mapping::new(Avma(start), size, segment.file_offset, module))?
    };
    let all = Mapping::new(Avma(KERNEL_HALF), KERNEL_MODULES - KERNEL_HALF, KERNEL_HALF, module);
    all.into_iter().chain(code.filter_map(mapping)).collect()
}

/// Whether a recorded name as the user gives it is the kernel's: `[kernel.kallsyms]`, or as in mappings `[kernel.kallsyms]_text`.
pub(super) fn is_name_of(given: &str, module: &Module) -> bool {
    module.kind == ModuleKind::Kernel && given.starts_with(module.path.as_str())
}

/// Whether it is that of the kernel, and of no guest's.
pub(super) fn is_name(given: &str) -> bool {
    given.starts_with(KERNEL)
}
