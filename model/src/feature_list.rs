//! The features by name.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::{BlockEnd, Features};

/// One number that trees see of a block.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name in models, tables and CSV files.
    pub name: &'static str,
    /// What it means, in a few words.
    pub meaning: &'static str,
    /// Its value, always finite; 1 for yes and 0 for no.
    pub get: fn(&Features) -> f64,
    /// Puts a value back. What is worked out from other features has none, and is no column of labelled blocks.
    pub set: Option<fn(&mut Features, f64)>,
    /// It is known only from the block's instructions.
    pub needs_code: bool,
}

/// The index of the feature of that name in [`FEATURES`].
pub fn feature_index(name: &str) -> Option<usize> {
    FEATURES.iter().position(|feature| feature.name == name)
}

/// A field of [`Features`] that counts.
macro_rules! number {
    ($field:ident: $type:ty, $meaning:literal) => {
        Feature {
            name: stringify!($field),
            meaning: $meaning,
            get: |block| block.$field as f64,
            set: Some(|block, value| block.$field = value as $type),
            needs_code: false,
        }
    };
}

/// A field of [`Features`] that is true or not.
macro_rules! flag {
    ($field:ident, $meaning:literal) => {
        Feature {
            name: stringify!($field),
            meaning: $meaning,
            get: |block| f64::from(u8::from(block.$field)),
            set: Some(|block, value| block.$field = value != 0.0),
            needs_code: true,
        }
    };
}

/// One of the ways a block ends; blocks that end in none of them fall through.
macro_rules! end {
    ($name:literal, $end:ident, $meaning:literal) => {
        Feature {
            name: $name,
            meaning: $meaning,
            get: |block| f64::from(u8::from(block.end == BlockEnd::$end)),
            set: Some(|block, value| {
                if value != 0.0 {
                    block.end = BlockEnd::$end;
                }
            }),
            needs_code: true,
        }
    };
}

/// All features; those that are columns of labelled blocks in the order of the columns.
pub const FEATURES: &[Feature] = &[
    number!(instructions: u32, "length in instructions"),
    number!(bytes: u64, "length in bytes"),
    flag!(bias, "its branch is the oldest of stacks far more often than its share").without_code(),
    number!(ebs_samples: u64, "event-based samples in it"),
    number!(lbr_streams: u64, "streams of branch stacks over it"),
    worked_out("ebs_share", "part of the EBS count in the sum of both counts", |f| match f.ebs_count + f.lbr_count {
        sum if sum > 0.0 && sum.is_finite() => f.ebs_count / sum,
        _ => 0.5,
    }),
    number!(long_latency: u32, "instructions of tens of cycles: divisions, square roots").of_code(),
    number!(memory_reads: u32, "instructions that read memory").of_code(),
    number!(memory_writes: u32, "instructions that write memory").of_code(),
    number!(simd: u32, "instructions on vectors or floating-point numbers").of_code(),
    worked_out("long_latency_share", "part of such instructions in the block", |f| part(f.long_latency, f)).of_code(),
    worked_out("memory_read_share", "part of such instructions in the block", |f| part(f.memory_reads, f)).of_code(),
    worked_out("memory_write_share", "part of such instructions in the block", |f| part(f.memory_writes, f)).of_code(),
    worked_out("simd_share", "part of such instructions in the block", |f| part(f.simd, f)).of_code(),
    flag!(shadowed, "falls through from a block with an instruction of long latency"),
    flag!(casts_shadow, "an instruction of long latency is the last, or the last before the branch"),
    end!("ends_conditional", Conditional, "ends with a conditional branch"),
    end!("ends_jump", Jump, "ends with a jump to a stated target"),
    end!("ends_indirect", Indirect, "ends with a jump or call to a computed target"),
    end!("ends_call", Call, "ends with a call of a stated target"),
    end!("ends_return", Return, "ends with a return"),
    end!("ends_kernel", Kernel, "ends with a system call or trap"),
];

impl Feature {
    const fn of_code(self) -> Self {
        Feature { needs_code: true, ..self }
    }

    const fn without_code(self) -> Self {
        Feature { needs_code: false, ..self }
    }
}

const fn worked_out(name: &'static str, meaning: &'static str, get: fn(&Features) -> f64) -> Feature {
    Feature { name, meaning, get, set: None, needs_code: false }
}

fn part(of: u32, block: &Features) -> f64 {
    f64::from(of) / f64::from(block.instructions.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_name_of_its_own_and_keeps_its_value() {
        for (index, feature) in FEATURES.iter().enumerate() {
            assert_eq!(feature_index(feature.name), Some(index));
            assert!((feature.get)(&Features::default()).is_finite());
            if let Some(set) = feature.set {
                let mut block = Features::default();
                set(&mut block, 1.0);
                assert_eq!((feature.get)(&block), 1.0, "{}", feature.name);
            }
        }
        assert_eq!(feature_index("colour"), None);
    }

    #[test]
    fn shares_are_of_the_whole() {
        let block = Features { instructions: 8, simd: 2, ebs_count: 30.0, lbr_count: 10.0, ..Features::default() };
        let value = |name: &str| (FEATURES[feature_index(name).unwrap()].get)(&block);
        assert_eq!((value("simd_share"), value("ebs_share"), value("memory_read_share")), (0.25, 0.75, 0.0));
    }
}
