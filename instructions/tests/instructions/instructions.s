# One instruction per line. instructions.txt is made from it by make.sh.
mov eax, ebx
mov rax, qword ptr [rdi]
mov byte ptr [rdi], 1
mov rax, 0x1122334455667788
mov ax, ds
mov rax, cr3
movzx eax, byte ptr [rsi]
movsxd rax, ecx
movbe eax, dword ptr [rdi]
movnti dword ptr [rdi], eax
xchg eax, ebx
xchg dword ptr [rdi], eax
bswap rax
xlatb
cmovne rax, rbx
cmovb eax, dword ptr [rdi]
sete al
push rax
push qword ptr [rdi]
push 1
pop rbx
pop qword ptr [rdi]
pushfq
enter 16, 0
leave
lea rax, [rdi + 4*rsi]
add eax, ebx
add dword ptr [rdi], 1
lock add dword ptr [rdi], 1
adcx rax, rbx
inc cl
imul rax, rbx, 12
mulx rax, rbx, rcx
div rcx
idiv dword ptr [rdi]
neg rax
and rax, 15
andn eax, ebx, ecx
xor eax, eax
not qword ptr [rdi]
shl eax, 3
sar rax, cl
rorx eax, ebx, 7
shlx rax, rbx, rcx
shld eax, ebx, 3
bt dword ptr [rdi], eax
lock bts qword ptr [rdi], 5
tzcnt eax, ebx
lzcnt rax, rbx
popcnt rax, qword ptr [rdi]
pdep rax, rbx, rcx
blsr eax, ebx
crc32 eax, bl
cmp byte ptr [rdi], 0
test eax, eax
cdqe
cqo
je .
jmp .
jmp rax
jmp qword ptr [rdi]
loop .
jrcxz .
call .
call rax
call qword ptr [rdi]
ret
repz ret
iretq
syscall
sysenter
sysretq
int 0x80
int3
ud2
hlt
xbegin .
xabort 1
xend
movsb
rep movsb
rep stosq
repne scasb
lodsd
repe cmpsb
pcmpistri xmm0, xmm1, 0
in al, dx
out dx, eax
cld
lahf
nop
nop dword ptr [rax]
endbr64
pause
mfence
lock cmpxchg dword ptr [rdi], ecx
cmpxchg dword ptr [rdi], ecx
cmpxchg16b xmmword ptr [rdi]
lock xadd qword ptr [rdi], rax
monitor
prefetcht0 byte ptr [rdi]
clflush byte ptr [rdi]
fxsave [rdi]
xsave [rdi]
ldmxcsr dword ptr [rdi]
vzeroupper
emms
cpuid
rdtsc
rdrand rax
wrmsr
lgdt [rdi]
wrfsbase rax
fld dword ptr [rdi]
fld tbyte ptr [rdi]
fadd st, st(1)
fmul qword ptr [rdi]
fild word ptr [rdi]
fistp qword ptr [rdi]
fdivp st(1), st
fsqrt
fsin
fcmove st, st(1)
fnstcw word ptr [rdi]
fwait
movss xmm0, dword ptr [rdi]
movsd qword ptr [rdi], xmm1
movaps xmm0, xmm1
movups xmmword ptr [rdi], xmm1
movhps xmm0, qword ptr [rdi]
movhlps xmm0, xmm1
movd xmm0, eax
movq xmm0, xmm1
movq rax, xmm0
movdqa xmm0, xmmword ptr [rdi]
movdqu xmm0, xmm1
movntdq xmmword ptr [rdi], xmm0
movmskps eax, xmm0
pmovmskb eax, xmm0
maskmovdqu xmm0, xmm1
addss xmm0, xmm1
addsd xmm0, qword ptr [rdi]
addps xmm0, xmm1
mulpd xmm0, xmmword ptr [rdi]
divsd xmm0, xmm1
sqrtps xmm0, xmm1
minss xmm0, xmm1
roundsd xmm0, xmm1, 1
dpps xmm0, xmm1, 255
haddps xmm0, xmm1
rcpps xmm0, xmm1
andps xmm0, xmm1
pxor xmm0, xmm0
pand mm0, mm1
paddd xmm0, xmm1
paddb mm0, qword ptr [rdi]
paddq mm0, mm1
pmullw xmm0, xmm1
psadbw xmm0, xmm1
pmaxsd xmm0, xmm1
pmaddwd xmm0, xmm1
psllw xmm0, 4
psrldq xmm0, 4
cmpltsd xmm0, xmm1
ucomisd xmm0, xmm1
pcmpeqb xmm0, xmm1
ptest xmm0, xmm1
cvtsi2sd xmm0, rax
cvtsi2ss xmm0, dword ptr [rdi]
cvttsd2si rax, xmm0
cvtss2sd xmm0, xmm1
cvtdq2ps xmm0, xmm1
cvtps2pd xmm0, xmm1
pmovzxbw xmm0, xmm1
pshufb xmm0, xmm1
shufps xmm0, xmm1, 0
punpckldq mm0, mm1
unpcklps xmm0, xmm1
packuswb xmm0, xmm1
pinsrb xmm0, eax, 1
pextrq rax, xmm0, 1
extractps dword ptr [rdi], xmm0, 1
palignr xmm0, xmm1, 4
pblendvb xmm0, xmm1, xmm0
aesenc xmm0, xmm1
sha256rnds2 xmm0, xmm1, xmm0
pclmulqdq xmm0, xmm1, 0
gf2p8mulb xmm0, xmm1
vmovaps ymm0, ymmword ptr [rdi]
vaddss xmm0, xmm1, xmm2
vaddps ymm0, ymm1, ymm2
vmulpd zmm0, zmm1, zmm2
vaddps zmm0, zmm1, dword ptr [rdi]{1to16}
vfmadd231sd xmm0, xmm1, xmm2
vfmadd213ps ymm0, ymm1, ymmword ptr [rdi]
vfnmsub132pd zmm0{k1}, zmm1, zmm2
vpaddb ymm0, ymm1, ymm2
vpaddd zmm0{k1}{z}, zmm1, zmm2
vpaddd xmm16, xmm1, xmm2
vpand ymm0, ymm1, ymm2
vpandd zmm0, zmm1, zmm2
vpternlogd zmm0, zmm1, zmm2, 0x96
vpermd ymm0, ymm1, ymm2
vpermt2w zmm0, zmm1, zmm2
vbroadcastss ymm0, dword ptr [rdi]
vpbroadcastd zmm0, eax
vextractf128 xmmword ptr [rdi], ymm0, 1
vinserti128 ymm0, ymm1, xmm2, 1
vpcompressd zmmword ptr [rdi]{k1}, zmm0
vgatherdps ymm0, dword ptr [rdi + ymm1*4], ymm2
vpscatterdd dword ptr [rdi + zmm1*4]{k1}, zmm0
vmaskmovps ymmword ptr [rdi], ymm0, ymm1
vcmpltps k1, zmm0, zmm1
vptestmd k1, zmm0, zmm1
vpcmpeqb ymm0, ymm1, ymm2
vcvtdq2pd ymm0, xmm1
vcvtps2ph xmm0, ymm1, 0
vcvtsd2usi rax, xmm0
vcvtneps2bf16 ymm0, zmm1
vpmovdb xmm0, zmm1
vpmovm2b zmm0, k1
vpmovb2m k1, zmm0
vdivpd ymm0, ymm1, ymm2
vsqrtsd xmm0, xmm1, xmm2
vrndscaleps zmm0, zmm1, 0
vpdpbusd zmm0, zmm1, zmm2
vdpbf16ps zmm0, zmm1, zmm2
vpopcntd zmm0, zmm1
vplzcntd zmm0, zmm1
vpconflictd zmm0, zmm1
vprold zmm0, zmm1, 3
vpsllvd ymm0, ymm1, ymm2
vpmadd52luq zmm0, zmm1, zmm2
vaesenc zmm0, zmm1, zmm2
vpclmulqdq zmm0, zmm1, zmm2, 0
vgf2p8affineqb zmm0, zmm1, zmm2, 0
vaddph zmm0, zmm1, zmm2
vaddsh xmm0, xmm1, xmm2
kmovw k1, eax
kandq k1, k2, k3
kortestb k1, k2
tdpbssd tmm0, tmm1, tmm2
tdpbf16ps tmm0, tmm1, tmm2
tileloadd tmm0, [rdi + rsi*1]
tilezero tmm0
vpcmov xmm0, xmm1, xmm2, xmm3
vprotb xmm0, xmm1, 3
vfmaddpd xmm0, xmm1, xmm2, xmm3
pfadd mm0, mm1
