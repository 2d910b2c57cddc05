/* Processes, threads, limits, and what the kernel says of them. */
#include "kinds.h"
#include <dirent.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

extern char **environ;

static void forks(void) {
    for (int i = 0; i < 20; i++)
        CHILD(compute(10); _exit(i));
}
static void vforks(void) {
    for (volatile int i = 0; i < 20; i++) {
        fflush(stdout);
        pid_t child = vfork();
        if (!child) {
            execl("/bin/sh", "sh", "-c", "exit 3", NULL);
            _exit(9);
        }
        compute(5);
        ends_with(child);
    }
}
static void spawns(void) {
    char *words[] = {"sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; exit 4", NULL};
    for (int i = 0; i < 8; i++) {
        pid_t child;
        fflush(stdout);
        SAY(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ));
        compute(10);
        ends_with(child);
    }
}
static void becomes_another(void) { CHILD(compute(50); execl("/bin/echo", "echo", "another", NULL)); }
static void *executes(void *argument) {
    (void)argument;
    compute(50);
    execl("/bin/echo", "echo", "another", NULL);
    return NULL;
}
static void another_by_a_thread(void) {
    CHILD(pthread_t thread; pthread_create(&thread, NULL, executes, NULL); compute(5000));
}
static int clones(void *argument) {
    compute(60);
    *(int *)argument += 1;
    return 6;
}
static void clone_with(int flags) {
    static char stack[262144];
    int shared = 0;
    fflush(stdout);
    pid_t child = clone(clones, stack + sizeof stack, flags, &shared);
    NEED(child > 0);
    compute(20);
    int status;
    NEED(waitpid(child, &status, __WALL) == child);
    printf("%d %d\n", WEXITSTATUS(status), shared);
}
static void clone_of_memory(void) { clone_with(CLONE_VM | SIGCHLD); }
static void clone_of_files(void) { clone_with(CLONE_FILES | CLONE_FS | SIGCHLD); }
static void clone_without_signal(void) { clone_with(0); }
static void clone_of_handlers(void) { clone_with(CLONE_VM | CLONE_SIGHAND | SIGCHLD); }
static void *computes_long(void *argument) {
    compute(300);
    printf("worker %ld\n", (long)argument);
    return NULL;
}
static void first_thread_ends(void) {
    CHILD(pthread_t thread; pthread_create(&thread, NULL, computes_long, (void *)1); compute(50); pthread_exit(NULL));
}
static void threads_end_anyhow(void) {
    CHILD(pthread_t threads[4]; for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, computes_long, (void *)7);
          compute(50); _exit(2));
}
static void dies_with_its_parent(void) {
    int ends[2];
    char byte;
    NEED(pipe(ends) == 0);
    CHILD(pid_t self = getpid(); if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self) _exit(0);
        (void)!write(ends[1], "r", 1);
        compute(20000);
        _exit(0);
    } NEED(read(ends[0], &byte, 1) == 1); compute(50); _exit(1));
    close(ends[1]);
    struct pollfd end = {ends[0], POLLIN, 0};
    SAY(poll(&end, 1, 5000));
}
static void is_adopted(void) {
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    CHILD(if (!fork()) { compute(200); _exit(8); } _exit(0));
    SAY(wait(&status) > 0);
    printf("%d\n", WEXITSTATUS(status));
}
static void aborts(void) {
    struct rlimit none = {0, 0};
    CHILD(setrlimit(RLIMIT_CORE, &none); compute(100); abort());
    CHILD(setrlimit(RLIMIT_CORE, &none); compute(100); *(volatile int *)8 = 1);
    CHILD(compute(100); kill(getpid(), SIGTERM); compute(1000));
    CHILD(compute(100); kill(getpid(), SIGTRAP); compute(1000));
    CHILD(compute(100); kill(getpid(), SIGSYS); compute(1000));
    CHILD(compute(100); kill(getpid(), SIGURG); kill(getpid(), SIGWINCH); _exit(1));
}
static void cpu_limit(void) {
    struct rlimit limit = {1, 2};
    CHILD(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); setrlimit(RLIMIT_CPU, &limit); compute(5000));
}
static void limits(void) {
    static const int of[] = {RLIMIT_STACK, RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING, RLIMIT_CORE,
                             RLIMIT_NICE, RLIMIT_RTPRIO, RLIMIT_NPROC, RLIMIT_FSIZE};
    compute(100);
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++) {
        struct rlimit limit;
        getrlimit(of[i], &limit);
        printf("%d: %ld %ld\n", of[i], (long)limit.rlim_cur, (long)limit.rlim_max);
    }
}
static void open_files(void) {
    compute(200);
    DIR *files = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *file; (file = readdir(files));)
        count += *file->d_name != '.';
    printf("%d\n", count);
    SAY(open("/dev/null", O_RDONLY) < 10);
}
static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void environment(void) {
    compute(100);
    char *names[1000];
    int count = 0;
    for (char **word = environ; *word && count < 1000; word++)
        names[count++] = strndup(*word, strcspn(*word, "="));
    qsort(names, count, sizeof *names, by_name);
    for (int i = 0; i < count; i++)
        puts(names[i]);
}
static void prints_of_itself(int count, const char *const names[count]) {
    for (int i = 0; i < 20; i++) {
        compute(20);
        char line[256];
        FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof line, status))
            for (int name = 0; name < count; name++)
                if (!strncmp(line, names[name], strlen(names[name])))
                    fputs(line, stdout);
        fclose(status);
    }
}
static void says_of_itself(void) {
    static const char *const names[] = {"Threads:", "SigIgn:", "SigBlk:", "SigPnd:", "ShdPnd:", "Seccomp:", "NoNewPrivs:", "Name:"};
    prints_of_itself(sizeof names / sizeof *names, names);
}
static void says_who_traces_it(void) { prints_of_itself(1, (const char *const[]){"TracerPid:"}); }
static void flags(void) {
    compute(100);
    SAY(prctl(PR_GET_DUMPABLE));
    SAY(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    SAY(prctl(PR_GET_SECCOMP));
    SAY(prctl(PR_GET_KEEPCAPS));
    SAY(prctl(PR_GET_TIMERSLACK));
    SAY(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    SAY(personality(0xffffffff));
    SAY(nice(0));
    SAY(sched_getscheduler(0));
    SAY(getpriority(PRIO_PROCESS, 0));
    SAY(umask(022));
    cpu_set_t cpus;
    SAY(sched_getaffinity(0, sizeof cpus, &cpus));
    printf("%d\n", CPU_COUNT(&cpus));
    SAY(getpgrp() == getpgid(0));
    SAY(getsid(0) > 0);
}
static void new_session(void) {
    CHILD(compute(50); SAY(setsid() == getpid()); compute(50); SAY(getpgrp() == getpid()); fflush(stdout); _exit(0));
}
static void another_user(void) {
    if (getuid())
        return;
    CHILD(compute(50); SAY(setgid(65534)); SAY(setuid(65534)); compute(100); SAY(getuid()); SAY(prctl(PR_GET_DUMPABLE)); fflush(stdout); _exit(0));
}
static void setuid_program(void) {
    CHILD(compute(50); if (!getuid()) NEED(setuid(65534) == 0);
          execl("/bin/sh", "sh", "-c", "su --version >/dev/null; echo $?", NULL));
}
static void namespaces(void) {
    CHILD(compute(30); SAY(unshare(CLONE_NEWUSER)); compute(100); fflush(stdout); _exit(0));
    CHILD(compute(30); SAY(unshare(CLONE_FILES | CLONE_FS)); compute(100); fflush(stdout); _exit(0));
}

/* A debugger of its own. */
static void debugs(void) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        compute(50);
        raise(SIGTRAP);
        compute(50);
        _exit(4);
    }
    int status;
    for (;;) {
        NEED(waitpid(child, &status, 0) == child);
        if (!WIFSTOPPED(status))
            break;
        printf("stopped by %d\n", WSTOPSIG(status));
        NEED(ptrace(PTRACE_CONT, child, 0, 0) == 0);
    }
    printf("%d\n", WEXITSTATUS(status));
}

/* A lock whose holder dies. */
static void robust_lock(void) {
    pthread_mutex_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock, &attributes);
    CHILD(pthread_mutex_lock(lock); compute(100); _exit(0));
    SAY(pthread_mutex_lock(lock) == EOWNERDEAD);
}

/* Nobody who reads the code sees that this makes a filter. */
static void filtered_by_hidden_code(void) {
    volatile int half = PR_SET_SECCOMP / 2;
    CHILD(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); compute(100); NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
          NEED(prctl(2 * half, SECCOMP_MODE_FILTER, few_calls()) == 0); compute(400); _exit(6));
}

/* Memory that a thread of the same program serves. */
static int served;
static void *serves(void *argument) {
    char *page = argument;
    struct uffd_msg message;
    while (read(served, &message, sizeof message) == sizeof message) {
        struct uffdio_copy copy = {message.arg.pagefault.address & -4096, (uintptr_t)page, 4096, 0, 0};
        ioctl(served, UFFDIO_COPY, &copy);
    }
    return NULL;
}
static void faults_served(void) {
    enum { PAGES = 400 };
    served = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    NEED(served >= 0);
    struct uffdio_api api = {.api = UFFD_API};
    NEED(ioctl(served, UFFDIO_API, &api) == 0);
    char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register area = {{(uintptr_t)memory, PAGES * 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
    NEED(ioctl(served, UFFDIO_REGISTER, &area) == 0);
    char page[4096];
    memset(page, 7, sizeof page);
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, serves, page) == 0);
    long sum = 0;
    for (int i = 0; i < PAGES; i++) {
        sum += memory[i * 4096 + i];
        if (i % 40 == 0)
            compute(10);
    }
    printf("%ld\n", sum);
}

/* What it maps itself is what it finds. */
static void memory_is_its_own(void) {
    compute(100);
    for (int i = 0; i < 200; i++) {
        char *pages = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(pages, i, 8 * 4096);
        mprotect(pages + 4096, 4096, PROT_NONE);
        compute(1);
        unsigned char in_core[8];
        if (mincore(pages, 8 * 4096, in_core) || pages[0] != (char)i || pages[2 * 4096] != (char)i)
            puts("changed");
        munmap(pages, 8 * 4096);
    }
    puts("done");
}
static void locked_memory(void) {
    SAY(mlockall(MCL_CURRENT | MCL_FUTURE) == 0 || errno == ENOMEM || errno == EPERM);
    compute(200);
    SAY(munlockall());
}
static void clocks_go_on(void) {
    struct timespec before, after;
    for (int i = 0; i < 300; i++) {
        clock_gettime(CLOCK_MONOTONIC, &before);
        compute(1);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (after.tv_sec < before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec < before.tv_nsec))
            puts("went back");
    }
    puts("done");
}
static _Thread_local int own = 5;
static void *own_storage(void *argument) {
    own += (int)(intptr_t)argument;
    compute(40);
    printf("%d\n", own);
    return NULL;
}
static void storage_of_threads(void) {
    for (intptr_t i = 0; i < 10; i++) {
        pthread_t thread;
        NEED(pthread_create(&thread, NULL, own_storage, (void *)i) == 0);
        pthread_join(thread, NULL);
    }
    printf("%d\n", own);
}
static void error_stays(void) {
    for (int i = 1; i < 60; i++) {
        errno = i;
        compute(4);
        uint64_t n = 27;
        for (int round = 0; round < 200000; round++)
            n = n & 1 ? 3 * n + 1 : n > 1 ? n / 2 : 27;
        if (errno != i || !n)
            puts("changed");
    }
    puts("done");
}

#define KIND(name) {#name, name}
const struct kind processes[] = {
    KIND(forks), KIND(vforks), KIND(spawns), KIND(becomes_another), KIND(another_by_a_thread), KIND(clone_of_memory),
    KIND(clone_of_files), KIND(clone_without_signal), KIND(clone_of_handlers), KIND(first_thread_ends), KIND(threads_end_anyhow),
    KIND(dies_with_its_parent), KIND(is_adopted), KIND(aborts), KIND(cpu_limit), KIND(limits), KIND(open_files), KIND(environment),
    KIND(says_of_itself), KIND(says_who_traces_it), KIND(flags), KIND(new_session), KIND(another_user), KIND(setuid_program), KIND(namespaces), KIND(debugs),
    KIND(robust_lock), KIND(filtered_by_hidden_code), KIND(faults_served), KIND(memory_is_its_own), KIND(locked_memory),
    KIND(clocks_go_on), KIND(storage_of_threads), KIND(error_stays), {NULL, NULL},
};
