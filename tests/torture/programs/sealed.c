/* sealed [MS]: under a seccomp filter that kills at any system call but the few the program needs, `restart_syscall` and
 * `rt_sigprocmask` not among them. Two calls are answered by the filter instead: one with an error, one with SIGSYS. */
#include "torture.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>

#define ON(call, result)                                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##result)

static volatile long trapped;
static atomic_int ready, over;

static void on_system_call(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    CHECK(info->si_code == 1 /* SYS_SECCOMP */ && info->si_syscall == SYS_getppid, "SIGSYS: si_code %d, call %d",
          info->si_code, info->si_syscall);
    trapped++;
}

static void *compute(void *unused) {
    uint64_t expected = work(4, 500);
    atomic_store(&ready, 1); /* What threads begin with is not in the filter. */
    while (!atomic_load(&over)) {
        CHECK(work(4, 500) == expected, "computes wrong");
        struct timespec time = {0, 300000};
        CHECK(nanosleep(&time, NULL) == 0, "nanosleep: errno %d", errno);
    }
    atomic_store(&over, 2);
    syscall(SYS_exit, 0);
    return unused;
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 600);
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ON(write, ALLOW),
        ON(exit, ALLOW),
        ON(exit_group, ALLOW),
        ON(clock_gettime, ALLOW),
        ON(nanosleep, ALLOW),
        ON(clock_nanosleep, ALLOW),
        ON(rt_sigreturn, ALLOW),
        ON(gettid, ALLOW),
        ON(getuid, ERRNO | 42),
        ON(getppid, TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
    NEED(sigaction(SIGSYS, &action, NULL) == 0);
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, compute, NULL) == 0);
    announce();
    while (!atomic_load(&ready))
        ;
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0);
    uint64_t expected = work(9, 3000);
    for (long rounds = 1; goes_on(end); rounds++) {
        CHECK(work(9, 3000) == expected, "computes wrong");
        CHECK(syscall(SYS_getuid) == -1 && errno == 42, "the filter's error is lost");
        syscall(SYS_getppid);
        CHECK(trapped == rounds, "%ld SIGSYS in %ld rounds", trapped, rounds);
        struct timespec time = {0, 100000};
        CHECK(nanosleep(&time, NULL) == 0, "nanosleep: errno %d", errno);
    }
    atomic_store(&over, 1);
    while (atomic_load(&over) != 2)
        ;
    const char line[] = "no system call but the program's own\n";
    if (!violations && write(1, line, sizeof line - 1) != sizeof line - 1)
        violation("write");
    syscall(SYS_exit_group, violations ? 1 : 0);
}
