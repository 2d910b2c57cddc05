//! What compilers pack into a discriminator.

/// Which of the blocks on a line an instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Discriminator {
    /// The block on the line: 0 is the first.
    pub base: u32,
    /// How many copies the compiler made of each instruction that share its executions, as when it unrolls a loop; at least 1.
    pub duplication: u32,
}

impl Default for Discriminator {
    fn default() -> Self {
        Self { base: 0, duplication: 1 }
    }
}

/// How a compiler encodes discriminators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A plain number: GCC up to 15, and compilers that are not known.
    Plain,
    /// LLVM: three numbers, each with a prefix that says how long it is (`DILocation` in `DebugInfoMetadata.h`):
    /// ```text
    /// bits    1             absent: 0
    ///         0 vvvvv 0     5 bits
    ///         0 vvvvv 1 vvvvvvv     12 bits, the lower 5 first
    /// order   base, duplication factor, copy identifier, from the lowest bit
    /// ```
    Prefixed,
    /// LLVM with `-enable-fs-discriminator`: the lower 8 bits are the base, those above say which pass made a copy.
    FlowSensitive,
    /// GCC from 16: base in bits 0 to 7, multiplicity in bits 8 to 14, copy in bits 15 to 25.
    Fields,
}

impl Encoding {
    /// By the compiler that `DW_AT_producer` names.
    pub fn of_producer(producer: &str) -> Self {
        if producer.contains("clang") || producer.contains("LLVM") {
            return Self::Prefixed;
        }
        // `GNU C17 12.2.0 -mtune=generic`, `GNU C++14 16.1.0 20260401`: the first word with dots is the version.
        let mut words = producer.strip_prefix("GNU ").unwrap_or_default().split(' ');
        let version = words.find_map(|word| word.split_once('.')?.0.parse::<u32>().ok());
        if version.is_some_and(|major| major >= 16) { Self::Fields } else { Self::Plain }
    }

    /// Takes a discriminator apart.
    pub fn decode(self, discriminator: u32) -> Discriminator {
        let (base, duplication) = match self {
            Self::Plain => (discriminator, 1),
            Self::Prefixed => (first(discriminator), first(without_first(discriminator))),
            Self::FlowSensitive => (discriminator & 0xff, 1),
            Self::Fields => (discriminator & 0xff, discriminator >> 8 & 0x7f),
        };
        Discriminator { base, duplication: duplication.max(1) }
    }
}

/// The first of the numbers with a prefix.
fn first(packed: u32) -> u32 {
    let value = packed >> 1;
    match (packed & 1, value & 0x20) {
        (1, _) => 0,
        (_, 0) => value & 0x1f,
        _ => value >> 1 & 0xfe0 | value & 0x1f,
    }
}

fn without_first(packed: u32) -> u32 {
    match (packed & 1, packed & 0x40) {
        (1, _) => packed >> 1,
        (_, 0) => packed >> 7,
        _ => packed >> 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `DILocation::encodeDiscriminator` packs them.
    fn encode(numbers: [u32; 3]) -> u32 {
        let mut packed = 0_u64;
        let mut shift = 0;
        let last = numbers.iter().rposition(|&number| number > 0).map_or(0, |last| last + 1);
        for number in &numbers[..last] {
            let (bits, length) = match number {
                0 => (1, 1),
                1..0x20 => (number << 1, 7),
                _ => ((number & 0x1f | (number & 0xfe0) << 1 | 0x20) << 1, 14),
            };
            packed |= u64::from(bits) << shift;
            shift += length;
        }
        packed as u32
    }

    #[test]
    fn prefixed_numbers_come_apart_again() {
        for base in [0, 1, 5, 31, 32, 100, 4095] {
            for duplication in [0, 1, 4, 31, 32, 999] {
                let decoded = Encoding::Prefixed.decode(encode([base, duplication, 3]));
                assert_eq!(decoded, Discriminator { base, duplication: duplication.max(1) });
            }
        }
        // As printed by `llvm-dwarfdump`: `discriminator 2` is the second block, 1 a duplication factor that is absent.
        assert_eq!(Encoding::Prefixed.decode(2).base, 1);
        assert_eq!(Encoding::Prefixed.decode(0), Discriminator::default());
    }

    #[test]
    fn other_compilers_pack_otherwise() {
        assert_eq!(Encoding::Plain.decode(7), Discriminator { base: 7, duplication: 1 });
        assert_eq!(Encoding::Fields.decode(0x0001_0403), Discriminator { base: 3, duplication: 4 });
        assert_eq!(Encoding::FlowSensitive.decode(0x1203), Discriminator { base: 3, duplication: 1 });
    }

    #[test]
    fn the_producer_says_which() {
        let of = Encoding::of_producer;
        assert_eq!(of("Debian clang version 19.1.7"), Encoding::Prefixed);
        assert_eq!(of("clang LLVM (rustc version 1.95.0)"), Encoding::Prefixed);
        assert_eq!(of("GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2"), Encoding::Plain);
        assert_eq!(of("GNU C++17 16.1.0 20260420 -O2"), Encoding::Fields);
        assert_eq!(of("GNU C 4.6.x-google 20110718 (prerelease)"), Encoding::Plain);
        assert_eq!(of("Go cmd/compile"), Encoding::Plain);
    }
}
