//! Instruction set extensions.

use iced_x86::{Code, CpuidFeature};

use super::isa_table::{NAMES, name};

/// What every x86-64 processor has, or had before extensions were named.
const BASE: &str = "base";

/// The names of all extensions, sorted.
pub fn isa_names() -> &'static [&'static str] {
    NAMES
}

/// The extension that added an opcode. Of several that it needs, the most special: `vpaddb` on `zmm0` is `avx512bw` and not
/// `avx512f`; on `xmm16` not `avx512vl` either.
pub(super) fn isa(code: Code) -> &'static str {
    let features = code.cpuid_features();
    let special = features.iter().min_by_key(|&&feature| generality(feature));
    special.and_then(|&feature| name(feature)).unwrap_or(BASE)
}

/// How little a feature says when it comes with others.
fn generality(feature: CpuidFeature) -> u8 {
    match feature {
        CpuidFeature::AVX512VL => 4,
        _ if name(feature) == Some(BASE) => 3,
        CpuidFeature::AVX | CpuidFeature::AVX512F | CpuidFeature::SSE | CpuidFeature::MMX => 2,
        CpuidFeature::AVX512BW => 1,
        _ => 0,
    }
}
