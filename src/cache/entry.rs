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
pub const VERSION: u32 = 1;

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
