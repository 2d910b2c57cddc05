/* What a program sees of signals: which come, which wait, who handles them, what they interrupt. */
#include "kinds.h"
#include <setjmp.h>
#include <sys/time.h>
#include <sys/ucontext.h>

static volatile sig_atomic_t came;
static void note(int signal) { came += signal > 0; }
static int handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    return sigaction(signal, &action, NULL);
}

/* Signals that nobody sent. */
static void none_come_to_a_handler(void) {
    for (int signal = 1; signal < 65; signal++)
        if (signal != SIGCHLD && signal != SIGALRM)
            handle(signal, note, SA_RESTART);
    compute(300);
    printf("%d\n", came);
}
static void none_wait_for_a_collector(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 10; i++) {
        compute(30);
        SAY(sigtimedwait(&all, NULL, &(struct timespec){0, 1000000}));
    }
}
static void *collects(void *argument) {
    sigset_t all;
    (void)argument;
    sigfillset(&all);
    SAY(sigtimedwait(&all, NULL, &(struct timespec){0, 500000000}));
    return NULL;
}
static void none_wait_for_a_collecting_thread(void) {
    sigset_t all;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    NEED(pthread_create(&thread, NULL, collects, NULL) == 0);
    compute(400);
    pthread_join(thread, NULL);
}
static void none_is_pending(void) {
    sigset_t all, pending;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 0, count = 0; i < 10; i++) {
        compute(20);
        sigpending(&pending);
        for (int signal = 1; signal < 65; signal++)
            count += sigismember(&pending, signal) == 1;
        printf("%d\n", count);
    }
}
static void the_mask_stays(void) {
    sigset_t some, now;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGURG);
    sigprocmask(SIG_SETMASK, &some, NULL);
    compute(200);
    sigprocmask(SIG_BLOCK, NULL, &now);
    for (int signal = 1; signal < 65; signal++)
        if (sigismember(&now, signal))
            printf("%d\n", signal);
}
static void the_alternate_stack_stays(void) {
    static char stack[65536];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack}, now;
    SAY(sigaltstack(&own, NULL));
    compute(200);
    SAY(sigaltstack(NULL, &now));
    printf("%d %zu %d\n", now.ss_sp == stack, now.ss_size, now.ss_flags);
}

/* Those that somebody did send. */
static void each_of_its_own_comes_once(int signal) {
    handle(signal, note, SA_RESTART);
    for (int i = 0; i < 50; i++) {
        compute(4);
        kill(getpid(), signal);
    }
    printf("%d\n", came);
}
static void urgent(void) { each_of_its_own_comes_once(SIGURG); }
static void window(void) { each_of_its_own_comes_once(SIGWINCH); }
static void trap(void) { each_of_its_own_comes_once(SIGTRAP); }
static void bad_call(void) { each_of_its_own_comes_once(SIGSYS); }
static void user(void) { each_of_its_own_comes_once(SIGUSR1); }

static int order[64];
static void queue(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if (came < 64)
        order[came++] = info->si_value.sival_int;
}
static void realtime_in_order(void) {
    struct sigaction action = {.sa_sigaction = queue, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    for (int i = 0; i < 40; i++) {
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
        compute(3);
    }
    for (int i = 0; i < came; i++)
        printf("%d%s", order[i], i + 1 < came ? " " : "\n");
}
static void who_sent_it(int signal, siginfo_t *info, void *context) {
    (void)context;
    printf("%d %d %d\n", signal, info->si_code, info->si_pid == getpid());
    came++;
}
static void what_comes_with_it(void) {
    struct sigaction action = {.sa_sigaction = who_sent_it, .sa_flags = SA_SIGINFO};
    for (int signal = SIGHUP; signal <= SIGTERM; signal++)
        if (signal != SIGKILL && signal != SIGALRM)
            sigaction(signal, &action, NULL);
    compute(100);
    raise(SIGUSR1);
    kill(getpid(), SIGINT);
    compute(50);
    syscall(SYS_tgkill, getpid(), gettid(), SIGTERM);
    raise(SIGTRAP);
    compute(50);
    printf("%d\n", came);
}

static sigjmp_buf back;
static volatile uintptr_t fault;
static void leave(int signal, siginfo_t *info, void *context) {
    (void)context;
    fault = (uintptr_t)info->si_addr;
    siglongjmp(back, signal * 100 + info->si_code);
}
static int caught(void (*act)(void)) {
    int how = sigsetjmp(back, 1);
    if (!how)
        act();
    return how;
}
static void divides(void) {
    volatile int zero = 0;
    printf("%d\n", 7 / zero);
}
static void reads_nothing(void) { printf("%d\n", *(volatile int *)64); }
static void breaks(void) { __asm__ volatile("int3"); }
static void is_illegal(void) { __asm__ volatile("ud2"); }
static int beyond = -1;
static void reads_beyond_a_file(void) {
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, beyond, 0);
    printf("%d\n", page[0]);
}
static void faults_are_its_own(void) {
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    const int caused[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++)
        sigaction(caused[i], &action, NULL);
    beyond = memfd_create("empty", 0);
    for (int i = 0; i < 8; i++) {
        compute(20);
        printf("%d %d %d\n", caught(divides), caught(reads_nothing), fault == 64);
        printf("%d %d %d\n", caught(breaks), caught(is_illegal), caught(reads_beyond_a_file));
    }
}

/* A handler interrupts what it interrupts alone. */
static void interrupted(int flags) {
    int ends[2];
    char byte;
    NEED(pipe(ends) == 0);
    handle(SIGUSR1, note, flags);
    pid_t self = getpid();
    fflush(stdout);
    if (!fork()) {
        usleep(700000);
        kill(self, SIGUSR1);
        usleep(300000);
        (void)!write(ends[1], "x", 1);
        _exit(0);
    }
    compute(50);
    SAY(read(ends[0], &byte, 1));
    printf("%d\n", came);
    SAY(poll(NULL, 0, 20));
}
static void a_handler_interrupts(void) { interrupted(0); }
static void a_handler_restarts(void) { interrupted(SA_RESTART); }
static void paused(void) {
    handle(SIGVTALRM, note, 0);
    pid_t self = getpid();
    fflush(stdout);
    if (!fork()) {
        usleep(700000);
        kill(self, SIGVTALRM);
        _exit(0);
    }
    compute(60);
    double since = seconds();
    child_exits_after(40);
    SAY(pause());
    puts(took(since, 0.05, 2));
}
static void suspended(void) {
    sigset_t none, own;
    sigemptyset(&none);
    sigemptyset(&own);
    sigaddset(&own, SIGUSR2);
    sigprocmask(SIG_BLOCK, &own, NULL);
    handle(SIGUSR2, note, 0);
    kill(getpid(), SIGUSR2);
    compute(60);
    SAY(sigsuspend(&none));
    printf("%d\n", came);
}

/* Timers of its own: about as many signals as alone. */
static const char *about(int count, int expected) { return abs(count - expected) <= expected / 2 ? "about" : "not about"; }
static void interval(int which, int signal) {
    struct itimerval every = {{0, 20000}, {0, 20000}};
    handle(signal, note, SA_RESTART);
    SAY(setitimer(which, &every, NULL));
    compute(400);
    setitimer(which, &(struct itimerval){0}, NULL);
    /* Of the time on the wall there is more. */
    printf("%s 20\n", which == ITIMER_REAL && came >= 20 ? "about" : about(came, 20));
}
static void real_timer(void) { interval(ITIMER_REAL, SIGALRM); }
static void virtual_timer(void) { interval(ITIMER_VIRTUAL, SIGVTALRM); }
static void profiling_timer(void) { interval(ITIMER_PROF, SIGPROF); }
static void timer_of_a_thread(void) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
    event._sigev_un._tid = gettid();
    handle(SIGRTMIN + 1, note, SA_RESTART);
    SAY(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer));
    printf("timer %ld\n", (long)timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 20000000}, {0, 20000000}}, NULL);
    compute(400);
    printf("%s 20\n", about(came, 20));
    SAY(timer_delete(timer));
}
static void alarm_in_time(void) {
    handle(SIGALRM, note, 0);
    ualarm(200000, 0);
    double since = seconds();
    while (!came)
        compute(1);
    puts(took(since, 0.19, 1.5));
}

/* Job control of a child that computes. */
static void stopped_and_continued(void) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        compute(300);
        _exit(5);
    }
    int status;
    usleep(100000);
    for (int i = 0; i < 3; i++) {
        SAY(kill(child, SIGSTOP));
        SAY(waitpid(child, &status, WUNTRACED) == child);
        printf("%d %d\n", WIFSTOPPED(status), WSTOPSIG(status));
        usleep(30000);
        SAY(waitpid(child, &status, WNOHANG | WUNTRACED));
        SAY(kill(child, SIGCONT));
        SAY(waitpid(child, &status, WCONTINUED) == child);
        printf("%d\n", WIFCONTINUED(status));
        usleep(20000);
    }
    SAY(waitpid(child, &status, 0) == child);
    printf("%d\n", WEXITSTATUS(status));
}
static void handlers_are_its_own(void) {
    compute(300);
    for (int signal = 1; signal < 65; signal++) {
        struct sigaction action;
        /* Those of the agent, which the guide names. */
        if (signal == SIGURG || signal == SIGWINCH || signal == SIGSYS || signal == SIGTRAP)
            continue;
        if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("%d\n", signal);
    }
}

#define KIND(name) {#name, name}
const struct kind signals[] = {
    KIND(none_come_to_a_handler), KIND(none_wait_for_a_collector), KIND(none_wait_for_a_collecting_thread),
    KIND(none_is_pending), KIND(the_mask_stays), KIND(the_alternate_stack_stays), KIND(urgent), KIND(window), KIND(trap),
    KIND(bad_call), KIND(user), KIND(realtime_in_order), KIND(what_comes_with_it), KIND(faults_are_its_own),
    KIND(a_handler_interrupts), KIND(a_handler_restarts), KIND(paused), KIND(suspended), KIND(real_timer),
    KIND(virtual_timer), KIND(profiling_timer), KIND(timer_of_a_thread), KIND(alarm_in_time), KIND(stopped_and_continued),
    KIND(handlers_are_its_own), {NULL, NULL},
};
