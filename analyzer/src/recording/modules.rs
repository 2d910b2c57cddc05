//! The modules a recording names: executables, libraries, the kernel, and what has no file.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

use perfdata::is_memory_without_file;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::address::Avma;
use crate::build_id::BuildId;
use crate::code::{Bitness, Image, ImageError};
use crate::recording::{CodeKind, KnownFunctions, ModuleId};

/// What a module is, told from its recorded name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModuleKind {
    /// An ELF file with a path.
    File,
    /// The kernel image, or kernel addresses no mapping explains.
    Kernel,
    /// A loaded kernel module or a piece of code generated in the kernel (BPF, trampolines).
    KernelModule,
    /// Code without a file: vdso, JIT, stack, heap, deleted temporary files.
    Anonymous,
    /// Addresses that no mapping explains.
    Unknown,
}

impl ModuleKind {
    /// Whether its code runs in the kernel.
    pub fn is_kernel(self) -> bool {
        matches!(self, ModuleKind::Kernel | ModuleKind::KernelModule)
    }
}

/// A module as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The recorded path or name.
    pub path: String,
    /// The recorded build id, if any.
    pub build_id: Option<BuildId>,
    /// Whether it is a file, the kernel, or code without a file.
    pub kind: ModuleKind,
    /// Its code, if the recording has that itself: an ELF file.
    pub code: Option<RecordedCode>,
    /// Of the kernel and its modules: the functions that the recording names, whether it has their code or not.
    pub functions: KnownFunctions,
    /// Of the kernel and its modules: where the kernel was.
    pub kernel: Option<KernelPlace>,
    /// Of a module of the kernel: where it was in the end.
    pub loaded: Option<LoadedAt>,
    /// The recorder looked at all files, and could not at this one: what is at its path may be another.
    pub is_unidentified: bool,
    /// Only programs of 32 bits have it mapped.
    pub has_32_bits: bool,
    /// Code of the kernel that was there at some times only, instead of what has this path: no file has it.
    pub is_version: bool,
}

/// Which kernel ran, and where: it is elsewhere after each boot (KASLR).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelPlace {
    /// Its version, as `uname -r` has it.
    pub release: Option<String>,
    /// The symbol whose address is known, `_text` or `_stext`: where its code begins. `None` in recordings that do not name it.
    pub symbol: Option<String>,
    /// The address of the symbol, or of the first code.
    pub address: Avma,
}

/// Where the code of a module of the kernel is mapped: it is elsewhere after each load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedAt {
    /// Its first byte.
    pub start: Avma,
    /// What is added to places of the module, modulo 2^64.
    pub base: Avma,
}

/// An ELF file that a recording has, or that was made of what it has.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordedCode(Arc<[u8]>);

impl fmt::Debug for RecordedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedCode({} bytes)", self.0.len())
    }
}

impl Serialize for RecordedCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As one piece: byte by byte it takes many times as long. In the cache's format both are the same.
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for RecordedCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = RecordedCode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an ELF file")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<RecordedCode, E> {
        Ok(RecordedCode(bytes.into()))
    }
}

impl Module {
    /// A module of that path or name and build id.
    pub fn named(path: String, build_id: Option<BuildId>) -> Self {
        let kind = match kind_of(&path) {
            // A program that was made in memory is an ELF file all the same.
            ModuleKind::Anonymous if build_id.is_some() && is_memory_without_file(path.as_bytes()) => ModuleKind::File,
            kind => kind,
        };
        let is_unidentified = build_id.as_ref().is_some_and(BuildId::is_unknown);
        Module { is_unidentified, ..Module::of(kind, path, build_id) }
    }

    fn of(kind: ModuleKind, path: String, build_id: Option<BuildId>) -> Self {
        Module {
            path,
            build_id,
            kind,
            code: None,
            functions: KnownFunctions::default(),
            kernel: None,
            loaded: None,
            is_unidentified: false,
            has_32_bits: false,
            is_version: false,
        }
    }

    /// A file of that path.
    pub fn file(path: String, build_id: Option<BuildId>) -> Self {
        Module::of(ModuleKind::File, path, build_id)
    }

    /// Whether it is the ELF file that the kernel maps into all processes (vdso(7)). It has no path, but `perf record` may have kept it.
    pub fn is_vdso(&self) -> bool {
        [VDSO, VDSO_32].contains(&self.path.as_str())
    }

    /// Whether it is code that the kernel has made, such as a program of BPF: its places are the addresses where it was.
    pub fn is_made_by_kernel(&self) -> bool {
        self.loaded.is_some_and(|at| at.base == Avma(0))
    }

    /// What kind of code it has, if that was not read: what no program of 32 bits has mapped for itself alone is taken for code of 64 bits.
    pub fn kind_of_unread_code(&self) -> CodeKind {
        match self.kind.is_kernel() {
            true => CodeKind::Kernel,
            false if self.has_32_bits => CodeKind::User(Bitness::Bits32),
            false => CodeKind::User(Bitness::Bits64),
        }
    }

    /// The code that the recording has of it, opened.
    pub(crate) fn recorded_image(&self) -> Option<Result<Image, ImageError>> {
        self.code.as_ref().map(|code| Image::parse_shared(code.0.clone()))
    }
}

/// Name of the module for kernel addresses that no mapping explains, and for the kernel image itself, as `perf` calls it.
pub const KERNEL: &str = "[kernel.kallsyms]";
/// Name of the ELF file that the kernel maps into all processes, and of that in processes of 32 bits, as `perf` calls them.
pub const VDSO: &str = "[vdso]";
/// See [`VDSO`].
pub const VDSO_32: &str = "[vdso32]";
/// Name of the page of the vsyscalls, which all processes have at the same address.
pub(crate) const VSYSCALL: &str = "[vsyscall]";
/// That page on x86-64 (`arch/x86/entry/vsyscall/vsyscall_64.c`). Programs execute it, and it is in the kernel's half.
pub(crate) const VSYSCALL_PAGE: std::ops::Range<u64> = 0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000;
/// Name of the module for user addresses that no mapping explains.
pub const UNKNOWN: &str = "[unknown]";
/// Name of the module for addresses of a guest.
pub const GUEST: &str = "[guest]";

/// All modules of a recording; the same path with the same build id is one module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ModuleTable {
    modules: Vec<Module>,
    /// Only while a recording is read.
    #[serde(skip)]
    ids: HashMap<(Vec<u8>, Option<BuildId>), ModuleId>,
}

impl ModuleTable {
    /// The module of this recorded path and build id, added if it is new.
    pub fn intern(&mut self, path: &[u8], build_id: Option<&[u8]>) -> ModuleId {
        let key = (path.to_vec(), build_id.and_then(BuildId::new));
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = ModuleId(u32::try_from(self.modules.len()).unwrap_or(u32::MAX));
        let path = String::from_utf8_lossy(path).into_owned();
        self.modules.push(Module::named(path, key.1.clone()));
        self.ids.insert(key, id);
        id
    }

    /// Adds a module that is like no other, whatever its path and build id are.
    pub(crate) fn add(&mut self, module: Module) -> ModuleId {
        let id = ModuleId(u32::try_from(self.modules.len()).unwrap_or(u32::MAX));
        self.modules.push(module);
        id
    }

    /// Adds a module of code that is in no file: `file` is an ELF file made of it. Its build id is made of its bytes. What is of the kernel is a
    /// version.
    pub(crate) fn add_code(&mut self, name: &str, kind: ModuleKind, file: Vec<u8>) -> ModuleId {
        let half = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(seed);
            hasher.write(&file);
            hasher.finish().to_le_bytes()
        };
        let build_id = BuildId::new(&[half(1), half(2)].concat());
        self.add(Module {
            code: Some(RecordedCode(file.into())),
            is_version: kind.is_kernel(),
            ..Module::of(kind, name.to_owned(), build_id)
        })
    }

    /// All modules of that name have this code.
    pub(crate) fn has_code(&mut self, name: &str, file: &Arc<[u8]>) {
        for module in self.modules.iter_mut().filter(|module| module.path == name) {
            module.code = Some(RecordedCode(file.clone()));
        }
    }

    /// The module has this code, an ELF file.
    pub(crate) fn set_code(&mut self, id: ModuleId, file: Vec<u8>) {
        if let Some(module) = self.modules.get_mut(id.0 as usize) {
            module.code = Some(RecordedCode(file.into()));
        }
    }

    /// The module has these functions.
    pub(crate) fn set_functions(&mut self, id: ModuleId, functions: KnownFunctions) {
        if let Some(module) = self.modules.get_mut(id.0 as usize) {
            module.functions = functions;
        }
    }

    /// Only programs of 32 bits have these mapped.
    pub(crate) fn have_32_bits<'a>(&mut self, modules: impl Iterator<Item = &'a ModuleId>) {
        for id in modules {
            if let Some(module) = self.modules.get_mut(id.0 as usize) {
                module.has_32_bits = true;
            }
        }
    }

    /// Fills in where the kernel was.
    pub(crate) fn has_kernel(&mut self, place: &KernelPlace) {
        let is_module = |module: &Module| module.kind == ModuleKind::KernelModule;
        for module in self.modules.iter_mut().filter(|module| module.path == KERNEL || is_module(module)) {
            module.kernel = Some(place.clone());
        }
    }

    /// A module of the kernel was there.
    pub(crate) fn was_loaded(&mut self, id: ModuleId, at: LoadedAt) {
        let module = self.modules.get_mut(id.0 as usize).filter(|module| module.kind == ModuleKind::KernelModule);
        if let Some(module) = module {
            module.loaded = Some(at);
        }
    }

    /// Fills in build ids that the recording keeps apart from the mappings (its BUILD_ID feature), by path.
    pub fn learn_build_ids<'a>(&mut self, known: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        for (path, build_id) in known {
            let Some(build_id) = BuildId::new(build_id) else { continue };
            // Every path without a build id is one module.
            let id = self.ids.get(&(path.to_vec(), None));
            if let Some(module) = id.and_then(|id| self.modules.get_mut(id.0 as usize)) {
                module.build_id.get_or_insert(build_id);
            }
        }
    }

    /// The recorder looked at the files of all mappings, so those without an id are not known.
    pub(crate) fn were_identified(&mut self) {
        for module in &mut self.modules {
            let has_id = module.build_id.as_ref().is_some_and(|id| !id.is_unknown());
            module.is_unidentified = module.kind == ModuleKind::File && !has_id && module.code.is_none();
        }
    }

    /// The module of an id of this table.
    #[expect(clippy::indexing_slicing, reason = "only this table makes its ids")]
    pub fn get(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// All modules in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ModuleId, &Module)> {
        self.modules.iter().enumerate().map(|(index, module)| (ModuleId(index as u32), module))
    }
}

fn kind_of(path: &str) -> ModuleKind {
    if path == UNKNOWN || path == GUEST {
        ModuleKind::Unknown
    } else if path.starts_with("[kernel") || path.starts_with("[guest.kernel") {
        ModuleKind::Kernel
    } else if path.ends_with(".ko") || path.contains(".ko.") {
        ModuleKind::KernelModule
    } else if is_memory_without_file(path.as_bytes()) {
        ModuleKind::Anonymous
    } else if path.starts_with('[') {
        match path {
            VDSO | VDSO_32 | VSYSCALL | "[heap]" | "[stack]" | "[uprobes]" => ModuleKind::Anonymous,
            _ => ModuleKind::KernelModule,
        }
    } else if path.starts_with("bpf_prog_") || path.starts_with("bpf_trampoline_") {
        ModuleKind::KernelModule
    } else {
        ModuleKind::File
    }
}

/// What people call a module: the last part of its path, or all of it where it has none.
pub fn base_name(path: &str) -> String {
    Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use formats::mapped_files::{UNKNOWN_ID, id_of_bytes};

    use super::*;

    #[test]
    fn kinds_follow_the_recorded_name() {
        let check = |path: &str, expected| assert_eq!(kind_of(path), expected, "{path}");
        check("/usr/bin/gzip", ModuleKind::File);
        check("./test.binary", ModuleKind::File);
        check("[kernel.kallsyms]", ModuleKind::Kernel);
        check("[nf_conntrack]", ModuleKind::KernelModule);
        check("/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz", ModuleKind::KernelModule);
        check("[vdso]", ModuleKind::Anonymous);
        check("[vdso32]", ModuleKind::Anonymous);
        check("//anon", ModuleKind::Anonymous);
        check("/memfd:jit (deleted)", ModuleKind::Anonymous);
        check("[unknown]", ModuleKind::Unknown);
        let of_memory = Module::named("/memfd:program (deleted)".into(), BuildId::new(&[1]));
        assert_eq!(of_memory.kind, ModuleKind::File, "a build id is that of an ELF file");
    }

    #[test]
    fn what_was_not_identified_is_known_to_be_so() {
        let mut table = ModuleTable::default();
        let ids = [b"/a".as_slice(), b"/b", b"//anon"].map(|path| table.intern(path, None));
        table.learn_build_ids([(&b"/b"[..], &[2][..])].into_iter());
        table.were_identified();
        assert_eq!(ids.map(|id| table.get(id).is_unidentified), [true, false, false]);
    }

    #[test]
    fn what_nobody_looked_at_is_not_what_is_known_by_its_path() {
        let mut table = ModuleTable::default();
        let known = table.intern(b"/a", None);
        let unknown = table.intern(b"/a", Some(&UNKNOWN_ID));
        let id = id_of_bytes(&b"file"[..]).unwrap();
        table.learn_build_ids([(&b"/a"[..], &id[..])].into_iter());
        table.were_identified();
        assert_eq!([known, unknown].map(|id| table.get(id).is_unidentified), [false, true]);
        assert_eq!(table.get(known).build_id, BuildId::new(&id));
    }

    #[test]
    fn one_path_with_two_build_ids_is_two_modules() {
        let mut table = ModuleTable::default();
        let plain = table.intern(b"/a", None);
        let built = table.intern(b"/a", Some(&[1]));
        assert_ne!(plain, built);
        assert_eq!(table.intern(b"/a", Some(&[1])), built);
        table.learn_build_ids([(&b"/a"[..], &[2][..]), (b"/b", &[3])].into_iter());
        assert_eq!(table.get(plain).build_id, BuildId::new(&[2]));
        assert_eq!(table.get(built).build_id, BuildId::new(&[1]));
    }
}
