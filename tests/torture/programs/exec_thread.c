/* exec_thread [ROUNDS [PID]]: a thread that is not the first executes the program anew while others run, again and again. The
 * process id stays, and of the threads only one. */
#include "torture.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>

enum { THREADS = 6 };

static char **arguments;
static int rounds;

static void *spin(void *unused) {
    uint64_t expected = work(3, 20);
    for (;;)
        CHECK(work(3, 20) == expected, "computes wrong");
    return unused;
}

static void *sleeping(void *unused) {
    for (;;)
        sleep_us(1000);
    return unused;
}

static void *executing(void *unused) {
    char left[16], pid[16];
    work(rounds, 20000);
    snprintf(left, sizeof left, "%d", rounds - 1);
    snprintf(pid, sizeof pid, "%d", getpid());
    /* Not /proc/self: the first thread may be gone. */
    execl("/proc/thread-self/exe", arguments[0], left, pid, NULL);
    violation("exec: errno %d", errno);
    _exit(1);
    return unused;
}

static int threads(void) {
    int number = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));)
        number += task->d_name[0] != '.';
    closedir(tasks);
    return number;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 40;
    arguments = argv;
    CHECK(argc < 3 || atoi(argv[2]) == getpid(), "the process id is %d, was %s", getpid(), argv[2]);
    CHECK(gettid() == getpid(), "the thread that executes becomes the first");
    CHECK(threads() == 1, "%d threads after exec", threads());
    if (violations || rounds == 0)
        return finish("every exec left one thread");
    if (argc < 3)
        announce();
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&thread, NULL, i & 1 ? spin : sleeping, NULL) == 0);
    NEED(pthread_create(&thread, NULL, executing, NULL) == 0);
    if (rounds & 1)
        pthread_exit(NULL);
    spin(NULL);
}
