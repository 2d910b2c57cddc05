//! Ids of bytes that are not in records but by path, for `perf` refuses files that have not the build id of their mapping.

use std::collections::{HashMap, HashSet};
use std::str;

use formats::mapped_files::{IdOfPath, UNKNOWN_ID, is_id_of_bytes};

/// Of each path, what its mappings without an id are of.
#[derive(Debug, Default)]
pub(super) struct ByPath {
    ids: HashMap<Vec<u8>, Vec<u8>>,
    /// Paths of mappings whose file nobody could look at, and which have no id in their records.
    unknown: HashSet<Vec<u8>>,
}

impl ByPath {
    /// The id that is to be in the record of a mapping. `is_here`: its file is at its path.
    pub(super) fn id_in_record(&mut self, path: &[u8], id: Option<Vec<u8>>, is_here: bool) -> Option<Vec<u8>> {
        let Some(id) = id else {
            if self.ids.contains_key(path) {
                return Some(UNKNOWN_ID.to_vec());
            }
            self.unknown.insert(path.to_vec());
            return None;
        };
        if !is_here || !is_id_of_bytes(&id) || self.unknown.contains(path) || str::from_utf8(path).is_err() {
            return Some(id);
        }
        let of_path = self.ids.entry(path.to_vec()).or_insert_with(|| id.clone());
        if *of_path == id { None } else { Some(id) }
    }

    /// By path.
    pub(super) fn to_metadata(&self) -> Vec<IdOfPath> {
        let hexadecimal = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect();
        let of_path = |(path, id): (&Vec<u8>, &Vec<u8>)| {
            Some(IdOfPath { path: str::from_utf8(path).ok()?.to_owned(), id: hexadecimal(id) })
        };
        let mut all: Vec<IdOfPath> = self.ids.iter().filter_map(of_path).collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all
    }
}

#[cfg(test)]
mod tests {
    use formats::mapped_files::id_of_bytes;

    use super::*;

    #[test]
    fn one_file_of_a_path_is_known_by_it() {
        let [one, two] = [b"one", b"two"].map(|bytes| id_of_bytes(&bytes[..]).unwrap().to_vec());
        let built = vec![7; 20];
        let mut paths = ByPath::default();
        assert_eq!(paths.id_in_record(b"/a", Some(built.clone()), true), Some(built.clone()), "a build id");
        assert_eq!(paths.id_in_record(b"/a", Some(one.clone()), true), None);
        assert_eq!(paths.id_in_record(b"/a", Some(one.clone()), true), None, "the same again");
        assert_eq!(paths.id_in_record(b"/a", Some(two.clone()), true), Some(two.clone()), "another one at its path");
        assert_eq!(paths.id_in_record(b"/a", Some(one.clone()), false), Some(one.clone()), "in another root");
        assert_eq!(paths.id_in_record(b"/a", None, false), Some(UNKNOWN_ID.to_vec()));
        // Where one is not known that has no id, others have theirs.
        assert_eq!(paths.id_in_record(b"/b", None, false), None);
        assert_eq!(paths.id_in_record(b"/b", Some(one.clone()), true), Some(one.clone()));
        assert_eq!(paths.id_in_record(b"/\xff", Some(one.clone()), true), Some(one.clone()), "no text");
        let metadata = paths.to_metadata();
        assert_eq!(metadata.iter().map(|of| of.path.as_str()).collect::<Vec<_>>(), ["/a"]);
        assert!(metadata[0].id.starts_with("68626270") && metadata[0].id.len() == 40);
    }
}
