/* stopped [MS]: four threads use so much CPU time together, however often the program is stopped meanwhile; the number of times it
 * was continued is its exit code. */
#include "torture.h"
#include <pthread.h>
#include <signal.h>

static int64_t length;
static atomic_int continued;

static void on_continue(int signal) {
    (void)signal;
    atomic_fetch_add(&continued, 1);
}

static void *compute(void *unused) {
    uint64_t expected = work(4, 100);
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < length)
        CHECK(work(4, 100) == expected, "computes wrong");
    return unused;
}

int main(int argc, char **argv) {
    length = duration_ns(argc, argv, 1000);
    struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    NEED(sigaction(SIGCONT, &action, NULL) == 0);
    pthread_t threads[3];
    announce();
    for (int i = 0; i < 3; i++)
        NEED(pthread_create(&threads[i], NULL, compute, NULL) == 0);
    compute(NULL);
    for (int i = 0; i < 3; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    return finish("the work is done") ? 100 : continued;
}
