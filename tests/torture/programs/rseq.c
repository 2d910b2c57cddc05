/* rseq [MS]: restartable sequences. Four threads add to per-CPU counters without atomics; a sequence that was interrupted must be
 * aborted and begun again, or else the counters do not add up; and it must be able to finish. Uses glibc's registration, or with
 * GLIBC_TUNABLES=glibc.pthread.rseq=0 its own (then `sched_getcpu` does without).
 *
 * The sequence reads a counter, dawdles in a loop, and writes the sum: long enough to be interrupted often. */
#include "torture.h"
#include <linux/rseq.h>
#include <pthread.h>
#include <sched.h>
#include <sys/rseq.h>

enum { THREADS = 4, CPUS = 1024, DAWDLE = 60 };
#if RSEQ_SIG != 0x53053053
#error "another architecture"
#endif

static struct counter {
    int64_t value, unused[15];
} counters[CPUS];
static __thread struct rseq own_area __attribute__((aligned(32))) = {.cpu_id = RSEQ_CPU_ID_UNINITIALIZED};
static int64_t end;

static struct rseq *area(void) {
    if (__rseq_size)
        return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    if ((int)own_area.cpu_id < 0)
        NEED(syscall(SYS_rseq, &own_area, 32, 0, RSEQ_SIG) == 0);
    return &own_area;
}

/* Adds to the counter of the CPU it runs on; 0 if the sequence was aborted. */
__attribute__((noinline)) static int add(struct rseq *rseq, int64_t number) {
    int cpu = *(volatile uint32_t *)&rseq->cpu_id_start;
    int64_t *value = &counters[cpu].value;
    __asm__ goto volatile(".pushsection __rseq_cs, \"aw\"\n\t"
                          ".balign 32\n"
                          "3:\n\t"
                          ".long 0, 0\n\t"
                          ".quad 1f, 2f - 1f, 4f\n\t"
                          ".popsection\n\t"
                          "leaq 3b(%%rip), %%rax\n\t"
                          "movq %%rax, %[rseq_cs]\n"
                          "1:\n\t"
                          "cmpl %[cpu], %[current]\n\t"
                          "jne 4f\n\t"
                          "movq %[value], %%rax\n\t"
                          "movl %[dawdle], %%ecx\n"
                          "5:\n\t"
                          "decl %%ecx\n\t"
                          "jnz 5b\n\t"
                          "addq %[number], %%rax\n\t"
                          "movq %%rax, %[value]\n"
                          "2:\n\t"
                          ".pushsection __rseq_failure, \"ax\"\n\t"
                          ".byte 0x0f, 0xb9, 0x3d\n\t" /* ud1 0x53053053(%rip), %edi */
                          ".long 0x53053053\n"
                          "4:\n\t"
                          "jmp %l[aborted]\n\t"
                          ".popsection"
                          :
                          : [rseq_cs] "m"(rseq->rseq_cs), [current] "m"(rseq->cpu_id), [cpu] "r"(cpu),
                            [value] "m"(*value), [number] "r"(number), [dawdle] "i"(DAWDLE)
                          : "rax", "rcx", "cc", "memory"
                          : aborted);
    return 1;
aborted:
    return 0;
}

/* The sum of what this thread has added. */
static void *hammer(void *unused) {
    (void)unused;
    struct rseq *rseq = area();
    int64_t sum = 0, aborts = 0, number = 1;
    while (goes_on(end)) {
        for (int i = 0; i < 100; i++, number++) {
            for (int64_t tries = 0; !add(rseq, number); tries++, aborts++)
                if (tries > 100000) {
                    violation("a sequence is aborted without end");
                    return (void *)sum;
                }
            sum += number;
        }
    }
    if (getenv("RSEQ_ABORTS"))
        fprintf(stderr, "%ld sequences, %ld aborts\n", (long)number, (long)aborts);
    rseq->rseq_cs = 0;
    return (void *)sum;
}

/* `sched_getcpu` reads the registered area: a thread bound to a CPU must see it there. */
static void *where(void *allowed) {
    while (goes_on(end))
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, (cpu_set_t *)allowed)) {
                cpu_set_t one;
                CPU_ZERO(&one);
                CPU_SET(cpu, &one);
                NEED(sched_setaffinity(0, sizeof one, &one) == 0);
                for (int i = 0; i < 20; i++, work(i, 5))
                    CHECK(sched_getcpu() == cpu, "on CPU %d, bound to %d", sched_getcpu(), cpu);
            }
    return NULL;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 800);
    cpu_set_t allowed;
    NEED(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    pthread_t threads[THREADS], another;
    announce();
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
    NEED(pthread_create(&another, NULL, where, &allowed) == 0);
    int64_t added = 0, counted = 0;
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        NEED(pthread_join(threads[i], &sum) == 0);
        added += (int64_t)sum;
    }
    NEED(pthread_join(another, NULL) == 0);
    for (int cpu = 0; cpu < CPUS; cpu++)
        counted += counters[cpu].value;
    CHECK(added == counted && added > 0, "%ld added, %ld counted", (long)added, (long)counted);
    return finish("the per-CPU counters add up");
}
