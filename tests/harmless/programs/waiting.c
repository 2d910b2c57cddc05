/* System calls that wait, or move much at a time, while signals come that do nothing: none may end early, fail or begin anew. */
#include "kinds.h"
#include <mqueue.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <linux/futex.h>

enum { MUCH = 1 << 20 };
static char much[MUCH];
static const struct timespec FIFTH = {0, 200000000};

static void *read_slowly(void *argument) {
    int file = (int)(intptr_t)argument;
    static char piece[65536];
    compute(10);
    usleep(100000);
    ssize_t got;
    while ((got = read(file, piece, sizeof piece)) > 0)
        usleep(1000);
    return NULL;
}

static void *write_slowly(void *argument) {
    int file = (int)(intptr_t)argument;
    for (int i = 0; i < 8; i++) {
        usleep(30000);
        compute(2);
        if (write(file, much, MUCH / 8) < 0)
            break;
    }
    return NULL;
}

/* The ends of a pipe or of a pair of sockets, with a slow thread at the other one. */
static int slow(int is_socket, int write_end, void *(*at_other_end)(void *)) {
    int ends[2];
    pthread_t thread;
    NEED((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0);
    NEED(pthread_create(&thread, NULL, at_other_end, (void *)(intptr_t)ends[!write_end]) == 0);
    compute(20);
    children_exit_every(40, 3);
    return ends[write_end];
}

static void write_to_pipe(void) {
    int file = slow(0, 1, read_slowly);
    SAY(write(file, much, MUCH));
}
static void writev_to_pipe(void) {
    int file = slow(0, 1, read_slowly);
    struct iovec two[2] = {{much, MUCH / 2}, {much, MUCH / 2}};
    SAY(writev(file, two, 2));
}
static void write_to_socket(void) {
    int file = slow(1, 1, read_slowly);
    SAY(write(file, much, MUCH));
}
static void send_to_socket(void) {
    int file = slow(1, 1, read_slowly);
    SAY(send(file, much, MUCH, 0));
}
static void sendmsg_to_socket(void) {
    int file = slow(1, 1, read_slowly);
    struct iovec one = {much, MUCH};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    SAY(sendmsg(file, &message, 0));
}
static void sendfile_to_pipe(void) {
    int file = slow(0, 1, read_slowly), from = memfd_create("much", 0);
    NEED(from >= 0 && write(from, much, MUCH) == MUCH);
    off_t at = 0;
    SAY(sendfile(file, from, &at, MUCH));
}
static void splice_to_pipe(void) {
    int file = slow(0, 1, read_slowly), from = memfd_create("much", 0);
    NEED(from >= 0 && write(from, much, MUCH) == MUCH);
    loff_t at = 0;
    ssize_t all = 0, got;
    while ((got = splice(from, &at, file, NULL, 65536, 0)) > 0)
        all += got;
    printf("spliced %zd, then %zd\n", all, got);
}
static void vmsplice_to_pipe(void) {
    int file = slow(0, 1, read_slowly);
    struct iovec one = {much, MUCH};
    SAY(vmsplice(file, &one, 1, 0));
}
static void receive_all(void) {
    int file = slow(1, 0, write_slowly);
    SAY(recv(file, much, MUCH, MSG_WAITALL));
}
static void recvmsg_all(void) {
    int file = slow(1, 0, write_slowly);
    struct iovec one = {much, MUCH};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    SAY(recvmsg(file, &message, MSG_WAITALL));
}
static void read_from_pipe(void) {
    int file = slow(0, 0, write_slowly);
    SAY(read(file, much, 10));
}

/* A call that waits for 0.2 s while a child exits every 30 ms for 1.5 s: not shorter, and not as long as if it began anew for each. */
#define WAITS(name, prepare, call, ...)                                                                                    \
    static void name(void) {                                                                                           \
        prepare;                                                                                                       \
        compute(20);                                                                                                   \
        children_exit_every(30, 50);                                                                                   \
        double since = seconds();                                                                                      \
        SAY(call);                                                                                                     \
        puts(took(since, 0.19, 1.2));                                                                                  \
        compute(20);                                                                                                   \
        __VA_ARGS__;                                                                                                   \
    }
#define NOTHING ((void)0)

static int word;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static struct timespec in_a_fifth(clockid_t clock) {
    struct timespec then;
    clock_gettime(clock, &then);
    then.tv_nsec += FIFTH.tv_nsec;
    then.tv_sec += then.tv_nsec / 1000000000;
    then.tv_nsec %= 1000000000;
    return then;
}
static struct timespec then;
#define THEN(clock) then = in_a_fifth(clock)

WAITS(by_nanosleep, NOTHING, nanosleep(&FIFTH, NULL))
WAITS(by_clock_nanosleep, NOTHING, clock_nanosleep(CLOCK_MONOTONIC, 0, &FIFTH, NULL))
WAITS(by_clock_nanosleep_until, NOTHING, (THEN(CLOCK_MONOTONIC), clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL)))
WAITS(by_poll, NOTHING, poll(NULL, 0, 200))
WAITS(by_ppoll, NOTHING, ppoll(NULL, 0, &FIFTH, NULL))
WAITS(by_select, struct timeval fifth = {.tv_usec = 200000}, select(0, NULL, NULL, NULL, &fifth))
WAITS(by_pselect, NOTHING, pselect(0, NULL, NULL, NULL, &FIFTH, NULL))
WAITS(by_epoll, int epoll = epoll_create1(0); struct epoll_event event, epoll_wait(epoll, &event, 1, 200))
WAITS(by_futex, NOTHING, syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &FIFTH, NULL, 0))
WAITS(by_sigtimedwait, sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, NULL),
      sigtimedwait(&set, NULL, &FIFTH))
WAITS(by_cond_timedwait, pthread_mutex_lock(&mutex), (THEN(CLOCK_REALTIME), pthread_cond_timedwait(&condition, &mutex, &then)))
WAITS(by_sem_timedwait, sem_init(&semaphore, 0, 0), (THEN(CLOCK_REALTIME), sem_timedwait(&semaphore, &then)))
WAITS(by_semtimedop, int set = semget(IPC_PRIVATE, 1, 0600); struct sembuf down = {.sem_op = -1}, semtimedop(set, &down, 1, &FIFTH))

static int pair[2];
#define PAIR(option)                                                                                                   \
    struct timeval fifth = {.tv_usec = 200000};                                                                        \
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);                                                              \
    NEED(setsockopt(pair[0], SOL_SOCKET, option, &fifth, sizeof fifth) == 0)
WAITS(by_recv_timeout, PAIR(SO_RCVTIMEO), recv(pair[0], much, 1, 0))
WAITS(by_read_timeout, PAIR(SO_RCVTIMEO), read(pair[0], much, 1))
static struct iovec one_byte = {much, 1};
static struct msghdr small = {.msg_iov = &one_byte, .msg_iovlen = 1};
WAITS(by_recvmsg_timeout, PAIR(SO_RCVTIMEO), recvmsg(pair[0], &small, 0))
static void fill(int file) {
    while (send(file, much, 4096, MSG_DONTWAIT) > 0)
        ;
}
WAITS(by_send_timeout, PAIR(SO_SNDTIMEO); fill(pair[0]), send(pair[0], much, 4096, 0))

static int listener(struct sockaddr_un *name) {
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "hbbp-harmless-%d", getpid());
    NEED(bind(file, (struct sockaddr *)name, sizeof *name) == 0 && listen(file, 0) == 0);
    return file;
}
static int timed(int option) {
    struct timeval fifth = {.tv_usec = 200000};
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    NEED(setsockopt(file, SOL_SOCKET, option, &fifth, sizeof fifth) == 0);
    return file;
}
WAITS(by_connect_timeout, struct sockaddr_un name; listener(&name); int first = timed(SO_SNDTIMEO); int second = timed(SO_SNDTIMEO);
      NEED(connect(first, (struct sockaddr *)&name, sizeof name) == 0), connect(second, (struct sockaddr *)&name, sizeof name))
WAITS(by_accept_timeout, struct sockaddr_un name; int at = listener(&name); struct timeval fifth = {.tv_usec = 200000};
      NEED(setsockopt(at, SOL_SOCKET, SO_RCVTIMEO, &fifth, sizeof fifth) == 0), accept(at, NULL, NULL))

static int timer;
static struct itimerspec once = {.it_value = {0, 200000000}};
static uint64_t number;
WAITS(by_timerfd, timer = timerfd_create(CLOCK_MONOTONIC, 0), (timerfd_settime(timer, 0, &once, NULL), read(timer, &number, 8)))

/* Waiting for what another thread does after 0.2 s. */
static void *later(void *argument) {
    compute(5);
    usleep(200000);
    ((void (*)(void))argument)();
    return NULL;
}
static void wakes(void (*act)(void)) {
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, later, (void *)act) == 0);
}
static int event, queue, watch, locked;
static void set_event(void) { eventfd_write(event, 7); }
static void post(void) { sem_post(&semaphore); }
static void wake_word(void) {
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void signal_condition(void) {
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}
static void send_message(void) {
    struct {
        long type;
        char text[4];
    } message = {1, "abc"};
    msgsnd(queue, &message, 4, 0);
}
static void unlock(void) { flock(locked, LOCK_UN); }
static struct {
    long type;
    char text[8];
} message;
static sigset_t user_signal;
static void send_user_signal(void) { kill(getpid(), SIGUSR1); }
static char path[64];
static void touch(void) { close(open(path, O_RDONLY)); }
static void open_other_end(void) { open(path, O_WRONLY); }

WAITS(for_eventfd, event = eventfd(0, 0), (wakes(set_event), read(event, &number, 8)))
WAITS(for_semaphore, sem_init(&semaphore, 0, 0), (wakes(post), sem_wait(&semaphore)))
WAITS(for_futex, NOTHING, (wakes(wake_word), syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0)))
WAITS(for_condition, pthread_mutex_lock(&mutex), (wakes(signal_condition), pthread_cond_wait(&condition, &mutex)))
WAITS(for_message, queue = msgget(IPC_PRIVATE, 0600), (wakes(send_message), msgrcv(queue, &message, sizeof message.text, 0, 0)))
WAITS(for_inotify, snprintf(path, sizeof path, "/tmp/hbbp-harmless-%d", getpid()); close(open(path, O_CREAT | O_WRONLY, 0600));
      watch = inotify_init(); NEED(inotify_add_watch(watch, path, IN_OPEN) > 0),
      (wakes(touch), read(watch, much, 4096)), unlink(path))
WAITS(for_flock, snprintf(path, sizeof path, "/proc/self/exe"); locked = open(path, O_RDONLY); NEED(flock(locked, LOCK_EX) == 0);
      int again = open(path, O_RDONLY), (wakes(unlock), flock(again, LOCK_SH)))
WAITS(for_signal, sigemptyset(&user_signal); sigaddset(&user_signal, SIGUSR1); sigprocmask(SIG_BLOCK, &user_signal, NULL),
      (wakes(send_user_signal), sigwaitinfo(&user_signal, NULL)))
WAITS(for_signalfd, sigemptyset(&user_signal); sigaddset(&user_signal, SIGUSR1); sigprocmask(SIG_BLOCK, &user_signal, NULL);
      int from = signalfd(-1, &user_signal, 0), (wakes(send_user_signal), read(from, much, 4096)))
WAITS(for_fifo, snprintf(path, sizeof path, "/tmp/hbbp-harmless-%d", getpid()); NEED(mkfifo(path, 0600) == 0),
      (wakes(open_other_end), open(path, O_RDONLY) > 0), unlink(path))

/* Record locks are of processes. */
static void for_record_lock(void) {
    int file = memfd_create("locked", 0), ready[2];
    struct flock lock = {.l_type = F_WRLCK};
    NEED(pipe(ready) == 0);
    fflush(stdout);
    if (!fork()) {
        NEED(fcntl(file, F_SETLK, &lock) == 0 && write(ready[1], "", 1) == 1);
        compute(5);
        usleep(700000);
        _exit(0);
    }
    NEED(read(ready[0], much, 1) == 1);
    compute(20);
    children_exit_every(30, 3);
    double since = seconds();
    SAY(fcntl(file, F_SETLKW, &lock));
    puts(took(since, 0.1, 3));
}

static void for_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        compute(30);
        usleep(200000);
        _exit(7);
    }
    child_exits_after(50);
    int status;
    SAY(waitpid(child, &status, 0) == child);
    printf("%d\n", WEXITSTATUS(status));
    siginfo_t info;
    SAY(waitid(P_ALL, 0, &info, WEXITED));
    printf("%d %d\n", info.si_code == CLD_EXITED, info.si_status);
    SAY(wait(NULL));
}

/* epoll_wait whose timeout began anew with every signal would not end. */
static void epoll_under_signals(void) {
    signal(SIGUSR1, SIG_IGN);
    pid_t self = getpid();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 40; i++) {
            usleep(50000);
            kill(self, SIGUSR1);
        }
        _exit(0);
    }
    compute(30);
    int epoll = epoll_create1(0);
    struct epoll_event event;
    double since = seconds();
    SAY(epoll_wait(epoll, &event, 1, 300));
    puts(took(since, 0.29, 1.2));
    kill(child, SIGKILL);
}

#define KIND(name) {#name, name}
const struct kind waiting[] = {
    KIND(write_to_pipe), KIND(writev_to_pipe), KIND(write_to_socket), KIND(send_to_socket), KIND(sendmsg_to_socket),
    KIND(sendfile_to_pipe), KIND(splice_to_pipe), KIND(vmsplice_to_pipe), KIND(receive_all), KIND(recvmsg_all),
    KIND(read_from_pipe), KIND(by_nanosleep), KIND(by_clock_nanosleep), KIND(by_clock_nanosleep_until), KIND(by_poll),
    KIND(by_ppoll), KIND(by_select), KIND(by_pselect), KIND(by_epoll), KIND(by_futex), KIND(by_sigtimedwait),
    KIND(by_cond_timedwait), KIND(by_sem_timedwait), KIND(by_semtimedop), KIND(by_recv_timeout), KIND(by_read_timeout),
    KIND(by_recvmsg_timeout), KIND(by_send_timeout), KIND(by_connect_timeout), KIND(by_accept_timeout), KIND(by_timerfd),
    KIND(for_eventfd), KIND(for_semaphore), KIND(for_futex), KIND(for_condition), KIND(for_message), KIND(for_inotify),
    KIND(for_flock), KIND(for_signal), KIND(for_signalfd), KIND(for_fifo), KIND(for_record_lock), KIND(for_child),
    KIND(epoll_under_signals), {NULL, NULL},
};
