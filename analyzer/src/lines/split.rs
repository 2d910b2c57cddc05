//! Debug information in files of its own: `.dwo` beside the objects, or `.dwp` beside the program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gimli::{DebugAddrBase, DebugRngListsBase, DwarfPackage, DwarfPackageSections, DwoId, EndianSlice, LittleEndian};

use super::sections::{Bytes, Sections, package_sections};
use super::strings::string;
use super::units::{DebugFile, OpenUnit};
use crate::code::Image;

/// The bytes of a program's package, if there is one.
pub(super) struct PackageBytes(Option<DwarfPackageSections<Vec<u8>>>);

impl PackageBytes {
    /// Reads `PROGRAM.dwp`. The error says why one that is there cannot be used.
    pub fn beside(program: &Path) -> Result<Self, String> {
        let mut path = OsString::from(program);
        path.push(".dwp");
        let path = PathBuf::from(path);
        if !path.is_file() {
            return Ok(Self(None));
        }
        let image = Image::open_debug(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        package_sections(&image)
            .map(|sections| Self(Some(sections)))
            .map_err(|why| format!("{}: {why}", path.display()))
    }

    pub fn none() -> Self {
        Self(None)
    }

    /// The package; the error says what is damaged.
    pub fn package(&self) -> Result<Option<DwarfPackage<Bytes<'_>>>, String> {
        let bytes = |bytes| EndianSlice::new(bytes, LittleEndian);
        let package = self.0.as_ref().map(|sections| sections.borrow(|section| bytes(section.as_slice()), bytes(&[])));
        package.transpose().map_err(|error| format!("the .dwp file is damaged: {error}"))
    }
}

/// Where the split parts of units are looked for.
pub(super) struct SplitFiles<'data> {
    /// The folder of the program.
    pub folder: PathBuf,
    pub package: Option<DwarfPackage<Bytes<'data>>>,
}

impl<'data> SplitFiles<'data> {
    /// Calls `read` with the split part of a unit and the file it is in; `None` if the unit is not split. The error says why the part
    /// was not found.
    pub fn read<T>(
        &self,
        main: &DebugFile<'data>,
        skeleton: &OpenUnit<'data>,
        read: impl for<'part> FnOnce(&DebugFile<'part>, &OpenUnit<'part>) -> T,
    ) -> Option<Result<T, String>> {
        let root = &skeleton.root;
        let name = root.attr_value(gimli::DW_AT_dwo_name).or_else(|| root.attr_value(gimli::DW_AT_GNU_dwo_name))?;
        let id = skeleton.unit.dwo_id?;
        let shared = Shared::of(skeleton);
        let path = |value| {
            let path = string(&main.dwarf, &skeleton.unit, value)?;
            Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()))
        };
        let name = path(name)?;
        let packed = self.package.as_ref().map(|package| package.find_cu(id, &main.dwarf)).transpose();
        let packed = match packed {
            Ok(packed) => packed.flatten(),
            Err(error) => return Some(Err(format!("the .dwp file is damaged: {error}"))),
        };
        if let Some(dwarf) = packed {
            let file = DebugFile::of(dwarf);
            return Some(
                with_unit(&file, &shared, read)
                    .ok_or_else(|| format!("{} in the .dwp file is damaged", name.display())),
            );
        }
        let folder = root.attr_value(gimli::DW_AT_comp_dir).and_then(path).unwrap_or_default();
        let beside = name.file_name().map(|name| self.folder.join(name));
        let places = [Some(folder.join(&name)), beside];
        let Some(image) = places.iter().flatten().find_map(|place| Image::open_debug(place).ok()) else {
            return Some(Err(format!(
                "there is no {} (nor beside the program, nor a .dwp file)",
                folder.join(&name).display()
            )));
        };
        Some(Sections::of_split(&image).and_then(|sections| {
            let mut dwarf = sections.dwarf();
            dwarf.make_dwo(&main.dwarf);
            let file = DebugFile::of(dwarf);
            with_unit(&file, &shared, read).ok_or_else(|| format!("{} is of another build, or damaged", name.display()))
        }))
    }
}

/// What the split part needs of the skeleton.
struct Shared {
    id: Option<DwoId>,
    low_pc: u64,
    addresses: DebugAddrBase,
    /// Where the lists of ranges are in the main file; before DWARF 5 only.
    ranges: DebugRngListsBase,
}

impl Shared {
    fn of(skeleton: &OpenUnit<'_>) -> Self {
        let unit = &skeleton.unit;
        Self { id: unit.dwo_id, low_pc: unit.low_pc, addresses: unit.addr_base, ranges: unit.rnglists_base }
    }
}

fn with_unit<'part, T>(
    file: &DebugFile<'part>,
    shared: &Shared,
    read: impl FnOnce(&DebugFile<'part>, &OpenUnit<'part>) -> T,
) -> Option<T> {
    let opened = (0..file.units.len()).filter_map(|index| file.open(index).ok());
    let mut opened = { opened }.find(|opened| opened.unit.dwo_id == shared.id)?;
    opened.unit.low_pc = shared.low_pc;
    opened.unit.addr_base = shared.addresses;
    if opened.unit.header.version() < 5 {
        opened.unit.rnglists_base = shared.ranges;
    }
    Some(read(file, &opened))
}
