/* jumps [MS]: handlers that do not return: siglongjmp out of a timer's handler and out of SIGSEGV's, on an alternate stack and
 * on the common one, a handler that goes on as the main program, and coroutines that change stacks all the time. */
#include "torture.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

static sigjmp_buf home;
static volatile sig_atomic_t may_jump;
static volatile long alarms, jumps, faults, switches;
static char *forbidden;

static void on_alarm(int signal) {
    (void)signal;
    alarms++;
    if (may_jump) {
        may_jump = 0;
        work(alarms % 10, 5);
        jumps++;
        siglongjmp(home, 1);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    NEED(info->si_addr == forbidden);
    faults++;
    siglongjmp(home, 2);
}

static ucontext_t outside, inside;
static char coroutine_stack[256 * 1024];

static void coroutine(void) {
    for (;;) {
        switches++;
        work(switches % 10, 2);
        swapcontext(&inside, &outside);
    }
}

__attribute__((noinline)) static uint64_t deep(int levels) {
    volatile uint64_t own = levels;
    if (levels > 0)
        return deep(levels - 1) + own;
    may_jump = 1;
    while (!violations)
        work(7, 2);
    return own;
}

static void on_user(int signal) {
    (void)signal;
    for (int i = 0; i < 50; i++)
        work(i, 100);
    dprintf(1, "no handler that does not return did harm\n");
    _exit(7);
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 600);
    uint64_t expected = work(6, 20);
    struct itimerval often = {{0, 500}, {0, 500}};
    forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t alternate = {.ss_sp = malloc(256 * 1024), .ss_size = 256 * 1024};
    NEED(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    NEED(sigaction(SIGALRM, &action, NULL) == 0);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    NEED(sigaction(SIGSEGV, &action, NULL) == 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = coroutine_stack;
    inside.uc_stack.ss_size = sizeof coroutine_stack;
    makecontext(&inside, coroutine, 0);
    setitimer(ITIMER_REAL, &often, NULL);
    announce();
    for (volatile long rounds = 0; goes_on(end); rounds++) {
        long faults_before = faults, switches_before = switches, jumps_before = jumps;
        switch (sigsetjmp(home, 1)) {
        case 0:
            deep(rounds % 50);
            violation("came back from the deep");
            break;
        case 1:
            CHECK(jumps == jumps_before + 1, "%ld jumps at once", (long)(jumps - jumps_before));
            if (sigsetjmp(home, 1) == 0)
                *(volatile char *)forbidden = 1;
            CHECK(faults == faults_before + 1, "%ld faults at once", (long)(faults - faults_before));
            break;
        }
        sigset_t mask;
        sigprocmask(SIG_BLOCK, NULL, &mask);
        CHECK(!sigismember(&mask, SIGALRM) && !sigismember(&mask, SIGSEGV), "a signal stayed blocked");
        stack_t used;
        NEED(sigaltstack(NULL, &used) == 0);
        CHECK(!(used.ss_flags & SS_ONSTACK), "still on the alternate stack");
        for (int i = 0; i < 20; i++)
            swapcontext(&outside, &inside);
        CHECK(switches == switches_before + 20, "%ld switches for 20", (long)(switches - switches_before));
        CHECK(work(6, 20) == expected, "computes wrong");
    }
    CHECK(jumps > 10, "only %ld jumps", (long)jumps);
    signal(SIGALRM, SIG_IGN);
    if (violations)
        return 1;
    signal(SIGUSR1, on_user);
    raise(SIGUSR1);
    violation("the last handler returned");
    return 1;
}
