/* Processes that stand still, and what others see of them then: terminals, cgroups, cores, namespaces, rings of system calls. */
#include "kinds.h"
#include <dirent.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/uio.h>

static void ended(const char *what, pid_t child, int options) {
    int status;
    NEED(waitpid(child, &status, options) == child);
    if (WIFSTOPPED(status))
        printf("%s: stopped by %d\n", what, WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        printf("%s: goes on\n", what);
    else if (WIFEXITED(status))
        printf("%s: exits with %d\n", what, WEXITSTATUS(status));
    else
        printf("%s: is killed by %d%s\n", what, WTERMSIG(status), WCOREDUMP(status) ? ", core" : "");
}
/* A line of /proc/PID/status; what comes after the name. */
static const char *status_of(pid_t process, const char *name) {
    static char line[256];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *status = fopen(path, "r");
    NEED(status);
    while (fgets(line, sizeof line, status) && strncmp(line, name, strlen(name)))
        ;
    fclose(status);
    line[strcspn(line, "\n")] = 0;
    return line + strlen(name);
}

/* A shell of its own on a terminal of its own. */
static int terminal;
static void type(char key) { NEED(write(terminal, &key, 1) == 1); }
static pid_t start_job(int own, void (*run)(void)) {
    fflush(stdout);
    pid_t job = fork();
    NEED(job >= 0);
    if (!job) {
        setpgid(0, 0);
        if (own)
            tcsetpgrp(0, getpid());
        run();
        _exit(7);
    }
    setpgid(job, job);
    if (own)
        tcsetpgrp(0, job);
    return job;
}
static void computes(void) { compute(5000); }
static void reads(void) {
    char byte;
    compute(50);
    _exit(read(0, &byte, 1) == 1 ? 6 : 5);
}
static void is_shell(void) {
    signal(SIGTTOU, SIG_IGN);
    for (int round = 0; round < 3; round++) {
        pid_t job = start_job(1, computes);
        compute(40);
        type(26);
        ended("job", job, WUNTRACED);
        tcsetpgrp(0, getpgrp());
        compute(20);
        printf("%s\n", status_of(job, "State:"));
        tcsetpgrp(0, job);
        kill(-job, SIGCONT);
        ended("job", job, WCONTINUED);
        compute(40);
        type(3);
        ended("job", job, WUNTRACED);
        tcsetpgrp(0, getpgrp());
    }
    pid_t job = start_job(0, reads);
    ended("reader", job, WUNTRACED);
    tcsetpgrp(0, job);
    kill(-job, SIGCONT);
    type('x');
    type('\n');
    ended("reader", job, WUNTRACED);
    tcsetpgrp(0, getpgrp());
    fflush(stdout);
    _exit(0);
}
static void job_control(void) {
    char name[64];
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    NEED(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0 && ptsname_r(terminal, name, sizeof name) == 0);
    fflush(stdout);
    pid_t shell = fork();
    if (!shell) {
        setsid();
        int own = open(name, O_RDWR);
        NEED(own >= 0 && ioctl(own, TIOCSCTTY, 0) == 0);
        dup2(own, 0);
        is_shell();
    }
    ended("shell", shell, 0);
}

/* Whatever a stopped process shows to others. */
static void no_signal_waits_for_the_stopped(void) {
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        for (;;)
            compute(1000);
    int status, waiting = 0, stopped = 0;
    for (int i = 0; i < 300; i++) {
        usleep(1000 + i * 7 % 1000);
        NEED(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        waiting += strtoull(status_of(child, "SigPnd:"), NULL, 16) || strtoull(status_of(child, "ShdPnd:"), NULL, 16);
        /* Where it was visited just then, it is let go first. */
        for (int tries = 0; tries < 5000 && !strstr(status_of(child, "State:"), "T (stopped)"); tries++)
            usleep(1000);
        waiting += strtoull(status_of(child, "SigPnd:"), NULL, 16) || strtoull(status_of(child, "ShdPnd:"), NULL, 16);
        stopped += !!strstr(status_of(child, "State:"), "T (stopped)");
        NEED(kill(child, SIGCONT) == 0);
    }
    printf("%d stopped, %d with a signal\n", stopped, waiting);
    kill(child, SIGKILL);
    ended("child", child, 0);
}
static void is_a_zombie(void) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        compute(100);
        _exit(4);
    }
    siginfo_t info = {0};
    SAY(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    printf("%d %d\n", info.si_code, info.si_status);
    for (int i = 0; i < 10; i++) {
        compute(30);
        puts(status_of(child, "State:"));
    }
    ended("child", child, 0);
}

static int write_to(const char *folder, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC), error = file < 0 || write(file, text, strlen(text)) < 0;
    if (file >= 0)
        close(file);
    return !error;
}
static void frozen(void) {
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char group[64] = "", text[32], events[256];
    for (int i = 0; i < 2 && !*group; i++) {
        snprintf(events, sizeof events, "%s/cgroup.procs", roots[i]);
        snprintf(group, sizeof group, "%s/hbbp-%d", roots[i], getpid());
        if (access(events, W_OK) || mkdir(group, 0755))
            *group = 0;
    }
    volatile long *turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t child = *group ? fork() : -1;
    if (!child)
        for (;; ++*turns)
            compute(1);
    snprintf(text, sizeof text, "%d", child);
    if (child < 0 || !write_to(group, "cgroup.procs", text) || !write_to(group, "cgroup.freeze", "0"))
        puts("refused");
    for (int i = 0; i < 5 && child > 0; i++) {
        long before = *turns;
        while (*turns < before + 30)
            usleep(1000);
        write_to(group, "cgroup.freeze", "1");
        snprintf(events, sizeof events, "%s/cgroup.events", group);
        for (int tries = 0, length; tries < 5000; tries++) {
            int file = open(events, O_RDONLY);
            char now[64];
            length = read(file, now, sizeof now - 1);
            close(file);
            now[length > 0 ? length : 0] = 0;
            if (strstr(now, "frozen 1") && puts("frozen"))
                break;
            usleep(1000);
        }
        before = *turns;
        compute(50);
        printf("%s while frozen\n", *turns == before ? "stood still" : "went on");
        write_to(group, "cgroup.freeze", "0");
    }
    if (child > 0) {
        kill(child, SIGKILL);
        ended("child", child, 0);
    }
    for (int i = 0; *group && rmdir(group) && i < 1000; i++)
        usleep(1000);
}

static void dumps_core(void) {
    char place[] = "/tmp/hbbp-core-XXXXXX", path[512];
    NEED(mkdtemp(place) && chdir(place) == 0);
    static const int by[] = {SIGSEGV, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU};
    for (int i = 0; i < 5; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){1 << 24, 1 << 24});
            compute(60);
            kill(getpid(), by[i]);
            compute(1000);
            _exit(1);
        }
        ended("child", child, 0);
        DIR *files = opendir(".");
        for (struct dirent *file; (file = readdir(files));)
            if (*file->d_name != '.') {
                snprintf(path, sizeof path, "%s/%s", place, file->d_name);
                printf("left %.4s\n", file->d_name);
                unlink(path);
            }
        closedir(files);
    }
    NEED(chdir("/") == 0 && rmdir(place) == 0);
}

static void *dies_with_lock(void *lock) {
    NEED(pthread_mutex_lock(lock) == 0);
    compute(100);
    return NULL;
}
static void lock_of_a_thread_that_ends(void) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_t lock;
        pthread_mutexattr_t attributes;
        pthread_t thread;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&lock, &attributes);
        NEED(pthread_create(&thread, NULL, dies_with_lock, &lock) == 0);
        usleep(30000);
        SAY(pthread_mutex_lock(&lock) == EOWNERDEAD);
        SAY(pthread_mutex_consistent(&lock));
        SAY(pthread_mutex_unlock(&lock));
        pthread_join(thread, NULL);
    }
}

static void own_namespaces(void) {
    static const struct { const char *name; int flags; } kinds[] = {
        {"processes", CLONE_NEWPID}, {"mounts", CLONE_NEWNS}, {"names", CLONE_NEWUTS}, {"messages", CLONE_NEWIPC},
        {"user and processes", CLONE_NEWUSER | CLONE_NEWPID}, {"times", 0x80 /* CLONE_NEWTIME */},
    };
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            compute(40);
            printf("%s: %d\n", kinds[i].name, unshare(kinds[i].flags));
            /* Its children's clock is a day ahead. */
            if (kinds[i].flags == 0x80)
                printf("%d\n", write_to("/proc/self", "timens_offsets", "monotonic 86400 0"));
            fflush(stdout);
            double before = seconds();
            pid_t inner = fork();
            if (!inner) {
                printf("first: %d, a day later: %d\n", getpid() == 1, seconds() > before + 86000);
                compute(100);
                fflush(stdout);
                _exit(3);
            }
            ended("inner", inner, 0);
            fflush(stdout);
            _exit(2);
        }
        ended("outer", child, 0);
    }
}

/* Reads and waits through a ring. */
static void ring_of_calls(void) {
    struct io_uring_params params = {0};
    int ring = syscall(SYS_io_uring_setup, 8, &params), ends[2];
    if (ring < 0) {
        puts("refused");
        return;
    }
    NEED(pipe(ends) == 0);
    size_t size = params.sq_off.array + params.sq_entries * 4, completed = params.cq_off.cqes + params.cq_entries * 16;
    size = size > completed ? size : completed;
    char *queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries =
        mmap(NULL, params.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    NEED(queue != MAP_FAILED && (void *)entries != MAP_FAILED && params.features & IORING_FEAT_SINGLE_MMAP);
    unsigned *tail = (void *)(queue + params.sq_off.tail), *array = (void *)(queue + params.sq_off.array);
    unsigned *head = (void *)(queue + params.cq_off.head), *end = (void *)(queue + params.cq_off.tail);
    struct io_uring_cqe *answers = (void *)(queue + params.cq_off.cqes);
    unsigned mask = *(unsigned *)(queue + params.cq_off.ring_mask);
    struct __kernel_timespec time = {0, 30000000};
    char bytes[8];
    int right = 0, signals = 0;
    child_exits_after(100);
    for (int i = 0; i < 60; i++) {
        struct io_uring_sqe *entry = &entries[*tail % params.sq_entries];
        memset(entry, 0, sizeof *entry);
        if (i % 3 == 0)
            *entry = (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&time, .len = 1};
        else
            *entry = (struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = ends[0], .addr = (uintptr_t)bytes, .len = 8, .off = -1};
        entry->user_data = i;
        array[*tail % params.sq_entries] = *tail % params.sq_entries;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        if (i % 3)
            NEED(write(ends[1], "12345678", 8) == 8);
        compute(3);
        for (unsigned to_submit = 1; __atomic_load_n(end, __ATOMIC_ACQUIRE) == *head; to_submit = 0)
            if (syscall(SYS_io_uring_enter, ring, to_submit, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
                signals++;
        struct io_uring_cqe *answer = &answers[*head & mask];
        right += answer->user_data == (uint64_t)i && answer->res == (i % 3 ? 8 : -ETIME);
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    }
    printf("%d right, %d interrupted\n", right, signals);
}

#define KIND(name) {#name, name}
const struct kind jobs[] = {
    KIND(job_control), KIND(no_signal_waits_for_the_stopped), KIND(is_a_zombie), KIND(frozen), KIND(dumps_core),
    KIND(lock_of_a_thread_that_ends), KIND(own_namespaces), KIND(ring_of_calls), {NULL, NULL},
};
