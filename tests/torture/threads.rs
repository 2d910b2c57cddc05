//! Many threads, and threads that come and go.

use crate::trial::{Trial, check};

#[test]
fn four_hundred_threads_and_short_lived_ones() {
    if let Some(trial) = Trial::of("threads") {
        check(&trial);
    }
}
