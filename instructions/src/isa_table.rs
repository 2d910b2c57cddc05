//! The names of instruction set extensions: what reports, filters and models say, whatever a decoder calls them.

use iced_x86::CpuidFeature;

/// Defines the list of names, and a function from a feature to the name before the row that has it.
macro_rules! names {
    ($($name:literal => $($feature:ident)+;)+) => {
        /// All names, sorted.
        pub(super) const NAMES: &[&str] = &[$($name),+];

        /// The name of a feature; `None` of one that is not in the table.
        pub(super) fn name(feature: CpuidFeature) -> Option<&'static str> {
            match feature {
                $($(CpuidFeature::$feature)|+ => Some($name),)+
                _ => None,
            }
        }
    };
}

names! {
    "3dnow" => D3NOW;
    "3dnowext" => D3NOWEXT;
    "adx" => ADX;
    "aes" => AES;
    "aeskle" => AESKLE;
    "amx_bf16" => AMX_BF16;
    "amx_complex" => AMX_COMPLEX;
    "amx_fp16" => AMX_FP16;
    "amx_int8" => AMX_INT8;
    "amx_tile" => AMX_TILE;
    "avx" => AVX;
    "avx2" => AVX2;
    "avx512_4fmaps" => AVX512_4FMAPS;
    "avx512_4vnniw" => AVX512_4VNNIW;
    "avx512_bf16" => AVX512_BF16;
    "avx512_bitalg" => AVX512_BITALG;
    "avx512_fp16" => AVX512_FP16;
    "avx512_ifma" => AVX512_IFMA;
    "avx512_vbmi" => AVX512_VBMI;
    "avx512_vbmi2" => AVX512_VBMI2;
    "avx512_vnni" => AVX512_VNNI;
    "avx512_vp2intersect" => AVX512_VP2INTERSECT;
    "avx512_vpopcntdq" => AVX512_VPOPCNTDQ;
    "avx512bw" => AVX512BW;
    "avx512cd" => AVX512CD;
    "avx512dq" => AVX512DQ;
    "avx512er" => AVX512ER;
    "avx512f" => AVX512F;
    "avx512pf" => AVX512PF;
    "avx512vl" => AVX512VL;
    "avx_ifma" => AVX_IFMA;
    "avx_ne_convert" => AVX_NE_CONVERT;
    "avx_vnni" => AVX_VNNI;
    "avx_vnni_int16" => AVX_VNNI_INT16;
    "avx_vnni_int8" => AVX_VNNI_INT8;
    "base" =>
        INTEL8086 INTEL8086_ONLY INTEL186 INTEL286 INTEL286_ONLY INTEL386 INTEL386_ONLY INTEL386_A0_ONLY INTEL486
        INTEL486_A_ONLY X64 CMOV CPUID CX8 MSR MULTIBYTENOP PAUSE SEP SYSCALL TSC;
    "bmi1" => BMI1;
    "bmi2" => BMI2;
    "centaur_ais" => CENTAUR_AIS;
    "cet_ibt" => CET_IBT;
    "cet_ss" => CET_SS;
    "cl1invmb" => CL1INVMB;
    "cldemote" => CLDEMOTE;
    "clflushopt" => CLFLUSHOPT;
    "clfsh" => CLFSH;
    "clwb" => CLWB;
    "clzero" => CLZERO;
    "cmpccxadd" => CMPCCXADD;
    "cmpxchg16b" => CMPXCHG16B;
    "cyrix_d3now" => CYRIX_D3NOW;
    "cyrix_ddi" => CYRIX_DDI;
    "cyrix_dmi" => CYRIX_DMI;
    "cyrix_emmi" => CYRIX_EMMI;
    "cyrix_shr" => CYRIX_SHR;
    "cyrix_smint" => CYRIX_SMINT;
    "cyrix_smint_0f7e" => CYRIX_SMINT_0F7E;
    "cyrix_smm" => CYRIX_SMM;
    "enqcmd" => ENQCMD;
    "f16c" => F16C;
    "fma" => FMA;
    "fma4" => FMA4;
    "fred" => FRED;
    "fsgsbase" => FSGSBASE;
    "fxsr" => FXSR;
    "gfni" => GFNI;
    "hle" => HLE;
    "hle_or_rtm" => HLE_or_RTM;
    "hreset" => HRESET;
    "ia64" => IA64;
    "invept" => INVEPT;
    "invlpgb" => INVLPGB;
    "invpcid" => INVPCID;
    "invvpid" => INVVPID;
    "kl" => KL;
    "knc" => KNC;
    "lkgs" => LKGS;
    "lwp" => LWP;
    "lzcnt" => LZCNT;
    "mcommit" => MCOMMIT;
    "mmx" => MMX;
    "monitor" => MONITOR;
    "monitorx" => MONITORX;
    "mov_tr" => MOV_TR;
    "movbe" => MOVBE;
    "movdir64b" => MOVDIR64B;
    "movdiri" => MOVDIRI;
    "mpx" => MPX;
    "msrlist" => MSRLIST;
    "oss" => OSS;
    "padlock_ace" => PADLOCK_ACE;
    "padlock_gmi" => PADLOCK_GMI;
    "padlock_phe" => PADLOCK_PHE;
    "padlock_pmm" => PADLOCK_PMM;
    "padlock_rng" => PADLOCK_RNG;
    "padlock_undoc" => PADLOCK_UNDOC;
    "pclmulqdq" => PCLMULQDQ;
    "pcommit" => PCOMMIT;
    "pconfig" => PCONFIG;
    "pku" => PKU;
    "popcnt" => POPCNT;
    "prefetchiti" => PREFETCHITI;
    "prefetchw" => PREFETCHW;
    "prefetchwt1" => PREFETCHWT1;
    "ptwrite" => PTWRITE;
    "rao_int" => RAO_INT;
    "rdpid" => RDPID;
    "rdpmc" => RDPMC;
    "rdpru" => RDPRU;
    "rdrand" => RDRAND;
    "rdseed" => RDSEED;
    "rdtscp" => RDTSCP;
    "rmpquery" => RMPQUERY;
    "rtm" => RTM;
    "serialize" => SERIALIZE;
    "sev_es" => SEV_ES;
    "sev_snp" => SEV_SNP;
    "sgx1" => SGX1;
    "sha" => SHA;
    "sha512" => SHA512;
    "skinit" => SKINIT;
    "skinit_or_svm" => SKINIT_or_SVM;
    "sm3" => SM3;
    "sm4" => SM4;
    "smap" => SMAP;
    "smm" => SMM;
    "smx" => SMX;
    "sse" => SSE;
    "sse2" => SSE2;
    "sse3" => SSE3;
    "sse4.1" => SSE4_1;
    "sse4.2" => SSE4_2;
    "sse4a" => SSE4A;
    "ssse3" => SSSE3;
    "svm" => SVM;
    "tbm" => TBM;
    "tdx" => TDX;
    "tse" => TSE;
    "tsxldtrk" => TSXLDTRK;
    "udbg" => UDBG;
    "uintr" => UINTR;
    "umov" => UMOV;
    "vaes" => VAES;
    "vmx" => VMX;
    "vpclmulqdq" => VPCLMULQDQ;
    "waitpkg" => WAITPKG;
    "wbnoinvd" => WBNOINVD;
    "wide_kl" => WIDE_KL;
    "wrmsrns" => WRMSRNS;
    "x87" => FPU FPU287 FPU287XL_ONLY FPU387 FPU387SL_ONLY CYRIX_FPU;
    "xop" => XOP;
    "xsave" => XSAVE;
    "xsavec" => XSAVEC;
    "xsaveopt" => XSAVEOPT;
    "xsaves" => XSAVES;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decoder that knows a new feature needs a row for it: without one it would be taken for a base instruction.
    #[test]
    fn every_feature_has_a_name() {
        let without: Vec<CpuidFeature> = CpuidFeature::values().filter(|&feature| name(feature).is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn names_are_sorted_and_each_has_one_row() {
        assert!(NAMES.is_sorted_by(|one, next| one < next), "{NAMES:?}");
    }
}
