/* blocking [MS [all]]: one thread for each way to wait, again and again, with some computing between so that it is interrupted close to the
 * system call too. Those with a timeout must last as long and say so; those that wait for something must get it; none may
 * fail with EINTR, for the program gets no signals but the one that ends `sigsuspend`. With `all`, every
 * signal is blocked in every thread, as many programs do that leave signals to one thread. */
#include "torture.h"
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/futex.h>

static int64_t end;
static const struct timespec TWO_MS = {0, 2000000};
enum { WAIT_NS = 2000000, JIFFY_NS = 10000000 };

static void check(const char *call, int ok, int error, int64_t since, int64_t least) {
    int64_t lasted = now_ns() - since;
    CHECK(ok, "%s: errno %d (%s) after %ld us", call, error, strerror(error), (long)lasted / 1000);
    CHECK(lasted >= least, "%s: after %ld us already", call, (long)lasted / 1000);
}

/* Waits 2 ms at least and ends with `result` (and `error`). */
#define TIMED(call, result, error) TIMED_FOR(WAIT_NS, call, result, error)
#define TIMED_FOR(least, call, result, error)                                                                          \
    for (int round = 0; goes_on(end); round++) {                                                                     \
        work(round, round % 40);                                                                                       \
        errno = 0;                                                                                                     \
        int64_t since = now_ns();                                                                                      \
        long got = (call);                                                                                             \
        check(#call, got == (result) && (got != -1 || errno == (error)), errno, since, least);                         \
    }                                                                                                                  \
    return NULL

#define WAITER(name) static void *name(__attribute__((unused)) void *argument)

WAITER(by_nanosleep) { TIMED(nanosleep(&TWO_MS, NULL), 0, 0); }
WAITER(by_clock_nanosleep) { TIMED(clock_nanosleep(CLOCK_MONOTONIC, 0, &TWO_MS, NULL), 0, 0); }
WAITER(by_poll) { TIMED(poll(NULL, 0, 2), 0, 0); }
WAITER(by_ppoll) { TIMED(ppoll(NULL, 0, &TWO_MS, NULL), 0, 0); }
WAITER(by_select) {
    TIMED(select(0, NULL, NULL, NULL, &(struct timeval){0, 2000}), 0, 0);
}
WAITER(by_epoll) {
    int epoll = epoll_create1(0);
    struct epoll_event event;
    TIMED(epoll_wait(epoll, &event, 1, 2), 0, 0);
}
WAITER(by_futex) {
    static int word;
    TIMED(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &TWO_MS, NULL, 0), -1, ETIMEDOUT);
}
WAITER(by_semtimedop) {
    int set = semget(IPC_PRIVATE, 1, 0600);
    NEED(set >= 0 && argument);
    *(int *)argument = set;
    struct sembuf down = {0, -1, 0};
    TIMED(semtimedop(set, &down, 1, &TWO_MS), -1, EAGAIN);
}
WAITER(by_sigtimedwait) {
    sigset_t never;
    sigemptyset(&never);
    sigaddset(&never, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &never, NULL);
    TIMED(sigtimedwait(&never, NULL, &TWO_MS), -1, EAGAIN);
}
/* The kernel counts this timeout in its ticks, the one under way included. */
WAITER(by_recv_timeout) {
    int pair[2];
    char byte;
    struct timeval timeout = {0, 2000 + JIFFY_NS / 1000};
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    NEED(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0);
    TIMED(recv(pair[0], &byte, 1, 0), -1, EAGAIN);
}
WAITER(by_mq) {
    char name[64], message[64];
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = sizeof message};
    snprintf(name, sizeof name, "/hbbp-torture-%d", getpid());
    mqd_t queue = mq_open(name, O_RDONLY | O_CREAT | O_EXCL, 0600, &attr);
    if (queue < 0)
        return NULL; /* A kernel without message queues. */
    mq_unlink(name);
    struct timespec long_ago = {1, 0}, deadline;
    CHECK(mq_timedreceive(queue, message, sizeof message, NULL, &long_ago) == -1 && errno == ETIMEDOUT, "mq: errno %d", errno);
    TIMED((clock_gettime(CLOCK_REALTIME, &deadline), deadline.tv_nsec += WAIT_NS + 1000,
           deadline.tv_sec += deadline.tv_nsec / 1000000000, deadline.tv_nsec %= 1000000000,
           mq_timedreceive(queue, message, sizeof message, NULL, &deadline)),
          -1, ETIMEDOUT);
}
WAITER(by_timerfd) {
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec time = {{0, 0}, TWO_MS};
    uint64_t expired = 0;
    NEED(timer >= 0);
    TIMED((timerfd_settime(timer, 0, &time, NULL), read(timer, &expired, sizeof expired)), 8, 0);
}
WAITER(by_wait) {
    int status;
    for (pid_t child; goes_on(end);) {
        if ((child = fork()) == 0) {
            sleep_us(2000);
            _exit(5);
        }
        int64_t since = now_ns();
        pid_t ended = waitpid(child, &status, 0);
        check("waitpid", ended == child && status == 5 << 8, errno, since, 0);
    }
    return NULL;
}

/* Those that wait for a partner, which sends something every now and then: one partner for all. */
static int pipes[2], pair[2], event, epolled, listening, watched, queue, semaphores;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_length;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int permits;
static pthread_t suspended;
static atomic_int suspending;
static volatile int handled;

#define AWAIT(call, result)                                                                                            \
    for (;;) {                                                                                                         \
        errno = 0;                                                                                                     \
        int64_t since = now_ns();                                                                                      \
        long got = (call);                                                                                             \
        check(#call, got == (long)(result), errno, since, 0);                                                          \
        if (!goes_on(end) || (got != (long)(result) && violations > 10))                                             \
            return NULL;                                                                                               \
        work(3, 10);                                                                                                   \
    }

WAITER(for_pipe) {
    char byte;
    AWAIT(read(pipes[0], &byte, 1), 1);
}
WAITER(for_socket) {
    char byte;
    struct timeval timeout = {20, 0};
    NEED(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0);
    AWAIT(recv(pair[0], &byte, 1, 0), 1);
}
WAITER(for_event) {
    uint64_t number;
    AWAIT(read(event, &number, sizeof number), 8);
}
WAITER(for_epoll) {
    int epoll = epoll_create1(0);
    struct epoll_event ready = {.events = EPOLLIN};
    uint64_t number;
    NEED(epoll_ctl(epoll, EPOLL_CTL_ADD, epolled, &ready) == 0);
    AWAIT((epoll_wait(epoll, &ready, 1, 20000) == 1 ? read(epolled, &number, sizeof number) : -1), 8);
}
WAITER(for_connection) {
    struct timeval timeout = {20, 0};
    NEED(setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0);
    int connection;
    AWAIT((connection = accept(listening, NULL, NULL), connection < 0 ? -1 : close(connection)), 0);
}
WAITER(for_change) {
    char events[4096];
    AWAIT(read(watched, events, sizeof events) > 0, 1);
}
WAITER(for_message) {
    struct {
        long type;
        char text[8];
    } message;
    AWAIT(msgrcv(queue, &message, sizeof message.text, 0, 0), 1);
}
WAITER(for_semop) {
    struct sembuf down = {0, -1, 0};
    AWAIT(semop(semaphores, &down, 1), 0);
}
WAITER(for_semaphore) { AWAIT(sem_wait(&semaphore), 0); }
WAITER(for_condition) {
    while (goes_on(end)) {
        pthread_mutex_lock(&mutex);
        while (!permits) {
            struct timespec deadline;
            clock_gettime(CLOCK_REALTIME, &deadline);
            deadline.tv_sec += 20;
            int error = pthread_cond_timedwait(&condition, &mutex, &deadline);
            CHECK(error == 0, "pthread_cond_timedwait: %d", error);
        }
        permits--;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}
static void on_user(int signal) {
    (void)signal;
    handled++;
}
WAITER(for_signal) {
    sigset_t but_one;
    pthread_sigmask(SIG_BLOCK, NULL, &but_one);
    CHECK(sigismember(&but_one, SIGUSR1), "SIGUSR1 is not blocked");
    sigdelset(&but_one, SIGUSR1);
    while (goes_on(end)) {
        int before_handled = handled;
        atomic_store(&suspending, 1);
        int result = sigsuspend(&but_one);
        CHECK(result == -1 && errno == EINTR, "sigsuspend: %d, errno %d", result, errno);
        CHECK(handled == before_handled + 1, "sigsuspend came back after %d signals", handled - before_handled);
    }
    atomic_store(&suspending, -1);
    return NULL;
}

static atomic_int partners_over;

static void *partner(void *unused) {
    const struct {
        long type;
        char text[8];
    } message = {1, "m"};
    uint64_t one = 1;
    while (!atomic_load(&partners_over)) {
        sleep_us(1000);
        struct sembuf up = {0, 1, 0};
        NEED(write(pipes[1], "x", 1) == 1 && send(pair[1], "x", 1, MSG_DONTWAIT) != 0);
        NEED(write(event, &one, sizeof one) == 8 && write(epolled, &one, sizeof one) == 8);
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        NEED(client >= 0);
        if (connect(client, (struct sockaddr *)&address, address_length) != 0)
            CHECK(errno == EAGAIN || errno == ECONNREFUSED, "connect: errno %d", errno);
        close(client);
        close(open("changed", O_WRONLY | O_CREAT, 0600));
        if (msgsnd(queue, &message, 1, IPC_NOWAIT) != 0)
            CHECK(errno == EAGAIN, "msgsnd: errno %d", errno);
        if (semctl(semaphores, 0, GETVAL) < 1000)
            NEED(semop(semaphores, &up, 1) == 0);
        sem_post(&semaphore);
        pthread_mutex_lock(&mutex);
        permits++;
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&condition);
        if (atomic_load(&suspending) == 1) {
            atomic_store(&suspending, 0);
            NEED(pthread_kill(suspended, SIGUSR1) == 0);
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 900);
    static void *(*const WAITERS[])(void *) = {
        by_nanosleep,  by_clock_nanosleep, by_poll,     by_ppoll,      by_select,     by_epoll,    by_futex,
        by_semtimedop, by_sigtimedwait,    by_mq,       by_timerfd,    by_wait,       for_pipe,    for_socket,
        for_event,     for_epoll,          for_change,  for_message,   for_semop,     for_semaphore, for_condition,
        for_connection, by_recv_timeout,   for_signal,
    };
    enum { COUNT = sizeof WAITERS / sizeof *WAITERS };
    pthread_t threads[COUNT], the_partner;
    static int set_of_timed = -1;

    signal(SIGUSR1, on_user);
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    /* Whoever is traced by ptrace is not spared SIGCHLD, though it does nothing by default (sig_ignored, kernel/signal.c): a thread may
     * be woken for it, another one take it, and the first fail with EINTR. No tracer can help that; blocked, it wakes nobody. */
    sigaddset(&user, SIGCHLD);
    if (argc > 2)
        sigfillset(&user);
    pthread_sigmask(SIG_BLOCK, &user, NULL);
    NEED(pipe2(pipes, O_CLOEXEC) == 0 && fcntl(pipes[1], F_SETFL, O_NONBLOCK) == 0);
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    NEED((event = eventfd(0, 0)) >= 0 && (epolled = eventfd(0, 0)) >= 0);
    NEED((listening = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    address_length = offsetof(struct sockaddr_un, sun_path) +
                     snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hbbp-torture-%d", getpid()) + 1;
    NEED(bind(listening, (struct sockaddr *)&address, address_length) == 0 && listen(listening, 50) == 0);
    NEED((watched = inotify_init1(0)) >= 0 && inotify_add_watch(watched, ".", IN_OPEN | IN_CLOSE) >= 0);
    NEED((queue = msgget(IPC_PRIVATE, 0600)) >= 0 && (semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    NEED(semctl(semaphores, 0, SETVAL, 0) == 0 && sem_init(&semaphore, 0, 0) == 0);
    announce();
    for (int i = 0; i < COUNT; i++) {
        NEED(pthread_create(&threads[i], NULL, WAITERS[i], &set_of_timed) == 0);
        if (WAITERS[i] == for_signal)
            suspended = threads[i];
    }
    NEED(pthread_create(&the_partner, NULL, partner, NULL) == 0);
    uint64_t expected = work(8, 100);
    while (goes_on(end))
        CHECK(work(8, 100) == expected, "computes wrong");
    for (int i = 0; i < COUNT; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    atomic_store(&partners_over, 1);
    NEED(pthread_join(the_partner, NULL) == 0);
    semctl(semaphores, 0, IPC_RMID);
    semctl(set_of_timed, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    return finish("nothing was cut short");
}
