//! What a mnemonic says of the elements its instruction works on.

use super::by_mnemonic::by_mnemonic;
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
    /// The mnemonic says nothing of the type: it is what the operands say, or the whole register.
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

by_mnemonic! {
    /// What the mnemonic of an instruction on vectors says.
    pub(super) fn named -> Named, otherwise Named { packing: Packing::Packed, element: NamedElement::Unnamed };
    conversion(Packing::Packed, None) =>
        Vcvtneebf162ps Vcvtneeph2ps Vcvtneobf162ps Vcvtneoph2ps;
    conversion(Packing::Packed, Some(Element::F16)) =>
        Vcvtph2dq Vcvtph2pd Vcvtph2ps Vcvtph2psx Vcvtph2qq Vcvtph2udq Vcvtph2uqq Vcvtph2uw Vcvtph2w Vcvttph2dq
        Vcvttph2qq Vcvttph2udq Vcvttph2uqq Vcvttph2uw Vcvttph2w;
    conversion(Packing::Packed, Some(Element::F32)) =>
        Cvtps2dq Cvtps2pd Cvtps2pi Cvttps2dq Cvttps2pi Vcvtne2ps2bf16 Vcvtneps2bf16 Vcvtps2dq Vcvtps2pd Vcvtps2ph
        Vcvtps2phx Vcvtps2qq Vcvtps2udq Vcvtps2uqq Vcvttps2dq Vcvttps2qq Vcvttps2udq Vcvttps2uqq;
    conversion(Packing::Packed, Some(Element::F64)) =>
        Cvtpd2dq Cvtpd2pi Cvtpd2ps Cvttpd2dq Cvttpd2pi Vcvtpd2dq Vcvtpd2ph Vcvtpd2ps Vcvtpd2qq Vcvtpd2udq Vcvtpd2uqq
        Vcvttpd2dq Vcvttpd2qq Vcvttpd2udq Vcvttpd2uqq;
    conversion(Packing::Packed, Some(Element::I16)) =>
        Pmovsxwd Pmovsxwq Pmovzxwd Pmovzxwq Vcvtuw2ph Vcvtw2ph Vpmovswb Vpmovsxwd Vpmovsxwq Vpmovuswb Vpmovwb Vpmovzxwd
        Vpmovzxwq;
    conversion(Packing::Packed, Some(Element::I32)) =>
        Cvtdq2pd Cvtdq2ps Cvtpi2pd Cvtpi2ps Pmovsxdq Pmovzxdq Vcvtdq2pd Vcvtdq2ph Vcvtdq2ps Vcvtudq2pd Vcvtudq2ph
        Vcvtudq2ps Vpmovdb Vpmovdw Vpmovsdb Vpmovsdw Vpmovsxdq Vpmovusdb Vpmovusdw Vpmovzxdq;
    conversion(Packing::Packed, Some(Element::I64)) =>
        Vcvtqq2pd Vcvtqq2ph Vcvtqq2ps Vcvtuqq2pd Vcvtuqq2ph Vcvtuqq2ps Vpmovqb Vpmovqd Vpmovqw Vpmovsqb Vpmovsqd
        Vpmovsqw Vpmovusqb Vpmovusqd Vpmovusqw;
    conversion(Packing::Packed, Some(Element::I8)) =>
        Pmovsxbd Pmovsxbq Pmovsxbw Pmovzxbd Pmovzxbq Pmovzxbw Vpmovsxbd Vpmovsxbq Vpmovsxbw Vpmovzxbd Vpmovzxbq
        Vpmovzxbw;
    conversion(Packing::Scalar, None) =>
        Cvtsi2sd Cvtsi2ss Vcvtsi2sd Vcvtsi2sh Vcvtsi2ss Vcvtusi2sd Vcvtusi2sh Vcvtusi2ss;
    conversion(Packing::Scalar, Some(Element::F16)) =>
        Vcvtsh2sd Vcvtsh2si Vcvtsh2ss Vcvtsh2usi Vcvttsh2si Vcvttsh2usi;
    conversion(Packing::Scalar, Some(Element::F32)) =>
        Cvtss2sd Cvtss2si Cvttss2si Vcvtss2sd Vcvtss2sh Vcvtss2si Vcvtss2usi Vcvttss2si Vcvttss2usi;
    conversion(Packing::Scalar, Some(Element::F64)) =>
        Cvtsd2si Cvtsd2ss Cvttsd2si Vcvtsd2sh Vcvtsd2si Vcvtsd2ss Vcvtsd2usi Vcvttsd2si Vcvttsd2usi;
    vector(Packing::Packed, Element::Bits) =>
        Paddq Pclmulqdq Pmuldq Pmuludq Pslldq Psrldq Punpckhdq Punpckhqdq Punpckldq Punpcklqdq Vpaddq Vpandq Vpclmulqdq
        Vpexpandq Vpgatherdq Vphadddq Vphaddudq Vphsubdq Vpmuldq Vpmuludq Vpscatterdq Vpshldq Vpshrdq Vpslldq Vpsrldq
        Vpunpckhdq Vpunpckhqdq Vpunpckldq Vpunpcklqdq;
    vector(Packing::Packed, Element::F16) =>
        Vaddph Vcmpph Vdivph Vfcmaddcph Vfcmulcph Vfmadd132ph Vfmadd213ph Vfmadd231ph Vfmaddcph Vfmaddsub132ph
        Vfmaddsub213ph Vfmaddsub231ph Vfmsub132ph Vfmsub213ph Vfmsub231ph Vfmsubadd132ph Vfmsubadd213ph Vfmsubadd231ph
        Vfmulcph Vfnmadd132ph Vfnmadd213ph Vfnmadd231ph Vfnmsub132ph Vfnmsub213ph Vfnmsub231ph Vfpclassph Vgetexpph
        Vgetmantph Vmaxph Vminph Vmulph Vrcpph Vreduceph Vrndscaleph Vrsqrtph Vscalefph Vsqrtph Vsubph;
    vector(Packing::Packed, Element::F32) =>
        Addps Addsubps Andnps Andps Blendps Blendvps Cmpps Divps Dpps Haddps Hsubps Maxps Minps Movaps Movhlps Movhps
        Movlhps Movlps Movmskps Movntps Movups Mulps Orps Rcpps Roundps Rsqrtps Shufps Sqrtps Subps Tcmmimfp16ps
        Tcmmrlfp16ps Tdpbf16ps Tdpfp16ps Unpckhps Unpcklps V4fmaddps V4fnmaddps Vaddps Vaddsubps Vandnps Vandps
        Vbcstnebf162ps Vbcstnesh2ps Vblendmps Vblendps Vblendvps Vbroadcastss Vcmpps Vcompressps Vdivps Vdpbf16ps Vdpps
        Vexp2ps Vexpandps Vfixupimmps Vfmadd132ps Vfmadd213ps Vfmadd231ps Vfmaddps Vfmaddsub132ps Vfmaddsub213ps
        Vfmaddsub231ps Vfmaddsubps Vfmsub132ps Vfmsub213ps Vfmsub231ps Vfmsubadd132ps Vfmsubadd213ps Vfmsubadd231ps
        Vfmsubaddps Vfmsubps Vfnmadd132ps Vfnmadd213ps Vfnmadd231ps Vfnmaddps Vfnmsub132ps Vfnmsub213ps Vfnmsub231ps
        Vfnmsubps Vfpclassps Vfrczps Vgatherdps Vgatherpf0dps Vgatherpf0qps Vgatherpf1dps Vgatherpf1qps Vgatherqps
        Vgetexpps Vgetmantps Vhaddps Vhsubps Vmaskmovps Vmaxps Vminps Vmovaps Vmovhlps Vmovhps Vmovlhps Vmovlps
        Vmovmskps Vmovntps Vmovups Vmulps Vorps Vrangeps Vrcp14ps Vrcp28ps Vrcpps Vreduceps Vrndscaleps Vroundps
        Vrsqrt14ps Vrsqrt28ps Vrsqrtps Vscalefps Vscatterdps Vscatterpf0dps Vscatterpf0qps Vscatterpf1dps
        Vscatterpf1qps Vscatterqps Vshufps Vsqrtps Vsubps Vtestps Vunpckhps Vunpcklps Vxorps Xorps;
    vector(Packing::Packed, Element::F64) =>
        Addpd Addsubpd Andnpd Andpd Blendpd Blendvpd Cmppd Divpd Dppd Haddpd Hsubpd Maxpd Minpd Movapd Movmskpd Movntpd
        Movupd Mulpd Orpd Roundpd Shufpd Sqrtpd Subpd Unpckhpd Unpcklpd Vaddpd Vaddsubpd Vandnpd Vandpd Vblendmpd
        Vblendpd Vblendvpd Vbroadcastsd Vcmppd Vcompresspd Vdivpd Vdppd Vexp2pd Vexpandpd Vfixupimmpd Vfmadd132pd
        Vfmadd213pd Vfmadd231pd Vfmaddpd Vfmaddsub132pd Vfmaddsub213pd Vfmaddsub231pd Vfmaddsubpd Vfmsub132pd
        Vfmsub213pd Vfmsub231pd Vfmsubadd132pd Vfmsubadd213pd Vfmsubadd231pd Vfmsubaddpd Vfmsubpd Vfnmadd132pd
        Vfnmadd213pd Vfnmadd231pd Vfnmaddpd Vfnmsub132pd Vfnmsub213pd Vfnmsub231pd Vfnmsubpd Vfpclasspd Vfrczpd
        Vgatherdpd Vgatherpf0dpd Vgatherpf0qpd Vgatherpf1dpd Vgatherpf1qpd Vgatherqpd Vgetexppd Vgetmantpd Vhaddpd
        Vhsubpd Vmaskmovpd Vmaxpd Vminpd Vmovapd Vmovmskpd Vmovntpd Vmovupd Vmulpd Vorpd Vrangepd Vrcp14pd Vrcp28pd
        Vreducepd Vrndscalepd Vroundpd Vrsqrt14pd Vrsqrt28pd Vscalefpd Vscatterdpd Vscatterpf0dpd Vscatterpf0qpd
        Vscatterpf1dpd Vscatterpf1qpd Vscatterqpd Vshufpd Vsqrtpd Vsubpd Vtestpd Vunpckhpd Vunpcklpd Vxorpd Xorpd;
    vector(Packing::Packed, Element::I16) =>
        Mpsadbw Pabsw Packssdw Packusdw Paddsiw Paddsw Paddusw Paddw Pavgw Pblendw Pcmpeqw Pcmpgtw Pf2iw Phaddsw Phaddw
        Phminposuw Phsubsw Phsubw Pi2fw Pmachriw Pmaddubsw Pmagw Pmaxsw Pmaxuw Pminsw Pminuw Pmulhriw Pmulhrsw Pmulhrw
        Pmulhuw Pmulhw Pmullw Psadbw Pshufhw Pshuflw Pshufw Psignw Psllw Psraw Psrlw Psubsiw Psubsw Psubusw Psubw
        Punpckhbw Punpcklbw Vdbpsadbw Vmpsadbw Vpabsw Vpackssdw Vpackusdw Vpaddsw Vpaddusw Vpaddw Vpavgw Vpblendmw
        Vpblendw Vpbroadcastw Vpcmpeqw Vpcmpgtw Vpcmpuw Vpcmpw Vpcompressw Vpcomuw Vpcomw Vpermi2w Vpermt2w Vpermw
        Vpexpandw Vphaddbw Vphaddsw Vphaddubw Vphaddw Vphminposuw Vphsubbw Vphsubsw Vphsubw Vpmacssww Vpmacsww
        Vpmaddubsw Vpmaxsw Vpmaxuw Vpminsw Vpminuw Vpmovm2w Vpmulhrsw Vpmulhuw Vpmulhw Vpmullw Vpopcntw Vprotw Vpsadbw
        Vpshaw Vpshldvw Vpshldw Vpshlw Vpshrdvw Vpshrdw Vpshufhw Vpshuflw Vpsignw Vpsllvw Vpsllw Vpsravw Vpsraw Vpsrlvw
        Vpsrlw Vpsubsw Vpsubusw Vpsubw Vptestmw Vptestnmw Vpunpckhbw Vpunpcklbw;
    vector(Packing::Packed, Element::I32) =>
        Bound Pabsd Paddd Pcmpeqd Pcmpgtd Pf2id Pfadd Phaddd Phsubd Pi2fd Pmaddwd Pmaxsd Pmaxud Pminsd Pminud Pmulld
        Pshufd Psignd Pslld Psrad Psrld Psubd Pswapd Punpckhwd Punpcklwd Tdpbsud Tdpbuud Tileloadd Tilestored Valignd
        Vp2intersectd Vp4dpwssd Vpabsd Vpaddd Vpandd Vpandnd Vpblendd Vpblendmd Vpbroadcastd Vpbroadcastmw2d Vpcmpd
        Vpcmpeqd Vpcmpgtd Vpcmpud Vpcomd Vpcompressd Vpcomud Vpconflictd Vpdpbssd Vpdpbsud Vpdpbusd Vpdpbuud Vpdpwssd
        Vpdpwsud Vpdpwusd Vpdpwuud Vpermd Vpermi2d Vpermi2pd Vpermil2pd Vpermilpd Vpermpd Vpermt2d Vpermt2pd Vpexpandd
        Vpgatherdd Vpgatherqd Vphaddbd Vphaddd Vphaddubd Vphadduwd Vphaddwd Vphsubd Vphsubwd Vplzcntd Vpmacsdd
        Vpmacssdd Vpmacsswd Vpmacswd Vpmadcsswd Vpmadcswd Vpmaddwd Vpmaskmovd Vpmaxsd Vpmaxud Vpminsd Vpminud Vpmovm2d
        Vpmulld Vpopcntd Vpord Vprold Vprolvd Vprord Vprorvd Vprotd Vpscatterdd Vpscatterqd Vpshad Vpshld Vpshldd
        Vpshldvd Vpshrdd Vpshrdvd Vpshufd Vpsignd Vpslld Vpsllvd Vpsrad Vpsravd Vpsrld Vpsrlvd Vpsubd Vpternlogd
        Vptestmd Vptestnmd Vpunpckhwd Vpunpcklwd Vpxord;
    vector(Packing::Packed, Element::I64) =>
        Extrq Insertq Pcmpeqq Pcmpgtq Pfcmpeq Psllq Psrlq Psubq Valignq Vp2intersectq Vpabsq Vpandnq Vpblendmq
        Vpbroadcastmb2q Vpbroadcastq Vpcmpeqq Vpcmpgtq Vpcmpq Vpcmpuq Vpcompressq Vpcomq Vpcomuq Vpconflictq Vpermi2q
        Vpermq Vpermt2q Vpgatherqq Vphaddbq Vphaddubq Vphadduwq Vphaddwq Vplzcntq Vpmadd52huq Vpmadd52luq Vpmaskmovq
        Vpmaxsq Vpmaxuq Vpminsq Vpminuq Vpmovm2q Vpmullq Vpopcntq Vporq Vprolq Vprolvq Vprorq Vprorvq Vprotq
        Vpscatterqq Vpshaq Vpshldvq Vpshlq Vpshrdvq Vpsllq Vpsllvq Vpsraq Vpsravq Vpsrlq Vpsrlvq Vpsubq Vpternlogq
        Vptestmq Vptestnmq Vpxorq;
    vector(Packing::Packed, Element::I8) =>
        Gf2p8affineinvqb Gf2p8affineqb Gf2p8mulb Pabsb Packsswb Packuswb Paddb Paddsb Paddusb Paveb Pavgb Pavgusb
        Pblendvb Pcmpeqb Pcmpgtb Pdistib Pfsub Pmaxsb Pmaxub Pminsb Pminub Pmovmskb Pmvgezb Pmvlzb Pmvnzb Pmvzb Pshufb
        Psignb Psubb Psubsb Psubusb Vgf2p8affineinvqb Vgf2p8affineqb Vgf2p8mulb Vpabsb Vpacksswb Vpackuswb Vpaddb
        Vpaddsb Vpaddusb Vpavgb Vpblendmb Vpblendvb Vpbroadcastb Vpcmpb Vpcmpeqb Vpcmpgtb Vpcmpub Vpcomb Vpcompressb
        Vpcomub Vpermb Vpermi2b Vpermt2b Vpexpandb Vpmaxsb Vpmaxub Vpminsb Vpminub Vpmovm2b Vpmovmskb Vpmultishiftqb
        Vpopcntb Vprotb Vpshab Vpshlb Vpshufb Vpshufbitqmb Vpsignb Vpsubb Vpsubsb Vpsubusb Vptestmb Vptestnmb;
    always(Packing::Packed, Element::Bits) =>
        Lddqu Movdqa Movdqu Movntdq Movntdqa Movntq Pand Pandn Por Ptest Pxor Vlddqu Vmovdqa Vmovdqu Vmovntdq Vmovntdqa
        Vpand Vpandn Vpor Vptest Vpxor;
    always(Packing::Packed, Element::I16) =>
        Vpmovw2m;
    always(Packing::Packed, Element::I32) =>
        Vpmovd2m;
    always(Packing::Packed, Element::I64) =>
        Vpmovq2m;
    always(Packing::Packed, Element::I8) =>
        Maskmovdqu Maskmovq Vmaskmovdqu Vpmovb2m;
    vector(Packing::Scalar, Element::F16) =>
        Vaddsh Vcmpsh Vcomish Vdivsh Vfcmaddcsh Vfcmulcsh Vfmadd132sh Vfmadd213sh Vfmadd231sh Vfmaddcsh Vfmsub132sh
        Vfmsub213sh Vfmsub231sh Vfmulcsh Vfnmadd132sh Vfnmadd213sh Vfnmadd231sh Vfnmsub132sh Vfnmsub213sh Vfnmsub231sh
        Vfpclasssh Vgetexpsh Vgetmantsh Vmaxsh Vminsh Vmovsh Vmulsh Vrcpsh Vreducesh Vrndscalesh Vrsqrtsh Vscalefsh
        Vsqrtsh Vsubsh Vucomish;
    vector(Packing::Scalar, Element::F32) =>
        Addss Cmpss Comiss Divss Extractps Insertps Maxss Minss Movntss Movss Mulss Rcpss Roundss Rsqrtss Sqrtss Subss
        Ucomiss V4fmaddss V4fnmaddss Vaddss Vcmpss Vcomiss Vdivss Vextractps Vfixupimmss Vfmadd132ss Vfmadd213ss
        Vfmadd231ss Vfmaddss Vfmsub132ss Vfmsub213ss Vfmsub231ss Vfmsubss Vfnmadd132ss Vfnmadd213ss Vfnmadd231ss
        Vfnmaddss Vfnmsub132ss Vfnmsub213ss Vfnmsub231ss Vfnmsubss Vfpclassss Vfrczss Vgetexpss Vgetmantss Vinsertps
        Vmaxss Vminss Vmovss Vmulss Vrangess Vrcp14ss Vrcp28ss Vrcpss Vreducess Vrndscaless Vroundss Vrsqrt14ss
        Vrsqrt28ss Vrsqrtss Vscalefss Vsqrtss Vsubss Vucomiss;
    vector(Packing::Scalar, Element::F64) =>
        Addsd Cmpsd Comisd Divsd Maxsd Minsd Movhpd Movlpd Movntsd Movsd Mulsd Roundsd Sqrtsd Subsd Tdpbssd Tdpbusd
        Ucomisd Vaddsd Vcmpsd Vcomisd Vdivsd Vfixupimmsd Vfmadd132sd Vfmadd213sd Vfmadd231sd Vfmaddsd Vfmsub132sd
        Vfmsub213sd Vfmsub231sd Vfmsubsd Vfnmadd132sd Vfnmadd213sd Vfnmadd231sd Vfnmaddsd Vfnmsub132sd Vfnmsub213sd
        Vfnmsub231sd Vfnmsubsd Vfpclasssd Vfrczsd Vgetexpsd Vgetmantsd Vmaxsd Vminsd Vmovhpd Vmovlpd Vmovsd Vmulsd
        Vrangesd Vrcp14sd Vrcp28sd Vreducesd Vrndscalesd Vroundsd Vrsqrt14sd Vrsqrt28sd Vscalefsd Vsqrtsd Vsubsd
        Vucomisd;
    vector(Packing::Scalar, Element::I16) =>
        Pextrw Pinsrw Vmovw Vpextrw Vpinsrw;
    vector(Packing::Scalar, Element::I32) =>
        Movd Pextrd Pinsrd Vmovd Vpextrd Vpinsrd;
    vector(Packing::Scalar, Element::I64) =>
        Movq Pextrq Pinsrq Vmovq Vpextrq Vpinsrq;
    vector(Packing::Scalar, Element::I8) =>
        Pextrb Pinsrb Vpextrb Vpinsrb;
    always(Packing::Scalar, Element::I64) =>
        Movdq2q Movq2dq;
}

by_mnemonic! {
    /// Bits of the masks that an instruction on mask registers works on, 0 where its mnemonic does not say; `None` for any other instruction.
    pub(super) fn mask_bits -> Option<usize>, otherwise None;
    Some(8) =>
        Kaddb Kandb Kandnb Kmovb Knotb Korb Kortestb Kshiftlb Kshiftrb Ktestb Kxnorb Kxorb;
    Some(32) =>
        Kaddd Kand Kandd Kandnd Kmovd Knotd Kord Kortestd Kshiftld Kshiftrd Ktestd Kunpckwd Kxnord Kxord;
    Some(64) =>
        Kaddq Kandnq Kandq Kmovq Knotq Korq Kortestq Kshiftlq Kshiftrq Ktestq Kunpckdq Kxnorq Kxorq;
    Some(16) =>
        Kaddw Kandnw Kandw Kmovw Knotw Kortestw Korw Kshiftlw Kshiftrw Ktestw Kunpckbw Kxnorw Kxorw;
    Some(0) =>
        Kandn Kandnr Kconcath Kconcatl Kextract Kmerge2l1h Kmerge2l1l Kmov Knot Kor Kortest Kxnor Kxor;
}

by_mnemonic! {
    /// Elements of tiles; `None` for an instruction that works on none.
    pub(super) fn tile_element -> Option<Element>, otherwise None;
    Some(Element::Bf16) =>
        Tdpbf16ps;
    Some(Element::Bits) =>
        Tileloadd Tileloaddt1 Tilerelease Tilestored Tilezero;
    Some(Element::F16) =>
        Tcmmimfp16ps Tcmmrlfp16ps Tdpfp16ps;
    Some(Element::I8) =>
        Tdpbssd Tdpbsud Tdpbusd Tdpbuud;
}

by_mnemonic! {
    /// Whether it works on the control, the status and the tags of the x87 unit, and on no number.
    pub(super) fn controls_x87 -> bool, otherwise false;
    true =>
        Fclex Fdecstp Ffree Ffreep Fincstp Finit Fldcw Fldenv Fnclex Fninit Fnop Fnsave Fnstcw Fnstenv Fnstsw Frstor
        Fsave Fstcw Fstenv Fstsw;
}
