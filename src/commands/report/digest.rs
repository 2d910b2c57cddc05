//! The digest by which a page names the script that may run in it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// `sha256-` and the SHA-256 of a text in base64: a source of a Content-Security-Policy.
pub fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf %s TEXT | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn digests_are_those_of_other_programs() {
        assert_eq!(digest(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(digest("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        assert_eq!(digest(&"a".repeat(120)), "sha256-Lz0zVDLHC1gK8Ojhs2dKfAINaDql9zqq7f3FWvkEwhw=");
    }
}
