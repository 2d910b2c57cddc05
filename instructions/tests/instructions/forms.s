# Operands
nop
mov eax, ebx
mov al, bl
add rax, qword ptr [rdi]
add dword ptr [rdi], ecx
add rax, 1
add rax, 0x12345678
add ax, 0x1234
movabs rax, 0x1122334455667788
shl eax, 1
shl eax, 3
shl eax, cl
imul eax, dword ptr [rdi], 100
enter 16, 1
jmp .
jmp rax
call qword ptr [rax+8]
ret
ret 8
vfmadd231ps ymm0, ymm1, ymmword ptr [rdi]
vblendvps xmm0, xmm1, xmm2, xmm3
kmovw k1, eax
kandw k1, k2, k3
# Addresses
lea rax, [rdi]
lea rax, [rdi+rcx*4]
mov rax, [rdi+8]
mov rax, [rdi+rcx*4+8]
mov rax, [rcx*4+0x1000]
mov rax, [rip+0x2000]
mov rax, fs:[0x28]
movabs al, [0x1122334455667788]
mov eax, [ebx]
movsb
rep movsb
repne scasb
cmpsq
xlatb
maskmovdqu xmm0, xmm1
# Memory
push rax
push qword ptr [rdi]
pop rax
leave
lock cmpxchg16b [rdi]
xchg eax, [rdi]
fxsave [rdi]
xsave [rdi]
fld tbyte ptr [rdi]
prefetcht0 [rdi]
clflush [rdi]
# Vectors
addsd xmm0, xmm1
addsd xmm0, qword ptr [rdi]
paddb mm0, qword ptr [rdi]
vaddps zmm0, zmm1, zmmword ptr [rdi]
vaddps zmm0, zmm1, dword ptr [rdi]{1to16}
vaddps zmm0{k1}, zmm1, zmmword ptr [rdi+64]
vbroadcastss ymm0, dword ptr [rdi]
vpmovzxbw ymm0, xmmword ptr [rdi]
vgatherdps xmm0, dword ptr [rdi+xmm1*4], xmm2
vgatherdpd xmm0, qword ptr [rdi+xmm1*8], xmm2
vgatherqps xmm0, dword ptr [rdi+ymm1*4], xmm2
vpgatherqd xmm0, dword ptr [rdi+xmm1*4], xmm2
vgatherdps zmm0{k1}, dword ptr [rdi+zmm1*4]
vscatterqpd qword ptr [rdi+zmm1*8]{k1}, zmm0
vmovups ymmword ptr [rsp-32], ymm0
vzeroupper
fld dword ptr [rdi]
fadd qword ptr [rdi]
fstp dword ptr [rdi]
