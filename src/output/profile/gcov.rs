//! GCC's sample profiles, for `-fauto-profile=` (gcc/auto-profile.cc).
//!
//! ```text
//! u32 magic, version, 0
//! summary     version 3 only: which counts are hot
//! names       u32 tag, length; in version 3 files; names
//! functions   u32 tag, length, number; of each: u64 calls, (version 3: u64 time of its first call,) u32 name, positions, calls inlined
//! modules     u32 tag, length, 0
//! working set u32 tag, length; of each 128th of all executions: u32 positions, u64 the count of the one that ran least
//! ```
//! Numbers of 64 bits are two of 32, the lower half first.

use std::collections::BTreeSet;
use std::io::{self, Write};

use analyzer::sample_profile::{FunctionSamples, Location, SampleProfile};

use super::llvm_extbin::names_in;
use super::summary::Summary;

/// Which GCC reads the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum GcovVersion {
    /// GCC 5 to 11
    #[value(name = "1")]
    V1 = 1,
    /// GCC 12 to 15
    #[value(name = "2")]
    V2 = 2,
    /// GCC 16
    #[value(name = "3")]
    V3 = 3,
}

const MAGIC: u32 = 0x6763_6461;
const SUMMARY: u32 = 0xa800_0000;
const NAMES: u32 = 0xaa00_0000;
const FUNCTIONS: u32 = 0xac00_0000;
const MODULES: u32 = 0xae00_0000;
/// No GCC reads it; `dump_gcov` and `profile_merger` of AutoFDO want it.
const WORKING_SET: u32 = 0xaf00_0000;
/// `HIST_TYPE_INDIR_CALL_TOPN`: the one kind of value that is counted, targets of calls.
const CALL_TARGETS: u32 = 7;
/// No file, where version 3 asks for the file of a name.
const NO_FILE: u32 = u32::MAX;

/// Writes a sample profile as GCC's AutoFDO reads it (gcc/auto-profile.cc).
pub fn gcov(profile: &SampleProfile, version: GcovVersion, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Words::default();
    [MAGIC, version as u32, 0].into_iter().for_each(|word| bytes.word(word));
    if version >= GcovVersion::V3 {
        summary(&Summary::of(profile), &mut bytes);
    }
    let names = Names::of(profile);
    bytes.section(NAMES, |bytes| names.write(version, bytes));
    bytes.section(FUNCTIONS, |bytes| {
        bytes.word(profile.functions.len() as u32);
        for (name, function) in &profile.functions {
            bytes.counter(function.head);
            if version >= GcovVersion::V3 {
                bytes.counter(0);
            }
            instance(name, function, &names, bytes);
        }
    });
    bytes.section(MODULES, |bytes| bytes.word(0));
    bytes.section(WORKING_SET, |bytes| working_set(profile, bytes));
    out.write_all(&bytes.0)
}

/// A function, or what was inlined at one call.
fn instance(name: &str, function: &FunctionSamples, names: &Names<'_>, bytes: &mut Words) {
    bytes.word(names.index(name));
    bytes.word(function.body.len() as u32);
    bytes.word(function.inlined.len() as u32);
    // GCC up to 15 looks at the line only and takes the last position of it that it reads: the one that ran most.
    let mut positions: Vec<_> = function.body.iter().collect();
    positions.sort_by_key(|(location, sample)| (location.offset, sample.count, location.discriminator));
    for (&location, sample) in positions {
        bytes.word(place(location));
        bytes.word(sample.targets.len() as u32);
        bytes.counter(sample.count);
        for (target, &count) in &sample.targets {
            bytes.word(CALL_TARGETS);
            bytes.counter(names.index(target).into());
            bytes.counter(count);
        }
    }
    for ((location, name), inlined) in &function.inlined {
        bytes.word(place(*location));
        instance(name, inlined, names, bytes);
    }
}

fn place(Location { offset, discriminator }: Location) -> u32 {
    u32::from(offset) << 16 | discriminator & 0xffff
}

fn summary(of: &Summary, bytes: &mut Words) {
    bytes.word(SUMMARY);
    for value in [of.total, of.largest, of.most_calls, of.counts, of.functions, of.cutoffs.len() as u64] {
        bytes.counter(value);
    }
    for cutoff in &of.cutoffs {
        bytes.word(cutoff.share);
        bytes.counter(cutoff.smallest);
        bytes.counter(cutoff.counts);
    }
}

fn working_set(profile: &SampleProfile, bytes: &mut Words) {
    const PARTS: u64 = 128;
    // The last part stands for 99.9 %: what ran once or twice is no part of a working set.
    let shares: Vec<u32> = (1..=PARTS).map(|part| (part * 1_000_000 / PARTS).min(999_000) as u32).collect();
    for cutoff in Summary::with_cutoffs(profile, &shares).cutoffs {
        bytes.word(cutoff.counts as u32);
        bytes.counter(cutoff.smallest);
    }
}

/// All names, sorted. GCC takes index 0 for none.
struct Names<'profile>(Vec<&'profile str>);

impl<'profile> Names<'profile> {
    fn of(profile: &'profile SampleProfile) -> Self {
        let mut names = BTreeSet::from([""]);
        for (name, function) in &profile.functions {
            names.insert(name);
            names_in(function, &mut names);
        }
        Self(names.into_iter().collect())
    }

    fn index(&self, name: &str) -> u32 {
        self.0.binary_search(&name).map_or(0, |index| index as u32)
    }

    fn write(&self, version: GcovVersion, bytes: &mut Words) {
        if version >= GcovVersion::V3 {
            bytes.word(0);
        }
        bytes.word(self.0.len() as u32);
        for name in &self.0 {
            bytes.string(name, version);
            if version >= GcovVersion::V3 {
                bytes.word(NO_FILE);
            }
        }
    }
}

#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn counter(&mut self, count: u64) {
        self.0.extend(count.to_le_bytes());
    }

    /// Its length with the zero at the end in bytes; in version 1 in words, and padded with zeros.
    fn string(&mut self, text: &str, version: GcovVersion) {
        let length = text.len() + 1;
        match version {
            GcovVersion::V1 => {
                let words = length.div_ceil(4);
                self.word(words as u32);
                self.0.extend(text.as_bytes());
                self.0.resize(self.0.len() + words * 4 - text.len(), 0);
            }
            GcovVersion::V2 | GcovVersion::V3 => {
                self.word(length as u32);
                self.0.extend(text.as_bytes());
                self.0.push(0);
            }
        }
    }

    /// A tag, the length of what follows in words, and what follows. No compiler reads the length.
    fn section(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        self.word(tag);
        let length = self.0.len();
        self.word(0);
        write(self);
        let words = ((self.0.len() - length - 4) / 4) as u32;
        self.0[length..length + 4].copy_from_slice(&words.to_le_bytes());
    }
}
