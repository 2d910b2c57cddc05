/* traps [MS]: SIGTRAP for the program's own use: breakpoint instructions, its own single steps, and SIGTRAP that is sent. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

enum { STEPS = 13 };

static __thread volatile long breakpoints, steps, sent, queued;
static int64_t end;

extern const char after_breakpoint[];

static void on_trap(int signal, siginfo_t *info, void *context) {
    ucontext_t *state = context;
    (void)signal;
    switch (info->si_code) {
    case SI_KERNEL: /* int3 */
        CHECK(state->uc_mcontext.gregs[REG_RIP] == (long long)(uintptr_t)after_breakpoint, "int3: rip %llx",
              state->uc_mcontext.gregs[REG_RIP]);
        breakpoints++;
        break;
    case TRAP_TRACE:
        CHECK((long long)(uintptr_t)info->si_addr == state->uc_mcontext.gregs[REG_RIP], "step: si_addr is not rip");
        steps++;
        break;
    case SI_TKILL:
        CHECK(info->si_pid == getpid(), "sent: si_pid %d", info->si_pid);
        sent++;
        break;
    case SI_QUEUE:
        CHECK(info->si_value.sival_int == 4711, "queued: value %d", info->si_value.sival_int);
        queued++;
        break;
    default:
        violation("SIGTRAP that nobody sent: si_code %d", info->si_code);
    }
}

/* The label must exist once. */
__attribute__((noinline)) static void breakpoint(void) {
    __asm__ volatile("int3\n\t.globl after_breakpoint\nafter_breakpoint:\n\tnop");
}

/* From the instruction after the first popf to the second popf, each traps once. */
static void single_step(void) {
    __asm__ volatile("sub $128, %%rsp\n\t"
                     "pushfq\n\t"
                     "orq $0x100, (%%rsp)\n\t"
                     "popfq\n\t"
                     "nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\t"
                     "pushfq\n\t"
                     "andq $~0x100, (%%rsp)\n\t"
                     "popfq\n\t"
                     "add $128, %%rsp" ::
                         : "cc", "memory");
}

static void *trap(void *unused) {
    uint64_t expected = work(8, 1000);
    long rounds = 0;
    for (; goes_on(end) || !rounds; rounds++) {
        breakpoint();
        CHECK(breakpoints == rounds + 1, "int3: %ld signals in round %ld", breakpoints, rounds);
        single_step();
        CHECK(steps == STEPS * (rounds + 1), "%ld steps in round %ld", steps, rounds);
        raise(SIGTRAP);
        CHECK(sent == rounds + 1, "%ld sent ones in round %ld", sent, rounds);
        NEED(pthread_sigqueue(pthread_self(), SIGTRAP, (union sigval){.sival_int = 4711}) == 0);
        CHECK(queued == rounds + 1, "%ld queued ones in round %ld", queued, rounds);
        CHECK(work(8, 1000) == expected, "computes wrong");
        if (violations)
            break;
    }
    return unused;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 600);
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    NEED(sigaction(SIGTRAP, &action, NULL) == 0);
    announce();
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, trap, NULL) == 0);
    trap(NULL);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("every trap was the program's own");
}
