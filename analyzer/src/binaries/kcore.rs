//! The copy of the running kernel that `perf record --kcore` keeps in `kcore_dir`: `kcore`, an ELF core file whose addresses are those where the
//! code ran, and beside it `kallsyms`, with the names. What archives have of it is one file of the same kind, with the code and the names.

use std::path::Path;

use super::Refused;
use super::kallsyms::Symbols;
use crate::address::Svma;
use crate::code::{Image, made_core};
use crate::recording::{KERNEL_HALF, KERNEL_MODULES, KernelPlace};

/// Bytes of code that are read: a kernel has 10 to 40 MB.
const MOST: u64 = 256 << 20;

/// The kernel's code in such a file, with its names: a core file, too, which is in memory. `core`: the file, opened.
pub(super) fn kernel_of(file: &Path, core: &Image, place: &KernelPlace) -> Result<Image, Refused> {
    let symbols = Symbols::read(&file.with_file_name("kallsyms")).map_err(Refused::Unreadable)?;
    // The file has no build id: that its kernel was at the same place tells that it is the recorded one.
    let symbol = place.symbol.as_deref().unwrap_or("_text");
    match symbols.address(symbol) {
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
    Image::parse(made_core(&runs, &symbols.functions(0))).map_err(Refused::Unreadable)
}
