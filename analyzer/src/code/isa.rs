//! Instruction set extensions.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use iced_x86::{Code, CpuidFeature};

/// What every x86-64 processor has, or had before extensions were named.
const BASE: &str = "base";
/// The floating-point unit that was once a chip of its own.
const X87: &str = "x87";

/// The names of all extensions, sorted.
pub fn isa_names() -> &'static [&'static str] {
    static ALL: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| NAMES.iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect());
    &ALL
}

/// The extension that added an opcode. Of several that it needs, the most special: `vpaddb` on `zmm0` is `avx512bw` and not
/// `avx512f`; on `xmm16` not `avx512vl` either.
pub(super) fn isa(code: Code) -> &'static str {
    let features = code.cpuid_features();
    let special = features.iter().min_by_key(|&&feature| generality(feature));
    special.and_then(|&feature| NAMES.get(feature as usize)).map_or(BASE, String::as_str)
}

/// How little a feature says when it comes with others.
fn generality(feature: CpuidFeature) -> u8 {
    match feature {
        CpuidFeature::AVX512VL => 4,
        _ if is_base(feature) => 3,
        CpuidFeature::AVX | CpuidFeature::AVX512F | CpuidFeature::SSE | CpuidFeature::MMX => 2,
        CpuidFeature::AVX512BW => 1,
        _ => 0,
    }
}

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| CpuidFeature::values().map(name).collect());

fn name(feature: CpuidFeature) -> String {
    let name = format!("{feature:?}").to_ascii_lowercase();
    match feature {
        CpuidFeature::FPU
        | CpuidFeature::FPU287
        | CpuidFeature::FPU287XL_ONLY
        | CpuidFeature::FPU387
        | CpuidFeature::FPU387SL_ONLY
        | CpuidFeature::CYRIX_FPU => X87.to_owned(),
        _ if is_base(feature) => BASE.to_owned(),
        CpuidFeature::SSE4_1 => "sse4.1".to_owned(),
        CpuidFeature::SSE4_2 => "sse4.2".to_owned(),
        CpuidFeature::D3NOW => "3dnow".to_owned(),
        CpuidFeature::D3NOWEXT => "3dnowext".to_owned(),
        _ => name,
    }
}

fn is_base(feature: CpuidFeature) -> bool {
    matches!(
        feature,
        CpuidFeature::INTEL8086
            | CpuidFeature::INTEL8086_ONLY
            | CpuidFeature::INTEL186
            | CpuidFeature::INTEL286
            | CpuidFeature::INTEL286_ONLY
            | CpuidFeature::INTEL386
            | CpuidFeature::INTEL386_ONLY
            | CpuidFeature::INTEL386_A0_ONLY
            | CpuidFeature::INTEL486
            | CpuidFeature::INTEL486_A_ONLY
            | CpuidFeature::X64
            | CpuidFeature::CMOV
            | CpuidFeature::CPUID
            | CpuidFeature::CX8
            | CpuidFeature::MSR
            | CpuidFeature::MULTIBYTENOP
            | CpuidFeature::PAUSE
            | CpuidFeature::SEP
            | CpuidFeature::SYSCALL
            | CpuidFeature::TSC
    )
}
