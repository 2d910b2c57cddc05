//! Restartable sequences, with glibc's registration and with the program's own.

use crate::trial::{Trial, check};

#[test]
fn restartable_sequences() {
    if let Some(trial) = Trial::of("rseq") {
        check(&trial);
    }
}

#[test]
fn restartable_sequences_without_glibc() {
    if let Some(trial) = Trial::of("rseq") {
        check(&Trial { environment: vec![("GLIBC_TUNABLES", "glibc.pthread.rseq=0")], ..trial });
    }
}
