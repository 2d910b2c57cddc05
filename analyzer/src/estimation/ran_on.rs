//! On what code is taken to have run.

use formats::calibration::{Calibration, SCHEMA};
use perfdata::{Cache, Features};
use simulated_core::{Core, Measured, Microarchitecture};

/// The core of a recorded machine.
pub(crate) struct RanOn {
    pub(crate) microarchitecture: Microarchitecture,
    /// With the caches of the machine.
    pub(crate) core: Core,
    /// What was measured of it is in that.
    pub(crate) is_calibrated: bool,
    /// What is weaker than it could be, in sentences.
    pub(crate) degradations: Vec<String>,
}

impl RanOn {
    /// What a recording says of its machine; of a core that was `chosen`, only its table is taken.
    pub fn of(features: &Features, calibration: Option<&Calibration>, chosen: Option<Microarchitecture>) -> Self {
        if let Some(microarchitecture) = chosen {
            let core = microarchitecture.core();
            return Self { microarchitecture, core, is_calibrated: false, degradations: Vec::new() };
        }
        let cpuid = features.cpuid.as_deref();
        let microarchitecture = Microarchitecture::of_cpuid(cpuid.unwrap_or_default());
        let size = |level| Cache::data_bytes(&features.caches, level);
        let core = microarchitecture.core().with_caches(size(1), size(2));
        let is_of_cpu = |one: &&Calibration| cpuid.is_some() && one.cpuid.as_deref() == cpuid;
        let is_known = |one: &&Calibration| one.schema.as_deref() == Some(SCHEMA);
        let calibrated = calibration.filter(is_known).filter(is_of_cpu).and_then(measured);
        let calibrated = calibrated.and_then(|measured| core.with_measured(&measured));
        let is_calibrated = calibrated.is_some();
        let mut degradations = Vec::new();
        if microarchitecture == Microarchitecture::Generic {
            degradations.push(format!(
                "there is no table of what code costs on this CPU ({}): it is taken to cost what it does on a generic core",
                cpuid.unwrap_or("the recording does not name it"),
            ));
        }
        if calibration.is_some() && !is_calibrated {
            degradations.push("the calibration in the recording cannot be one of its machine: left out".into());
        }
        Self { microarchitecture, core: calibrated.unwrap_or(core), is_calibrated, degradations }
    }
}

/// What was measured of the machine, if it is all there.
fn measured(calibration: &Calibration) -> Option<Measured> {
    Some(Measured {
        second: calibration.second_cycles?,
        third: calibration.third_cycles?,
        memory: calibration.memory_cycles?,
        second_bytes: calibration.second_kib?.checked_mul(1024)?,
        third_bytes: calibration.third_kib?.checked_mul(1024)?,
    })
}
