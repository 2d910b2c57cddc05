//! Cores that code is taken to cost as on.

use analyzer::Microarchitecture;

/// The core of a name.
///
/// # Errors
/// There is none: those that there are, in words.
pub fn named(word: &str) -> Result<Microarchitecture, String> {
    let words = || Microarchitecture::ALL.map(Microarchitecture::word).join(", ");
    Microarchitecture::by_word(word).ok_or_else(|| format!("there are {}", words()))
}
