/* Filters of system calls. These kinds have a program of their own: one with code that makes filters gets no agent. */
#include "kinds.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define FILTERED(...)                                                                                                  \
    CHILD(NEED(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) == 0); compute(100);                                     \
          NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); __VA_ARGS__; _exit(6))

static void filtered_polls(void) {
    FILTERED(children_exit_every(40, 4); NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, few_calls()) == 0); compute(50);
             poll(NULL, 0, 300); compute(50));
}
static void filtered_computes(void) {
    FILTERED(NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, few_calls()) == 0); compute(400));
}
static void filtered_by_system_call(void) {
    FILTERED(NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, few_calls()) == 0); compute(400));
}

/* The strict mode: nothing but reads, writes, and ends of handlers and threads. */
static void strict_computes(void) {
    CHILD(compute(100); NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0); volatile uint64_t sum = 0;
          for (uint64_t i = 0; i < 300000000; i++) sum += i; syscall(SYS_exit, 6));
}

/* One thread filters the calls of all, while they compute. They do not end before the process: that takes more calls. */
static void *computes(void *unused) {
    compute(60000);
    return unused;
}
static void filtered_by_a_thread(void) {
    pthread_t others[2];
    FILTERED(for (int i = 0; i < 2; i++) NEED(pthread_create(&others[i], NULL, computes, NULL) == 0); compute(100);
             NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, few_calls()) == 0); compute(400));
}

/* The other thread filters nothing, and goes on as it was. */
static void *computes_and_asks(void *asked) {
    compute(400);
    *(pid_t *)asked = getppid();
    return NULL;
}
static void filters_for_itself_alone(void) {
    pthread_t other;
    pid_t asked = 0;
    FILTERED(NEED(pthread_create(&other, NULL, computes_and_asks, &asked) == 0); compute(100);
             NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, few_calls()) == 0); compute(500); while (!asked) compute(10));
}

#define KIND(name) {#name, name}
const struct kind filtering[] = {
    KIND(filtered_polls), KIND(filtered_computes), KIND(filtered_by_system_call), KIND(strict_computes), KIND(filtered_by_a_thread),
    KIND(filters_for_itself_alone), {NULL, NULL},
};
