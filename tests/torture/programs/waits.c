/* waits [ROUNDS]: a parent and its children with job control: children stop themselves or are stopped while several of their threads
 * compute. The parent must see each stop and each continuation, nothing of a stopped child may run, and a stopped child can be
 * killed. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct shared {
    atomic_long progress[2];
    atomic_int handled, seen;
} *shared;

static void on_continue(int signal) {
    (void)signal;
    atomic_fetch_add(&shared->handled, 1);
}

static void *compute(void *number) {
    uint64_t expected = work(4, 20);
    for (;;) {
        CHECK(work(4, 20) == expected, "computes wrong");
        atomic_fetch_add(&shared->progress[(long)number], 1);
    }
    return NULL;
}

/* Waits for one change of the child, which must be this. */
static void expect(pid_t child, int options, int code, int status, const char *what) {
    siginfo_t info = {0};
    NEED(waitid(P_PID, child, &info, options) == 0);
    CHECK(info.si_pid == child && info.si_code == code && info.si_status == status, "%s: si_code %d, status %d", what,
          info.si_code, info.si_status);
}

static void itself(int round) {
    atomic_store(&shared->handled, 0);
    atomic_store(&shared->seen, 0);
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        work(round, 100);
        raise(SIGSTOP);
        /* A stop that follows at once would hide the continuation from the parent. */
        while (!atomic_load(&shared->seen))
            work(round, 1);
        raise(SIGSTOP);
        _exit(atomic_load(&shared->handled));
    }
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t pid = waitpid(child, &status, WUNTRACED);
        CHECK(pid == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "raised: pid %d, status %#x", pid, status);
        NEED(kill(child, SIGCONT) == 0);
        if (i == 0)
            expect(child, WCONTINUED, CLD_CONTINUED, SIGCONT, "continued");
        atomic_store(&shared->seen, 1);
    }
    expect(child, WEXITED, CLD_EXITED, 2, "ended");
}

static void from_outside(int round) {
    atomic_store(&shared->handled, 0);
    atomic_store(&shared->progress[0], 0);
    atomic_store(&shared->progress[1], 0);
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        pthread_t thread;
        NEED(pthread_create(&thread, NULL, compute, (void *)1) == 0);
        compute(NULL);
    }
    for (int i = 0; i < 3; i++) {
        long before[2] = {shared->progress[0], shared->progress[1]};
        while (shared->progress[0] == before[0] || shared->progress[1] == before[1])
            sleep_us(100);
        work(round, 50 * i);
        NEED(kill(child, SIGSTOP) == 0);
        expect(child, WSTOPPED, CLD_STOPPED, SIGSTOP, "stopped");
        before[0] = shared->progress[0];
        before[1] = shared->progress[1];
        sleep_us(3000);
        CHECK(shared->progress[0] == before[0] && shared->progress[1] == before[1], "a stopped child runs");
        siginfo_t info = {0};
        CHECK(waitid(P_PID, child, &info, WSTOPPED | WCONTINUED | WEXITED | WNOHANG) == 0 && info.si_pid == 0,
              "a second change of a stopped child: si_code %d, status %d", info.si_code, info.si_status);
        if (i == 2)
            break;
        NEED(kill(child, SIGCONT) == 0);
        expect(child, WCONTINUED, CLD_CONTINUED, SIGCONT, "continued");
    }
    NEED(kill(child, SIGKILL) == 0);
    expect(child, WEXITED, CLD_KILLED, SIGKILL, "killed while stopped");
    CHECK(shared->handled == 2, "SIGCONT was handled %d times", shared->handled);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(shared != MAP_FAILED);
    struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    NEED(sigaction(SIGCONT, &action, NULL) == 0);
    announce();
    for (int round = 0; round < rounds && !violations; round++) {
        itself(round);
        from_outside(round);
    }
    return finish("every stop was seen");
}
