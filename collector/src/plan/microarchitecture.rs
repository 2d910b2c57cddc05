//! Which of the makers' event lists applies to a core PMU.

use crate::machine::Cpu;
use crate::machine::pmu::Pmu;

/// Cores that share event codes and the constraints on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Microarchitecture {
    /// Intel Nehalem and Westmere: no PREC_DIST, no retired taken branches.
    Nehalem,
    /// Intel Sandy Bridge to Comet Lake: PREC_DIST is c0/01.
    SandyBridge,
    /// Intel Ice Lake and later large cores: PREC_DIST is 00/01 on fixed counter 0.
    IceLake,
    /// Intel Bonnell and Saltwell.
    Bonnell,
    /// Intel Silvermont and Airmont: precise events on one counter only.
    Silvermont,
    /// Intel Knights Landing and Knights Mill: as Silvermont, but no taken branches in Intel's list.
    KnightsLanding,
    /// Intel Goldmont: precise events on one counter only.
    Goldmont,
    /// Intel Goldmont Plus.
    GoldmontPlus,
    /// Intel Tremont: as Goldmont Plus, but no taken branches in Intel's list.
    Tremont,
    /// Intel Gracemont and later small cores.
    Gracemont,
    /// AMD and Hygon, every family since K8.
    Amd,
    /// None of these: only the kernel's generic events are known.
    Unknown,
}

impl Microarchitecture {
    /// The core behind `pmu` on a machine with processor `cpu`.
    ///
    /// Models are those of Linux's `arch/x86/include/asm/intel-family.h`; the kernel's own name of the PMU (`caps/pmu_name`, since 4.14)
    /// decides for models not listed. Intel families 6, 18 and 19 beyond all that are taken as current large cores.
    pub fn of(cpu: &Cpu, pmu: &Pmu) -> Self {
        match cpu.vendor.as_str() {
            "AuthenticAMD" | "HygonGenuine" => Self::Amd,
            "GenuineIntel" if matches!(pmu.name.as_str(), "cpu_atom" | "cpu_lowpower") => Self::Gracemont,
            "GenuineIntel" if pmu.name == "cpu_core" => Self::IceLake,
            "GenuineIntel" => intel_model(cpu)
                .or_else(|| intel_name(pmu.caps.get("pmu_name")?))
                .unwrap_or(if is_recent_intel(cpu) { Self::IceLake } else { Self::Unknown }),
            _ => Self::Unknown,
        }
    }
}

fn intel_model(cpu: &Cpu) -> Option<Microarchitecture> {
    use Microarchitecture as M;
    if cpu.family != 6 {
        return None;
    }
    Some(match cpu.model {
        // Core, Core 2 and before.
        0x00..=0x0f | 0x15..=0x17 | 0x1d => M::Unknown,
        0x1a | 0x1e | 0x1f | 0x25 | 0x2c | 0x2e | 0x2f => M::Nehalem,
        0x1c | 0x26 | 0x27 | 0x35 | 0x36 => M::Bonnell,
        0x2a | 0x2d | 0x3a | 0x3e => M::SandyBridge,
        // Haswell, Broadwell.
        0x3c | 0x3f | 0x45 | 0x46 | 0x3d | 0x47 | 0x4f | 0x56 => M::SandyBridge,
        // Skylake to Comet Lake, Cannon Lake.
        0x4e | 0x5e | 0x55 | 0x66 | 0x8e | 0x9e | 0xa5 | 0xa6 => M::SandyBridge,
        // Silvermont, Airmont.
        0x37 | 0x4a | 0x4c | 0x4d | 0x5a | 0x5d | 0x75 => M::Silvermont,
        0x57 | 0x85 => M::KnightsLanding,
        0x5c | 0x5f => M::Goldmont,
        0x7a => M::GoldmontPlus,
        // Snow Ridge, Elkhart Lake, Jasper Lake.
        0x86 | 0x96 | 0x9c => M::Tremont,
        // Gracemont (Alder Lake N), Crestmont (Sierra Forest, Grand Ridge), Darkmont (Clearwater Forest).
        0xbe | 0xaf | 0xb6 | 0xdd => M::Gracemont,
        // Ice Lake, Tiger Lake, Rocket Lake, Sapphire and Emerald Rapids, Granite Rapids.
        0x6a | 0x6c | 0x7d | 0x7e | 0x9d | 0x8c | 0x8d | 0xa7 | 0x8f | 0xcf | 0xad | 0xae => M::IceLake,
        _ => return None,
    })
}

fn intel_name(name: &str) -> Option<Microarchitecture> {
    use Microarchitecture as M;
    Some(match name.to_ascii_lowercase().as_str() {
        "nehalem" | "westmere" => M::Nehalem,
        "bonnell" => M::Bonnell,
        "sandybridge" | "ivybridge" | "haswell" | "broadwell" | "skylake" => M::SandyBridge,
        "silvermont" => M::Silvermont,
        "knights-landing" => M::KnightsLanding,
        "goldmont" => M::Goldmont,
        "goldmont_plus" => M::GoldmontPlus,
        "tremont" => M::Tremont,
        "gracemont" | "crestmont" | "darkmont" => M::Gracemont,
        "icelake" | "sapphire_rapids" | "granite_rapids" => M::IceLake,
        _ => return None,
    })
}

/// Later than every large core that is known by its model.
fn is_recent_intel(cpu: &Cpu) -> bool {
    matches!((cpu.family, cpu.model), (6, 0x8c..) | (18.., _))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vendor: &str, family: u32, model: u32, pmu: &str, kernel_name: &str, expected: Microarchitecture) {
        let cpu = Cpu { vendor: vendor.into(), family, model, ..Cpu::default() };
        let mut device = Pmu { name: pmu.into(), ..Pmu::default() };
        if !kernel_name.is_empty() {
            device.caps.insert("pmu_name".into(), kernel_name.into());
        }
        assert_eq!(Microarchitecture::of(&cpu, &device), expected, "{vendor} {family} {model:#x} {pmu} {kernel_name}");
    }

    #[test]
    fn models_names_and_newcomers() {
        use Microarchitecture as M;
        let intel = "GenuineIntel";
        check(intel, 6, 0x2c, "cpu", "westmere", M::Nehalem);
        check(intel, 6, 0x3e, "cpu", "", M::SandyBridge);
        check(intel, 6, 0x55, "cpu", "skylake", M::SandyBridge);
        check(intel, 6, 0x8f, "cpu", "sapphire_rapids", M::IceLake);
        check(intel, 6, 0x97, "cpu_core", "alderlake_hybrid", M::IceLake);
        check(intel, 6, 0x97, "cpu_atom", "alderlake_hybrid", M::Gracemont);
        check(intel, 6, 0xaf, "cpu", "crestmont", M::Gracemont);
        check(intel, 6, 0x57, "cpu", "knights-landing", M::KnightsLanding);
        check(intel, 6, 0x85, "cpu", "", M::KnightsLanding);
        check(intel, 6, 0x7a, "cpu", "goldmont_plus", M::GoldmontPlus);
        for model in [0x86, 0x96, 0x9c, 0xf2] {
            check(intel, 6, model, "cpu", "Tremont", M::Tremont);
        }
        // A model not listed, but named by its kernel; one that nobody knows; one older than everything.
        check(intel, 6, 0xf1, "cpu", "darkmont", M::Gracemont);
        check(intel, 19, 1, "cpu", "", M::IceLake);
        check(intel, 6, 0x17, "cpu", "core", M::Unknown);
        check(intel, 15, 4, "cpu", "", M::Unknown);
        check("AuthenticAMD", 26, 2, "cpu", "", M::Amd);
        check("HygonGenuine", 24, 1, "cpu", "", M::Amd);
        check("CentaurHauls", 7, 0x3b, "cpu", "", M::Unknown);
    }
}
