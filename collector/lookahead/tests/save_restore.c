/* Saves and restores vector state with many masks, formats and initial components. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
static uint64_t area[320] __attribute__((aligned(64)));
static uint64_t data[8] __attribute__((aligned(64)));
static uint32_t state = 1;
static uint32_t next(void) { return state = state * 1664525 + 1013904223, state >> 8; }
int main(void)
{
    for (int round = 0; round < 1000000; round++) {
        for (int i = 0; i < 8; i++) data[i] = (uint64_t)next() << 32 | next();
        if (next() % 2) asm volatile("vzeroupper");
        if (next() % 3 == 0) asm volatile("vzeroall");
        if (next() % 3) asm volatile("movdqu (%0), %%xmm3" ::"r"(data) : "xmm3");
#ifdef __AVX512BW__
        if (next() % 3) asm volatile("vmovdqu64 (%0), %%zmm7" ::"r"(data) : "xmm7");
        if (next() % 3) asm volatile("vmovdqu64 (%0), %%zmm23" ::"r"(data) : "xmm23");
        if (next() % 3 == 0) asm volatile("vpxorq %%zmm23, %%zmm23, %%zmm23" ::: "xmm23");
        if (next() % 3) asm volatile("kmovq (%0), %%k3" ::"r"(data) : "k3");
        if (next() % 3 == 0) asm volatile("kxorq %%k3, %%k3, %%k3" ::: "k3");
#endif
#ifdef __AVX__
        if (next() % 3) asm volatile("vmovdqu (%0), %%ymm5" ::"r"(data) : "xmm5");
#endif
        _mm_setcsr(next() % 2 ? 0x1f80 : 0x1f80 | (next() & 3) << 13 | (next() & 0x3f));
        /* In halves, as the C library would write the whole with a string instruction, one step per byte. */
        memset(area, next(), sizeof area / 2);
        memset(area + 160, next(), sizeof area / 2);
        area[3] = 0x1fa0; /* mxcsr, which is restored even where it was not saved */
        memset(area + 64, 0, 64);
        uint32_t mask = next() % 2 ? 0xee : next() & 0xe6;
        if (next() % 2)
            asm volatile("xsavec (%0)" ::"r"(area), "a"(mask), "d"(0) : "memory");
        else
            asm volatile("xsave (%0)" ::"r"(area), "a"(mask), "d"(0) : "memory");
        uint32_t back = next() % 2 ? mask : next() & 0xe6;
        asm volatile("vpaddd %%xmm3, %%xmm3, %%xmm1; pxor %%xmm3, %%xmm3" ::: "xmm1", "xmm3");
        if (next() % 4 == 0) _mm_setcsr(0x3f80);
        asm volatile("xrstor (%0)" ::"r"(area), "a"(back), "d"(0) : "memory", "xmm3", "xmm5", "xmm7");
        _mm_setcsr(0x1f80);
        uint64_t base;
        asm volatile("rdfsbase %0; wrfsbase %0; rdgsbase %0; wrgsbase %1; rdgsbase %%rax; wrgsbase %0" : "=&r"(base) : "r"(data) : "rax");
    }
    return 0;
}
