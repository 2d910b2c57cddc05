/* marked: eight threads compute, sleep or wait until the byte in the file `enough` is set; then each looks at what a collector might have left on
 * it: a tracer, pending signals, another signal mask. */
#include "torture.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

enum { THREADS = 8 };

static atomic_int over;
static sem_t never;

/* The number after `name:` in the thread's status, in base `base`. */
static long status_of(const char *name, int base) {
    char path[64], line[256];
    long value = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", gettid());
    FILE *status = fopen(path, "r");
    NEED(status);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = strtol(line + strlen(name) + 1, NULL, base);
    fclose(status);
    return value;
}

static void look(long thread) {
    CHECK(status_of("TracerPid", 10) == 0, "thread %ld: traced by %ld", thread, status_of("TracerPid", 10));
    const char *const signals[] = {"SigPnd", "ShdPnd", "SigBlk"};
    for (int i = 0; i < 3; i++)
        CHECK(status_of(signals[i], 16) == 0, "thread %ld: %s %lx", thread, signals[i], status_of(signals[i], 16));
}

static void *thread(void *number) {
    uint64_t expected = work(4, 100);
    while (!atomic_load(&over))
        switch ((long)number % 4) {
        case 0:
        case 1:
            CHECK(work(4, 100) == expected, "computes wrong");
            break;
        case 2:
            CHECK(usleep(1000) == 0, "usleep: errno %d", errno);
            break;
        case 3:
            CHECK(sem_wait(&never) == 0, "sem_wait: errno %d", errno);
            break;
        }
    look((long)number);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    sem_init(&never, 0, 0);
    for (long i = 0; i < THREADS; i++)
        NEED(pthread_create(&threads[i], NULL, thread, (void *)i) == 0);
    announce();
    int64_t limit = now_ns() + 60000000000l;
    while (goes_on(limit))
        sleep_us(5000);
    atomic_store(&over, 1);
    for (int i = 0; i < THREADS; i++)
        sem_post(&never);
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    look(-1);
    return finish("nothing is left behind");
}
