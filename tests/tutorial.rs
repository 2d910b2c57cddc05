//! docs/guide/tutorial.md: all of its lines run, and print the words that it shows. Numbers are not compared.

#[path = "support/place.rs"]
mod place;
mod support;

use std::path::Path;

use place::Place;
use support::{NO_FOLDER, has};
use testing::guide::Reader;

#[test]
fn the_tutorial_is_true() {
    let Some(place) = Place::to_trace_by_default() else { return };
    if !["gcc", "clang-19", "make", "valgrind", "python3"].into_iter().all(has) {
        return;
    }
    let hbbp = Path::new(env!("CARGO_BIN_EXE_hbbp")).parent().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/tutorial.md");
    let mut reader = Reader::new(place.folder(), &[hbbp], &[("XDG_CACHE_HOME", NO_FOLDER)]);
    reader.follow(&std::fs::read_to_string(page).unwrap());
}
