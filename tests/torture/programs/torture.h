/* What the programs of the torture tests share.
 *
 * Each of them prints exactly one line and exits with 0, or prints a line `VIOLATION: ...` for each damage it found and
 * exits with 1. The one line is known beforehand: it never holds a count or a time. */
#ifndef TORTURE_H
#define TORTURE_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_int violations;

/* One line for a damage; after twenty they are only counted. Async-signal-safe as far as vsnprintf of integers is. */
__attribute__((format(printf, 1, 2), unused)) static void violation(const char *format, ...) {
    char text[512];
    int saved = errno;
    if (atomic_fetch_add(&violations, 1) < 20) {
        int length = snprintf(text, sizeof text, "VIOLATION: ");
        va_list arguments;
        va_start(arguments, format);
        length += vsnprintf(text + length, sizeof text - length - 1, format, arguments);
        va_end(arguments);
        if (length > (int)sizeof text - 2)
            length = sizeof text - 2;
        text[length++] = '\n';
        if (write(1, text, length) != length)
            abort();
    }
    errno = saved;
}

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            violation(__VA_ARGS__);                                                                                    \
    } while (0)

/* For what must work for the program to make sense at all. */
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            violation("%s, line %d: %s (errno %d)", __FILE__, __LINE__, #condition, errno);                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* The one line, unless something was damaged; what main returns. */
__attribute__((unused)) static int finish(const char *line) {
    if (atomic_load(&violations))
        return 1;
    dprintf(1, "%s\n", line);
    return 0;
}

/* ns of a clock. */
__attribute__((unused)) static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000l + now.tv_nsec;
}

__attribute__((unused)) static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* Branches that depend on data, and floating point that shows a register changed behind the program's back: steps of the
 * Collatz sequences of `rounds` numbers from `seed` on. About 0.2 us a round. */
__attribute__((noinline, unused)) static uint64_t work(uint64_t seed, int rounds) {
    uint64_t steps = 0;
    double shadow = 0;
    for (int i = 0; i < rounds; i++)
        for (uint64_t n = seed % 1000 + 27 + i; n != 1; n = n & 1 ? 3 * n + 1 : n / 2) {
            steps++;
            shadow += 0.5;
        }
    if (shadow != steps * 0.5)
        violation("floating point: %ld halves are not %ld steps", (long)(2 * shadow), (long)steps);
    return steps;
}

/* The first argument, how long to go on, in ms. */
__attribute__((unused)) static int64_t duration_ns(int argc, char **argv, int milliseconds) {
    return 1000000l * (argc > 1 ? atol(argv[1]) : milliseconds);
}

/* A byte of the file `enough`, which others can set: the program is to end. */
static volatile const char *enough = "";

/* Whether it is neither time to end nor asked for. Makes no system call. */
__attribute__((unused)) static int goes_on(int64_t end) { return now_ns() < end && !*enough; }

/* Leaves the process id in the file `pid` of the current directory: the program runs. */
__attribute__((unused)) static void announce(void) {
    int file = open("enough", O_RDWR | O_CREAT, 0644);
    NEED(file >= 0 && ftruncate(file, 1) == 0);
    enough = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
    NEED(enough != MAP_FAILED);
    close(file);
    NEED((file = open("pid.new", O_WRONLY | O_CREAT | O_TRUNC, 0644)) >= 0);
    dprintf(file, "%d", getpid());
    close(file);
    NEED(rename("pid.new", "pid") == 0);
}

__attribute__((unused)) static void sleep_us(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&time, &time) && errno == EINTR)
        ;
}
#endif
