//! What a mnemonic says of the elements its instruction works on.

use iced_x86::Mnemonic;

use super::kinds::{Element, Packing};

/// What the mnemonic of an instruction on vectors says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// One element, or all.
    pub packing: Packing,
    /// The type of the elements.
    pub element: NamedElement,
}

/// How certain a mnemonic is of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedElement {
    /// It is that, even if the operand in memory says otherwise.
    Always(Element),
    /// Of a conversion the source. `None`: what the operands say.
    Source(Option<Element>),
    /// That, unless the operand in memory says otherwise.
    Otherwise(Element),
    /// It says nothing.
    Unnamed,
}

fn always(packing: Packing, element: Element) -> Named {
    Named { packing, element: NamedElement::Always(element) }
}

fn conversion(packing: Packing, source: Option<Element>) -> Named {
    Named { packing, element: NamedElement::Source(source) }
}

fn vector(packing: Packing, element: Element) -> Named {
    Named { packing, element: NamedElement::Otherwise(element) }
}

/// What the mnemonic of an instruction on vectors says.
#[rustfmt::skip] // One name a line would be a thousand lines.
pub(super) fn named(mnemonic: Mnemonic) -> Named {
    use {Element as E, Mnemonic as M, Packing as P};
    match mnemonic {
        M::Vcvtneebf162ps | M::Vcvtneeph2ps | M::Vcvtneobf162ps | M::Vcvtneoph2ps => conversion(P::Packed, None),
        M::Vcvtph2dq | M::Vcvtph2pd | M::Vcvtph2ps | M::Vcvtph2psx | M::Vcvtph2qq | M::Vcvtph2udq | M::Vcvtph2uqq
         | M::Vcvtph2uw | M::Vcvtph2w | M::Vcvttph2dq | M::Vcvttph2qq | M::Vcvttph2udq | M::Vcvttph2uqq
         | M::Vcvttph2uw | M::Vcvttph2w => conversion(P::Packed, Some(E::F16)),
        M::Cvtps2dq | M::Cvtps2pd | M::Cvtps2pi | M::Cvttps2dq | M::Cvttps2pi | M::Vcvtne2ps2bf16 | M::Vcvtneps2bf16
         | M::Vcvtps2dq | M::Vcvtps2pd | M::Vcvtps2ph | M::Vcvtps2phx | M::Vcvtps2qq | M::Vcvtps2udq | M::Vcvtps2uqq
         | M::Vcvttps2dq | M::Vcvttps2qq | M::Vcvttps2udq | M::Vcvttps2uqq => conversion(P::Packed, Some(E::F32)),
        M::Cvtpd2dq | M::Cvtpd2pi | M::Cvtpd2ps | M::Cvttpd2dq | M::Cvttpd2pi | M::Vcvtpd2dq | M::Vcvtpd2ph
         | M::Vcvtpd2ps | M::Vcvtpd2qq | M::Vcvtpd2udq | M::Vcvtpd2uqq | M::Vcvttpd2dq | M::Vcvttpd2qq
         | M::Vcvttpd2udq | M::Vcvttpd2uqq => conversion(P::Packed, Some(E::F64)),
        M::Pmovsxwd | M::Pmovsxwq | M::Pmovzxwd | M::Pmovzxwq | M::Vcvtuw2ph | M::Vcvtw2ph | M::Vpmovswb
         | M::Vpmovsxwd | M::Vpmovsxwq | M::Vpmovuswb | M::Vpmovwb | M::Vpmovzxwd | M::Vpmovzxwq => conversion(P::Packed, Some(E::I16)),
        M::Cvtdq2pd | M::Cvtdq2ps | M::Cvtpi2pd | M::Cvtpi2ps | M::Pmovsxdq | M::Pmovzxdq | M::Vcvtdq2pd
         | M::Vcvtdq2ph | M::Vcvtdq2ps | M::Vcvtudq2pd | M::Vcvtudq2ph | M::Vcvtudq2ps | M::Vpmovdb | M::Vpmovdw
         | M::Vpmovsdb | M::Vpmovsdw | M::Vpmovsxdq | M::Vpmovusdb | M::Vpmovusdw | M::Vpmovzxdq => conversion(P::Packed, Some(E::I32)),
        M::Vcvtqq2pd | M::Vcvtqq2ph | M::Vcvtqq2ps | M::Vcvtuqq2pd | M::Vcvtuqq2ph | M::Vcvtuqq2ps | M::Vpmovqb
         | M::Vpmovqd | M::Vpmovqw | M::Vpmovsqb | M::Vpmovsqd | M::Vpmovsqw | M::Vpmovusqb | M::Vpmovusqd
         | M::Vpmovusqw => conversion(P::Packed, Some(E::I64)),
        M::Pmovsxbd | M::Pmovsxbq | M::Pmovsxbw | M::Pmovzxbd | M::Pmovzxbq | M::Pmovzxbw | M::Vpmovsxbd
         | M::Vpmovsxbq | M::Vpmovsxbw | M::Vpmovzxbd | M::Vpmovzxbq | M::Vpmovzxbw => conversion(P::Packed, Some(E::I8)),
        M::Cvtsi2sd | M::Cvtsi2ss | M::Vcvtsi2sd | M::Vcvtsi2sh | M::Vcvtsi2ss | M::Vcvtusi2sd | M::Vcvtusi2sh
         | M::Vcvtusi2ss => conversion(P::Scalar, None),
        M::Vcvtsh2sd | M::Vcvtsh2si | M::Vcvtsh2ss | M::Vcvtsh2usi | M::Vcvttsh2si | M::Vcvttsh2usi => {
            conversion(P::Scalar, Some(E::F16))
        }
        M::Cvtss2sd | M::Cvtss2si | M::Cvttss2si | M::Vcvtss2sd | M::Vcvtss2sh | M::Vcvtss2si | M::Vcvtss2usi
         | M::Vcvttss2si | M::Vcvttss2usi => conversion(P::Scalar, Some(E::F32)),
        M::Cvtsd2si | M::Cvtsd2ss | M::Cvttsd2si | M::Vcvtsd2sh | M::Vcvtsd2si | M::Vcvtsd2ss | M::Vcvtsd2usi
         | M::Vcvttsd2si | M::Vcvttsd2usi => conversion(P::Scalar, Some(E::F64)),
        M::Paddq | M::Pclmulqdq | M::Pmuldq | M::Pmuludq | M::Pslldq | M::Psrldq | M::Punpckhdq | M::Punpckhqdq
         | M::Punpckldq | M::Punpcklqdq | M::Vpaddq | M::Vpandq | M::Vpclmulqdq | M::Vpexpandq | M::Vpgatherdq
         | M::Vphadddq | M::Vphaddudq | M::Vphsubdq | M::Vpmuldq | M::Vpmuludq | M::Vpscatterdq | M::Vpshldq
         | M::Vpshrdq | M::Vpslldq | M::Vpsrldq | M::Vpunpckhdq | M::Vpunpckhqdq | M::Vpunpckldq | M::Vpunpcklqdq => vector(P::Packed, E::Bits),
        M::Vaddph | M::Vcmpph | M::Vdivph | M::Vfcmaddcph | M::Vfcmulcph | M::Vfmadd132ph | M::Vfmadd213ph
         | M::Vfmadd231ph | M::Vfmaddcph | M::Vfmaddsub132ph | M::Vfmaddsub213ph | M::Vfmaddsub231ph | M::Vfmsub132ph
         | M::Vfmsub213ph | M::Vfmsub231ph | M::Vfmsubadd132ph | M::Vfmsubadd213ph | M::Vfmsubadd231ph | M::Vfmulcph
         | M::Vfnmadd132ph | M::Vfnmadd213ph | M::Vfnmadd231ph | M::Vfnmsub132ph | M::Vfnmsub213ph | M::Vfnmsub231ph
         | M::Vfpclassph | M::Vgetexpph | M::Vgetmantph | M::Vmaxph | M::Vminph | M::Vmulph | M::Vrcpph | M::Vreduceph
         | M::Vrndscaleph | M::Vrsqrtph | M::Vscalefph | M::Vsqrtph | M::Vsubph => vector(P::Packed, E::F16),
        M::Addps | M::Addsubps | M::Andnps | M::Andps | M::Blendps | M::Blendvps | M::Cmpps | M::Divps | M::Dpps
         | M::Haddps | M::Hsubps | M::Maxps | M::Minps | M::Movaps | M::Movhlps | M::Movhps | M::Movlhps | M::Movlps
         | M::Movmskps | M::Movntps | M::Movups | M::Mulps | M::Orps | M::Rcpps | M::Roundps | M::Rsqrtps | M::Shufps
         | M::Sqrtps | M::Subps | M::Tcmmimfp16ps | M::Tcmmrlfp16ps | M::Tdpbf16ps | M::Tdpfp16ps | M::Unpckhps
         | M::Unpcklps | M::V4fmaddps | M::V4fnmaddps | M::Vaddps | M::Vaddsubps | M::Vandnps | M::Vandps
         | M::Vbcstnebf162ps | M::Vbcstnesh2ps | M::Vblendmps | M::Vblendps | M::Vblendvps | M::Vbroadcastss
         | M::Vcmpps | M::Vcompressps | M::Vdivps | M::Vdpbf16ps | M::Vdpps | M::Vexp2ps | M::Vexpandps
         | M::Vfixupimmps | M::Vfmadd132ps | M::Vfmadd213ps | M::Vfmadd231ps | M::Vfmaddps | M::Vfmaddsub132ps
         | M::Vfmaddsub213ps | M::Vfmaddsub231ps | M::Vfmaddsubps | M::Vfmsub132ps | M::Vfmsub213ps | M::Vfmsub231ps
         | M::Vfmsubadd132ps | M::Vfmsubadd213ps | M::Vfmsubadd231ps | M::Vfmsubaddps | M::Vfmsubps | M::Vfnmadd132ps
         | M::Vfnmadd213ps | M::Vfnmadd231ps | M::Vfnmaddps | M::Vfnmsub132ps | M::Vfnmsub213ps | M::Vfnmsub231ps
         | M::Vfnmsubps | M::Vfpclassps | M::Vfrczps | M::Vgatherdps | M::Vgatherpf0dps | M::Vgatherpf0qps
         | M::Vgatherpf1dps | M::Vgatherpf1qps | M::Vgatherqps | M::Vgetexpps | M::Vgetmantps | M::Vhaddps
         | M::Vhsubps | M::Vmaskmovps | M::Vmaxps | M::Vminps | M::Vmovaps | M::Vmovhlps | M::Vmovhps | M::Vmovlhps
         | M::Vmovlps | M::Vmovmskps | M::Vmovntps | M::Vmovups | M::Vmulps | M::Vorps | M::Vrangeps | M::Vrcp14ps
         | M::Vrcp28ps | M::Vrcpps | M::Vreduceps | M::Vrndscaleps | M::Vroundps | M::Vrsqrt14ps | M::Vrsqrt28ps
         | M::Vrsqrtps | M::Vscalefps | M::Vscatterdps | M::Vscatterpf0dps | M::Vscatterpf0qps | M::Vscatterpf1dps
         | M::Vscatterpf1qps | M::Vscatterqps | M::Vshufps | M::Vsqrtps | M::Vsubps | M::Vtestps | M::Vunpckhps
         | M::Vunpcklps | M::Vxorps | M::Xorps => vector(P::Packed, E::F32),
        M::Addpd | M::Addsubpd | M::Andnpd | M::Andpd | M::Blendpd | M::Blendvpd | M::Cmppd | M::Divpd | M::Dppd
         | M::Haddpd | M::Hsubpd | M::Maxpd | M::Minpd | M::Movapd | M::Movmskpd | M::Movntpd | M::Movupd | M::Mulpd
         | M::Orpd | M::Roundpd | M::Shufpd | M::Sqrtpd | M::Subpd | M::Unpckhpd | M::Unpcklpd | M::Vaddpd
         | M::Vaddsubpd | M::Vandnpd | M::Vandpd | M::Vblendmpd | M::Vblendpd | M::Vblendvpd | M::Vbroadcastsd
         | M::Vcmppd | M::Vcompresspd | M::Vdivpd | M::Vdppd | M::Vexp2pd | M::Vexpandpd | M::Vfixupimmpd
         | M::Vfmadd132pd | M::Vfmadd213pd | M::Vfmadd231pd | M::Vfmaddpd | M::Vfmaddsub132pd | M::Vfmaddsub213pd
         | M::Vfmaddsub231pd | M::Vfmaddsubpd | M::Vfmsub132pd | M::Vfmsub213pd | M::Vfmsub231pd | M::Vfmsubadd132pd
         | M::Vfmsubadd213pd | M::Vfmsubadd231pd | M::Vfmsubaddpd | M::Vfmsubpd | M::Vfnmadd132pd | M::Vfnmadd213pd
         | M::Vfnmadd231pd | M::Vfnmaddpd | M::Vfnmsub132pd | M::Vfnmsub213pd | M::Vfnmsub231pd | M::Vfnmsubpd
         | M::Vfpclasspd | M::Vfrczpd | M::Vgatherdpd | M::Vgatherpf0dpd | M::Vgatherpf0qpd | M::Vgatherpf1dpd
         | M::Vgatherpf1qpd | M::Vgatherqpd | M::Vgetexppd | M::Vgetmantpd | M::Vhaddpd | M::Vhsubpd | M::Vmaskmovpd
         | M::Vmaxpd | M::Vminpd | M::Vmovapd | M::Vmovmskpd | M::Vmovntpd | M::Vmovupd | M::Vmulpd | M::Vorpd
         | M::Vrangepd | M::Vrcp14pd | M::Vrcp28pd | M::Vreducepd | M::Vrndscalepd | M::Vroundpd | M::Vrsqrt14pd
         | M::Vrsqrt28pd | M::Vscalefpd | M::Vscatterdpd | M::Vscatterpf0dpd | M::Vscatterpf0qpd | M::Vscatterpf1dpd
         | M::Vscatterpf1qpd | M::Vscatterqpd | M::Vshufpd | M::Vsqrtpd | M::Vsubpd | M::Vtestpd | M::Vunpckhpd
         | M::Vunpcklpd | M::Vxorpd | M::Xorpd => vector(P::Packed, E::F64),
        M::Mpsadbw | M::Pabsw | M::Packssdw | M::Packusdw | M::Paddsiw | M::Paddsw | M::Paddusw | M::Paddw | M::Pavgw
         | M::Pblendw | M::Pcmpeqw | M::Pcmpgtw | M::Pf2iw | M::Phaddsw | M::Phaddw | M::Phminposuw | M::Phsubsw
         | M::Phsubw | M::Pi2fw | M::Pmachriw | M::Pmaddubsw | M::Pmagw | M::Pmaxsw | M::Pmaxuw | M::Pminsw
         | M::Pminuw | M::Pmulhriw | M::Pmulhrsw | M::Pmulhrw | M::Pmulhuw | M::Pmulhw | M::Pmullw | M::Psadbw
         | M::Pshufhw | M::Pshuflw | M::Pshufw | M::Psignw | M::Psllw | M::Psraw | M::Psrlw | M::Psubsiw | M::Psubsw
         | M::Psubusw | M::Psubw | M::Punpckhbw | M::Punpcklbw | M::Vdbpsadbw | M::Vmpsadbw | M::Vpabsw | M::Vpackssdw
         | M::Vpackusdw | M::Vpaddsw | M::Vpaddusw | M::Vpaddw | M::Vpavgw | M::Vpblendmw | M::Vpblendw
         | M::Vpbroadcastw | M::Vpcmpeqw | M::Vpcmpgtw | M::Vpcmpuw | M::Vpcmpw | M::Vpcompressw | M::Vpcomuw
         | M::Vpcomw | M::Vpermi2w | M::Vpermt2w | M::Vpermw | M::Vpexpandw | M::Vphaddbw | M::Vphaddsw | M::Vphaddubw
         | M::Vphaddw | M::Vphminposuw | M::Vphsubbw | M::Vphsubsw | M::Vphsubw | M::Vpmacssww | M::Vpmacsww
         | M::Vpmaddubsw | M::Vpmaxsw | M::Vpmaxuw | M::Vpminsw | M::Vpminuw | M::Vpmovm2w | M::Vpmulhrsw
         | M::Vpmulhuw | M::Vpmulhw | M::Vpmullw | M::Vpopcntw | M::Vprotw | M::Vpsadbw | M::Vpshaw | M::Vpshldvw
         | M::Vpshldw | M::Vpshlw | M::Vpshrdvw | M::Vpshrdw | M::Vpshufhw | M::Vpshuflw | M::Vpsignw | M::Vpsllvw
         | M::Vpsllw | M::Vpsravw | M::Vpsraw | M::Vpsrlvw | M::Vpsrlw | M::Vpsubsw | M::Vpsubusw | M::Vpsubw
         | M::Vptestmw | M::Vptestnmw | M::Vpunpckhbw | M::Vpunpcklbw => vector(P::Packed, E::I16),
        M::Bound | M::Pabsd | M::Paddd | M::Pcmpeqd | M::Pcmpgtd | M::Pf2id | M::Pfadd | M::Phaddd | M::Phsubd
         | M::Pi2fd | M::Pmaddwd | M::Pmaxsd | M::Pmaxud | M::Pminsd | M::Pminud | M::Pmulld | M::Pshufd | M::Psignd
         | M::Pslld | M::Psrad | M::Psrld | M::Psubd | M::Pswapd | M::Punpckhwd | M::Punpcklwd | M::Tdpbsud
         | M::Tdpbuud | M::Tileloadd | M::Tilestored | M::Valignd | M::Vp2intersectd | M::Vp4dpwssd | M::Vpabsd
         | M::Vpaddd | M::Vpandd | M::Vpandnd | M::Vpblendd | M::Vpblendmd | M::Vpbroadcastd | M::Vpbroadcastmw2d
         | M::Vpcmpd | M::Vpcmpeqd | M::Vpcmpgtd | M::Vpcmpud | M::Vpcomd | M::Vpcompressd | M::Vpcomud
         | M::Vpconflictd | M::Vpdpbssd | M::Vpdpbsud | M::Vpdpbusd | M::Vpdpbuud | M::Vpdpwssd | M::Vpdpwsud
         | M::Vpdpwusd | M::Vpdpwuud | M::Vpermd | M::Vpermi2d | M::Vpermi2pd | M::Vpermil2pd | M::Vpermilpd
         | M::Vpermpd | M::Vpermt2d | M::Vpermt2pd | M::Vpexpandd | M::Vpgatherdd | M::Vpgatherqd | M::Vphaddbd
         | M::Vphaddd | M::Vphaddubd | M::Vphadduwd | M::Vphaddwd | M::Vphsubd | M::Vphsubwd | M::Vplzcntd
         | M::Vpmacsdd | M::Vpmacssdd | M::Vpmacsswd | M::Vpmacswd | M::Vpmadcsswd | M::Vpmadcswd | M::Vpmaddwd
         | M::Vpmaskmovd | M::Vpmaxsd | M::Vpmaxud | M::Vpminsd | M::Vpminud | M::Vpmovm2d | M::Vpmulld | M::Vpopcntd
         | M::Vpord | M::Vprold | M::Vprolvd | M::Vprord | M::Vprorvd | M::Vprotd | M::Vpscatterdd | M::Vpscatterqd
         | M::Vpshad | M::Vpshld | M::Vpshldd | M::Vpshldvd | M::Vpshrdd | M::Vpshrdvd | M::Vpshufd | M::Vpsignd
         | M::Vpslld | M::Vpsllvd | M::Vpsrad | M::Vpsravd | M::Vpsrld | M::Vpsrlvd | M::Vpsubd | M::Vpternlogd
         | M::Vptestmd | M::Vptestnmd | M::Vpunpckhwd | M::Vpunpcklwd | M::Vpxord => vector(P::Packed, E::I32),
        M::Extrq | M::Insertq | M::Pcmpeqq | M::Pcmpgtq | M::Pfcmpeq | M::Psllq | M::Psrlq | M::Psubq | M::Valignq
         | M::Vp2intersectq | M::Vpabsq | M::Vpandnq | M::Vpblendmq | M::Vpbroadcastmb2q | M::Vpbroadcastq
         | M::Vpcmpeqq | M::Vpcmpgtq | M::Vpcmpq | M::Vpcmpuq | M::Vpcompressq | M::Vpcomq | M::Vpcomuq
         | M::Vpconflictq | M::Vpermi2q | M::Vpermq | M::Vpermt2q | M::Vpgatherqq | M::Vphaddbq | M::Vphaddubq
         | M::Vphadduwq | M::Vphaddwq | M::Vplzcntq | M::Vpmadd52huq | M::Vpmadd52luq | M::Vpmaskmovq | M::Vpmaxsq
         | M::Vpmaxuq | M::Vpminsq | M::Vpminuq | M::Vpmovm2q | M::Vpmullq | M::Vpopcntq | M::Vporq | M::Vprolq
         | M::Vprolvq | M::Vprorq | M::Vprorvq | M::Vprotq | M::Vpscatterqq | M::Vpshaq | M::Vpshldvq | M::Vpshlq
         | M::Vpshrdvq | M::Vpsllq | M::Vpsllvq | M::Vpsraq | M::Vpsravq | M::Vpsrlq | M::Vpsrlvq | M::Vpsubq
         | M::Vpternlogq | M::Vptestmq | M::Vptestnmq | M::Vpxorq => vector(P::Packed, E::I64),
        M::Gf2p8affineinvqb | M::Gf2p8affineqb | M::Gf2p8mulb | M::Pabsb | M::Packsswb | M::Packuswb | M::Paddb
         | M::Paddsb | M::Paddusb | M::Paveb | M::Pavgb | M::Pavgusb | M::Pblendvb | M::Pcmpeqb | M::Pcmpgtb
         | M::Pdistib | M::Pfsub | M::Pmaxsb | M::Pmaxub | M::Pminsb | M::Pminub | M::Pmovmskb | M::Pmvgezb
         | M::Pmvlzb | M::Pmvnzb | M::Pmvzb | M::Pshufb | M::Psignb | M::Psubb | M::Psubsb | M::Psubusb
         | M::Vgf2p8affineinvqb | M::Vgf2p8affineqb | M::Vgf2p8mulb | M::Vpabsb | M::Vpacksswb | M::Vpackuswb
         | M::Vpaddb | M::Vpaddsb | M::Vpaddusb | M::Vpavgb | M::Vpblendmb | M::Vpblendvb | M::Vpbroadcastb
         | M::Vpcmpb | M::Vpcmpeqb | M::Vpcmpgtb | M::Vpcmpub | M::Vpcomb | M::Vpcompressb | M::Vpcomub | M::Vpermb
         | M::Vpermi2b | M::Vpermt2b | M::Vpexpandb | M::Vpmaxsb | M::Vpmaxub | M::Vpminsb | M::Vpminub | M::Vpmovm2b
         | M::Vpmovmskb | M::Vpmultishiftqb | M::Vpopcntb | M::Vprotb | M::Vpshab | M::Vpshlb | M::Vpshufb
         | M::Vpshufbitqmb | M::Vpsignb | M::Vpsubb | M::Vpsubsb | M::Vpsubusb | M::Vptestmb | M::Vptestnmb => vector(P::Packed, E::I8),
        M::Lddqu | M::Movdqa | M::Movdqu | M::Movntdq | M::Movntdqa | M::Movntq | M::Pand | M::Pandn | M::Por
         | M::Ptest | M::Pxor | M::Vlddqu | M::Vmovdqa | M::Vmovdqu | M::Vmovntdq | M::Vmovntdqa | M::Vpand
         | M::Vpandn | M::Vpor | M::Vptest | M::Vpxor => always(P::Packed, E::Bits),
        M::Vpmovw2m => always(P::Packed, E::I16),
        M::Vpmovd2m => always(P::Packed, E::I32),
        M::Vpmovq2m => always(P::Packed, E::I64),
        M::Maskmovdqu | M::Maskmovq | M::Vmaskmovdqu | M::Vpmovb2m => always(P::Packed, E::I8),
        M::Vaddsh | M::Vcmpsh | M::Vcomish | M::Vdivsh | M::Vfcmaddcsh | M::Vfcmulcsh | M::Vfmadd132sh
         | M::Vfmadd213sh | M::Vfmadd231sh | M::Vfmaddcsh | M::Vfmsub132sh | M::Vfmsub213sh | M::Vfmsub231sh
         | M::Vfmulcsh | M::Vfnmadd132sh | M::Vfnmadd213sh | M::Vfnmadd231sh | M::Vfnmsub132sh | M::Vfnmsub213sh
         | M::Vfnmsub231sh | M::Vfpclasssh | M::Vgetexpsh | M::Vgetmantsh | M::Vmaxsh | M::Vminsh | M::Vmovsh
         | M::Vmulsh | M::Vrcpsh | M::Vreducesh | M::Vrndscalesh | M::Vrsqrtsh | M::Vscalefsh | M::Vsqrtsh | M::Vsubsh
         | M::Vucomish => vector(P::Scalar, E::F16),
        M::Addss | M::Cmpss | M::Comiss | M::Divss | M::Extractps | M::Insertps | M::Maxss | M::Minss | M::Movntss
         | M::Movss | M::Mulss | M::Rcpss | M::Roundss | M::Rsqrtss | M::Sqrtss | M::Subss | M::Ucomiss | M::V4fmaddss
         | M::V4fnmaddss | M::Vaddss | M::Vcmpss | M::Vcomiss | M::Vdivss | M::Vextractps | M::Vfixupimmss
         | M::Vfmadd132ss | M::Vfmadd213ss | M::Vfmadd231ss | M::Vfmaddss | M::Vfmsub132ss | M::Vfmsub213ss
         | M::Vfmsub231ss | M::Vfmsubss | M::Vfnmadd132ss | M::Vfnmadd213ss | M::Vfnmadd231ss | M::Vfnmaddss
         | M::Vfnmsub132ss | M::Vfnmsub213ss | M::Vfnmsub231ss | M::Vfnmsubss | M::Vfpclassss | M::Vfrczss
         | M::Vgetexpss | M::Vgetmantss | M::Vinsertps | M::Vmaxss | M::Vminss | M::Vmovss | M::Vmulss | M::Vrangess
         | M::Vrcp14ss | M::Vrcp28ss | M::Vrcpss | M::Vreducess | M::Vrndscaless | M::Vroundss | M::Vrsqrt14ss
         | M::Vrsqrt28ss | M::Vrsqrtss | M::Vscalefss | M::Vsqrtss | M::Vsubss | M::Vucomiss => vector(P::Scalar, E::F32),
        M::Addsd | M::Cmpsd | M::Comisd | M::Divsd | M::Maxsd | M::Minsd | M::Movhpd | M::Movlpd | M::Movntsd
         | M::Movsd | M::Mulsd | M::Roundsd | M::Sqrtsd | M::Subsd | M::Tdpbssd | M::Tdpbusd | M::Ucomisd | M::Vaddsd
         | M::Vcmpsd | M::Vcomisd | M::Vdivsd | M::Vfixupimmsd | M::Vfmadd132sd | M::Vfmadd213sd | M::Vfmadd231sd
         | M::Vfmaddsd | M::Vfmsub132sd | M::Vfmsub213sd | M::Vfmsub231sd | M::Vfmsubsd | M::Vfnmadd132sd
         | M::Vfnmadd213sd | M::Vfnmadd231sd | M::Vfnmaddsd | M::Vfnmsub132sd | M::Vfnmsub213sd | M::Vfnmsub231sd
         | M::Vfnmsubsd | M::Vfpclasssd | M::Vfrczsd | M::Vgetexpsd | M::Vgetmantsd | M::Vmaxsd | M::Vminsd
         | M::Vmovhpd | M::Vmovlpd | M::Vmovsd | M::Vmulsd | M::Vrangesd | M::Vrcp14sd | M::Vrcp28sd | M::Vreducesd
         | M::Vrndscalesd | M::Vroundsd | M::Vrsqrt14sd | M::Vrsqrt28sd | M::Vscalefsd | M::Vsqrtsd | M::Vsubsd
         | M::Vucomisd => vector(P::Scalar, E::F64),
        M::Pextrw | M::Pinsrw | M::Vmovw | M::Vpextrw | M::Vpinsrw => vector(P::Scalar, E::I16),
        M::Movd | M::Pextrd | M::Pinsrd | M::Vmovd | M::Vpextrd | M::Vpinsrd => vector(P::Scalar, E::I32),
        M::Movq | M::Pextrq | M::Pinsrq | M::Vmovq | M::Vpextrq | M::Vpinsrq => vector(P::Scalar, E::I64),
        M::Pextrb | M::Pinsrb | M::Vpextrb | M::Vpinsrb => vector(P::Scalar, E::I8),
        M::Movdq2q | M::Movq2dq => always(P::Scalar, E::I64),
        _ => Named { packing: P::Packed, element: NamedElement::Unnamed },
    }
}

/// Bits of the masks that an instruction on mask registers works on, 0 where its mnemonic does not say; `None` for any other instruction.
#[rustfmt::skip] // One name a line would be a thousand lines.
pub(super) fn mask_bits(mnemonic: Mnemonic) -> Option<usize> {
    use Mnemonic as M;
    match mnemonic {
        M::Kaddb | M::Kandb | M::Kandnb | M::Kmovb | M::Knotb | M::Korb | M::Kortestb | M::Kshiftlb | M::Kshiftrb
         | M::Ktestb | M::Kxnorb | M::Kxorb => Some(8),
        M::Kaddd | M::Kand | M::Kandd | M::Kandnd | M::Kmovd | M::Knotd | M::Kord | M::Kortestd | M::Kshiftld
         | M::Kshiftrd | M::Ktestd | M::Kunpckwd | M::Kxnord | M::Kxord => Some(32),
        M::Kaddq | M::Kandnq | M::Kandq | M::Kmovq | M::Knotq | M::Korq | M::Kortestq | M::Kshiftlq | M::Kshiftrq
         | M::Ktestq | M::Kunpckdq | M::Kxnorq | M::Kxorq => Some(64),
        M::Kaddw | M::Kandnw | M::Kandw | M::Kmovw | M::Knotw | M::Kortestw | M::Korw | M::Kshiftlw | M::Kshiftrw
         | M::Ktestw | M::Kunpckbw | M::Kxnorw | M::Kxorw => Some(16),
        M::Kandn | M::Kandnr | M::Kconcath | M::Kconcatl | M::Kextract | M::Kmerge2l1h | M::Kmerge2l1l | M::Kmov | M::Knot | M::Kor | M::Kortest
         | M::Kxnor | M::Kxor => Some(0),
        _ => None,
    }
}

/// Elements of tiles; `None` for an instruction that works on none.
#[rustfmt::skip] // One name a line would be a thousand lines.
pub(super) fn tile_element(mnemonic: Mnemonic) -> Option<Element> {
    use {Element as E, Mnemonic as M};
    match mnemonic {
        M::Tdpbf16ps => Some(E::Bf16),
        M::Tileloadd | M::Tileloaddt1 | M::Tilerelease | M::Tilestored | M::Tilezero => Some(E::Bits),
        M::Tcmmimfp16ps | M::Tcmmrlfp16ps | M::Tdpfp16ps => Some(E::F16),
        M::Tdpbssd | M::Tdpbsud | M::Tdpbusd | M::Tdpbuud => Some(E::I8),
        _ => None,
    }
}

/// Whether it works on the control, the status and the tags of the x87 unit, and on no number.
#[rustfmt::skip] // One name a line would be a thousand lines.
pub(super) fn controls_x87(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Fclex | M::Fdecstp | M::Ffree | M::Ffreep | M::Fincstp | M::Finit | M::Fldcw | M::Fldenv | M::Fnclex
         | M::Fninit | M::Fnop | M::Fnsave | M::Fnstcw | M::Fnstenv | M::Fnstsw | M::Frstor | M::Fsave | M::Fstcw
         | M::Fstenv | M::Fstsw
    )
}
