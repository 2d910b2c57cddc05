/* kinds [NAME...]: runs the kinds of these names, or all, eight at a time, and prints what each of them printed and how it ended. */
#include "kinds.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

enum { AT_ONCE = 8, MOST_KINDS = 200 };

static volatile uint64_t sink;

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

void compute(int ms) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
    do {
        for (uint64_t i = 0, n = 27; i < 20000; i++)
            sink += n = n & 1 ? 3 * n + 1 : n > 1 ? n / 2 : 27 + i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end);
}

void children_exit_every(int ms, int times) {
    fflush(stdout);
    for (int i = 1; i <= times; i++) {
        pid_t child = fork();
        NEED(child >= 0);
        if (!child) {
            usleep(1000 * ms * i);
            _exit(0);
        }
    }
}

void child_exits_after(int ms) { children_exit_every(ms, 1); }

const char *took(double since, double least, double most) {
    double passed = seconds() - since;
    return passed < least ? "too soon" : passed < most ? "in time" : "too late";
}

/* Those that the C library makes on machines of one kind alone. */
#ifdef __i386__
#define OF_MACHINE SYS_sigreturn, SYS_fstatat64, SYS_statx, SYS_clock_gettime64, SYS_clock_nanosleep_time64, SYS_futex_time64
#else
#define OF_MACHINE SYS_newfstatat
#endif

struct sock_fprog *few_calls(void) {
    static const int allowed[] = {SYS_poll, SYS_write, SYS_exit_group, SYS_clock_gettime, SYS_rt_sigreturn, SYS_exit, SYS_futex,
                                  SYS_nanosleep, SYS_clock_nanosleep, SYS_fork, SYS_clone, SYS_wait4, OF_MACHINE};
    static struct sock_filter rules[64];
    static struct sock_fprog program = {0, rules};
    int length = 0, count = sizeof allowed / sizeof *allowed;
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++)
        rules[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], count - i, 0);
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = length;
    return &program;
}

void ends_with(pid_t child) {
    int status;
    NEED(waitpid(child, &status, 0) == child);
    printf("%s %d%s\n", WIFEXITED(status) ? "exits with" : "is killed by",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), WIFSIGNALED(status) && WCOREDUMP(status) ? ", core" : "");
}
struct run {
    const struct kind *kind;
    int output;
    pid_t process;
};

static struct run start(const struct kind *kind) {
    int ends[2];
    NEED(pipe(ends) == 0);
    fflush(stdout);
    pid_t process = fork();
    NEED(process >= 0);
    if (!process) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        setvbuf(stdout, NULL, _IOLBF, 0);
        /* Something that hangs is a difference, too. */
        alarm(30);
        compute(30);
        kind->run();
        exit(0);
    }
    close(ends[1]);
    return (struct run){kind, ends[0], process};
}

static void finish(struct run run) {
    char text[65536];
    ssize_t length = 0, got;
    while ((got = read(run.output, text + length, sizeof text - 1 - length)) > 0)
        length += got;
    text[length] = 0;
    close(run.output);
    int status;
    NEED(waitpid(run.process, &status, 0) == run.process);
    const char *how = WIFEXITED(status) ? "exits with" : "is killed by";
    int number = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (*line)
            printf("%s: %s\n", run.kind->name, line);
    printf("%s: %s %d\n", run.kind->name, how, number);
}

static int is_wanted(const char *name, int count, char **names) {
    for (int i = 1; i < count; i++)
        if (!strcmp(names[i], name))
            return 1;
    return count < 2;
}

int main(int argc, char **argv) {
#ifdef FILTERING
    const struct kind *tables[] = {filtering};
#else
    const struct kind *tables[] = {waiting, signals, processes, served_memory, jobs};
#endif
    struct run runs[MOST_KINDS];
    int started = 0, finished = 0;
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct kind *kind = tables[table]; kind->name; kind++) {
            if (!is_wanted(kind->name, argc, argv))
                continue;
            if (started - finished == AT_ONCE)
                finish(runs[finished++]);
            NEED(started < MOST_KINDS);
            runs[started++] = start(kind);
        }
    while (finished < started)
        finish(runs[finished++]);
}
