// Loops of many kinds, one after the other, `kernels ROUNDS`: long and short blocks, a chain of pointers, a hash table,
// divisions, unpredictable branches, indirect calls, recursion.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4096 };

static uint32_t state = 1;
static uint32_t next(void) { return (state = state * 1664525 + 1013904223) >> 8; }

static double x[N], y[N], z[N];
static uint32_t keys[N];

struct node {
    struct node *next;
    uint32_t key;
};
static struct node nodes[N * 16];

static double triad(void) {
    for (int i = 0; i < N; i++) z[i] = x[i] + 1.5 * y[i];
    return z[N / 2];
}

static double recurrence(void) {
    double sum = 0;
    for (int i = 1; i < N; i++) sum += y[i] = x[i] * 0.5 + y[i - 1] * 0.25;
    return sum;
}

static double polynomial(void) {
    double sum = 0;
    for (int i = 0; i < N; i++) {
        double t = x[i] * 1e-3;
        sum += 1 + t * (1 + t * (0.5 + t * (0.1666 + t * (0.0416 + t * (0.0083 + t * (0.0013 + t * 0.0001))))));
    }
    return sum;
}

static double library(void) {
    double sum = 0;
    for (int i = 0; i < N; i += 8) sum += sin(x[i]) + log(1 + x[i]) + pow(x[i] + 1, 0.3);
    return sum;
}

static double chain(void) {
    uint32_t sum = 0;
    struct node *node = nodes;
    for (int i = 0; i < N; i++) {
        sum += node->key;
        node = node->next;
    }
    return sum;
}

static double divisions(void) {
    uint32_t sum = 0;
    for (int i = 1; i < N; i++) {
        uint32_t a = keys[i] + 1, b = keys[i - 1] % 1000 + 1;
        while (b) {
            uint32_t rest = a % b;
            a = b;
            b = rest;
        }
        sum += a;
    }
    return sum;
}

static double hash(void) {
    static uint32_t table[2 * N], counts[2 * N];
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < N; i++) {
        uint32_t at = keys[i] * 2654435761u >> 19;
        while (counts[at] && table[at] != keys[i]) at = (at + 1) % (2 * N);
        table[at] = keys[i];
        counts[at]++;
    }
    uint32_t most = 0;
    for (int i = 0; i < 2 * N; i++)
        if (counts[i] > most) most = counts[i];
    return most;
}

static double branches(void) {
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) {
        uint32_t key = keys[i];
        if (key & 1) sum += key;
        else if (key & 2) sum ^= key << 3;
        if (key & 64) sum -= 7;
        switch (key >> 4 & 7) {
        case 0: sum += 3; break;
        case 1: sum = sum << 1 | sum >> 31; break;
        case 2: sum ^= 0x5555; break;
        case 3: sum -= key; break;
        case 4: sum *= 5; break;
        case 5: sum = ~sum; break;
        case 6: continue;
        default: sum++;
        }
    }
    return sum;
}

static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t twist(uint32_t a, uint32_t b) { return a ^ (b >> 3); }
static uint32_t clamp(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t (*const operations[])(uint32_t, uint32_t) = {add, twist, clamp};

static double calls(void) {
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) sum = operations[keys[i] % 3](sum, keys[i]);
    return sum;
}

static uint32_t queens(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
    if (columns == all) return 1;
    uint32_t found = 0;
    for (uint32_t free = all & ~(columns | left | right); free; free &= free - 1) {
        uint32_t bit = free & -free;
        found += queens(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return found;
}

static double recursion(void) { return queens(255, 0, 0, 0); }

static int by_key(const void *a, const void *b) { return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1; }

static double sorting(void) {
    static uint32_t copy[N];
    memcpy(copy, keys, sizeof copy);
    qsort(copy, N, sizeof *copy, by_key);
    return copy[N / 2];
}

static double text(void) {
    char line[64];
    int sum = 0;
    for (int i = 0; i < N / 32; i++) {
        snprintf(line, sizeof line, "%u:%x:%.3f", keys[i], keys[i], x[i]);
        sum += strlen(line) + (strchr(line, '7') != 0);
    }
    return sum;
}

int main(int count, char **arguments) {
    static double (*const kernels[])(void) = {triad, recurrence, polynomial, library, chain, divisions, hash, branches, calls, recursion, sorting, text};
    long rounds = count > 1 ? atol(arguments[1]) : 100;
    for (int i = 0; i < N; i++) {
        x[i] = next() % 1000 / 100.0;
        y[i] = i % 17;
        keys[i] = next();
    }
    // One cycle through all nodes, in a random order (Sattolo).
    int nodes_count = N * 16;
    static int order[N * 16];
    for (int i = 0; i < nodes_count; i++) order[i] = i;
    for (int i = nodes_count - 1; i > 0; i--) {
        int other = next() % i, kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < nodes_count; i++) nodes[i] = (struct node){&nodes[order[i]], next()};
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (unsigned kernel = 0; kernel < sizeof kernels / sizeof *kernels; kernel++) sum += kernels[kernel]();
        keys[round % N] = next();
    }
    printf("%g\n", sum);
}
