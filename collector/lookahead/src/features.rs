//! Which extensions a stub may use: only what this CPU has, as a stub must never trap.

use iced_x86::CpuidFeature;

/// Whether this CPU has `feature`, and the crate knows how to treat its registers.
pub(crate) fn present(feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    use std::arch::is_x86_feature_detected as has;
    match feature {
        F::INTEL8086 | F::INTEL186 | F::INTEL286 | F::INTEL386 | F::INTEL486 | F::X64 | F::CMOV | F::CPUID | F::TSC => {
            true
        }
        F::CX8 | F::FPU | F::FPU287 | F::FPU387 => true,
        F::CMPXCHG16B => has!("cmpxchg16b"),
        F::RDTSCP => crate::features::rdtscp(),
        F::RDPID => crate::native::has_rdpid(),
        F::XSAVE => has!("xsave"),
        F::MMX => has!("mmx"),
        F::SSE => has!("sse"),
        F::SSE2 => has!("sse2"),
        F::SSE3 => has!("sse3"),
        F::SSSE3 => has!("ssse3"),
        F::SSE4_1 => has!("sse4.1"),
        F::SSE4_2 => has!("sse4.2"),
        F::SSE4A => has!("sse4a"),
        F::AES => has!("aes"),
        F::PCLMULQDQ => has!("pclmulqdq"),
        F::SHA => has!("sha"),
        F::POPCNT => has!("popcnt"),
        F::LZCNT => has!("lzcnt"),
        F::BMI1 => has!("bmi1"),
        F::BMI2 => has!("bmi2"),
        F::ADX => has!("adx"),
        F::MOVBE => has!("movbe"),
        F::AVX => has!("avx"),
        F::AVX2 => has!("avx2"),
        F::FMA => has!("fma"),
        F::F16C => has!("f16c"),
        F::GFNI => has!("gfni"),
        F::VAES => has!("vaes"),
        F::VPCLMULQDQ => has!("vpclmulqdq"),
        F::AVX_VNNI => has!("avxvnni"),
        // Registers are loaded with BW's instructions; the few CPUs with F alone are not worth their own.
        F::AVX512F => has!("avx512f") && has!("avx512bw"),
        F::AVX512CD => has!("avx512cd"),
        F::AVX512BW => has!("avx512bw"),
        F::AVX512DQ => has!("avx512dq"),
        F::AVX512VL => has!("avx512vl"),
        F::AVX512_IFMA => has!("avx512ifma"),
        F::AVX512_VBMI => has!("avx512vbmi"),
        F::AVX512_VBMI2 => has!("avx512vbmi2"),
        F::AVX512_VNNI => has!("avx512vnni"),
        F::AVX512_BITALG => has!("avx512bitalg"),
        F::AVX512_VPOPCNTDQ => has!("avx512vpopcntdq"),
        F::AVX512_BF16 => has!("avx512bf16"),
        F::AVX512_FP16 => has!("avx512fp16"),
        F::AVX512_VP2INTERSECT => has!("avx512vp2intersect"),
        _ => false,
    }
}

/// No macro tells, but every 64-bit CPU with SSSE3 has it.
fn rdtscp() -> bool {
    std::arch::is_x86_feature_detected!("ssse3")
}

/// How wide vector registers are loaded and stored: 64, 32 or 16 bytes.
pub(crate) fn vector_bytes() -> usize {
    if present(CpuidFeature::AVX512F) {
        64
    } else if present(CpuidFeature::AVX) {
        32
    } else {
        16
    }
}
