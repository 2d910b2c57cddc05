//! Which mnemonic is of which category.

use iced_x86::{Code, Mnemonic};

use super::by_mnemonic::by_mnemonic;
use super::category::Category;

/// What an opcode is for. Its mnemonic decides, but for three names with several meanings.
pub(super) fn category(code: Code) -> Category {
    match code.mnemonic() {
        // The string instruction and the one on vectors have the same name.
        Mnemonic::Movsd if code == Code::Movsd_m32_m32 => Category::String,
        Mnemonic::Movsd => Category::DataTransfer,
        Mnemonic::Cmpsd if code == Code::Cmpsd_m32_m32 => Category::String,
        Mnemonic::Cmpsd => Category::Compare,
        Mnemonic::Undoc => undocumented(code),
        mnemonic => of_mnemonic(mnemonic),
    }
}

/// Instructions that no manual has a name for.
fn undocumented(code: Code) -> Category {
    match code {
        Code::Via_undoc_F30FA6F0_16
        | Code::Via_undoc_F30FA6F0_32
        | Code::Via_undoc_F30FA6F0_64
        | Code::Via_undoc_F30FA6F8_16
        | Code::Via_undoc_F30FA6F8_32
        | Code::Via_undoc_F30FA6F8_64 => Category::Crypto,
        Code::Cyrix_D9D7
        | Code::Cyrix_D9E2
        | Code::Cyrix_D9E7
        | Code::Cyrix_DED8
        | Code::Cyrix_DEDA
        | Code::Cyrix_DEDC
        | Code::Cyrix_DEDD
        | Code::Cyrix_DEDE => Category::X87,
        _ => Category::System,
    }
}

by_mnemonic! {
    fn of_mnemonic -> Category, otherwise Category::System;
    Category::DataTransfer =>
        Bswap Lddqu Lds Les Lfs Lgs Lss Maskmovdqu Maskmovq Mov Movapd Movaps Movbe Movd Movdir64b Movdiri Movdq2q
        Movdqa Movdqu Movhpd Movhps Movlpd Movlps Movmskpd Movmskps Movntdq Movntdqa Movnti Movntpd Movntps Movntq
        Movntsd Movntss Movq Movq2dq Movss Movsx Movsxd Movupd Movups Movzx Pmovmskb Umov Vlddqu Vmaskmovdqu
        Vmaskmovpd Vmaskmovps Vmovapd Vmovaps Vmovd Vmovdqa Vmovdqa32 Vmovdqa64 Vmovdqu Vmovdqu16 Vmovdqu32 Vmovdqu64
        Vmovdqu8 Vmovhpd Vmovhps Vmovlpd Vmovlps Vmovmskpd Vmovmskps Vmovntdq Vmovntdqa Vmovntpd Vmovntps Vmovq Vmovsd
        Vmovsh Vmovss Vmovupd Vmovups Vmovw Vpmaskmovd Vpmaskmovq Vpmovmskb Xchg Xlatb;
    Category::ConditionalMove =>
        Cmova Cmovae Cmovb Cmovbe Cmove Cmovg Cmovge Cmovl Cmovle Cmovne Cmovno Cmovnp Cmovns Cmovo Cmovp Cmovs;
    Category::ConditionalSet =>
        Seta Setae Setb Setbe Sete Setg Setge Setl Setle Setne Setno Setnp Setns Seto Setp Sets;
    Category::Stack =>
        Enter Leave Pop Popa Popad Popf Popfd Popfq Push Pusha Pushad Pushf Pushfd Pushfq;
    Category::Address =>
        Lea;
    Category::IntegerArithmetic =>
        Adc Adcx Add Adox Dec Div Idiv Imul Inc Mul Mulx Neg Sbb Sub;
    Category::Decimal =>
        Aaa Aad Aam Aas Daa Das;
    Category::Logical =>
        And Andn Andnpd Andnps Andpd Andps Not Or Orpd Orps Pand Pandn Por Pxor Vandnpd Vandnps Vandpd Vandps Vorpd
        Vorps Vpand Vpandd Vpandn Vpandnd Vpandnq Vpandq Vpcmov Vpor Vpord Vporq Vpternlogd Vpternlogq Vpxor Vpxord
        Vpxorq Vxorpd Vxorps Xor Xorpd Xorps;
    Category::Shift =>
        Pslld Pslldq Psllq Psllw Psrad Psraw Psrld Psrldq Psrlq Psrlw Rcl Rcr Rol Ror Rorx Sal Sar Sarx Shl Shld Shlx
        Shr Shrd Shrx Vpmultishiftqb Vprold Vprolq Vprolvd Vprolvq Vprord Vprorq Vprorvd Vprorvq Vprotb Vprotd Vprotq
        Vprotw Vpshab Vpshad Vpshaq Vpshaw Vpshlb Vpshld Vpshldd Vpshldq Vpshldvd Vpshldvq Vpshldvw Vpshldw Vpshlq
        Vpshlw Vpshrdd Vpshrdq Vpshrdvd Vpshrdvq Vpshrdvw Vpshrdw Vpslld Vpslldq Vpsllq Vpsllvd Vpsllvq Vpsllvw Vpsllw
        Vpsrad Vpsraq Vpsravd Vpsravq Vpsravw Vpsraw Vpsrld Vpsrldq Vpsrlq Vpsrlvd Vpsrlvq Vpsrlvw Vpsrlw;
    Category::Bit =>
        Bextr Blcfill Blci Blcic Blcmsk Blcs Blsfill Blsi Blsic Blsmsk Blsr Bsf Bsr Bt Btc Btr Bts Bzhi Crc32 Lzcnt
        Pdep Pext Popcnt T1mskc Tzcnt Tzcnti Tzmsk Vplzcntd Vplzcntq Vpopcntb Vpopcntd Vpopcntq Vpopcntw Vpshufbitqmb;
    Category::Compare =>
        Bound Cmp Cmppd Cmpps Cmpss Comisd Comiss Pcmpeqb Pcmpeqd Pcmpeqq Pcmpeqw Pcmpgtb Pcmpgtd Pcmpgtq Pcmpgtw
        Pfcmpeq Pfcmpge Pfcmpgt Ptest Test Ucomisd Ucomiss Vcmppd Vcmpph Vcmpps Vcmpsd Vcmpsh Vcmpss Vcomisd Vcomish
        Vcomiss Vfpclasspd Vfpclassph Vfpclassps Vfpclasssd Vfpclasssh Vfpclassss Vp2intersectd Vp2intersectq Vpcmpb
        Vpcmpd Vpcmpeqb Vpcmpeqd Vpcmpeqq Vpcmpeqw Vpcmpgtb Vpcmpgtd Vpcmpgtq Vpcmpgtw Vpcmpq Vpcmpub Vpcmpud Vpcmpuq
        Vpcmpuw Vpcmpw Vpcomb Vpcomd Vpcomq Vpcomub Vpcomud Vpcomuq Vpcomuw Vpcomw Vpconflictd Vpconflictq Vptest
        Vptestmb Vptestmd Vptestmq Vptestmw Vptestnmb Vptestnmd Vptestnmq Vptestnmw Vtestpd Vtestps Vucomisd Vucomish
        Vucomiss;
    Category::Branch =>
        Altinst Ja Jae Jb Jbe Jcxz Je Jecxz Jg Jge Jknzd Jkzd Jl Jle Jmp Jmpe Jne Jno Jnp Jns Jo Jp Jrcxz Js Loop
        Loope Loopne;
    Category::Call =>
        Call;
    Category::Return =>
        Ret Retf;
    Category::SystemCall =>
        Syscall Sysenter Sysexit Sysexitq Sysret Sysretq;
    Category::Interrupt =>
        Int Int1 Int3 Into Iret Iretd Iretq Ud0 Ud1 Ud2 Uiret;
    Category::String =>
        Cmpsb Cmpsq Cmpsw Lodsb Lodsd Lodsq Lodsw Movsb Movsq Movsw Pcmpestri Pcmpestri64 Pcmpestrm Pcmpestrm64
        Pcmpistri Pcmpistrm Scasb Scasd Scasq Scasw Stosb Stosd Stosq Stosw Vpcmpestri Vpcmpestri64 Vpcmpestrm
        Vpcmpestrm64 Vpcmpistri Vpcmpistrm;
    Category::InputOutput =>
        In Insb Insd Insw Out Outsb Outsd Outsw;
    Category::Flags =>
        Clc Cld Cmc Lahf Sahf Salc Stc Std;
    Category::Conversion =>
        Cbw Cdq Cdqe Cqo Cvtdq2pd Cvtdq2ps Cvtpd2dq Cvtpd2pi Cvtpd2ps Cvtpi2pd Cvtpi2ps Cvtps2dq Cvtps2pd Cvtps2pi
        Cvtsd2si Cvtsd2ss Cvtsi2sd Cvtsi2ss Cvtss2sd Cvtss2si Cvttpd2dq Cvttpd2pi Cvttps2dq Cvttps2pi Cvttsd2si
        Cvttss2si Cwd Cwde Pf2id Pf2iw Pi2fd Pi2fw Pmovsxbd Pmovsxbq Pmovsxbw Pmovsxdq Pmovsxwd Pmovsxwq Pmovzxbd
        Pmovzxbq Pmovzxbw Pmovzxdq Pmovzxwd Pmovzxwq Vbcstnebf162ps Vbcstnesh2ps Vcvtdq2pd Vcvtdq2ph Vcvtdq2ps
        Vcvtne2ps2bf16 Vcvtneebf162ps Vcvtneeph2ps Vcvtneobf162ps Vcvtneoph2ps Vcvtneps2bf16 Vcvtpd2dq Vcvtpd2ph
        Vcvtpd2ps Vcvtpd2qq Vcvtpd2udq Vcvtpd2uqq Vcvtph2dq Vcvtph2pd Vcvtph2ps Vcvtph2psx Vcvtph2qq Vcvtph2udq
        Vcvtph2uqq Vcvtph2uw Vcvtph2w Vcvtps2dq Vcvtps2pd Vcvtps2ph Vcvtps2phx Vcvtps2qq Vcvtps2udq Vcvtps2uqq
        Vcvtqq2pd Vcvtqq2ph Vcvtqq2ps Vcvtsd2sh Vcvtsd2si Vcvtsd2ss Vcvtsd2usi Vcvtsh2sd Vcvtsh2si Vcvtsh2ss
        Vcvtsh2usi Vcvtsi2sd Vcvtsi2sh Vcvtsi2ss Vcvtss2sd Vcvtss2sh Vcvtss2si Vcvtss2usi Vcvttpd2dq Vcvttpd2qq
        Vcvttpd2udq Vcvttpd2uqq Vcvttph2dq Vcvttph2qq Vcvttph2udq Vcvttph2uqq Vcvttph2uw Vcvttph2w Vcvttps2dq
        Vcvttps2qq Vcvttps2udq Vcvttps2uqq Vcvttsd2si Vcvttsd2usi Vcvttsh2si Vcvttsh2usi Vcvttss2si Vcvttss2usi
        Vcvtudq2pd Vcvtudq2ph Vcvtudq2ps Vcvtuqq2pd Vcvtuqq2ph Vcvtuqq2ps Vcvtusi2sd Vcvtusi2sh Vcvtusi2ss Vcvtuw2ph
        Vcvtw2ph Vpmovdb Vpmovdw Vpmovqb Vpmovqd Vpmovqw Vpmovsdb Vpmovsdw Vpmovsqb Vpmovsqd Vpmovsqw Vpmovswb
        Vpmovsxbd Vpmovsxbq Vpmovsxbw Vpmovsxdq Vpmovsxwd Vpmovsxwq Vpmovusdb Vpmovusdw Vpmovusqb Vpmovusqd Vpmovusqw
        Vpmovuswb Vpmovwb Vpmovzxbd Vpmovzxbq Vpmovzxbw Vpmovzxdq Vpmovzxwd Vpmovzxwq;
    Category::FloatArithmetic =>
        Addpd Addps Addsd Addss Addsubpd Addsubps Divpd Divps Divsd Divss Dppd Dpps Haddpd Haddps Hsubpd Hsubps Maxpd
        Maxps Maxsd Maxss Minpd Minps Minsd Minss Mulpd Mulps Mulsd Mulss Pfacc Pfadd Pfmax Pfmin Pfmul Pfnacc Pfpnacc
        Pfrcp Pfrcpit1 Pfrcpit2 Pfrcpv Pfrsqit1 Pfrsqrt Pfrsqrtv Pfsub Pfsubr Rcpps Rcpss Roundpd Roundps Roundsd
        Roundss Rsqrtps Rsqrtss Sqrtpd Sqrtps Sqrtsd Sqrtss Subpd Subps Subsd Subss Vaddpd Vaddph Vaddps Vaddsd Vaddsh
        Vaddss Vaddsubpd Vaddsubps Vdivpd Vdivph Vdivps Vdivsd Vdivsh Vdivss Vdpbf16ps Vdppd Vdpps Vexp2pd Vexp2ps
        Vfcmulcph Vfcmulcsh Vfixupimmpd Vfixupimmps Vfixupimmsd Vfixupimmss Vfmulcph Vfmulcsh Vfrczpd Vfrczps Vfrczsd
        Vfrczss Vgetexppd Vgetexpph Vgetexpps Vgetexpsd Vgetexpsh Vgetexpss Vgetmantpd Vgetmantph Vgetmantps
        Vgetmantsd Vgetmantsh Vgetmantss Vhaddpd Vhaddps Vhsubpd Vhsubps Vmaxpd Vmaxph Vmaxps Vmaxsd Vmaxsh Vmaxss
        Vminpd Vminph Vminps Vminsd Vminsh Vminss Vmulpd Vmulph Vmulps Vmulsd Vmulsh Vmulss Vrangepd Vrangeps Vrangesd
        Vrangess Vrcp14pd Vrcp14ps Vrcp14sd Vrcp14ss Vrcp28pd Vrcp28ps Vrcp28sd Vrcp28ss Vrcpph Vrcpps Vrcpsh Vrcpss
        Vreducepd Vreduceph Vreduceps Vreducesd Vreducesh Vreducess Vrndscalepd Vrndscaleph Vrndscaleps Vrndscalesd
        Vrndscalesh Vrndscaless Vroundpd Vroundps Vroundsd Vroundss Vrsqrt14pd Vrsqrt14ps Vrsqrt14sd Vrsqrt14ss
        Vrsqrt28pd Vrsqrt28ps Vrsqrt28sd Vrsqrt28ss Vrsqrtph Vrsqrtps Vrsqrtsh Vrsqrtss Vscalefpd Vscalefph Vscalefps
        Vscalefsd Vscalefsh Vscalefss Vsqrtpd Vsqrtph Vsqrtps Vsqrtsd Vsqrtsh Vsqrtss Vsubpd Vsubph Vsubps Vsubsd
        Vsubsh Vsubss;
    Category::Fma =>
        V4fmaddps V4fmaddss V4fnmaddps V4fnmaddss Vfcmaddcph Vfcmaddcsh Vfmadd132pd Vfmadd132ph Vfmadd132ps
        Vfmadd132sd Vfmadd132sh Vfmadd132ss Vfmadd213pd Vfmadd213ph Vfmadd213ps Vfmadd213sd Vfmadd213sh Vfmadd213ss
        Vfmadd231pd Vfmadd231ph Vfmadd231ps Vfmadd231sd Vfmadd231sh Vfmadd231ss Vfmaddcph Vfmaddcsh Vfmaddpd Vfmaddps
        Vfmaddsd Vfmaddss Vfmaddsub132pd Vfmaddsub132ph Vfmaddsub132ps Vfmaddsub213pd Vfmaddsub213ph Vfmaddsub213ps
        Vfmaddsub231pd Vfmaddsub231ph Vfmaddsub231ps Vfmaddsubpd Vfmaddsubps Vfmsub132pd Vfmsub132ph Vfmsub132ps
        Vfmsub132sd Vfmsub132sh Vfmsub132ss Vfmsub213pd Vfmsub213ph Vfmsub213ps Vfmsub213sd Vfmsub213sh Vfmsub213ss
        Vfmsub231pd Vfmsub231ph Vfmsub231ps Vfmsub231sd Vfmsub231sh Vfmsub231ss Vfmsubadd132pd Vfmsubadd132ph
        Vfmsubadd132ps Vfmsubadd213pd Vfmsubadd213ph Vfmsubadd213ps Vfmsubadd231pd Vfmsubadd231ph Vfmsubadd231ps
        Vfmsubaddpd Vfmsubaddps Vfmsubpd Vfmsubps Vfmsubsd Vfmsubss Vfnmadd132pd Vfnmadd132ph Vfnmadd132ps
        Vfnmadd132sd Vfnmadd132sh Vfnmadd132ss Vfnmadd213pd Vfnmadd213ph Vfnmadd213ps Vfnmadd213sd Vfnmadd213sh
        Vfnmadd213ss Vfnmadd231pd Vfnmadd231ph Vfnmadd231ps Vfnmadd231sd Vfnmadd231sh Vfnmadd231ss Vfnmaddpd Vfnmaddps
        Vfnmaddsd Vfnmaddss Vfnmsub132pd Vfnmsub132ph Vfnmsub132ps Vfnmsub132sd Vfnmsub132sh Vfnmsub132ss Vfnmsub213pd
        Vfnmsub213ph Vfnmsub213ps Vfnmsub213sd Vfnmsub213sh Vfnmsub213ss Vfnmsub231pd Vfnmsub231ph Vfnmsub231ps
        Vfnmsub231sd Vfnmsub231sh Vfnmsub231ss Vfnmsubpd Vfnmsubps Vfnmsubsd Vfnmsubss;
    Category::SimdInteger =>
        Mpsadbw Pabsb Pabsd Pabsw Paddb Paddd Paddq Paddsb Paddsiw Paddsw Paddusb Paddusw Paddw Paveb Pavgb Pavgusb
        Pavgw Pdistib Phaddd Phaddsw Phaddw Phminposuw Phsubd Phsubsw Phsubw Pmachriw Pmaddubsw Pmaddwd Pmagw Pmaxsb
        Pmaxsd Pmaxsw Pmaxub Pmaxud Pmaxuw Pminsb Pminsd Pminsw Pminub Pminud Pminuw Pmuldq Pmulhriw Pmulhrsw Pmulhrw
        Pmulhuw Pmulhw Pmulld Pmullw Pmuludq Pmvgezb Pmvlzb Pmvnzb Pmvzb Psadbw Psignb Psignd Psignw Psubb Psubd Psubq
        Psubsb Psubsiw Psubsw Psubusb Psubusw Psubw Vdbpsadbw Vmpsadbw Vp4dpwssd Vp4dpwssds Vpabsb Vpabsd Vpabsq
        Vpabsw Vpaddb Vpaddd Vpaddq Vpaddsb Vpaddsw Vpaddusb Vpaddusw Vpaddw Vpavgb Vpavgw Vpdpbssd Vpdpbssds Vpdpbsud
        Vpdpbsuds Vpdpbusd Vpdpbusds Vpdpbuud Vpdpbuuds Vpdpwssd Vpdpwssds Vpdpwsud Vpdpwsuds Vpdpwusd Vpdpwusds
        Vpdpwuud Vpdpwuuds Vphaddbd Vphaddbq Vphaddbw Vphaddd Vphadddq Vphaddsw Vphaddubd Vphaddubq Vphaddubw
        Vphaddudq Vphadduwd Vphadduwq Vphaddw Vphaddwd Vphaddwq Vphminposuw Vphsubbw Vphsubd Vphsubdq Vphsubsw Vphsubw
        Vphsubwd Vpmacsdd Vpmacsdqh Vpmacsdql Vpmacssdd Vpmacssdqh Vpmacssdql Vpmacsswd Vpmacssww Vpmacswd Vpmacsww
        Vpmadcsswd Vpmadcswd Vpmadd52huq Vpmadd52luq Vpmaddubsw Vpmaddwd Vpmaxsb Vpmaxsd Vpmaxsq Vpmaxsw Vpmaxub
        Vpmaxud Vpmaxuq Vpmaxuw Vpminsb Vpminsd Vpminsq Vpminsw Vpminub Vpminud Vpminuq Vpminuw Vpmuldq Vpmulhrsw
        Vpmulhuw Vpmulhw Vpmulld Vpmullq Vpmullw Vpmuludq Vpsadbw Vpsignb Vpsignd Vpsignw Vpsubb Vpsubd Vpsubq Vpsubsb
        Vpsubsw Vpsubusb Vpsubusw Vpsubw;
    Category::Shuffle =>
        Blendpd Blendps Blendvpd Blendvps Extractps Extrq Insertps Insertq Movddup Movhlps Movlhps Movshdup Movsldup
        Packssdw Packsswb Packusdw Packuswb Palignr Pblendvb Pblendw Pextrb Pextrd Pextrq Pextrw Pinsrb Pinsrd Pinsrq
        Pinsrw Pshufb Pshufd Pshufhw Pshuflw Pshufw Pswapd Punpckhbw Punpckhdq Punpckhqdq Punpckhwd Punpcklbw
        Punpckldq Punpcklqdq Punpcklwd Shufpd Shufps Unpckhpd Unpckhps Unpcklpd Unpcklps Valignd Valignq Vblendmpd
        Vblendmps Vblendpd Vblendps Vblendvpd Vblendvps Vbroadcastf128 Vbroadcastf32x2 Vbroadcastf32x4 Vbroadcastf32x8
        Vbroadcastf64x2 Vbroadcastf64x4 Vbroadcasti128 Vbroadcasti32x2 Vbroadcasti32x4 Vbroadcasti32x8 Vbroadcasti64x2
        Vbroadcasti64x4 Vbroadcastsd Vbroadcastss Vcompresspd Vcompressps Vexpandpd Vexpandps Vextractf128
        Vextractf32x4 Vextractf32x8 Vextractf64x2 Vextractf64x4 Vextracti128 Vextracti32x4 Vextracti32x8 Vextracti64x2
        Vextracti64x4 Vextractps Vinsertf128 Vinsertf32x4 Vinsertf32x8 Vinsertf64x2 Vinsertf64x4 Vinserti128
        Vinserti32x4 Vinserti32x8 Vinserti64x2 Vinserti64x4 Vinsertps Vmovddup Vmovhlps Vmovlhps Vmovshdup Vmovsldup
        Vpackssdw Vpacksswb Vpackusdw Vpackuswb Vpalignr Vpblendd Vpblendmb Vpblendmd Vpblendmq Vpblendmw Vpblendvb
        Vpblendw Vpbroadcastb Vpbroadcastd Vpbroadcastmb2q Vpbroadcastmw2d Vpbroadcastq Vpbroadcastw Vpcompressb
        Vpcompressd Vpcompressq Vpcompressw Vperm2f128 Vperm2i128 Vpermb Vpermd Vpermi2b Vpermi2d Vpermi2pd Vpermi2ps
        Vpermi2q Vpermi2w Vpermil2pd Vpermil2ps Vpermilpd Vpermilps Vpermpd Vpermps Vpermq Vpermt2b Vpermt2d Vpermt2pd
        Vpermt2ps Vpermt2q Vpermt2w Vpermw Vpexpandb Vpexpandd Vpexpandq Vpexpandw Vpextrb Vpextrd Vpextrq Vpextrw
        Vpinsrb Vpinsrd Vpinsrq Vpinsrw Vpperm Vpshufb Vpshufd Vpshufhw Vpshuflw Vpunpckhbw Vpunpckhdq Vpunpckhqdq
        Vpunpckhwd Vpunpcklbw Vpunpckldq Vpunpcklqdq Vpunpcklwd Vshuff32x4 Vshuff64x2 Vshufi32x4 Vshufi64x2 Vshufpd
        Vshufps Vunpckhpd Vunpckhps Vunpcklpd Vunpcklps;
    Category::GatherScatter =>
        Vgatherdpd Vgatherdps Vgatherqpd Vgatherqps Vpgatherdd Vpgatherdq Vpgatherqd Vpgatherqq Vpscatterdd
        Vpscatterdq Vpscatterqd Vpscatterqq Vscatterdpd Vscatterdps Vscatterqpd Vscatterqps;
    Category::Mask =>
        Kaddb Kaddd Kaddq Kaddw Kand Kandb Kandd Kandn Kandnb Kandnd Kandnq Kandnr Kandnw Kandq Kandw Kconcath
        Kconcatl Kextract Kmerge2l1h Kmerge2l1l Kmov Kmovb Kmovd Kmovq Kmovw Knot Knotb Knotd Knotq Knotw Kor Korb
        Kord Korq Kortest Kortestb Kortestd Kortestq Kortestw Korw Kshiftlb Kshiftld Kshiftlq Kshiftlw Kshiftrb
        Kshiftrd Kshiftrq Kshiftrw Ktestb Ktestd Ktestq Ktestw Kunpckbw Kunpckdq Kunpckwd Kxnor Kxnorb Kxnord Kxnorq
        Kxnorw Kxor Kxorb Kxord Kxorq Kxorw Vpmovb2m Vpmovd2m Vpmovm2b Vpmovm2d Vpmovm2q Vpmovm2w Vpmovq2m Vpmovw2m;
    Category::Matrix =>
        Ldtilecfg Sttilecfg Tcmmimfp16ps Tcmmrlfp16ps Tdpbf16ps Tdpbssd Tdpbsud Tdpbusd Tdpbuud Tdpfp16ps Tileloadd
        Tileloaddt1 Tilerelease Tilestored Tilezero;
    Category::Crypto =>
        Aesdec Aesdec128kl Aesdec256kl Aesdeclast Aesdecwide128kl Aesdecwide256kl Aesenc Aesenc128kl Aesenc256kl
        Aesenclast Aesencwide128kl Aesencwide256kl Aesimc Aeskeygenassist Ccs_encrypt Ccs_hash Encodekey128
        Encodekey256 Gf2p8affineinvqb Gf2p8affineqb Gf2p8mulb Loadiwkey Montmul Pclmulqdq Rdrand Rdseed Sha1msg1
        Sha1msg2 Sha1nexte Sha1rnds4 Sha256msg1 Sha256msg2 Sha256rnds2 Vaesdec Vaesdeclast Vaesenc Vaesenclast Vaesimc
        Vaeskeygenassist Vgf2p8affineinvqb Vgf2p8affineqb Vgf2p8mulb Vpclmulqdq Vsha512msg1 Vsha512msg2 Vsha512rnds2
        Vsm3msg1 Vsm3msg2 Vsm3rnds2 Vsm4key4 Vsm4rnds4 Xcryptcbc Xcryptcfb Xcryptctr Xcryptecb Xcryptofb Xsha1 Xsha256
        Xsha512 Xsha512_alt Xstore Xstore_alt;
    Category::X87 =>
        F2xm1 Fabs Fadd Faddp Fbld Fbstp Fchs Fclex Fcmovb Fcmovbe Fcmove Fcmovnb Fcmovnbe Fcmovne Fcmovnu Fcmovu Fcom
        Fcomi Fcomip Fcomp Fcompp Fcos Fdecstp Fdisi Fdiv Fdivp Fdivr Fdivrp Feni Ffree Ffreep Fiadd Ficom Ficomp
        Fidiv Fidivr Fild Fimul Fincstp Finit Fist Fistp Fisttp Fisub Fisubr Fld Fld1 Fldcw Fldenv Fldl2e Fldl2t
        Fldlg2 Fldln2 Fldpi Fldz Fmul Fmulp Fnclex Fndisi Fneni Fninit Fnop Fnsave Fnsetpm Fnstcw Fnstdw Fnstenv
        Fnstsg Fnstsw Fpatan Fprem Fprem1 Fptan Frichop Frinear Frint2 Frndint Frstor Frstpm Fsave Fscale Fsetpm Fsin
        Fsincos Fsqrt Fst Fstcw Fstdw Fstenv Fstp Fstpnce Fstsg Fstsw Fsub Fsubp Fsubr Fsubrp Ftst Ftstp Fucom Fucomi
        Fucomip Fucomp Fucompp Fxam Fxch Fxtract Fyl2x Fyl2xp1 Wait;
    Category::Synchronization =>
        Aadd Aand Aor Axor Cmpbexadd Cmpbxadd Cmplexadd Cmplxadd Cmpnbexadd Cmpnbxadd Cmpnlexadd Cmpnlxadd Cmpnoxadd
        Cmpnpxadd Cmpnsxadd Cmpnzxadd Cmpoxadd Cmppxadd Cmpsxadd Cmpxchg Cmpxchg16b Cmpxchg8b Cmpzxadd Lfence Mfence
        Monitor Monitorx Mwait Mwaitx Pause Sfence Tpause Umonitor Umwait Xabort Xadd Xbegin Xend Xresldtrk Xsusldtrk
        Xtest;
    Category::Cache =>
        Cldemote Clevict0 Clevict1 Clflush Clflushopt Clwb Clzero Prefetch Prefetchit0 Prefetchit1 Prefetchnta
        Prefetcht0 Prefetcht1 Prefetcht2 Prefetchw Prefetchwt1 Vgatherpf0dpd Vgatherpf0dps Vgatherpf0qpd Vgatherpf0qps
        Vgatherpf1dpd Vgatherpf1dps Vgatherpf1qpd Vgatherpf1qps Vprefetch0 Vprefetch1 Vprefetch2 Vprefetche0
        Vprefetche1 Vprefetche2 Vprefetchenta Vprefetchnta Vscatterpf0dpd Vscatterpf0dps Vscatterpf0qpd Vscatterpf0qps
        Vscatterpf1dpd Vscatterpf1dps Vscatterpf1qpd Vscatterpf1qps;
    Category::Nop =>
        Endbr32 Endbr64 Nop Reservednop;
    Category::State =>
        Emms Femms Fxrstor Fxrstor64 Fxsave Fxsave64 Ldmxcsr Stmxcsr Vldmxcsr Vstmxcsr Vzeroall Vzeroupper Xrstor
        Xrstor64 Xrstors Xrstors64 Xsave Xsave64 Xsavec Xsavec64 Xsaveopt Xsaveopt64 Xsaves Xsaves64;
}
