//! What is wrong with debug information.

/// Why a part of the debug information is not read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Damage {
    /// It contradicts the format.
    #[error("{0}")]
    Format(#[from] gimli::Error),
    /// An entry has more attributes than any compiler writes. Some take no bytes, so a small entry could state any number of them.
    #[error("an entry has {0} attributes, at most {MOST_ATTRIBUTES} are believed")]
    Attributes(usize),
    /// Entries share lists of address ranges, so that a small file states very many.
    #[error("its entries state more address ranges than its bytes could hold")]
    Ranges,
    /// Entries share names, so that a small file states very many.
    #[error("its entries state longer names than its bytes could hold")]
    Names,
}

/// Most attributes of an entry.
pub(super) const MOST_ATTRIBUTES: usize = 256;
