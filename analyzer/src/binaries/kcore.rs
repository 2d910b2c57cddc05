//! The copy of the running kernel that `perf record --kcore` keeps in `kcore_dir`: `kcore`, an ELF core file whose addresses are those where the
//! code ran, and beside it `kallsyms`, with the names.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::Refused;
use crate::address::Svma;
use crate::code::{Image, MadeFunction, made_elf};
use crate::recording::{KERNEL_HALF, KERNEL_MODULES, KernelPlace};

/// Bytes of code that are read: a kernel has 10 to 40 MB.
const MOST: u64 = 256 << 20;
/// Bytes of names that are read: `/proc/kallsyms` has some 10 MB.
const MOST_NAMES: u64 = 128 << 20;

/// The kernel's code in such a file, with its names. `core`: the file, opened.
pub(super) fn kernel_of(file: &Path, core: &Image, place: &KernelPlace) -> Result<Image, Refused> {
    let symbols = symbols(&file.with_file_name("kallsyms"))?;
    // The file has no build id: that its kernel was at the same place tells that it is the recorded one.
    let symbol = place.symbol.as_deref().unwrap_or("_text");
    match symbols.iter().find(|(_, _, name)| name == symbol).map(|(there, ..)| *there) {
        Some(there) if there == place.address.0 => {}
        Some(there) => {
            let (file, linked, recorded) = (file.to_owned(), Svma(there), place.address);
            return Err(Refused::OtherAddresses { file, linked, recorded });
        }
        None => return Err(Refused::UnknownKernel(file.to_owned())),
    }
    let is_of_image = |start: u64| (KERNEL_HALF..KERNEL_MODULES).contains(&start);
    let segments = core.segments().iter().filter(|segment| segment.executable && is_of_image(segment.start.0));
    let (mut runs, mut left): (Vec<(u64, Vec<u8>)>, u64) = (Vec::new(), MOST);
    for segment in segments {
        left = left.checked_sub(segment.size).ok_or_else(|| Refused::TooMuchCode(file.to_owned()))?;
        let Some(bytes) = core.bytes_at(segment.start, segment.size) else {
            return Err(Refused::CutOff(file.to_owned()));
        };
        runs.push((segment.start.0, bytes.to_vec()));
    }
    let ends = symbols.iter().skip(1).map(|(start, ..)| *start).chain([KERNEL_MODULES]);
    let functions: Vec<MadeFunction<'_>> = symbols
        .iter()
        .zip(ends)
        .filter(|((start, kind, _), end)| end > start && *kind > Kind::Data)
        .map(|((start, _, name), end)| (*start, end - start, Cow::Borrowed(name.as_bytes())))
        .collect();
    Image::parse(made_elf(&runs, &functions).0).map_err(Refused::Unreadable)
}

/// What a symbol is: of several at one address the last kind has the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
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
}

/// The symbols of the kernel's image, by address; of several at one address the last one ends where the next one begins.
fn symbols(path: &Path) -> Result<Vec<(u64, Kind, String)>, Refused> {
    let unreadable = |source| Refused::Unreadable(crate::code::ImageError::Read { path: path.to_owned(), source });
    let lines = BufReader::new(File::open(path).map_err(unreadable)?.take(MOST_NAMES)).split(b'\n');
    let mut symbols = Vec::new();
    for line in lines {
        let line = line.map_err(unreadable)?;
        let text = String::from_utf8_lossy(&line);
        let mut fields = text.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let address = u64::from_str_radix(address, 16).ok();
        if let Some(address) = address.filter(|address| (KERNEL_HALF..KERNEL_MODULES).contains(address)) {
            symbols.push((address, Kind::of(kind, name), name.to_owned()));
        }
    }
    symbols.sort();
    Ok(symbols)
}
