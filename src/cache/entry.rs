//! The bytes of an entry.
//!
//! ```text
//! bytes   0..8    8..12     12..44   44..76              76..
//!         magic   version   key      digest of the rest  findings, as postcard writes them
//! ```

use blake3::hash;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::key::Key;

/// Changes with what an entry looks like around its findings; those are of one build.
pub const VERSION: u32 = 3;

const MAGIC: &[u8; 8] = b"hbbpkept";
const HEADER: usize = 76;

fn header(key: &Key, body: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..44].copy_from_slice(key.as_bytes());
    header[44..].copy_from_slice(hash(body).as_bytes());
    header
}

/// An entry with a value; `None` if it has no such form.
pub fn written(key: &Key, value: &impl Serialize) -> Option<Vec<u8>> {
    let mut bytes = postcard::to_extend(value, vec![0; HEADER]).ok()?;
    let header = header(key, bytes.get(HEADER..)?);
    bytes.get_mut(..HEADER)?.copy_from_slice(&header);
    Some(bytes)
}

/// The value of an entry; `None` unless it is one of that key, and whole.
pub fn read<T: DeserializeOwned>(key: &Key, bytes: &[u8]) -> Option<T> {
    let (found, body) = bytes.split_at_checked(HEADER)?;
    if found != header(key, body) {
        return None;
    }
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use analyzer::counting::Detail;
    use analyzer::recording::Subset;
    use analyzer::{BinarySearch, Options};
    use model::Rules;

    use super::*;
    use crate::cache::content::Content;

    fn key(length: u64) -> Key {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        let options = Options {
            search: BinarySearch::default(),
            subset: Subset::Whole,
            group_by: Default::default(),
            detail: Detail::Blocks,
            core: None,
            threads: 1,
            rules: &Rules::default(),
        };
        Key::of(&Content::of(&file, length, 1).unwrap(), &options, Detail::Blocks, &[]).unwrap()
    }

    #[test]
    fn an_entry_is_of_its_key_and_whole_or_none() {
        let value = (vec![1_u64, 2, 300], "text".to_owned(), Some(0.1_f64));
        let bytes = written(&key(1), &value).unwrap();
        let read = |bytes: &[u8]| read::<(Vec<u64>, String, Option<f64>)>(&key(1), bytes);
        assert_eq!(read(&bytes), Some(value.clone()));
        assert_eq!(super::read::<(Vec<u64>, String, Option<f64>)>(&key(2), &bytes), None, "that of another key");
        for bit in 0..8 * bytes.len() {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&other), None, "bit {bit}");
        }
        (0..bytes.len()).for_each(|length| assert_eq!(read(&bytes[..length]), None, "cut at {length}"));
        assert_eq!(read(&[&bytes[..], &[0]].concat()), None);
    }

    /// Its digest is right, and its lengths are not.
    #[test]
    fn lengths_that_lie_take_no_memory() {
        let of = |body: &[u8]| [&header(&key(1), body)[..], body].concat();
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read::<Vec<u64>>(&key(1), &of(&huge)), None);
        assert_eq!(read::<Vec<[u64; 32]>>(&key(1), &of(&huge)), None);
        assert_eq!(read::<String>(&key(1), &of(&huge)), None);
        assert_eq!(read::<std::collections::HashMap<u64, u64>>(&key(1), &of(&huge)), None);
        assert_eq!(read::<Vec<u64>>(&key(1), &of(&[2, 1, 1, 7])), None, "more than its value");
        assert_eq!(read::<Vec<u64>>(&key(1), &of(&[2, 1, 1])), Some(vec![1, 1]));
    }
}
