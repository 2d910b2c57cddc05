//! The files of the source that a unit's lines are in.

use std::collections::HashMap;
use std::path::PathBuf;

use gimli::{AttributeValue, FileEntry, LineProgramHeader};

use super::FileId;
use super::sections::Bytes;
use super::strings::string;
use super::units::{DebugFile, OpenUnit};

/// Bytes of paths that are kept for each byte of a line program. Files share their folders' names, so a few bytes could state very many
/// long paths; programs of C++ and Rust took less than 2.
const FUEL_PER_BYTE: usize = 32;

/// The files that rows and calls of a unit name. Ids count within the unit.
pub(super) struct Files<'file, 'data> {
    file: &'file DebugFile<'data>,
    opened: &'file OpenUnit<'data>,
    /// The table of files; `None` if the unit has none that can be read.
    header: Option<LineProgramHeader<Bytes<'data>>>,
    /// By index in the table.
    known: HashMap<u64, FileId>,
    paths: Vec<String>,
    /// Bytes of paths that may still be kept.
    fuel: usize,
}

impl<'file, 'data> Files<'file, 'data> {
    /// Those of the header of the unit's line program.
    pub fn of(
        file: &'file DebugFile<'data>,
        opened: &'file OpenUnit<'data>,
        header: Option<&LineProgramHeader<Bytes<'data>>>,
    ) -> Self {
        let bytes = header.map_or(0, |header| header.header_length() + header.raw_program_buf().len());
        let fuel = bytes.saturating_mul(FUEL_PER_BYTE);
        Self { file, opened, header: header.cloned(), known: HashMap::new(), paths: Vec::new(), fuel }
    }

    /// The file with an index of the table.
    pub fn at(&mut self, index: u64) -> FileId {
        let Some(entry) = self.header.as_ref().and_then(|header| header.file(index)) else { return FileId::default() };
        if let Some(&known) = self.known.get(&index) {
            return known;
        }
        let path = if self.fuel > 0 { self.path(entry) } else { String::new() };
        self.fuel = self.fuel.saturating_sub(path.len());
        let mut id = FileId::default();
        if self.fuel > 0 && !path.is_empty() {
            self.paths.push(path);
            id = FileId(u32::try_from(self.paths.len()).unwrap_or(0));
        }
        self.known.insert(index, id);
        id
    }

    /// The paths of all that were asked for, the one of id 1 first.
    pub fn into_paths(self) -> Vec<String> {
        self.paths
    }

    /// Paths became too many, so that some files have none.
    pub fn is_exhausted(&self) -> bool {
        self.header.is_some() && self.fuel == 0
    }

    /// Folder of the compilation, folder, name: the later is below the earlier, if it is not absolute.
    fn path(&self, entry: &FileEntry<Bytes<'data>>) -> String {
        let text = |value: AttributeValue<Bytes<'data>>| string(&self.file.dwarf, &self.opened.unit, value);
        let compilation = self.opened.root.attr_value(gimli::DW_AT_comp_dir).and_then(text);
        let folder = self.header.as_ref().and_then(|header| entry.directory(header)).and_then(text);
        let parts = [compilation, folder, text(entry.path_name())];
        let parts = parts.into_iter().flatten().map(|part| PathBuf::from(String::from_utf8_lossy(part).into_owned()));
        parts.collect::<PathBuf>().to_string_lossy().into_owned()
    }
}
