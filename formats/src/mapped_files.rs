//! Which files were mapped: ids made of their bytes, for files without a build id, and what a recorder says of the files of a recording.
//!
//! An id of bytes stands where a build id would, in records of mappings, in the table of build ids and in the folder of copies. It has 20
//! bytes, as most build ids have: `hbbp`, then the first 16 of the BLAKE3 hash of the file. `perf` refuses files that have not the id of their
//! mapping, so the id of a file that is at its path, the only one of this path, is in the metadata only.

use std::io::{self, Read};

use crate::tolerant::{objects, tolerant_objects};

/// Bytes of an id.
pub const ID_BYTES: usize = 20;

/// The id of a mapping whose file nobody could look at, where others of the same path are known by their path.
pub const UNKNOWN_ID: [u8; ID_BYTES] = {
    let mut id = [0; ID_BYTES];
    [id[0], id[1], id[2], id[3]] = MARK;
    id
};

/// How each begins.
const MARK: [u8; 4] = *b"hbbp";

tolerant_objects! {
    /// The `mapped_files` object of a recording's metadata. Where there is one, records of mappings have the id of every file that the
    /// recorder had in its hands: of a mapping without one nothing tells which file it was.
    pub struct MappedFilesMetadata {
        /// ELF files that were mapped as code, and whose id was read.
        pub identified: Option<u64>,
        /// Files that were gone, or could not be read, when the recorder came to them.
        pub unidentified: Option<u64>,
        /// Files that only the process had: in another mount namespace, deleted, replaced or never in a folder.
        pub elsewhere: Option<u64>,
        /// Of these, those that are in the folder of copies, for samples fell in them.
        pub kept: Option<u64>,
        /// Bytes that were copied: of those that were there before, none.
        pub copied_bytes: Option<u64>,
        /// The folder of copies, if there are some.
        pub folder: Option<String>,
        /// What the mappings of a path without an id are of.
        pub by_path: Vec<IdOfPath>,
    }

    /// The id of the bytes of a file without a build id, which mappings of its path have that have none.
    pub struct IdOfPath {
        /// The path, as records of mappings have it.
        pub path: String,
        /// In hexadecimal.
        pub id: String,
    }
}

objects! { MappedFilesMetadata IdOfPath }

/// The id of a file without a build id, made of all its bytes.
///
/// # Errors
/// It cannot be read.
pub fn id_of_bytes(file: impl Read) -> io::Result<[u8; ID_BYTES]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    let mut id = [0; ID_BYTES];
    let (mark, hash) = id.split_at_mut(MARK.len());
    mark.copy_from_slice(&MARK);
    hash.iter_mut().zip(hasher.finalize().as_bytes()).for_each(|(to, from)| *to = *from);
    Ok(id)
}

/// Whether an id is one of bytes.
pub fn is_id_of_bytes(id: &[u8]) -> bool {
    id.len() == ID_BYTES && id.starts_with(&MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_bytes() {
        let one = id_of_bytes(&b"one"[..]).unwrap();
        assert_eq!(one, id_of_bytes(&b"one"[..]).unwrap());
        assert_ne!(one, id_of_bytes(&b"two"[..]).unwrap());
        assert!(is_id_of_bytes(&one) && !is_id_of_bytes(&one[..19]) && !is_id_of_bytes(&[7; ID_BYTES]));
    }
}
