//! What makes libraries choose the same code natively and under instrumentation.

use std::env;

/// Capabilities that glibc (2.26 and later) shall not use: callgrind's CPU has none of them, or glibc draws other conclusions from
/// them there. Where a CPU has less than AVX2, both runs have.
///
/// AVX-512 and RTM choose the variants of string functions. Without ERMS, no function uses `rep movsb` from a size on that depends
/// on the maker of the CPU. XSAVEC chooses how functions are bound. The rest follows from the CPU's model, which is another one there.
const NOT_USED: [&str; 12] = [
    "AVX512F",
    "AVX512VL",
    "AVX512BW",
    "AVX512CD",
    "AVX512DQ",
    "RTM",
    "ERMS",
    "XSAVEC",
    "Fast_Unaligned_Load",
    "Fast_Unaligned_Copy",
    "Fast_Rep_String",
    "Prefer_PMINUB_for_stringop",
];

/// Sizes in bytes from which on copying goes another way; glibc would derive them from caches that the instrumented CPU does not have.
const SIZES: [(&str, u64); 3] =
    [("x86_data_cache_size", 32 << 10), ("x86_shared_cache_size", 16 << 20), ("x86_non_temporal_threshold", 12 << 20)];

/// The same for OpenSSL (OPENSSL_ia32cap(3)), which asks the CPU itself: bits to clear in CPUID leaf 1 (EDX, and ECX above), and in leaf 7
/// (EBX, and ECX above). In the first OpenSSL notes with bit 30 that Intel made the CPU, as callgrind's claims. In the second: AVX512F, AVX512DQ,
/// ADX, AVX512IFMA, AVX512CD, SHA, AVX512BW, AVX512VL; AVX512VBMI, AVX512VBMI2, GFNI, VAES, VPCLMULQDQ, AVX512VNNI, AVX512BITALG,
/// AVX512VPOPCNTDQ.
const OPENSSL_CLEARS: [u64; 2] = [0x4000_0000, 0x5f42_f02b_0000];

/// Environment variables (name, value) under which a program runs the same code natively and under callgrind. What is set already
/// stays.
pub fn pinned_environment() -> Vec<(String, String)> {
    const GLIBC: &str = "GLIBC_TUNABLES";
    const OPENSSL: &str = "OPENSSL_ia32cap";
    let not_used = NOT_USED.map(|name| format!("-{name}")).join(",");
    let mut tunables = vec![format!("glibc.cpu.hwcaps={not_used}")];
    tunables.extend(SIZES.iter().map(|(name, size)| format!("glibc.cpu.{name}={size:#x}")));
    let pinned = tunables.join(":");
    let glibc = match env::var(GLIBC) {
        Ok(set) if !set.is_empty() && !set.contains(&pinned) => format!("{set}:{pinned}"),
        _ => pinned,
    };
    let [leaf_1, leaf_7] = OPENSSL_CLEARS;
    let openssl = env::var(OPENSSL).unwrap_or_else(|_| format!("~{leaf_1:#x}:~{leaf_7:#x}"));
    vec![(GLIBC.to_string(), glibc), (OPENSSL.to_string(), openssl)]
}
