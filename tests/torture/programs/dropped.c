/* dropped [MS]: begins as root, becomes nobody and undumpable, and goes on computing, with threads and a child. */
#include "torture.h"
#include <grp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };
static int64_t end;

static void *compute(void *unused) {
    uint64_t expected = work(4, 100);
    while (goes_on(end))
        CHECK(work(4, 100) == expected, "computes wrong");
    return unused;
}

int main(int argc, char **argv) {
    int64_t length = duration_ns(argc, argv, 600);
    announce();
    work(1, 20000);
    end = now_ns() + length;
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, compute, NULL) == 0);
    NEED(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    NEED(prctl(PR_SET_DUMPABLE, 0) == 0);
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
        compute(NULL);
        CHECK(setuid(0) == -1, "the child is root again");
        _exit(violations ? 1 : 9);
    }
    compute(NULL);
    CHECK(prctl(PR_GET_DUMPABLE) == 0, "dumpable again");
    CHECK(setuid(0) == -1 && geteuid() == NOBODY && getegid() == NOBODY, "root again");
    int status;
    NEED(waitpid(child, &status, 0) == child);
    CHECK(status == 9 << 8, "the child ended with %#x", status);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("nobody knows");
}
