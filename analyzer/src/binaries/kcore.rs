//! The copy of the running kernel that `perf record --kcore` keeps in `kcore_dir`: `kcore`, an ELF core file whose addresses are those where the
//! code ran; beside it `kallsyms`, with the names, and `modules`, which says where each module was. What archives have of it is one file of the
//! same kind for the kernel and one for each module, with code and names.
//!
//! ```text
//! kcore      ffffffffc0400000  the code of all modules, and what is between
//! modules    ext4 1048576 2 - Live 0xffffffffc0400000              an ELF core file in memory: code from 0 on,
//! kallsyms   ffffffffc0400010 t ext4_read  [ext4]          ----->  and the function ext4_read at 0x10
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use formats::file_identity::FileIdentity;

use super::kallsyms::{ModuleSymbols, Symbols, functions};
use super::lines::Lines;
use super::{Binary, BinarySearch, Refused, kernel};
use crate::address::{Avma, Svma};
use crate::code::{Image, ImageError, made_core};
use crate::recording::{KERNEL_HALF, KERNEL_MODULES, KernelPlace, LoadedAt, Module, base_name};

/// Bytes of code that are read of the kernel, and as many of all modules together: a kernel has 10 to 40 MB.
const MOST: u64 = 256 << 20;
/// Bytes of `modules` that are read: a line has some 100, and a kernel some 200 modules.
const MOST_OF_LIST: u64 = 16 << 20;
/// Code of the kernel's own making has no size: it ends with the next, or after so many bytes.
const MOST_OF_MADE: u64 = 1 << 20;
/// Files of a copy: what it is made of changes with any of them.
const BESIDE: [&str; 2] = ["kallsyms", "modules"];

/// Copies of kernels: that of the recording, and those that were read.
#[derive(Clone, Default)]
pub struct KernelCopies {
    of_recording: Option<PathBuf>,
    /// All modules are looked for in one, and it takes long to read.
    read: Arc<Mutex<HashMap<PathBuf, Arc<KernelCopy>>>>,
}

impl KernelCopies {
    /// That of a recording in this directory, if it has one.
    pub fn beside_recording(directory: &Path) -> Self {
        let copy = directory.join("kcore_dir");
        // One that cannot be looked at is taken for one: reading it says why.
        let is_there = copy.metadata().map_or_else(|why| why.kind() != ErrorKind::NotFound, |of| of.is_dir());
        KernelCopies { of_recording: is_there.then(|| copy.join("kcore")), ..Self::default() }
    }

    /// The file of the recording's.
    pub(super) fn of_recording(&self) -> Option<&Path> {
        self.of_recording.as_deref()
    }

    /// Reads a copy, if that was not done before.
    pub(super) fn read(&self, file: &Path) -> Result<Arc<KernelCopy>, Refused> {
        let files = files(file);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(file).filter(|known| known.files == files) {
            return Ok(Arc::clone(known));
        }
        let copy = Arc::new(KernelCopy::read(file, files)?);
        read.insert(file.to_owned(), Arc::clone(&copy));
        Ok(copy)
    }
}

/// The same in every process, whatever was read.
impl fmt::Debug for KernelCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelCopies({:?})", self.of_recording)
    }
}

impl PartialEq for KernelCopies {
    fn eq(&self, other: &Self) -> bool {
        self.of_recording == other.of_recording
    }
}

impl Eq for KernelCopies {}

/// The states of the files of a copy: the core file, and those beside it.
fn files(file: &Path) -> Vec<Option<FileIdentity>> {
    let beside = BESIDE.map(|name| file.with_file_name(name));
    [file].into_iter().chain(beside.iter().map(PathBuf::as_path)).map(FileIdentity::at).collect()
}

/// A copy that was read.
pub(super) struct KernelCopy {
    file: PathBuf,
    files: Vec<Option<FileIdentity>>,
    core: Image,
    symbols: Symbols,
    /// By name and first address.
    modules: BTreeMap<(String, u64), CopiedModule>,
    /// For the code of those that are read.
    room: Mutex<Room>,
    /// Where a symbol is: that of the recorded kernel.
    symbol: OnceLock<(String, Option<u64>)>,
}

/// A module of the kernel, or code that the kernel has made.
struct CopiedModule {
    /// After its last byte.
    end: u64,
    symbols: ModuleSymbols,
}

/// Room for the code of modules: each takes it once, however often it is read.
struct Room {
    /// In bytes.
    left: u64,
    /// First addresses of those that have theirs.
    taken: BTreeSet<u64>,
}

impl Room {
    fn new() -> Self {
        Room { left: MOST, taken: BTreeSet::new() }
    }

    /// Whether there is room for the code at an address, of so many bytes.
    fn take(&mut self, start: u64, bytes: u64) -> bool {
        if self.taken.contains(&start) {
            return true;
        }
        let Some(left) = self.left.checked_sub(bytes) else { return false };
        self.left = left;
        self.taken.insert(start)
    }
}

impl KernelCopy {
    fn read(file: &Path, files: Vec<Option<FileIdentity>>) -> Result<Self, Refused> {
        let core = Image::open(file).map_err(|why| Refused::of_image(file, why))?;
        let [kallsyms, modules] = BESIDE.map(|name| file.with_file_name(name));
        let (symbols, of_modules) =
            Symbols::read_with_modules(&kallsyms).map_err(|why| Refused::of_image(&kallsyms, why))?;
        // Without the list no module is known.
        let loaded = loaded_modules(&modules).unwrap_or_default();
        let modules = copied_modules(&loaded, of_modules);
        let (file, room) = (file.to_owned(), Mutex::new(Room::new()));
        Ok(KernelCopy { file, files, core, symbols, modules, room, symbol: OnceLock::new() })
    }

    /// The code of the kernel, with its names: a core file, too, which is in memory.
    pub(super) fn kernel(&self, place: &KernelPlace) -> Result<Image, Refused> {
        self.check(place)?;
        let is_of_image = |start: u64| (KERNEL_HALF..KERNEL_MODULES).contains(&start);
        let segments = self.core.segments().iter().filter(|segment| segment.executable && is_of_image(segment.start.0));
        let (mut runs, mut left): (Vec<(u64, Vec<u8>)>, u64) = (Vec::new(), MOST);
        for segment in segments {
            left = left.checked_sub(segment.size).ok_or_else(|| Refused::TooMuchCode(self.file.clone()))?;
            let Some(bytes) = self.core.bytes_at(segment.start, segment.size) else {
                return Err(Refused::CutOff(self.file.clone()));
            };
            runs.push((segment.start.0, bytes.to_vec()));
        }
        let image = Image::parse(made_core(&runs, &self.symbols.functions(0)));
        let image = image.map_err(|why| Refused::of_image(&self.file, why))?;
        Ok(self.identified(image))
    }

    /// The same of a module: its addresses are places in the module. The kernel's own code is the module of its symbol.
    fn module(&self, name: &str, place: &KernelPlace, at: LoadedAt) -> Result<Image, Refused> {
        self.check(place)?;
        let Some(copied) = self.modules.get(&(name.to_owned(), at.start.0)) else {
            let mut of_name = self.modules.range((name.to_owned(), 0)..=(name.to_owned(), u64::MAX));
            let file = self.file.clone();
            return Err(match of_name.next() {
                Some(((_, there), _)) => Refused::OtherLoad { file, copied: Avma(*there), recorded: at.start },
                None => Refused::NotInCopy(file),
            });
        };
        let CopiedModule { end, symbols } = copied;
        let from = |size: u64| Svma(at.start.0 + size);
        let left = |size: u64| end.saturating_sub(at.start.0 + size);
        // What is read stays in memory, so there has to be room first.
        let (mut size, mut code) = (0, Vec::new());
        while let more @ 1.. = self.core.size_up_to(from(size), left(size)) {
            size += more;
        }
        if !self.room.lock().unwrap_or_else(PoisonError::into_inner).take(at.start.0, size) {
            return Err(Refused::TooMuchCode(self.file.clone()));
        }
        loop {
            let size = code.len() as u64;
            match self.core.bytes_up_to(from(size), left(size)) {
                [] => break,
                bytes => code.extend_from_slice(bytes),
            }
        }
        if code.is_empty() {
            return Err(Refused::NotInCopy(self.file.clone()));
        }
        let place = |address: u64| address.wrapping_sub(at.base.0);
        let core = made_core(&[(place(at.start.0), code)], &functions(symbols, *end, at.base.0));
        let image = Image::parse(core).map_err(|why| Refused::of_image(&self.file, why))?;
        Ok(self.identified(image))
    }

    /// The file has no build id: that its kernel was at the same place tells that it is the recorded one.
    fn check(&self, place: &KernelPlace) -> Result<(), Refused> {
        let symbol = place.symbol.as_deref().unwrap_or("_text");
        let (known, there) = self.symbol.get_or_init(|| (symbol.to_owned(), self.symbols.address(symbol)));
        match if known == symbol { *there } else { self.symbols.address(symbol) } {
            Some(there) if there == place.address.0 => Ok(()),
            Some(there) => {
                let (file, linked, recorded) = (self.file.clone(), Svma(there), place.address);
                Err(Refused::OtherAddresses { file, linked, recorded })
            }
            None => Err(Refused::UnknownKernel(self.file.clone())),
        }
    }

    fn identified(&self, image: Image) -> Image {
        match self.core.identity() {
            Some(identity) => image.of_file(identity),
            None => image,
        }
    }

    /// The files beside the core file in their states.
    pub(super) fn beside(&self) -> Vec<FileIdentity> {
        self.files.iter().skip(1).copied().flatten().collect()
    }
}

impl BinarySearch {
    /// The same search for the files of a recording: one in a directory may have a copy of its kernel there.
    pub fn of_recording(self, recording: &perfdata::Recording) -> Self {
        let kernel_copies = recording.directory().map(KernelCopies::beside_recording).unwrap_or_default();
        BinarySearch { kernel_copies, ..self }
    }

    /// The code of a module of the kernel in the copy that was named for the kernel, or else in that of the recording; `None` if there is none.
    pub(super) fn module_in_copy(&self, module: &Module) -> Option<Result<Binary, Refused>> {
        let mut given = self
            .overrides
            .iter()
            .filter(|given| given.is_core && given.recorded.as_deref().is_some_and(kernel::is_name));
        let given = given.next().map(|given| given.file.as_path());
        let file = given.or_else(|| self.kernel_copies.of_recording())?;
        let at = module.loaded?;
        let read = || {
            let copy = self.kernel_copies.read(file)?;
            let place = module.kernel.as_ref().ok_or(Refused::KernelHidden)?;
            let image = copy.module(&name_of(&module.path), place, at)?;
            Ok(Binary { beside: copy.beside(), ..self.binary(file.to_owned(), image) })
        };
        Some(read())
    }

    /// The kernel's code in a copy of its memory.
    pub(super) fn kernel_in_copy(&self, file: PathBuf, place: &KernelPlace) -> Result<Binary, Refused> {
        let copy = self.kernel_copies.read(&file)?;
        let image = copy.kernel(place)?;
        Ok(Binary { beside: copy.beside(), ..self.binary(file, image) })
    }
}

/// What the kernel calls the module that was recorded as `[ext4]` or as the path of its file.
fn name_of(path: &str) -> String {
    match path.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.to_owned(),
        None => {
            let file = base_name(path);
            match file.split_once(".ko") {
                Some((name, _)) => name.replace('-', "_"),
                None => file,
            }
        }
    }
}

/// A line of `/proc/modules`.
struct Loaded {
    name: String,
    start: u64,
    /// After its last byte, or where the next one begins.
    end: u64,
}

/// Reads `/proc/modules`, by address: `ext4 1048576 2 jbd2,mbcache, Live 0xffffffffc0400000`. Lines that are none of these are passed over.
fn loaded_modules(path: &Path) -> Result<Vec<Loaded>, ImageError> {
    let mut loaded = Vec::new();
    for line in Lines::of(path, MOST_OF_LIST)? {
        let text = line?;
        let mut fields = text.split_ascii_whitespace();
        let (Some(name), Some(size), Some(at)) = (fields.next(), fields.next(), fields.nth(3)) else { continue };
        let start = at.strip_prefix("0x").and_then(|at| u64::from_str_radix(at, 16).ok());
        if let (Some(start @ KERNEL_HALF..), Ok(size)) = (start, size.parse::<u64>()) {
            loaded.push(Loaded { name: name.to_owned(), start, end: start.saturating_add(size) });
        }
    }
    loaded.sort_by(|one, other| (one.start, &one.name).cmp(&(other.start, &other.name)));
    loaded.dedup_by_key(|module| module.start);
    let starts: Vec<u64> = loaded.iter().skip(1).map(|next| next.start).collect();
    loaded.iter_mut().zip(starts).for_each(|(module, next)| module.end = module.end.min(next));
    Ok(loaded)
}

/// The code of each module: from where it was loaded to the end of its last function. `symbols`: by the name in brackets.
fn copied_modules(
    loaded: &[Loaded],
    mut symbols: BTreeMap<String, ModuleSymbols>,
) -> BTreeMap<(String, u64), CopiedModule> {
    let mut modules = BTreeMap::new();
    for Loaded { name, start, end } in loaded {
        let Some(all) = symbols.get(name) else { continue };
        let within = all.partition_point(|symbol| symbol.0 < *start)..all.partition_point(|symbol| symbol.0 < *end);
        let within = all.get(within).unwrap_or_default();
        let Some(last) = within.iter().rposition(|symbol| symbol.1.is_function()) else { continue };
        let (code, data) = within.split_at(last + 1);
        let begin = code.last().map_or(*start, |symbol| symbol.0);
        let end = data.iter().map(|symbol| symbol.0).find(|next| *next > begin).unwrap_or(*end);
        let copied = CopiedModule { end, symbols: code.to_vec() };
        modules.insert((name.clone(), *start), copied);
    }
    // BPF programs, trampolines, pages of probes: each is a module of its own.
    symbols.retain(|name, _| name == "bpf" || name.starts_with("__builtin__"));
    for symbols in symbols.into_values() {
        let mut next = u64::MAX;
        let mut ends: Vec<u64> = Vec::new();
        for pair in symbols.windows(2).rev() {
            // One after the other, from the last to the first: those at one address end with the same.
            if let [one, other] = pair {
                next = if other.0 > one.0 { other.0 } else { next };
                ends.push(next);
            }
        }
        let ends = ends.into_iter().rev().chain([u64::MAX]);
        for (symbol, end) in symbols.iter().zip(ends) {
            let start = symbol.0;
            let copied =
                CopiedModule { end: end.min(start.saturating_add(MOST_OF_MADE)), symbols: vec![symbol.clone()] };
            modules.insert((symbol.2.clone(), start), copied);
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binaries::kallsyms::Kind;

    #[test]
    fn modules_have_the_names_that_the_kernel_gives_them() {
        let check = |path, expected| assert_eq!(name_of(path), expected);
        check("/lib/modules/6.1.0/kernel/sound/snd-timer.ko.xz", "snd_timer");
        check("[snd_timer]", "snd_timer");
        check("ext4.ko", "ext4");
        check("bpf_prog_0123456789abcdef_a", "bpf_prog_0123456789abcdef_a");
    }

    #[test]
    fn a_module_ends_with_its_last_function_and_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("modules");
        let at = |offset: u64| KERNEL_MODULES + offset;
        let line = |name: &str, size: u64, offset| format!("{name} {size} 0 - Live {:#x} (OE)\n", at(offset));
        let lines = [line("b", 0x4000, 0x2000), line("a", 0x9000, 0), line("c", 16, 0x8000), "odd\n".into()];
        std::fs::write(&list, lines.concat()).unwrap();
        let loaded = loaded_modules(&list).unwrap();
        let found: Vec<_> = loaded.iter().map(|of| (of.name.as_str(), of.start, of.end)).collect();
        assert_eq!(found, [("a", at(0), at(0x2000)), ("b", at(0x2000), at(0x6000)), ("c", at(0x8000), at(0x8010))]);
        let symbol = |offset, kind, name: &str| (at(offset), kind, name.to_owned());
        let of =
            |symbols: &[(u64, Kind, &str)]| symbols.iter().map(|(at, kind, name)| symbol(*at, *kind, name)).collect();
        let symbols = BTreeMap::from([
            ("a".to_owned(), of(&[(0x10, Kind::Local, "f"), (0x20, Kind::Local, "g"), (0x1000, Kind::Data, "d")])),
            // One is in another module, and the last one ends with the module.
            ("b".to_owned(), of(&[(0x10, Kind::Local, "elsewhere"), (0x2000, Kind::Global, "h")])),
            ("c".to_owned(), of(&[(0x8000, Kind::Data, "no code")])),
            (
                "bpf".to_owned(),
                of(&[(0x9000, Kind::Local, "p"), (0x9000, Kind::Local, "q"), (0x9040, Kind::Local, "r")]),
            ),
        ]);
        let copied = copied_modules(&loaded, symbols);
        let found: Vec<_> =
            copied.iter().map(|((name, start), of)| (name.as_str(), *start, of.end, of.symbols.len())).collect();
        let made = |name, start, end| (name, at(start), at(end), 1);
        let expected = [
            ("a", at(0), at(0x1000), 2),
            ("b", at(0x2000), at(0x6000), 1),
            made("p", 0x9000, 0x9040),
            made("q", 0x9000, 0x9040),
            made("r", 0x9040, 0x9040 + MOST_OF_MADE),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn there_is_room_for_a_kernels_modules_and_no_more() {
        let mut room = Room::new();
        let taken = [(1, 100 << 20), (2, 100 << 20), (3, 100 << 20), (1, 100 << 20), (4, 56 << 20), (5, 1)];
        assert_eq!(taken.map(|(start, bytes)| room.take(start, bytes)), [true, true, false, true, true, false]);
    }
}
