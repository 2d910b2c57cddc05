/* What the kinds share: each is a process of its own that computes, does one thing, and prints what it saw of it. Nothing that is printed
 * depends on time or chance. */
#ifndef KINDS_H
#define KINDS_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct kind {
    const char *name;
    void (*run)(void);
};
extern const struct kind waiting[], signals[], processes[], served_memory[], jobs[], filtering[];

/* Ends the process if something that must work does not: said, so that both runs say it. */
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s: %s\n", #condition, strerror(errno));                                                           \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* What a call returned: its result if it succeeded, the error's name if not. */
#define SAY(call)                                                                                                      \
    do {                                                                                                               \
        long result = (call);                                                                                          \
        printf("%s = %ld%s%s\n", #call, result, result < 0 ? " " : "", result < 0 ? strerrorname_np(errno) : "");      \
    } while (0)

/* Says how a child ended. */
void ends_with(pid_t child);
#define CHILD(...)                                                                                                     \
    do {                                                                                                               \
        fflush(stdout);                                                                                                \
        pid_t child = fork();                                                                                          \
        if (!child) {                                                                                                  \
            __VA_ARGS__;                                                                                               \
            _exit(9);                                                                                                  \
        }                                                                                                              \
        ends_with(child);                                                                                              \
    } while (0)

/* A filter of system calls: what the kinds with filters do not make themselves kills. */
struct sock_fprog *few_calls(void);

void compute(int ms);
double seconds(void);
/* A child that does nothing and exits after so long: SIGCHLD, which is ignored by default. */
void child_exits_after(int ms);
/* So many of them, one after the other. */
void children_exit_every(int ms, int times);
/* "in time" if `since` is at least `least` and less than `most` seconds ago. */
const char *took(double since, double least, double most);
#endif
