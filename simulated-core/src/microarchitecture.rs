//! Which core a CPU has.

use std::fmt;

use crate::core::Core;
use crate::tables::{amd, generic, intel};

/// Cores that have a table, and one that stands for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Microarchitecture {
    /// AMD, 2019.
    Zen2,
    /// AMD, 2020.
    Zen3,
    /// AMD, 2022.
    Zen4,
    /// AMD, 2024.
    Zen5,
    /// Intel, 2015; with Kaby Lake to Comet Lake and Cascade Lake, which have the same core.
    Skylake,
    /// Intel, 2019 (Sunny Cove); with Tiger Lake and Rocket Lake.
    IceLake,
    /// Intel, 2021: Alder Lake and Sapphire Rapids; with Redwood Cove.
    GoldenCove,
    /// Intel, 2021: the small cores of Alder Lake; with Crestmont.
    Gracemont,
    /// None of them.
    Generic,
}

impl Microarchitecture {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Zen2,
        Self::Zen3,
        Self::Zen4,
        Self::Zen5,
        Self::Skylake,
        Self::IceLake,
        Self::GoldenCove,
        Self::Gracemont,
        Self::Generic,
    ];

    /// That of a CPU, as recordings name it (`HEADER_CPUID`): vendor, family, model and stepping, `GenuineIntel,6,143,8`, family and model as
    /// the makers' manuals count them (SDM volume 2A, CPUID). [`Self::Generic`] for those without a table. Of a CPU with two kinds of cores
    /// it is the large one.
    pub fn of_cpuid(cpuid: &str) -> Self {
        let mut fields = cpuid.split(',').map(str::trim);
        let vendor = fields.next().unwrap_or_default();
        let mut number = || fields.next()?.parse::<u32>().ok();
        let (Some(family), Some(model)) = (number(), number()) else { return Self::Generic };
        match (vendor, family) {
            ("AuthenticAMD", _) => of_amd(family, model),
            ("GenuineIntel", 6) => of_intel(model),
            _ => Self::Generic,
        }
    }

    /// What it is like.
    pub fn core(self) -> Core {
        match self {
            Self::Zen2 => amd::ZEN_2,
            Self::Zen3 => amd::ZEN_3,
            Self::Zen4 => amd::ZEN_4,
            Self::Zen5 => amd::ZEN_5,
            Self::Skylake => intel::SKYLAKE,
            Self::IceLake => intel::ICE_LAKE,
            Self::GoldenCove => intel::GOLDEN_COVE,
            Self::Gracemont => intel::GRACEMONT,
            Self::Generic => generic::GENERIC,
        }
    }

    /// That with this name, in lower case and with hyphens: `zen-4`, `golden-cove`.
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// Its name as one word of options: `zen-4`, `golden-cove`.
    pub fn word(self) -> String {
        self.name().to_lowercase().replace(' ', "-")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zen2 => "Zen 2",
            Self::Zen3 => "Zen 3",
            Self::Zen4 => "Zen 4",
            Self::Zen5 => "Zen 5",
            Self::Skylake => "Skylake",
            Self::IceLake => "Ice Lake",
            Self::GoldenCove => "Golden Cove",
            Self::Gracemont => "Gracemont",
            Self::Generic => "generic",
        }
    }
}

impl fmt::Display for Microarchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Families and models as Linux has them (`arch/x86/kernel/cpu/amd.c`).
fn of_amd(family: u32, model: u32) -> Microarchitecture {
    match (family, model) {
        (0x17, 0x30..=0x4f | 0x60..=0x7f | 0x90..=0x91 | 0xa0..=0xaf) => Microarchitecture::Zen2,
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => Microarchitecture::Zen3,
        (0x19, 0x10..=0x1f | 0x60..=0xaf) => Microarchitecture::Zen4,
        (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Microarchitecture::Zen5,
        _ => Microarchitecture::Generic,
    }
}

/// Models of family 6 as Linux has them (`arch/x86/include/asm/intel-family.h`).
fn of_intel(model: u32) -> Microarchitecture {
    match model {
        0x4e | 0x55 | 0x5e | 0x66 | 0x8e | 0x9e | 0xa5 | 0xa6 => Microarchitecture::Skylake,
        0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0x9d | 0xa7 => Microarchitecture::IceLake,
        0x8f | 0x97 | 0x9a | 0xaa | 0xac | 0xad | 0xae | 0xb7 | 0xba | 0xbf | 0xcf => Microarchitecture::GoldenCove,
        0xaf | 0xb6 | 0xbe => Microarchitecture::Gracemont,
        _ => Microarchitecture::Generic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_have_their_cores() {
        for (cpuid, expected) in [
            ("AuthenticAMD,23,49,0", Microarchitecture::Zen2),
            ("AuthenticAMD,25,1,1", Microarchitecture::Zen3),
            ("AuthenticAMD,25,17,1", Microarchitecture::Zen4),
            ("AuthenticAMD,25,160,2", Microarchitecture::Zen4),
            ("AuthenticAMD,26,2,1", Microarchitecture::Zen5),
            ("GenuineIntel,6,85,7", Microarchitecture::Skylake),
            ("GenuineIntel,6,106,6", Microarchitecture::IceLake),
            ("GenuineIntel,6,143,8", Microarchitecture::GoldenCove),
            ("GenuineIntel,6,151,2", Microarchitecture::GoldenCove),
            ("GenuineIntel,6,175,3", Microarchitecture::Gracemont),
            // Of before 2015, of after these tables, of others, and what nobody writes.
            ("GenuineIntel,6,63,2", Microarchitecture::Generic),
            ("AuthenticAMD,23,1,2", Microarchitecture::Generic),
            ("AuthenticAMD,23,80,0", Microarchitecture::Generic),
            ("AuthenticAMD,25,176,0", Microarchitecture::Generic),
            ("AuthenticAMD,26,80,0", Microarchitecture::Generic),
            ("HygonGenuine,24,0,1", Microarchitecture::Generic),
            ("GenuineIntel,6", Microarchitecture::Generic),
            ("GenuineIntel,15,4,1", Microarchitecture::Generic),
            ("", Microarchitecture::Generic),
        ] {
            assert_eq!(Microarchitecture::of_cpuid(cpuid), expected, "{cpuid}");
        }
    }

    #[test]
    fn words_are_read_back() {
        for one in Microarchitecture::ALL {
            assert_eq!(Microarchitecture::by_word(&one.word()), Some(one));
        }
        assert_eq!(Microarchitecture::by_word("Zen 4"), None);
    }

    #[test]
    fn tables_are_possible() {
        for one in Microarchitecture::ALL {
            let core = one.core();
            assert!(core.width >= 3.0 && core.window >= 64 && core.wrong_path > 0.0, "{one}");
            assert!(core.levels.windows(2).all(|two| two[0].lines < two[1].lines), "{one}");
            assert!(core.levels.iter().all(|level| level.beyond > 0.0), "{one}");
        }
    }
}
