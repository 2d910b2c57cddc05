/* urgent_blocked [MS]: SIGURG is blocked in all threads and taken by sigtimedwait and signalfd. Sent one at a time, each must
 * be taken once with its own siginfo, and none may be pending that the program did not send. */
#include "torture.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>

static atomic_int over, phase, taken_from_fd;
static atomic_long taken;
static siginfo_t last;
static struct signalfd_siginfo last_read;
static sigset_t urgent;
static pid_t taker_thread;

static int is_pending(void) {
    sigset_t pending;
    NEED(sigpending(&pending) == 0);
    return sigismember(&pending, SIGURG);
}

/* Takes by sigtimedwait while the phase is 0, by signalfd while it is 1. */
static void *take(void *unused) {
    struct timespec limit = {0, 20000000};
    __atomic_store_n(&taker_thread, gettid(), __ATOMIC_SEQ_CST);
    int fd = signalfd(-1, &urgent, SFD_NONBLOCK);
    struct pollfd ready = {fd, POLLIN, 0};
    NEED(fd >= 0);
    while (!atomic_load(&over)) {
        work(2, 20);
        if (atomic_load(&phase) == 0) {
            siginfo_t info;
            if (sigtimedwait(&urgent, &info, &limit) == SIGURG) {
                last = info;
                atomic_store(&taken_from_fd, 0);
                atomic_fetch_add(&taken, 1);
            } else {
                CHECK(errno == EAGAIN, "sigtimedwait: errno %d", errno);
            }
        } else {
            struct signalfd_siginfo info;
            int number = poll(&ready, 1, 20);
            CHECK(number >= 0, "poll: errno %d", errno);
            if (number == 1 && read(fd, &info, sizeof info) == sizeof info) {
                last_read = info;
                atomic_store(&taken_from_fd, 1);
                atomic_fetch_add(&taken, 1);
            }
        }
    }
    return unused;
}

/* Looks for pending signals that nobody has sent: of its own thread, for nobody sends it any. */
static void *compute(void *unused) {
    uint64_t expected = work(4, 300);
    while (!atomic_load(&over))
        CHECK(work(4, 300) == expected, "computes wrong");
    return unused;
}

static int wait_for_one(const char *way, long before) {
    int64_t limit = now_ns() + 5000000000l;
    while (atomic_load(&taken) == before)
        if (work(1, 3) && now_ns() > limit) {
            violation("%s: lost", way);
            return 0;
        }
    CHECK(atomic_load(&taken) == before + 1, "%s: %ld taken instead of one", way, (long)taken - before);
    return 1;
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 800);
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    NEED(sigprocmask(SIG_BLOCK, &urgent, NULL) == 0);
    pthread_t threads[2];
    NEED(pthread_create(&threads[0], NULL, take, NULL) == 0);
    NEED(pthread_create(&threads[1], NULL, compute, NULL) == 0);
    while (!__atomic_load_n(&taker_thread, __ATOMIC_SEQ_CST))
        ;
    announce();
    for (int round = 0; (goes_on(end) || round < 40) && !violations; round++) {
        work(round, 1 + round % 50);
        /* The taker may still be in the other phase for one signal. */
        if (round % 10 == 0) {
            atomic_store(&phase, round / 10 % 2);
            sleep_us(25000);
        }
        CHECK(!is_pending(), "SIGURG is pending that nobody sent");
        long before = atomic_load(&taken);
        siginfo_t info = {.si_signo = SIGURG, .si_code = SI_QUEUE};
        info.si_value.sival_int = round;
        info.si_pid = getpid();
        if (round & 1)
            NEED(sigqueue(getpid(), SIGURG, info.si_value) == 0);
        else
            NEED(syscall(SYS_rt_tgsigqueueinfo, getpid(), taker_thread, SIGURG, &info) == 0);
        const char *way = atomic_load(&phase) ? "signalfd" : "sigtimedwait";
        if (!wait_for_one(way, before))
            break;
        way = atomic_load(&taken_from_fd) ? "signalfd" : "sigtimedwait";
        int code = atomic_load(&taken_from_fd) ? last_read.ssi_code : last.si_code;
        int value = atomic_load(&taken_from_fd) ? last_read.ssi_int : last.si_value.sival_int;
        CHECK(code == SI_QUEUE && value == round, "%s: si_code %d, value %d in round %d", way, code, value, round);
    }
    atomic_store(&over, 1);
    for (int i = 0; i < 2; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    CHECK(!is_pending(), "SIGURG is pending at the end");
    return finish("every SIGURG sent was taken once");
}
