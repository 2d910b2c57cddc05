// Ten programs in one: `limits HOT ROUNDS PERCENT` executes the kernel number HOT and the two after it, round by round. HOT has most of the
// instructions, and PERCENT more than with 0; the work of the others stays as it is.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4096, KERNELS = 10 };

#define KERNEL __attribute__((noinline)) static uint64_t

static double x[N], y[N];
static uint32_t keys[N], table[4 * N], next[16 * N];
static uint8_t bytes[N];

static uint32_t state = 1;
static uint32_t number(void) { return (state = state * 1664525 + 1013904223) >> 8; }

KERNEL triad(int times) {
    for (; times > 0; times--)
        for (int i = 0; i < N; i++) y[i] = x[i] + 0.5 * y[i];
    return (uint64_t)y[N / 2];
}

KERNEL recurrence(int times) {
    double sum = 0;
    for (; times > 0; times--)
        for (int i = 1; i < N; i++) sum = x[i] * 0.5 + sum * 0.25;
    return (uint64_t)sum;
}

KERNEL divisions(int times) {
    uint64_t sum = 0;
    for (; times > 0; times--)
        for (int i = 0; i < N; i++) sum += (0xffffffffffull + i) / (keys[i] | 1);
    return sum;
}

KERNEL hashes(int times) {
    uint64_t found = 0;
    for (; times > 0; times--)
        for (int i = 0; i < N; i++) {
            uint32_t at = keys[i] * 2654435761u % (4 * N);
            while (table[at] && table[at] != keys[i]) at = (at + 1) % (4 * N);
            found += table[at] == keys[i];
            table[at] = keys[i];
        }
    return found;
}

KERNEL sorts(int times) {
    uint64_t sum = 0;
    for (; times > 0; times--)
        for (int begin = 0; begin + 16 <= N; begin += 16) {
            uint32_t part[16];
            for (int i = 0; i < 16; i++) {
                uint32_t key = keys[(begin + i + times) % N];
                int at = i;
                for (; at > 0 && part[at - 1] > key; at--) part[at] = part[at - 1];
                part[at] = key;
            }
            sum += part[8];
        }
    return sum;
}

KERNEL chain(int times) {
    uint32_t at = 0;
    for (; times > 0; times--)
        for (int i = 0; i < N; i++) at = next[at];
    return at;
}

KERNEL search(int times) {
    uint64_t found = 0;
    for (; times > 0; times--)
        for (int i = 0; i < N; i++) {
            if (bytes[i] == '\n') found++;
            else if (bytes[i] >= 'a' && bytes[i] <= 'z') found += 2;
        }
    return found;
}

KERNEL checksum(int times) {
    uint32_t sum = 0xffffffff;
    for (; times > 0; times--)
        for (int i = 0; i < N; i++) sum = (sum >> 8) ^ table[(sum ^ bytes[i]) & 0xff];
    return sum;
}

KERNEL collatz(int times) {
    uint64_t steps = 0;
    for (; times > 0; times--)
        for (int i = 0; i < N / 64; i++)
            for (uint64_t n = (keys[i] & 0xffff) + 1; n > 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

KERNEL walk(uint32_t at, uint32_t depth) { return depth ? keys[at % N] + walk(2 * at + 1, depth - 1) + walk(2 * at + 2, depth - 1) : 1; }

KERNEL tree(int times) {
    uint64_t sum = 0;
    for (; times > 0; times--) sum += walk(0, 10);
    return sum;
}

static uint64_t (*const kernels[KERNELS])(int) = {triad, recurrence, divisions, hashes, sorts, chain, search, checksum, collatz, tree};

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "limits HOT ROUNDS PERCENT\n"), 2;
    int hot = atoi(argv[1]) % KERNELS, rounds = atoi(argv[2]), percent = atoi(argv[3]);
    for (int i = 0; i < N; i++) x[i] = number() % 1000, keys[i] = number(), bytes[i] = number() % 128;
    for (int i = 0; i < 16 * N; i++) next[i] = (i * 4801u + 7) % (16 * N);
    uint64_t sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += kernels[hot](100 + percent);
        sum += kernels[(hot + 1) % KERNELS](20);
        sum += kernels[(hot + 2) % KERNELS](20);
    }
    return printf("%lu\n", sum), 0;
}
