//! Build ids, as files and recordings have them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use formats::mapped_files::{UNKNOWN_ID, is_id_of_bytes};
use serde::{Deserialize, Serialize};

/// The build id of a binary: the bytes that identify what a linker wrote.
///
/// A recording keeps at most 20 bytes, and one that does not say how long an id is fills a shorter one up with zeros. So two ids are
/// equal if their first 20 bytes are, zeros at the end left out.
#[derive(Clone, Serialize, Deserialize)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// From its bytes. `None` if there are none, or zeros only, which a recording has for a file without a build id.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        bytes.iter().any(|byte| *byte != 0).then(|| Self(bytes.to_vec()))
    }

    /// From hexadecimal digits, as [`Display`](fmt::Display) writes them. `None` for anything else, and where [`new`](Self::new) says so.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        if rest.is_empty() { Self::new(&bytes) } else { None }
    }

    /// All its bytes, at least one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is made of the bytes of a file that has no build id ([`formats::mapped_files`]).
    pub fn is_of_bytes(&self) -> bool {
        is_id_of_bytes(&self.0)
    }

    /// Whether it stands for a file that nobody could look at.
    pub fn is_unknown(&self) -> bool {
        self.0 == UNKNOWN_ID
    }

    /// The bytes that identify it, in hexadecimal digits: the same of ids that are equal, however they are spelled.
    pub fn identity(&self) -> String {
        Self(self.significant().to_vec()).to_string()
    }

    /// The bytes that identify it.
    fn significant(&self) -> &[u8] {
        let recorded = self.0.get(..perfdata::BuildId::MOST).unwrap_or(&self.0);
        let zeros = recorded.iter().rev().take_while(|byte| **byte == 0).count();
        &recorded[..recorded.len() - zeros]
    }

    /// Its bytes with fewer and fewer of the zeros at the end: all that it may be where a recording filled it up.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &[u8]> {
        (self.significant().len()..=self.0.len()).rev().filter_map(|length| self.0.get(..length))
    }
}

impl PartialEq for BuildId {
    fn eq(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for BuildId {}

impl PartialOrd for BuildId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BuildId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.significant().cmp(other.significant())
    }
}

impl Hash for BuildId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

/// Lower-case hexadecimal, all bytes.
impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// Where a file is kept by its build id: a folder named after the first byte, and a name made of the others.
pub(crate) fn folder_and_name(id: &[u8]) -> Option<(String, String)> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = id.split_first()?;
    Some((hex(&[*first]), hex(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bytes: &[u8]) -> BuildId {
        BuildId::new(bytes).unwrap()
    }

    fn padded(bytes: &[u8]) -> Vec<u8> {
        [bytes, &vec![0; 20 - bytes.len()]].concat()
    }

    #[test]
    fn zeros_that_fill_an_id_up_are_not_part_of_it() {
        let short = [1, 2, 3, 4, 5, 6, 7, 8];
        let ends_in_zero = [1, 2, 3, 4, 5, 6, 7, 0];
        assert_eq!(id(&short), id(&short));
        assert_eq!(id(&short), id(&padded(&short)));
        assert_eq!(id(&ends_in_zero), id(&padded(&ends_in_zero)));
        assert_eq!(id(&[7; 16]), id(&padded(&[7; 16])));
        assert_ne!(id(&short), id(&padded(&[1, 2, 3, 4, 5, 6, 7, 8, 9])));
        assert_ne!(id(&[9; 8]), id(&padded(&short)));
    }

    #[test]
    fn a_recording_keeps_twenty_bytes() {
        let long: Vec<u8> = (1..=32).collect();
        assert_eq!(id(&long), id(&long[..20]));
        assert_ne!(id(&long), id(&long[..19]));
        assert_eq!(id(&long).as_bytes(), long);
    }

    #[test]
    fn nothing_and_zeros_are_no_id() {
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[0; 20]), None);
        assert_eq!(BuildId::from_hex(""), None);
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(BuildId::from_hex("00ff0a").unwrap().as_bytes(), [0, 0xff, 0x0a]);
        assert_eq!(id(&[0, 0xff, 0x0a]).to_string(), "00ff0a");
        for wrong in ["f", "fff", "0g", "+1", "é"] {
            assert_eq!(BuildId::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spellings_go_from_the_longest_to_the_one_without_zeros() {
        let padded = id(&[1, 2, 0, 0]);
        assert_eq!(padded.spellings().collect::<Vec<_>>(), [&[1, 2, 0, 0][..], &[1, 2, 0], &[1, 2]]);
    }
}
