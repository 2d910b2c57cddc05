// N threads with real work: small records are made, sorted and put into a hash table.
//
//     threads N UNITS     does UNITS units of work (some 100 us each) on N threads and ends
//     threads N 0         works until it is killed; prints units done, CPU seconds and wall-clock seconds ten times a second
//     threads N 0 FILE    the same, and writes the units that each thread has done to FILE, 8 bytes each
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { RECORDS = 256, SLOTS = 1024, STACK = 128 << 10 };

struct record {
    uint64_t key;
    char name[16];
};

struct worker {
    _Alignas(64) _Atomic uint64_t done;
    _Atomic uint64_t *shown;
    uint64_t units, state, found;
    pthread_t thread;
    struct record *slots;
};

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const struct record *)left)->name, ((const struct record *)right)->name);
}

static void unit(struct worker *worker) {
    struct record records[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        records[i].key = next(&worker->state);
        uint64_t rest = records[i].key;
        int length = 4 + rest % 12;
        for (int at = 0; at < length; at++, rest /= 26) records[i].name[at] = 'a' + rest % 26;
        records[i].name[length] = 0;
    }
    qsort(records, RECORDS, sizeof *records, by_name);
    for (int i = 0; i < RECORDS; i++) {
        uint64_t slot = records[i].key % SLOTS;
        for (int probes = 0; probes < 8 && worker->slots[slot].key > records[i].key; probes++) slot = (slot + 1) % SLOTS;
        if (worker->slots[slot].key && by_name(&worker->slots[slot], &records[i]) == 0) worker->found++;
        worker->slots[slot] = records[i];
    }
}

static void *work(void *argument) {
    struct worker *worker = argument;
    worker->slots = calloc(SLOTS, sizeof *worker->slots);
    for (uint64_t i = 0; !worker->units || i < worker->units; i++) {
        unit(worker);
        atomic_store_explicit(&worker->done, i + 1, memory_order_relaxed);
        if (worker->shown) atomic_store_explicit(worker->shown, i + 1, memory_order_relaxed);
    }
    return NULL;
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    uint64_t units = count > 2 ? strtoull(arguments[2], NULL, 10) : 10000;
    struct worker *workers = aligned_alloc(64, threads * sizeof *workers);
    memset(workers, 0, threads * sizeof *workers);
    _Atomic uint64_t *shown = NULL;
    if (count > 3) {
        shown = mmap(NULL, threads * sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED, open(arguments[3], O_RDWR), 0);
        if (shown == MAP_FAILED) return 1;
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (int i = 0; i < threads; i++) {
        workers[i].units = units ? units / threads + (i < (int)(units % threads)) : 0;
        workers[i].shown = shown ? shown + i : NULL;
        workers[i].state = 88172645463325252u + i;
        if (units && !workers[i].units) workers[i].units = 1;
        if (pthread_create(&workers[i].thread, &attributes, work, &workers[i])) return 1;
    }
    while (!units) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        uint64_t done = 0;
        for (int i = 0; i < threads; i++) done += atomic_load_explicit(&workers[i].done, memory_order_relaxed);
        printf("%lu %.6f %.6f\n", done, seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_MONOTONIC));
        fflush(stdout);
    }
    uint64_t found = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        found += workers[i].found;
    }
    printf("%lu\n", found);
    return 0;
}
