/* urgent_late [MS]: handlers for SIGURG and SIGWINCH, and threads that block both for a while, again and again. Nobody sends any: none may
 * come, not even one that was sent to a thread while it was recorded, and that it takes afterwards; and they block what they have chosen. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>

enum { THREADS = 4 };

static int64_t end;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    violation("signal %d, si_code %d, si_fd %d", signal, info->si_code, info->si_fd);
}

static void *compute(void *number) {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGURG);
    sigaddset(&both, SIGWINCH);
    uint64_t expected = work(4, 30);
    int first = 1;
    for (int blocked = (int)(intptr_t)number % 2; goes_on(end) && !violations; blocked = !blocked) {
        sigset_t before;
        NEED(pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &both, &before) == 0);
        CHECK(first || (sigismember(&before, SIGURG) == !blocked && sigismember(&before, SIGWINCH) == !blocked), "another mask");
        first = 0;
        for (int64_t until = now_ns() + 60000000; now_ns() < until;)
            CHECK(work(4, 30) == expected, "computes wrong");
    }
    NEED(pthread_sigmask(SIG_UNBLOCK, &both, NULL) == 0);
    return NULL;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 800);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    NEED(sigaction(SIGURG, &action, NULL) == 0 && sigaction(SIGWINCH, &action, NULL) == 0);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        NEED(pthread_create(&threads[i], NULL, compute, (void *)i) == 0);
    announce();
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    return finish("no signal came");
}
