/* faults [MS]: two threads with handlers on alternate stacks repair what they break: writes to pages that are not there
 * (SIGSEGV), reads behind the end of a file (SIGBUS), divisions by zero (SIGFPE), undefined instructions (SIGILL). */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGES = 16, PAGE = 4096, ALTERNATE = 64 * 1024 };

static __thread char *region, *alternate;
static __thread int file;
static __thread volatile long segv, bus, fpe, ill;
static int64_t end;

static void on_fault(int signal, siginfo_t *info, void *context) {
    ucontext_t *state = context;
    char here, *address = info->si_addr;
    CHECK(&here >= alternate && &here < alternate + ALTERNATE, "signal %d: not on the alternate stack", signal);
    switch (signal) {
    case SIGSEGV:
        CHECK(info->si_code == SEGV_ACCERR, "SIGSEGV: si_code %d", info->si_code);
        if (address < region || address >= region + PAGES * PAGE) {
            violation("SIGSEGV at %p, rip %p", (void *)address, (void *)state->uc_mcontext.gregs[REG_RIP]);
            _exit(1);
        }
        NEED(mprotect((void *)((uintptr_t)address & -PAGE), PAGE, PROT_READ | PROT_WRITE) == 0);
        segv++;
        break;
    case SIGBUS:
        CHECK(info->si_code == BUS_ADRERR, "SIGBUS: si_code %d", info->si_code);
        NEED(ftruncate(file, PAGE) == 0);
        bus++;
        break;
    case SIGFPE:
        CHECK(info->si_code == FPE_INTDIV, "SIGFPE: si_code %d", info->si_code);
        state->uc_mcontext.gregs[REG_RIP] += 2;
        fpe++;
        break;
    case SIGILL:
        CHECK(info->si_code == ILL_ILLOPN, "SIGILL: si_code %d", info->si_code);
        CHECK((long long)(uintptr_t)address == state->uc_mcontext.gregs[REG_RIP], "SIGILL: wrong address");
        state->uc_mcontext.gregs[REG_RIP] += 2;
        ill++;
        break;
    }
}

static void *break_things(void *unused) {
    alternate = malloc(ALTERNATE);
    stack_t stack = {.ss_sp = alternate, .ss_size = ALTERNATE};
    NEED(sigaltstack(&stack, NULL) == 0);
    region = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(region != MAP_FAILED);
    file = memfd_create("short", 0);
    char *mapped = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
    NEED(mapped != MAP_FAILED);
    uint64_t expected = work(5, 100);
    long rounds = 0;
    for (; goes_on(end); rounds++) {
        for (int page = 0; page < PAGES; page++) {
            *(volatile long *)(region + page * PAGE + 8 * (rounds % 500)) = rounds;
            CHECK(work(5, 100) == expected, "computes wrong");
        }
        for (int page = 0; page < PAGES; page++)
            CHECK(*(long *)(region + page * PAGE + 8 * (rounds % 500)) == rounds, "a write is lost");
        NEED(mprotect(region, PAGES * PAGE, PROT_NONE) == 0);
        NEED(ftruncate(file, 0) == 0);
        CHECK(*(volatile char *)mapped == 0, "the file is not empty");
        __asm__ volatile("xor %%ecx, %%ecx\n\tmov $1, %%eax\n\tdiv %%cl" ::: "rax", "rcx", "cc");
        __asm__ volatile("ud2");
    }
    CHECK(segv == rounds * PAGES, "%ld SIGSEGV for %ld bad writes", segv, rounds * PAGES);
    CHECK(bus == rounds && fpe == rounds && ill == rounds, "%ld SIGBUS, %ld SIGFPE, %ld SIGILL in %ld rounds", bus, fpe,
          ill, rounds);
    CHECK(rounds > 0, "nothing done");
    return unused;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 600);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (int i = 0; i < 4; i++)
        NEED(sigaction(signals[i], &action, NULL) == 0);
    announce();
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, break_things, NULL) == 0);
    break_things(NULL);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("every fault was repaired once");
}
