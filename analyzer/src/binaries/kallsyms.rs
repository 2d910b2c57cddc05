//! The names of the kernel's functions, as text: `/proc/kallsyms`, of which `perf` keeps copies, and `System.map`.
//!
//! ```text
//! ffffffff81000000 T _text
//! ffffffff810002b0 t do_one_initcall
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use formats::file_identity::FileIdentity;

use super::DebugFile;
use super::lines::Lines;
use crate::code::{Image, ImageError, MadeFunction, made_elf};
use crate::recording::{KERNEL_HALF, KERNEL_MODULES};

/// Bytes of a list of functions that are read: `/proc/kallsyms` has some 10 MB.
pub const LARGEST_LIST: u64 = 128 << 20;
/// Code of the kernel is filled up to whole pages.
const PAGE: u64 = 4096;

/// What a symbol is: of several at one address the last kind has the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Data,
    /// A mark of the linker, such as `_text`.
    Mark,
    Local,
    Global,
}

impl Kind {
    fn of(letter: &str, name: &str) -> Self {
        match letter {
            _ if matches!(name, "_text" | "_stext" | "_sinittext") => Self::Mark,
            "T" => Self::Global,
            "t" | "w" | "W" => Self::Local,
            _ => Self::Data,
        }
    }

    /// Whether code begins there.
    pub fn is_function(self) -> bool {
        self > Self::Data
    }
}

/// Symbols of a module of the kernel, by address.
pub(super) type ModuleSymbols = Vec<(u64, Kind, String)>;

/// The symbols of the kernel's image, by address; of several at one address the last one ends where the next one begins.
pub(super) struct Symbols(Vec<(u64, Kind, String)>);

impl Symbols {
    /// Reads a list; lines that are none of a symbol are passed over, and those of modules.
    pub fn read(path: &Path) -> Result<Self, ImageError> {
        let mut symbols = Vec::new();
        read(path, |symbol, of| {
            if of.is_none() {
                symbols.push(symbol);
            }
        })?;
        Ok(Self::of_image(symbols))
    }

    /// The same, and the symbols of modules, by the names of these: `[ext4]` without the brackets.
    pub fn read_with_modules(path: &Path) -> Result<(Self, BTreeMap<String, ModuleSymbols>), ImageError> {
        let (mut symbols, mut of_modules) = (Vec::new(), BTreeMap::<String, ModuleSymbols>::new());
        read(path, |symbol, of| match of {
            None => symbols.push(symbol),
            Some(module) => match of_modules.get_mut(module) {
                Some(others) => others.push(symbol),
                None => {
                    of_modules.insert(module.to_owned(), vec![symbol]);
                }
            },
        })?;
        of_modules.values_mut().for_each(|symbols| symbols.sort());
        Ok((Self::of_image(symbols), of_modules))
    }

    fn of_image(mut symbols: Vec<(u64, Kind, String)>) -> Self {
        symbols.retain(|(address, ..)| *address < KERNEL_MODULES);
        symbols.sort();
        Symbols(symbols)
    }

    /// Where a symbol is.
    pub fn address(&self, symbol: &str) -> Option<u64> {
        self.0.iter().find(|(_, _, name)| name == symbol).map(|(there, ..)| *there)
    }

    /// The functions, so far below where the list has them.
    pub fn functions(&self, below: u64) -> Vec<MadeFunction<'_>> {
        functions(&self.0, KERNEL_MODULES, below)
    }
}

/// The functions of symbols, of which the last one ends at `end`, so far below where the list has them.
pub(super) fn functions(symbols: &[(u64, Kind, String)], end: u64, below: u64) -> Vec<MadeFunction<'_>> {
    let ends = symbols.iter().skip(1).map(|(start, ..)| *start).chain([end]);
    let functions = symbols.iter().zip(ends).filter(|((start, kind, _), end)| end > start && kind.is_function());
    functions
        .map(|((start, _, name), end)| (start.wrapping_sub(below), end - start, Cow::Borrowed(name.as_bytes())))
        .collect()
}

/// Reads the symbols of a list, each with the module that it is of; that of the image is none.
fn read(path: &Path, mut take: impl FnMut((u64, Kind, String), Option<&str>)) -> Result<(), ImageError> {
    for line in Lines::of(path, LARGEST_LIST)? {
        let text = line?;
        let mut fields = text.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let module = fields.next().and_then(|of| of.strip_prefix('[')?.strip_suffix(']'));
        let address = u64::from_str_radix(address, 16).ok();
        if let Some(address) = address.filter(|address| *address >= KERNEL_HALF) {
            take((address, Kind::of(kind, name), name.to_owned()), module);
        }
    }
    Ok(())
}

impl DebugFile {
    /// A list of the symbols of a kernel without symbols, moved to where the file has its code: lists are of a boot, and files as linked.
    /// `None` if it is no such list, or hides addresses.
    pub(super) fn of_list(path: &Path, image: &Image) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        let symbols = Symbols::read(path).ok()?;
        let text = symbols.address("_text").or_else(|| symbols.address("_stext"))?;
        let linked = image.segments().iter().find(|segment| segment.executable)?.start;
        // Nothing says of which build a list is. One of another length of code is not of this.
        let length = symbols.address("_etext").map(|end| end.wrapping_sub(text));
        let code = image.sections().iter().find(|section| section.name == ".text").map(|section| section.size);
        if length.zip(code).is_some_and(|(listed, code)| listed.abs_diff(code) >= PAGE) {
            return None;
        }
        let functions = symbols.functions(text.wrapping_sub(linked.0));
        let names = Image::parse(made_elf(&[], &functions).0).ok()?;
        Some(DebugFile { path: path.to_owned(), image: names.of_file(FileIdentity::of(&metadata)) })
    }
}
