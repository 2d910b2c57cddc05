//! The bytes of an entry.
//!
//! ```text
//! bytes   0..8    8..12     12..44   44..76                  76..84           84..116                  116..
//!         magic   version   key      digest of 76.. to the   length of the    digest of the replicates  lengths of the lists of
//!                                    end of the value        two that follow                            replicates, and the value, as
//!                                                                                                       postcard writes them;
//!                                                                                                       replicates, each after the other
//! ```

use std::fs::File;
use std::io::Read;

use analyzer::uncertainty::Sampled;
use blake3::{Hasher, hash};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::key::Key;

/// Changes with what an entry looks like around its findings; those are of one build.
pub const VERSION: u32 = 5;

const MAGIC: &[u8; 8] = b"hbbpkept";
/// What the first digest is of begins here.
const CHECKED: usize = 76;
const HEADER: usize = 116;

/// What comes before what is checked.
fn begin(key: &Key, checked: &[u8]) -> [u8; CHECKED] {
    let mut begin = [0; CHECKED];
    begin[..8].copy_from_slice(MAGIC);
    begin[8..12].copy_from_slice(&VERSION.to_le_bytes());
    begin[12..44].copy_from_slice(key.as_bytes());
    begin[44..].copy_from_slice(hash(checked).as_bytes());
    begin
}

/// How many bytes lists of replicates of these lengths are.
pub fn bytes_of(lengths: &[usize]) -> Option<usize> {
    lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length))?.checked_mul(Sampled::BYTES)
}

/// An entry with a value and replicates; `None` if it has no such form.
pub fn written(key: &Key, value: &impl Serialize, replicates: &[&[Sampled]]) -> Option<Vec<u8>> {
    let lengths: Vec<usize> = replicates.iter().map(|list| list.len()).collect();
    let mut bytes = postcard::to_extend(&(&lengths, value), vec![0; HEADER]).ok()?;
    let end = bytes.len();
    bytes.reserve_exact(bytes_of(&lengths)?);
    replicates.iter().copied().flatten().for_each(|sampled| sampled.append_to(&mut bytes));
    let (value, replicates) = bytes.split_at_mut_checked(end)?;
    value.get_mut(CHECKED..CHECKED + 8)?.copy_from_slice(&((end - HEADER) as u64).to_le_bytes());
    value.get_mut(CHECKED + 8..HEADER)?.copy_from_slice(hash(replicates).as_bytes());
    let begin = begin(key, value.get(CHECKED..)?);
    value.get_mut(..CHECKED)?.copy_from_slice(&begin);
    Some(bytes)
}

/// An entry whose replicates are still to be read, by another thread if need be.
pub struct Entry<R> {
    pub value: Value,
    pub replicates: Replicates<R>,
}

/// The value of an entry, as bytes.
pub struct Value {
    /// All before the replicates.
    begin: Vec<u8>,
    at: usize,
}

/// Replicates that are still to be read.
pub struct Replicates<R> {
    /// How many are in each list.
    lengths: Vec<usize>,
    digest: [u8; 32],
    from: R,
}

impl Entry<File> {
    /// Reads an entry; `None` unless it is one of that key, and whole.
    pub fn open(key: &Key, file: File) -> Option<Self> {
        let length = file.metadata().ok()?.len();
        Self::read(key, file, length)
    }
}

impl<R: Read> Entry<R> {
    fn read(key: &Key, mut file: R, length: u64) -> Option<Self> {
        let mut bytes = vec![0; HEADER];
        file.read_exact(&mut bytes).ok()?;
        let value = u64::from_le_bytes(*bytes.get(CHECKED..)?.first_chunk()?);
        // No more than there are.
        let length = length.checked_sub(HEADER as u64)?.checked_sub(value)?;
        bytes.reserve_exact(usize::try_from(value).ok()?);
        (&mut file).take(value).read_to_end(&mut bytes).ok()?;
        let (found, checked) = bytes.split_at_checked(CHECKED)?;
        if found != begin(key, checked) {
            return None;
        }
        let digest = *bytes.get(CHECKED + 8..)?.first_chunk()?;
        let (lengths, value) = postcard::take_from_bytes::<Vec<usize>>(bytes.get(HEADER..)?).ok()?;
        let value = Value { at: bytes.len() - value.len(), begin: bytes };
        let is_all = bytes_of(&lengths)? as u64 == length;
        is_all.then_some(Entry { value, replicates: Replicates { lengths, digest, from: file } })
    }
}

impl Value {
    /// What it says; `None` if it has another form.
    pub fn get<T: DeserializeOwned>(&self) -> Option<T> {
        match postcard::take_from_bytes(self.begin.get(self.at..)?) {
            Ok((value, [])) => Some(value),
            _ => None,
        }
    }
}

impl<R: Read> Replicates<R> {
    /// The lists; `None` unless they are whole.
    pub fn read(mut self) -> Option<Vec<Vec<Sampled>>> {
        /// So many are read at a time: they stay in the cache of a core meanwhile.
        const AT_ONCE: usize = 512;
        let (mut digest, mut buffer) = (Hasher::new(), vec![0; AT_ONCE * Sampled::BYTES]);
        let mut lists = Vec::with_capacity(self.lengths.len());
        for length in self.lengths {
            let mut list = Vec::with_capacity(length);
            while list.len() < length {
                let bytes = buffer.get_mut(..(length - list.len()).min(AT_ONCE) * Sampled::BYTES)?;
                self.from.read_exact(bytes).ok()?;
                digest.update(bytes);
                list.extend(bytes.as_chunks().0.iter().map(Sampled::of_bytes));
            }
            lists.push(list);
        }
        (self.digest == *digest.finalize().as_bytes()).then_some(lists)
    }
}

#[cfg(test)]
mod tests {
    use analyzer::counting::Detail;
    use analyzer::recording::Subset;
    use analyzer::uncertainty::Replicates;
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

    type Value = (Vec<u64>, String, Option<f64>);

    /// The value of an entry and its replicates, of which there are two lists.
    fn read<T: DeserializeOwned>(key: &Key, bytes: &[u8]) -> Option<(T, Vec<Vec<Sampled>>)> {
        let entry = Entry::read(key, bytes, bytes.len() as u64)?;
        Some((entry.value.get()?, entry.replicates.read()?))
    }

    fn sampled(value: f64) -> Sampled {
        Sampled { replicates: Replicates::of(value), ..Sampled::default() }
    }

    #[test]
    fn an_entry_is_of_its_key_and_whole_or_none() {
        let (own, other) = (key(1), key(2));
        let value = (vec![1_u64, 2, 300], "text".to_owned(), Some(0.1_f64));
        let lists = vec![vec![sampled(0.5)], vec![sampled(1.5), sampled(2.5)]];
        let bytes = written(&own, &value, &[&lists[0], &lists[1]]).unwrap();
        assert_eq!(read::<Value>(&own, &bytes), Some((value, lists)));
        assert_eq!(read::<Value>(&other, &bytes), None, "that of another key");
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read::<Value>(&own, &changed), None, "bit {bit}");
        }
        (0..bytes.len()).for_each(|length| assert_eq!(read::<Value>(&own, &bytes[..length]), None, "cut at {length}"));
        assert_eq!(read::<Value>(&own, &[&bytes[..], &[0]].concat()), None);
    }

    /// Its digest is right, and its lengths are not.
    #[test]
    fn lengths_that_lie_take_no_memory() {
        fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
            let checked = [&(body.len() as u64).to_le_bytes(), &hash(&[]).as_bytes()[..], body].concat();
            let bytes = [&begin(&key(1), &checked)[..], &checked].concat();
            let entry = Entry::read(&key(1), &bytes[..], bytes.len() as u64)?;
            assert_eq!(entry.replicates.lengths.iter().sum::<usize>(), 0);
            entry.value.get()
        }
        // After no list of replicates.
        let value = |bytes: &[u8]| [&[0], bytes].concat();
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read::<Vec<u64>>(&value(&huge)), None);
        assert_eq!(read::<Vec<[u64; 32]>>(&value(&huge)), None);
        assert_eq!(read::<String>(&value(&huge)), None);
        assert_eq!(read::<std::collections::HashMap<u64, u64>>(&value(&huge)), None);
        assert_eq!(read::<Vec<u64>>(&value(&[2, 1, 1, 7])), None, "more than its value");
        assert_eq!(read::<Vec<u64>>(&value(&[2, 1, 1])), Some(vec![1, 1]));
        // One value after lists of replicates that are not there.
        for lengths in [&huge[..], &[1, 1], &[&[1][..], &huge].concat(), &[&[2][..], &huge, &[4]].concat()] {
            assert_eq!(read::<u64>(&[lengths, &[5]].concat()), None, "{lengths:?}");
        }
        assert_eq!(read::<u64>(&[2, 0, 0, 5]), Some(5), "lists of none");
        let longer = [&[0; CHECKED][..], &u64::MAX.to_le_bytes(), &[0; 32]].concat();
        assert!(Entry::read(&key(1), &longer[..], longer.len() as u64).is_none());
    }
}
