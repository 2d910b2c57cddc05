/* timers [MS]: timers at 1 to 5 kHz with counting handlers, while three threads compute.
 *
 * - a POSIX timer at 5 kHz for the process, handled by the main thread: signals and overruns together are exactly the
 *   expirations, and no signal is lost or made up;
 * - a POSIX timer at 1 kHz for each of two threads, which must get its own and no other's;
 * - setitimer at 2 kHz of real and of CPU time, where signals merge: not more than expirations, and they keep coming. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { INTERVAL_NS = 200000, THREAD_INTERVAL_NS = 1000000, ITIMER_US = 500, WORKERS = 2 };
static const clockid_t THE_CLOCK = CLOCK_MONOTONIC;

static atomic_int over;
static pid_t main_thread;
static volatile int64_t deliveries, expirations;
static atomic_long alarms, profs;

struct worker {
    pthread_t thread;
    pid_t tid;
    timer_t timer;
    volatile int64_t deliveries, expirations;
};
static struct worker workers[WORKERS];

static void on_timer(int signal, siginfo_t *info, void *context) {
    (void)context;
    CHECK(info->si_signo == signal && info->si_code == SI_TIMER, "timer: si_code %d", info->si_code);
    CHECK(info->si_value.sival_int == 4711, "timer: value %d", info->si_value.sival_int);
    CHECK(gettid() == main_thread, "timer: in a thread that has it blocked");
    deliveries++;
    expirations += 1 + info->si_overrun;
}

static void on_thread_timer(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    struct worker *self = info->si_value.sival_ptr;
    CHECK(info->si_code == SI_TIMER && self >= workers && self < workers + WORKERS, "thread timer: wrong value");
    CHECK(gettid() == self->tid, "thread timer: in the wrong thread");
    self->deliveries++;
    self->expirations += 1 + info->si_overrun;
}

static void on_alarm(int signal, siginfo_t *info, void *context) {
    (void)context;
    CHECK(info->si_code == SI_KERNEL, "setitimer: si_code %d", info->si_code);
    atomic_fetch_add(signal == SIGALRM ? &alarms : &profs, 1);
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    NEED(sigaction(signal, &action, NULL) == 0);
}

/* Starts a timer; the time after which its first interval began at the latest. */
static int64_t start(timer_t timer, long interval) {
    struct itimerspec time = {{0, interval}, {0, interval}};
    NEED(timer_settime(timer, 0, &time, NULL) == 0);
    return clock_ns(THE_CLOCK);
}

/* What expired before now must be counted by the time the next signal has arrived in this same thread. */
static void check_counts(const char *what, int64_t before, int64_t after, int64_t interval,
                         volatile int64_t *delivered, volatile int64_t *expired) {
    int64_t now = clock_ns(THE_CLOCK), seen = *delivered;
    while (*delivered == seen)
        if (clock_ns(THE_CLOCK) - now > 5000000000l) {
            violation("%s: no signal for 5 s after %ld", what, (long)seen);
            return;
        }
    int64_t counted = *expired, least = (now - after) / interval;
    int64_t most = (clock_ns(THE_CLOCK) - before) / interval;
    CHECK(counted >= least, "%s: %ld expirations lost of %ld", what, (long)(least - counted), (long)least);
    CHECK(counted <= most, "%s: %ld expirations too many of %ld", what, (long)(counted - most), (long)most);
}

static void *worker(void *argument) {
    struct worker *self = argument;
    self->tid = gettid();
    uint64_t expected = work(3, 50);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
    event.sigev_notify_thread_id = self->tid;
    event.sigev_value.sival_ptr = self;
    NEED(timer_create(THE_CLOCK, &event, &self->timer) == 0);
    int64_t before = clock_ns(THE_CLOCK), after = start(self->timer, THREAD_INTERVAL_NS);
    while (!atomic_load(&over))
        CHECK(work(3, 50) == expected, "a worker computes wrong");
    check_counts("thread timer", before, after, THREAD_INTERVAL_NS, &self->deliveries, &self->expirations);
    timer_delete(self->timer);
    return NULL;
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 800);
    main_thread = gettid();
    handle(SIGRTMIN, on_timer);
    handle(SIGRTMIN + 1, on_thread_timer);
    handle(SIGALRM, on_alarm);
    handle(SIGPROF, on_alarm);
    sigset_t of_main, mask;
    sigemptyset(&of_main);
    sigaddset(&of_main, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &of_main, &mask);
    for (int i = 0; i < WORKERS; i++)
        NEED(pthread_create(&workers[i].thread, NULL, worker, &workers[i]) == 0);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    announce();

    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 4711};
    NEED(timer_create(THE_CLOCK, &event, &timer) == 0);
    struct itimerval often = {{0, ITIMER_US}, {0, ITIMER_US}}, never = {{0, 0}, {0, 0}};
    int64_t alarm_start = now_ns();
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    int64_t before = clock_ns(THE_CLOCK), after = start(timer, INTERVAL_NS);
    uint64_t expected = work(9, 50);
    while (goes_on(end))
        CHECK(work(9, 50) == expected, "the main thread computes wrong");
    check_counts("process timer", before, after, INTERVAL_NS, &deliveries, &expirations);
    long alarms_before = alarms, profs_before = profs;
    int64_t patience = now_ns() + 5000000000l;
    while (alarms == alarms_before || profs == profs_before)
        if (now_ns() > patience) {
            violation("setitimer: no signal for 5 s: %ld real, %ld of CPU time", alarms_before, profs_before);
            break;
        }
    setitimer(ITIMER_REAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    int64_t most = (now_ns() - alarm_start) / (1000 * ITIMER_US);
    CHECK(alarms <= most, "setitimer: %ld signals of %ld expirations", (long)alarms, (long)most);
    atomic_store(&over, 1);
    for (int i = 0; i < WORKERS; i++)
        NEED(pthread_join(workers[i].thread, NULL) == 0);
    timer_delete(timer);
    return finish("every expiration of every timer is accounted for");
}
