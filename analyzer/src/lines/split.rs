//! Debug information in files of its own: `.dwo` beside the objects, or `.dwp` beside the program.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gimli::{
    DebugAddrBase, DebugRngListsBase, DwarfPackage, DwarfPackageSections, DwoId, EndianSlice, IndexSectionId,
    LittleEndian, Section,
};

use super::missing::Missing;
use super::sections::{Bytes, Sections, package_sections};
use super::strings::string;
use super::units::{DebugFile, OpenUnit};
use crate::code::Image;

/// The bytes of a program's package, if there is one.
pub(super) struct PackageBytes(Option<DwarfPackageSections<Vec<u8>>>);

impl PackageBytes {
    /// Reads `PROGRAM.dwp`. The error says why one that is there cannot be used.
    pub fn beside(program: &Path) -> Result<Self, Missing> {
        let path = package_of(program);
        if !path.is_file() {
            return Ok(Self(None));
        }
        let image = match Image::open_debug(&path) {
            Ok(image) => image,
            Err(source) => return Err(Missing::Package { path, source }),
        };
        match package_sections(&image) {
            Ok(sections) => Ok(Self(Some(sections))),
            Err(source) => Err(Missing::PackageSections { path, source }),
        }
    }

    pub fn none() -> Self {
        Self(None)
    }

    /// The package; the error says what is damaged.
    pub fn package(&self) -> Result<Option<DwarfPackage<Bytes<'_>>>, Missing> {
        let bytes = |bytes| EndianSlice::new(bytes, LittleEndian);
        let package = self.0.as_ref().map(|sections| sections.borrow(|section| bytes(section.as_slice()), bytes(&[])));
        package.transpose().map_err(Missing::PackageIndex)
    }
}

/// Where the package of a program is, if it has one.
pub(super) fn package_of(program: &Path) -> PathBuf {
    let mut path = OsString::from(program);
    path.push(".dwp");
    path.into()
}

/// How often a `.dwo` file is read, and as a whole the units of a package: link-time optimization puts some units into one file.
const MOST_TIMES: u64 = 64;

/// Where the split parts of units are looked for.
pub(super) struct SplitFiles<'data> {
    /// The folder of the program.
    pub folder: PathBuf,
    /// The folder that stands for `/`.
    pub symfs: Option<PathBuf>,
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
    ) -> Option<Result<T, Missing>> {
        let part = SplitPart::of(main, skeleton)?;
        let shared = Shared::of(skeleton);
        let packed = self.package.as_ref().map(|package| package.find_cu(part.id, &main.dwarf)).transpose();
        let packed = match packed {
            Ok(packed) => packed.flatten(),
            Err(error) => return Some(Err(Missing::PackageIndex(error))),
        };
        if let Some(dwarf) = packed {
            let file = DebugFile::of(dwarf);
            return Some(with_unit(&file, &shared, read).ok_or(Missing::PackagedPart(part.path)));
        }
        let Some(image) = self.places(&part).find_map(|place| Image::open_debug(&place).ok()) else {
            return Some(Err(Missing::Part(part.path)));
        };
        Some(Sections::of_split(&image).map_err(Missing::from).and_then(|sections| {
            let mut dwarf = sections.dwarf();
            dwarf.make_dwo(&main.dwarf);
            let file = DebugFile::of(dwarf);
            with_unit(&file, &shared, read).ok_or(Missing::OtherBuild(part.path))
        }))
    }

    /// The units without those whose split part is in bytes that were read too often already.
    pub fn read_seldom(&self, file: &mut DebugFile<'data>, units: Vec<usize>) -> Vec<usize> {
        let mut left: HashMap<Option<PathBuf>, u64> = HashMap::new();
        let wanted: Vec<usize> = units
            .iter()
            .copied()
            .filter(|&index| {
                let part = file.open(index).ok().and_then(|skeleton| SplitPart::of(file, &skeleton));
                let Some((place, bytes, all)) = part.and_then(|part| self.bytes(&part)) else { return true };
                let left = left.entry(place).or_insert(all.saturating_mul(MOST_TIMES));
                left.checked_sub(bytes).inspect(|&less| *left = less).is_some()
            })
            .collect();
        if wanted.len() < units.len() {
            file.notes.push(format!(
                "{} units share their split debug information with too many others and are not read",
                units.len() - wanted.len()
            ));
        }
        wanted
    }

    /// The file that a part is in, or `None` for the package; the bytes read for the part, and all that the file has of them.
    fn bytes(&self, part: &SplitPart) -> Option<(Option<PathBuf>, u64, u64)> {
        let packed = self.package.as_ref().and_then(|package| Some((package, package.cu_index.find(part.id.0)?)));
        if let Some((package, row)) = packed {
            let all = package.debug_info.reader().slice().len() + package.debug_abbrev.reader().slice().len();
            let parts = package.cu_index.sections(row).ok()?;
            let read =
                parts.filter(|part| matches!(part.section, IndexSectionId::DebugInfo | IndexSectionId::DebugAbbrev));
            return Some((None, read.map(|part| u64::from(part.size)).sum(), all as u64));
        }
        let file = self.places(part).find_map(|place| place.canonicalize().ok())?;
        let bytes = file.metadata().ok()?.len();
        Some((Some(file), bytes, bytes))
    }

    /// Where the `.dwo` file of a part may be.
    pub fn places(&self, part: &SplitPart) -> impl Iterator<Item = PathBuf> {
        let recorded = match &self.symfs {
            Some(root) => root.join(part.path.strip_prefix("/").unwrap_or(&part.path)),
            None => part.path.clone(),
        };
        let beside = part.path.file_name().map(|name| self.folder.join(name));
        [recorded].into_iter().chain(beside)
    }
}

/// What a skeleton says of its split part.
pub(super) struct SplitPart {
    /// Of the `.dwo` file.
    pub path: PathBuf,
    id: DwoId,
}

impl SplitPart {
    /// `None` if the unit is not split.
    pub fn of<'data>(main: &DebugFile<'data>, skeleton: &OpenUnit<'data>) -> Option<Self> {
        let root = &skeleton.root;
        let path = |value| {
            let path = string(&main.dwarf, &skeleton.unit, value)?;
            Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()))
        };
        let name = root.attr_value(gimli::DW_AT_dwo_name).or_else(|| root.attr_value(gimli::DW_AT_GNU_dwo_name))?;
        let folder = root.attr_value(gimli::DW_AT_comp_dir).and_then(path).unwrap_or_default();
        Some(Self { path: folder.join(path(name)?), id: skeleton.unit.dwo_id? })
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
