//! Which vector instructions have nothing to do with `mxcsr`.

use iced_x86::Mnemonic;

/// Whether rounding, flags and exceptions in `mxcsr` do not matter for a vector instruction: moves, shuffles, bitwise and integer
/// instructions. Of others it is not known, and of instructions that are no vector instructions.
#[rustfmt::skip]
pub(crate) fn ignores_mxcsr(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Aesdec | M::Aesdec128kl | M::Aesdec256kl | M::Aesdeclast | M::Aesenc | M::Aesenc128kl | M::Aesenc256kl
        | M::Aesenclast | M::Aesimc | M::Aeskeygenassist | M::Andnpd | M::Andnps | M::Andpd | M::Andps | M::Blendpd
        | M::Blendps | M::Blendvpd | M::Blendvps | M::Extractps | M::Gf2p8affineinvqb | M::Gf2p8affineqb
        | M::Gf2p8mulb | M::Insertps | M::Insertq | M::Kaddb | M::Kaddd | M::Kaddq | M::Kaddw | M::Kandb | M::Kandd
        | M::Kandnb | M::Kandnd | M::Kandnq | M::Kandnw | M::Kandq | M::Kandw | M::Kmovb | M::Kmovd | M::Kmovq
        | M::Kmovw | M::Knotb | M::Knotd | M::Knotq | M::Knotw | M::Korb | M::Kord | M::Korq | M::Kortestb
        | M::Kortestd | M::Kortestq | M::Kortestw | M::Korw | M::Kshiftlb | M::Kshiftld | M::Kshiftlq | M::Kshiftlw
        | M::Kshiftrb | M::Kshiftrd | M::Kshiftrq | M::Kshiftrw | M::Ktestb | M::Ktestd | M::Ktestq | M::Ktestw
        | M::Kunpckbw | M::Kunpckdq | M::Kunpckwd | M::Kxnorb | M::Kxnord | M::Kxnorq | M::Kxnorw | M::Kxorb
        | M::Kxord | M::Kxorq | M::Kxorw | M::Lddqu | M::Movapd | M::Movaps | M::Movd | M::Movddup | M::Movdq2q
        | M::Movdqa | M::Movdqu | M::Movhlps | M::Movhpd | M::Movhps | M::Movlhps | M::Movlpd | M::Movlps
        | M::Movmskpd | M::Movmskps | M::Movntdq | M::Movntdqa | M::Movntpd | M::Movntps | M::Movntq | M::Movntsd
        | M::Movntss | M::Movq | M::Movq2dq | M::Movsd | M::Movshdup | M::Movsldup | M::Movss | M::Movupd | M::Movups
        | M::Orpd | M::Orps | M::Pabsb | M::Pabsd | M::Pabsw | M::Packssdw | M::Packsswb | M::Packusdw | M::Packuswb
        | M::Paddb | M::Paddd | M::Paddq | M::Paddsb | M::Paddsiw | M::Paddsw | M::Paddusb | M::Paddusw | M::Paddw
        | M::Palignr | M::Pand | M::Pandn | M::Paveb | M::Pavgb | M::Pavgusb | M::Pavgw | M::Pblendvb | M::Pblendw
        | M::Pclmulqdq | M::Pcmpeqb | M::Pcmpeqd | M::Pcmpeqq | M::Pcmpeqw | M::Pcmpestri | M::Pcmpestri64
        | M::Pcmpestrm | M::Pcmpestrm64 | M::Pcmpgtb | M::Pcmpgtd | M::Pcmpgtq | M::Pcmpgtw | M::Pcmpistri
        | M::Pcmpistrm | M::Pdistib | M::Pextrb | M::Pextrd | M::Pextrq | M::Pextrw | M::Pf2id | M::Pf2iw | M::Pfacc
        | M::Pfadd | M::Pfcmpeq | M::Pfcmpge | M::Pfcmpgt | M::Pfmax | M::Pfmin | M::Pfmul | M::Pfnacc | M::Pfpnacc
        | M::Pfrcp | M::Pfrcpit1 | M::Pfrcpit2 | M::Pfrcpv | M::Pfrsqit1 | M::Pfrsqrt | M::Pfrsqrtv | M::Pfsub
        | M::Pfsubr | M::Phaddd | M::Phaddsw | M::Phaddw | M::Phminposuw | M::Phsubd | M::Phsubsw | M::Phsubw
        | M::Pi2fd | M::Pi2fw | M::Pinsrb | M::Pinsrd | M::Pinsrq | M::Pinsrw | M::Pmachriw | M::Pmaddubsw
        | M::Pmaddwd | M::Pmagw | M::Pmaxsb | M::Pmaxsd | M::Pmaxsw | M::Pmaxub | M::Pmaxud | M::Pmaxuw | M::Pminsb
        | M::Pminsd | M::Pminsw | M::Pminub | M::Pminud | M::Pminuw | M::Pmovmskb | M::Pmovsxbd | M::Pmovsxbq
        | M::Pmovsxbw | M::Pmovsxdq | M::Pmovsxwd | M::Pmovsxwq | M::Pmovzxbd | M::Pmovzxbq | M::Pmovzxbw
        | M::Pmovzxdq | M::Pmovzxwd | M::Pmovzxwq | M::Pmuldq | M::Pmulhriw | M::Pmulhrsw | M::Pmulhrw | M::Pmulhuw
        | M::Pmulhw | M::Pmulld | M::Pmullw | M::Pmuludq | M::Pmvgezb | M::Pmvlzb | M::Pmvnzb | M::Pmvzb | M::Por
        | M::Psadbw | M::Pshufb | M::Pshufd | M::Pshufhw | M::Pshuflw | M::Pshufw | M::Psignb | M::Psignd | M::Psignw
        | M::Pslld | M::Pslldq | M::Psllq | M::Psllw | M::Psrad | M::Psraw | M::Psrld | M::Psrldq | M::Psrlq
        | M::Psrlw | M::Psubb | M::Psubd | M::Psubq | M::Psubsb | M::Psubsiw | M::Psubsw | M::Psubusb | M::Psubusw
        | M::Psubw | M::Pswapd | M::Ptest | M::Punpckhbw | M::Punpckhdq | M::Punpckhqdq | M::Punpckhwd | M::Punpcklbw
        | M::Punpckldq | M::Punpcklqdq | M::Punpcklwd | M::Pxor | M::Sha1msg1 | M::Sha1msg2 | M::Sha1nexte
        | M::Sha1rnds4 | M::Sha256msg1 | M::Sha256msg2 | M::Sha256rnds2 | M::Shufpd | M::Shufps | M::Unpckhpd
        | M::Unpckhps | M::Unpcklpd | M::Unpcklps | M::Vaesdec | M::Vaesdeclast | M::Vaesenc | M::Vaesenclast
        | M::Vaesimc | M::Vaeskeygenassist | M::Valignd | M::Valignq | M::Vandnpd | M::Vandnps | M::Vandpd | M::Vandps
        | M::Vblendmpd | M::Vblendmps | M::Vblendpd | M::Vblendps | M::Vblendvpd | M::Vblendvps | M::Vbroadcastf128
        | M::Vbroadcastf32x2 | M::Vbroadcastf32x4 | M::Vbroadcastf32x8 | M::Vbroadcastf64x2 | M::Vbroadcastf64x4
        | M::Vbroadcasti128 | M::Vbroadcasti32x2 | M::Vbroadcasti32x4 | M::Vbroadcasti32x8 | M::Vbroadcasti64x2
        | M::Vbroadcasti64x4 | M::Vbroadcastsd | M::Vbroadcastss | M::Vcompresspd | M::Vcompressps | M::Vexpandpd
        | M::Vexpandps | M::Vextractf128 | M::Vextractf32x4 | M::Vextractf32x8 | M::Vextractf64x2 | M::Vextractf64x4
        | M::Vextracti128 | M::Vextracti32x4 | M::Vextracti32x8 | M::Vextracti64x2 | M::Vextracti64x4 | M::Vextractps
        | M::Vgf2p8affineinvqb | M::Vgf2p8affineqb | M::Vgf2p8mulb | M::Vinsertf128 | M::Vinsertf32x4
        | M::Vinsertf32x8 | M::Vinsertf64x2 | M::Vinsertf64x4 | M::Vinserti128 | M::Vinserti32x4 | M::Vinserti32x8
        | M::Vinserti64x2 | M::Vinserti64x4 | M::Vinsertps | M::Vlddqu | M::Vmovapd | M::Vmovaps | M::Vmovd
        | M::Vmovddup | M::Vmovdqa | M::Vmovdqa32 | M::Vmovdqa64 | M::Vmovdqu | M::Vmovdqu16 | M::Vmovdqu32
        | M::Vmovdqu64 | M::Vmovdqu8 | M::Vmovhlps | M::Vmovhpd | M::Vmovhps | M::Vmovlhps | M::Vmovlpd | M::Vmovlps
        | M::Vmovmskpd | M::Vmovmskps | M::Vmovntdq | M::Vmovntdqa | M::Vmovntpd | M::Vmovntps | M::Vmovq | M::Vmovsd
        | M::Vmovsh | M::Vmovshdup | M::Vmovsldup | M::Vmovss | M::Vmovupd | M::Vmovups | M::Vmovw | M::Vorpd
        | M::Vorps | M::Vp2intersectd | M::Vp2intersectq | M::Vp4dpwssd | M::Vp4dpwssds | M::Vpabsb | M::Vpabsd
        | M::Vpabsq | M::Vpabsw | M::Vpackssdw | M::Vpacksswb | M::Vpackusdw | M::Vpackuswb | M::Vpaddb | M::Vpaddd
        | M::Vpaddq | M::Vpaddsb | M::Vpaddsw | M::Vpaddusb | M::Vpaddusw | M::Vpaddw | M::Vpalignr | M::Vpand
        | M::Vpandd | M::Vpandn | M::Vpandnd | M::Vpandnq | M::Vpandq | M::Vpavgb | M::Vpavgw | M::Vpblendd
        | M::Vpblendmb | M::Vpblendmd | M::Vpblendmq | M::Vpblendmw | M::Vpblendvb | M::Vpblendw | M::Vpbroadcastb
        | M::Vpbroadcastd | M::Vpbroadcastmb2q | M::Vpbroadcastmw2d | M::Vpbroadcastq | M::Vpbroadcastw
        | M::Vpclmulqdq | M::Vpcmov | M::Vpcmpb | M::Vpcmpd | M::Vpcmpeqb | M::Vpcmpeqd | M::Vpcmpeqq | M::Vpcmpeqw
        | M::Vpcmpestri | M::Vpcmpestri64 | M::Vpcmpestrm | M::Vpcmpestrm64 | M::Vpcmpgtb | M::Vpcmpgtd | M::Vpcmpgtq
        | M::Vpcmpgtw | M::Vpcmpistri | M::Vpcmpistrm | M::Vpcmpq | M::Vpcmpub | M::Vpcmpud | M::Vpcmpuq
        | M::Vpcmpuw | M::Vpcmpw | M::Vpcomb | M::Vpcomd | M::Vpcompressb | M::Vpcompressd | M::Vpcompressq
        | M::Vpcompressw | M::Vpcomq | M::Vpcomub | M::Vpcomud | M::Vpcomuq | M::Vpcomuw | M::Vpcomw | M::Vpconflictd
        | M::Vpconflictq | M::Vpdpbssd | M::Vpdpbssds | M::Vpdpbsud | M::Vpdpbsuds | M::Vpdpbusd | M::Vpdpbusds
        | M::Vpdpbuud | M::Vpdpbuuds | M::Vpdpwssd | M::Vpdpwssds | M::Vpdpwsud | M::Vpdpwsuds | M::Vpdpwusd
        | M::Vpdpwusds | M::Vpdpwuud | M::Vpdpwuuds | M::Vperm2f128 | M::Vperm2i128 | M::Vpermb | M::Vpermd
        | M::Vpermi2b | M::Vpermi2d | M::Vpermi2pd | M::Vpermi2ps | M::Vpermi2q | M::Vpermi2w | M::Vpermil2pd
        | M::Vpermil2ps | M::Vpermilpd | M::Vpermilps | M::Vpermpd | M::Vpermps | M::Vpermq | M::Vpermt2b
        | M::Vpermt2d | M::Vpermt2pd | M::Vpermt2ps | M::Vpermt2q | M::Vpermt2w | M::Vpermw | M::Vpexpandb
        | M::Vpexpandd | M::Vpexpandq | M::Vpexpandw | M::Vpextrb | M::Vpextrd | M::Vpextrq | M::Vpextrw
        | M::Vpgatherdd | M::Vpgatherdq | M::Vpgatherqd | M::Vpgatherqq | M::Vphaddbd | M::Vphaddbq | M::Vphaddbw
        | M::Vphaddd | M::Vphadddq | M::Vphaddsw | M::Vphaddubd | M::Vphaddubq | M::Vphaddubw | M::Vphaddudq
        | M::Vphadduwd | M::Vphadduwq | M::Vphaddw | M::Vphaddwd | M::Vphaddwq | M::Vphminposuw | M::Vphsubbw
        | M::Vphsubd | M::Vphsubdq | M::Vphsubsw | M::Vphsubw | M::Vphsubwd | M::Vpinsrb | M::Vpinsrd | M::Vpinsrq
        | M::Vpinsrw | M::Vplzcntd | M::Vplzcntq | M::Vpmacsdd | M::Vpmacsdqh | M::Vpmacsdql | M::Vpmacssdd
        | M::Vpmacssdqh | M::Vpmacssdql | M::Vpmacsswd | M::Vpmacssww | M::Vpmacswd | M::Vpmacsww | M::Vpmadcsswd
        | M::Vpmadcswd | M::Vpmadd52huq | M::Vpmadd52luq | M::Vpmaddubsw | M::Vpmaddwd | M::Vpmaskmovd | M::Vpmaskmovq
        | M::Vpmaxsb | M::Vpmaxsd | M::Vpmaxsq | M::Vpmaxsw | M::Vpmaxub | M::Vpmaxud | M::Vpmaxuq | M::Vpmaxuw
        | M::Vpminsb | M::Vpminsd | M::Vpminsq | M::Vpminsw | M::Vpminub | M::Vpminud | M::Vpminuq | M::Vpminuw
        | M::Vpmovb2m | M::Vpmovd2m | M::Vpmovdb | M::Vpmovdw | M::Vpmovm2b | M::Vpmovm2d | M::Vpmovm2q | M::Vpmovm2w
        | M::Vpmovmskb | M::Vpmovq2m | M::Vpmovqb | M::Vpmovqd | M::Vpmovqw | M::Vpmovsdb | M::Vpmovsdw
        | M::Vpmovsqb | M::Vpmovsqd | M::Vpmovsqw | M::Vpmovswb | M::Vpmovsxbd | M::Vpmovsxbq | M::Vpmovsxbw
        | M::Vpmovsxdq | M::Vpmovsxwd | M::Vpmovsxwq | M::Vpmovusdb | M::Vpmovusdw | M::Vpmovusqb | M::Vpmovusqd
        | M::Vpmovusqw | M::Vpmovuswb | M::Vpmovw2m | M::Vpmovwb | M::Vpmovzxbd | M::Vpmovzxbq | M::Vpmovzxbw
        | M::Vpmovzxdq | M::Vpmovzxwd | M::Vpmovzxwq | M::Vpmuldq | M::Vpmulhrsw | M::Vpmulhuw | M::Vpmulhw
        | M::Vpmulld | M::Vpmullq | M::Vpmullw | M::Vpmultishiftqb | M::Vpmuludq | M::Vpopcntb | M::Vpopcntd
        | M::Vpopcntq | M::Vpopcntw | M::Vpor | M::Vpord | M::Vporq | M::Vpperm | M::Vprold | M::Vprolq | M::Vprolvd
        | M::Vprolvq | M::Vprord | M::Vprorq | M::Vprorvd | M::Vprorvq | M::Vprotb | M::Vprotd | M::Vprotq | M::Vprotw
        | M::Vpsadbw | M::Vpscatterdd | M::Vpscatterdq | M::Vpscatterqd | M::Vpscatterqq | M::Vpshab | M::Vpshad
        | M::Vpshaq | M::Vpshaw | M::Vpshlb | M::Vpshld | M::Vpshldd | M::Vpshldq | M::Vpshldvd | M::Vpshldvq
        | M::Vpshldvw | M::Vpshldw | M::Vpshlq | M::Vpshlw | M::Vpshrdd | M::Vpshrdq | M::Vpshrdvd | M::Vpshrdvq
        | M::Vpshrdvw | M::Vpshrdw | M::Vpshufb | M::Vpshufbitqmb | M::Vpshufd | M::Vpshufhw | M::Vpshuflw
        | M::Vpsignb | M::Vpsignd | M::Vpsignw | M::Vpslld | M::Vpslldq | M::Vpsllq | M::Vpsllvd | M::Vpsllvq
        | M::Vpsllvw | M::Vpsllw | M::Vpsrad | M::Vpsraq | M::Vpsravd | M::Vpsravq | M::Vpsravw | M::Vpsraw
        | M::Vpsrld | M::Vpsrldq | M::Vpsrlq | M::Vpsrlvd | M::Vpsrlvq | M::Vpsrlvw | M::Vpsrlw | M::Vpsubb
        | M::Vpsubd | M::Vpsubq | M::Vpsubsb | M::Vpsubsw | M::Vpsubusb | M::Vpsubusw | M::Vpsubw | M::Vpternlogd
        | M::Vpternlogq | M::Vptest | M::Vptestmb | M::Vptestmd | M::Vptestmq | M::Vptestmw | M::Vptestnmb
        | M::Vptestnmd | M::Vptestnmq | M::Vptestnmw | M::Vpunpckhbw | M::Vpunpckhdq | M::Vpunpckhqdq | M::Vpunpckhwd
        | M::Vpunpcklbw | M::Vpunpckldq | M::Vpunpcklqdq | M::Vpunpcklwd | M::Vpxor | M::Vpxord | M::Vpxorq
        | M::Vsha512msg1 | M::Vsha512msg2 | M::Vsha512rnds2 | M::Vshuff32x4 | M::Vshuff64x2 | M::Vshufi32x4
        | M::Vshufi64x2 | M::Vshufpd | M::Vshufps | M::Vunpckhpd | M::Vunpckhps | M::Vunpcklpd | M::Vunpcklps
        | M::Vxorpd | M::Vxorps | M::Vzeroall | M::Vzeroupper | M::Xorpd | M::Xorps
    )
}

#[cfg(test)]
mod tests {
    use iced_x86::{Code, EncodingKind, OpCodeOperandKind};

    use super::*;

    /// The table is regular: the beginnings of names tell what an instruction is for.
    #[test]
    fn names_say_what_ignores_it() {
        const IGNORE: [&str; 21] = [
            "p",
            "mov",
            "blend",
            "shuf",
            "unpck",
            "perm",
            "insert",
            "extract",
            "broadcast",
            "and",
            "or",
            "xor",
            "k",
            "align",
            "compress",
            "expand",
            "aes",
            "gf2",
            "sha",
            "lddqu",
            "zero",
        ];
        let is_vector = |kind: &OpCodeOperandKind| {
            let name = format!("{kind:?}");
            ["xmm", "ymm", "zmm", "mm_"].iter().any(|register| name.contains(register)) || name == "mm"
        };
        let is_of_knights_corner =
            |code: Code| code.encoding() == EncodingKind::MVEX || format!("{code:?}").starts_with("VEX_KNC_");
        let mut vectors = 0;
        for code in Code::values().filter(|code| !is_of_knights_corner(*code)) {
            let is_legacy = code.encoding() == EncodingKind::Legacy;
            if is_legacy && !code.op_code().op_kinds().iter().any(is_vector)
                || crate::foreign::is_integer(code.mnemonic())
            {
                continue;
            }
            vectors += 1;
            let name = format!("{:?}", code.mnemonic()).to_ascii_lowercase();
            let name = name.strip_prefix('v').unwrap_or(&name);
            let expected = IGNORE.iter().any(|beginning| name.starts_with(beginning));
            assert_eq!(ignores_mxcsr(code.mnemonic()), expected, "{code:?}");
        }
        assert!(vectors > 3000, "{vectors}");
    }
}
