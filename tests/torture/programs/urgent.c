/* urgent [MS]: SIGURG, or what SIGNAL is defined as, for the program's own use. Sent in every way there is, one at a time, to this
 * thread, another one or the process; each must arrive once, with its own siginfo, and none may come that the program did not send.
 * With OTHER defined, that has a handler, too; then one may be lost that is sent while another of its kind is pending. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#ifndef SIGNAL
#define SIGNAL SIGURG
#endif
#ifndef OTHER
#define OTHER SIGNAL
#endif

static atomic_int over;
static atomic_long arrived;
static siginfo_t last;
static atomic_int last_thread;
static pid_t main_thread, other_thread;
static long lost;

static void on_urgent(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    last = *info;
    atomic_store(&last_thread, gettid());
    atomic_fetch_add(&arrived, 1);
}

static void *compute(void *unused) {
    uint64_t expected = work(4, 30);
    __atomic_store_n(&other_thread, gettid(), __ATOMIC_SEQ_CST);
    while (!atomic_load(&over))
        CHECK(work(4, 30) == expected, "computes wrong");
    return unused;
}

/* Waits, computing, for one more than `before`; whether it came. */
static int wait_for_one(const char *way, long before) {
    int64_t limit = now_ns() + (OTHER == SIGNAL ? 5000000000l : 500000000l);
    while (atomic_load(&arrived) == before) {
        work(1, 3);
        if (now_ns() > limit) {
            lost++;
            CHECK(OTHER != SIGNAL, "%s: lost", way);
            return 0;
        }
    }
    CHECK(OTHER != SIGNAL || atomic_load(&arrived) == before + 1, "%s: %ld arrived instead of one", way, (long)arrived - before);
    return 1;
}

static void queue_to(pid_t thread, int value) {
    siginfo_t info = {.si_signo = SIGNAL, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = value;
    NEED(syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, SIGNAL, &info) == 0);
}

/* Makes readiness of `fd` send SIGNAL to `thread`; with `signal` 0 it is SIGURG for urgent data only. */
static void own(int fd, pid_t thread, int signal) {
    struct f_owner_ex owner = {F_OWNER_TID, thread};
    NEED(fcntl(fd, F_SETOWN_EX, &owner) == 0);
    if (signal) {
        NEED(fcntl(fd, F_SETSIG, signal) == 0);
        NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC | O_NONBLOCK) == 0);
    }
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 800);
    struct sigaction action = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO | SA_RESTART};
    NEED(sigaction(SIGNAL, &action, NULL) == 0 && sigaction(OTHER, &action, NULL) == 0);
    main_thread = gettid();
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, compute, NULL) == 0);
    while (!__atomic_load_n(&other_thread, __ATOMIC_SEQ_CST))
        ;
    int pipes[2], pair[2], urgent[2];
    NEED(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, urgent) == 0);
    own(pipes[0], main_thread, SIGNAL);
    own(pair[0], other_thread, SIGNAL);
    own(urgent[0], main_thread, 0);
    int has_urgent_data = SIGNAL == SIGURG;
    announce();

    char byte = 'x';
    for (int round = 0; goes_on(end) || round < 16; round++) {
        work(round, 1 + round % 50);
        long before = atomic_load(&arrived);
        pid_t target = round & 8 ? main_thread : other_thread, child;
        switch (round % 8) {
        case 0:
            NEED(kill(getpid(), SIGNAL) == 0);
            if (wait_for_one("kill", before))
                CHECK(last.si_code == SI_USER && last.si_pid == getpid(), "kill: si_code %d", last.si_code);
            break;
        case 1:
            NEED(tgkill(getpid(), target, SIGNAL) == 0);
            if (wait_for_one("tgkill", before))
                CHECK(last.si_code == SI_TKILL && last_thread == target, "tgkill: si_code %d", last.si_code);
            break;
        case 2:
            NEED(sigqueue(getpid(), SIGNAL, (union sigval){.sival_int = round}) == 0);
            if (wait_for_one("sigqueue", before))
                CHECK(last.si_code == SI_QUEUE && last.si_value.sival_int == round, "sigqueue: si_code %d, value %d",
                      last.si_code, last.si_value.sival_int);
            break;
        case 3:
            queue_to(target, round);
            if (wait_for_one("rt_tgsigqueueinfo", before))
                CHECK(last.si_code == SI_QUEUE && last.si_value.sival_int == round && last_thread == target,
                      "rt_tgsigqueueinfo: si_code %d, value %d", last.si_code, last.si_value.sival_int);
            break;
        case 4:
            NEED(write(pipes[1], &byte, 1) == 1);
            if (wait_for_one("pipe", before))
                CHECK(last.si_code == POLL_IN && last.si_fd == pipes[0] && last_thread == main_thread,
                      "pipe: si_code %d, si_fd %d", last.si_code, last.si_fd);
            NEED(read(pipes[0], &byte, 1) == 1);
            break;
        case 5:
            NEED(write(pair[1], &byte, 1) == 1);
            if (wait_for_one("socket pair", before))
                CHECK(last.si_code == POLL_IN && last.si_fd == pair[0] && last_thread == other_thread,
                      "socket pair: si_code %d, si_fd %d", last.si_code, last.si_fd);
            NEED(read(pair[0], &byte, 1) == 1);
            break;
        case 6:
            if (has_urgent_data && send(urgent[1], &byte, 1, MSG_OOB) != 1)
                has_urgent_data = 0;
            if (has_urgent_data) {
                if (wait_for_one("urgent data", before))
                    CHECK(last_thread == main_thread, "urgent data: in the wrong thread");
                NEED(recv(urgent[0], &byte, 1, MSG_OOB) == 1);
            }
            break;
        case 7:
            if ((child = fork()) == 0)
                _exit(kill(getppid(), SIGNAL) != 0);
            NEED(child > 0);
            if (wait_for_one("from a child", before))
                CHECK(last.si_code == SI_USER && last.si_pid == child, "from a child: si_code %d, si_pid %d",
                      last.si_code, last.si_pid);
            int status;
            NEED(waitpid(child, &status, 0) == child);
            CHECK(status == 0, "the child ended with %#x", status);
            break;
        }
        if (violations)
            break;
    }
    /* Some time in which none is sent. */
    long before = atomic_load(&arrived);
    work(1, 100000);
    CHECK(atomic_load(&arrived) == before, "a signal that nobody sent: si_code %d, si_fd %d", last.si_code, last.si_fd);
    CHECK(lost <= atomic_load(&arrived), "%ld lost, %ld arrived", lost, (long)arrived);
    atomic_store(&over, 1);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("no signal came that was not sent");
}
