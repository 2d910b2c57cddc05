/* queued [MS]: real-time signals with values, queued by one thread for another in bunches of 64: all must arrive, in order,
 * with their values, while the receiver computes, sleeps and makes system calls. The sender waits for each bunch to be handled: if there
 * were always a next signal, whoever sees each of them first could keep the receiver from its own work for ever. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>

static volatile long received;
static volatile sig_atomic_t out_of_order;
static atomic_long queued;
static atomic_int over;
static pthread_t receiver;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if (info->si_code != SI_QUEUE || info->si_value.sival_int != received)
        if (!out_of_order++)
            violation("si_code %d, value %d instead of %ld", info->si_code, info->si_value.sival_int, received);
    received++;
}

static void *send_all(void *unused) {
    for (long sent = 0; !atomic_load(&over);) {
        int error = pthread_sigqueue(receiver, SIGRTMIN + 3, (union sigval){.sival_int = sent});
        if (error == 0)
            atomic_store(&queued, ++sent);
        else
            CHECK(error == EAGAIN, "pthread_sigqueue: %d", error);
        if (error == 0 && sent % 64 == 0) {
            while (received < sent && !atomic_load(&over))
                ;
            work(sent, 1000);
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 600);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    NEED(sigaction(SIGRTMIN + 3, &action, NULL) == 0);
    receiver = pthread_self();
    announce();
    pthread_t sender;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGRTMIN + 3);
    NEED(pthread_create(&sender, NULL, send_all, NULL) == 0);
    uint64_t expected = work(2, 50);
    for (int round = 0; goes_on(end); round++) {
        CHECK(work(2, 50) == expected, "computes wrong");
        CHECK(getppid() > 0, "getppid");
        if (round % 16 == 0) {
            /* Let some queue up. */
            pthread_sigmask(SIG_BLOCK, &signals, NULL);
            sleep_us(300);
            pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
        }
    }
    atomic_store(&over, 1);
    NEED(pthread_join(sender, NULL) == 0);
    getppid(); /* The way back from a system call delivers what is pending. */
    CHECK(received == queued && received > 0, "%ld received, %ld queued", received, (long)queued);
    return finish("every queued signal arrived in order");
}
