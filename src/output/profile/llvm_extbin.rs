//! LLVM's extensible binary sample profiles (llvm/include/llvm/ProfileData/SampleProf.h, `SampleProfWriter.cpp`).
//!
//! ```text
//! ULEB128 magic, version
//! u64 number of sections; of each: u64 kind, flags, offset, size
//! summary        which counts are hot
//! names          all names, sorted; elsewhere names are indices in it
//! offsets        where each function is in the next section: a compiler reads those of its module only
//! functions      ULEB128 throughout
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use analyzer::sample_profile::{FunctionSamples, Location, SampleProfile};
use gimli::leb128::write::Leb128;

use super::llvm_text::largest_first;
use super::summary::Summary;

/// `SPROF42` and the format, 4.
const MAGIC: u64 = 0x5350_524f_4634_3204;
const VERSION: u64 = 103;

/// The kinds of sections (`SecType`).
const SUMMARY: u64 = 1;
const NAMES: u64 = 2;
const OFFSETS: u64 = 4;
const FUNCTIONS: u64 = 32;

/// `SecNameTableFlags::SecFlagUniqSuffix`, in the upper half: names of `-funique-internal-linkage-names` are to be compared whole.
const UNIQUE_NAMES: u64 = 4 << 32;

/// Writes a sample profile in LLVM's extensible binary format.
pub fn llvm_extbin(profile: &SampleProfile, out: &mut dyn Write) -> io::Result<()> {
    let names = Names::of(profile);
    let mut functions = Vec::new();
    let mut offsets = Vec::new();
    number(profile.functions.len() as u64, &mut offsets);
    for (name, function) in largest_first(profile) {
        number(names.index(name), &mut offsets);
        number(functions.len() as u64, &mut offsets);
        number(function.head, &mut functions);
        number(names.index(name), &mut functions);
        body(function, &names, &mut functions);
    }
    let unique = names.0.keys().any(|name| name.contains(".__uniq."));
    let sections = [
        (SUMMARY, 0, summary(&Summary::of(profile))),
        (NAMES, if unique { UNIQUE_NAMES } else { 0 }, names.section()),
        (OFFSETS, 0, offsets),
        (FUNCTIONS, 0, functions),
    ];
    let mut header = Vec::new();
    number(MAGIC, &mut header);
    number(VERSION, &mut header);
    header.extend((sections.len() as u64).to_le_bytes());
    let mut offset = (header.len() + sections.len() * 32) as u64;
    for (kind, flags, bytes) in &sections {
        let size = bytes.len() as u64;
        header.extend([*kind, *flags, offset, size].map(u64::to_le_bytes).concat());
        offset += size;
    }
    out.write_all(&header)?;
    sections.iter().try_for_each(|(_, _, bytes)| out.write_all(bytes))
}

/// All names of a profile, sorted, with their indices.
struct Names<'profile>(BTreeMap<&'profile str, u64>);

impl<'profile> Names<'profile> {
    fn of(profile: &'profile SampleProfile) -> Self {
        let mut names = BTreeSet::new();
        for (name, function) in &profile.functions {
            names.insert(name.as_str());
            names_in(function, &mut names);
        }
        Self(names.into_iter().zip(0..).collect())
    }

    fn index(&self, name: &str) -> u64 {
        self.0[name]
    }

    fn section(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        number(self.0.len() as u64, &mut bytes);
        for name in self.0.keys() {
            bytes.extend(name.as_bytes());
            bytes.push(0);
        }
        bytes
    }
}

/// All names inside a function: of what was called, and of what was inlined.
pub(super) fn names_in<'profile>(function: &'profile FunctionSamples, names: &mut BTreeSet<&'profile str>) {
    names.extend(function.body.values().flat_map(|sample| sample.targets.keys().map(String::as_str)));
    for ((_, name), inlined) in &function.inlined {
        names.insert(name);
        names_in(inlined, names);
    }
}

fn body(function: &FunctionSamples, names: &Names<'_>, out: &mut Vec<u8>) {
    number(function.total, out);
    number(function.body.len() as u64, out);
    for (&location, sample) in &function.body {
        place(location, out);
        number(sample.count, out);
        number(sample.targets.len() as u64, out);
        let mut targets: Vec<_> = sample.targets.iter().collect();
        targets.sort_by_key(|&(name, count)| (Reverse(*count), name));
        for (name, &count) in targets {
            number(names.index(name), out);
            number(count, out);
        }
    }
    number(function.inlined.len() as u64, out);
    for ((location, name), inlined) in &function.inlined {
        place(*location, out);
        number(names.index(name), out);
        body(inlined, names, out);
    }
}

fn place(Location { offset, discriminator }: Location, out: &mut Vec<u8>) {
    number(offset.into(), out);
    number(discriminator.into(), out);
}

fn summary(of: &Summary) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in [of.total, of.largest, of.most_calls, of.counts, of.functions, of.cutoffs.len() as u64] {
        number(value, &mut bytes);
    }
    for cutoff in &of.cutoffs {
        number(cutoff.share.into(), &mut bytes);
        number(cutoff.smallest, &mut bytes);
        number(cutoff.counts, &mut bytes);
    }
    bytes
}

/// Appends a number as ULEB128.
fn number(value: u64, out: &mut Vec<u8>) {
    out.extend(Leb128::unsigned(value).bytes());
}
