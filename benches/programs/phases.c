/* phases [SCALE]: five phases that share no function, one after the other. Their cycles per instruction differ by more than a
 * hundred: a chase through 32 MiB, 64-bit divisions, independent integer additions, branches that nobody can predict, and a
 * floating-point recurrence. Of what runs in the program, nothing but its time tells how much of each there is. SCALE: of the work,
 * 1 takes some ten seconds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t *next_of;
enum { NODES = 8 * 1024 * 1024 };

__attribute__((noinline)) static uint64_t chase(uint64_t steps) {
    uint32_t at = 0;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < steps; i++) {
        at = next_of[at];
        sum += at;
    }
    return sum;
}

__attribute__((noinline)) static uint64_t divide(uint64_t steps) {
    uint64_t value = 0x123456789abcdef, sum = 0;
    for (uint64_t i = 1; i <= steps; i++) {
        sum += value / (sum | (i << 20) | 1);
        value += sum;
    }
    return sum;
}

__attribute__((noinline)) static uint64_t integers(uint64_t steps) {
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (uint64_t i = 0; i < steps; i++) {
        a += i ^ b;
        b += i & 7;
        c ^= i + 5;
        d += c >> 3;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    return a + b + c + d;
}

__attribute__((noinline)) static uint64_t branches(uint64_t steps) {
    uint64_t state = 88172645463325252u, count = 0;
    for (uint64_t i = 0; i < steps; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (state & 1) __asm__ volatile("add $3, %0" : "+r"(count));
        else __asm__ volatile("xor $5, %0" : "+r"(count));
    }
    return count;
}

__attribute__((noinline)) static double recurrence(uint64_t steps) {
    double x = 0.5;
    for (uint64_t i = 0; i < steps; i++) {
        x = x * 0.999999 + 0.000001;
        x = x * 1.0000001 - 0.0000002;
    }
    return x;
}

int main(int argc, char **argv) {
    double scale = argc > 1 ? atof(argv[1]) : 1;
    next_of = malloc(NODES * sizeof *next_of);
    for (uint32_t i = 0; i < NODES; i++) next_of[i] = i;
    uint64_t state = 42;
    for (uint32_t i = NODES - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (state >> 33) % i, kept = next_of[i];
        next_of[i] = next_of[j];
        next_of[j] = kept;
    }
    uint64_t sum = chase(20e6 * scale);
    sum += divide(500e6 * scale);
    sum += integers(3000e6 * scale);
    sum += branches(500e6 * scale);
    sum += (uint64_t)(1e6 * recurrence(600e6 * scale));
    printf("%lu\n", sum);
    return 0;
}
