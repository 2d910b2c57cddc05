//! Names of functions, kept as offsets into the files that hold them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Image;
use super::file_bytes::FileBytes;
use crate::address::Svma;

/// Which file holds a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NamesOf {
    /// The file that was mapped.
    Image,
    /// Its separate debug file.
    DebugFile,
}

/// How a function is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Name {
    /// By the string at a file offset.
    String(NamesOf, u32),
    /// A PLT entry, by the string at a file offset of the image.
    Plt(u32),
    /// A PLT entry that calls what the resolver at this address returns.
    PltOfResolver(Svma),
    /// By its place: the index of its region.
    Place(u32),
}

/// The bytes that hold the names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameBytes {
    image: Option<Arc<FileBytes>>,
    debug_file: Option<Arc<FileBytes>>,
}

impl NameBytes {
    /// Of an image and its separate debug file.
    pub fn of(image: &Image, debug_file: Option<&Image>) -> Self {
        NameBytes { image: Some(image.shared_bytes()), debug_file: debug_file.map(Image::shared_bytes) }
    }

    /// Longest name shown, in bytes. Mangled C++ names of several thousand bytes exist; a string table without
    /// terminators must not become one name per symbol.
    pub const LONGEST: u64 = 1 << 14;
    /// Bytes of a name that decide between aliases.
    const COMPARED: u64 = 1 << 10;

    pub fn string(&self, file: NamesOf, offset: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(file, offset, Self::LONGEST))
    }

    /// The order in which aliases of the same rank are preferred: without version (`memcpy@@GLIBC_2.14`), with fewer
    /// leading underscores, shorter, alphabetically first.
    pub(super) fn alias_order(&self, name: Name) -> (bool, usize, usize, &[u8]) {
        let bytes = match name {
            Name::String(file, offset) => self.bytes(file, offset, Self::COMPARED),
            Name::Plt(offset) => self.bytes(NamesOf::Image, offset, Self::COMPARED),
            Name::PltOfResolver(_) | Name::Place(_) => &[],
        };
        let underscores = bytes.iter().take_while(|&&byte| byte == b'_').count();
        (bytes.contains(&b'@'), underscores, bytes.len(), bytes)
    }

    /// The bytes of a name before its end, `longest` at most.
    pub fn bytes(&self, file: NamesOf, offset: u32, longest: u64) -> &[u8] {
        let bytes = match file {
            NamesOf::Image => self.image.as_ref(),
            NamesOf::DebugFile => self.debug_file.as_ref(),
        };
        let bytes = bytes.map_or(&[][..], |bytes| bytes.get_up_to(offset.into(), longest));
        bytes.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}
