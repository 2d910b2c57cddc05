//! What a recording saw of an image.

use serde::{Deserialize, Serialize};

use crate::address::Svma;

/// Addresses at which a recording saw the image's code run: evidence of where instructions start and blocks
/// begin and end. Each list is sorted and free of duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Sampled instruction pointers: starts of instructions.
    pub ips: Vec<Svma>,
    /// Where taken branches went: starts of blocks.
    pub targets: Vec<Svma>,
    /// Where taken branches came from: last instructions of blocks.
    pub sources: Vec<Svma>,
}

impl Observed {
    /// Sorts the addresses and drops duplicates.
    pub fn new(ips: Vec<Svma>, targets: Vec<Svma>, sources: Vec<Svma>) -> Self {
        Self { ips: sorted(ips), targets: sorted(targets), sources: sorted(sources) }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Svma> + '_ {
        self.targets.iter().chain(&self.sources).chain(&self.ips).copied()
    }
}

fn sorted(mut addresses: Vec<Svma>) -> Vec<Svma> {
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
